"""Compiling in place: once per source, and a sentence where it cannot be done."""

import os
import shutil
from pathlib import Path

import pytest

from native.__main__ import main
from native.build import BuildError, build, build_all, find_compiler
from native.sources import FOLDER, NAMES

needs_compiler = pytest.mark.skipif(
    find_compiler(os.environ) is None, reason="there is no C compiler"
)
NOWHERE = {"PATH": "/nonexistent"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the sources, of which nothing is compiled."""
    for name in NAMES:
        shutil.copy(FOLDER / f"{name}.c", tmp_path)
    monkeypatch.setattr("native.sources.FOLDER", tmp_path)
    return tmp_path


@needs_compiler
def test_a_source_is_compiled_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The second time there is nothing to do, not even for a compiler."""
    path, is_new = build("records", os.environ)
    assert is_new
    assert path.parent == folder / "built"
    assert build("records", NOWHERE) == (path, False)
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    assert main(["--c"]) == 0
    # The other source has not been compiled before.
    first = capsys.readouterr().out.splitlines()
    assert f"{path.name} is up to date" in first
    assert len(first) == len(NAMES)
    assert main(["--c"]) == 0
    assert capsys.readouterr().out.count(" is up to date\n") == len(NAMES)
    assert main(["--if-possible", "--c"]) == 0
    assert capsys.readouterr().out == ""


@needs_compiler
def test_a_changed_source_is_compiled_again(folder: Path) -> None:
    """What belonged to it as it was is removed."""
    old, _ = build("records", os.environ)
    with (folder / "records.c").open("a", encoding="utf-8") as source:
        source.write("\n/* changed */\n")
    new, is_new = build("records", os.environ)
    assert is_new
    assert new != old
    assert list(old.parent.iterdir()) == [new]


@needs_compiler
def test_what_does_not_compile_is_said_with_the_compilers_words(folder: Path) -> None:
    """And nothing half made stays."""
    (folder / "records.c").write_text("int broken(", encoding="utf-8")
    with pytest.raises(BuildError, match=r"records\.c failed:\n(?s:.*)error"):
        build("records", os.environ)
    assert list((folder / "built").iterdir()) == []
    assert main(["--c"]) == 1


@needs_compiler
@pytest.mark.parametrize("name", NAMES)
def test_sources_compile_without_a_warning(folder: Path, name: str) -> None:
    """Also with the warnings that nobody turns on by chance."""
    flags = ("-Werror", "-Wconversion", "-Wshadow", "-Wpointer-arith", "-Wstrict-prototypes")
    path, _ = build(name, os.environ, extra_flags=flags)
    assert path.name.endswith(".try.so")


def test_without_a_compiler_there_is_a_sentence(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A failure only of whoever asked for it."""
    with pytest.raises(BuildError, match="no C compiler was found"):
        build_all(NOWHERE)
    assert not (folder / "built").exists()
    monkeypatch.setattr(os, "environ", NOWHERE)
    assert main(["--c"]) == 1
    assert main(["--if-possible", "--c"]) == 0
    assert "Python does the work instead" in capsys.readouterr().err


def test_the_compiler_is_the_one_that_is_named() -> None:
    """With its arguments; one that there is not is not replaced by another."""
    assert find_compiler({"CC": "sh -x", "PATH": "/bin:/usr/bin"}) == ["sh", "-x"]
    assert find_compiler({"CC": "no-such-compiler", "PATH": "/bin:/usr/bin"}) is None
