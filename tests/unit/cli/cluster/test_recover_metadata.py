"""`varve cluster recover-metadata`."""

from pathlib import Path

import pytest

from broker.offline.directory_facts import decode_facts
from cli.main import main
from storage.checkpoints.log_directory import LogDirectory
from storage.environment.local_filesystem import LocalFilesystem
from storage.environment.randomness import SystemRandomness
from tests.unit.broker.offline.facts import INCARNATION

RECOVER = ("cluster", "recover-metadata")


def made(path: Path) -> Path:
    directory = LogDirectory(str(path), LocalFilesystem())
    directory.open()
    directory.claim("c", 4, SystemRandomness(), store_id=INCARNATION)
    directory.close(mark_clean=False)
    return path


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "--dirs"),
        (("--dirs=/a",), "--to"),
        (("--dirs=,", "--to=etcd://h"), "--dirs"),
        (("--dirs=/a", "--dirs=/b", "--collect=f"), "one --dirs"),
    ],
)
def test_what_must_be_named(
    words: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*RECOVER, *words]) == 2
    assert says in capsys.readouterr().err


def test_what_directories_say_is_collected_in_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "broker-4.json"
    assert main([*RECOVER, f"--dirs={made(tmp_path / 'a')}", f"--collect={target}"]) == 0
    assert "broker 4: 0 partitions" in capsys.readouterr().out
    assert decode_facts(target.read_bytes(), "f").node_id == 4


def test_files_and_folders_that_are_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*RECOVER, f"--dirs={tmp_path}/none", "--to=etcd://127.0.0.1:1"]) == 1
    assert "is not a directory" in capsys.readouterr().err
    assert main([*RECOVER, f"--facts={tmp_path}/none", "--to=etcd://127.0.0.1:1"]) == 1
    assert "No such file" in capsys.readouterr().err


def test_not_while_a_broker_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lock = LocalFilesystem().lock(str(made(tmp_path / "a") / ".lock"))
    assert main([*RECOVER, f"--dirs={tmp_path}/a", "--collect=f"]) == 1
    assert "another process" in capsys.readouterr().err
    lock.release()
