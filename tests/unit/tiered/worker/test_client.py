"""`Tier` over a socket pair in one loop: results, errors, cancelling, deadlines, bounds."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from dataclasses import replace
from typing import TypeVar

import pytest

from config.tier import TierConfig
from tests.fakes.tiered.in_loop_processes import FakeProcesses
from tests.fakes.tiered.scripted_tier import FakeTier
from tests.fakes.timer import ManualTimer
from tests.unit.tiered.worker.turns import FACTS, FILES, SEGMENT, settled, until
from tiered.errors import (
    CorruptSegmentError,
    ObjectNotFoundError,
    QueueFullError,
    RemoteStorageError,
    TierProcessError,
)
from tiered.object_store.base import PendingUpload
from tiered.tier import ChunkResult, CopyResult, Fault, IndexesResult, SideFile
from tiered.worker.client import CANCEL_WAIT_MS, SLACK_MS, TierClient
from tiered.worker.frames import FRAME_SIZE_MAX, Kind
from tiered.worker.process_usage import Usage
from tiered.worker.service import CALLS_MAX
from tiered.worker.session import PING_MS, PINGS_MISSED_MAX, REAP_MS
from tiered.worker.supervisor import BACKOFF_MS, WorkerState

T = TypeVar("T")

SETTINGS = TierConfig(
    tier_store_call_timeout_ms=60_000,
    rsm_config_storage_aws_secret_access_key="secret",
    remote_log_manager_copier_thread_pool_size=1,
    remote_log_reader_threads=1,
    remote_log_manager_expiration_thread_pool_size=1,
    remote_log_manager_follower_thread_pool_size=1,
)


class Desk:
    def __init__(self) -> None:
        self.tier = FakeTier()
        self.timer = ManualTimer()
        self.processes = FakeProcesses(lambda: self.tier)
        self.client = TierClient(
            SETTINGS,
            self.processes,
            timer=self.timer,
            clock=self.timer.clock,
            usage=lambda pid: Usage(pid, 1.5),
        )

    async def close(self) -> None:
        closing = asyncio.create_task(self.client.close())
        for _ in range(2_000):
            if closing.done():
                break
            await settled(3)
            self.timer.advance(REAP_MS)
        await closing

    async def hanging(self, method: str, call: Awaitable[T]) -> "asyncio.Future[T]":
        """A call that the process has begun and does not end."""
        gate = self.tier.gate(method)
        gate.close()
        before = gate.waiting
        task = asyncio.ensure_future(call)
        await until(lambda: gate.waiting == before + 1)
        return task


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    desk = Desk()
    yield desk
    await desk.close()
    await settled()
    assert desk.client.statistics()["worker"]["calls_in_flight"] == 0


async def test_every_call_and_its_result(desk: Desk) -> None:
    client = desk.client
    assert await client.copy_segment(SEGMENT, FILES, FACTS) == CopyResult(
        1_000_000, b"\0custom\xff"
    )
    assert await client.fetch_indexes(SEGMENT, "/d", "s") == IndexesResult(4096, 3, 1_000_000, 99)
    assert await client.fetch_chunk(SEGMENT, "/m", 7, "/p") == ChunkResult(4096, 0xFFFFFFFF, 7)
    assert await client.fetch_side_file(SEGMENT, SideFile.LEADER_EPOCH) == b"leaderEpoch"
    assert await client.is_complete(SEGMENT) is False
    assert await client.is_complete(replace(SEGMENT, start_offset=0)) is True
    assert await client.verify_segment(SEGMENT) == [
        Fault("key", -1, "problem"),
        Fault("another", 7, "é"),
    ]
    await client.put_object("a/b", b"\0\xff")
    assert await client.get_object("a/b") == b"\0\xff"
    page = await client.list_objects("a", None)
    assert (page.objects[0].key, page.objects[0].size, page.continuation) == ("a/b", 2, "more")
    assert (await client.list_objects("b", "more")).continuation is None
    await client.delete_objects(["a/b"])
    upload = PendingUpload("k", "u", 3)
    desk.tier.uploads.append(upload)
    assert await client.list_uploads("k") == [upload]
    await client.abort_upload(upload)
    await client.delete_segment(SEGMENT)
    assert dict(desk.tier.calls)["copy_segment"] == (SEGMENT, FILES, FACTS)
    assert (desk.tier.objects, desk.tier.uploads) == ({}, [])


async def test_errors_are_those_of_the_process(desk: Desk) -> None:
    with pytest.raises(ObjectNotFoundError) as missing:
        await desk.client.get_object("k")
    assert missing.value.key == "k"
    desk.tier.failures["copy_segment"] = CorruptSegmentError("/p", 7, "crc", rebuildable=True)
    with pytest.raises(CorruptSegmentError) as corrupt:
        await desk.client.copy_segment(SEGMENT, FILES, FACTS)
    assert (corrupt.value.position, corrupt.value.rebuildable) == (7, True)
    desk.tier.failures["delete_segment"] = ZeroDivisionError("x")
    with pytest.raises(RemoteStorageError, match="unexpected ZeroDivisionError: x"):
        await desk.client.delete_segment(SEGMENT)
    assert await desk.client.list_uploads("") == []


async def test_large_objects_cross_side_by_side(desk: Desk) -> None:
    objects = {str(n): bytes([n]) * (3 * FRAME_SIZE_MAX + n) for n in range(4)}
    await asyncio.gather(*(desk.client.put_object(*item) for item in objects.items()))
    assert desk.tier.objects == objects
    found = await asyncio.gather(*(desk.client.get_object(key) for key in objects))
    assert dict(zip(objects, found, strict=True)) == objects


async def test_cancelling_stops_the_work_before_the_caller_goes_on(desk: Desk) -> None:
    call = await desk.hanging("fetch_chunk", desk.client.fetch_chunk(SEGMENT, "/m", 1, "/p"))
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert desk.tier.gate("fetch_chunk").waiting == 0
    assert desk.tier.ended["cancelled"] == 1
    await settled()
    assert desk.client.statistics()["worker"]["calls_in_flight"] == 0


async def test_cancelled_caller_waits_for_a_stubborn_process_so_long_and_no_longer(
    desk: Desk,
) -> None:
    call = await desk.hanging("fetch_chunk", desk.client.fetch_chunk(SEGMENT, "/m", 1, "/p"))
    desk.processes.newest.hang()
    call.cancel()
    await settled()
    assert not call.done()
    desk.timer.advance(CANCEL_WAIT_MS)
    with pytest.raises(asyncio.CancelledError):
        await call
    # Its slot is not free: the process may be at it still.
    assert desk.client.statistics()["worker"]["calls_in_flight"] == 1


async def test_cancelled_twice_it_does_not_wait(desk: Desk) -> None:
    call = await desk.hanging("fetch_chunk", desk.client.fetch_chunk(SEGMENT, "/m", 1, "/p"))
    desk.processes.newest.hang()
    call.cancel()
    await settled()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


async def test_cancelled_between_two_pieces_the_rest_still_works(desk: Desk) -> None:
    await desk.client.list_uploads("")
    desk.processes.newest.hang()
    call = asyncio.create_task(desk.client.put_object("k", bytes(16 * FRAME_SIZE_MAX)))
    await settled(50)
    call.cancel()
    await settled()
    transport = desk.processes.newest.connection._transport
    assert transport is not None
    transport.resume_reading()
    desk.timer.advance(CANCEL_WAIT_MS)
    with pytest.raises(asyncio.CancelledError):
        await call
    large = bytes(3 * FRAME_SIZE_MAX)
    await desk.client.put_object("l", large)
    assert desk.tier.objects == {"l": large}


async def test_cancelled_before_it_was_sent_it_gives_back_its_slot(desk: Desk) -> None:
    """The process has never heard of it, so it answers nothing."""
    await desk.client.list_uploads("")
    desk.processes.newest.hang()
    large = asyncio.create_task(desk.client.put_object("k", bytes(16 * FRAME_SIZE_MAX)))
    await settled(50)
    small = [asyncio.create_task(desk.client.fetch_chunk(SEGMENT, "/m", n, "/p")) for n in (1, 2)]
    await settled()
    for call in (large, *small):
        call.cancel()
    await asyncio.gather(large, *small, return_exceptions=True)
    assert desk.client.statistics()["worker"]["calls_in_flight"] == 0
    transport = desk.processes.newest.connection._transport
    assert transport is not None
    transport.resume_reading()
    assert (await desk.client.fetch_chunk(SEGMENT, "/m", 3, "/p")).length == 4096
    assert len([name for name, _ in desk.tier.calls if name == "fetch_chunk"]) == 1


async def test_call_that_takes_too_long_is_stopped(desk: Desk) -> None:
    call = await desk.hanging("list_uploads", desk.client.list_uploads(""))
    limit_ms = SLACK_MS + 4 * SETTINGS.store.call_timeout_ms
    for _ in range(int(limit_ms / PING_MS) - 1):
        desk.timer.advance(PING_MS)
        await settled(5)
    assert not call.done()
    for _ in range(2):
        desk.timer.advance(PING_MS)
        await settled(5)
    with pytest.raises(TierProcessError, match="list_uploads: not finished"):
        await call
    assert desk.tier.gate("list_uploads").waiting == 0
    assert desk.client.supervisor.state is WorkerState.RUNNING


async def test_hung_process_fails_its_callers_and_is_replaced(desk: Desk) -> None:
    calls = [
        await desk.hanging("fetch_chunk", desk.client.fetch_chunk(SEGMENT, "/m", n, "/p"))
        for n in range(3)
    ]
    desk.processes.newest.hang()
    for _ in range(PINGS_MISSED_MAX + 1):
        desk.timer.advance(PING_MS)
        await settled()
    for call in calls:
        with pytest.raises(TierProcessError, match="has not answered for 5 s"):
            await call
    desk.tier.gate("fetch_chunk").open()
    again = asyncio.create_task(desk.client.fetch_chunk(SEGMENT, "/m", 1, "/p"))
    await settled()
    desk.timer.advance(BACKOFF_MS)
    assert (await again).length == 4096
    assert desk.client.statistics()["worker"]["restarts"] == 1


async def test_killed_process_fails_its_callers(desk: Desk) -> None:
    call = await desk.hanging("copy_segment", desk.client.copy_segment(SEGMENT, FILES, FACTS))
    desk.processes.newest.kill()
    with pytest.raises(TierProcessError, match="has ended: the connection was closed"):
        await call


async def test_calls_in_flight_are_bounded_and_so_are_those_that_wait(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    slots = desk.client._slots
    monkeypatch.setattr(slots, "size", 2)
    monkeypatch.setattr(slots, "waiting_max", 1)
    calls = [
        await desk.hanging("fetch_chunk", desk.client.fetch_chunk(SEGMENT, "/m", n, "/p"))
        for n in range(2)
    ]
    waiting = asyncio.create_task(desk.client.list_uploads(""))
    await settled()
    with pytest.raises(QueueFullError, match="tier process calls"):
        await desk.client.list_uploads("")
    worker = desk.client.statistics()["worker"]
    assert (worker["calls_in_flight"], worker["calls_waiting"], worker["calls_refused"]) == (
        2,
        1,
        1,
    )
    desk.tier.gate("fetch_chunk").open()
    await asyncio.gather(*calls, waiting)


async def test_cancelled_in_the_queue_takes_no_slot(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk.client._slots, "size", 1)
    call = await desk.hanging("fetch_chunk", desk.client.fetch_chunk(SEGMENT, "/m", 1, "/p"))
    waiting = asyncio.create_task(desk.client.list_uploads(""))
    await settled()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    desk.tier.gate("fetch_chunk").open()
    await call
    assert await desk.client.list_uploads("") == []


async def test_head_that_does_not_fit_is_an_error(desk: Desk) -> None:
    with pytest.raises(TierProcessError, match="cannot be asked"):
        await desk.client.list_objects("x" * FRAME_SIZE_MAX, None)
    await settled()
    assert desk.client.statistics()["worker"]["calls_in_flight"] == 0


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (Kind.RESULT, {}),
        (Kind.RESULT, {"result": 7}),
        (Kind.RESULT, {"result": [1]}),
        (Kind.ERROR, {}),
        (Kind.ERROR, {"error": {"type": "SystemExit", "text": "", "fields": {}}}),
        (Kind.ERROR, {"error": None}),
    ],
)
async def test_answer_that_is_none(desk: Desk, kind: Kind, fields: dict[str, object]) -> None:
    call = await desk.hanging("fetch_chunk", desk.client.fetch_chunk(SEGMENT, "/m", 1, "/p"))
    number = next(iter(desk.processes.newest.service._tasks))
    desk.processes.newest.connection.send_now(kind, number, fields)
    with pytest.raises(TierProcessError):
        await call


async def test_statistics(desk: Desk) -> None:
    before = desk.client.statistics()["worker"]
    assert (before["state"], before["pid"], before["resident_bytes"]) == ("stopped", None, None)
    await desk.client.list_uploads("")
    desk.timer.advance(PING_MS)
    await settled()
    statistics = desk.client.statistics()
    assert statistics["fake"] == {"calls": 1}
    assert statistics["process"]["calls_done"] == 1
    worker = statistics["worker"]
    assert (worker["mode"], worker["state"], worker["pid"]) == ("process", "running", 1000)
    assert (worker["resident_bytes"], worker["cpu_seconds"]) == (1000, 1.5)


async def test_settings_reach_the_process_by_the_socket(desk: Desk) -> None:
    desk.client.start()
    await until(lambda: bool(desk.processes.started) and bool(desk.processes.newest.hello))
    assert desk.processes.newest.hello["settings"] == SETTINGS.model_dump(mode="json")


async def test_closed_takes_no_calls(desk: Desk) -> None:
    call = await desk.hanging("fetch_chunk", desk.client.fetch_chunk(SEGMENT, "/m", 1, "/p"))
    await desk.close()
    with pytest.raises(TierProcessError, match="stopped"):
        await call
    desk.client.start()
    with pytest.raises(TierProcessError, match="closed"):
        await desk.client.list_uploads("")
    assert desk.client.supervisor.state is WorkerState.STOPPED
    await desk.close()


async def test_closed_without_use(desk: Desk) -> None:
    await desk.client.close()
    assert desk.processes.started == []


def test_slots_stay_below_what_the_process_takes() -> None:
    many = SETTINGS.with_values({"remote_log_manager_copier_thread_pool_size": 1000})
    timer = ManualTimer()
    client = TierClient(many, FakeProcesses(), timer=timer, clock=timer.clock)
    assert client._slots.size == CALLS_MAX
