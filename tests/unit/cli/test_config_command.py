"""`varve config` tells what counts and where it came from."""

import argparse
import json

import pytest

from cli.config_command import add_arguments, run
from config.broker import BROKER_KEYS
from config.definition import SECRET_SHOWN, ConfigKey
from config.kinds import Text
from config.load import EffectiveSetting, LoadedConfig, Source, load


def _run(*words: str) -> int:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return run(parser.parse_args(words))


def test_only_what_somebody_set_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """In alphabetical order, with the origin as a comment."""
    assert _run("--set", "num.partitions=3", "--set", "log.dirs=/a,/b") == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines == [["log.dirs=/a,/b", "#", "--set"], ["num.partitions=3", "#", "--set"]]


def test_effective_shows_every_setting(capsys: pytest.CaptureFixture[str]) -> None:
    """Defaults too, each with what it comes from."""
    assert _run("--effective", "--set", "num.partitions=3") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(BROKER_KEYS)
    assert sum(line.endswith("# default") for line in lines) == len(BROKER_KEYS) - 1


def test_json_has_value_source_and_origin(capsys: pytest.CaptureFixture[str]) -> None:
    """For scripts."""
    assert _run("--json", "--set", "num.partitions=3", "--set", "process.roles=broker") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["settings"] == {
        "num.partitions": {"value": "3", "source": "command line", "origin": "--set"}
    }
    assert "process.roles" in shown["warnings"][0]


def test_warnings_are_comments(capsys: pytest.CaptureFixture[str]) -> None:
    """Above the settings."""
    assert _run("--set", "process.roles=broker") == 0
    assert capsys.readouterr().out.startswith("# settings of Kafka that have no meaning here")


def test_bad_settings_end_with_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    """As for `varve serve`: the command serves to try a file out."""
    assert _run("--set", "nope=1") == 2
    assert "nope" in capsys.readouterr().err


def test_secrets_are_masked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever the form of the output."""
    row = ConfigKey("a.secret", Text(), default=None, text="Hidden.", secret=True)
    setting = EffectiveSetting(row, "pass", row.shown("pass"), Source.FILE, "f:1")
    loaded = LoadedConfig(load().broker, (setting,), ())
    monkeypatch.setattr("cli.config_command.load_or_report", lambda _: loaded)
    assert _run() == 0
    assert _run("--json") == 0
    shown = capsys.readouterr().out
    assert "pass" not in shown
    assert shown.count(SECRET_SHOWN) == 2
