"""Where the first transaction began whose marker may not be on disk."""

from hypothesis import given
from hypothesis import strategies as st

from storage.producers.unflushed_ends import ENDS_MAX, UnflushedEnds
from tests.effort import examples


def test_each_is_known_until_a_flush_has_reached_its_marker() -> None:
    """Also one that began before others, and ended after them."""
    ends = UnflushedEnds()
    assert ends.first_offset(0) is None
    ends.note(3, 5)
    ends.note(6, 9)
    assert [ends.first_offset(at) for at in (0, 5, 6, 9, 10)] == [3, 3, 6, 6, None]
    ends.note(1, 12)
    assert [ends.first_offset(at) for at in (0, 9, 12, 13)] == [1, 1, 1, None]
    ends.let_go(12)
    assert ends.first_offset(0) == 1
    ends.let_go(13)
    assert ends.first_offset(0) is None


def test_what_is_remembered_is_bounded() -> None:
    """Those that ended last are told apart: a flush soon leaves little behind."""
    ends = UnflushedEnds()
    for at in range(0, 100_000, 10):
        ends.note(at, at + 5)
        assert len(ends._ends) <= ENDS_MAX
    assert ends.first_offset(0) == 0
    assert ends.first_offset(99_900) in range(99_000, 99_901)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.integers(1, 30), st.integers(0, 40)),
            st.integers(0, 60),
        ),
        max_size=250,
    )
)
@examples(200)
def test_no_answer_is_higher_than_the_truth(steps: list[tuple[int, int] | int]) -> None:
    """A pair: a transaction of that length ends so much later. A number: a flush, so far back."""
    ends = UnflushedEnds()
    ended: list[tuple[int, int]] = []
    end = flushed = 0
    for step in steps:
        if isinstance(step, int):
            flushed = max(flushed, end - step)
            ends.let_go(flushed)
        else:
            end += step[1] + 1
            ended.append((max(end - step[0], 0), end))
            ends.note(*ended[-1])
        for at in (flushed, end, end + 1):
            truth = min((first for first, last in ended if last >= at), default=None)
            found = ends.first_offset(at)
            if truth is None:
                assert found is None
            else:
                assert found is not None
                assert found <= truth
