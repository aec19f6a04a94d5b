"""`varve serve` hands good settings to the broker and refuses bad ones."""

import argparse
import sys
from types import ModuleType

import pytest

from cli.serve import add_arguments, run
from config.load import LoadedConfig


def _run(*words: str) -> int:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return run(parser.parse_args(words))


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[LoadedConfig]:
    """What the broker was started with; it ends at once with status 5."""
    configurations: list[LoadedConfig] = []

    def run_broker(loaded: LoadedConfig) -> int:
        configurations.append(loaded)
        return 5

    app = ModuleType("broker.app")
    app.run = run_broker  # type: ignore[attr-defined]  # a module of our own making
    monkeypatch.setitem(sys.modules, "broker.app", app)
    return configurations


def test_the_brokers_status_is_the_commands(
    started: list[LoadedConfig], capsys: pytest.CaptureFixture[str]
) -> None:
    """And the command prints nothing of its own."""
    assert _run("--set", "num.partitions=3") == 5
    assert started[0].broker.num_partitions == 3
    assert capsys.readouterr() == ("", "")


def test_bad_settings_end_with_status_2(
    started: list[LoadedConfig], capsys: pytest.CaptureFixture[str]
) -> None:
    """The broker is not started."""
    assert _run("--set", "num.partitions=x") == 2
    assert started == []
    assert "num.partitions=x" in capsys.readouterr().err


def test_several_brokers_get_the_command_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file and the settings as they were given; the supervisor adds each broker's own."""
    calls: list[tuple[int, list[str]]] = []

    def run_brokers(loaded: LoadedConfig, count: int, *, command: list[str]) -> int:
        assert loaded.broker.num_partitions == 3
        calls.append((count, command))
        return 6

    program = ModuleType("broker.supervisor.program")
    program.run = run_brokers  # type: ignore[attr-defined]  # a module of our own making
    monkeypatch.setitem(sys.modules, "broker.supervisor.program", program)
    assert _run("--set", "num.partitions=3", "--brokers", "4") == 6
    words = [sys.executable, "-m", "cli.main", "serve", "--set", "num.partitions=3"]
    assert calls == [(4, words)]
