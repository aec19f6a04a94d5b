from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from pipeline.plan.piece import BrokerPiece
from pipeline.read.broker.errors import BrokerError
from pipeline.read.broker.rows import BrokerRows
from pipeline.read.decode.row_decoder import RowDecoder
from pipeline.read.loss import LossReport
from pipeline.read.read_errors import DamagedDataError, LostOffsetsError
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.records.batch import update_crc
from protocol.records.builder import build_batch
from tests.fakes.kafka.memory_cluster import Drop
from tests.unit.pipeline.read.broker.test_client import World


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    world.cluster.add_topic("t")
    yield world
    world.client.close()


def reader_of(
    world: World,
    start: int,
    end: int,
    loss: LossReport | None = None,
    *,
    read_committed: bool = False,
    **changes: Any,
) -> BrokerRows:
    piece = BrokerPiece(world.name("t"), -1, start, end)._replace(**changes)
    decoder = RowDecoder(["offset", "value", "tier"], piece.partition, tier="broker")
    return BrokerRows(
        piece, world.client, decoder, world.clock, loss, read_committed=read_committed
    )


def offsets_of(world: World, *arguments: Any, **options: Any) -> list[int]:
    reader = reader_of(world, *arguments, **options)
    offsets = [offset for rows in reader.rows() for offset in rows.column(0).to_pylist()]
    assert reader.next_offset >= arguments[1]
    return offsets


def test_rows_of_the_range_and_no_others(world: World) -> None:
    world.write("t", count=20)
    assert offsets_of(world, 3, 15) == [*range(3, 15)]
    assert offsets_of(world, 0, 20) == [*range(20)]
    assert offsets_of(world, 5, 5) == []


def test_rows_within_batches_are_cut(world: World) -> None:
    records = [(None, b"%d" % number, (), 0) for number in range(10)]
    for base in range(0, 50, 10):
        world.cluster.append("t", 0, build_batch(records, base_offset=base, codec=4))
    assert offsets_of(world, 13, 36) == [*range(13, 36)]


def test_rows_say_where_they_were_read(world: World) -> None:
    world.write("t")
    (rows,) = reader_of(world, 0, 1).rows()
    assert rows.column(2).to_pylist() == ["broker"]
    assert rows.column(1).to_pylist() == [b"0"]


def test_many_answers_are_one_piece_and_the_next_is_asked_for_ahead(world: World) -> None:
    world.write("t", count=50)
    world.client.options = world.client.options._replace(fetch_max_bytes=300)
    rows = reader_of(world, 0, 50).rows()
    next(rows)
    assert world.cluster.count(ApiKey.FETCH) == 2
    for _ in rows:
        pass
    assert offsets_of(world, 0, 50) == [*range(50)]


def test_nothing_beyond_the_range_is_asked_for(world: World) -> None:
    world.write("t", count=50)
    offsets_of(world, 0, 10)
    assert world.cluster.count(ApiKey.FETCH) == 1


def test_a_batch_larger_than_an_answer_is_asked_for_whole(world: World) -> None:
    world.cluster.append("t", 0, build_batch([(None, bytes(5000), (), 0)]))
    world.client.options = world.client.options._replace(fetch_max_bytes=100)
    assert offsets_of(world, 0, 1) == [0]
    # And where the broker cuts it all the same.
    fake = world.cluster._fetch_one

    def cut(told: Any, *arguments: Any, **options: Any) -> None:
        fake(told, *arguments, **options)
        told.records = told.records[: arguments[2].partition_max_bytes]

    world.cluster._fetch_one = cut  # type: ignore[method-assign]  # as brokers before KIP-74
    assert offsets_of(world, 0, 1) == [0]


def test_aborted_rows_are_out_when_committed_ones_are_wanted(world: World) -> None:
    world.write("t", count=2)
    world.write("t", count=3, producer_id=7, transactional=True)
    world.write("t", producer_id=7, transactional=True, control=True)
    world.write("t", count=2, producer_id=7, transactional=True)
    world.write("t", producer_id=7, transactional=True, control=True)
    world.cluster.partition("t").aborted = [(7, 2, 5)]
    assert offsets_of(world, 0, 9) == [0, 1, 2, 3, 4, 6, 7]
    assert offsets_of(world, 0, 9, read_committed=True) == [0, 1, 6, 7]
    assert offsets_of(world, 3, 9, read_committed=True) == [6, 7]
    world.client.options = world.client.options._replace(fetch_max_bytes=80)
    assert offsets_of(world, 0, 9, read_committed=True) == [0, 1, 6, 7]


def test_offsets_that_were_compacted_away_are_no_loss(world: World) -> None:
    world.write("t", count=10)
    log = world.cluster.partition("t")
    del log.batches[3:8]
    assert offsets_of(world, 0, 10) == [0, 1, 2, 8, 9]
    assert offsets_of(world, 4, 7) == []


@pytest.mark.parametrize("read_committed", [False, True])
def test_a_range_may_end_with_nothing_but_what_was_compacted_away(
    world: World, *, read_committed: bool
) -> None:
    """A consumer would wait for the next record; a range has an end."""
    world.write("t", count=10)
    del world.cluster.partition("t").batches[6:]
    assert offsets_of(world, 0, 10, read_committed=read_committed) == [*range(6)]
    assert offsets_of(world, 7, 9, read_committed=read_committed) == []
    world.cluster.partition("t").batches.clear()
    assert offsets_of(world, 0, 10, read_committed=read_committed) == []
    assert world.clock.monotonic_ms() < 5_000


def test_what_may_not_be_read_yet_is_not_compacted_away(world: World) -> None:
    """The last stable offset rises while it is waited for."""
    world.write("t", count=10)
    log = world.cluster.partition("t")
    log.stable_end = 4
    fake = world.cluster._fetch_one
    asked = 0

    def later(*arguments: Any, **options: Any) -> None:
        nonlocal asked
        asked += 1
        log.stable_end = 10 if asked > 20 else 4
        fake(*arguments, **options)

    world.cluster._fetch_one = later  # type: ignore[method-assign]  # a transaction that ends
    assert offsets_of(world, 0, 10, read_committed=True) == [*range(10)]


def test_old_brokers_have_no_remote_storage(world: World) -> None:
    """They do not know how to be asked for it, either."""
    world.cluster.versions[ApiKey.LIST_OFFSETS] = (1, 7)
    world.write("t", count=10)
    del world.cluster.partition("t").batches[6:]
    assert offsets_of(world, 0, 10) == [*range(6)]


def test_a_leader_that_changes_meanwhile_is_followed(world: World) -> None:
    world.write("t", count=50)
    world.client.options = world.client.options._replace(fetch_max_bytes=300)
    world.cluster.fail(ApiKey.FETCH, ErrorCode.NOT_LEADER_OR_FOLLOWER, times=2)
    world.cluster.fail(ApiKey.FETCH, Drop.CONNECTION)
    assert offsets_of(world, 0, 50) == [*range(50)]


def test_empty_answers_are_borne_for_a_while(world: World) -> None:
    """Remote storage is slow."""
    world.write("t", count=5)
    world.cluster.partition("t").local_start = 5
    world.cluster.fail(ApiKey.FETCH, Drop.EMPTY, times=20)
    assert offsets_of(world, 0, 5) == [*range(5)]


def test_nothing_but_empty_answers_is_an_error_and_no_loss(world: World) -> None:
    world.write("t", count=5)
    world.cluster.partition("t").local_start = 5
    world.cluster.fail(ApiKey.FETCH, Drop.EMPTY, times=10_000)
    handle = world.cluster.handle

    def slow(node: int, frame: bytes) -> Any:
        world.clock.advance(500)
        return handle(node, frame)

    world.cluster.handle = slow  # type: ignore[method-assign]  # each answer takes its time
    loss = LossReport(world.name("t"))
    with pytest.raises(BrokerError, match="the leader gives no batch from offset 0 for"):
        offsets_of(world, 0, 5, loss)
    assert loss.offsets == 0


# -- what is gone ---------------------------------------------------------------------------------


def test_a_log_that_starts_later_has_lost_what_is_below(world: World) -> None:
    world.write("t", count=10)
    world.cluster.partition("t").start = 4
    with pytest.raises(LostOffsetsError, match="t-0: offsets 0 to 3 are lost: the log starts at 4"):
        offsets_of(world, 0, 10)
    loss = LossReport(world.name("t"))
    assert offsets_of(world, 0, 10, loss) == [*range(4, 10)]
    assert [(one.start, one.end) for one in loss.ranges] == [(0, 4)]
    assert offsets_of(world, 0, 3, LossReport(world.name("t"))) == []


def test_a_log_that_ends_earlier_has_lost_what_is_above(world: World) -> None:
    """As a node that was restored."""
    world.write("t", count=10)
    with pytest.raises(LostOffsetsError, match="offsets 10 to 19 are lost: the log ends at 10"):
        list(reader_of(world, 5, 20).rows())
    loss = LossReport(world.name("t"))
    assert offsets_of(world, 15, 20, loss) == []
    assert [(one.start, one.end) for one in loss.ranges] == [(15, 20)]


def test_a_topic_that_was_deleted_has_lost_all(world: World) -> None:
    world.write("t", count=10)
    reader = reader_of(world, 0, 10)
    del world.cluster.topics["t"]
    with pytest.raises(LostOffsetsError, match="topic t does not exist any more"):
        list(reader.rows())


def test_a_topic_that_was_made_anew_is_another(world: World) -> None:
    world.write("t", count=10)
    reader = reader_of(world, 0, 10)
    world.cluster.topics["t"].topic_id = UUID(int=999)
    with pytest.raises(LostOffsetsError, match="was deleted and recreated"):
        list(reader.rows())


def test_a_leader_that_contradicts_itself_is_an_error_at_last(world: World) -> None:
    world.write("t", count=10)
    world.cluster.fail(ApiKey.FETCH, ErrorCode.OFFSET_OUT_OF_RANGE, times=2)
    assert offsets_of(world, 0, 10) == [*range(10)]
    world.cluster.fail(ApiKey.FETCH, ErrorCode.OFFSET_OUT_OF_RANGE, times=3)
    with pytest.raises(BrokerError, match="OFFSET_OUT_OF_RANGE"):
        offsets_of(world, 0, 10)


# -- damage ---------------------------------------------------------------------------------------


def spoil(world: World, number: int, position: int) -> None:
    log = world.cluster.partition("t")
    data = bytearray(log.batches[number])
    data[position] ^= 1
    log.batches[number] = bytes(data)


def test_a_batch_that_fails_its_sum_is_damage(world: World) -> None:
    world.write("t", count=10)
    spoil(world, 4, 65)
    with pytest.raises(DamagedDataError, match="t-0, fetched from offset 0 at byte") as error:
        offsets_of(world, 0, 10)
    assert error.value.position == sum(map(len, world.cluster.partition("t").batches[:4]))
    loss = LossReport(world.name("t"))
    assert offsets_of(world, 0, 10, loss) == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    assert [(one.start, one.end) for one in loss.ranges] == [(4, 5)]


def test_broken_batches_one_after_the_other_are_each_left_out(world: World) -> None:
    world.write("t", count=10)
    for number in (0, 1, 9):
        spoil(world, number, 65)
    loss = LossReport(world.name("t"))
    assert offsets_of(world, 0, 10, loss, read_committed=True) == [*range(2, 9)]
    assert loss.offsets == 3


def test_a_batch_with_an_impossible_length_is_damage(world: World) -> None:
    world.write("t", count=3)
    log = world.cluster.partition("t")
    bad = bytearray(log.batches[1])
    bad[8:12] = bytes(4)
    log.batches[1] = bytes(bad)
    with pytest.raises(DamagedDataError, match="a batch claims 12 bytes"):
        offsets_of(world, 0, 3)


def test_batches_that_were_known_are_not_asked_for_for_ever(world: World) -> None:
    world.write("t", count=3)
    old = world.cluster.partition("t").batches[0]
    fake = world.cluster._fetch_one

    def stale(told: Any, *arguments: Any, **options: Any) -> None:
        fake(told, *arguments, **options)
        told.records = old

    world.cluster._fetch_one = stale  # type: ignore[method-assign]  # a broker with a fault
    with pytest.raises(DamagedDataError, match="came again"):
        offsets_of(world, 0, 3)


def test_records_that_are_none_are_damage(world: World) -> None:
    world.write("t", count=3)
    log = world.cluster.partition("t")
    bad = bytearray(log.batches[1])
    bad[61] = 0x7F
    update_crc(memoryview(bad), 0, len(bad))
    log.batches[1] = bytes(bad)
    with pytest.raises(DamagedDataError, match="fetched from offset 0"):
        offsets_of(world, 0, 3)
