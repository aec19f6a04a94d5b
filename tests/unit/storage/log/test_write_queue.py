"""How a log ends once what is queued is written."""

from storage.log.write_queue import QueuedWrite, WriteQueue
from storage.segment.batch_append import BatchAppend
from storage.segment.segment import Segment
from tests.fakes.filesystem import FakeFilesystem


def segment(base_offset: int) -> Segment:
    return Segment(
        "/t-0", base_offset, FakeFilesystem(), index_interval_bytes=90, index_max_bytes=900
    )


def write(first: int, last: int, size: int, timestamp: int) -> QueuedWrite:
    return QueuedWrite(bytes(size), first, [BatchAppend(size, last, timestamp)], None)


def test_the_tail_grows_with_each_write() -> None:
    queue = WriteQueue(10, segment(10))
    queue.add(write(10, 14, 100, 7))
    queue.add(write(15, 15, 50, 5))
    assert (queue.next_offset, queue.tail_size, queue.tail_first_timestamp) == (16, 150, 7)


def test_a_write_with_a_segment_begins_another_tail() -> None:
    queue = WriteQueue(10, segment(10))
    queue.add(write(10, 14, 100, 7))
    rolled = write(15, 15, 50, 9)
    rolled.segment = segment(15)
    queue.add(rolled)
    assert queue.tail is rolled.segment
    assert (queue.next_offset, queue.tail_size, queue.tail_first_timestamp) == (16, 50, 9)


def test_memory_is_given_back_once() -> None:
    given: list[int] = []
    lent = QueuedWrite(b"x", 0, [BatchAppend(1, 0, 0)], lambda: given.append(1))
    lent.let_go()
    lent.let_go()
    assert (given, lent.records) == ([1], b"")
