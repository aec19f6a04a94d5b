"""What a remote segment's description holds, and which steps it may take."""

from itertools import product
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiered.errors import InvalidTransitionError
from tiered.segment_metadata import (
    PartitionDeleteState,
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    SegmentEpoch,
    SegmentState,
    TopicIdPartition,
    check_partition_step,
    check_segment_step,
)

STARTED, FINISHED, DELETING, DELETED = SegmentState
OFFSETS = st.integers(0, (1 << 63) - 1)
EPOCHS = st.lists(st.builds(SegmentEpoch, st.integers(0, 99), OFFSETS), min_size=1, max_size=4)


@st.composite
def segments(draw: st.DrawFn) -> RemoteLogSegmentMetadata:
    partition = TopicIdPartition(draw(st.uuids()), draw(st.text(max_size=9)), draw(OFFSETS))
    return RemoteLogSegmentMetadata(
        RemoteLogSegmentId(partition, draw(st.uuids())),
        start_offset=draw(OFFSETS),
        end_offset=draw(OFFSETS),
        max_timestamp_ms=draw(OFFSETS),
        broker_id=draw(st.integers(0, 9)),
        event_timestamp_ms=draw(OFFSETS),
        segment_size_bytes=draw(st.integers(0, (1 << 31) - 1)),
        segment_leader_epochs=tuple(draw(EPOCHS)),
        state=draw(st.sampled_from(SegmentState)),
        custom_metadata=draw(st.none() | st.binary(max_size=9)),
        txn_index_empty=draw(st.booleans()),
    )


@given(segments())
def test_json_holds_all_of_it(segment: RemoteLogSegmentMetadata) -> None:
    assert RemoteLogSegmentMetadata.from_json(segment.as_json()) == segment


@pytest.mark.parametrize("broken", [{}, {"topicId": "x"}])
def test_other_json_is_refused(broken: dict[str, object]) -> None:
    with pytest.raises((KeyError, ValueError)):
        RemoteLogSegmentMetadata.from_json(broken)


def test_a_segment_takes_the_drawn_steps_and_no_others() -> None:
    """A failed copy is deleted without having been finished; everything may be told again."""
    drawn = {
        (None, STARTED),
        (STARTED, FINISHED),
        (STARTED, DELETING),
        (FINISHED, DELETING),
        (DELETING, DELETED),
    }
    for before, after in product([None, *SegmentState], SegmentState):
        if (before, after) in drawn or before is after:
            check_segment_step(before, after)
        else:
            with pytest.raises(InvalidTransitionError):
                check_segment_step(before, after)


def test_a_deletion_goes_one_step_at_a_time() -> None:
    states = [None, *PartitionDeleteState]
    for (number, before), (later, after) in product(enumerate(states), enumerate(states)):
        if after is None:
            continue
        if later in (number, number + 1):
            check_partition_step(before, after)
        else:
            with pytest.raises(InvalidTransitionError):
                check_partition_step(before, after)


@given(segments(), st.none() | st.binary(max_size=9))
def test_an_update_changes_what_it_names(
    segment: RemoteLogSegmentMetadata, custom: bytes | None
) -> None:
    """Custom metadata that is not told again stays."""
    update = RemoteLogSegmentMetadataUpdate(segment.segment_id, 7, DELETED, 3, custom)
    after = segment.with_update(update)
    assert (after.state, after.event_timestamp_ms, after.broker_id) == (DELETED, 7, 3)
    assert after.custom_metadata == (segment.custom_metadata if custom is None else custom)
    assert after.segment_leader_epochs == segment.segment_leader_epochs


def test_a_partition_is_named_as_kafka_names_it() -> None:
    assert str(TopicIdPartition(UUID(int=1), "a.b", 3)) == "a.b-3"
