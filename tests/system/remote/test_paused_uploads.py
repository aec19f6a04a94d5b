"""A leader that is paused in an upload, replaced, and woken: the bucket is what the metadata says.

step      before or after the call that puts one of a copy's three objects
lacks     the next leader takes a whole copy over, as if its own log lacked the records;
          else it removes the copy and makes one of its own
cancels   the woken broker hears first that it leads no longer, and cancels the upload; else
          the upload goes on first
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from protocol.error_codes import ErrorCode
from tests.harness import brokers
from tests.harness.brokers import UNTIL_S, ClusterHarness
from tests.system.cluster.remote.test_remote_storage import (
    REMOTE,
    TIERED,
    expect_bucket_is_metadata,
    is_copied,
    objects,
    segments,
    values,
)
from tests.system.cluster.test_failover import isr, produce
from tiered.format.object_keys import ObjectKeys
from tiered.object_store.filesystem import FilesystemObjectStore
from tiered.tasks.unfinished_copies import UnfinishedCopies

Put = Callable[..., Awaitable[None]]


class Hold:
    """Stops one broker's uploads at a step, until they are let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._node_id = -1
        self._step = 0
        self._reached = 0
        self.held: tuple[str, int] | None = None
        self._go = asyncio.Event()
        for name in ("put", "put_stream"):
            put = getattr(FilesystemObjectStore, name)
            monkeypatch.setattr(FilesystemObjectStore, name, self._wrap(put))

    def _wrap(self, put: Put) -> Put:
        async def held_put(store: Any, key: str, *data: Any) -> None:
            is_segments = ObjectKeys().parse(key) is not None
            if is_segments:
                await self._at(key)
            await put(store, key, *data)
            if is_segments:
                await self._at(key)

        return held_put

    async def _at(self, key: str) -> None:
        node = brokers._NODE.get(None)
        if node is None or node.node_id != self._node_id:
            return
        self._reached += 1
        if self._reached >= self._step:
            self.held = (key, self._reached)
            await self._go.wait()

    def arm(self, node_id: int, step: int) -> None:
        """The broker stops at its `step`-th step from now."""
        self._node_id, self._step, self._reached = node_id, step, 0
        self.held, self._go = None, asyncio.Event()

    def release(self) -> None:
        """It goes on, and stops no more."""
        self._node_id = -1
        self._go.set()


async def pause_and_wake(
    cluster: ClusterHarness, hold: Hold, sent: list[bytes], step: int, *, cancels: bool
) -> None:
    """One run; what was sent grows, and all of it is in remote storage or a leader's log after."""
    await cluster.until(lambda: isr(cluster, "t") == set(cluster.nodes))
    leader = await cluster.leading("t")
    hold.arm(leader, step)
    more = values(12, len(sent))
    sent += more
    await produce(cluster, "t", *more)
    await cluster.until(lambda: hold.held is not None)
    cluster.cut_from_store(leader)

    def is_replaced() -> bool:
        # By any: on a busy machine the next leader's lease may end, too.
        other = cluster.leader_of("t")
        return other not in (leader, -1) and is_copied(cluster, other)

    await cluster.until(is_replaced)
    if cancels:
        cluster.heal()
        await cluster.until(lambda: not cluster.leads(leader, "t"))
        manager = cluster.broker(leader).remote.manager  # type: ignore[union-attr]  # it has started
        assert manager is not None
        await cluster.until(lambda: not manager.copies_in_flight)
        hold.release()
    else:
        hold.release()
        await asyncio.sleep(0.05)
        cluster.heal()
    await cluster.until(lambda: cluster.let_in() == set(cluster.nodes))

    def is_agreed() -> bool:
        known = segments(cluster, cluster.leader_of("t")) if cluster.leader_of("t") > 0 else []
        return bool(known) and len(objects(cluster)) == 3 * len(known)

    await cluster.until(is_agreed)
    await expect_bucket_is_metadata(cluster)


async def read_whole(cluster: ClusterHarness, count: int) -> list[bytes | None]:
    """So many records from offset 0, however slowly remote storage and elections answer."""
    found: list[bytes | None] = []

    async def read_on() -> None:
        client = await cluster.client(await cluster.leading("t"))
        while len(found) < count:
            answer = await client.fetch("t", len(found), max_wait_ms=100)
            assert answer.error is not ErrorCode.OFFSET_OUT_OF_RANGE, len(found)
            if answer.error is not ErrorCode.NONE:
                return
            for record in answer.records:
                if record.offset >= len(found):
                    assert record.offset == len(found)
                    found.append(record.value)

    async with asyncio.timeout(UNTIL_S):
        while len(found) < count:
            await read_on()
    return found


@pytest.mark.parametrize("cancels", [True, False])
@pytest.mark.parametrize("lacks", [True, False])
@pytest.mark.parametrize(
    "steps",
    [pytest.param((6,), id="one"), pytest.param((1, 2, 3, 4, 5), id="all", marks=pytest.mark.slow)],
)
async def test_a_woken_leader_leaves_bucket_and_metadata_as_one(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    steps: tuple[int, ...],
    lacks: bool,
    cancels: bool,
) -> None:
    settings = {**REMOTE, "rsm_config_storage_root": str(tmp_path / "bucket")}
    if lacks:
        monkeypatch.setattr(UnfinishedCopies, "_is_needed", lambda *_: True)
    async with ClusterHarness(tmp_path, **settings) as cluster:
        await cluster.create_topic("t", replicas=3, **TIERED)
        sent = values(4)
        await produce(cluster, "t", *sent)
        hold = Hold(monkeypatch)
        for step in steps:
            await pause_and_wake(cluster, hold, sent, step, cancels=cancels)
            assert await read_whole(cluster, len(sent)) == sent
