"""An empty folder where the object store's disk was mounted: nothing leaves the local disk."""

import asyncio
from pathlib import Path

import pytest

from cli import main as command
from cli.connection import FAILED
from tests.system.conftest import Node, StartNode, until
from tests.system.disks.test_cloned_node import filled, objects, state
from tests.system.remote.test_lost_tier_metadata import (
    RECORDS,
    REMOTE,
    collected,
    is_copied,
    read_all,
    value,
)
from tiered.maintenance.bucket_ownership import ClaimState

MORE = 40


def copy_errors(node: Node) -> int:
    assert node.broker.remote is not None
    assert node.broker.remote.manager is not None
    return node.broker.remote.manager.counters.of("t").copy_errors


async def tier(node: Node, *words: str) -> int:
    address = node.broker.admin_address
    assert address is not None
    return await asyncio.to_thread(command.main, ["tier", *words, "--admin", address])


@pytest.mark.parametrize("is_restarted", [False, True])
async def test_what_was_produced_meanwhile_is_there_afterwards(
    start_node: StartNode, tmp_path: Path, capsys: pytest.CaptureFixture[str], is_restarted: bool
) -> None:
    """Copied into the folder it was deleted here, and hidden once the disk was mounted again."""
    store, disk = tmp_path / "store", tmp_path / "disk"
    settings = REMOTE | {"rsm_config_storage_root": str(store)}
    node = await start_node(**settings)
    await filled(node)
    before = objects(store)
    if is_restarted:
        await node.stop()
    store.rename(disk)
    store.mkdir()
    if is_restarted:
        node = await start_node(**settings)
    client = await node.client()
    for number in range(RECORDS, RECORDS + MORE):
        await client.produce("t", value(number))
    errors = copy_errors(node)
    await until(lambda: node.page_has("/readyz", "varve tier claim"))
    await until(lambda: copy_errors(node) > errors)
    await collected(node)
    assert not is_copied(node)
    assert await tier(node, "ls") == 0
    assert "its claim is missing: nothing is copied" in capsys.readouterr().out
    assert await tier(node, "gc") == FAILED
    assert "the bucket is without its claim: nothing was removed" in capsys.readouterr().err
    assert objects(store) == set()

    if is_restarted:
        await node.stop()
    # The store's clock may be asked for at any time, by a small object.
    store.rename(tmp_path / "empty")
    disk.rename(store)
    if is_restarted:
        node = await start_node(**settings)
        client = await node.client()
    await until(lambda: state(node) is ClaimState.OURS and is_copied(node))
    assert before < objects(store)
    expected = [value(number) for number in range(RECORDS + MORE)]
    assert await read_all(client, 0, RECORDS + MORE) == expected
    assert node.broker.local.alerts.all() == []
