"""A command's actions share the connection's options and the way to fail."""

import argparse

import pytest

from cli.actions import Action, add_actions, run_action
from cli.connection import ClientFactory, CommandError
from tests.fakes.kafka.library_clients import FakeCluster

SEEN: list[argparse.Namespace] = []


def _note(args: argparse.Namespace, connect: ClientFactory) -> int:
    SEEN.append(args)
    if args.word == "fail":
        raise CommandError("as told")
    return 5


def _note_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("word")


ACTIONS = {"note": Action("note it", _note_arguments, _note)}


def _parse(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser("varve")
    add_actions(parser, ACTIONS)
    return parser.parse_args(words)


@pytest.mark.parametrize(
    "words",
    [
        ("--bootstrap-server", "h:1", "--json", "note", "x"),
        ("note", "x", "--bootstrap-server", "h:1", "--json"),
        ("--json", "note", "--bootstrap-server", "h:1", "x"),
    ],
)
def test_options_stand_before_or_after_the_action(words: tuple[str, ...]) -> None:
    """What is given in front is not undone by what is absent behind."""
    args = _parse(*words)
    assert (args.bootstrap_server, args.json, args.word) == ("h:1", True, "x")


def test_defaults_hold_without_options() -> None:
    """In either place."""
    args = _parse("note", "x")
    assert (args.bootstrap_server, args.json) == ("127.0.0.1:9092", False)


def test_without_an_action_the_choice_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit status 2."""
    with pytest.raises(SystemExit) as refused:
        _parse()
    assert refused.value.code == 2
    assert "ACTION" in capsys.readouterr().err


def test_the_named_action_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """With its status, or that of its failure."""
    connect = FakeCluster().admin
    assert run_action(ACTIONS, _parse("note", "x"), connect) == 5
    assert run_action(ACTIONS, _parse("note", "fail"), connect) == 1
    assert capsys.readouterr().err == "varve: as told\n"
