"""docs/pipeline.md has the table of options as it is declared."""

import sys

import pytest

from pipeline.source.options import reference as module
from pipeline.source.options.option_table import OPTIONS
from pipeline.source.options.reference import BEGIN, END, PATH, main, with_reference


def test_the_document_is_fresh() -> None:
    """Whoever changes a row runs `make docs`."""
    document = PATH.read_text(encoding="utf-8")
    assert document == with_reference(document)


def test_every_option_is_documented_with_a_text_of_its_own() -> None:
    document = PATH.read_text(encoding="utf-8")
    for option in OPTIONS:
        assert f"| `{option.name}` | " in document
        assert option.meaning.endswith((".", "`."))
    assert len({option.name.lower() for option in OPTIONS}) == len(OPTIONS)
    assert len({option.meaning for option in OPTIONS}) == len(OPTIONS)


def test_what_is_written_by_hand_stays() -> None:
    text = with_reference(f"before\n{BEGIN}old{END}after\n")
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text


@pytest.mark.parametrize("text", ["", BEGIN, END, f"{END}{BEGIN}", f"{BEGIN}{BEGIN}{END}"])
def test_a_document_without_its_marks_is_not_written(text: str) -> None:
    with pytest.raises(ValueError, match="lacks the marks"):
        with_reference(text)


def test_a_stale_document_is_told(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--check` tells by its exit status; without it the document is written."""
    path = tmp_path_factory.mktemp("docs") / "pipeline.md"
    path.write_text(f"by hand\n{BEGIN}{END}")
    monkeypatch.setattr(module, "PATH", path)
    monkeypatch.setattr(sys, "argv", ["reference", "--check"])
    assert main() == 1
    monkeypatch.setattr(sys, "argv", ["reference"])
    assert main() == 0
    monkeypatch.setattr(sys, "argv", ["reference", "--check"])
    assert main() == 0
