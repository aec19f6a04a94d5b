"""The request that takes a producer's place."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from cli.admin.producer_fencing import FencingAdminClient, open_fencing_admin
from cli.connection import CommandError
from tests.fakes.kafka.library_clients import error_class


class Manager:
    """Stands for the library's connections."""

    def __init__(self, error_code: int) -> None:
        self.error_code = error_code
        self.sent: list[tuple[str, int, int]] = []

    def run(self, coroutine: Any) -> Any:
        return asyncio.run(coroutine())

    async def send(self, request: Any, *, node_id: int) -> Any:
        self.sent.append((request.transactional_id, request.transaction_timeout_ms, node_id))
        return SimpleNamespace(error_code=self.error_code, producer_id=7, producer_epoch=4)


def fencing_client(error_code: int = 0) -> tuple[FencingAdminClient, Manager]:
    admin = FencingAdminClient.__new__(FencingAdminClient)
    manager = Manager(error_code)

    async def find(names: list[str], *, key_type: int) -> dict[str, int]:
        assert key_type == 1
        return dict.fromkeys(names, 3)

    for name, part in (("_manager", manager), ("_find_coordinator_ids", find)):
        setattr(admin, name, part)
    return admin, manager


def test_the_coordinator_is_asked() -> None:
    """Under the producer's id; the new epoch is above all it has used."""
    admin, manager = fencing_client()
    assert admin.fence_producer("tx") == (7, 4)
    assert manager.sent == [("tx", 1, 3)]


def test_refusals_are_the_librarys_errors() -> None:
    """While a transaction is being aborted it is worth another try."""
    admin, _ = fencing_client(51)
    with pytest.raises(error_class(51)):
        admin.fence_producer("tx")


def test_nobody_listens() -> None:
    """Said before the library looks for minutes."""
    with pytest.raises(CommandError, match="no broker at"):
        open_fencing_admin(bootstrap_servers="127.0.0.1:1")
