"""What is compiled beside the tests: when it is, and how it ends."""

import os
import sys
import time
from pathlib import Path

import pytest

from tests.build_beside import BuildBeside


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a program that stands for Python writes what it was asked for."""
    written = tmp_path / "calls"
    program = tmp_path / "python"
    program.write_text(f'#!/bin/sh\necho "$@" >> {written}\nexit ${{END:-0}}\n')
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    return written


def test_what_is_wanted_is_built_once(calls: Path) -> None:
    """Whoever waits twice has it at once."""
    with BuildBeside(os.environ | {"VARVE_NATIVE": "auto"}, is_wanted=True) as build:
        build.wait()
        build.wait()
    assert calls.read_text() == "-m native --if-possible --modules\n"
    assert not build.has_failed


def test_a_build_that_fails_is_known(calls: Path) -> None:
    """It has said why; the tests of Python have run."""
    environment = os.environ | {"VARVE_NATIVE": "auto", "END": "1"}
    with BuildBeside(environment, is_wanted=True) as build:
        build.wait()
    assert build.has_failed


@pytest.mark.parametrize(("way", "is_wanted"), [("off", True), ("auto", False)])
def test_nothing_is_built_where_python_runs(calls: Path, way: str, *, is_wanted: bool) -> None:
    with BuildBeside(os.environ | {"VARVE_NATIVE": way}, is_wanted=is_wanted) as build:
        build.wait()
    assert not calls.exists()
    assert not build.has_failed


def test_a_build_that_nobody_waits_for_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the compiler that it has started, even if that does not listen."""
    compiler = tmp_path / "compiler"
    program = tmp_path / "python"
    program.write_text(
        f"#!/bin/sh\nsleep 60 &\necho $! > {compiler}.part\nmv {compiler}.part {compiler}\nwait\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    with BuildBeside(os.environ | {"VARVE_NATIVE": "auto"}, is_wanted=True):
        while not compiler.exists():
            os.sched_yield()
    # A process that has ended and whom nobody waits for is a zombie, without a command.
    command = Path(f"/proc/{compiler.read_text().strip()}/cmdline")
    deadline = time.monotonic() + 30
    while (runs := command.exists() and command.read_text()) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not runs
