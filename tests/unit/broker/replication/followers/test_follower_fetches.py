"""Fetches of followers: what they read, what counts, and what wakes them."""

import asyncio

import pytest

from broker.replicas.partition import Partition
from broker.replication.followers.follower_sessions import FollowerSession
from broker.replication.quota import ReplicationQuota, leader_replicas
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from tests.code_path import python_only
from tests.unit.broker.replication.followers.follower_world import (
    FollowerWorld,
    record,
)
from tests.unit.broker.world import topic_id


async def turn() -> None:
    """Let the loop run what it was asked for, and what that asks for."""
    for _ in range(3):
        await asyncio.sleep(0)


async def test_a_follower_reads_what_is_not_committed(f: FollowerWorld) -> None:
    partition = f.led()
    f.write(partition, b"a", b"b")
    answer = f.fetch_one(0)
    assert len(answer.records) == partition.log.size()
    assert (answer.error_code, answer.high_watermark, answer.log_start_offset) == (0, 0, 0)


async def test_its_fetches_move_the_high_watermark(f: FollowerWorld) -> None:
    """When the last of the ISR has fetched behind it; the answer has it already."""
    partition = f.led()
    f.write(partition, b"a", b"b")
    f.fetch_one(2, replica=2)
    assert partition.log.high_watermark == 0
    answer = f.fetch_one(2, replica=3)
    assert partition.log.high_watermark == 2
    assert answer.high_watermark == 2
    assert not answer.records


async def test_two_lives_of_a_leadership_are_told_apart(f: FollowerWorld) -> None:
    """A fetch of an earlier epoch of the same leader moves nothing (KIP-320)."""
    partition = f.led()
    f.write(partition, b"a")
    partition.become_leader(record(leader_epoch=6), now_ms=0.0)
    for replica in (2, 3):
        answer = f.fetch_one(1, replica=replica)
        assert answer.error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert partition.log.high_watermark == 0
    assert f.fetch_one(1, current_leader_epoch=7).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"replica": 4}, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ({"replica": 5}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ({"broker_epoch": 19}, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ({"broker_epoch": -1}, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ({"broker_epoch": 21}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ({"current_leader_epoch": -1}, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ({"current_leader_epoch": 4}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"current_leader_epoch": 6}, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
async def test_a_stranger_moves_nothing(
    f: FollowerWorld, options: dict[str, int], code: ErrorCode
) -> None:
    """Not registered, not a replica, of another life, of another epoch (CVE-2018-1288)."""
    f.registered[5] = 50
    partition = f.led(state=record((1, 2)))
    f.write(partition, b"a")
    assert f.fetch_one(1, **options).error_code == code
    assert partition.log.high_watermark == 0
    assert partition.leading is not None
    assert all(one.end_offset == -1 for one in partition.leading.followers)


async def test_followers_are_served_where_brokers_call(f: FollowerWorld) -> None:
    """Not on a listener for clients, where that is another one."""
    partition = f.led(state=record((1, 2)))
    f.write(partition, b"a")
    f.is_from_broker = False
    assert f.fetch_one(1).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition.log.high_watermark == 0
    assert len(f.followers.sessions) == 0


async def test_who_follows_is_refused_by_who_does_not_lead(f: FollowerWorld) -> None:
    f.replicas.is_known = lambda _topic, _index: True
    partition = f.led()
    partition.become_follower(2, 6)
    f.replicas.stop_leading(partition)
    assert f.fetch_one(0).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_diverging_logs_are_told_where_and_count_for_nothing(f: FollowerWorld) -> None:
    """KIP-595; the epoch of a leader that wrote nothing yet is known too (KIP-101)."""
    partition = f.led(state=record((1, 2), leader_epoch=2))
    f.write(partition, b"a", b"b")
    partition.become_leader(record((1, 2)), now_ms=0.0)
    answer = f.fetch_one(3, last_fetched_epoch=4)
    assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (2, 2)
    assert not answer.records
    answer = f.fetch_one(3, last_fetched_epoch=2)
    assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (2, 2)
    assert partition.log.high_watermark == 0
    answer = f.fetch_one(2, last_fetched_epoch=2)
    assert answer.diverging_epoch is None
    assert partition.log.high_watermark == 2


async def test_offsets_that_are_not_here_are_refused(f: FollowerWorld) -> None:
    partition = f.led(state=record((1, 2)))
    f.write(partition, b"a", b"b")
    assert f.fetch_one(3).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert f.fetch_one(3, last_fetched_epoch=5).diverging_epoch.end_offset == 2
    f.fetch_one(2)
    partition.log.delete_records(1)
    assert f.fetch_one(0).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    answer = f.fetch_one(0, last_fetched_epoch=5)
    assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert partition.leading is not None
    assert partition.leading.followers[0].end_offset == 2


async def test_an_unknown_topic_id_is_told(f: FollowerWorld) -> None:
    answer = f.fetch_one(0)
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_ID


async def test_an_append_wakes_who_waits_though_nothing_is_committed(f: FollowerWorld) -> None:
    partition = f.led()
    f.park({"t": 0})
    assert not f.has_answer
    f.write(partition, b"a")
    f.write(partition, b"b")
    assert not f.has_answer
    await turn()
    (topic,) = f.fetched().responses
    assert len(topic.partitions[0].records) == partition.log.size()
    assert partition.log.high_watermark == 0
    assert f.followers.parked == 0


async def test_the_high_watermark_wakes_nobody(f: FollowerWorld) -> None:
    """It comes with the next answer (KAFKA-9731)."""
    partition = f.led()
    f.write(partition, b"a")
    f.park({"t": 1}, replica=2)
    assert partition.leading is not None
    other = partition.leading.followers[1]
    other.fetched(1, 0, 30, 1, 0.0)
    partition.follower_fetched(other, 0.0)
    await turn()
    assert partition.log.high_watermark == 1
    assert not f.has_answer
    f.timer.advance(500)
    (topic,) = f.fetched().responses
    assert topic.partitions[0].high_watermark == 1


@pytest.mark.parametrize("order", [("t", "u"), ("u", "t")])
@pytest.mark.parametrize("where", ["t", "u"])
async def test_what_a_fetch_commits_may_append_to_what_it_fetches(
    f: FollowerWorld, order: tuple[str, str], where: str
) -> None:
    """A coordinator goes on when its record is committed: the follower hears of that at once.

    To the partition itself, or to one that the same look has passed, or comes to.
    """
    led = {topic: f.led(topic, record((1, 2))) for topic in order}
    f.write(led["t"], b"a")
    session = f.fetch(dict.fromkeys(order, 0)).session_id
    f.replicas.when_committed(led["t"], 0, 1, lambda *_: f.write(led[where], b"b"), 5_000)
    f.park({"t": 1}, session=(session, 1))
    assert led["t"].log.high_watermark == 1
    await turn()
    answer = f.fetched()
    found = {topic.topic_id for topic in answer.responses if topic.partitions[0].records}
    assert found == {topic_id(where)}


async def test_what_an_answer_itself_commits_is_looked_at_again(f: FollowerWorld) -> None:
    """The answer is on its way with another partition's records: the next one has these."""
    led = {topic: f.led(topic, record((1, 2))) for topic in ("u", "t")}
    session = f.fetch({"u": 0, "t": 0}).session_id
    f.write(led["t"], b"a")
    f.write(led["u"], b"x")
    f.replicas.when_committed(led["u"], 0, 1, lambda *_: f.write(led["t"], b"b"), 5_000)
    f.fetch({"t": 1, "u": 1}, session=(session, 1))
    answer = f.fetch({}, session=(session, 2))
    assert {topic.topic_id for topic in answer.responses if topic.partitions[0].records} == {
        topic_id("t")
    }


async def test_a_wait_ends_empty(f: FollowerWorld) -> None:
    f.led()
    session = f.fetch({"t": 0}).session_id
    f.park({}, session=(session, 1))
    f.timer.advance(505)
    assert f.fetched().responses == []
    assert f.timer.pending == 0


async def test_the_next_request_completes_the_one_that_waits(f: FollowerWorld) -> None:
    """A partition that has moved here is not to wait for an idle one's time."""
    f.led()
    other = f.led("u")
    session = f.fetch({"t": 0}).session_id
    f.park({}, session=(session, 1))
    f.write(other, b"a")
    f.park({"u": 0}, session=(session, 2))
    assert f.fetched().responses == []
    (topic,) = f.fetched().responses
    assert topic.partitions[0].records
    assert f.followers.parked == 0


async def test_a_new_epoch_and_the_end_of_one_are_told_at_once(f: FollowerWorld) -> None:
    f.replicas.is_known = lambda _topic, _index: True
    partition = f.led()
    session = f.fetch({"t": 0}).session_id
    f.park({}, session=(session, 1))
    partition.become_leader(record(leader_epoch=6), now_ms=0.0)
    await turn()
    (topic,) = f.fetched().responses
    assert topic.partitions[0].error_code == ErrorCode.FENCED_LEADER_EPOCH
    session = f.fetch({"t": 0}, current_leader_epoch=6).session_id
    f.park({}, session=(session, 1))
    partition.become_follower(2, 7)
    f.replicas.stop_leading(partition)
    await turn()
    (topic,) = f.fetched().responses
    assert topic.partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_idle_partitions_of_a_session_are_not_looked_at(f: FollowerWorld) -> None:
    """The cost is by what has changed."""
    partitions = {f"t{n}": f.led(f"t{n}") for n in range(20)}
    session = f.fetch(dict.fromkeys(partitions, 0)).session_id
    f.fetch({}, session=(session, 1))
    leading = partitions["t7"].leading
    assert leading is not None
    (followed,) = (one.followed for one in leading.followers if one.followed is not None)
    own = followed.session
    assert isinstance(own, FollowerSession)
    assert len(own.partitions) == 20
    assert not own.changed
    assert f.fetch({}, session=(session, 2)).responses == []
    f.write(partitions["t7"], b"a")
    assert list(own.changed) == [followed]
    assert len(f.fetch({}, session=(session, 3)).responses) == 1


@python_only
async def test_what_was_found_right_is_not_looked_up_again(
    f: FollowerWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as the roles, the epochs and the replicas are what they were."""
    partition = f.led()
    session = f.fetch({"t": 0}).session_id
    looked: list[str] = []
    leader_of = f.replicas.leader_of

    def counted(topic: str, index: int) -> object:
        looked.append(topic)
        return leader_of(topic, index)

    monkeypatch.setattr(type(f.replicas), "leader_of", lambda _self, *at: counted(*at))
    f.write(partition, b"a")
    assert len(f.fetch({}, session=(session, 1)).responses) == 1
    assert f.fetch({"t": 1}, session=(session, 2)).responses == []
    assert looked == []
    assert partition.leading is not None
    assert partition.leading.followers[0].end_offset == 1
    # Broker 2 is no replica any more.
    partition.update_isr(record((1, 3), partition_epoch=1, replicas=(1, 3)))
    ((answer,),) = (t.partitions for t in f.fetch({"t": 1}, session=(session, 3)).responses)
    assert answer.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert looked == ["t"]


async def test_a_later_life_of_a_follower_ends_what_the_earlier_one_was_allowed(
    f: FollowerWorld,
) -> None:
    """Its session was found right, in a life that has ended (KIP-903)."""
    partition = f.led()
    session = f.fetch({"t": 0}).session_id
    f.registered[2] = 21
    f.write(partition, b"a")
    ((answer,),) = (
        t.partitions for t in f.fetch({"t": 1}, session=(session, 1), broker_epoch=20).responses
    )
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition.leading is not None
    assert partition.leading.followers[0].end_offset == 0


async def test_records_come_again_until_the_follower_has_them(f: FollowerWorld) -> None:
    partition = f.led()
    f.write(partition, b"a")
    session = f.fetch({"t": 0}).session_id
    (again,) = f.fetch({}, session=(session, 1)).responses
    assert again.partitions[0].records
    assert f.fetch({"t": 1}, session=(session, 2)).responses == []
    assert f.fetch({}, session=(session, 3)).responses == []


async def test_a_request_is_a_fetch_of_every_partition_of_its_session(f: FollowerWorld) -> None:
    """Also of those that it does not name: they are where they were."""
    partition = f.led()
    session = f.fetch({"t": 0}).session_id
    f.clock.advance(400)
    f.fetch({}, session=(session, 1))
    assert partition.leading is not None
    follower = partition.leading.followers[0]
    assert follower.seen_ms == f.clock.monotonic_ms()
    f.fetch({}, session=(session, 2), forget=["t"])
    f.clock.advance(400)
    f.fetch({}, session=(session, 3))
    assert follower.seen_ms < f.clock.monotonic_ms()


async def test_large_answers_are_bounded_and_take_turns(f: FollowerWorld) -> None:
    partitions = [f.led(f"t{n}") for n in range(3)]
    for partition in partitions:
        f.write(partition, b"x" * 100)
    size = partitions[0].log.size()
    wanted = {f"t{n}": 0 for n in range(3)}
    first = f.fetch(wanted, max_bytes=2 * size)
    got = [topic.partitions[0].records for topic in first.responses]
    assert [bool(records) for records in got] == [True, True, False]
    second = f.fetch({}, session=(first.session_id, 1), max_bytes=2 * size)
    (only,) = [topic for topic in second.responses[:1] if topic.partitions[0].records]
    assert only.topic_id == first.responses[2].topic_id


async def test_a_look_that_takes_long_goes_on_in_the_next_iteration(f: FollowerWorld) -> None:
    """Nothing was found yet: the request waits."""
    partitions = {f"t{n}": f.led(f"t{n}") for n in range(6)}
    session = f.fetch(dict.fromkeys(partitions, 0)).session_id
    ticks = f.clock.monotonic_ms

    def slow() -> float:
        f.clock.advance(1.0)
        return ticks()

    f.clock.monotonic_ms = slow  # type: ignore[method-assign]  # each look at the clock takes long
    f.park(dict.fromkeys(partitions, 0), session=(session, 1))
    assert not f.has_answer
    await turn()
    await turn()
    f.clock.monotonic_ms = ticks  # type: ignore[method-assign]  # as it was
    f.write(partitions["t5"], b"a")
    await turn()
    assert len(f.fetched().responses) == 1
    for partition in partitions.values():
        assert partition.leading is not None
        assert partition.leading.followers[0].end_offset == 0


async def test_a_disconnected_follower_leaves_nothing(f: FollowerWorld) -> None:
    f.led()
    f.park({"t": 0})
    assert f.followers.parked == 1
    f.h.connection.close("gone")
    assert f.followers.parked == 0
    assert f.timer.pending == 0


async def test_a_follower_must_say_in_which_life_it_fetches(f: FollowerWorld) -> None:
    """Requests before version 15 cannot (KIP-903)."""
    partition = f.led(state=record((1, 2)))
    f.write(partition, b"a")
    request = f.request({"t": 1})
    request.replica_id, request.replica_state = 2, None
    request.topics[0].topic = "t"
    (topic,) = f.ask(ApiKey.FETCH, 12, request).responses
    assert topic.partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition.log.high_watermark == 0


def throttled(f: FollowerWorld, partition: Partition, rate: int) -> ReplicationQuota:
    """Limit what this broker sends of the partition."""
    quota = ReplicationQuota(f.clock, 1, leader_replicas)
    quota.set_rate(rate)
    f.replicas.terms.leader_quota = quota
    partition.log.update_config(
        partition.log.config.model_copy(update={"leader_replication_throttled_replicas": ("0:1",)})
    )
    return quota


async def test_a_follower_out_of_sync_waits_for_the_quota_and_a_member_does_not(
    f: FollowerWorld,
) -> None:
    """What both have read counts; its position counts although it gets nothing."""
    partition = f.led(state=record(isr=(1, 2)))
    f.write(partition, b"a" * 1000)
    quota = throttled(f, partition, 100)
    assert len(f.fetch_one(0, replica=2).records) > 1000
    held_back = f.fetch_one(0, replica=3)
    assert (held_back.error_code, len(held_back.records or b"")) == (0, 0)
    assert partition.leading is not None
    progress = partition.leading.follower(3)
    assert progress is not None
    assert progress.end_offset == 0
    assert quota.held_back == 1
    f.write(partition, b"b")
    assert f.fetch_one(1, replica=2).records
    f.clock.advance(12_000)
    assert len(f.fetch_one(0, replica=3).records) > 1000


async def test_replicas_that_are_not_throttled_are_not_counted(f: FollowerWorld) -> None:
    partition = f.led(state=record(isr=(1, 2)))
    f.write(partition, b"a" * 1000)
    quota = throttled(f, partition, 100)
    partition.log.update_config(
        partition.log.config.model_copy(
            update={"leader_replication_throttled_replicas": ("0:2", "1:1")}
        )
    )
    for _ in range(3):
        assert f.fetch_one(0, replica=3).records
    assert (quota.bytes_per_second, quota.held_back) == (0.0, 0)
