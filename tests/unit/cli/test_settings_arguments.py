"""Every command reads settings in the same way."""

import argparse
from pathlib import Path

import pytest

from cli.settings_arguments import add_settings_arguments, load_or_report


def _parse(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_settings_arguments(parser)
    return parser.parse_args(words)


def test_file_environment_and_assignments_are_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process's environment counts."""
    path = tmp_path / "server.properties"
    path.write_text("num.partitions=2\nnum.io.threads=2\nnode.id=2\n", encoding="utf-8")
    monkeypatch.setenv("KAFKA_NUM_IO_THREADS", "3")
    monkeypatch.setenv("KAFKA_NODE_ID", "3")
    loaded = load_or_report(_parse("--config", str(path), "--set", "node.id=4"))
    assert loaded is not None
    broker = loaded.broker
    assert (broker.num_partitions, broker.num_io_threads, broker.node_id) == (2, 3, 4)


def test_mistakes_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    """Standard output stays clean for whoever reads it."""
    assert load_or_report(_parse("--set", "nope=1", "--set", "nix=2")) is None
    streams = capsys.readouterr()
    assert streams.out == ""
    assert streams.err.splitlines() == [
        "varve: 2 mistakes in the settings:",
        "  nope: unknown setting (--set)",
        "  nix: unknown setting (--set)",
    ]
