"""A fetcher's rounds: what it asks for, what it appends, what it does about errors."""

import errno
from collections.abc import Callable

import pytest

from broker.replication.fetcher.followed_partition import FollowedState
from broker.replication.fetcher.replica_fetcher import SLICE_MS
from broker.replication.fetcher.session import CATCH_UP_BYTES
from config.kinds import LONG_MAX
from protocol.error_codes import ErrorCode
from protocol.hot.fetch import FetchRequest
from protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from protocol.messages.list_offsets import encode_response as encode_list_offsets
from storage.errors import DiskError
from tests.fakes.network.peers import SentRequest, answer_to, requests_of
from tests.unit.broker.replication.fetcher.fetcher_world import (
    BROKER_EPOCH,
    EPOCH,
    ME,
    OTHER,
    FakeFollower,
    FetcherWorld,
    asked,
    data,
    forgotten,
    records_at,
)

EIO = DiskError("the disk has failed", "/data", errno.EIO)
ENOSPC = DiskError("no room", "/data", errno.ENOSPC)


async def test_round_fetches_appends_and_asks_for_what_follows() -> None:
    """By topic id, as replica, with its broker epoch; only what has changed is named again."""
    world = FetcherWorld()
    quiet, busy = FakeFollower(0), FakeFollower(1)
    world.follow(quiet, busy)
    world.connected()
    request, fetch = world.one_sent()
    assert (fetch.replica_id, fetch.replica_epoch) == (ME, BROKER_EPOCH)
    assert (fetch.session_id, fetch.session_epoch) == (0, 0)
    assert (fetch.max_wait_ms, fetch.min_bytes, fetch.max_bytes) == (500, 1, 10_485_760)
    assert asked(fetch) == {0: (0, EPOCH, -1), 1: (0, EPOCH, -1)}
    world.answer(
        request, data(0), data(1, records_at(0, b"a", b"b"), high_watermark=1), session_id=9
    )
    assert (busy.end, busy.log.high_watermark, quiet.end) == (2, 1, 0)
    request, fetch = world.one_sent()
    assert (fetch.session_id, fetch.session_epoch) == (9, 1)
    assert asked(fetch) == {1: (2, EPOCH, EPOCH)}
    world.answer(request, data(1, high_watermark=2), session_id=9)
    assert busy.log.high_watermark == 2
    _, fetch = world.one_sent()
    assert fetch.session_epoch == 2
    assert asked(fetch) == {}


async def test_partitions_of_one_turn_are_one_request() -> None:
    """Also a thousand that come to a leader at once."""
    world = FetcherWorld()
    world.follow(*(FakeFollower(index) for index in range(50)))
    world.connected()
    _, fetch = world.one_sent()
    assert list(asked(fetch)) == list(range(50))


async def test_newcomer_does_not_wait_for_the_request_under_way() -> None:
    """A second request behind it names it; after that there is one at a time again."""
    world = FetcherWorld()
    waiting = world.following(FakeFollower(0))
    world.follow(FakeFollower(1))
    second, fetch = world.one_sent()
    assert fetch.session_epoch == 2
    assert asked(fetch) == {1: (0, EPOCH, -1)}
    world.follow(FakeFollower(2))
    assert world.sent() == [], "two at most"
    world.answer(waiting)
    third, fetch = world.one_sent()
    assert asked(fetch) == {2: (0, EPOCH, -1)}
    world.answer(second)
    assert world.sent() == []
    world.answer(third)
    _, fetch = world.one_sent()
    assert (fetch.session_epoch, asked(fetch)) == (4, {})


async def test_two_answers_may_come_at_once() -> None:
    """The second waits until the first is appended; neither is lost."""
    world = FetcherWorld()
    partition, newcomer = FakeFollower(0), FakeFollower(1)
    partition.settles_later = True
    waiting = world.following(partition)
    world.follow(newcomer)
    second, _ = world.one_sent()
    assert world.stream is not None
    both = world.frame(waiting, data(0, records_at(0, b"a")))
    both += world.frame(second, data(1, records_at(0, b"b")))
    world.receive(world.stream, both)
    assert (partition.end, newcomer.end) == (1, 0)
    partition.unsettled[0](None)
    assert newcomer.end == 1
    assert asked(world.sent()[-1][1])[1][0] == 1


async def test_log_that_is_cut_again_and_again_waits_longer_each_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A leader that gives what it then denies is not asked in a circle, nor told of each time."""
    world = FetcherWorld()
    partition = FakeFollower(0)
    partition.lead(b"a", epoch=3)
    partition.log.update_high_watermark(1)
    waiting = world.following(partition)
    rounds, now_ms = 0, world.timer.clock.monotonic_ms()
    while world.timer.clock.monotonic_ms() - now_ms < 20_000:
        for request, fetch in [*world.sent(), *([(waiting, None)] if not rounds else [])]:
            if fetch is None or (0 in asked(fetch) and partition.end):
                world.answer(request, data(0, diverging=(3, 0)))
                rounds += 1
            elif 0 in asked(fetch):
                world.answer(request, data(0, records_at(0, b"a", epoch=4), high_watermark=1))
            else:
                world.answer(request)
        await world.turns()
        world.timer.advance(5)
    assert 15 <= partition.truncations <= 40
    lines = [line for line in caplog.messages if "are truncated" in line]
    assert 1 <= len(lines) <= 7
    assert world.stats.truncations == partition.truncations


async def test_records_that_come_twice_are_dropped() -> None:
    """The second request had left before the answer to the first was appended."""
    world = FetcherWorld()
    partition = FakeFollower(0)
    waiting = world.following(partition)
    world.follow(FakeFollower(1))
    second, _ = world.one_sent()
    world.answer(waiting, data(0, records_at(0, b"a", b"b")))
    assert partition.end == 2
    _third, fetch = world.one_sent()
    assert asked(fetch) == {0: (2, EPOCH, EPOCH)}
    world.answer(second, data(0, records_at(0, b"a", b"b"), high_watermark=2))
    assert (partition.end, partition.log.high_watermark) == (2, 2)
    assert world.stats.late_records == 1
    assert world.stats.corrupt_batches == 0
    world.answer(_third, data(0, records_at(2, b"c")))
    assert partition.end == 3


async def test_long_answer_lets_the_loop_turn() -> None:
    """After 2 ms; the next request leaves when the last slice is done."""
    world = FetcherWorld()
    clock = world.timer.clock
    partitions = [FakeFollower(index) for index in range(5)]
    waiting = world.following(*partitions)
    turns: list[int] = []
    for partition in partitions:
        partition.cost = lambda: clock.advance(SLICE_MS / 2)
    call_soon = world.poller.call_soon

    def next_turn(callback: Callable[..., object], *args: object) -> None:
        turns.append(sum(p.end for p in partitions))
        call_soon(callback, *args)

    world.poller.call_soon = next_turn  # type: ignore[method-assign]  # to see the turns
    fetched = (data(index, records_at(0, b"x")) for index in range(5))
    world.answer(waiting, *fetched)
    assert turns == [2, 4]
    assert [p.end for p in partitions] == [1] * 5
    assert len(asked(world.one_sent()[1])) == 5


async def test_partition_that_is_far_behind_is_fetched_in_small_pieces() -> None:
    """It shares its answers with what is in sync; once it is, it may have all there is."""
    world = FetcherWorld()
    behind, beside = FakeFollower(0), FakeFollower(1)
    waiting = world.following(behind, beside)
    many = records_at(0, bytes(CATCH_UP_BYTES))
    world.answer(waiting, data(0, many, high_watermark=9), data(1, records_at(0, b"x")))
    waiting, fetch = world.one_sent()
    assert most_bytes(fetch) == {0: CATCH_UP_BYTES, 1: 1 << 20}
    world.answer(waiting, data(0, records_at(1, bytes(CATCH_UP_BYTES)), high_watermark=2))
    _, fetch = world.one_sent()
    assert most_bytes(fetch) == {0: 1 << 20}


async def test_answer_of_a_partition_that_catches_up_takes_half_a_slice() -> None:
    world = FetcherWorld()
    clock = world.timer.clock
    partitions = [FakeFollower(index) for index in range(3)]
    waiting = world.following(*partitions)
    many = records_at(0, bytes(CATCH_UP_BYTES))
    world.answer(waiting, *(data(index, many, high_watermark=9) for index in range(3)))
    waiting, _ = world.one_sent()
    turns: list[int] = []
    for partition in partitions:
        partition.cost = lambda: clock.advance(SLICE_MS / 2)
    call_soon = world.poller.call_soon

    def next_turn(callback: Callable[..., object], *args: object) -> None:
        turns.append(sum(p.end for p in partitions))
        call_soon(callback, *args)

    world.poller.call_soon = next_turn  # type: ignore[method-assign]  # to see the turns
    world.answer(waiting, *(data(index, records_at(1, b"x")) for index in range(3)))
    # The next request leaves in the turn of the last partition, however long that took.
    assert turns == [4, 5]
    assert len(asked(world.one_sent()[1])) == 3


def most_bytes(fetch: FetchRequest) -> dict[int, int]:
    """What a request allows for each partition that it names."""
    return {one.partition: one.max_bytes for topic in fetch.topics for one in topic.partitions}


async def test_next_request_waits_until_all_is_settled() -> None:
    """By its offsets the leader counts the records as written, and flushed where that is asked."""
    world = FetcherWorld()
    slow, quick = FakeFollower(0), FakeFollower(1)
    slow.settles_later = True
    waiting = world.following(slow, quick)
    world.answer(
        waiting,
        data(0, records_at(0, b"a"), high_watermark=1),
        data(1, records_at(0, b"b"), high_watermark=1),
    )
    assert (slow.end, quick.log.high_watermark, slow.log.high_watermark) == (1, 1, 0)
    assert world.sent() == []
    slow.unsettled[0](None)
    assert slow.log.high_watermark == 1
    assert asked(world.one_sent()[1]) == {1: (1, EPOCH, EPOCH), 0: (1, EPOCH, EPOCH)}


async def test_throttled_partition_that_is_behind_waits_for_the_quota() -> None:
    """Its leader forgets it meanwhile, and would else send the same again; others go on."""
    world = FetcherWorld()
    slow, other = FakeFollower(0), FakeFollower(1)
    throttled = slow.log.config.model_copy(
        update={"follower_replication_throttled_replicas": (f"0:{ME}",)}
    )
    slow.log.update_config(throttled)
    quota = world.quota
    quota.set_rate(10)
    waiting = world.following(slow, other)
    records = records_at(0, b"a" * 1000)
    world.answer(waiting, data(0, records, high_watermark=5))
    request, fetch = world.one_sent()
    assert 0 not in asked(fetch)
    assert fetch.forgotten
    assert quota.held_back == 1
    # What is in sync is not held back: it has nothing more to get.
    world.answer(request, data(1, records_at(0, b"b"), high_watermark=1))
    request, fetch = world.one_sent()
    assert asked(fetch) == {1: (1, EPOCH, EPOCH)}
    quota.set_rate(LONG_MAX)
    world.timer.advance(1_001)
    await world.turns()
    _, fetch = world.one_sent()
    assert asked(fetch) == {0: (1, EPOCH, EPOCH)}


async def test_unfollowed_partition_is_forgotten() -> None:
    """What comes for it is dropped; the others go on."""
    world = FetcherWorld()
    gone, stays = FakeFollower(0), FakeFollower(1)
    waiting = world.following(gone, stays)
    world.fetchers.unfollow(gone)
    world.fetchers.unfollow(gone)
    world.answer(waiting, data(0, records_at(0, b"a")), data(1, records_at(0, b"b")))
    assert (gone.end, stays.end) == (0, 1)
    _, fetch = world.one_sent()
    assert forgotten(fetch) == [0]
    assert [one.partition.topic_partition.partition for one in world.fetchers.followed] == [1]


async def test_answers_for_an_earlier_role_are_dropped() -> None:
    """Also when its fetcher has not been told yet."""
    world = FetcherWorld()
    partition = FakeFollower(0)
    waiting = world.following(partition)
    partition.role_number += 1
    world.answer(waiting, data(0, records_at(0, b"a"), high_watermark=1))
    assert (partition.end, partition.log.high_watermark) == (0, 0)


async def test_partition_moves_to_another_leader() -> None:
    """In its new epoch, over another connection."""
    world = FetcherWorld()
    partition = FakeFollower(0)
    waiting = world.following(partition)
    old = world.stream
    partition.role_number += 1
    partition.leader_epoch = EPOCH + 1
    world.follow(partition, leader_id=OTHER)
    assert world.connector.connects[-1].host == "b3"
    world.connected(fd=101)
    assert asked(world.one_sent()[1]) == {0: (0, EPOCH + 1, -1)}
    world.stream = old
    world.answer(waiting, data(0, records_at(0, b"a")))
    assert partition.end == 0


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER])
async def test_leader_that_has_not_heard_is_asked_again_soon(code: ErrorCode) -> None:
    """20 ms later, then twice as long, up to the back-off; the other partitions are fetched."""
    world = FetcherWorld(backoff_ms=100)
    partition, other = FakeFollower(0), FakeFollower(1)
    waiting = world.following(partition, other)
    waits = []
    for _ in range(5):
        world.answer(waiting, data(0, error=code))
        waiting, fetch = world.one_sent()
        assert forgotten(fetch) == [0]
        waited = 0
        while not (again := world.sent()):
            world.timer.advance(10)
            waited += 10
        waits.append(waited)
        ((second, fetch),) = again
        assert asked(fetch) == {0: (0, EPOCH, -1)}
        world.answer(waiting)
        waiting = second
    assert waits == [20, 40, 80, 100, 100]
    world.answer(waiting, data(0, records_at(0, b"a")))
    assert partition.end == 1


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.FENCED_LEADER_EPOCH,
    ],
)
async def test_other_errors_wait_for_the_back_off(code: ErrorCode) -> None:
    """`replica.fetch.backoff.ms`; a new image ends that earlier."""
    world = FetcherWorld(backoff_ms=1000)
    waiting = world.following(FakeFollower(0), FakeFollower(1))
    world.answer(waiting, data(0, error=code))
    world.one_sent()
    world.timer.advance(990)
    assert world.sent() == []
    world.timer.advance(20)
    assert asked(world.one_sent()[1]) == {0: (0, EPOCH, -1)}
    assert world.stats.partition_errors == 1
    assert world.stats.moved_to_remote == 0


async def test_damaged_records_are_never_appended() -> None:
    """Counted, tried again later; other replicas are unharmed."""
    world = FetcherWorld()
    partition, other = FakeFollower(0), FakeFollower(1)
    waiting = world.following(partition, other)
    bad = bytearray(records_at(0, b"abc"))
    bad[-1] ^= 1
    world.answer(waiting, data(0, bytes(bad)), data(1, records_at(0, b"x")))
    assert (partition.end, other.end) == (0, 1)
    assert world.stats.corrupt_batches == 1
    first, _ = world.one_sent()
    world.timer.advance(1010)
    second, fetch = world.one_sent()
    assert asked(fetch) == {0: (0, EPOCH, -1)}
    world.answer(first)
    world.answer(second, data(0, records_at(0, b"abc")))
    assert partition.end == 1


async def test_failed_disk_ends_its_partitions_alone() -> None:
    """In place or by a thread; they are counted."""
    world = FetcherWorld()
    failed, later, stays = FakeFollower(0), FakeFollower(1), FakeFollower(2)
    failed.error = EIO
    later.settles_later = True
    waiting = world.following(failed, later, stays)
    world.answer(waiting, *(data(index, records_at(0, b"a")) for index in range(3)))
    later.unsettled[0](EIO)
    request, fetch = world.one_sent()
    assert asked(fetch) == {2: (1, EPOCH, EPOCH)}
    assert sorted(forgotten(fetch)) == [0, 1]
    assert world.fetchers.failed_partitions == 2
    world.timer.advance(10_000)
    world.answer(request, data(2, records_at(1, b"b")))
    assert stays.end == 2


async def test_full_disk_is_tried_again() -> None:
    """It is no failed one."""
    world = FetcherWorld()
    partition = FakeFollower(0)
    partition.error = ENOSPC
    waiting = world.following(partition)
    world.answer(waiting, data(0, records_at(0, b"a")))
    assert world.fetchers.failed_partitions == 0
    partition.error = None
    world.timer.advance(1010)
    request, _ = world.sent()[-1]
    world.answer(request, data(0, records_at(0, b"a")))
    assert partition.end == 1


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    ],
)
async def test_lost_session_is_opened_again_at_once(code: ErrorCode) -> None:
    """With all partitions; if that fails too, after a pause."""
    world = FetcherWorld()
    waiting = world.following(FakeFollower(0), FakeFollower(1))
    world.answer(waiting, error_code=int(code))
    request, fetch = world.one_sent()
    assert (fetch.session_epoch, list(asked(fetch))) == (0, [0, 1])
    world.answer(request, error_code=int(code))
    assert world.sent() == []
    world.timer.advance(40)
    assert world.one_sent()[1].session_epoch == 0


async def test_leader_without_sessions_is_asked_for_everything_each_time() -> None:
    """Session id 0: it keeps none."""
    world = FetcherWorld()
    world.follow(FakeFollower(0))
    world.connected()
    for _ in range(3):
        request, fetch = world.one_sent()
        assert (fetch.session_id, fetch.session_epoch) == (0, 0)
        assert list(asked(fetch)) == [0]
        world.answer(request, session_id=0)


async def test_lost_connection_begins_a_new_session() -> None:
    """Nobody can say whether the leader has seen the request."""
    world = FetcherWorld()
    partition = FakeFollower(0)
    world.following(partition)
    assert world.stream is not None
    world.receive(world.stream, b"")
    world.timer.advance(50)
    world.connected(fd=102)
    _, fetch = world.one_sent()
    assert (fetch.session_epoch, asked(fetch)) == (0, {0: (0, EPOCH, -1)})
    assert world.stats.failed_requests == 1


async def test_leader_that_is_away_is_tried_by_and_by() -> None:
    """Not in a circle: its connection is refused at most every 20 to 500 ms."""
    world = FetcherWorld()
    world.follow(FakeFollower(0))
    refused = 0
    for _ in range(100):
        if len(world.connector.connects) > refused:
            world.connector.connects[-1].refuse()
            refused += 1
        world.timer.advance(50)
    assert 8 <= refused <= 20
    del world.peers._endpoints[2]
    world.peers.connection(2, "fetch-0").move_to(None)
    before = world.stats.requests
    world.timer.advance(5000)
    assert world.stats.requests - before <= 30


async def test_diverged_log_is_cut_and_fetched_again() -> None:
    """By epochs (KIP-101): what an earlier leader wrote alone goes."""
    world = FetcherWorld()
    partition = FakeFollower(0)
    partition.lead(b"a", b"b", epoch=3)
    partition.lead(b"alone", epoch=4)
    waiting = world.following(partition)
    world.answer(waiting, data(0, diverging=(3, 2)))
    await world.turns()
    assert partition.end == 2
    assert partition.log.latest_leader_epoch == 3
    fetches = world.sent()
    assert forgotten(fetches[0][1]) == [0] or asked(fetches[-1][1]) == {0: (2, EPOCH, 3)}
    assert asked(fetches[-1][1]) == {0: (2, EPOCH, 3)}
    assert (world.stats.truncations, world.stats.truncations_below_high_watermark) == (1, 0)


async def test_cut_below_the_high_watermark_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """It follows, as Kafka's followers do; and an operator sees that records were lost."""
    world = FetcherWorld()
    partition = FakeFollower(0)
    partition.lead(b"a", epoch=3)
    partition.lead(b"b", epoch=4)
    partition.log.update_high_watermark(2)
    waiting = world.following(partition)
    world.answer(waiting, data(0, diverging=(3, 1)))
    await world.turns()
    assert partition.end == 1
    assert world.stats.truncations_below_high_watermark == 1
    assert "committed records are truncated" in caplog.text


async def test_log_without_epochs_is_cut_at_the_high_watermark_first() -> None:
    """Nothing says what of the rest is the leader's."""
    world = FetcherWorld()
    partition = FakeFollower(0)
    partition.lead(b"a", b"b", epoch=0)
    partition.log.leader_epochs.clear()
    partition.log.load_latest_epoch()
    world.follow(partition)
    assert world.connector.connects == []
    await world.turns()
    assert partition.end == 0
    world.connected()
    assert asked(world.one_sent()[1]) == {0: (0, EPOCH, -1)}


def offset_answer(request: SentRequest, offset: int, code: ErrorCode = ErrorCode.NONE) -> bytes:
    found = ListOffsetsPartitionResponse(
        partition_index=0, error_code=int(code), offset=offset, leader_epoch=EPOCH
    )
    topics = [ListOffsetsTopicResponse(name="t", partitions=[found])]
    body = encode_list_offsets(ListOffsetsResponse(topics=topics), request.version)
    return answer_to(request, body)


@pytest.mark.parametrize(
    ("own_end", "leader_start", "leader_end", "start", "end"),
    [
        (5, 0, 3, 0, 3),  # it has more than the leader: that goes
        (2, 10, 20, 10, 10),  # the leader begins behind it: it begins there
        (5, 2, 20, 0, 5),  # it is in range by now
    ],
)
async def test_offset_out_of_range_is_asked_for(
    own_end: int, leader_start: int, leader_end: int, start: int, end: int
) -> None:
    """As a replica, so that the leader names its log end."""
    world = FetcherWorld()
    partition = FakeFollower(0)
    for _ in range(own_end):
        partition.lead(b"x")
    waiting = world.following(partition)
    world.answer(waiting, data(0, error=ErrorCode.OFFSET_OUT_OF_RANGE))
    await world.turns()
    offsets = world.connector.connects[-1].accept(fd=150)
    for _ in range(2):
        for request in requests_of(offsets):
            timestamp = int.from_bytes(request.rest[-11:-3], "big", signed=True)
            offset = leader_end if timestamp == -1 else leader_start
            world.receive(offsets, offset_answer(request, offset))
        await world.turns()
    assert (partition.log.log_start_offset, partition.end) == (start, end)
    assert asked(world.sent()[-1][1])[0][0] == end


async def test_leader_that_gives_no_offset_is_asked_again() -> None:
    """After the back-off, with a Fetch."""
    world = FetcherWorld()
    partition = FakeFollower(0)
    partition.lead(b"x")
    waiting = world.following(partition)
    world.answer(waiting, data(0, error=ErrorCode.OFFSET_OUT_OF_RANGE))
    await world.turns()
    offsets = world.connector.connects[-1].accept(fd=150)
    (request,) = requests_of(offsets)
    world.receive(offsets, offset_answer(request, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER))
    await world.turns()
    world.sent()
    world.timer.advance(1010)
    assert asked(world.sent()[-1][1])[0][0] == 1
    assert partition.truncations == 0


async def test_empty_log_begins_where_the_leaders_batch_does() -> None:
    """DeleteRecords may leave a log start in the middle of a batch."""
    world = FetcherWorld()
    partition = FakeFollower(0)
    partition.log.truncation.truncate_fully_and_start_at(1)
    waiting = world.following(partition)
    batch = records_at(0, b"a", b"b", b"c")
    world.answer(waiting, data(0, batch, high_watermark=3, log_start=1))
    await world.turns()
    assert asked(world.sent()[-1][1]) == {0: (3, EPOCH, EPOCH)}
    assert (partition.log.log_start_offset, partition.end) == (1, 3)


async def test_truncation_that_fails_ends_the_partition() -> None:
    """Or is tried again, if there was only no room."""
    world = FetcherWorld()
    broken, full = FakeFollower(0), FakeFollower(1)
    for partition in (broken, full):
        partition.lead(b"a", epoch=3)
    waiting = world.following(broken, full)
    broken.error, full.error = EIO, ENOSPC
    world.answer(waiting, data(0, diverging=(-1, 0)), data(1, diverging=(-1, 0)))
    await world.turns()
    states = [one.state for one in world.fetchers.followed]
    assert states == [FollowedState.FAILED, FollowedState.DELAYED]


async def test_closed_fetchers_append_nothing_more() -> None:
    """And leave no timer."""
    world = FetcherWorld()
    partition = FakeFollower(0)
    waiting = world.following(partition)
    await world.fetchers.close()
    world.answer(waiting, data(0, records_at(0, b"a")))
    assert partition.end == 0
    world.peers.close()
    assert world.timer.pending == 0


async def test_lag_is_what_is_missing_up_to_the_leaders_high_watermark() -> None:
    """The greatest over all partitions."""
    world = FetcherWorld()
    waiting = world.following(FakeFollower(0), FakeFollower(1))
    world.answer(waiting, data(0, high_watermark=7), data(1, records_at(0, b"a"), high_watermark=9))
    assert world.fetchers.max_lag == 8
    assert world.fetchers.min_requests == 2
