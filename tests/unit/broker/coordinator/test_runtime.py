"""Shards that come and go: elections, loads, reloads, and what clients are told meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from broker.coordinator.election import ElectionState as S
from broker.coordinator.runtime import RELOAD_FIRST_MS, RELOAD_MAX_MS, UNCOMMITTED_DELAY_MS
from broker.coordinator.shard_log import ApplyAt
from protocol.error_codes import ErrorCode as E
from protocol.errors import DecodeError
from protocol.records.builder import build_batch
from protocol.records.control import build_end_transaction_marker
from tests.fakes.broker.coordinator_log import TIMEOUT_MS, TOPIC
from tests.fakes.broker.offsets_partition import topic_image
from tests.harness.coordinator import RuntimeHarness

EPOCH = 3


def key_of(h: RuntimeHarness, index: int) -> str:
    """A key whose partition this is."""
    return next(k for k in map(str, range(100)) if h.runtime.partition_for(k) == index)


@pytest.fixture
async def h() -> AsyncIterator[RuntimeHarness]:
    made = await RuntimeHarness().start()
    yield made
    await made.runtime.stop()


@pytest.fixture
async def two() -> AsyncIterator[RuntimeHarness]:
    made = await RuntimeHarness(2).start()
    yield made
    await made.runtime.stop()


async def test_a_shard_serves_what_its_log_says(h: RuntimeHarness) -> None:
    assert h.put("a", b"1") == h.put("b", b"2") == [E.NONE]
    assert h.put("a", None) == [E.NONE]
    await h.crash()
    assert h.shard().values == {b"b": b"2"}
    assert h.shard().leader_epoch == EPOCH
    assert h.runtime.stats.loaded_records == 3


async def test_before_the_start_and_after_the_end() -> None:
    h = RuntimeHarness()
    assert h.put("a", b"1") == [E.COORDINATOR_NOT_AVAILABLE]
    h.runtime.on_elected(0, EPOCH)
    await h.settle()
    assert h.state() is S.INITIAL
    await h.start(elect=False)
    await h.settle()
    assert h.state() is S.ACTIVE
    await h.runtime.stop()
    assert h.put("a", b"1") == h.call("a") == [E.COORDINATOR_NOT_AVAILABLE]
    assert h.built[0].calls == ["loaded", "active", "unloaded"]
    assert not h.runtime.is_running
    assert not h.runtime.is_loading


async def test_resigned(h: RuntimeHarness) -> None:
    h.runtime.on_resigned(0)
    assert h.put("a", b"1") == [E.NOT_COORDINATOR]
    assert h.built[0].calls[-1] == "unloaded"
    assert h.state() is None


async def test_elected_again_in_the_same_or_an_older_epoch_nothing_is_new(
    h: RuntimeHarness,
) -> None:
    for epoch in (EPOCH, EPOCH - 1):
        h.runtime.on_elected(0, epoch)
        assert h.state() is S.ACTIVE
    await h.settle()
    assert len(h.built) == 1


async def test_leader_to_leader_in_a_newer_epoch_is_read_anew(h: RuntimeHarness) -> None:
    """Another broker may have led, and written, in between."""
    h.put("a", b"1")
    h.log.add_batch(0, build_batch([(b"a", b"theirs", (), 0)]))
    h.runtime.on_elected(0, EPOCH + 2)
    assert h.put("a", b"2") == [E.COORDINATOR_LOAD_IN_PROGRESS]
    await h.settle()
    assert h.shard().values == {b"a": b"theirs"}
    assert h.shard().leader_epoch == EPOCH + 2
    assert h.built[0].calls[-1] == "unloaded"


async def test_a_newer_epoch_while_loading_begins_the_load_again(h: RuntimeHarness) -> None:
    h.runtime.on_resigned(0)
    h.log.add_batch(0, build_batch([(b"a", b"1", (), 0)]))
    h.runtime.on_elected(0, EPOCH)
    answers = h.call("a")
    await h.until(lambda: h.log.reads > 0)
    h.runtime.on_elected(0, EPOCH + 1)
    await h.settle()
    assert h.shard().leader_epoch == EPOCH + 1
    assert answers == [h.shard()], "who waits, waits for the partition"
    assert [shard.calls[-1] for shard in h.built] == ["unloaded", "unloaded", "active"]


async def test_an_old_resignation_ends_no_newer_election(h: RuntimeHarness) -> None:
    h.runtime.on_resigned(0, EPOCH - 1)
    assert h.state() is S.ACTIVE
    h.runtime.on_resigned(0, EPOCH + 1)
    assert h.state() is None


async def test_resigned_in_its_own_epoch_and_elected_in_it_again(h: RuntimeHarness) -> None:
    """It was fenced for a moment: nobody else has led, and the partition is read anew."""
    h.put("a", b"1")
    h.runtime.on_resigned(0, EPOCH)
    assert h.put("a", b"2") == [E.NOT_COORDINATOR]
    h.runtime.on_elected(0, EPOCH)
    await h.settle()
    assert h.shard().values == {b"a": b"1"}
    assert len(h.built) == 2


async def test_elected_in_an_epoch_older_than_another_leaders(h: RuntimeHarness) -> None:
    """What comes late names an election that is over."""
    h.runtime.on_resigned(0, EPOCH + 2)
    for epoch in (EPOCH, EPOCH + 1):
        h.runtime.on_elected(0, epoch)
        assert h.state() is None
    h.runtime.on_elected(0, EPOCH + 3)
    await h.settle()
    assert h.shard().leader_epoch == EPOCH + 3


async def test_a_topic_that_is_made_anew_begins_with_epoch_zero(h: RuntimeHarness) -> None:
    """Elected before its runtime has heard that the last one was deleted."""
    h.put("a", b"1")
    old = h.controller.image
    h.log.truncate(0, 0)
    h.controller.listeners, listeners = [], h.controller.listeners
    await h.controller.set_topics(topic_image(TOPIC, 100, 1))
    h.runtime.on_elected(0, 0)
    assert h.built[0].calls[-1] == "unloaded"
    await h.settle()
    for listener in listeners:
        await listener(old, h.controller.image)
    assert h.state() is S.ACTIVE, "the late news is of the last one"
    assert h.shard().leader_epoch == 0
    assert h.shard().values == {}


async def test_nothing_is_appended_in_an_epoch_that_the_shard_was_not_elected_in(
    h: RuntimeHarness,
) -> None:
    """Between the partition's new role and the news of it."""
    h.log.epochs[0] = EPOCH + 1
    end = h.log.ends[0]
    assert h.put("a", b"1") == [E.NOT_COORDINATOR]
    assert h.log.ends[0] == end
    h.runtime.on_elected(0, EPOCH + 1)
    await h.settle()
    assert h.put("a", b"1") == [E.NONE]


async def test_nothing_is_served_of_a_partition_that_is_not_led(h: RuntimeHarness) -> None:
    """Whatever the runtime has heard so far."""
    h.log.batches, batches = {}, h.log.batches
    assert h.put("a", b"1") == h.call("a") == [E.NOT_COORDINATOR]
    h.log.batches = batches
    assert h.put("a", b"1") == [E.NONE]


async def test_nothing_is_served_while_another_broker_may_lead(h: RuntimeHarness) -> None:
    """This one was paused or cut off; what it has in memory may be old by now."""
    h.log.has_followers = True
    h.log.valid_until_ms = h.clock.monotonic_ms() + 100
    assert h.put("a", b"1") == [E.NONE]
    h.timer.advance(101)
    assert h.put("a", b"2") == h.call("a") == [E.NOT_COORDINATOR]
    h.log.valid_until_ms = h.clock.monotonic_ms()
    assert h.put("a", b"2") == [E.NONE], "it was valid all the time: nothing is read anew"
    assert len(h.built) == 1
    h.log.committed[0] = 0
    h.runtime.on_elected(0, EPOCH + 1)
    await h.settle()
    assert h.put("a", b"3") == [E.COORDINATOR_LOAD_IN_PROGRESS]
    h.timer.advance(1)
    assert h.put("a", b"3") == [E.NOT_COORDINATOR], "its client would wait here for ever"


@pytest.mark.parametrize("apply_at", ApplyAt)
async def test_what_was_written_when_the_lead_was_lost_is_answered_no_more(
    h: RuntimeHarness, apply_at: ApplyAt
) -> None:
    """The next leader may have the record, or cut it off: this shard says nothing from then on."""
    h.log.hold = True
    codes = h.put("a", b"1", apply_at)
    h.log.epochs[0] = EPOCH + 1
    h.log.fail_held(E.NOT_LEADER_OR_FOLLOWER, lost=False)
    assert codes == [E.NOT_COORDINATOR]
    assert h.runtime.shard_at(0) is None
    assert h.built[0].log.is_closed
    h.runtime.on_elected(0, EPOCH + 1)
    await h.settle()
    assert h.shard().values == {b"a": b"1"}


async def test_too_few_replicas_after_the_append_leave_the_outcome_unknown(
    h: RuntimeHarness,
) -> None:
    h.log.hold = True
    codes = h.put("a", b"1")
    h.log.fail_held(E.NOT_ENOUGH_REPLICAS_AFTER_APPEND, lost=False)
    assert codes == [E.COORDINATOR_NOT_AVAILABLE]
    await h.pass_time(0)
    assert h.shard().values == {b"a": b"1"}, "read anew"
    assert len(h.built) == 2


async def test_too_few_replicas_before_the_append_change_nothing(h: RuntimeHarness) -> None:
    h.log.fail_next.append(E.NOT_ENOUGH_REPLICAS)
    assert h.put("a", b"1") == [E.COORDINATOR_NOT_AVAILABLE]
    assert h.state() is S.ACTIVE
    assert h.put("a", b"2") == [E.NONE]


async def test_a_new_leader_waits_for_its_followers_as_long_as_it_takes(
    h: RuntimeHarness, caplog: pytest.LogCaptureFixture
) -> None:
    """It reads nothing that they could still lose, and does not give up."""
    h.log.put_batch(0, build_batch([(b"a", b"1", (), 0)]))
    h.runtime.on_elected(0, EPOCH + 1)
    reads = h.log.reads
    for count in range(1, 4):
        await h.settle()
        assert h.state() is S.LOADING
        assert h.runtime.waiting_count == 1
        assert h.runtime.is_loading, "its groups are missing"
        assert not h.runtime.is_reading, "nothing is done here meanwhile"
        assert h.log.reads == reads
        h.log.end_waits(E.REQUEST_TIMED_OUT)
        assert caplog.text.count("values not loaded yet: the log end is not committed") == count
        await h.pass_time(UNCOMMITTED_DELAY_MS)
    h.log.commit_all()
    await h.settle()
    assert h.shard().values == {b"a": b"1"}
    assert h.runtime.waiting_count == 0
    assert not len(h.runtime.unavailable)


async def test_a_wait_for_followers_ends_with_the_election(h: RuntimeHarness) -> None:
    h.log.put_batch(0, build_batch([(b"a", b"1", (), 0)]))
    h.runtime.on_elected(0, EPOCH + 1)
    await h.settle()
    h.runtime.on_resigned(0, EPOCH + 2)
    h.log.end_waits(E.NOT_LEADER_OR_FOLLOWER)
    await h.pass_time(UNCOMMITTED_DELAY_MS)
    assert h.state() is None
    assert h.timer.pending == 0


async def test_a_log_cut_under_a_load_that_is_over_alarms_nobody(
    h: RuntimeHarness, caplog: pytest.LogCaptureFixture
) -> None:
    h.put("a", b"1")
    h.runtime.on_elected(0, EPOCH + 1)
    h.log.fail_reads[0] = OSError("truncated")
    h.log.on_read = lambda _: h.runtime.on_resigned(0, EPOCH + 2)
    await h.settle()
    assert h.runtime.stats.load_failures == 0
    assert not caplog.records
    assert not len(h.runtime.unavailable)


async def test_another_leader_takes_the_alert_away(h: RuntimeHarness) -> None:
    h.log.fail_reads[0] = OSError("disk")
    h.put("a", b"1")
    h.runtime.on_elected(0, EPOCH + 1)
    await h.settle()
    assert h.runtime.unavailable.reasons.keys() == {0}
    h.runtime.on_resigned(0)
    assert h.runtime.unavailable.reasons.keys() == {0}, "its log is not here: nobody else leads"
    h.runtime.on_resigned(0, EPOCH + 2)
    assert not h.runtime.unavailable.reasons


async def test_what_was_read_for_an_earlier_election_never_serves(h: RuntimeHarness) -> None:
    """The topic is deleted, and made anew with the same epoch, while the partition loads."""
    h.put("a", b"1")
    await h.crash()
    h.runtime.on_resigned(0)
    reads = h.log.reads
    h.runtime.on_elected(0, EPOCH)
    await h.until(lambda: h.log.reads > reads)
    h.runtime.on_resigned(0)
    h.log.truncate(0, 0)
    h.runtime.on_elected(0, EPOCH)
    await h.settle()
    assert h.shard().values == {}
    assert h.runtime.stats.loaded_partitions == 2


async def test_nothing_more_is_read_for_an_election_that_is_over(h: RuntimeHarness) -> None:
    for number in range(20):
        h.put(str(number), bytes(500))
    h.runtime.on_resigned(0)
    h.runtime.on_elected(0, EPOCH)
    reads = h.log.reads
    h.log.on_read = lambda _: h.runtime.on_resigned(0)
    await h.settle()
    assert h.log.reads == reads + 1


async def test_a_log_whose_end_is_not_committed_is_looked_at_again(two: RuntimeHarness) -> None:
    """And holds up no other."""
    h = two
    for index in (0, 1):
        h.put(key_of(h, index), b"1")
        h.runtime.on_resigned(index)
    h.log.committed[0] = 0
    for index in (0, 1):
        h.runtime.on_elected(index, EPOCH)
    await h.settle()
    assert (h.state(0), h.state(1)) == (S.LOADING, S.ACTIVE)
    assert h.runtime.is_loading
    assert h.runtime.is_loading_partition(0)
    assert not h.runtime.is_loading_partition(1)
    h.log.commit_all()
    await h.pass_time(UNCOMMITTED_DELAY_MS)
    assert h.state(0) is S.ACTIVE
    assert h.shard(0).values != {}


@pytest.mark.parametrize("error", [RuntimeError("bug"), OSError("disk"), MemoryError()])
@pytest.mark.parametrize("where", ["read", "loaded"])
async def test_whatever_fails_in_a_load_the_others_are_loaded(
    two: RuntimeHarness, error: Exception, where: str, caplog: pytest.LogCaptureFixture
) -> None:
    h = two
    for index in (0, 1):
        h.put(key_of(h, index), b"1")
        h.runtime.on_resigned(index)
    if where == "read":
        h.log.fail_reads[0] = error
    else:
        h.fail_on["loaded"] = error
    for index in (0, 1):
        h.runtime.on_elected(index, EPOCH)
    answers = h.call(key_of(h, 0))
    await h.until(lambda: h.state(0) is S.FAILED)
    h.fail_on.clear()
    await h.settle()
    assert (h.state(0), h.state(1)) == (S.FAILED, S.ACTIVE)
    assert answers == h.put(key_of(h, 0), b"2") == [E.NOT_COORDINATOR]
    assert not h.runtime.is_loading
    assert h.runtime.unavailable.reasons.keys() == {0}
    assert h.runtime.stats.load_failures == 1
    assert "values cannot be loaded partition=__harness-0" in caplog.text
    assert h.built[2].calls[-1] == "unloaded"
    # It is mended: elected again, in the same epoch, it serves.
    h.log.fail_reads.clear()
    h.runtime.on_elected(0, EPOCH)
    await h.settle()
    assert h.put(key_of(h, 0), b"2") == [E.NONE]
    assert not h.runtime.unavailable.reasons


async def test_what_could_not_be_read_is_tried_again_ever_later(h: RuntimeHarness) -> None:
    """Descriptors were short, say: nobody has to start the broker again for that."""
    h.put("a", b"1")
    h.log.fail_reads[0] = OSError("none left")
    h.runtime.on_elected(0, EPOCH + 1)
    await h.settle()
    assert h.state() is S.FAILED
    delays = [RELOAD_FIRST_MS, 2 * RELOAD_FIRST_MS, *(RELOAD_MAX_MS for _ in range(2))]
    for failures, delay_ms in enumerate([*delays[:2], 40_000.0, 80_000.0, 160_000.0, *delays[2:]]):
        await h.pass_time(delay_ms - 1)
        assert h.runtime.stats.load_failures == failures + 1
        assert h.put("a", b"2") == [E.NOT_COORDINATOR]
        await h.pass_time(1)
        assert h.runtime.stats.load_failures == failures + 2
    # Days later, when two to the power of that is no float.
    h.runtime._elections[0].failures = 2_000
    await h.pass_time(RELOAD_MAX_MS)
    assert h.runtime._elections[0].failures == 2_001
    h.log.fail_reads.clear()
    await h.pass_time(RELOAD_MAX_MS)
    assert h.shard().values == {b"a": b"1"}
    assert h.shard().leader_epoch == EPOCH + 1
    assert not h.runtime.unavailable.reasons


async def test_what_is_damaged_is_not_read_again(h: RuntimeHarness) -> None:
    h.put("a", b"1")
    h.log.fail_reads[0] = DecodeError("damaged")
    h.runtime.on_elected(0, EPOCH + 1)
    await h.settle()
    reads = h.log.reads
    await h.pass_time(2 * RELOAD_MAX_MS)
    assert h.log.reads == reads
    assert h.state() is S.FAILED


@pytest.mark.parametrize("ends", ["resigned", "stopped", "elected in a newer epoch"])
async def test_an_election_that_is_over_is_not_tried_again(h: RuntimeHarness, ends: str) -> None:
    h.log.fail_reads[0] = OSError("none left")
    h.put("a", b"1")
    h.runtime.on_elected(0, EPOCH + 1)
    await h.settle()
    h.log.fail_reads.clear()
    if ends == "resigned":
        h.runtime.on_resigned(0, EPOCH + 2)
    elif ends == "stopped":
        await h.runtime.stop()
    else:
        h.runtime.on_elected(0, EPOCH + 2)
        await h.settle()
    built = len(h.built)
    await h.pass_time(RELOAD_FIRST_MS)
    assert len(h.built) == built


async def test_a_partition_that_is_not_here_cannot_be_loaded(h: RuntimeHarness) -> None:
    h.runtime.on_elected(5, EPOCH)
    await h.settle()
    assert h.state(5) is S.FAILED
    assert h.runtime.stats.load_failures == 1
    h.runtime.on_resigned(5)
    assert h.state(5) is None


async def test_a_shard_that_cannot_go_on_serves_all_the_same(
    caplog: pytest.LogCaptureFixture,
) -> None:
    h = RuntimeHarness(2)
    h.fail_on["active"] = RuntimeError("bug")
    await h.start()
    assert (h.state(0), h.state(1)) == (S.ACTIVE, S.ACTIVE)
    assert caplog.text.count("values loaded, but pending work failed") == 2
    await h.runtime.stop()


@pytest.mark.parametrize("apply_at", ApplyAt)
async def test_an_unknown_outcome_has_the_shard_read_anew(
    h: RuntimeHarness, apply_at: ApplyAt
) -> None:
    """The record is in the log, whatever the client was told."""
    h.log.time_out = True
    assert h.put("a", b"1", apply_at) == [E.COORDINATOR_NOT_AVAILABLE]
    h.log.time_out = False
    assert h.put("a", b"2") == [E.COORDINATOR_LOAD_IN_PROGRESS]
    await h.pass_time(0)
    assert h.built[0].calls[-1] == "unloaded"
    assert h.state() is S.LOADING, "to read before the end is committed could miss the record"
    h.log.commit_all()
    await h.pass_time(UNCOMMITTED_DELAY_MS)
    assert h.shard().values == {b"a": b"1"}
    assert h.runtime.stats.reloads == 1


async def test_others_under_way_in_a_shard_that_is_given_up(h: RuntimeHarness) -> None:
    """They hear what the log says of theirs; the shard read anew has what was committed."""
    h.log.hold = True
    codes = [h.put(key, b"1") for key in "abc"]
    held, h.log.held = h.log.held, []
    h.log.commit_all()
    held[0].on_committed(E.REQUEST_TIMED_OUT, -1)
    held[1].on_committed(E.NONE, held[1].base_offset)
    held[2].on_committed(E.REQUEST_TIMED_OUT, -1)
    assert codes == [[E.COORDINATOR_NOT_AVAILABLE], [E.NONE], [E.NOT_COORDINATOR]]
    await h.pass_time(0)
    assert h.shard().values == dict.fromkeys((b"a", b"b", b"c"), b"1")
    assert h.runtime.stats.reloads == 1


async def test_a_failed_disk_is_not_read_again(h: RuntimeHarness) -> None:
    h.log.fail_with = E.KAFKA_STORAGE_ERROR
    assert h.put("a", b"1") == h.put("a", b"1") == [E.NOT_COORDINATOR]
    await h.pass_time(0)
    assert h.state() is S.FAILED
    assert not h.runtime.is_loading
    # Back on another disk.
    h.log.fail_with = None
    h.log.failures.clear()
    h.runtime.on_elected(0, EPOCH)
    await h.settle()
    assert h.put("a", b"1") == [E.NONE]


async def test_given_up_when_the_partition_has_left(
    h: RuntimeHarness, caplog: pytest.LogCaptureFixture
) -> None:
    """With its topic or its disk: nobody is alarmed, a resignation is on its way."""
    batches = h.log.batches.pop(0)
    h.shard().log.fail(E.NOT_LEADER_OR_FOLLOWER)
    assert h.put("a", b"1") == [E.NOT_COORDINATOR]
    assert not caplog.records
    assert not len(h.runtime.unavailable)
    h.log.batches[0] = batches
    h.runtime.on_resigned(0)
    h.runtime.on_elected(0, EPOCH)
    await h.settle()
    assert h.put("a", b"1") == [E.NONE]


async def test_given_up_before_it_serves(h: RuntimeHarness) -> None:
    h.runtime.on_resigned(0)
    h.log.add_batch(0, build_batch([(b"a", b"1", (), 0)]))
    h.runtime.on_elected(0, EPOCH)
    h.log.on_read = lambda _: h.built[1].log.fail(E.REQUEST_TIMED_OUT)
    await h.settle()
    assert len(h.built) == 3
    assert h.shard().values == {b"a": b"1"}
    assert not h.shard().log.is_closed


async def test_a_stop_unloads_what_was_given_up_a_moment_before(h: RuntimeHarness) -> None:
    shard = h.shard()
    shard.log.fail(E.REQUEST_TIMED_OUT)
    await h.runtime.stop()
    assert shard.calls[-1] == "unloaded"
    h.timer.advance(10)


async def test_a_stop_in_the_middle_of_a_load_unloads_it(h: RuntimeHarness) -> None:
    h.put("a", b"1")
    h.runtime.on_resigned(0)
    h.runtime.on_elected(0, EPOCH)
    answers = h.call("a")
    await asyncio.sleep(0)
    await h.runtime.stop()
    assert h.built[1].calls == ["unloaded"]
    assert answers == [E.NOT_COORDINATOR]
    assert h.timer.pending == 0


async def test_damaged_records_are_passed_over_and_counted(h: RuntimeHarness) -> None:
    h.log.add_batch(0, build_batch([(b"a", b"damaged", (), 0), (None, b"x", (), 0)]))
    h.log.add_batch(0, build_batch([(b"b", b"2", (), 0)]))
    marker = build_end_transaction_marker(
        producer_id=9, producer_epoch=0, commit=True, coordinator_epoch=0, timestamp_ms=1
    )
    h.log.add_batch(0, marker)
    await h.crash()
    assert h.shard().values == {b"b": b"2"}
    assert h.shard().markers == [(9, True)]
    assert h.runtime.stats.skipped_records == 1


# -- calls that wait --


async def test_calls_wait_for_a_shard_that_loads(h: RuntimeHarness) -> None:
    h.runtime.on_resigned(0)
    assert h.call("a") == [E.NOT_COORDINATOR]
    h.runtime.on_elected(0, EPOCH)
    answers = h.call("a")
    assert answers == []
    await h.settle()
    assert answers == [h.shard()]
    assert h.call("a") == [h.shard()]
    assert h.timer.pending == 0


async def test_calls_wait_for_so_long_and_no_longer(h: RuntimeHarness) -> None:
    h.put("a", b"1")
    h.runtime.on_resigned(0)
    h.log.committed[0] = 0
    h.runtime.on_elected(0, EPOCH)
    answers = h.call("a")
    await h.pass_time(TIMEOUT_MS)
    assert answers == [E.COORDINATOR_NOT_AVAILABLE]


async def test_a_call_that_fails_keeps_nobody_from_being_served(two: RuntimeHarness) -> None:
    h = two
    for index in (0, 1):
        h.runtime.on_resigned(index)
        h.runtime.on_elected(index, EPOCH)
    codes: list[E] = []

    def fail(_shard: object) -> None:
        raise RuntimeError("bug")

    h.runtime.when_active(key_of(h, 0), fail, codes.append)
    others = [h.call(key_of(h, 0)), h.call(key_of(h, 1))]
    await h.settle()
    assert others == [[h.shard(0)], [h.shard(1)]]
    assert codes == [E.UNKNOWN_SERVER_ERROR]


async def test_the_topic_is_made_for_whoever_waits() -> None:
    h = await RuntimeHarness(has_topic=False).start(elect=False)
    h.controller.on_created = lambda: h.runtime.on_elected(0, 0)
    answers = h.call("a")
    assert answers == []
    await h.settle()
    assert answers == [h.shard()]
    await h.runtime.stop()


async def test_the_topic_cannot_be_made() -> None:
    h = await RuntimeHarness(has_topic=False).start(elect=False)
    h.controller.refuse_with = E.INVALID_REPLICATION_FACTOR
    answers = h.call("a")
    await h.settle()
    assert answers == [E.COORDINATOR_NOT_AVAILABLE]
    await h.runtime.stop()


# -- topics --


async def test_shards_are_told_of_other_topics(two: RuntimeHarness) -> None:
    h = two
    await h.controller.set_topics(topic_image(TOPIC, 99, 2))
    for index in (0, 1):
        (change,) = h.shard(index).changes
        assert change.deleted == {UUID(int=5): "data"}


async def test_a_shard_that_loads_is_told_when_it_is_active(h: RuntimeHarness) -> None:
    h.runtime.on_resigned(0)
    h.runtime.on_elected(0, EPOCH)
    await h.controller.set_topics(topic_image(TOPIC, 99, 1))
    await h.settle()
    assert h.shard().deleted_topics == {UUID(int=5): "data"}
    assert h.shard().changes == []


async def test_deletions_of_before_the_election_are_remembered(
    h: RuntimeHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The latest ones: the shard of another broker may have ended before it was told."""
    monkeypatch.setattr("broker.coordinator.runtime.DELETED_TOPICS_MAX", 2)
    own = topic_image(TOPIC, 99, 1)
    h.runtime.on_resigned(0)
    for number in (5, 6, 7):
        await h.controller.set_topics(own, topic_image("t", number, 1))
    await h.controller.set_topics(own)
    h.runtime.on_elected(0, EPOCH)
    await h.settle()
    assert h.shard().deleted_topics == {UUID(int=6): "t", UUID(int=7): "t"}


async def test_with_the_topic_all_is_gone(two: RuntimeHarness) -> None:
    h = two
    h.runtime.unavailable.set(7, "damaged")
    h.runtime.on_resigned(1)
    h.runtime.on_elected(1, EPOCH)
    await h.controller.set_topics(topic_image("data", 5, 2))
    await h.settle()
    assert (h.state(0), h.state(1)) == (None, None)
    assert not len(h.runtime.unavailable)
    assert h.runtime.partition_for("a") == 0, "as configured, until it is made anew"
