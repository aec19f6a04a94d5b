"""The socket's file: its owner's alone, in place of a dead one, by any path."""

import os
import socket
import stat
from pathlib import Path

import pytest

from broker.controller.store.metadata_store import StoreDeniedError, StoreUnavailableError
from broker.controller.store.unix.socket_file import (
    PATH_BYTES_MAX,
    listen,
    make_private_folder,
    reachable,
    remove,
)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def connect(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as client, reachable(str(path)) as name:
        client.connect(name)


def test_only_the_owner_may_connect(tmp_path: Path) -> None:
    path = tmp_path / "store" / "socket"
    with listen(str(path)) as bound:
        bound.listen()
        assert (mode_of(path), mode_of(path.parent)) == (0o600, 0o700)
        connect(path)


def test_a_folder_that_others_may_enter_is_refused_and_left(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir(mode=0o755)
    folder.chmod(0o750)
    with pytest.raises(StoreDeniedError, match=r"mode 0750.*chmod 700"):
        make_private_folder(str(folder))
    assert mode_of(folder) == 0o750


def test_what_a_dead_process_has_left_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "store" / "socket"
    listen(str(path)).close()
    with listen(str(path)) as bound:
        bound.listen()
        connect(path)
    remove(str(path))
    remove(str(path))
    assert not path.exists()


def test_what_is_no_socket_is_left_as_it_is(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    path = tmp_path / "precious"
    path.write_text("data")
    with pytest.raises(StoreDeniedError, match="no socket"):
        listen(str(path))
    assert path.read_text() == "data"


def test_a_path_of_any_length_is_reached(tmp_path: Path) -> None:
    folder = tmp_path / ("d" * 200)
    path = folder / "socket"
    assert len(os.fsencode(path)) > PATH_BYTES_MAX
    before = len(os.listdir("/proc/self/fd"))
    with listen(str(path)) as bound:
        bound.listen()
        connect(path)
        assert mode_of(path) == 0o600
    assert len(os.listdir("/proc/self/fd")) == before


def test_what_the_system_refuses_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnavailableError, match="cannot be listened on"):
        listen(str(tmp_path / "file" / "folder" / "socket"))
