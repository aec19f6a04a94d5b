"""Which batches are aborted: by arrays, and by the rule said plainly."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.plan.piece import AbortedRange
from pipeline.read.decode.aborted_batches import AbortedBatches

offsets = st.integers(0, 40)
ranges = st.builds(AbortedRange, st.integers(0, 3), offsets, offsets)


@given(entries=st.lists(ranges), batches=st.lists(st.tuples(st.integers(0, 4), offsets)))
def test_as_the_rule_says(entries: list[AbortedRange], batches: list[tuple[int, int]]) -> None:
    """Also where ranges of a producer overlap, or come twice."""
    producers = np.array([producer for producer, _ in batches], np.int64)
    bases = np.array([offset for _, offset in batches], np.int64)
    got = AbortedBatches(entries).contain(producers, bases).tolist()
    assert got == [
        any(e.producer_id == p and e.first_offset <= o <= e.last_offset for e in entries)
        for p, o in batches
    ]


def test_none_is_falsy() -> None:
    """Then nobody asks."""
    assert not AbortedBatches(())
    assert AbortedBatches([AbortedRange(1, 2, 3)])
