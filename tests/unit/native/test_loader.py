"""Which code runs, as far as that is decided without a build; `test_build_modules` has the rest."""

import sys
from pathlib import Path

import pytest

from native import loader
from native.loader import CodePath, CompiledCodeError, CompiledFinder, install, prefer_compiled


@pytest.fixture
def undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "_current", loader.NOT_ASKED)


@pytest.mark.usefixtures("undecided")
def test_what_was_decided_stays() -> None:
    """What is imported cannot be exchanged."""
    assert prefer_compiled({"VARVE_NATIVE": "off"}) == CodePath(0, "VARVE_NATIVE=off")
    assert prefer_compiled({"VARVE_NATIVE": "require"}) == CodePath(0, "VARVE_NATIVE=off")


@pytest.mark.usefixtures("undecided")
def test_another_word_is_an_error() -> None:
    """A wish that is misspelt is not one for the default."""
    with pytest.raises(CompiledCodeError, match="VARVE_NATIVE=on is none of auto, off, require"):
        prefer_compiled({"VARVE_NATIVE": "on"})


def test_nothing_compiled_is_a_reason(tmp_path: Path) -> None:
    """With a remedy."""
    before = list(sys.meta_path)
    assert install(tmp_path, tmp_path).describe() == (
        "python (nothing is compiled; `make native` compiles)"
    )
    assert sys.meta_path == before


def test_the_finder_finds_its_own_only(tmp_path: Path) -> None:
    """All else is for the finders behind it."""
    finder = CompiledFinder(tmp_path, {"a.b": "a/b.so"})
    assert finder.find_spec("a", None) is None
    spec = finder.find_spec("a.b", None)
    assert spec is not None
    assert spec.origin == str(tmp_path / "a" / "b.so")
