"""Words of operator texts and of first sentences: the field's nouns, and no persons."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.source_facts import Facts, facts

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("broker", "cli", "config", "native", "pipeline", "protocol", "storage", "tiered")

PERSONS = re.compile(
    r"\b(told|tells?|telling|nobody|somebody|whoever|anybody|stranger|anew|once more)\b", re.I
)


def _facts(package: str) -> Iterator[tuple[str, Facts]]:
    listed = subprocess.run(
        ["git", "ls-files", f"{package}/*.py"], cwd=ROOT, capture_output=True, check=True, text=True
    )
    for name in listed.stdout.split():
        if not name.startswith("protocol/messages/"):
            yield name, facts(ROOT / name)


@pytest.mark.parametrize("package", PACKAGES)
def test_operator_texts_speak_of_no_persons(package: str) -> None:
    """Log lines, alerts, errors, settings: an operator searches Kafka's documentation for them."""
    found = [
        f"{name}:{line}: {text}"
        for name, each in _facts(package)
        for line, text in each.operator_texts
        if PERSONS.search(text)
    ]
    assert found == []


@pytest.mark.parametrize("package", PACKAGES)
def test_first_sentences_speak_of_no_persons(package: str) -> None:
    """They say what a thing is, with the field's noun; see CONTRIBUTING, Words."""
    found = [
        f"{name}:{line}: {text}"
        for name, each in _facts(package)
        for line, text in each.first_lines
        if PERSONS.search(text)
    ]
    assert found == []
