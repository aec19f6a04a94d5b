"""Reading the log back."""

from collections.abc import Callable

import pytest

from broker.groups.classic.classic_group import ClassicGroup
from broker.groups.classic.classic_group_state import ClassicGroupState
from broker.groups.state.group_shard import GroupShard
from protocol.errors import DecodeError
from protocol.internal.consumer_offsets import (
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitValue,
    encode_group_metadata_key,
    encode_group_metadata_value,
    encode_offset_commit_key,
    encode_offset_commit_value,
)
from protocol.records.builder import build_batch
from protocol.records.compression import Codec
from protocol.records.control import build_end_transaction_marker
from tests.fakes.broker.offsets_partition import FakeReplicaManager
from tests.harness import groups as harness
from tests.harness.groups import (
    Harness,
    classic,
    committed,
    is_simple,
    stored,
    subscription,
)


def offset_record(partition: int, offset: int, group: str = "g") -> tuple[bytes, bytes]:
    return (
        encode_offset_commit_key(group, "t", partition),
        encode_offset_commit_value(OffsetCommitValue(offset)),
    )


def batch(*records: tuple[bytes, bytes | None], producer_id: int = -1, codec: int = 0) -> bytearray:
    return build_batch(
        [(key, value, (), 1) for key, value in records],
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        transactional=producer_id >= 0,
        codec=codec,
    )


def marker(producer_id: int, *, commit: bool) -> bytearray:
    return build_end_transaction_marker(
        producer_id=producer_id,
        producer_epoch=0,
        commit=commit,
        coordinator_epoch=0,
        timestamp_ms=1,
    )


@pytest.fixture
def log() -> FakeReplicaManager:
    return FakeReplicaManager()


def test_empty_log_is_an_empty_shard(log: FakeReplicaManager) -> None:
    assert not Harness(log).reloaded().groups


def test_stable_group_comes_back_whole() -> None:
    """Members, assignment, generation, leader, time-outs, subscription."""
    h = Harness()
    ids, generation = h.stable_group(2, protocols=(("range", subscription("t")),))
    before, after = h.group(), classic(h.reloaded())
    assert after.state is ClassicGroupState.STABLE
    assert (after.generation, after.leader_id) == (generation, before.leader_id)
    assert (after.protocol_type, after.protocol_name) == ("consumer", "range")
    assert after.subscribed_topics == frozenset({"t"})
    assert list(after.members) == ids
    for member_id in ids:
        old, new = before.members[member_id], after.members[member_id]
        for name in (
            "assignment",
            "client_host",
            "client_id",
            "protocols",
            "rebalance_timeout_ms",
            "session_timeout_ms",
        ):
            assert getattr(new, name) == getattr(old, name)


def test_newest_record_of_a_key_counts(log: FakeReplicaManager) -> None:
    """Whatever lies in front of it, in whatever codec."""
    for offset in range(5):
        log.add_batch(0, batch(offset_record(0, offset), offset_record(1, 9), codec=Codec.GZIP))
    shard = Harness(log).reloaded()
    assert stored(shard) == {("t", 0): 4, ("t", 1): 9}
    assert committed(shard, "t", 0).record_offset == 8
    assert is_simple(classic(shard))


def test_tombstones_forget(log: FakeReplicaManager) -> None:
    log.add_batch(0, batch(offset_record(0, 1), offset_record(1, 2)))
    log.add_batch(0, batch((encode_offset_commit_key("g", "t", 0), None)))
    assert stored(Harness(log).reloaded()) == {("t", 1): 2}


def test_transactional_offsets_wait_for_their_marker(log: FakeReplicaManager) -> None:
    """Commit, abort, and one that is still open."""
    log.add_batch(0, batch(offset_record(0, 1), offset_record(1, 1), offset_record(2, 1)))
    for producer_id in (1, 2, 3):
        log.add_batch(0, batch(offset_record(producer_id - 1, 50), producer_id=producer_id))
    log.add_batch(0, marker(1, commit=True))
    log.add_batch(0, marker(2, commit=False))
    shard = Harness(log).reloaded()
    assert stored(shard) == {("t", 0): 50, ("t", 1): 1, ("t", 2): 1}
    assert shard.offsets.has_pending("g", "t", 2)
    assert not shard.offsets.has_pending("g", "t", 0)
    shard.offsets.end_transaction(3, commit=True)
    assert stored(shard)[("t", 2)] == 50


def test_plain_commit_after_a_transactional_one_stays(log: FakeReplicaManager) -> None:
    """The order of the records decides, not that of the marker."""
    log.add_batch(0, batch(offset_record(0, 50), producer_id=1))
    log.add_batch(0, batch(offset_record(0, 7)))
    log.add_batch(0, marker(1, commit=True))
    assert stored(Harness(log).reloaded()) == {("t", 0): 7}


def test_tombstone_forgets_what_waits_for_a_marker(log: FakeReplicaManager) -> None:
    log.add_batch(0, batch(offset_record(0, 50), producer_id=1))
    log.add_batch(0, batch((encode_offset_commit_key("g", "t", 0), None)))
    log.add_batch(0, marker(1, commit=True))
    assert stored(Harness(log).reloaded()) == {}


def test_foreign_and_damaged_records_are_passed_over(log: FakeReplicaManager) -> None:
    """Newer kinds of groups, versions to come, garbage: the rest is served, and it is counted."""
    log.add_batch(
        0,
        batch(
            (b"\0\3\0\1g", b"\0\0"),
            (b"\0\1\0", b"\0\4"),
            (encode_offset_commit_key("g", "t", 5), b"\0\x63"),
            offset_record(0, 1),
        ),
    )
    shard = Harness(log).reloaded()
    assert stored(shard) == {("t", 0): 1}
    assert shard.stats.skipped_records == 3


def test_two_members_with_one_instance_id_are_damage(log: FakeReplicaManager) -> None:
    members = tuple(MemberMetadata(m, "i", "c", "/h", 1, 1, b"", b"") for m in ("a", "b"))
    value = GroupMetadataValue("consumer", 1, "range", "a", 1, members)
    log.add_batch(0, batch((encode_group_metadata_key("g"), encode_group_metadata_value(value))))
    shard = Harness(log).reloaded()
    assert not shard.groups
    assert shard.stats.skipped_records == 1


def test_damaged_batch_stops_the_load(log: FakeReplicaManager) -> None:
    """A shard that forgets offsets must not be served."""
    log.add_batch(0, batch(offset_record(0, 1)))
    log.batches[0][0] = log.batches[0][0][:62] + b"\xff" * (len(log.batches[0][0]) - 62)
    with pytest.raises(DecodeError):
        Harness(log).reloaded()


def test_old_group_without_rebalance_timeout_uses_the_session_timeout(
    log: FakeReplicaManager,
) -> None:
    """Value version 0."""
    value = bytes.fromhex(
        "0000"  # version
        "0008636f6e73756d6572"  # consumer
        "00000001"  # generation
        "000572616e6765"  # range
        "00016d"  # leader
        "00000001"  # members
        "00016d000163000168"  # member, client, host
        "00002710"  # session timeout
        "00000000"
        "00000000"
    )
    log.add_batch(0, batch((encode_group_metadata_key("g"), value)))
    member = classic(Harness(log).reloaded()).members["m"]
    assert member.rebalance_timeout_ms == member.session_timeout_ms == 10_000


@pytest.mark.parametrize("read_size", [1, 100, 1_000_000])
def test_log_is_read_in_slices(
    log: FakeReplicaManager, monkeypatch: pytest.MonkeyPatch, read_size: int
) -> None:
    """However much a read brings, cut batches included, every record counts once."""
    monkeypatch.setattr(harness, "READ_SIZE", read_size)
    for number in range(10):
        log.add_batch(0, batch(*[offset_record(p, number) for p in range(4)]))
    assert stored(Harness(log).reloaded()) == {("t", p): 9 for p in range(4)}


Step = Callable[[Harness], None]


def test_every_prefix_of_the_log_gives_what_was_acknowledged() -> None:
    """After kill -9 the state is that of some acknowledged moment: the one of the log's end.

    Each step is committed before it is answered, so cutting the log behind any batch must give
    exactly the state that was visible when that batch was the last.
    """
    h = Harness()
    seen: list[tuple[int, object]] = []

    def visible(shard: object) -> object:
        assert isinstance(shard, GroupShard)
        return sorted(
            (
                group.group_id,
                group.generation,
                group.state is ClassicGroupState.EMPTY,
                sorted((m.member_id, m.assignment) for m in group.members.values()),
                sorted(shard.offsets.offsets(group.group_id)),
            )
            for group in shard.groups_of(ClassicGroup)
        )

    def note() -> None:
        seen.append((len(h.log.batches[0]), visible(h.shard)))

    ids, generation = h.stable_group(2, protocols=(("range", subscription("t")),))
    note()
    for offset in range(5):
        h.commit({("t", offset % 2): offset}, member_id=ids[0], generation=generation)
        note()
    h.commit({("u", 0): 1}, group="simple")
    note()
    h.commit({("u", 0): 2, ("u", 1): 3}, group="simple")
    note()
    h.offsets.delete("simple", [("u", 0)], lambda *_: None)
    note()
    h.leave(*ids)
    note()
    h.offsets.delete_group("g", lambda _: None)
    note()
    batches, end = h.log.batches[0], h.log.ends[0]
    assert seen[-1][0] == len(batches)
    for count, expected in seen:
        h.log.batches[0] = batches[:count]
        assert visible(h.reloaded()) == expected
    h.log.batches[0], h.log.ends[0] = batches, end
