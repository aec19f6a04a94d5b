"""A watch in the store's thread: nothing twice, nothing unbounded, progress only when wanted."""

from broker.controller.store.metadata_store import (
    Changes,
    CompactedError,
    Event,
    EventKind,
    StoreError,
)
from broker.controller.store.unix.followed import BUFFER_EVENTS_MAX, Followed


class Watched:
    """What was handed over."""

    def __init__(self, first_revision: int = 1) -> None:
        self.delivered: list[Changes] = []
        self.failures: list[StoreError] = []
        self.followed = Followed("", first_revision, self.delivered.append, self.failures.append)


def changes(revision: int, count: int = 1) -> Changes:
    event = Event(EventKind.DELETE, "a", revision, None, None)
    return Changes(revision, (event,) * count)


def test_what_comes_again_behind_a_new_connection_is_not_delivered_twice() -> None:
    watched = Watched()
    for revision in (2, 3, 2, 3, 4):
        assert watched.followed.take(changes(revision))
    assert [item.revision for item in watched.delivered] == [2, 3, 4]
    assert watched.followed.resume == 5


def test_progress_moves_where_it_goes_on_and_is_delivered_when_wanted() -> None:
    watched = Watched()
    watched.followed.take(Changes(7, ()))
    assert (watched.followed.resume, watched.delivered) == (8, [])
    watched.followed.want(9)
    watched.followed.take(Changes(8, ()))
    assert watched.delivered == []
    watched.followed.take(Changes(9, ()))
    watched.followed.take(Changes(10, ()))
    assert watched.delivered == [Changes(9, ())]


def test_a_data_loop_that_takes_nothing_ends_its_watch() -> None:
    """What it has not taken lies in the process's memory: there is a limit to it."""
    watched = Watched()
    assert watched.followed.take(changes(2, BUFFER_EVENTS_MAX))
    assert not watched.followed.take(changes(3))
    assert [type(failure) for failure in watched.failures] == [CompactedError]
    again = Watched()
    again.followed.take(changes(2, BUFFER_EVENTS_MAX))
    again.followed.taken = 1
    assert again.followed.take(changes(3))
