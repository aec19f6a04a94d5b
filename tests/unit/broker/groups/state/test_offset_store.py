"""The packed store against a plain dictionary."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from broker.groups.state.offset_store import (
    GroupTopicPartition,
    OffsetAndMetadata,
    OffsetStore,
    is_metadata_too_large,
)
from protocol.internal.consumer_offsets import OffsetCommitValue

KEYS = st.builds(
    GroupTopicPartition,
    st.sampled_from(["a", "b"]),
    st.sampled_from(["t", "u"]),
    st.integers(0, 2),
)
VALUES = st.builds(
    OffsetCommitValue,
    offset=st.integers(0, 2**63 - 1),
    leader_epoch=st.integers(-1, 2**31 - 1),
    metadata=st.text(max_size=20),
    commit_timestamp_ms=st.integers(0, 2**50),
    expire_timestamp_ms=st.integers(-1, 2**50),
    topic_id=st.sampled_from([UUID(int=0), UUID(int=7)]),
)


@given(KEYS, VALUES)
def test_what_is_stored_comes_back(key: GroupTopicPartition, value: OffsetCommitValue) -> None:
    store = OffsetStore()
    committed = OffsetAndMetadata(value, 5)
    store.put(*key, committed)
    assert store.get(*key) == committed
    assert list(store.offsets(key.group_id)) == [(key.topic, key.partition, value.offset)]


class StoreMachine(RuleBasedStateMachine):
    """Every operation on the store and on a dictionary; they never differ."""

    def __init__(self) -> None:
        super().__init__()
        self.store = OffsetStore()
        self.model: dict[GroupTopicPartition, OffsetAndMetadata] = {}
        self.pending: dict[int, dict[GroupTopicPartition, OffsetAndMetadata]] = {}
        self.next_record = 0

    def _record(self, value: OffsetCommitValue) -> OffsetAndMetadata:
        self.next_record += 1
        return OffsetAndMetadata(value, self.next_record)

    @rule(key=KEYS, value=VALUES)
    def put(self, key: GroupTopicPartition, value: OffsetCommitValue) -> None:
        committed = self._record(value)
        self.store.put(*key, committed)
        self.model[key] = committed

    @rule(key=KEYS, value=VALUES, producer_id=st.integers(1, 2))
    def put_pending(
        self, key: GroupTopicPartition, value: OffsetCommitValue, producer_id: int
    ) -> None:
        committed = self._record(value)
        self.store.put_pending(producer_id, key, committed)
        self.pending.setdefault(producer_id, {})[key] = committed

    @rule(producer_id=st.integers(1, 2), commit=st.booleans())
    def end(self, producer_id: int, commit: bool) -> None:
        self.store.end_transaction(producer_id, commit=commit)
        for key, committed in self.pending.pop(producer_id, {}).items():
            existing = self.model.get(key)
            if commit and (existing is None or existing.record_offset < committed.record_offset):
                self.model[key] = committed

    @rule(key=KEYS)
    def remove(self, key: GroupTopicPartition) -> None:
        assert self.store.remove(*key) == (self.model.pop(key, None) is not None)
        for waiting in self.pending.values():
            waiting.pop(key, None)

    @rule(key=KEYS, ago=st.integers(0, 5))
    def remove_late(self, key: GroupTopicPartition, ago: int) -> None:
        """A tombstone is committed after others have written behind it: they stay."""
        before = self.next_record - ago
        stored = self.model.get(key)
        goes = stored is not None and stored.record_offset < before
        assert self.store.remove(*key, before_record=before) == goes
        if goes:
            del self.model[key]
        for waiting in self.pending.values():
            if key in waiting and waiting[key].record_offset < before:
                del waiting[key]

    @invariant()
    def same(self) -> None:
        assert self.store.count == len(self.model)
        found = {
            GroupTopicPartition(group_id, topic, partition)
            for group_id in self.store.group_ids()
            for topic, partitions in self.store.topics(group_id)
            for partition in partitions
        }
        assert found == set(self.model)
        assert all(self.store.get(*key) == value for key, value in self.model.items())
        waiting = {key for keys in self.pending.values() for key in keys}
        for group_id in ("a", "b"):
            assert {(k.topic, k.partition) for k in waiting if k.group_id == group_id} == set(
                self.store.pending_topics(group_id)
            )
            assert self.store.has_group(group_id) == any(
                k.group_id == group_id for k in [*self.model, *waiting]
            )


@pytest.mark.parametrize(
    ("metadata", "size_max", "too_large"),
    [
        ("", 0, False),
        ("four", 4, False),
        ("five!", 4, True),
        ("\u00e9" * 4, 4, False),
        ("\U0001f600" * 2, 4, False),
        ("\U0001f600" * 3, 4, True),
        ("a" * 32_767, 100_000, False),
        ("a" * 32_768, 100_000, True),
        ("\u20ac" * 10_923, 100_000, True),
    ],
)
def test_metadata_is_counted_as_java_does(metadata: str, size_max: int, too_large: bool) -> None:
    """And must fit into a record all the same."""
    assert is_metadata_too_large(metadata, size_max) is too_large


TestStore = StoreMachine.TestCase
