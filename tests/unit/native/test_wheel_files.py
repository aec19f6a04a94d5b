"""What is compiled goes into a wheel if it is for this Python, and as the sources are."""

import hashlib
from pathlib import Path

import pytest

from native.loader import CompiledCodeError
from native.stamp import ABI, PREFIX, Source, Stamp, write_stamp
from native.wheel_files import wheel_files


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with one source, and a build of it."""
    (tmp_path / "area.py").write_text("SIDES = 4\n")
    sha256 = hashlib.sha256(b"SIDES = 4\n").hexdigest()
    folder = tmp_path / "built" / f"{PREFIX}{ABI}-1"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "area.so").write_bytes(b"object")
    write_stamp(
        folder,
        Stamp("", "", {"area.py": Source(10, 0, sha256)}, {"inner/area.so": 6}, {}),
    )
    return tmp_path


def modules_of(files: dict[str, str]) -> set[str]:
    return {place for place in files.values() if "modules-" in place}


def test_a_fresh_build_goes_into_the_wheel(root: Path) -> None:
    """Each file where the loader looks for it, whatever its times are."""
    files = wheel_files(root / "built", root, {})
    name = f"{PREFIX}{ABI}-1"
    assert modules_of(files) == {
        f"native/built/{name}/inner/area.so",
        f"native/built/{name}/stamp.json",
    }
    for path in files:
        assert Path(path).is_file()
    assert wheel_files(root / "built", root, {"VARVE_NATIVE": "off"}) == {}


@pytest.mark.parametrize("kind", ["changed", "another Python"])
def test_another_build_stays_out(root: Path, kind: str) -> None:
    """A wheel without it is for every Python; one that was to have it is not made."""
    if kind == "changed":
        (root / "area.py").write_text("SIDES = 5\n")
    else:
        (root / "built" / f"{PREFIX}{ABI}-1").rename(root / "built" / f"{PREFIX}other-1")
    assert wheel_files(root / "built", root, {}) == {}
    with pytest.raises(CompiledCodeError, match="no fresh build"):
        wheel_files(root / "built", root, {"VARVE_NATIVE": "require"})


def test_a_word_that_is_none_of_the_ways_is_refused(root: Path) -> None:
    """As a process refuses it."""
    with pytest.raises(CompiledCodeError, match="yes is none of auto, off, require"):
        wheel_files(root / "built", root, {"VARVE_NATIVE": "yes"})
