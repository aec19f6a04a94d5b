"""`varve dirs`."""

from pathlib import Path

import pytest

from cli.main import main
from storage.environment.local_filesystem import LocalFilesystem


def test_refused_settings_end_with_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dirs", "adopt", "--set=node.id=x"]) == 2
    assert "node.id=x" in capsys.readouterr().err


def test_not_while_a_broker_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t-0").mkdir()
    lock = LocalFilesystem().lock(str(tmp_path / ".lock"))
    assert main(["dirs", "adopt", f"--set=log.dirs={tmp_path}"]) == 1
    assert "another process" in capsys.readouterr().err
    lock.release()
    assert main(["dirs", "adopt", f"--set=log.dirs={tmp_path}"]) == 0
    assert "imported 1 topic;" in capsys.readouterr().out


def test_a_file_of_the_store_that_is_missing_is_named_without_a_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "none"
    words = [
        f"--set=log.dirs={tmp_path}",
        "--set=metadata.store=etcd://127.0.0.1:1",
        "--set=metadata.store.username=u",
        f"--set=metadata.store.password.file={missing}",
    ]
    assert main(["dirs", "list", *words]) == 1
    assert capsys.readouterr().err == (
        f"varve: metadata.store.password.file: cannot read (No such file or directory): {missing}\n"
    )
