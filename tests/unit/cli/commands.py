"""Runs a command of `cli` on a fake cluster."""

import argparse
import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest


class Outcome(NamedTuple):
    """Exit status and what was printed."""

    status: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)

    @property
    def cells(self) -> list[list[str]]:
        """Standard output as words, line by line."""
        return [line.split() for line in self.out.splitlines()]


class Shell:
    """Types command lines; `connect` is the factory the commands get."""

    def __init__(
        self, command: Any, connect: Callable[..., Any], capsys: pytest.CaptureFixture[str]
    ) -> None:
        self._command, self._connect, self._capsys = command, connect, capsys

    def __call__(self, *words: str, **seams: Any) -> Outcome:
        """Run it; the status is argparse's when it refuses the words."""
        parser = argparse.ArgumentParser("varve")
        self._command.add_arguments(parser)
        try:
            args = parser.parse_args(words)
        except SystemExit as refused:
            return Outcome(int(refused.code or 0), *self._capsys.readouterr())
        status = self._command.run(args, connect=self._connect, **seams)
        return Outcome(status, *self._capsys.readouterr())
