"""The commonest requests in one call: as Python and, where there is a build, in C.

That both say the same of any bytes is shown by `tests.unit.native.test_quick`.
"""

import struct
from uuid import UUID

import pytest

from bench import wire
from protocol.hot.fetch import decode_request as decode_fetch
from protocol.hot.follower_fetch import encode_request
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.fetch import encode_request as encode_fetch
from protocol.quick import (
    encode_fetched,
    encode_produced,
    frame_bytes,
    is_one_batch,
    place_batch,
    plain_batch,
    read_fetch,
    read_fetched,
    read_header,
    read_plain_produce,
    read_produce,
    split_frames,
)
from protocol.records.batch import HEADER
from tests.code_path import CODE

IN_C = CODE.modules > 0
HEADER_OF_PRODUCE = struct.pack(">hhih", 0, 9, 5, 3)
TOPIC_ID = UUID(int=1)
BATCH = wire.record_batch([b"value"])


@pytest.mark.parametrize(
    ("client_id", "frame", "expected"),
    [
        (b"abc", HEADER_OF_PRODUCE + b"abc\0body", (0, 9, 5, 3, 13, 0)),
        (b"abc", HEADER_OF_PRODUCE + b"abc\x01", (0, 9, 5, 3, 13, 1)),
        (b"abc", HEADER_OF_PRODUCE + b"abc", (0, 9, 5, 3, 13, -1)),
        (b"abc", HEADER_OF_PRODUCE + b"ab", (0, 9, 5, 3, -1, -1)),
        (b"abd", HEADER_OF_PRODUCE + b"abc\0", (0, 9, 5, 3, -1, -1)),
        (b"", HEADER_OF_PRODUCE + b"abc\0", (0, 9, 5, 3, -1, -1)),
        (b"", struct.pack(">hhih", 3, 12, -7, 0) + b"\0", (3, 12, -7, 0, -1, -1)),
        (b"abc", struct.pack(">hhih", 3, 12, -7, -1) + b"\0", (3, 12, -7, -1, -1, -1)),
        (b"abc", HEADER_OF_PRODUCE[:9], None),
        (b"", b"", None),
    ],
)
def test_header(client_id: bytes, frame: bytes, expected: tuple[int, ...] | None) -> None:
    """The client id of the request before is not decoded again; any other is the caller's."""
    assert read_header(memoryview(frame), client_id) == expected


def test_a_produce_of_one_partition() -> None:
    """What producers send most: C answers, and its records are a slice of the frame."""
    frame = memoryview(bytearray(wire.produce_frame("topic", 4, BATCH)[4:]))
    _, version, _, length, _, _ = read_header(frame, b"") or (0,) * 6
    found = read_produce(frame, 10 + length + 1, False)
    assert version == 9
    assert (found is not None) is IN_C
    if found is not None:
        assert found[:5] == (None, -1, 30_000, "topic", 4)
        assert found[5].obj is frame.obj
        assert bytes(found[5]) == BATCH
    assert read_plain_produce(frame, 10 + length + 1, False) == (found and found[1:])


@pytest.mark.parametrize(
    ("position", "value"), [(8, 0x7F), (11, 0), (16, 1), (22, 0x10)], ids=lambda it: str(it)
)
def test_a_produce_with_records_that_are_not_plain(position: int, value: int) -> None:
    """Not one whole batch, of an older format, or of a transaction: whoever appends has to look."""
    batch = bytearray(BATCH)
    batch[position] = value
    frame = memoryview(bytearray(wire.produce_frame("topic", 4, bytes(batch))[4:]))
    _, _, _, length, _, _ = read_header(frame, b"") or (0,) * 6
    assert (read_produce(frame, 10 + length + 1, False) is not None) is IN_C
    assert read_plain_produce(frame, 10 + length + 1, False) is None


def test_frames() -> None:
    """All whole ones at once, up to as many as are wanted, or to a size that none has."""
    data = memoryview(bytearray(b"\0\0\0\x08request1\0\0\0\x09request 2\0\0\0\x08reque"))
    found = split_frames(data, 0, len(data), 8, 100, 64)
    assert (found is not None) is IN_C
    if found is not None:
        frames, after = found
        assert [bytes(frame) for frame in frames] == [b"request1", b"request 2"]
        assert all(frame.obj is data.obj for frame in frames)
        assert after == 25
        assert split_frames(data, 0, len(data), 8, 100, 1) == (frames[:1], 12)
        assert split_frames(data, 0, len(data), 8, 8, 64) == (frames[:1], 12)
        assert split_frames(data, 12, len(data), 8, 100, 64) == (frames[1:], 25)
    for begin, size_min in ((0, 9), (25, 8), (len(data), 8)):
        assert split_frames(data, begin, len(data), size_min, 100, 64) is None


def test_a_place_in_the_log() -> None:
    """Base offset, length and leader epoch, and nothing behind them."""
    records = memoryview(bytearray(b"..." + BATCH))
    place_batch(records, 3, 1 << 40, 99, 7)
    assert struct.unpack_from(">qii", records, 3) == (1 << 40, 99, 7)
    assert bytes(records[:3]) == b"..."
    assert bytes(records[19:]) == BATCH[16:]
    with pytest.raises((struct.error, OverflowError)):
        place_batch(records, 0, 1 << 63, 99, 7)
    with pytest.raises((struct.error, ValueError)):
        place_batch(records, len(records) - 15, 0, 99, 7)


@pytest.mark.parametrize("version", [12, 13, 15, 17, 18])
@pytest.mark.parametrize("has_topic", [True, False])
def test_a_fetch_of_one_partition(version: int, has_topic: bool) -> None:
    """What consumers send most, and within a session most often: no partition at all."""
    wanted = FetchPartition(partition=4, fetch_offset=1 << 40, partition_max_bytes=1 << 20)
    topic = FetchTopic(topic="topic", topic_id=TOPIC_ID, partitions=[wanted])
    request = FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=1 << 25,
        session_id=9,
        session_epoch=3,
        topics=[topic] if has_topic else [],
        forgotten_topics_data=[],
        rack_id="rack",
    )
    body = memoryview(encode_fetch(request, version))
    assert (read_fetch(body, 0, version) is not None) is IN_C
    found = decode_fetch(body, 0, version)
    assert (found.max_wait_ms, found.session_id, found.session_epoch) == (500, 9, 3)
    assert (found.rack_id, found.replica_id, found.replica_epoch) == ("rack", -1, -1)
    assert [it.name or it.topic_id for it in found.topics] == (
        [] if not has_topic else ["topic"] if version < 13 else [TOPIC_ID.bytes]
    )
    assert [(p.partition, p.fetch_offset) for it in found.topics for p in it.partitions] == (
        [(4, 1 << 40)] if has_topic else []
    )


def test_a_followers_fetch() -> None:
    """With its replica state at the end."""
    body = encode_request(
        replica_id=3,
        replica_epoch=77,
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=1 << 25,
        session=(9, 3),
        topics={},
        forgotten={},
    )
    found = read_fetch(memoryview(body), 0, 18)
    assert (found is not None) is IN_C
    if found is not None:
        assert found[:2] == (3, 77)


def test_a_batch() -> None:
    """What is plain is judged in one call; what is not is left to those who say why."""
    records = memoryview(bytearray(BATCH))
    assert is_one_batch(records, 9)
    found = plain_batch(records, len(BATCH), -(1 << 63), 1 << 63)
    assert found == (HEADER.unpack_from(BATCH) if IN_C else None)
    assert plain_batch(records, len(BATCH) - 1, -(1 << 63), 1 << 63) is None
    records[-1] ^= 1
    assert is_one_batch(records, 9)
    assert plain_batch(records, len(BATCH), -(1 << 63), 1 << 63) is None
    assert not is_one_batch(records[:-1], 9)


def test_answers() -> None:
    """Written in one call, where each number fits its field."""
    assert (encode_produced("topic", 4, 0, 17, -1, 0, 0) is not None) is IN_C
    assert encode_produced("topic", 1 << 31, 0, 17, -1, 0, 0) is None
    assert encode_produced("n" * 127, 4, 0, 17, -1, 0, 0) is None
    fetched = encode_fetched(bytes(16), 0, 0, 9, 4, 0, 20, 20, 0, 0, -1, 0)
    assert (fetched is not None) is IN_C
    if fetched is not None:
        found = read_fetched(memoryview(fetched))
        assert found is not None
        assert (*found[:8], bytes(found[8])) == (0, 0, 9, bytes(16), 4, 0, 20, 0, b"")


@pytest.mark.parametrize(("has_tags", "tags"), [(True, b"\0"), (False, b"")])
def test_a_frame(has_tags: bool, tags: bytes) -> None:
    """Its size counts what follows it."""
    rest = len(tags) + 4 + 4 + 100
    expected = struct.pack(">ii", rest, 7) + tags + b"body"
    assert frame_bytes(7, has_tags, b"body", 100) == expected
