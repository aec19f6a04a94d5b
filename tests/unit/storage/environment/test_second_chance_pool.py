"""A bounded pool of things that can be made again."""

from storage.environment.second_chance_pool import SecondChancePool


class Thing:
    def __init__(self) -> None:
        self.used = False
        self.released = 0

    def release(self) -> None:
        self.released += 1


def test_never_more_than_the_capacity() -> None:
    """Each one above it costs one its place."""
    pool = SecondChancePool("things", 3)
    things = [Thing() for _ in range(10)]
    for thing in things:
        pool.admit(thing)
        assert len(pool) <= 3
    assert pool.admitted == 10
    assert pool.evicted == sum(thing.released for thing in things) == 7
    assert things[-1].released == 0


def test_what_was_used_stays() -> None:
    """The one not touched since the hand last passed goes first."""
    pool = SecondChancePool("things", 2)
    first, second, third, fourth = (Thing() for _ in range(4))
    for thing in (first, second, third):
        pool.admit(thing)
    survivor = next(thing for thing in (first, second) if not thing.released)
    survivor.used = True
    third.used = False
    pool.admit(fourth)
    assert third.released == 1
    assert survivor.released == 0


def test_weights_count() -> None:
    """A heavy one pushes several out, and alone it may be heavier than the pool."""
    pool = SecondChancePool("bytes", 100)
    small = [Thing() for _ in range(5)]
    for thing in small:
        pool.admit(thing, 20)
    pool.admit(heavy := Thing(), 500)
    assert all(thing.released for thing in small)
    assert not heavy.released
    pool.admit(heavy, 10)
    assert pool.weight == 10


def test_what_left_by_itself_is_not_counted() -> None:
    """Discarding twice, or a stranger, does nothing."""
    pool = SecondChancePool("things", 2)
    pool.admit(thing := Thing())
    pool.discard(thing)
    pool.discard(thing)
    assert (len(pool), pool.weight, thing.released) == (0, 0, 0)


def test_room_can_be_asked_for() -> None:
    """Also of what is in use: somebody else needs it more. The oldest go first."""
    pool = SecondChancePool("things", 10)
    things = [Thing() for _ in range(5)]
    for thing in things:
        pool.admit(thing)
        thing.used = True
    assert pool.evict(2) == 2
    assert [thing.released for thing in things] == [1, 1, 0, 0, 0]
    assert (len(pool), pool.weight) == (3, 3)
    assert pool.evict(10) == 3
    assert pool.evict(1) == 0
