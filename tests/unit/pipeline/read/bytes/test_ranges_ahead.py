from hypothesis import given
from hypothesis import strategies as st

from pipeline.read.bytes.ranges_ahead import PARTS_AHEAD, ranges_ahead

DATA = bytes(range(256)) * 4


class Memory:
    """An object in memory; what was begun is read when it is waited for."""

    def __init__(self, *, is_local: bool) -> None:
        self.is_local = is_local
        self.begun = 0
        self.waited = 0
        self.cancelled = 0

    def begin(self, position: int, into: memoryview) -> "_Range":
        self.begun += 1
        return _Range(self, position, into)


class _Range:
    def __init__(self, memory: Memory, position: int, into: memoryview) -> None:
        self._memory = memory
        self._position = position
        self._into = into

    def wait(self) -> None:
        self._memory.waited += 1
        self._into[:] = DATA[self._position : self._position + len(self._into)]

    def cancel(self) -> None:
        self._memory.cancelled += 1


@given(
    position=st.integers(0, 500),
    size=st.integers(0, 500),
    part_bytes=st.integers(1, 600),
    is_local=st.booleans(),
)
def test_all_bytes_come_in_order(position: int, size: int, part_bytes: int, is_local: bool) -> None:
    source = Memory(is_local=is_local)
    parts = [bytes(part) for part in ranges_ahead(source, position, size, part_bytes)]
    assert b"".join(parts) == DATA[position : position + size]
    assert all(len(part) == part_bytes for part in parts[:-1])
    assert source.cancelled == 0


def test_the_next_parts_are_under_way_and_given_up_at_the_end() -> None:
    source = Memory(is_local=False)
    parts = ranges_ahead(source, 0, 1000, 100)
    next(parts)
    assert (source.begun, source.waited) == (1 + PARTS_AHEAD, 1)
    next(parts)
    assert (source.begun, source.waited) == (2 + PARTS_AHEAD, 2)
    parts.close()
    assert source.cancelled == PARTS_AHEAD


def test_a_file_is_not_read_ahead() -> None:
    source = Memory(is_local=True)
    next(ranges_ahead(source, 0, 1000, 100))
    assert source.begun == 1
