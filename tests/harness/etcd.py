"""An etcd server for tests, or a skip that says why there is none; and a store on it."""

import asyncio
from typing import TYPE_CHECKING, Final

import pytest

from bench.etcd_server import NO_ETCD, find_etcd
from broker.controller.store.metadata_store import StoreUnavailableError

if TYPE_CHECKING:
    from broker.controller.store.etcd.endpoints import EtcdAccess
    from broker.controller.store.etcd.etcd_store import EtcdStore

START_S: Final = 60.0


def etcd_or_skip() -> str:
    """The server's program; without one the test is skipped, and says what to do."""
    program = find_etcd()
    if program is None:
        pytest.skip(NO_ETCD)
    return program


async def open_etcd(access: "EtcdAccess", *, floor_revision: int = 0) -> "EtcdStore":
    """A store on a server that may still be starting."""
    from broker.controller.store.etcd.etcd_store import EtcdStore

    async with asyncio.timeout(START_S):
        while True:
            try:
                return await EtcdStore.open(access, floor_revision=floor_revision)
            except StoreUnavailableError:
                await asyncio.sleep(0.05)
