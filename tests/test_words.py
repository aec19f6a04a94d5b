"""Words of operator texts and of first sentences: the field's nouns, and no persons."""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("broker", "cli", "config", "native", "pipeline", "protocol", "storage", "tiered")

PERSONS = re.compile(
    r"\b(told|tells?|telling|nobody|somebody|whoever|anybody|stranger|anew|once more)\b", re.I
)
LOG_CALLS = {"debug", "info", "warning", "error", "exception", "critical", "log"}
TEXT_ARGUMENTS = {"description", "epilog", "help", "text"}


def _trees(package: str) -> Iterator[tuple[str, ast.Module]]:
    listed = subprocess.run(
        ["git", "ls-files", f"{package}/*.py"], cwd=ROOT, capture_output=True, check=True, text=True
    )
    for name in listed.stdout.split():
        if not name.startswith("protocol/messages/"):
            yield name, ast.parse((ROOT / name).read_text(encoding="utf-8"))


def _texts(node: ast.expr) -> Iterator[str]:
    """Literal parts of a string, of an f-string, of a choice between strings."""
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value


def _operator_texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        found: list[ast.expr] = []
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            found = [one for one in node.exc.args if isinstance(one, ast.Constant | ast.JoinedStr)]
        elif isinstance(node, ast.Call):
            found = [one.value for one in node.keywords if one.arg in TEXT_ARGUMENTS]
            called = node.func
            if isinstance(called, ast.Attribute) and (
                called.attr in LOG_CALLS
                or (called.attr == "set" and "alerts" in ast.unparse(called.value))
            ):
                found += [one for one in node.args if isinstance(one, ast.Constant | ast.JoinedStr)]
        for expression in found:
            for text in _texts(expression):
                yield expression.lineno, text


def _first_lines(tree: ast.Module) -> Iterator[tuple[int, str]]:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, kinds) and (text := ast.get_docstring(node)):
            yield node.body[0].lineno, text.splitlines()[0]


@pytest.mark.parametrize("package", PACKAGES)
def test_operator_texts_speak_of_no_persons(package: str) -> None:
    """Log lines, alerts, errors, settings: an operator searches Kafka's documentation for them."""
    found = [
        f"{name}:{line}: {text}"
        for name, tree in _trees(package)
        for line, text in _operator_texts(tree)
        if PERSONS.search(text)
    ]
    assert found == []


@pytest.mark.parametrize("package", PACKAGES)
def test_first_sentences_speak_of_no_persons(package: str) -> None:
    """They say what a thing is, with the field's noun; see CONTRIBUTING, Words."""
    found = [
        f"{name}:{line}: {text}"
        for name, tree in _trees(package)
        for line, text in _first_lines(tree)
        if PERSONS.search(text)
    ]
    assert found == []
