"""The stamp of a build."""

from pathlib import Path

from native.stamp import STAMP, Stamp, first_change, hold, look_at, read_stamp, write_stamp


def stamp_of(root: Path, *names: str) -> Stamp:
    return Stamp("tools", "code", {name: look_at(root / name) for name in names}, {}, {})


def test_what_is_written_is_read(tmp_path: Path) -> None:
    """Another format, or no stamp at all, is none."""
    (tmp_path / "a.py").write_text("a")
    stamp = stamp_of(tmp_path, "a.py")
    write_stamp(tmp_path, stamp)
    written = (tmp_path / STAMP).read_bytes()
    assert read_stamp(written) == stamp
    for damaged in (written[:-1], b"[]", b"", written.replace(b'"format":1', b'"format":2')):
        assert read_stamp(damaged) is None


def test_the_first_change_is_named(tmp_path: Path) -> None:
    """Other contents, another size, or gone."""
    (tmp_path / "a.py").write_text("a")
    (tmp_path / "b.py").write_text("b")
    stamp = stamp_of(tmp_path, "a.py", "b.py")
    assert first_change(stamp, tmp_path, tmp_path) == ""
    (tmp_path / "b.py").write_text("bb")
    assert first_change(stamp, tmp_path, tmp_path) == "b.py"
    (tmp_path / "a.py").unlink()
    assert first_change(stamp, tmp_path, tmp_path) == "a.py"
    other = Stamp("", "", {}, {"x.so": 2}, {})
    assert first_change(other, tmp_path, tmp_path) == "x.so"


def test_what_is_gone_cannot_be_held(tmp_path: Path) -> None:
    """The build may be removed between the look and the lock."""
    assert hold(tmp_path) is None
