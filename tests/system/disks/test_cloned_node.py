"""A copy of a node's disk is started beside it: neither removes what the other needs."""

import asyncio
import json
import os
import shutil
from functools import partial
from pathlib import Path

import pytest

from cli import main as command
from tests.system.conftest import Node, StartNode, until
from tests.system.remote.test_lost_tier_metadata import (
    RECORDS,
    REMOTE,
    TIERED,
    collected,
    is_copied,
    read_all,
    value,
)
from tiered.maintenance.bucket_ownership import CLAIM_KEY, NOTICE_MS_MIN, ClaimState


def objects(store: Path) -> set[Path]:
    """Of the topic; folders that go while they are listed are passed over."""
    walked = ((Path(folder), names) for folder, _, names in os.walk(store))
    found = {folder / name for folder, names in walked for name in names}
    return {path for path in found if path.relative_to(store).parts[0].startswith("t-")}


def clone(data: Path, copy: Path) -> None:
    """Copy the directory of a node that runs: again, where a file went while it was copied."""
    for _ in range(100):
        try:
            shutil.copytree(data, copy)
        except shutil.Error:
            shutil.rmtree(copy)
        else:
            return
    raise AssertionError("files go whenever it is copied")


def state(node: Node) -> ClaimState:
    assert node.broker.remote is not None
    assert node.broker.remote.manager is not None
    return node.broker.remote.manager.claim.state


async def filled(node: Node) -> None:
    client = await node.client()
    await client.create_topic("t", 1, **TIERED)
    for number in range(RECORDS):
        await client.produce("t", value(number))
    await until(lambda: is_copied(node))
    await until(lambda: state(node) is ClaimState.OURS)


async def take_claim(node: Node) -> int:
    address = node.broker.admin_address
    assert address is not None
    return await asyncio.to_thread(command.main, ["tier", "claim", "--admin", address])


async def test_neither_of_two_clones_removes_anything(
    start_node: StartNode, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not by retention, nor with a topic, nor as garbage, until somebody says which one goes on."""
    store, data, copy = tmp_path / "store", tmp_path / "data", tmp_path / "copy"
    settings = REMOTE | {"rsm_config_storage_root": str(store)}
    first = await start_node(**settings)
    await filled(first)
    before = objects(store)
    clone(data, copy)
    second = await start_node(**settings, log_dirs=(str(copy),))
    await until(lambda: state(first) is state(second) is ClaimState.FOREIGN)

    two = await second.client()
    await two.alter_topic("t", retention_ms="1", local_retention_ms="1")
    for number in range(20):
        await two.produce("t", b"second%03d" % number * 20_000)
    one = await first.client()
    for number in range(RECORDS, RECORDS + 20):
        await one.produce("t", value(number))
    await until(lambda: is_copied(first))
    grown = objects(store)
    await two.delete_topic("t")
    for node in (first, second):
        await collected(node)
        await until(partial(node.page_has, "/readyz", "varve tier claim"))
    assert before <= grown <= objects(store)
    expected = [value(number) for number in range(RECORDS + 20)]
    assert await read_all(one, 0, RECORDS + 20) == expected

    await second.stop()
    assert await take_claim(first) == 0
    assert state(first) is ClaimState.OURS
    await one.delete_topic("t")
    await until(lambda: not before & objects(store))
    assert "is this broker's" in capsys.readouterr().out


async def test_a_disk_that_was_moved_takes_what_is_its_own(
    start_node: StartNode, tmp_path: Path
) -> None:
    """At once after an orderly stop; after a crash as soon as nobody has objected."""
    store, data = tmp_path / "store", tmp_path / "data"
    settings = REMOTE | {"rsm_config_storage_root": str(store)}
    node = await start_node(**settings)
    await filled(node)
    await node.stop()
    claim = store / CLAIM_KEY
    assert json.loads(claim.read_bytes())["released"]
    data.rename(tmp_path / "moved")
    node = await start_node(**settings, log_dirs=(str(tmp_path / "moved"),))
    await until(lambda: state(node) is ClaimState.OURS, timeout_s=NOTICE_MS_MIN / 1000 - 1)
    text = claim.read_bytes()
    await node.stop()
    claim.write_bytes(text)  # as a crash would leave it
    node = await start_node(**settings, log_dirs=(str(tmp_path / "moved"),))
    await until(lambda: state(node) is ClaimState.TAKEN)
    await until(lambda: state(node) is ClaimState.OURS)
    client = await node.client()
    await client.delete_topic("t")
    await until(lambda: not objects(store))
    assert node.broker.local.alerts.all() == []
