"""Commands that the documentation and operator texts name are there, with the options named."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from cli.main import COMMANDS, main

ROOT = Path(__file__).resolve().parents[3]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
SOURCES = ("broker", "cli", "config", "pipeline", "storage", "tiered")

PLAIN = ("serve", "config", "produce", "consume", "dump-log")
"""Commands without actions."""

COMMAND = re.compile(rf"varve ({'|'.join(COMMANDS)})(?: ([a-z][a-z-]*))?([^`\n#]*)")
OPTION = re.compile(r"(?<!\S)--[a-z][a-z-]*")


def _in_pages() -> Iterator[tuple[str, str, str, str]]:
    for page in PAGES:
        for command, action, rest in COMMAND.findall(page.read_text(encoding="utf-8")):
            yield page.name, command, action, rest


def _in_texts() -> Iterator[tuple[str, str, str, str]]:
    """In backticks, as texts for operators have them."""
    for package in SOURCES:
        for path in sorted((ROOT / package).rglob("*.py")):
            source = path.read_text(encoding="utf-8")
            if "varve " not in source:
                continue
            for node in ast.walk(ast.parse(source)):
                for quoted in re.findall(r"`([^`]*)`", _text(node)):
                    for command, action, rest in COMMAND.findall(quoted):
                        yield str(path.relative_to(ROOT)), command, action, rest


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_text, node.values))
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.sub(r"\s+", " ", node.value)
    return "X" if isinstance(node, ast.FormattedValue) else ""


@cache
def _help(command: str, action: str) -> str | None:
    """What `--help` prints; None: there is no such action."""
    captured: list[str] = []
    words = [command, action, "--help"] if action else [command, "--help"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout.write", captured.append)
        with pytest.raises(SystemExit) as ended:
            main(words)
    return "".join(captured) if ended.value.code == 0 else None


def test_commands_that_texts_name_are_there() -> None:
    wrong = set()
    named = {*_in_pages(), *_in_texts()}
    assert len(named) > 100
    for where, command, word, rest in named:
        action = "" if command in PLAIN else word
        if not action and command not in PLAIN:
            continue
        help_text = _help(command, action)
        if help_text is None:
            wrong.add((where, f"varve {command} {action}"))
            continue
        for option in OPTION.findall(rest):
            if option not in help_text:
                wrong.add((where, f"varve {command} {action} {option}"))
    assert not wrong
