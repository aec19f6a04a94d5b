"""When files with a password and certificates are read again, and what comes of it."""

import asyncio
import logging
from dataclasses import replace

import pytest

from broker.controller.store.etcd.access import EtcdAccess, RenewedAccess
from broker.runtime.startup_errors import StartupError

ACCESS = EtcdAccess(("a:1",), username="varve", password="old")


class Files:
    """Read on demand."""

    def __init__(self) -> None:
        self.read = 0
        self.held: EtcdAccess | StartupError = ACCESS

    async def __call__(self) -> EtcdAccess:
        self.read += 1
        if isinstance(self.held, StartupError):
            raise self.held
        return self.held


async def look(access: RenewedAccess) -> None:
    """As after a failure, some time after the one before."""
    access._next_s = 0.0
    access.look_again()
    assert access._reading is not None
    await access._reading


async def test_files_are_read_once_however_many_calls_fail() -> None:
    files = Files()
    access = RenewedAccess(ACCESS, files)
    for _ in range(10):
        access.look_again()
        await asyncio.sleep(0)
    assert files.read == 1


async def test_what_files_hold_now_is_used_and_never_shown(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    files = Files()
    access = RenewedAccess(ACCESS, files)
    await look(access)
    assert not caplog.messages
    files.held = replace(ACCESS, password="new")
    await look(access)
    assert access.now.password == "new"
    assert caplog.messages == ["files for etcd have changed password=True certificates=False"]


async def test_files_that_cannot_be_used_are_said_once_and_change_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """While a key and its certificate are being exchanged, one may be there without the other."""
    files = Files()
    access = RenewedAccess(ACCESS, files)
    files.held = StartupError("k is not the key of c")
    for _ in range(3):
        await look(access)
    assert access.now is ACCESS
    assert [line for line in caplog.messages if "k is not the key of c" in line] == [
        "files for etcd not read again, using what they held: k is not the key of c"
    ]
    files.held = replace(ACCESS, password="new")
    await look(access)
    assert access.now.password == "new"


async def test_without_files_nothing_is_read() -> None:
    access = RenewedAccess(ACCESS)
    access.look_again()
    assert access._reading is None
