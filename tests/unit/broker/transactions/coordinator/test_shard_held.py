"""Complete records that are held: what is written with them, when at the latest, after what."""

import pytest

from broker.coordinator.deferred_records import DEFER_MS
from broker.coordinator.shard_log import HELD_MAX
from broker.transactions.coordinator.transaction_state import TransactionState as S
from protocol.error_codes import ErrorCode
from protocol.records.batch import read_header
from storage.types.topic_partition import TopicPartition
from tests.harness.transactions import OFFSETS, A, B, Coordinator
from tests.unit.broker.transactions.conftest import MakeCoordinator

E = ErrorCode


def counts(c: Coordinator) -> list[int]:
    """Records of each batch in the log."""
    return [read_header(memoryview(batch)).records_count for batch in c.log.batches[0]]


def test_the_end_and_the_next_beginning_are_one_batch(c: Coordinator) -> None:
    producer = c.ongoing(A)
    _, producer = c.end(producer)
    assert c.log.states() == [S.EMPTY, S.ONGOING, S.PREPARE_COMMIT]
    c.write(producer, B)
    c.end(producer, commit=False)
    assert counts(c) == [1, 1, 1, 2, 1]
    assert c.log.states()[3:] == [S.COMPLETE_COMMIT, S.ONGOING, S.PREPARE_ABORT]
    c.advance(2 * DEFER_MS)
    assert c.log.states()[6:] == [S.COMPLETE_ABORT]


def test_an_application_that_commits_ten_times_a_second(c: Coordinator) -> None:
    """As Kafka Streams does: no transaction's end takes an append of its own."""
    producer = c.new_producer()
    for _ in range(5):
        c.write(producer, A)
        _, producer = c.end(producer)
        c.advance(100)
    assert counts(c) == [1, 1, 1, *[2, 1] * 4]


def test_others_take_it_along(c: Coordinator) -> None:
    """Of whatever transactional id the log's next record is."""
    c.end(c.ongoing(A))
    c.new_producer(transactional_id="other")
    assert counts(c) == [1, 1, 1, 2]
    assert [name for name, _ in c.log.values()][-2:] == ["tx", "other"]


def test_a_clean_stop_leaves_nothing_to_do(c: Coordinator) -> None:
    c.end(c.ongoing(A))
    c.run(c.transactions.stop())
    assert c.log.states()[-1] is S.COMPLETE_COMMIT


@pytest.mark.parametrize("version", [0, 2])
def test_death_before_it_was_written(make: MakeCoordinator, version: int) -> None:
    """The next process ends the transaction once more; nobody can tell."""
    c = make(version=version)
    producer = c.ongoing(A, OFFSETS)
    told = c.end(producer)
    assert c.log.states()[-1] is S.PREPARE_COMMIT
    c.crash()
    assert c.state is S.COMPLETE_COMMIT
    assert c.end(producer) == told
    assert c.data.committed == {A: {"x"}, OFFSETS: {"x"}}
    assert c.data.aborted == {}


def test_refused_with_the_next_beginning(c: Coordinator) -> None:
    """Neither is written, and the first stays first."""
    _, producer = c.end(c.ongoing(A))
    c.log.fail_next = [E.NOT_LEADER_OR_FOLLOWER]
    assert c.add(producer, A) is E.NOT_COORDINATOR
    assert c.state is S.COMPLETE_COMMIT
    assert c.log.states()[-1] is S.PREPARE_COMMIT
    c.write(producer, B)
    assert counts(c)[-1] == 2
    assert c.log.states()[-2:] == [S.COMPLETE_COMMIT, S.ONGOING]
    c.advance(10 * DEFER_MS)
    assert c.log.states()[-1] is S.ONGOING


def test_outcome_that_nobody_knows_is_read_from_the_log(c: Coordinator) -> None:
    _, producer = c.end(c.ongoing(A))
    c.log.time_out = True

    async def add() -> None:
        assert c.add(producer, A) is E.COORDINATOR_NOT_AVAILABLE

    c.run(add())
    c.log.time_out = False
    c.log.commit_all()
    c.advance(100)
    assert c.state is S.ONGOING
    assert c.log.states()[-2:] == [S.COMPLETE_COMMIT, S.ONGOING]


def test_as_many_as_a_batch_should_have(c: Coordinator) -> None:
    """A coordinator that finds thousands of prepared transactions does not gather them all."""
    c.data.hold = True
    names = [f"{number}" for number in range(HELD_MAX + 1)]
    for name in names:
        producer = c.new_producer(transactional_id=name)
        assert c.add(producer, A, transactional_id=name) is E.NONE
        c.end(producer, transactional_id=name)
    before = len(counts(c))
    c.data.release()
    assert counts(c)[before:] == [HELD_MAX]
    c.advance(2 * DEFER_MS)
    assert counts(c)[before:] == [HELD_MAX, 1]


@pytest.mark.parametrize("refused", [False, True])
def test_a_large_record_goes_by_itself(c: Coordinator, refused: bool) -> None:
    """Together they might be more than a batch may have. Refused, both are refused."""
    _, producer = c.end(c.ongoing(A))
    names = ["n" * 240 + str(number) for number in range(300)]
    many = [TopicPartition(name, index) for name in names for index in range(3)]
    if refused:
        c.log.fail_next = [E.NOT_ENOUGH_REPLICAS] * 2
        assert c.add(producer, *many) is E.COORDINATOR_NOT_AVAILABLE
        assert c.log.states()[-1] is S.PREPARE_COMMIT
    assert c.add(producer, *many) is E.NONE
    assert counts(c)[-2:] == [1, 1]
    assert c.log.states()[-2:] == [S.COMPLETE_COMMIT, S.ONGOING]


def complete_together(c: Coordinator, count: int) -> list[str]:
    """So many Complete records are held; the names of their transactional ids."""
    c.data.hold = True
    names = [f"{number}" for number in range(count)]
    for name in names:
        producer = c.new_producer(transactional_id=name)
        assert c.add(producer, A, transactional_id=name) is E.NONE
        c.end(producer, transactional_id=name)
    c.data.release()
    c.data.hold = False
    return names


@pytest.mark.parametrize("size_max", [200, 300, 1_000])
def test_more_than_the_topic_allows(c: Coordinator, size_max: int) -> None:
    """`max.message.bytes` may be small, or become so: each record fits by itself."""
    names = complete_together(c, 20)
    before = len(c.log.values())
    c.log.size_max = size_max
    producer = c.new_producer(transactional_id="other")
    assert [name for name, _ in c.log.values()][before:] == [*names, "other"]
    assert c.add(producer, A, transactional_id="other") is E.NONE
    c.advance(2 * DEFER_MS)
    assert len(c.log.values()) == before + len(names) + 2


def test_more_than_the_topic_allows_while_nothing_is_accepted(c: Coordinator) -> None:
    """What was refused halfway keeps its place, and whatever comes after it waits."""
    names = complete_together(c, 20)
    before = len(c.log.values())
    c.log.size_max = 600
    # All, half of them, and so on: the first that would fit is refused for another reason.
    c.log.fail_next = [E.MESSAGE_TOO_LARGE] * 3 + [E.NOT_LEADER_OR_FOLLOWER]
    code, _ = c.init(transactional_id="other")
    assert code is E.UNKNOWN_SERVER_ERROR
    assert len(c.log.values()) == before
    c.advance(2 * DEFER_MS)
    c.new_producer(transactional_id="other")
    assert [name for name, _ in c.log.values()][before:] == [*names, "other"]


def test_disk_that_fails_halfway(c: Coordinator) -> None:
    """Nothing is written by a shard that has been given up."""
    complete_together(c, 20)
    before = c.log.appends
    c.log.fail_next = [E.MESSAGE_TOO_LARGE, E.KAFKA_STORAGE_ERROR]
    assert c.init(transactional_id="other")[0] is E.NOT_COORDINATOR
    assert c.log.appends == before


def test_disk_that_fails_before_a_large_record(c: Coordinator) -> None:
    _, producer = c.end(c.ongoing(A))
    names = ["n" * 240 + str(number) for number in range(300)]
    before = c.log.appends
    c.log.fail_next = [E.KAFKA_STORAGE_ERROR]
    assert c.add(producer, *(TopicPartition(name, 0) for name in names)) is E.NOT_COORDINATOR
    assert c.log.appends == before
