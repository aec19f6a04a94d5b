"""docs/configuration.md is written from the rows."""

import sys

import pytest

from config import reference as module
from config.broker import BROKER_KEYS
from config.reference import PATH, main, reference
from config.topic import TOPIC_KEYS


def test_the_document_is_fresh() -> None:
    """Whoever changes a row runs `make docs`."""
    assert PATH.read_text(encoding="utf-8") == reference()


def test_every_key_is_documented_with_a_text_of_its_own() -> None:
    """But for internal ones."""
    document = reference()
    for row in [*BROKER_KEYS.values(), *TOPIC_KEYS.values()]:
        assert (f"#### `{row.name}`\n\n{row.text}\n" in document) is not row.internal
        assert row.text.endswith(".")
        assert row.source


def test_a_stale_document_is_told(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--check` tells by its exit status; without it the document is written."""
    path = tmp_path_factory.mktemp("docs") / "configuration.md"
    monkeypatch.setattr(module, "PATH", path)
    monkeypatch.setattr(sys, "argv", ["reference", "--check"])
    assert main() == 1
    monkeypatch.setattr(sys, "argv", ["reference"])
    assert main() == 0
    monkeypatch.setattr(sys, "argv", ["reference", "--check"])
    assert main() == 0
