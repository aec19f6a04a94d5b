"""The share coordinator: states over a log, over restarts, and who is told no."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest

from broker.controller.images.topic_names import SHARE_GROUP_STATE
from broker.coordinator import deferred
from broker.coordinator.persister import (
    SharePersister,
    ShareState,
    ShareSummary,
)
from broker.coordinator.runtime import UNCOMMITTED_DELAY_MS
from protocol.error_codes import ErrorCode as E
from protocol.internal.share_state import StateBatch
from protocol.records.builder import build_batch
from storage.types.topic_partition import TopicPartition
from tests.fakes.broker.coordinator_log import CoordinatorLog
from tests.fakes.broker.offsets_partition import topic_image
from tests.harness.share_state import DATA, KEY, STATE, Coordinator, keys_of


@pytest.fixture
async def c() -> AsyncIterator[Coordinator]:
    made = await Coordinator(DATA, STATE).start()
    yield made
    await made.c.stop()


async def test_it_is_a_persister(c: Coordinator) -> None:
    persister: SharePersister = c.c
    assert persister is c.c


async def test_begin_write_read_delete(c: Coordinator) -> None:
    assert c.summary() == (E.NONE, ShareSummary(0, 0, -1, -1))
    assert c.initialize(1, 10) is E.NONE
    assert c.summary() == (E.NONE, ShareSummary(1, 0, 10, -1))
    assert c.write(StateBatch(10, 14, 2, 1), StateBatch(15, 19, 0, 1), state_epoch=1) is E.NONE
    assert c.write(StateBatch(15, 16, 4, 5), start=12, state_epoch=1) is E.NONE
    expected = ShareState(
        1, 12, (StateBatch(12, 14, 2, 1), StateBatch(15, 16, 4, 5), StateBatch(17, 19, 0, 1))
    )
    assert c.read() == (E.NONE, expected)
    assert c.summary() == (E.NONE, ShareSummary(1, 0, 12, 7))
    assert c.told(c.c.delete, KEY) is E.NONE
    assert c.told(c.c.delete, KEY) is E.NONE
    assert c.read() == (E.INVALID_REQUEST, None)
    assert c.write() is E.INVALID_REQUEST


@pytest.mark.parametrize("count", range(9))
async def test_everything_survives(c: Coordinator, count: int) -> None:
    """Wherever the last snapshot was."""
    c.initialize(2, 0)
    for offset in range(count):
        c.write(StateBatch(offset, offset, 2, 1), start=offset // 2, state_epoch=2)
    before = c.read()
    await c.crash()
    assert c.read() == before
    assert c.write(StateBatch(50, 60, 0, 1), state_epoch=2) is E.NONE
    await c.crash()
    assert c.read()[1].batches[-1] == StateBatch(50, 60, 0, 1)


async def test_deleted_ones_stay_so(c: Coordinator) -> None:
    c.initialize()
    c.told(c.c.delete, KEY)
    await c.crash()
    assert c.read() == (E.INVALID_REQUEST, None)


async def test_leader_epochs_fence(c: Coordinator) -> None:
    c.initialize()
    assert c.read(4)[0] is E.NONE
    assert c.read(3) == (E.FENCED_LEADER_EPOCH, None)
    assert c.write(leader_epoch=3) is E.FENCED_LEADER_EPOCH
    assert c.write(leader_epoch=4) is E.NONE
    await c.crash()
    assert c.read(3) == (E.FENCED_LEADER_EPOCH, None)
    records = c.records
    assert c.read(4)[0] is E.NONE
    assert c.records == records, "nothing new to be written"
    assert c.initialize(1) is E.NONE
    assert c.read(3) == (E.FENCED_LEADER_EPOCH, None)


async def test_state_epochs_fence(c: Coordinator) -> None:
    c.initialize(3, 5)
    assert c.initialize(2, 9) is E.FENCED_STATE_EPOCH
    assert c.write(state_epoch=2) is E.FENCED_STATE_EPOCH
    c.write(StateBatch(5, 6, 2, 1), state_epoch=3)
    assert c.initialize(4, 9) is E.NONE
    assert c.read() == (E.NONE, ShareState(4, 9, ()))


async def test_topics_that_are_not_there(c: Coordinator) -> None:
    for key in (KEY._replace(topic_id=UUID(int=6)), KEY._replace(partition=2)):
        assert c.initialize(key=key) is E.UNKNOWN_TOPIC_OR_PARTITION
        assert c.summary(key) == (E.UNKNOWN_TOPIC_OR_PARTITION, None)
        assert c.told(c.c.delete, key) is E.UNKNOWN_TOPIC_OR_PARTITION
    for key in (KEY._replace(partition=-1), KEY._replace(group_id="")):
        assert c.initialize(key=key) is E.INVALID_REQUEST


async def test_states_of_a_deleted_topic_go(c: Coordinator) -> None:
    c.initialize()
    c.initialize(key=KEY._replace(partition=1))
    await c.controller.set_topics(STATE)
    assert c.c.state_count == 0
    await c.crash()
    assert c.c.state_count == 0


async def test_told_when_committed(c: Coordinator) -> None:
    c.log.hold = True
    codes: list[E] = []
    c.c.initialize(KEY, 0, 0, codes.append)
    assert codes == []
    c.log.commit_held()
    assert codes == [E.NONE]


@pytest.mark.parametrize("code", [E.NONE, E.REQUEST_TIMED_OUT])
async def test_what_is_not_committed_is_not_given_out(c: Coordinator, code: E) -> None:
    """Who comes after it sees it: when it is certain that the next coordinator does, too."""
    c.log.hold = True
    c.c.initialize(KEY, 0, 7, lambda code: None)
    answers: list[Any] = []
    c.c.read(KEY, 0, lambda *answer: answers.append(answer))
    c.c.read_summary(KEY, lambda *answer: answers.append(answer))
    c.c.delete(KEY._replace(partition=1), lambda code: answers.append((code, None)))
    assert answers == []
    if code is E.NONE:
        c.log.commit_held()
        assert [answer[0] for answer in answers] == [E.NONE] * 3
        assert answers[0][1].start_offset == answers[1][1].start_offset == 7
    else:
        c.log.fail_held(code)
        assert answers == [(E.COORDINATOR_NOT_AVAILABLE, None)] * 3


async def test_refused_writes_change_nothing(c: Coordinator) -> None:
    c.log.fail_with = E.NOT_ENOUGH_REPLICAS
    assert c.initialize() is E.COORDINATOR_NOT_AVAILABLE
    assert c.c.state_count == 0
    c.log.fail_with = None
    assert c.initialize() is E.NONE


async def test_a_write_of_which_nobody_knows_has_everything_read_anew(c: Coordinator) -> None:
    c.log.time_out = True
    assert c.initialize() is E.COORDINATOR_NOT_AVAILABLE
    c.log.time_out = False
    assert c.c.is_loading
    codes: list[Any] = []
    c.c.read(KEY, 0, lambda code, state: codes.append((code, state)))
    assert codes == [], "it waits"
    assert c.told(c.c.read, KEY, 0) is None
    assert c.told(c.c.initialize, KEY, 0, 0, wait=False) is E.COORDINATOR_LOAD_IN_PROGRESS
    c.log.commit_held()
    await c.settle()
    c.timer.advance(UNCOMMITTED_DELAY_MS)
    await c.settle()
    assert codes == [(E.NONE, ShareState(0, 0, ()))]


async def test_who_waits_too_long_is_told(c: Coordinator) -> None:
    c.log.hold = True
    c.c.initialize(KEY, 0, 0, lambda code: None)
    c.c.on_resigned(0)
    c.c.on_elected(0, c.log.leader_epoch)
    await c.settle()
    codes: list[E] = []
    c.c.initialize(KEY, 0, 0, codes.append)
    assert c.told(c.c.initialize, KEY, 0, 0, wait=False) is E.COORDINATOR_LOAD_IN_PROGRESS
    c.timer.advance(5_000)
    assert codes == [E.COORDINATOR_NOT_AVAILABLE]


async def test_only_so_many_wait(c: Coordinator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deferred, "DEFERRED_MAX", 1)
    c.log.hold = True
    c.c.initialize(KEY, 0, 0, lambda code: None)
    c.c.on_resigned(0)
    c.c.on_elected(0, c.log.leader_epoch)
    await c.settle()
    assert c.initialize() is None
    assert c.initialize() is E.COORDINATOR_NOT_AVAILABLE


async def test_resigned(c: Coordinator) -> None:
    c.c.on_resigned(0)
    assert c.initialize() is E.NOT_COORDINATOR


async def test_topic_is_made_when_somebody_needs_it() -> None:
    c = await Coordinator(DATA).start()
    codes: list[E] = []
    c.c.initialize(KEY, 0, 3, codes.append)
    assert codes == []
    assert c.told(c.c.initialize, KEY, 0, 3, wait=False) is E.NOT_COORDINATOR
    await c.settle()
    assert codes == [E.NONE]
    assert SHARE_GROUP_STATE in c.controller.image.topics
    await c.c.stop()
    assert c.initialize() is E.COORDINATOR_NOT_AVAILABLE


async def test_topic_cannot_be_made() -> None:
    c = await Coordinator(DATA).start()
    c.controller.refuse_with = E.INVALID_REPLICATION_FACTOR
    codes: list[E] = []
    c.c.initialize(KEY, 0, 3, codes.append)
    await c.settle()
    assert codes == [E.COORDINATOR_NOT_AVAILABLE]
    await c.c.stop()


async def test_what_no_longer_counts_is_given_up(c: Coordinator) -> None:
    other = KEY._replace(group_id="other")
    c.initialize()
    c.initialize(key=other)
    for offset in range(8):
        c.write(StateBatch(offset, offset, 2, 1))
    c.timer.advance(299_999)
    assert c.log.starts[0] == 0
    c.timer.advance(1)
    await c.settle()
    assert c.log.starts[0] == 1, "the other's snapshot is the second record"
    await c.settle()
    c.write(StateBatch(9, 9, 2, 1))
    before = c.read(), c.read(key=other)
    c.timer.advance(300_000)
    await c.settle()
    c.timer.advance(300_000)
    await c.settle()
    assert c.log.starts[0] > 2
    await c.crash()
    assert (c.read(), c.read(key=other)) == before


@pytest.mark.parametrize("lost", [True, False])
async def test_a_snapshot_is_not_given_up_for_one_that_may_be_lost(
    c: Coordinator, lost: bool
) -> None:
    """The newer one is in this log, and not yet in the others'."""
    c.initialize(1, 4)
    for offset in range(4, 7):
        c.write(StateBatch(offset, offset, 2, 1), state_epoch=1)
    before = c.read()
    c.log.hold = True
    assert c.write(StateBatch(7, 7, 2, 1), state_epoch=1) is None
    c.timer.advance(300_000)
    await c.settle()
    assert c.log.starts[0] == 0
    c.log.hold = False
    if lost:
        c.log.fail_held(E.NOT_LEADER_OR_FOLLOWER)
        await c.crash()
        assert c.read() == before
    else:
        c.log.commit_held()
        assert c.log.starts[0] == 4, "the snapshot is the fifth record"


async def test_a_state_is_not_given_up_for_a_deletion_that_may_be_lost(c: Coordinator) -> None:
    c.initialize(1, 4)
    c.log.hold = True
    assert c.told(c.c.delete, KEY) is None
    c.timer.advance(300_000)
    await c.settle()
    assert c.log.starts[0] == 0
    c.log.commit_held()
    c.timer.advance(300_000)
    await c.settle()
    assert c.log.starts[0] == 2


async def test_snapshots_of_large_states_are_written_in_several_batches(
    c: Coordinator, caplog: pytest.LogCaptureFixture
) -> None:
    """One would be above `max.message.bytes`, each time; and what lies before would stay."""
    keys = keys_of(8)
    for key in keys:
        c.initialize(key=key)
        for begin in range(0, 4_000, 1_000):
            scattered = (StateBatch(n, n, 2, 1) for n in range(begin, begin + 1_000, 2))
            assert c.write(*scattered, key=key) is E.NONE
    before = [c.read(key=key) for key in keys]
    c.log.size_max = 300_000
    end = c.log.ends[0]
    c.timer.advance(c.settings.share_coordinator_cold_partition_snapshot_interval_ms)
    await c.settle()
    c.timer.advance(300_000)
    await c.settle()
    assert c.log.starts[0] >= end
    await c.crash()
    assert [c.read(key=key) for key in keys] == before


async def test_updates_whose_snapshot_was_given_up_are_no_damage(
    c: Coordinator, caplog: pytest.LogCaptureFixture
) -> None:
    """The log begins with the other's snapshot, behind KEY's first and before its next."""
    other = KEY._replace(group_id="other")
    c.initialize()
    c.initialize(key=other)
    for offset in range(8):
        c.write(StateBatch(offset, offset, 2, 1))
    c.timer.advance(300_000)
    await c.settle()
    assert c.log.starts[0] == 1
    before = c.read(), c.read(key=other)
    await c.crash()
    assert (c.read(), c.read(key=other)) == before
    assert c.told(c.c.delete, KEY) is E.NONE
    await c.crash()
    assert c.c.stats.skipped_records == 0
    assert not [one for one in caplog.records if one.levelname == "ERROR"]


async def test_a_state_without_a_snapshot_is_told_of_once(
    c: Coordinator, caplog: pytest.LogCaptureFixture
) -> None:
    c.initialize()
    for offset in range(2):
        c.write(StateBatch(offset, offset, 2, 1))
    c.log.starts[0] = 1
    await c.crash()
    assert c.c.state_count == 0
    (told,) = [one for one in caplog.records if one.levelname == "ERROR"]
    assert "its updates have no snapshot" in told.getMessage()


async def test_records_that_make_no_sense_are_passed_over(c: Coordinator) -> None:
    c.initialize()
    for key, value in (
        (b"\x00\x07", b""),
        (b"\x00\x00", b"x"),
        (b"\x00\x01\x00\x01g" + bytes(20), bytes(2 + 4 + 4 + 8) + b"\x01\x00"),
    ):
        batch = build_batch([(key, value, (), 0)])
        where = TopicPartition(SHARE_GROUP_STATE, 0)
        c.log.append_coordinated(where, batch, lambda code, offset: None)
    await c.crash()
    assert c.c.state_count == 1
    assert c.read()[0] is E.NONE


async def test_partition_that_cannot_be_read(c: Coordinator) -> None:
    c.c.on_resigned(0)
    del c.log.batches[0]
    c.c.on_elected(0, c.log.leader_epoch)
    codes: list[E] = []
    c.c.initialize(KEY, 0, 0, codes.append)
    await c.settle()
    assert codes == [E.NOT_COORDINATOR]
    assert not c.c.is_loading


def test_partition_of_a_key_is_kafkas() -> None:
    """`Utils.abs(key.hashCode()) % partitions` of the text that FindCoordinator has."""
    assert KEY.coordinator_key() == "group:AAAAAAAAAAAAAAAAAAAABQ:0"
    c = Coordinator(DATA, topic_image(SHARE_GROUP_STATE, 99, 50))
    expected = 0
    for unit in KEY.coordinator_key().encode("utf-16-be")[1::2]:
        expected = (expected * 31 + unit) & 0xFFFFFFFF
    expected -= 1 << 32 if expected >> 31 else 0
    assert c.c.partition_for(KEY.coordinator_key()) == abs(expected) % 50


async def test_what_was_read_for_an_earlier_election_never_goes_live(c: Coordinator) -> None:
    """The topic is deleted and made anew while its partition loads."""
    c.initialize(1, 10)
    c.controller.listeners.clear()
    c.new()
    await c.c.start()
    c.c.on_elected(0, c.log.leader_epoch)
    await asyncio.sleep(0)
    assert c.c.is_loading
    c.c.on_resigned(0)
    c.log.truncate(0, 0)
    c.c.on_elected(0, c.log.leader_epoch)
    await c.settle()
    assert not c.c.is_loading
    assert c.summary() == (E.NONE, ShareSummary(0, 0, -1, -1))


async def test_a_load_that_fails_in_its_own_way_holds_up_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Whatever it is: the other partitions are loaded, and the node becomes ready."""
    c = Coordinator(DATA, topic_image(SHARE_GROUP_STATE, 99, 2))
    c.log = CoordinatorLog((0, 1), topic=SHARE_GROUP_STATE)
    c.new()
    await c.start()
    c.c.on_elected(1, 0)
    await c.settle()
    keys = {c.c.partition_for(key.coordinator_key()): key for key in keys_of(100)}
    for key in keys.values():
        assert c.initialize(0, 5, key) is E.NONE
    c.controller.listeners.clear()
    c.new()
    c.log.fail_reads[0] = RuntimeError("bug")
    await c.c.start()
    answers: list[Any] = []
    for partition_index in (0, 1):
        c.c.on_elected(partition_index, 0)
        c.c.read_summary(keys[partition_index], lambda *answer: answers.append(answer[0]))
    await c.settle()
    assert answers == [E.NOT_COORDINATOR, E.NONE]
    assert not c.c.is_loading
    assert c.c.unavailable.reasons.keys() == {0}
    assert "cannot be loaded" in caplog.text
    # It is mended: led anew, it serves.
    c.log.fail_reads.clear()
    c.c.on_elected(0, c.log.leader_epoch)
    await c.settle()
    assert c.summary(keys[0])[0] is E.NONE
    assert not c.c.unavailable.reasons
    await c.c.stop()


async def test_a_caller_that_fails_holds_up_nobody() -> None:
    """Neither who waits with it for the same partition nor the partitions behind it."""
    c = Coordinator(DATA, topic_image(SHARE_GROUP_STATE, 99, 2))
    c.log = CoordinatorLog((0, 1), topic=SHARE_GROUP_STATE)
    c.new()
    await c.c.start()
    keys = {c.c.partition_for(key.coordinator_key()): key for key in keys_of(100)}
    answers: list[Any] = []

    def failing(*answer: Any) -> None:
        answers.append(answer[0])
        raise RuntimeError("bug")

    for partition_index in (0, 1):
        c.c.on_elected(partition_index, 0)
    c.c.read_summary(keys[0], failing)
    for partition_index in (0, 1):
        c.c.read_summary(keys[partition_index], lambda *answer: answers.append(answer[0]))
    await c.settle()
    assert answers.count(E.NONE) == 3
    assert not c.c.is_loading
    await c.c.stop()


async def test_states_of_a_topic_that_is_deleted_while_they_load_go(c: Coordinator) -> None:
    c.initialize()
    c.controller.listeners.clear()
    c.new()
    await c.c.start()
    c.c.on_elected(0, c.log.leader_epoch)
    await asyncio.sleep(0)
    assert c.c.is_loading
    await c.controller.set_topics(STATE)
    await c.settle()
    assert c.c.state_count == 0
    await c.crash()
    assert c.c.state_count == 0
