"""Which shared object is loaded: the source's own, or none."""

import os
import shutil
from pathlib import Path

import pytest

from native.build import build, find_compiler
from native.library import load_library, load_wanted
from native.sources import FOLDER, library_path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of a source, which is not compiled."""
    shutil.copy(FOLDER / "records.c", tmp_path)
    monkeypatch.setattr("native.sources.FOLDER", tmp_path)
    return tmp_path


def test_what_is_not_compiled_is_not_there(folder: Path) -> None:
    """The reason names the remedy."""
    library = load_library("records")
    assert library.handle is None
    assert "`make native`" in library.problem


@pytest.mark.skipif(find_compiler(os.environ) is None, reason="there is no C compiler")
def test_what_belongs_to_another_source_is_not_loaded(folder: Path) -> None:
    """A stale one would be wrong in ways that nobody sees."""
    build("records", os.environ)
    assert load_library("records").describe() == "compiled"
    with (folder / "records.c").open("a", encoding="utf-8") as source:
        source.write("\n")
    assert load_library("records").handle is None


def test_what_does_not_load_is_a_reason_to_go_on_without(folder: Path) -> None:
    """Built on another machine, or damaged."""
    library_path("records").parent.mkdir()
    library_path("records").write_bytes(b"no shared object")
    library = load_library("records")
    assert library.handle is None
    assert "does not load" in library.problem


def test_without_its_source_there_is_none(folder: Path) -> None:
    """As where the packages are in a zip."""
    (folder / "records.c").unlink()
    library = load_library("records")
    assert library.handle is None
    assert "as within a zip" in library.problem


@pytest.mark.skipif(find_compiler(os.environ) is None, reason="there is no C compiler")
def test_where_compiled_code_is_not_wanted_there_is_none(folder: Path) -> None:
    """What stands in for the broker's Python goes the way of its modules."""
    build("records", os.environ)
    unwanted = load_wanted("records", {"VARVE_NATIVE": "off"})
    assert unwanted.describe() == "python (VARVE_NATIVE=off)"
    assert load_wanted("records", {"VARVE_NATIVE": "off"}).handle is None
    for environment in ({}, {"VARVE_NATIVE": "auto"}, {"VARVE_NATIVE": "require"}):
        assert load_wanted("records", environment).handle is not None
