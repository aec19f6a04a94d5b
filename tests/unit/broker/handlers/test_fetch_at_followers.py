"""Fetch of consumers at followers, and of leaders that send them there (KIP-392)."""

import asyncio
from typing import Any

import pytest

from broker.handlers.fetch import FetchHandler
from broker.replicas.partition import Partition
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from tests.unit.broker.handlers.test_fetch import only, produce, request, values
from tests.unit.broker.world import World, batch, lead

VERSION = 12
LEADER = 2
EPOCH = 7


def follow(world: World, topic: str = "t") -> Partition:
    """A partition that follows broker 2, with nothing in its log."""
    partition = world.add(topic)
    world.replicas.stop_leading(partition)
    partition.become_follower(LEADER, EPOCH)
    return partition


def fetched(partition: Partition, *payloads: bytes, high_watermark: int) -> None:
    """One batch of the leader's has come, and its high watermark."""
    data = batch(*payloads)
    offset = partition.log.log_end_offset
    data[0:8] = offset.to_bytes(8, "big")
    data[12:16] = EPOCH.to_bytes(4, "big")
    assert partition.append_fetched(
        memoryview(data), fetch_offset=offset, settled=lambda _error: None
    )
    partition.follow_high_watermark(high_watermark, 0)


async def settle() -> None:
    """Let the loop come to what was put off to its next turn."""
    for _ in range(3):
        await asyncio.sleep(0)


def ask(world: World, offset: int, version: int = VERSION, **options: Any) -> Any:
    return only(world.ask(ApiKey.FETCH, version, request({"t": {0: offset}}, **options)))


@pytest.mark.parametrize("version", range(11, 19))
async def test_a_follower_answers_up_to_its_high_watermark(world: World, version: int) -> None:
    partition = follow(world)
    fetched(partition, b"a", high_watermark=1)
    fetched(partition, b"b", high_watermark=1)
    answer = ask(world, 0, version)
    assert (answer.error_code, answer.high_watermark, values(answer)) == (0, 1, [b"a"])


@pytest.mark.parametrize("version", range(4, 11))
async def test_older_clients_are_sent_to_the_leader(world: World, version: int) -> None:
    """They cannot be told of a replica, so they are here by mistake."""
    fetched(follow(world), b"a", high_watermark=1)
    world.replicas.is_known = lambda _topic, _index: True
    assert ask(world, 0, version).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    ("epoch", "code"),
    [
        (EPOCH, ErrorCode.NONE),
        (EPOCH - 1, ErrorCode.FENCED_LEADER_EPOCH),
        (EPOCH + 1, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
async def test_a_follower_checks_leader_epochs(world: World, epoch: int, code: ErrorCode) -> None:
    fetched(follow(world), b"a", high_watermark=1)
    assert ask(world, 0, current_leader_epoch=epoch).error_code == code


async def test_offsets_above_its_log_are_the_leaders_to_judge(world: World) -> None:
    """The leader may have them; where the log begins, a follower knows.

    Kafka's follower says OFFSET_OUT_OF_RANGE, and a consumer that names no leader epoch begins anew
    by `auto.offset.reset`.
    """
    partition = follow(world)
    fetched(partition, b"a", b"b", high_watermark=2)
    partition.follow_high_watermark(2, 1)
    assert ask(world, 0).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert ask(world, 3).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert ask(world, 2).error_code == ErrorCode.NONE


async def test_a_fetch_waits_for_the_followers_high_watermark(world: World) -> None:
    """Records that came before it are readable with it, and wake the fetch."""
    partition = follow(world)
    world.send(ApiKey.FETCH, VERSION, request({"t": {0: 0}}, max_wait_ms=500))
    fetched(partition, b"a", high_watermark=0)
    await settle()
    assert not world.has_answer
    partition.follow_high_watermark(1, 0)
    await settle()
    assert values(only(world.answer(ApiKey.FETCH, VERSION))) == [b"a"]


async def test_the_high_watermark_may_come_with_the_records(world: World) -> None:
    """Bytes of replication are not counted as those of producers: they wake a fetch all the same.

    The log ends where the high watermark is when it begins to wait.
    """
    partition = follow(world)
    fetched(partition, b"a", high_watermark=1)
    world.send(ApiKey.FETCH, VERSION, request({"t": {0: 1}}, max_wait_ms=500))
    fetched(partition, b"b", high_watermark=2)
    await settle()
    assert values(only(world.answer(ApiKey.FETCH, VERSION))) == [b"b"]


async def test_a_fetch_behind_the_high_watermark_waits(world: World) -> None:
    """The client has read it elsewhere: here it is not known to be committed yet."""
    partition = follow(world)
    fetched(partition, b"a", b"b", high_watermark=0)
    world.send(ApiKey.FETCH, VERSION, request({"t": {0: 1}}, max_wait_ms=500))
    assert not world.has_answer
    partition.follow_high_watermark(2, 0)
    await settle()
    assert only(world.answer(ApiKey.FETCH, VERSION)).high_watermark == 2


@pytest.mark.parametrize("next_role", ["leads", "follows another", "has none"])
async def test_a_change_of_its_role_ends_the_wait(world: World, next_role: str) -> None:
    """With what an answer is then, long before its time is up."""
    partition = follow(world)
    world.replicas.is_known = lambda _topic, _index: True
    wanted = request({"t": {0: 0}}, max_wait_ms=500, current_leader_epoch=EPOCH)
    world.send(ApiKey.FETCH, VERSION, wanted)
    code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    if next_role == "leads":
        lead(world.replicas, partition, EPOCH + 1)
        code = ErrorCode.FENCED_LEADER_EPOCH
    elif next_role == "follows another":
        partition.become_follower(3, EPOCH + 1)
    else:
        partition.resign(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    await settle()
    assert only(world.answer(ApiKey.FETCH, VERSION)).error_code == code


async def test_nothing_is_read_while_the_log_is_truncated(world: World) -> None:
    """A thread changes it."""
    partition = follow(world)
    fetched(partition, b"a", high_watermark=1)
    world.replicas.is_known = lambda _topic, _index: True
    partition.is_truncating = True
    assert ask(world, 0).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


class Selector:
    """Names broker 3 for what is at or above offset 1, and counts its calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, str]] = []

    def select(self, _partition: Partition, offset: int, rack: str, _listener: str) -> int:
        self.calls.append((offset, rack))
        return 3 if offset >= 1 else -1


@pytest.fixture
def selector(world: World) -> Selector:
    selector: Any = Selector()
    world.apis.by_key[ApiKey.FETCH].hot = FetchHandler(
        world.replicas,
        world.sessions,
        world.followers,
        world.apis.open_reply,
        max_bytes=50 << 20,
        selector=selector,
    )
    return selector  # type: ignore[no-any-return]  # it stands in for the real one


async def test_a_leader_names_a_follower_instead_of_records(
    world: World, selector: Selector
) -> None:
    """At once, however long the client would wait, and with the offsets that it has."""
    world.add("t")
    produce(world, "t", b"a", b"b")
    answer = ask(world, 1, rack_id="b", max_wait_ms=500, min_bytes=1 << 20)
    assert (answer.error_code, answer.preferred_read_replica) == (0, 3)
    assert (answer.high_watermark, answer.log_start_offset, answer.records) == (2, 0, b"")
    assert ask(world, 0, rack_id="b").preferred_read_replica == -1
    assert selector.calls == [(1, "b"), (0, "b")]


async def test_without_a_rack_nobody_is_asked(world: World, selector: Selector) -> None:
    world.add("t")
    produce(world, "t", b"a", b"b")
    assert values(ask(world, 1)) == [b"a", b"b"]
    assert selector.calls == []


async def test_an_incremental_answer_names_it_too(world: World, selector: Selector) -> None:
    """Although nothing else of the partition has changed."""
    world.add("t")
    produce(world, "t", b"a", b"b")
    first = world.ask(ApiKey.FETCH, VERSION, request({"t": {0: 0}}, session=(0, 0), rack_id="b"))
    assert only(first).preferred_read_replica == -1
    again = request({"t": {0: 1}}, session=(first.session_id, 1), rack_id="b")
    assert only(world.ask(ApiKey.FETCH, VERSION, again)).preferred_read_replica == 3
    more = request({}, session=(first.session_id, 2), rack_id="b")
    assert only(world.ask(ApiKey.FETCH, VERSION, more)).preferred_read_replica == 3


async def test_wrong_epochs_are_told_before_a_follower_is_named(
    world: World, selector: Selector
) -> None:
    world.add("t")
    produce(world, "t", b"a", b"b")
    answer = ask(world, 1, rack_id="b", current_leader_epoch=EPOCH)
    assert answer.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert selector.calls == []


async def test_a_follower_tells_nobody_that_the_logs_part(world: World) -> None:
    """Nor that it does not know an epoch: its leader may have what it lacks."""
    partition = follow(world)
    fetched(partition, b"a", high_watermark=1)
    for epoch in (EPOCH, EPOCH + 1):
        answer = ask(world, 2, last_fetched_epoch=epoch)
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert answer.diverging_epoch is None
    assert ask(world, 1, last_fetched_epoch=EPOCH).error_code == ErrorCode.NONE
