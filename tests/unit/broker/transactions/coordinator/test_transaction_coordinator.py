"""The coordinator as a whole: shards that come and go, and what is told meanwhile."""

import asyncio

import pytest

from broker.coordinator.deferred_records import DEFER_MS
from broker.coordinator.runtime import UNCOMMITTED_DELAY_MS
from broker.runtime.errors import ApiError
from broker.transactions.coordinator import transaction_coordinator as coordinator
from broker.transactions.coordinator.transaction_coordinator import TRANSACTION_TOPIC
from broker.transactions.coordinator.transaction_state import TransactionState as S
from broker.transactions.interfaces import PartitionRegistrar, ProducerIdAndEpoch
from protocol.error_codes import ErrorCode
from tests.fakes.broker.offsets_partition import topic_image
from tests.harness.transactions import A, B, Coordinator
from tests.unit.broker.transactions.conftest import MakeCoordinator

E = ErrorCode
PRODUCER = ProducerIdAndEpoch(1, 0)


def answers(c: Coordinator) -> set[ErrorCode]:
    """What everybody who asks is told."""
    return {
        c.init()[0],
        c.add(PRODUCER, A),
        c.end(PRODUCER)[0],
        c.end(PRODUCER, version=0)[0],
        c.transactions.verify_partitions("tx", PRODUCER, [A])[A],
        c.transactions.find_transaction("tx")[0],
    }


def test_it_is_what_partitions_ask(c: Coordinator) -> None:
    registrar: PartitionRegistrar = c.transactions
    assert registrar is c.transactions


def test_before_the_start_and_after_the_end(make: MakeCoordinator) -> None:
    c = make(start=False)
    assert answers(c) == {E.COORDINATOR_NOT_AVAILABLE}
    c.start()
    assert c.transactions.is_running
    c.run(c.transactions.stop())
    assert answers(c) == {E.COORDINATOR_NOT_AVAILABLE}
    assert not c.transactions.is_running


def test_partition_that_is_led_by_somebody_else(c: Coordinator) -> None:
    c.transactions.on_resigned(0)
    assert answers(c) == {E.NOT_COORDINATOR}


def test_partition_that_is_being_loaded(c: Coordinator) -> None:
    c.new_producer()
    c.log.committed[0] -= 1

    async def elect() -> None:
        c.transactions.on_resigned(0)
        c.transactions.on_elected(0, 3)
        c.transactions.on_elected(0, 3)

    c.run(elect())
    assert c.transactions.is_loading
    assert answers(c) == {E.COORDINATOR_LOAD_IN_PROGRESS}
    c.log.commit_all()
    c.advance(UNCOMMITTED_DELAY_MS)
    assert not c.transactions.is_loading
    assert c.init()[0] is E.NONE


def test_election_while_loading_for_another_one(c: Coordinator) -> None:
    """Somebody else may have written in between: what was read before is old."""
    c.new_producer()
    reads: list[int] = []
    c.log.on_read = reads.append

    async def elect() -> None:
        c.transactions.on_resigned(0)
        c.transactions.on_elected(0, 3)
        while not reads:  # noqa: ASYNC110  because nothing tells of it
            await asyncio.sleep(0)
        c.transactions.on_resigned(0)
        c.log.truncate(0, 0)
        c.transactions.on_elected(0, 3)

    c.run(elect())
    c.settle()
    assert c.transactions.find_transaction("tx")[0] is E.TRANSACTIONAL_ID_NOT_FOUND


def test_resignation_while_loading(c: Coordinator) -> None:
    async def elect() -> None:
        c.transactions.on_resigned(0)
        c.transactions.on_elected(0, 3)
        await asyncio.sleep(0)
        c.transactions.on_resigned(0)

    c.run(elect())
    c.settle()
    assert c.init()[0] is E.NOT_COORDINATOR


def test_one_log_that_is_not_committed_holds_up_no_other(make: MakeCoordinator) -> None:
    c = make(partitions=2)
    names = {c.transactions.partition_for(name): name for name in ("a", "b", "c", "d")}
    for name in names.values():
        c.new_producer(transactional_id=name)
    c.log.committed[0] -= 1

    async def elect() -> None:
        for index in (0, 1):
            c.transactions.on_resigned(index)
            c.transactions.on_elected(index, 3)

    c.run(elect())
    c.settle()
    assert c.init(transactional_id=names[1])[0] is E.NONE
    assert c.init(transactional_id=names[0])[0] is E.COORDINATOR_LOAD_IN_PROGRESS
    c.log.commit_all()
    c.advance(UNCOMMITTED_DELAY_MS)
    assert c.init(transactional_id=names[0])[0] is E.NONE


def test_stop_while_loading_waits_for_nobody(c: Coordinator) -> None:
    c.new_producer()
    c.log.committed[0] = 0

    async def elect() -> None:
        c.transactions.on_resigned(0)
        c.transactions.on_elected(0, 3)

    c.run(elect())
    c.settle()
    c.run(c.transactions.stop())
    c.advance(1_000)
    assert not c.transactions.is_loading


def test_partition_that_is_not_there_cannot_be_loaded(c: Coordinator) -> None:
    async def elect() -> None:
        c.transactions.on_elected(5, 3)

    c.run(elect())
    c.settle()
    assert c.transactions.stats.load_failures == 1


def test_topic_that_is_deleted_takes_all_with_it(c: Coordinator) -> None:
    producer = c.ongoing(A)
    c.run(c.controller.set_topics(topic_image("t", 1, 3)))
    assert c.add(producer, A) is E.NOT_COORDINATOR


def test_other_topics_do_not_matter(c: Coordinator) -> None:
    producer = c.ongoing(A)
    topics = [topic for name, topic in c.controller.image.topics.items() if name != "t"]
    c.run(c.controller.set_topics(*topics))
    assert c.add(producer, A) is E.NONE


def test_places_are_kafkas(make: MakeCoordinator) -> None:
    """`Utils.abs(id.hashCode()) % partitions`, by the topic if it is there, else as configured."""
    c = make(partitions=7)
    assert c.transactions.partition_for("my-transactional-id") == 959_806_496 % 7
    c.run(c.controller.set_topics())
    assert c.transactions.partition_for("my-transactional-id") == 959_806_496 % 50


def test_topic_is_created(c: Coordinator) -> None:
    c.run(c.controller.set_topics())
    c.run(c.transactions.ensure_topic())
    assert TRANSACTION_TOPIC in c.controller.image.topics
    c.run(c.controller.set_topics())
    c.controller.refuse_with = E.INVALID_REPLICATION_FACTOR
    with pytest.raises(ApiError):
        c.run(c.transactions.ensure_topic())


def test_version_is_asked_for_every_time(c: Coordinator) -> None:
    assert c.transactions.transaction_version() == 2
    c.set_version(1)
    assert c.transactions.transaction_version() == 1
    object.__setattr__(c.controller.image, "features", {})
    assert c.transactions.transaction_version() == 0


def test_lists_and_counts(make: MakeCoordinator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator, "_LISTED_PER_SLICE", 2)
    c = make(partitions=3)
    for number in range(9):
        c.init(transactional_id=f"a{number}")
    producer = c.ongoing(A, B)
    c.end(producer)
    names: list[str] = []

    async def collect() -> None:
        names.extend([m.transactional_id async for m in c.transactions.transactions()])

    c.run(collect())
    assert sorted(names) == [*(f"a{number}" for number in range(9)), "tx"]
    assert c.state_counts() == {S.EMPTY: 9, S.COMPLETE_COMMIT: 1}
    stats = c.transactions.stats
    assert (stats.loaded_partitions, stats.loaded_records) == (3, 0)
    c.advance(2 * DEFER_MS)
    c.crash()
    assert c.transactions.stats.loaded_records == 13
