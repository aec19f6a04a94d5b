"""Commits of one turn of the loop share a batch, and nobody can tell but by the batches."""

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from broker.groups.offsets.transactional import TransactionalOffsetCommit, TransactionalOffsets
from protocol.error_codes import ErrorCode
from protocol.internal.consumer_offsets import NO_TOPIC_ID, OffsetCommitKey, decode_key
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponsePartition,
)
from protocol.records.batch import read_header
from protocol.records.record import iterate_records
from tests.fakes.broker.offsets_partition import FakeReplicaManager
from tests.harness.groups import SESSION_MS, Harness, stored

DAY_MS = 24 * 60 * 60_000
Outcome = Callable[[], list[ErrorCode | None]]


def records(log: FakeReplicaManager) -> list[list[tuple[bytes | None, bytes | None]]]:
    """Keys and values of each batch."""
    return [
        [(r.key, r.value) for r in iterate_records(memoryview(batch), max_size=1 << 20)]
        for batch in log.batches[0]
    ]


def committed_by(log: FakeReplicaManager) -> list[list[str]]:
    """The groups whose offsets are in each batch; `-` for another record."""
    found = []
    for batch in records(log):
        keys = [decode_key(key) for key, _ in batch if key is not None]
        found.append([k.group if isinstance(k, OffsetCommitKey) else "-" for k in keys])
    return found


def test_commits_of_a_turn_share_a_batch() -> None:
    h = Harness(gathering=True)
    one = h.commit_later({("t", 0): 5, ("t", 1): 6}, group="a")
    other = h.commit_later({("t", 0): 7}, group="b")
    assert (one(), other()) == ([None, None], [None])
    assert stored(h.shard, "a") == {}
    h.end_turn()
    assert (one(), other()) == ([ErrorCode.NONE] * 2, [ErrorCode.NONE])
    assert committed_by(h.log) == [["a", "a", "b"]]
    assert stored(h.shard, "a") == {("t", 0): 5, ("t", 1): 6}
    assert stored(h.reloaded(), "b") == {("t", 0): 7}


def test_the_last_commit_of_a_turn_counts() -> None:
    h = Harness(gathering=True)
    for offset in (5, 9, 7):
        h.commit({("t", 0): offset})
    h.end_turn()
    assert stored(h.shard) == stored(h.reloaded()) == {("t", 0): 7}


def test_partitions_are_refused_on_their_own_account_before() -> None:
    """Too large metadata never reaches the batch, and fails nobody else's commit."""
    h = Harness(gathering=True)
    one = h.commit_later({("t", 0): (5, "m" * 5_000), ("t", 1): 6})
    other = h.commit_later({("t", 2): 7})
    refused = h.commit_later({("t", 3): (5, "m" * 5_000)})
    assert refused() == [ErrorCode.OFFSET_METADATA_TOO_LARGE]
    h.end_turn()
    assert one() == [ErrorCode.OFFSET_METADATA_TOO_LARGE, ErrorCode.NONE]
    assert other() == [ErrorCode.NONE]
    assert stored(h.reloaded()) == {("t", 1): 6, ("t", 2): 7}


def test_a_refused_batch_fails_all_its_commits() -> None:
    h = Harness(gathering=True)
    h.commit({("t", 0): 1})
    h.end_turn()
    h.log.fail_with = ErrorCode.KAFKA_STORAGE_ERROR
    outcomes = [h.commit_later({("t", 0): 5}), h.commit_later({("t", 1): 6}, group="other")]
    h.end_turn()
    assert [outcome() for outcome in outcomes] == [[ErrorCode.NOT_COORDINATOR]] * 2
    assert stored(h.shard) == {("t", 0): 1}


def test_nothing_is_seen_or_answered_before_it_is_committed() -> None:
    h = Harness(gathering=True)
    h.log.hold = True
    outcome = h.commit_later({("t", 0): 5})
    h.end_turn()
    assert outcome() == [None]
    assert stored(h.shard) == {}
    h.log.commit_held()
    assert outcome() == [ErrorCode.NONE]
    assert stored(h.shard) == {("t", 0): 5}


def test_records_of_the_group_come_behind_what_its_members_have_committed() -> None:
    """A member commits, and leaves in the same turn: the log says it in this order."""
    h = Harness(gathering=True)
    (member,), generation = h.stable_group()
    before = len(h.log.batches[0])
    outcome = h.commit_later({("t", 0): 5}, member_id=member, generation=generation)
    h.leave(member)
    assert outcome() == [ErrorCode.NONE]
    assert committed_by(h.log)[before:] == [["g"], ["-"]]


def test_who_asks_in_the_same_turn_sees_the_commit() -> None:
    """A client that sends both without waiting is served in order."""
    h = Harness(gathering=True)
    h.commit({("t", 0): 5})
    (found,) = h.offsets.fetch("g", "t", NO_TOPIC_ID, [0], require_stable=True)
    assert found.offset == 5
    h.commit({("u", 1): 6})
    assert h.offsets.topics("g") == [("t", [0]), ("u", [1])]


def test_deletion_in_the_same_turn_deletes_the_commit() -> None:
    h = Harness(gathering=True)
    codes: list[Any] = []
    h.commit({("t", 0): 5, ("t", 1): 5})
    h.offsets.delete("g", [("t", 0)], lambda code, _: codes.append(code))
    assert stored(h.shard) == {("t", 1): 5}
    h.commit({("t", 2): 6})
    h.offsets.delete_group("g", codes.append)
    h.commit({("t", 0): 7}, group="another")
    h.offsets.delete_partitions(["t"])
    h.end_turn()
    assert codes == [ErrorCode.NONE] * 2
    assert not h.shard.groups.keys() - {"another"}
    assert not h.reloaded().offsets.group_ids()


def test_expiry_in_the_same_turn_does_not_take_the_group_from_under_a_commit() -> None:
    h = Harness(gathering=True)
    h.commit({("t", 0): 5})
    h.end_turn()
    h.timer.advance(8 * DAY_MS)
    h.commit({("t", 1): 6})
    h.offsets.expire("g")
    h.end_turn()
    assert stored(h.shard) == stored(h.reloaded()) == {("t", 1): 6}
    assert "g" in h.shard.groups


def test_transactional_commits_share_no_batch() -> None:
    """The producer is in the header of the batch; and the order is that of the requests."""
    h = Harness(gathering=True)
    transactional = TransactionalOffsets(h.shard, h.log, settings=h.settings, clock=h.clock)
    codes: list[ErrorCode] = []
    h.commit({("t", 0): 5})
    transactional.commit(
        TxnOffsetCommitRequest(
            transactional_id="x", group_id="g", producer_id=8, producer_epoch=0, generation_id=-1
        ),
        5,
        [
            TransactionalOffsetCommit(
                "t",
                NO_TOPIC_ID,
                TxnOffsetCommitRequestPartition(
                    partition_index=0, committed_offset=6, committed_metadata=""
                ),
                TxnOffsetCommitResponsePartition(partition_index=0),
            )
        ],
        codes.append,
    )
    h.commit({("t", 1): 7})
    h.end_turn()
    assert codes == [ErrorCode.NONE]
    headers = [read_header(memoryview(batch)) for batch in h.log.batches[0]]
    assert [(x.producer_id, x.is_transactional) for x in headers] == [
        (-1, False),
        (8, True),
        (-1, False),
    ]
    transactional.end_transaction(8, commit=True)
    assert stored(h.shard) == {("t", 0): 6, ("t", 1): 7}


COMMIT = st.tuples(
    st.just("commit"),
    st.sampled_from("ab"),
    st.dictionaries(st.tuples(st.sampled_from("tu"), st.integers(0, 2)), st.integers(0, 99)),
    st.booleans(),
)
STEP = st.one_of(
    COMMIT,
    COMMIT,
    COMMIT,
    st.tuples(st.just("fetch"), st.sampled_from("ab")),
    st.tuples(st.just("join"), st.sampled_from("ab")),
    st.tuples(st.just("leave"), st.sampled_from("ab")),
    st.tuples(st.just("delete"), st.sampled_from("ab"), st.integers(0, 2)),
    st.tuples(st.just("delete group"), st.sampled_from("ab")),
    st.tuples(st.just("delete topic"), st.sampled_from("tu")),
    st.tuples(st.just("expire"), st.sampled_from("ab")),
)
TURN = st.tuples(
    st.lists(STEP, min_size=1, max_size=6),
    st.sampled_from([None, None, None, ErrorCode.NOT_ENOUGH_REPLICAS]),
    st.sampled_from([0, SESSION_MS // 2, 2 * SESSION_MS, 8 * DAY_MS]),
)


class Side:
    """One of two shards that are asked for the same."""

    def __init__(self, *, gathering: bool) -> None:
        self.h = Harness(gathering=gathering)
        self.members: dict[str, tuple[str, int]] = {}
        self.outcomes: list[Outcome] = []
        self.told: list[object] = []

    def step(self, name: str, which: str, *more: Any) -> None:
        h = self.h
        if name == "commit":
            offsets, as_member = more
            member_id, generation = self.members.get(which, ("", -1)) if as_member else ("", -1)
            self.outcomes.append(
                h.commit_later(offsets, group=which, member_id=member_id, generation=generation)
            )
        elif name == "fetch":
            self.told.append(h.offsets.fetch(which, "t", NO_TOPIC_ID, [0, 1], require_stable=True))
            self.told.append(h.offsets.topics(which))
        elif name == "join" and which not in self.members:
            (member_id,), generation = h.stable_group(group=which)
            self.members[which] = member_id, generation
        elif name == "leave" and which in self.members:
            member_id, _ = self.members.pop(which)
            self.told.append(h.leave(member_id, group=which))
        elif name == "delete":
            h.offsets.delete(which, [("t", more[0])], lambda *codes: self.told.append(codes))
        elif name == "delete group":
            h.offsets.delete_group(which, self.told.append)
        elif name == "delete topic":
            h.offsets.delete_partitions([which])
        elif name == "expire":
            self.told.append(h.offsets.expire(which))

    def end_turn(self, advance_ms: int) -> None:
        if self.h.due is not None:
            self.h.end_turn()
        self.h.timer.advance(advance_ms)
        if advance_ms > SESSION_MS:
            self.members.clear()

    def seen(self) -> list[object]:
        shard, again = self.h.shard, self.h.reloaded()
        compacted = self.h.reloaded(self.h.log.compacted())
        return [
            [outcome() for outcome in self.outcomes],
            self.told,
            [record for batch in records(self.h.log) for record in batch],
            {g: (x.state_name, x.generation_or_epoch) for g, x in shard.groups.items()},
            [stored(shard, g) for g in "ab"],
            [stored(again, g) for g in "ab"],
            [stored(compacted, g) for g in "ab"],
        ]


@given(st.lists(TURN, min_size=1, max_size=8))
def test_gathered_or_not_the_log_and_the_answers_are_the_same(turns: list[Any]) -> None:
    """Requests of any kind, any number in a turn, and turns in which the log refuses."""
    plain, gathering = Side(gathering=False), Side(gathering=True)
    for steps, failure, advance_ms in turns:
        for side in (plain, gathering):
            if failure is None:
                for step in steps:
                    side.step(*step)
            else:
                # What a refused rebalance does to members is not what is asked here.
                side.h.log.fail_with = failure
                for step in steps:
                    if step[0] in ("commit", "fetch"):
                        side.step(*step)
            side.end_turn(advance_ms if failure is None else 0)
            side.h.log.fail_with = None
        assert gathering.seen() == plain.seen()
    assert all(None not in codes for codes in [outcome() for outcome in gathering.outcomes])
