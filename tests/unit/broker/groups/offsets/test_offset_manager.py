"""Rules of committing, fetching, deleting and expiring offsets."""

from uuid import UUID

import pytest

from broker.groups.classic.classic_group import ClassicGroup
from broker.groups.offsets import offset_manager
from broker.groups.offsets.offset_manager import FetchedOffset
from broker.groups.state.offset_store import GroupTopicPartition, OffsetAndMetadata
from protocol.error_codes import ErrorCode
from protocol.internal.consumer_offsets import NO_TOPIC_ID, OffsetCommitValue
from tests.harness.groups import (
    SESSION_MS,
    Harness,
    committed,
    is_simple,
    stored,
    subscription,
)

DAY_MS = 24 * 60 * 60_000
RETENTION_MS = 7 * DAY_MS
CONSUMER = (("range", subscription("t")),)


@pytest.fixture
def h() -> Harness:
    return Harness()


# -- commit --


def test_commit_without_a_group_makes_a_simple_one(h: Harness) -> None:
    """A consumer that assigns its partitions itself, or an administrator."""
    assert h.commit({("t", 0): 5, ("t", 1): 6}) == [ErrorCode.NONE] * 2
    assert is_simple(h.group())
    assert stored(h.shard) == {("t", 0): 5, ("t", 1): 6}


def test_commit_is_answered_and_seen_once_it_is_committed(h: Harness) -> None:
    h.log.hold = True
    assert h.commit({("t", 0): 5}) == [None]
    assert stored(h.shard) == {}
    h.log.commit_held()
    assert stored(h.shard) == {("t", 0): 5}


def test_failed_commit_changes_nothing(h: Harness) -> None:
    h.commit({("t", 0): 5})
    h.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    assert h.commit({("t", 0): 6}) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert stored(h.shard) == {("t", 0): 5}
    assert stored(h.reloaded()) == {("t", 0): 5}


@pytest.mark.parametrize(
    ("version", "code"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)]
)
def test_generation_of_an_unknown_group(h: Harness, version: int, code: ErrorCode) -> None:
    assert h.commit({("t", 0): 5}, member_id="m", generation=1, version=version) == [code]
    assert not h.shard.groups


def test_member_commits_under_its_generation(h: Harness) -> None:
    ids, generation = h.stable_group(2)
    ok = h.commit({("t", 0): 5}, member_id=ids[0], generation=generation)
    assert ok == [ErrorCode.NONE]
    for member, gen, code in (
        (ids[0], generation + 1, ErrorCode.ILLEGAL_GENERATION),
        (ids[0], -1, ErrorCode.ILLEGAL_GENERATION),
        ("somebody", generation, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, ErrorCode.UNKNOWN_MEMBER_ID),
    ):
        assert h.commit({("t", 0): 6}, member_id=member, generation=gen) == [code]
    assert stored(h.shard) == {("t", 0): 5}


def test_commit_during_a_rebalance(h: Harness) -> None:
    """While members rejoin it is taken, before the assignment is known it is not."""
    ids, generation = h.stable_group(1)
    h.join()
    h.join(ids[0])
    ok = h.commit({("t", 0): 5}, member_id=ids[0], generation=generation)
    assert ok == [ErrorCode.NONE]
    h.timer.advance(SESSION_MS)  # the pending member expires
    refused = h.commit({("t", 0): 6}, member_id=ids[0], generation=generation + 1)
    assert refused == [ErrorCode.REBALANCE_IN_PROGRESS]


def test_commit_keeps_the_session_alive(h: Harness) -> None:
    ids, generation = h.stable_group()
    h.timer.advance(SESSION_MS - 1)
    h.commit({("t", 0): 5}, member_id=ids[0], generation=generation)
    h.timer.advance(SESSION_MS - 1)
    assert ids[0] in h.group().members


def test_administrator_commits_into_an_empty_group(h: Harness) -> None:
    ids, _ = h.stable_group()
    h.leave(ids[0])
    assert h.commit({("t", 0): 5}) == [ErrorCode.NONE]


@pytest.mark.parametrize("character", ["m", "é", "😀"])
def test_metadata_has_a_limit(h: Harness, character: str) -> None:
    """offset.metadata.max.bytes, counted in Java's characters; the others are committed."""
    units = len(character.encode("utf-16-le")) // 2
    fits = character * (4096 // units)
    assert h.commit({("t", 0): (1, fits), ("t", 1): (2, fits + "m"), ("t", 2): 3}) == [
        ErrorCode.NONE,
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ErrorCode.NONE,
    ]
    assert stored(h.shard) == {("t", 0): 1, ("t", 2): 3}
    assert committed(h.shard, "t", 0).value.metadata == fits
    assert committed(h.reloaded(), "t", 0).value.metadata == fits


def test_metadata_never_outgrows_the_format() -> None:
    """However high the limit is set, a record's string ends at 32,767 bytes."""
    h = Harness(offset_metadata_max_bytes=1_000_000)
    assert h.commit({("t", 0): (1, "é" * 20_000)}) == [ErrorCode.OFFSET_METADATA_TOO_LARGE]


def test_last_commit_wins_in_the_order_of_the_log(h: Harness) -> None:
    h.commit({("t", 0): 5})
    h.commit({("t", 0): 3})
    assert stored(h.shard) == stored(h.reloaded()) == {("t", 0): 3}


def test_timed_out_commit_counts_once_it_is_committed(h: Harness) -> None:
    """The client is told to try again; what the log says holds all the same."""
    h.log.hold = True
    codes: list[ErrorCode | None] = h.commit({("t", 0): 5})
    assert codes == [None]
    h.timer.advance(h.settings.offsets_commit_timeout_ms)
    h.log.commit_held()
    assert stored(h.shard) == {("t", 0): 5}


# -- fetch --


def fetch(
    h: Harness, *partitions: int, topic_id: UUID = NO_TOPIC_ID, stable: bool = False
) -> list[FetchedOffset]:
    return h.offsets.fetch("g", "t", topic_id, partitions, require_stable=stable)


def test_what_was_not_committed_is_minus_one(h: Harness) -> None:
    """No error, whether the group is known or not."""
    assert fetch(h, 0) == [FetchedOffset(0, -1, -1, "", ErrorCode.NONE)]
    h.commit({("t", 0): (5, "note")})
    assert fetch(h, 1, 0) == [FetchedOffset(1), FetchedOffset(0, 5, -1, "note")]


def test_offset_of_a_former_topic_of_that_name_does_not_count(h: Harness) -> None:
    """KIP-848 commits by topic id; the topic was deleted and made anew."""
    old, new = UUID(int=1), UUID(int=2)
    value = OffsetCommitValue(5, topic_id=old)
    h.shard.offsets.put("g", "t", 0, OffsetAndMetadata(value, 0))
    assert fetch(h, 0, topic_id=new) == [FetchedOffset(0)]
    assert fetch(h, 0, topic_id=old)[0].offset == 5
    assert fetch(h, 0)[0].offset == 5


def test_offset_in_a_transaction_is_unstable(h: Harness) -> None:
    """For those who ask for stable offsets (KIP-447), until the transaction ends."""
    h.commit({("t", 0): 5})
    pending = OffsetAndMetadata(OffsetCommitValue(9), 100)
    h.shard.offsets.put_pending(7, GroupTopicPartition("g", "t", 0), pending)
    assert fetch(h, 0)[0].offset == 5
    assert fetch(h, 0, stable=True) == [FetchedOffset(0, error=ErrorCode.UNSTABLE_OFFSET_COMMIT)]
    h.shard.offsets.end_transaction(7, commit=True)
    assert fetch(h, 0, stable=True)[0].offset == 9


# -- delete --


def delete(h: Harness, *partitions: tuple[str, int]) -> tuple[ErrorCode, list[ErrorCode]]:
    answers: list[tuple[ErrorCode, list[ErrorCode]]] = []
    h.offsets.delete("g", partitions, lambda code, codes: answers.append((code, codes)))
    return answers[0]


def delete_group(h: Harness, group: str = "g") -> ErrorCode:
    codes: list[ErrorCode] = []
    h.offsets.delete_group(group, codes.append)
    return codes[0]


def delete_group_in_turns(h: Harness) -> ErrorCode:
    codes: list[ErrorCode] = []
    h.offsets.delete_group("g", codes.append)
    for _ in range(100):
        if codes:
            break
        h.timer.advance(0)
    return codes[0]


def test_offsets_of_unread_topics_can_be_deleted(h: Harness) -> None:
    ids, generation = h.stable_group(protocols=CONSUMER)
    for topic in ("t", "u"):
        h.commit({(topic, 0): 5}, member_id=ids[0], generation=generation)
    assert delete(h, ("t", 0), ("u", 0), ("u", 1)) == (
        ErrorCode.NONE,
        [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE, ErrorCode.NONE],
    )
    assert stored(h.shard) == stored(h.reloaded()) == {("t", 0): 5}


def test_offsets_of_other_kinds_of_groups_need_an_empty_group(h: Harness) -> None:
    assert delete(h, ("t", 0)) == (ErrorCode.GROUP_ID_NOT_FOUND, [])
    ids, _ = h.stable_group(protocol_type="connect")
    assert delete(h, ("t", 0)) == (ErrorCode.NON_EMPTY_GROUP, [])
    h.leave(ids[0])
    assert delete(h, ("t", 0)) == (ErrorCode.NONE, [ErrorCode.NONE])


def test_only_empty_groups_can_be_deleted(h: Harness) -> None:
    ids, generation = h.stable_group()
    h.commit({("t", 0): 5}, member_id=ids[0], generation=generation)
    assert delete_group(h) is ErrorCode.NON_EMPTY_GROUP
    h.leave(ids[0])
    assert delete_group(h) is ErrorCode.NONE
    assert delete_group(h) is ErrorCode.GROUP_ID_NOT_FOUND
    reloaded = h.reloaded()
    assert not reloaded.groups
    assert reloaded.offsets.count == h.shard.offsets.count == 0


def test_deletion_that_fails_leaves_everything(h: Harness) -> None:
    h.commit({("t", 0): 5})
    h.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    assert delete_group(h) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert stored(h.shard) == {("t", 0): 5}


def test_large_groups_are_deleted_batch_after_batch(
    h: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No batch above the limit, the group's own tombstone in the last one, the loop in between."""
    monkeypatch.setattr(offset_manager, "RECORDS_PER_BATCH_MAX", 10)
    h.commit({("t", p): p for p in range(25)})
    before = len(h.log.batches[0])
    codes: list[ErrorCode] = []
    h.offsets.delete_group("g", codes.append)
    assert len(stored(h.shard)) == 15
    assert not codes
    h.timer.advance(0)
    h.timer.advance(0)
    assert codes == [ErrorCode.NONE]
    assert len(h.log.batches[0]) == before + 3
    assert not h.shard.groups
    assert not h.reloaded().groups


def test_member_that_joins_during_a_deletion_keeps_its_group(h: Harness) -> None:
    h.commit({("t", 0): 5})
    h.log.hold = True
    codes: list[ErrorCode] = []
    h.offsets.delete_group("g", codes.append)
    join = h.join(version=3)
    h.log.hold = False
    h.log.commit_held()
    assert codes == [ErrorCode.NONE]
    assert stored(h.shard) == {}
    h.settle()
    assert join.error is ErrorCode.NONE


def test_member_that_joins_between_two_batches_of_a_deletion_ends_it(
    h: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tombstone of the group would come behind its new generation, and undo it in the log."""
    monkeypatch.setattr(offset_manager, "RECORDS_PER_BATCH_MAX", 2)
    h.commit({("t", p): p for p in range(5)})
    codes: list[ErrorCode] = []
    h.offsets.delete_group("g", codes.append)
    ids, generation = h.stable_group()
    h.timer.advance(0)
    assert codes == [ErrorCode.NON_EMPTY_GROUP]
    group = h.reloaded().group("g", ClassicGroup)
    assert group is not None
    assert (group.generation, list(group.members)) == (generation, ids)


def test_batches_of_a_deletion_are_small_whatever_the_names(
    h: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch above max.message.bytes would be refused for ever."""
    monkeypatch.setattr(offset_manager, "BATCH_SIZE_MAX", 1_000)
    topic = "t" * 249
    h.commit({(topic, p): p for p in range(9)})
    before = len(h.log.batches[0])
    assert delete_group_in_turns(h) is ErrorCode.NONE
    assert all(len(batch) < 1_500 for batch in h.log.batches[0][before:])
    assert not h.reloaded().groups


def test_commit_under_way_outlives_the_deleted_group(h: Harness) -> None:
    """In memory as in the log: a simple group has it."""
    ids, generation = h.stable_group()
    h.log.hold = True
    h.commit({("t", 0): 5}, member_id=ids[0], generation=generation)
    h.leave(ids[0])
    h.offsets.delete_group("g", lambda _: None)
    h.log.commit_held()
    h.log.hold = False
    assert stored(h.shard) == stored(h.reloaded()) == {("t", 0): 5}
    for shard in (h.shard, h.reloaded()):
        group = shard.group("g", ClassicGroup)
        assert group is not None
        assert (group.generation, group.state_name) == (0, "Empty")


def test_group_whose_deletion_is_refused_is_read_anew(h: Harness) -> None:
    h.commit({("t", 0): 5})
    h.log.fail_with = ErrorCode.KAFKA_STORAGE_ERROR
    assert delete_group(h) is ErrorCode.NOT_COORDINATOR
    assert h.gave_up == 1


def test_offset_committed_behind_a_tombstone_stays(h: Harness) -> None:
    h.commit({("t", 0): 5})
    h.log.hold = True
    h.offsets.delete("g", [("t", 0)], lambda *_: None)
    h.commit({("t", 0): 6})
    h.log.commit_held()
    assert stored(h.shard) == stored(h.reloaded()) == {("t", 0): 6}


def test_offsets_of_deleted_topics_go(h: Harness) -> None:
    """Of every group, and of no other topic."""
    for group in ("a", "b"):
        h.commit({("t", 0): 5, ("u", 0): 6}, group=group)
    h.offsets.delete_partitions(["t"])
    for group in ("a", "b"):
        assert stored(h.shard, group) == stored(h.reloaded(), group) == {("u", 0): 6}


def test_offsets_of_a_topic_that_was_created_again_stay(h: Harness) -> None:
    """The deletion is heard of late: a consumer of the new one has committed already."""
    old, new = UUID(int=1), UUID(int=2)
    h.commit({("t", 0): 5, ("t", 1): 5}, topic_id=old)
    h.commit({("t", 0): 1}, topic_id=new)
    h.commit({("t", 2): 9})
    h.offsets.delete_partitions(["t"], again={"t": new})
    assert stored(h.shard) == stored(h.reloaded()) == {("t", 0): 1}
    key = GroupTopicPartition("g", "t", 0)
    h.shard.offsets.put_pending(7, key, OffsetAndMetadata(OffsetCommitValue(8, topic_id=old), 20))
    h.offsets.delete_partitions(["t"], again={"t": new})
    assert stored(h.shard) == {}


# -- expire (KIP-211) --


def test_simple_groups_expire_from_each_commit(h: Harness) -> None:
    h.commit({("t", 0): 5})
    h.timer.advance(DAY_MS)
    h.commit({("t", 1): 6})
    h.timer.advance(RETENTION_MS - DAY_MS - 1)
    h.offsets.expire("g")
    assert len(stored(h.shard)) == 2
    h.timer.advance(1)
    h.offsets.expire("g")
    assert stored(h.shard) == {("t", 1): 6}
    h.timer.advance(DAY_MS)
    h.offsets.expire("g")
    assert not h.shard.groups
    assert not h.reloaded().groups


def test_left_groups_expire_from_the_moment_they_became_empty(h: Harness) -> None:
    """However old their commits are."""
    ids, generation = h.stable_group(protocols=CONSUMER)
    h.commit({("t", 0): 5}, member_id=ids[0], generation=generation)
    h.clock.set_now_ms(h.clock.now_ms() + 2 * RETENTION_MS)
    h.leave(ids[0])
    h.timer.advance(RETENTION_MS - 1)
    h.offsets.expire("g")
    assert stored(h.shard) == {("t", 0): 5}
    h.timer.advance(1)
    h.offsets.expire("g")
    assert not h.shard.groups
    assert not h.reloaded().groups


def test_live_consumers_lose_only_what_they_do_not_read(h: Harness) -> None:
    ids, generation = h.stable_group(protocols=CONSUMER, session_ms=SESSION_MS)
    for topic in ("t", "u"):
        h.commit({(topic, 0): 5}, member_id=ids[0], generation=generation)
    h.clock.set_now_ms(h.clock.now_ms() + RETENTION_MS)  # wall time alone: sessions go on
    h.offsets.expire("g")
    assert stored(h.shard) == {("t", 0): 5}
    assert h.shard.stats.offset_expirations == 1


def test_live_groups_of_other_kinds_lose_nothing(h: Harness) -> None:
    ids, generation = h.stable_group(protocol_type="connect")
    h.commit({("t", 0): 5}, member_id=ids[0], generation=generation)
    h.clock.set_now_ms(h.clock.now_ms() + 2 * RETENTION_MS)
    h.offsets.expire("g")
    assert stored(h.shard) == {("t", 0): 5}


def test_retention_of_the_commit_itself(h: Harness) -> None:
    """OffsetCommit versions 2 to 4."""
    h.commit({("t", 0): 5}, version=2, retention_ms=1_000)
    h.commit({("t", 1): 5}, version=2, retention_ms=2**63 - 1)
    h.clock.set_now_ms(h.clock.now_ms() + 1_000)
    h.offsets.expire("g")
    assert stored(h.shard) == {("t", 1): 5}
    h.clock.set_now_ms(h.clock.now_ms() + 2 * RETENTION_MS)
    h.offsets.expire("g")
    assert stored(h.shard) == {("t", 1): 5}


def test_open_transactions_hold_offset_and_group(h: Harness) -> None:
    h.commit({("t", 0): 5})
    pending = OffsetAndMetadata(OffsetCommitValue(9), 100)
    h.shard.offsets.put_pending(7, GroupTopicPartition("g", "t", 0), pending)
    h.timer.advance(RETENTION_MS)
    h.offsets.expire("g")
    assert stored(h.shard) == {("t", 0): 5}
    h.shard.offsets.end_transaction(7, commit=False)
    h.offsets.expire("g")
    assert not h.shard.groups


def test_group_without_offsets_goes_once_nobody_is_on_the_way_in(h: Harness) -> None:
    h.join()
    h.offsets.expire("g")
    assert "g" in h.shard.groups
    h.timer.advance(SESSION_MS)
    h.offsets.expire("g")
    assert "g" not in h.shard.groups
