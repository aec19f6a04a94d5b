"""Batches that are joined say of each record what the stronger one says."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from broker.share.state.batches import combine
from protocol.internal.share_state import StateBatch

BATCHES = st.lists(
    st.builds(
        lambda first, size, state, count: StateBatch(first, first + size, state, count),
        st.integers(0, 30),
        st.integers(0, 10),
        st.sampled_from([0, 2, 4]),
        st.integers(0, 3),
    ),
    max_size=8,
)


def by_offset(batches: list[StateBatch], start: int) -> dict[int, tuple[int, int]]:
    said: dict[int, tuple[int, int]] = {}
    for first, last, state, count in batches:
        for offset in range(max(first, start), last + 1):
            said[offset] = max(said.get(offset, (0, 0)), (count, state))
    return said


@given(BATCHES, BATCHES, st.integers(-1, 40))
def test_of_each_record_the_strongest_word(
    so_far: list[StateBatch], new: list[StateBatch], start: int
) -> None:
    together = combine(so_far, new, start)
    assert by_offset(list(together), 0) == by_offset([*so_far, *new], start)
    for before, after in pairwise(together):
        assert before.last_offset < after.first_offset
        assert before.last_offset + 1 < after.first_offset or before[2:] != after[2:]


def test_the_drawing() -> None:
    assert combine([StateBatch(0, 9, 0, 1)], [StateBatch(4, 6, 2, 1)], -1) == (
        StateBatch(0, 3, 0, 1),
        StateBatch(4, 6, 2, 1),
        StateBatch(7, 9, 0, 1),
    )
