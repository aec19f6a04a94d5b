"""A copy of a store is told by writes that it lacks, whatever its revisions are."""

from broker.controller.images.controller_history import (
    ENDED_MAX,
    HISTORY_KEY,
    WRITES_KEY,
    ControllerHistory,
    Write,
    newest_write,
)
from broker.controller.store.metadata_store import KeyValue


class Store:
    """Both keys, as elections and controllers put them."""

    def __init__(self) -> None:
        self.items: dict[str, KeyValue] = {}
        self.revision = 1
        self.writer = ""

    @property
    def history(self) -> ControllerHistory:
        return ControllerHistory.of(self.items.values())

    def copy(self) -> "Store":
        other = Store()
        other.items, other.revision, other.writer = dict(self.items), self.revision, self.writer
        return other

    def put(self, key: str, value: bytes) -> None:
        self.revision += 1
        self.items[key] = KeyValue(key, value, self.revision, self.revision, 1)

    def elect(self, node_id: int, *, earlier_release: bool = False) -> None:
        if earlier_release:
            self.revision += 1
        else:
            self.put(HISTORY_KEY, self.history.at_election())
        self.writer = f"{node_id} {self.revision}"

    def write(self) -> Write:
        self.put(WRITES_KEY, f"{self.writer} 1 {self.revision}".encode())
        return Write(self.writer, self.revision)


def test_a_store_has_what_its_controllers_wrote() -> None:
    store = Store()
    seen = []
    for number in range(5):
        store.elect(number % 2)
        seen += [store.write(), store.write()]
    store.elect(3)
    assert not any(map(store.history.lacks, seen))


def test_a_copy_lacks_what_was_written_since_however_far_its_revisions_go() -> None:
    store = Store()
    store.elect(1)
    before = store.write()
    copy = store.copy()
    same = store.write()
    store.elect(2)
    later = store.write()
    copy.revision += 1_000_000
    for _ in range(3):
        assert not copy.history.lacks(before)
        assert copy.history.lacks(same)
        assert copy.history.lacks(later)
        # A broker that has seen none of it goes on there.
        copy.elect(3)
        copy.write()


def test_an_empty_store_lacks_everything() -> None:
    assert Store().history.lacks(Write("1 2", 3))


def test_a_release_that_keeps_no_history_breaks_it_and_nothing_is_held_against_the_store() -> None:
    store = Store()
    store.elect(1)
    seen = [store.write()]
    for number in range(3):
        store.elect(number, earlier_release=True)
        seen.append(store.write())
    assert not any(map(store.history.lacks, seen))
    store.elect(1)
    seen.append(store.write())
    assert not any(map(store.history.lacks, seen))


def test_controllers_that_wrote_nothing_break_no_history() -> None:
    store = Store()
    store.elect(1)
    seen = store.write()
    copy = store.copy()
    for _ in range(3):
        store.elect(2)
    later = store.write()
    store.elect(1)
    assert not store.history.lacks(seen)
    assert not store.history.lacks(later)
    copy.elect(3)
    copy.write()
    assert copy.history.lacks(later)


def test_it_is_bounded() -> None:
    store = Store()
    first = None
    for number in range(ENDED_MAX + 10):
        store.elect(number)
        first = first or store.write()
        store.write()
    assert len(store.history.ended) == ENDED_MAX
    assert first is not None
    assert not store.history.lacks(first)


def test_what_cannot_be_read_says_nothing() -> None:
    for value in (b"", b"x", b"1", b"1 x 2", b"\xff \xff"):
        assert newest_write(value, 5) is None
    for value in (b"", b"[]", b"{}", b'{"v":1,"ended":[["1",2]]}', b'{"v":1,"ended":7}'):
        item = KeyValue(HISTORY_KEY, value, 5, 5, 1)
        assert ControllerHistory.of([item]).ended == ()
