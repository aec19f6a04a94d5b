"""The `varve` command loads one sub-command and nothing else."""

import argparse
import subprocess
import sys
from types import SimpleNamespace

import pytest

from cli.main import COMMANDS, INTERRUPTED, Command, main
from native.library import RECORD_RULES, load_wanted
from native.loader import code_path


def test_no_words_show_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    """With a line for every sub-command that is there."""
    assert main([]) == 0
    shown = capsys.readouterr().out
    assert "  serve " in shown
    assert COMMANDS["config"].summary in shown


def test_the_version_is_the_distributions(capsys: pytest.CaptureFixture[str]) -> None:
    """As pyproject.toml has it."""
    from importlib.metadata import version

    assert main(["--version"]) == 0
    walks = load_wanted(RECORD_RULES).describe()
    assert capsys.readouterr().out == (
        f"varve {version('varve')}\ncode {code_path().describe()}\nrecord walks {walks}\n"
    )


def test_an_unknown_command_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit status 2, as for every mistake on a command line."""
    with pytest.raises(SystemExit) as caught:
        main(["nope"])
    assert caught.value.code == 2
    assert "nope" in capsys.readouterr().err


def test_a_command_whose_module_is_absent_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither offered nor run."""
    monkeypatch.setitem(COMMANDS, "ghost", Command("cli.no_such_module", "haunt"))
    assert main([]) == 0
    assert "ghost" not in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["ghost"])


def _install(monkeypatch: pytest.MonkeyPatch, error: BaseException | None, status: int = 0) -> None:
    def run(_: argparse.Namespace) -> int:
        if error is not None:
            raise error
        return status

    command = SimpleNamespace(add_arguments=lambda parser: parser.add_argument("word"), run=run)
    monkeypatch.setitem(COMMANDS, "probe", Command("cli.serve", "probe"))
    monkeypatch.setattr("importlib.import_module", lambda _: command)


def test_the_commands_status_is_the_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripts depend on it."""
    _install(monkeypatch, None, status=7)
    assert main(["probe", "x"]) == 7


def test_an_interrupt_ends_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C is no error of ours."""
    _install(monkeypatch, KeyboardInterrupt())
    assert main(["probe", "x"]) == INTERRUPTED


def test_a_reader_that_leaves_ends_the_command_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    """`varve topics list | head` is how people use it."""
    _install(monkeypatch, BrokenPipeError())
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    assert main(["probe", "x"]) == 0
    assert sys.stdout is None


def test_help_and_version_load_nothing_heavy() -> None:
    """The command answers at once: neither pydantic nor uvloop nor the broker is imported."""
    code = (
        "import sys; from cli.main import main; main([]); main(['--version']);"
        "heavy = {'pydantic', 'uvloop', 'asyncio', 'broker', 'config.broker', 'kafka', 'rich'};"
        "sys.exit(' '.join(sorted(heavy & set(sys.modules))) or 0)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True
    )
    assert (ended.returncode, ended.stderr) == (0, "")
