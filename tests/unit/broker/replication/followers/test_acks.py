"""acks and the ISR: the table of what a producer gets, and when."""

import asyncio
from typing import Any

import pytest
from typing_extensions import override

from broker.replicas.partition import Partition
from broker.replicas.purgatory import DelayedOperation
from config.topic import TopicConfig
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from storage.types.append_origin import AppendOrigin
from tests.unit.broker.handlers.test_fetch import request
from tests.unit.broker.replication.followers.follower_world import FollowerWorld, record
from tests.unit.broker.world import batch

pytestmark = pytest.mark.usefixtures("produce_way")

VERSION = 11
MIN_ISR_2 = TopicConfig(min_insync_replicas=2)


def produce(f: FollowerWorld, acks: int, **options: Any) -> None:
    f.send(
        ApiKey.PRODUCE,
        VERSION,
        ProduceRequest(
            acks=acks,
            timeout_ms=1000,
            topic_data=[
                TopicProduceData(
                    name="t",
                    partition_data=[PartitionProduceData(index=0, records=batch(b"v", **options))],
                )
            ],
        ),
    )


def produced(f: FollowerWorld) -> tuple[int, int]:
    answer = f.answer(ApiKey.PRODUCE, VERSION)
    part = answer.responses[0].partition_responses[0]
    return part.error_code, part.base_offset


def led(f: FollowerWorld, isr: tuple[int, ...], config: TopicConfig = MIN_ISR_2) -> Partition:
    partition = f.add("t", config=config)
    partition.become_leader(record(isr), now_ms=f.clock.monotonic_ms())
    return partition


def caught_up(f: FollowerWorld, partition: Partition, *replicas: int) -> None:
    """Followers fetch behind the end, on connections of their own."""
    assert partition.leading is not None
    for replica in replicas:
        progress = partition.leading.follower(replica)
        assert progress is not None
        now_ms = f.clock.monotonic_ms()
        progress.fetched(
            partition.log.log_end_offset,
            0,
            f.registered[replica],
            partition.log.log_end_offset,
            now_ms,
        )
        partition.follower_fetched(progress, now_ms)


@pytest.mark.parametrize("isr", [(1, 2, 3), (1, 2), (1,)])
async def test_acks_1_asks_for_the_leader_alone(f: FollowerWorld, isr: tuple[int, ...]) -> None:
    partition = led(f, isr)
    produce(f, 1)
    assert produced(f) == (0, 0)
    assert partition.log.high_watermark == 0


@pytest.mark.parametrize(("isr", "takes"), [((1, 2, 3), True), ((1, 2), True), ((1,), False)])
async def test_coordinators_can_ask_before_they_append(
    f: FollowerWorld, isr: tuple[int, ...], takes: bool
) -> None:
    partition = led(f, isr)
    assert f.replicas.takes_records(partition.topic_partition) is takes
    codes: list[ErrorCode] = []
    offset = f.replicas.append_coordinated(
        partition.topic_partition, batch(b"v"), lambda code, _offset: codes.append(code)
    )
    assert offset == (0 if takes else -1)
    assert codes == ([] if takes else [ErrorCode.NOT_ENOUGH_REPLICAS])


async def test_acks_all_waits_for_all_of_the_isr(f: FollowerWorld) -> None:
    partition = led(f, (1, 2, 3))
    produce(f, -1)
    assert not f.has_answer
    caught_up(f, partition, 2)
    assert not f.has_answer
    caught_up(f, partition, 3)
    assert produced(f) == (0, 0)


class Consumer(DelayedOperation):
    def __init__(self, answered: list[str]) -> None:
        super().__init__()
        self.answered = answered

    @override
    def try_complete(self) -> bool:
        self.answered.append("consumer")
        return True


class Producer:
    completed = False
    is_internal = False

    def __init__(self, answered: list[str]) -> None:
        self.answered = answered

    def settle(self, _part: None, code: ErrorCode) -> None:
        assert code == ErrorCode.NONE
        self.answered.append("producer")


def waited_for(f: FollowerWorld, topic: str) -> list[str]:
    """A consumer and a producer wait for a record that broker 3 has, and broker 2 has not."""
    partition = f.led(topic)
    f.write(partition, b"v")
    caught_up(f, partition, 3)
    answered: list[str] = []
    partition.watch_fetch().add(Consumer(answered))
    partition.waits(acks_all=True).add(1, Producer(answered), None)
    return answered


async def test_a_single_partitions_consumer_comes_before_its_producer(f: FollowerWorld) -> None:
    """As in Kafka, and without a turn of the loop between them."""
    answered = waited_for(f, "t")
    f.fetch({"t": 1})
    assert answered == ["consumer", "producer"]


async def test_consumers_wait_for_all_partitions_of_a_followers_fetch(f: FollowerWorld) -> None:
    """A fetch of several is answered once, with the records of all."""
    first, second = waited_for(f, "t"), waited_for(f, "u")
    f.fetch({"t": 1, "u": 1})
    assert first == second == ["producer"]
    await asyncio.sleep(0)
    assert first == second == ["producer", "consumer"]


async def test_acks_all_is_refused_below_min_insync_replicas(f: FollowerWorld) -> None:
    """Nothing is written; with more than there are replicas, all of them do."""
    partition = led(f, (1,))
    produce(f, -1)
    assert produced(f) == (ErrorCode.NOT_ENOUGH_REPLICAS, -1)
    assert partition.log.log_end_offset == 0
    partition.log.update_config(TopicConfig(min_insync_replicas=9))
    partition.update_isr(record((1, 2, 3), partition_epoch=1))
    produce(f, -1)
    assert not f.has_answer


async def test_an_isr_that_becomes_too_small_ends_the_wait(f: FollowerWorld) -> None:
    """The records stay, and are committed when members come back."""
    partition = led(f, (1, 2))
    produce(f, -1)
    partition.update_isr(record((1,), partition_epoch=1))
    assert produced(f) == (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, -1)
    assert (partition.log.log_end_offset, partition.log.high_watermark) == (1, 0)
    partition.update_isr(record((1, 2), partition_epoch=2))
    caught_up(f, partition, 2)
    assert partition.log.high_watermark == 1


async def test_an_isr_that_becomes_smaller_lets_go(f: FollowerWorld) -> None:
    partition = led(f, (1, 2, 3))
    produce(f, -1)
    caught_up(f, partition, 2)
    partition.update_isr(record((1, 2), partition_epoch=1))
    assert produced(f) == (0, 0)


async def test_a_wait_ends_with_its_time(f: FollowerWorld) -> None:
    """The records may be committed later: an idempotent producer finds them."""
    partition = led(f, (1, 2))
    producer = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0}
    produce(f, -1, **producer)
    f.timer.advance(1005)
    assert produced(f) == (ErrorCode.REQUEST_TIMED_OUT, -1)
    produce(f, -1, **producer)
    assert not f.has_answer
    caught_up(f, partition, 2)
    assert produced(f) == (0, 0)
    produce(f, -1, **producer)
    assert produced(f) == (0, 0)


async def test_the_end_of_a_leadership_ends_the_wait(f: FollowerWorld) -> None:
    partition = led(f, (1, 2))
    produce(f, -1)
    partition.become_follower(2, 6)
    assert produced(f) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


async def test_a_later_epoch_of_the_same_leader_goes_on(f: FollowerWorld) -> None:
    """Its log has the records."""
    partition = led(f, (1, 2))
    produce(f, -1)
    partition.become_leader(record((1, 2), leader_epoch=6), now_ms=0.0)
    assert not f.has_answer
    caught_up(f, partition, 2)
    assert produced(f) == (0, 0)


async def test_acks_1_waits_for_the_disk_where_it_is_asked_to(f: FollowerWorld) -> None:
    """`flush.messages`; the high watermark waits for followers too."""
    partition = led(f, (1, 2), TopicConfig(flush_messages=1))
    partition.commit.flushing = True
    produce(f, 1)
    caught_up(f, partition, 2)
    assert not f.has_answer
    assert partition.log.high_watermark == 0
    partition._flushed(1)
    assert produced(f) == (0, 0)
    assert partition.log.high_watermark == 1


async def test_acks_0_is_answered_by_nothing(f: FollowerWorld) -> None:
    partition = led(f, (1,))
    produce(f, 0)
    assert not f.has_answer
    assert partition.log.log_end_offset == 1
    assert partition.commit_waits is None


async def test_large_batches_follow_the_same_rules(f: FollowerWorld) -> None:
    """A thread has prepared them; the ISR counts when they are written."""
    partition = led(f, (1, 2), TopicConfig(min_insync_replicas=2, record_validation="full"))
    large = batch(b"v" * 10_000)
    done: list[Any] = []
    preparation = f.replicas.preparation_of(partition)
    preparation.submit(memoryview(large), lambda *out: done.append(out), acks_all=True)
    partition.update_isr(record((1,), partition_epoch=1))
    await f.until(lambda: bool(done))
    ((info, error),) = done
    assert info is None
    assert error.code is ErrorCode.NOT_ENOUGH_REPLICAS
    preparation.submit(memoryview(batch(b"v" * 10_000)), lambda *out: done.append(out))
    await f.until(lambda: len(done) == 2)
    assert done[1][1] is None
    assert partition.log.log_end_offset == 1


async def test_coordinators_write_with_acks_all(f: FollowerWorld) -> None:
    partition = led(f, (1,))
    told: list[tuple[ErrorCode, int]] = []
    f.replicas.append_internal(
        partition.topic_partition, batch(b"v"), lambda *out: told.append(out)
    )
    assert told == [(ErrorCode.NOT_ENOUGH_REPLICAS, -1)]
    assert f.replicas.append_markers(partition, [])[0] is ErrorCode.NOT_ENOUGH_REPLICAS
    assert partition.log.log_end_offset == 0
    partition.append(memoryview(batch(b"v")), f.clock.now_ms(), AppendOrigin.CLIENT)
    assert partition.log.log_end_offset == 1


async def test_a_coordinators_wait_ends_with_the_epoch_and_not_with_the_isr(
    f: FollowerWorld,
) -> None:
    """Its memory has to agree with the log; in the next epoch it is loaded again."""
    partition = led(f, (1, 2))
    told: list[tuple[ErrorCode, int]] = []
    f.replicas.append_internal(
        partition.topic_partition, batch(b"v"), lambda *out: told.append(out)
    )
    partition.update_isr(record((1,), partition_epoch=1))
    assert told == []
    partition.become_leader(record((1, 2), leader_epoch=6), now_ms=0.0)
    assert told == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)]
    partition.become_follower(2, 7)
    f.replicas.when_committed(partition, 0, 0, lambda *out: told.append(out), 1000)
    await asyncio.sleep(0)
    assert told[1:] == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)]


class Validity:
    """Of a membership whose lease ends."""

    def __init__(self) -> None:
        self.until_ms = 10_000.0


@pytest.fixture
async def doubted(f: FollowerWorld) -> FollowerWorld:
    """Behind the end of the lease."""
    f.replicas.terms.validity = Validity()
    f.clock.advance(max(10_001 - f.clock.monotonic_ms(), 0))
    return f


def goes_on_fetching(f: FollowerWorld, replica: int) -> tuple[int, int]:
    """A follower's session whose second fetch was sent after an answer; its id and next epoch."""
    session: int = f.fetch({"t": 0}, replica=replica).session_id
    f.fetch({}, replica=replica, session=(session, 1))
    return session, 2


async def test_after_the_lease_followers_confirm_their_leader(doubted: FollowerWorld) -> None:
    """Another leader would be one of them, and would fetch no longer."""
    f = doubted
    led(f, (1, 2, 3))
    produce(f, 1)
    assert produced(f) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    goes_on_fetching(f, 2)
    produce(f, 1)
    assert produced(f) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    goes_on_fetching(f, 3)
    produce(f, 1)
    assert produced(f) == (0, 0)
    f.clock.advance(1001)
    produce(f, 1)
    assert produced(f) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


async def test_a_fetch_that_was_sent_long_ago_confirms_nothing(doubted: FollowerWorld) -> None:
    """It lay in the socket while the process was paused: its follower may follow another by now."""
    f = doubted
    partition = led(f, (1, 2))
    session, epoch = goes_on_fetching(f, 2)
    assert not partition.is_in_doubt(f.clock.monotonic_ms())
    f.clock.advance(5_000)
    f.fetch({}, session=(session, epoch))
    assert partition.is_in_doubt(f.clock.monotonic_ms())
    f.fetch({}, session=(session, epoch + 1))
    assert not partition.is_in_doubt(f.clock.monotonic_ms())


async def test_the_first_fetch_of_a_session_confirms_nothing(doubted: FollowerWorld) -> None:
    """Nothing says when it was sent."""
    f = doubted
    partition = led(f, (1, 2))
    session = f.fetch({"t": 0}).session_id
    assert partition.is_in_doubt(f.clock.monotonic_ms())
    f.fetch({}, session=(session, 1))
    assert not partition.is_in_doubt(f.clock.monotonic_ms())


async def test_a_leader_in_doubt_calls_no_sequence_wrong(doubted: FollowerWorld) -> None:
    """Another leader may have what it lacks; a producer would take the error for its end."""
    f = doubted
    led(f, (1, 2))
    goes_on_fetching(f, 2)
    producer = {"producer_id": 9, "producer_epoch": 0}
    produce(f, 1, base_sequence=0, **producer)
    assert produced(f) == (0, 0)
    f.clock.advance(1001)
    produce(f, -1, base_sequence=7, **producer)
    assert produced(f) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    goes_on_fetching(f, 2)
    produce(f, -1, base_sequence=7, **producer)
    assert produced(f) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)


async def test_a_leader_in_doubt_judges_no_offset_above_its_log(doubted: FollowerWorld) -> None:
    """A consumer that read it at the next leader would begin anew by `auto.offset.reset`."""
    f = doubted
    partition = led(f, (1, 2))
    goes_on_fetching(f, 2)
    produce(f, 1)
    assert produced(f) == (0, 0)

    def read(offset: int) -> int:
        answer = f.ask(ApiKey.FETCH, 12, request({"t": {0: offset}}))
        code: int = answer.responses[0].partitions[0].error_code
        return code

    assert read(2) == ErrorCode.OFFSET_OUT_OF_RANGE
    f.clock.advance(1001)
    assert partition.is_in_doubt(f.clock.monotonic_ms())
    assert read(2) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert read(-1) == ErrorCode.OFFSET_OUT_OF_RANGE
    assert read(1) == ErrorCode.NONE


async def test_acks_all_needs_no_clock(doubted: FollowerWorld) -> None:
    partition = led(doubted, (1, 2))
    produce(doubted, -1)
    assert not doubted.has_answer
    caught_up(doubted, partition, 2)
    assert produced(doubted) == (0, 0)


async def test_before_the_end_of_the_lease_nobody_has_to_confirm(doubted: FollowerWorld) -> None:
    led(doubted, (1, 2))
    doubted.replicas.terms.validity.until_ms = doubted.clock.monotonic_ms()  # type: ignore[misc]  # the test's own
    produce(doubted, 1)
    assert produced(doubted) == (0, 0)


async def test_alone_in_the_isr_there_is_no_other(doubted: FollowerWorld) -> None:
    """Unless replicas that have left it may be elected: below min.insync.replicas (KIP-966)."""
    partition = led(doubted, (1,), TopicConfig(min_insync_replicas=1))
    assert not partition.is_in_doubt(doubted.clock.monotonic_ms())
    partition.log.update_config(MIN_ISR_2)
    assert partition.is_in_doubt(doubted.clock.monotonic_ms())
    partition.update_isr(record((1,), partition_epoch=1, replicas=(1,)))
    assert not partition.is_in_doubt(doubted.clock.monotonic_ms())


@pytest.mark.parametrize("acks", [-1, 1])
@pytest.mark.parametrize(
    "config",
    [
        TopicConfig(unclean_leader_election_enable=True),
        TopicConfig(unclean_recovery_strategy="Aggressive"),
    ],
)
async def test_alone_in_the_isr_another_may_be_elected_uncleanly(
    doubted: FollowerWorld, config: TopicConfig, acks: int
) -> None:
    """acks=all is committed at once then: nobody would have it but the old leader."""
    partition = led(doubted, (1,), config)
    produce(doubted, acks)
    assert produced(doubted) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    assert partition.log.log_end_offset == 0
    doubted.replicas.terms.validity.until_ms = doubted.clock.monotonic_ms()  # type: ignore[misc]  # the test's own
    produce(doubted, acks)
    assert produced(doubted) == (ErrorCode.NONE, 0)
    assert partition.log.log_end_offset == 1


async def test_the_only_replica_is_never_in_doubt(doubted: FollowerWorld) -> None:
    """Whatever the topic allows: there is nobody to elect."""
    config = TopicConfig(unclean_leader_election_enable=True)
    partition = led(doubted, (1,), config)
    assert partition.is_in_doubt(doubted.clock.monotonic_ms())
    partition.update_isr(record((1,), partition_epoch=1, replicas=(1,)))
    assert not partition.is_in_doubt(doubted.clock.monotonic_ms())


async def test_who_follows_another_epoch_confirms_nothing(doubted: FollowerWorld) -> None:
    """Though its session goes on for other partitions."""
    f = doubted
    partition = led(f, (1, 2))
    session, epoch = goes_on_fetching(f, 2)
    assert not partition.is_in_doubt(f.clock.monotonic_ms())
    f.clock.advance(600)
    f.fetch({"t": 0}, session=(session, epoch), current_leader_epoch=6)
    f.clock.advance(600)
    f.fetch({}, session=(session, epoch + 1))
    assert partition.is_in_doubt(f.clock.monotonic_ms())
    f.fetch({"t": 0}, session=(session, epoch + 2))
    assert not partition.is_in_doubt(f.clock.monotonic_ms())
    f.clock.advance(600)
    f.fetch({}, session=(session, epoch + 3))
    f.clock.advance(600)
    f.fetch({}, session=(session, epoch + 4))
    assert not partition.is_in_doubt(f.clock.monotonic_ms())
    f.clock.advance(1001)
    f.fetch({}, session=(session, epoch + 5), forget=["t"])
    assert partition.is_in_doubt(f.clock.monotonic_ms())
