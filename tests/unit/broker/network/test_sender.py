"""Files and bytes leave in order, whatever the socket takes at a time."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker.network.sender import (
    FLUSH_BYTES_MAX,
    INLINE_SLICE_MAX,
    JOINED_BYTES_MAX,
    Sender,
)
from storage.environment import page_cache
from storage.environment.local_filesystem import LocalFilesystem
from storage.types.file_slice import FileSlice
from tests.fakes.filesystem import FakeFilesystem
from tests.fakes.network.sockets import FakeStream

CONTENT = bytes(range(256)) * 4096


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sender") / "data"
    path.write_bytes(CONTENT)
    return path


def slice_of(path: Path, position: int, length: int) -> FileSlice:
    file = LocalFilesystem().open(str(path), readonly=True)
    return FileSlice(file, position, length)


PIECE = st.one_of(
    st.binary(min_size=1, max_size=300),
    st.tuples(st.integers(0, 1000), st.integers(1, 3 * INLINE_SLICE_MAX)),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    responses=st.lists(st.lists(PIECE, min_size=1, max_size=80), min_size=1, max_size=4),
    windows=st.lists(st.integers(0, 40_000), min_size=1, max_size=30),
)
def test_what_nothing_waits_before_leaves_in_order_too(
    path: Path, responses: list[list[bytes | tuple[int, int]]], windows: list[int]
) -> None:
    """An answer that finds the queue empty is sent as it is, and only its rest is queued."""
    stream = FakeStream()
    sender = Sender(stream)
    expected = b""
    left = list(windows)
    for pieces in responses:
        answer: list[object] = []
        for piece in pieces:
            if isinstance(piece, bytes):
                answer.append(piece)
                expected += piece
            else:
                answer.append(slice_of(path, *piece))
                expected += CONTENT[piece[0] : piece[0] + piece[1]]
        stream.window = left.pop() if left else 1 << 30
        assert sender.send(answer) is sender.idle
        stream.window = 1 << 30
        while not sender.idle:
            assert sender.queued_bytes >= 0
            sender.flush()
        assert sender.queued_bytes == 0
    assert bytes(stream.sent) == expected
    assert sender.bytes_sent == len(expected)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    responses=st.lists(st.lists(PIECE, min_size=1, max_size=5), min_size=1, max_size=4),
    windows=st.lists(st.integers(0, 40_000), min_size=1, max_size=30),
)
def test_everything_leaves_in_order(
    path: Path, responses: list[list[bytes | tuple[int, int]]], windows: list[int]
) -> None:
    """Bytes and slices, small and large, come out as one stream through any window."""
    stream = FakeStream()
    sender = Sender(stream)
    expected = b""
    for pieces in responses:
        queued: list[object] = []
        for piece in pieces:
            if isinstance(piece, bytes):
                queued.append(piece)
                expected += piece
            else:
                queued.append(slice_of(path, *piece))
                expected += CONTENT[piece[0] : piece[0] + piece[1]]
        sender.push(queued)
    for window in windows:
        stream.window = window
        if sender.flush():
            break
    stream.window = None
    while not sender.flush():
        pass
    assert bytes(stream.sent) == expected
    assert sender.queued_bytes == 0
    assert sender.bytes_sent == len(expected)


class CountingStream(FakeStream):
    """Counts the buffers of each call."""

    def __init__(self) -> None:
        super().__init__()
        self.buffers: list[int] = []

    def send_buffers(self, buffers: Sequence[Any], more: bool) -> int:
        self.buffers.append(len(buffers))
        return super().send_buffers(buffers, more)


@pytest.mark.parametrize(
    ("sizes", "buffers"),
    [
        ([100] * 3, [1]),
        ([JOINED_BYTES_MAX], [1]),
        ([JOINED_BYTES_MAX - 9, 9], [1]),
        # Larger ones are not copied.
        ([JOINED_BYTES_MAX - 9, 10], [2]),
        ([100, 100, JOINED_BYTES_MAX, 100], [4]),
    ],
)
@pytest.mark.parametrize("window", [None, 0, 1, 150])
def test_small_answers_are_joined(sizes: list[int], buffers: list[int], window: int | None) -> None:
    """The peer gets one buffer, and what it does not take at once later, in order."""
    stream = CountingStream()
    sender = Sender(stream)
    answers = [bytes([place]) * size for place, size in enumerate(sizes)]
    for place, answer in enumerate(answers):
        assert sender.queued_pieces == place
        sender.push([answer])
    assert not sender.idle
    assert sender.queued_bytes == sum(sizes)
    stream.window = window
    assert sender.flush() is sender.idle is (window is None)
    assert stream.buffers == buffers
    assert sender.queued_bytes == sum(sizes) - len(stream.sent)
    sender.push([b"last"])
    stream.window = None
    while not sender.idle:
        sender.flush()
    assert bytes(stream.sent) == b"".join(answers) + b"last"
    assert (sender.queued_bytes, sender.bytes_sent) == (0, sum(sizes) + 4)


@pytest.mark.parametrize("window", [0, 1, 4])
def test_the_rest_of_a_small_answer_is_queued(window: int) -> None:
    """Also of one that was sent as it is, since nothing was before it."""
    stream = FakeStream()
    stream.window = window
    sender = Sender(stream)
    assert not sender.send([b"small"])
    assert (sender.queued_bytes, sender.queued_pieces) == (5 - window, 1)
    stream.window = None
    assert sender.flush()
    assert bytes(stream.sent) == b"small"


def test_what_is_left_of_an_ended_connection_is_dropped() -> None:
    """Small answers as well as queued ones."""
    sender = Sender(FakeStream())
    sender.push([b"small"])
    sender.clear()
    assert sender.idle
    assert (sender.queued_bytes, sender.queued_pieces) == (0, 0)


def test_cold_pages_are_left_to_a_thread(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop does not wait for the disk: it hands the slice out, and sends it when it is warm."""
    monkeypatch.setattr(page_cache, "is_cached", lambda *_: False)
    stream = FakeStream()
    sender = Sender(stream)
    piece = slice_of(path, 0, INLINE_SLICE_MAX + 1)
    sender.push([b"head", piece])
    assert not sender.flush()
    assert bytes(stream.sent) == b"head"
    assert sender.cold is piece
    piece.file.warm(piece.position, piece.length)
    assert sender.flush()
    assert len(stream.sent) == 4 + INLINE_SLICE_MAX + 1


def test_what_a_cold_look_up_led_to_is_not_asked_about(path: Path) -> None:
    """It has brought the first page and the last: a probe that looks there would find them."""
    stream = FakeStream()
    sender = Sender(stream)
    piece = slice_of(path, 0, INLINE_SLICE_MAX + 1)
    piece.file.warm(piece.position, piece.length)
    piece.is_doubted = True
    sender.push([piece])
    assert not sender.flush()
    assert sender.cold is piece
    assert sender.flush(), "a thread has read it: once is enough"
    assert len(stream.sent) == INLINE_SLICE_MAX + 1


def test_a_cold_slice_has_pages_counted(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one slice is cold, pages of others may have been evicted as well."""
    monkeypatch.setattr(page_cache, "_counted_left", 0)
    piece = slice_of(path, 0, len(CONTENT))
    piece.is_doubted = True
    sender = Sender(FakeStream())
    sender.push([piece])
    assert not sender.flush(), "a thread is to read it"
    assert page_cache._counted_left == page_cache.COUNTED_AFTER_COLD


def test_a_small_slice_that_is_not_in_memory_is_not_waited_for() -> None:
    """It would be read and gathered; cold, it waits for a thread like a large one."""
    disk = FakeFilesystem()
    file = disk.open("/small", create=True)
    file.write_at(b"0123456789", 0)
    disk.is_cold = lambda _path: True
    stream = FakeStream()
    sender = Sender(stream)
    piece = FileSlice(file, 2, 5)
    sender.push([b"head", piece])
    assert not sender.flush()
    assert bytes(stream.sent) == b"head"
    assert sender.cold is piece
    file.warm(2, 5)
    disk.is_cold = lambda _path: False
    assert sender.flush()
    assert bytes(stream.sent) == b"head23456"


@pytest.mark.parametrize("size", [5, INLINE_SLICE_MAX + 5])
def test_what_the_disk_refuses_is_left_to_a_thread(size: int) -> None:
    """There it is known what has refused: the disk, and not the peer."""
    disk = FakeFilesystem()
    file = disk.open("/log", create=True)
    file.write_at(bytes(size), 0)
    disk.fail("read", times=2 if size <= INLINE_SLICE_MAX else 1)
    stream = FakeStream()
    sender = Sender(stream)
    piece = FileSlice(file, 0, size)
    sender.push([b"head", piece])
    while not sender.flush():
        if sender.cold is not None:
            break
    assert sender.cold is piece
    assert bytes(stream.sent) == b"head"
    file.warm(0, size)
    assert sender.flush()
    assert len(stream.sent) == 4 + size


def test_what_the_disk_refuses_again_ends_the_connection() -> None:
    """The thread has found nothing wrong: no turn of the loop is to be the last one's again."""
    disk = FakeFilesystem()
    file = disk.open("/log", create=True)
    file.write_at(bytes(INLINE_SLICE_MAX + 5), 0)
    disk.fail("read", times=2)
    sender = Sender(FakeStream())
    sender.push([FileSlice(file, 0, INLINE_SLICE_MAX + 5)])
    assert not sender.flush()
    with pytest.raises(OSError, match="injected"):
        sender.flush()


def test_one_connection_does_not_keep_the_loop(tmp_path: Path) -> None:
    """A fast reader of much data lets others have their turn."""
    big = tmp_path / "big"
    big.write_bytes(b"x" * (3 * FLUSH_BYTES_MAX))
    stream = FakeStream()
    sender = Sender(stream)
    sender.push([slice_of(big, 0, 3 * FLUSH_BYTES_MAX)])
    assert not sender.flush()
    assert len(stream.sent) == FLUSH_BYTES_MAX
    while not sender.flush():
        pass
    assert len(stream.sent) == 3 * FLUSH_BYTES_MAX


def test_a_file_shorter_than_its_slice_is_an_error(path: Path) -> None:
    """Never wrong data: the connection ends instead, and the file says so to whoever reads it."""
    sender = Sender(FakeStream())
    piece = slice_of(path, len(CONTENT) - 10, INLINE_SLICE_MAX + 1)
    sender.push([piece])
    assert not piece.file.is_short

    def send_all() -> None:
        while not sender.flush():
            pass

    with pytest.raises(OSError, match=f"{path} is shorter"):
        send_all()
    assert piece.file.is_short
