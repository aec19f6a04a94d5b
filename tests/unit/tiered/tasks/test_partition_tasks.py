"""The drawing is enforced."""

import itertools

import pytest

from tests.unit.tiered.metadata.segment_builder import PARTITION
from tiered.errors import InvalidTransitionError
from tiered.tasks.partition_tasks import PartitionState, PartitionTasks

S = PartitionState

ALLOWED = {
    (S.STARTING, S.STARTING),
    (S.STARTING, S.LEADING),
    (S.STARTING, S.FOLLOWING),
    (S.STARTING, S.PURGING),
    (S.STARTING, S.STOPPING),
    (S.LEADING, S.STARTING),
    (S.FOLLOWING, S.STARTING),
    (S.PURGING, S.STARTING),
    (S.LEADING, S.STOPPING),
    (S.FOLLOWING, S.STOPPING),
    (S.PURGING, S.STOPPING),
    (S.STOPPING, S.STARTING),
    (S.STOPPING, S.STOPPED),
    (S.STOPPING, S.DELETING),
    (S.DELETING, S.STOPPED),
    (S.DELETING, S.STOPPING),
}


@pytest.mark.parametrize(("before", "after"), list(itertools.product(S, S)))
def test_every_step(before: PartitionState, after: PartitionState) -> None:
    tasks = PartitionTasks(PARTITION)
    tasks.state = before
    if (before, after) in ALLOWED:
        tasks.move(after)
        assert tasks.state is after
    else:
        with pytest.raises(InvalidTransitionError, match=f"{before.value} to {after.value}"):
            tasks.move(after)


def test_without_tasks_it_is_quiet() -> None:
    tasks = PartitionTasks(PARTITION)
    tasks.retire()
    assert tasks.is_quiet
    assert tasks.tasks() == []
