"""Frames come out whole and in order, however their bytes arrive and whatever is put back."""

from dataclasses import dataclass
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.framing import (
    FRAMES_MAX,
    RESPONSE_SIZE_MIN,
    FrameReader,
    NoMemory,
    SizeRefused,
    frame,
)

SHARED_SIZE = 64
SIZE_MAX = 300


@dataclass
class Buffer:
    view: memoryview
    size: int
    filled: int = 0


class Pool:
    """Memory that is poisoned when it is given back; at most `left` buffers."""

    def __init__(self, left: int = 1 << 30) -> None:
        self.charged = 0
        self.left = left
        self.reserved: list[int] = []

    def take(self, size: int) -> Buffer:
        if not self.left:
            raise MemoryError("none left")
        self.left -= 1
        self.reserved.append(size)
        return Buffer(memoryview(bytearray(size)), size)

    def give_back(self, buffer: Buffer) -> None:
        self.left += 1
        self.charged -= buffer.filled
        buffer.view[:] = b"\xee" * len(buffer.view)


class Feed:
    """A reader, and a stream that delivers as many bytes at a time as it is asked to."""

    def __init__(self, data: bytes, *, size_min: int = 8, left: int = 1 << 30) -> None:
        self.pool = Pool(left)
        self.shared = memoryview(bytearray(SHARED_SIZE))
        self.reader: FrameReader[Buffer] = FrameReader(
            self.shared, self.pool, size_max=SIZE_MAX, size_min=size_min
        )
        self.data = data

    def receive(self, count: int) -> list[memoryview]:
        """Up to `count` bytes, as `recv_into` would."""
        part = self.data[: min(count, len(self.reader.buffer))]
        self.data = self.data[len(part) :]
        self.reader.buffer[: len(part)] = part
        return self.reader.next_frames(len(part)) if part else []

    def drain(self, frames: list[memoryview]) -> list[bytes]:
        """Handle frames, and all behind them; then other connections use the shared buffer."""
        found = []
        while frames:
            found += [bytes(one) for one in frames]
            if self.reader.lent is not None:
                self.reader.release(frames)
            frames = self.reader.next_frames() if self.reader.has_more else []
        self.shared[:] = b"\xdd" * SHARED_SIZE
        return found


payloads_of = st.lists(st.binary(min_size=8, max_size=SIZE_MAX), max_size=12)
cuts_of = st.lists(st.integers(min_value=1, max_value=SHARED_SIZE), min_size=1, max_size=40)


@given(payloads=payloads_of, cuts=cuts_of)
def test_frames_survive_any_splitting(payloads: list[bytes], cuts: list[int]) -> None:
    feed = Feed(b"".join(map(frame, payloads)))
    found = []
    at = 0
    while feed.data:
        found += feed.drain(feed.receive(cuts[at % len(cuts)]))
        at += 1
    assert found == payloads
    assert feed.pool.charged == 0
    assert feed.reader.error is None


@given(payloads=payloads_of, cuts=cuts_of, seed=st.integers(0, 2**32 - 1))
def test_frames_that_are_put_back_are_given_out_again(
    payloads: list[bytes], cuts: list[int], seed: int
) -> None:
    """Any of those that were given out; others receive into the shared buffer meanwhile.

    How many is drawn by a seed: hypothesis gives up most inputs with so many draws for each byte.
    """
    noise = Random(seed)
    feed = Feed(b"".join(map(frame, payloads)))
    reader = feed.reader
    found = []
    at = 0
    while feed.data:
        frames = feed.receive(cuts[at % len(cuts)])
        at += 1
        while frames or reader.has_put_back:
            handled = noise.randint(0, len(frames))
            found += [bytes(one) for one in frames[:handled]]
            if handled < len(frames):
                left = sum(len(one) for one in frames[handled:])
                reader.put_back(frames[handled:])
                assert feed.pool.charged >= left
                feed.shared[:] = b"\xdd" * SHARED_SIZE
                frames = reader.next_frames() if noise.random() < 0.5 else []
                continue
            if reader.lent is not None:
                reader.release(frames)
            again = reader.has_more or reader.has_put_back
            frames = reader.next_frames() if again else []
        feed.shared[:] = b"\xdd" * SHARED_SIZE
    assert found == payloads
    assert feed.pool.charged == 0


@given(payloads=payloads_of, cuts=cuts_of, steps=st.integers(min_value=0, max_value=40))
def test_an_ended_connection_leaves_nothing_charged(
    payloads: list[bytes], cuts: list[int], steps: int
) -> None:
    """In any state: between frames, in one, with frames put back."""
    feed = Feed(b"".join(map(frame, payloads)))
    for at in range(steps):
        frames = feed.receive(cuts[at % len(cuts)])
        if frames and at == steps - 1:
            feed.reader.put_back(frames[len(frames) // 2 :])
            break
        feed.drain(frames)
    feed.reader.clear()
    assert feed.pool.charged == 0


@given(
    payloads=payloads_of,
    cuts=cuts_of,
    size=st.integers(min_value=-(1 << 31), max_value=(1 << 31) - 1).filter(
        lambda size: not 8 <= size <= SIZE_MAX
    ),
)
def test_a_size_outside_the_limits_is_an_error_behind_the_frames_before_it(
    payloads: list[bytes], cuts: list[int], size: int
) -> None:
    """No memory is reserved for it."""
    feed = Feed(b"".join(map(frame, payloads)) + size.to_bytes(4, "big", signed=True) + b"tail")
    found: list[bytes] = []
    at = 0
    while feed.data and feed.reader.error is None:
        found += feed.drain(feed.receive(cuts[at % len(cuts)]))
        at += 1
    assert found == payloads
    assert feed.reader.error == SizeRefused(size, 8, SIZE_MAX)
    assert size not in feed.pool.reserved
    assert feed.pool.charged == 0
    with pytest.raises(RuntimeError):
        feed.reader.next_frames(1)


def test_errors_name_size_and_limits() -> None:
    assert str(SizeRefused(7, 8, 100)) == "frame of 7 bytes announced; 8 to 100 are allowed"
    assert str(NoMemory(100, "none left")) == "no memory for a frame of 100 bytes: none left"


@pytest.mark.parametrize(("size", "size_min"), [(8, 8), (SIZE_MAX, 8), (4, RESPONSE_SIZE_MIN)])
def test_both_limits_are_inclusive(size: int, size_min: int) -> None:
    feed = Feed(frame(b"x" * size), size_min=size_min)
    found: list[bytes] = []
    while feed.data:
        found += feed.drain(feed.receive(SHARED_SIZE))
    assert found == [b"x" * size]


def test_without_memory_the_error_says_so() -> None:
    """The rest of the frame could not be kept: there is no next frame."""
    feed = Feed(frame(b"request1") + frame(b"x" * 200), left=0)
    assert feed.drain(feed.receive(SHARED_SIZE)) == [b"request1"]
    assert feed.reader.error == NoMemory(200, "none left")
    assert feed.pool.charged == 0


def test_announced_bytes_are_reserved_and_not_charged() -> None:
    feed = Feed(frame(b"x" * 200)[:14])
    assert feed.receive(SHARED_SIZE) == []
    assert feed.pool.reserved == [200]
    assert feed.pool.charged == 10


def test_frames_are_given_out_a_bounded_number_at_a_time() -> None:
    """256 KiB of the smallest frames would be 21,845 views."""
    data = b"".join(frame(b"%08d" % number) for number in range(FRAMES_MAX + 1))
    shared = memoryview(bytearray(data))
    reader = FrameReader(shared, Pool(), size_max=SIZE_MAX)
    assert len(reader.next_frames(len(data))) == FRAMES_MAX
    assert [bytes(one) for one in reader.next_frames()] == [b"%08d" % FRAMES_MAX]


def test_a_whole_frame_is_a_view_of_where_it_was_received() -> None:
    """A handler that writes into it (offsets of a produced batch) writes there."""
    feed = Feed(frame(b"request1"))
    (found,) = feed.receive(SHARED_SIZE)
    found[:1] = b"R"
    assert bytes(feed.shared[4:12]) == b"Request1"


def test_nothing_may_be_received_while_frames_are_put_back() -> None:
    """It would be taken for bytes behind them."""
    feed = Feed(frame(b"request1"))
    feed.reader.put_back(feed.receive(SHARED_SIZE))
    with pytest.raises(RuntimeError):
        feed.reader.next_frames(1)


def test_frame_puts_the_size_before_the_pieces() -> None:
    """The size does not count itself."""
    assert frame(b"ab", b"", b"cde") == b"\x00\x00\x00\x05abcde"
