"""Words of operator texts and of first sentences: the field's nouns, and no persons."""

import ast
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


METRICS = (
    *(ROOT / "broker" / "metrics").glob("*.py"),
    ROOT / "broker" / "supervisor" / "own_metrics.py",
    ROOT / "pipeline" / "lake" / "app" / "metrics.py",
)

LEANING = re.compile(r"(Their|Of (these|those|them)|The same|Likewise|Milliseconds\.)")


def _help_texts(path: Path) -> Iterator[str]:
    """Sentences of a module that are no docstrings."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        inner = [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.Constant)]
        for each in inner if not isinstance(node, ast.Expr) else ():
            if isinstance(each.value, str) and each.value[:1].isupper() and each.value[-1] == ".":
                yield each.value


@pytest.mark.parametrize("path", METRICS, ids=lambda path: path.stem)
def test_help_of_a_metric_stands_alone(path: Path) -> None:
    """It is read in a dashboard, without that of the metric before it."""
    found = [text for text in _help_texts(path) if LEANING.match(text) or PERSONS.search(text)]
    assert found == []
