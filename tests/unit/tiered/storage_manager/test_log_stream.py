import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.environment.randomness import SeededRandomness
from tests.effort import examples
from tests.fakes.filesystem import FakeFile, FakeFilesystem
from tests.unit.tiered.format.closed_segments import Segment, make_segment
from tiered.errors import CorruptSegmentError
from tiered.format.encryption import ChunkCipher, new_data_key
from tiered.format.segment_check import SegmentCheck
from tiered.format.transform import ChunkTransform
from tiered.storage_manager.disk_threads import DiskThreads
from tiered.storage_manager.log_stream import READ_BYTES, LogStream
from tiered.storage_manager.workspace import Workspace

RANDOMNESS = SeededRandomness(1)


def transform(kind: str) -> ChunkTransform:
    cipher = ChunkCipher(new_data_key(RANDOMNESS), RANDOMNESS) if "aes" in kind else None
    return ChunkTransform(compression="zstd" in kind, cipher=cipher)


def stream(segment: Segment, chunk_bytes: int, kind: str = "plain") -> LogStream:
    disk = FakeFilesystem()
    files = segment.write(disk, "/p")
    parts: Any = {each: bytes(data) for each, data in segment.parts.items()}
    return LogStream(
        disk.open(files.log),
        segment.metadata.segment_size_bytes,
        chunk_bytes,
        SegmentCheck(segment.metadata, files, parts),
        transform(kind),
        Workspace(),
        DiskThreads(2),
    )


@examples(30)
@given(
    sizes=st.lists(st.integers(0, 300), min_size=1, max_size=8),
    chunk_bytes=st.integers(1, 500),
    kind=st.sampled_from(["plain", "zstd", "aes", "zstd+aes"]),
)
def test_chunks_come_back(sizes: list[int], chunk_bytes: int, kind: str) -> None:
    """Each is whole when it is handed over, and stays so until the next is asked for."""

    async def run() -> None:
        segment = make_segment([b"ab" * size for size in sizes])
        chunks = stream(segment, chunk_bytes, kind)
        promised = chunks.stored_size
        log = b""
        stored_size = 0
        async for stored in chunks:
            # Time for a thread to do what it should not.
            await asyncio.sleep(0)
            stored_size += len(stored)
            room = bytearray(chunk_bytes)
            restore = chunks._transform.restore
            decrypted = memoryview(bytearray(len(stored)))
            log += restore(stored, decrypted, memoryview(room))
        assert log == segment.log
        assert promised in (None, stored_size)
        index = chunks.chunk_index()
        assert index.stored_file_size == stored_size
        assert index.count == len(chunks.chunk_crcs) == len(chunks.stored_crcs)

    asyncio.run(run())


async def test_the_last_chunk_of_a_corrupt_log_is_never_handed_over() -> None:
    """What a store has by then is less than the object it was promised."""
    segment = make_segment([b"x" * 100] * 20)
    segment.log[-1] ^= 1
    chunks = stream(segment, 1000)
    sizes = []
    with pytest.raises(CorruptSegmentError):
        sizes = [len(stored) async for stored in chunks]
    assert sizes == []
    assert isinstance(chunks.error, CorruptSegmentError)


async def test_one_chunk_is_made_ready_ahead() -> None:
    """While the store takes the one before; never two, which would be in its memory."""
    chunks = stream(make_segment([b"x" * 100] * 20), 100)
    iterator = aiter(chunks)
    await anext(iterator)
    for _ in range(50):
        await asyncio.sleep(0.0002)
    assert len(chunks.chunk_crcs) == 2
    await chunks.settle()
    with pytest.raises(StopAsyncIteration):
        await anext(iterator)


async def test_settling_hides_no_thread() -> None:
    """Nobody fetches the error of a chunk that nobody wants any more; nothing is logged of it."""
    segment = make_segment([b"x" * 100] * 3)
    segment.log[-1] ^= 1
    chunks = stream(segment, 400)
    await anext(aiter(chunks))
    await chunks.settle()
    assert chunks.error is None


async def test_the_log_is_read_in_short_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system call may keep its CPU until it ends, and the broker may want that CPU."""
    lengths = []
    read_into = FakeFile.read_into

    def recording(file: FakeFile, buffer: memoryview, position: int) -> int:
        lengths.append(len(buffer))
        return read_into(file, buffer, position)

    monkeypatch.setattr(FakeFile, "read_into", recording)
    segment = make_segment([b"x" * 100_000] * 5)
    log = b"".join([bytes(stored) async for stored in stream(segment, 400_000)])
    assert log == segment.log
    assert max(lengths) == READ_BYTES
    assert sum(lengths) == len(log)
