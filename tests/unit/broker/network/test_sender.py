"""Files and bytes leave in order, whatever the socket takes at a time."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker.network import sender as sender_module
from broker.network.sender import FLUSH_BYTES_MAX, INLINE_SLICE_MAX, Sender, is_cached, warm
from storage.environment.local_filesystem import LocalFilesystem
from storage.types.file_slice import FileSlice
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


def test_cold_pages_are_left_to_a_thread(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop does not wait for the disk: it hands the slice out, and sends it when it is warm."""
    monkeypatch.setattr(sender_module, "is_cached", lambda *_: False)
    stream = FakeStream()
    sender = Sender(stream)
    piece = slice_of(path, 0, INLINE_SLICE_MAX + 1)
    sender.push([b"head", piece])
    assert not sender.flush()
    assert bytes(stream.sent) == b"head"
    assert sender.cold is piece
    warm(piece)
    assert sender.flush()
    assert len(stream.sent) == 4 + INLINE_SLICE_MAX + 1


def test_what_a_cold_look_up_led_to_is_not_asked_about(path: Path) -> None:
    """It has brought the first page and the last: a probe that looks there would find them."""
    stream = FakeStream()
    sender = Sender(stream)
    piece = slice_of(path, 0, INLINE_SLICE_MAX + 1)
    warm(piece)
    piece.is_doubted = True
    sender.push([piece])
    assert not sender.flush()
    assert sender.cold is piece
    assert sender.flush(), "a thread has read it: once is enough"
    assert len(stream.sent) == INLINE_SLICE_MAX + 1


def test_pages_missing_in_between_are_noticed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The probe looks at some; all are counted."""
    piece = slice_of(path, 0, len(CONTENT))
    warm(piece)
    monkeypatch.setattr(sender_module, "has_holes", lambda *_: True)
    monkeypatch.setattr(sender_module, "_counted_left", 1)
    assert not is_cached(piece.file.fileno(), 0, len(CONTENT))


def test_pages_are_counted_while_slices_are_cold(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counting costs a tenth of sending: not where everything is in memory anyway."""
    piece = slice_of(path, 0, len(CONTENT))
    warm(piece)
    counted: list[object] = []
    monkeypatch.setattr(sender_module, "has_holes", lambda *asked: counted.append(asked))
    monkeypatch.setattr(sender_module, "_counted_left", 2)
    for _ in range(3):
        assert is_cached(piece.file.fileno(), 0, len(CONTENT))
    assert len(counted) == 2
    piece.is_doubted = True
    sender = Sender(FakeStream())
    sender.push([piece])
    assert not sender.flush(), "a thread is to read it"
    assert is_cached(piece.file.fileno(), 0, len(CONTENT))
    assert len(counted) == 3


def test_cached_pages_are_seen(path: Path) -> None:
    piece = slice_of(path, 0, len(CONTENT))
    warm(piece)
    assert is_cached(piece.file.fileno(), 0, len(CONTENT))


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
    """Never wrong data: the connection ends instead."""
    sender = Sender(FakeStream())
    sender.push([slice_of(path, len(CONTENT) - 10, INLINE_SLICE_MAX + 1)])

    def send_all() -> None:
        while not sender.flush():
            pass

    with pytest.raises(OSError, match="shorter"):
        send_all()


def test_a_platform_without_nowait_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """And counts every page as cached, so that it works all the same."""
    assert sender_module.describe_missing() == ()
    monkeypatch.setattr(sender_module, "NOWAIT", None)
    assert "RWF_NOWAIT" in sender_module.describe_missing()[0]
    assert is_cached(-1, 0, 100)
