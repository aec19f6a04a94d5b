"""What decides whether a compiler is needed; `test_build_modules` runs the whole."""

from pathlib import Path

from native.mypyc_run import digest_of_c


def test_the_digest_is_of_c_only(tmp_path: Path) -> None:
    """Its files' names and contents, not what lies beside them."""
    (tmp_path / "a.c").write_text("int a;")
    before = digest_of_c(tmp_path)
    (tmp_path / "ops.txt").write_text("notes")
    assert digest_of_c(tmp_path) == before
    (tmp_path / "a.h").write_text("")
    assert digest_of_c(tmp_path) != before
