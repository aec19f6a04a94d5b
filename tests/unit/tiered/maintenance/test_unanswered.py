"""When a round is given up: after some calls in a row that the store has not answered."""

from tiered.errors import ObjectNotFoundError, StoreTimeoutError, StoreUnavailableError
from tiered.maintenance.unanswered import UNANSWERED_MAX, Unanswered


def test_a_store_that_does_not_answer_several_times_in_a_row_ends_the_round() -> None:
    unanswered = Unanswered()
    for error in (StoreTimeoutError("late"), StoreUnavailableError("503")):
        assert not unanswered.is_over
        unanswered.failed(error)
    assert not unanswered.is_over
    unanswered.failed(StoreTimeoutError("late"))
    assert unanswered.is_over


def test_any_answer_counts_as_one() -> None:
    """Also one that says no: then it is about the object."""
    unanswered = Unanswered()
    for _ in range(2 * UNANSWERED_MAX):
        unanswered.failed(StoreUnavailableError("503"))
        unanswered.failed(ObjectNotFoundError("key"))
        unanswered.failed(StoreUnavailableError("503"))
        unanswered.answered()
    assert not unanswered.is_over


def test_what_was_not_tried_is_counted() -> None:
    assert Unanswered().left(0) == []
    assert Unanswered().left(7) == ["7 more segments, as the object store does not answer"]
