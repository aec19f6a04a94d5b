"""Frames: what goes in comes out, in whatever pieces; hostile bytes are one kind of error."""

import itertools
import json
import struct
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiered.worker import frames
from tiered.worker.frames import (
    DATA_SIZE_MAX,
    FRAME_SIZE_MAX,
    FrameDecoder,
    FrameError,
    Kind,
    Message,
    MessageTooLargeError,
    encode,
)


def frame(head: bytes, data: bytes = b"") -> bytes:
    return struct.pack(">II", 4 + len(head) + len(data), len(head)) + head + data


def head(kind: str, number: object = 1, **fields: object) -> bytes:
    return json.dumps({"kind": kind, "id": number, **fields}).encode()


def feed_all(decoder: FrameDecoder, pieces: Sequence[bytes]) -> list[Message]:
    return [message for piece in pieces for message in decoder.feed(piece)]


MESSAGES = st.lists(
    st.tuples(
        st.sampled_from([kind for kind in Kind if kind is not Kind.PART]),
        st.integers(0, 2**63 - 1),
        st.dictionaries(st.sampled_from(["method", "arguments"]), st.text(max_size=20)),
        st.binary(max_size=60),
    ),
    max_size=5,
)


@given(MESSAGES, st.lists(st.integers(0, 400), max_size=10), st.integers(100, 200))
def test_any_message_in_any_pieces(
    messages: list[tuple[Kind, int, dict[str, Any], bytes]], cuts: list[int], size_max: int
) -> None:
    """Also with frames so small that most messages take several."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frames, "FRAME_SIZE_MAX", size_max)
        stream = b""
        expected = []
        for kind, number, fields, some in messages:
            data = some if kind in (Kind.CALL, Kind.RESULT) else b""
            try:
                stream += b"".join(encode(kind, number, fields, data))
            except MessageTooLargeError:
                continue
            expected.append((kind, number, fields, data))
        edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
        pieces = [stream[a:b] for a, b in itertools.pairwise(edges)]
        decoder = FrameDecoder()
        found = feed_all(decoder, pieces)
    assert [(m.kind, m.id, m.data) for m in found] == [(k, n, d) for k, n, _, d in expected]
    for message, (_, _, fields, _) in zip(found, expected, strict=True):
        assert fields.items() <= message.fields.items()
    assert decoder.held_bytes == 0


@given(st.lists(st.binary(max_size=40), max_size=8))
def test_hostile_bytes_are_a_frame_error(pieces: list[bytes]) -> None:
    """And hold no more memory than was sent."""
    decoder = FrameDecoder()
    try:
        feed_all(decoder, pieces)
    except FrameError:
        return
    assert decoder.held_bytes <= sum(map(len, pieces))


@pytest.mark.parametrize(
    "bad",
    [
        struct.pack(">II", FRAME_SIZE_MAX + 1, 2),
        struct.pack(">II", 0xFFFFFFFF, 2),
        struct.pack(">II", 5, 1),
        struct.pack(">II", 6, 3) + b"{}",
        struct.pack(">II", 6, 1) + b"{}",
        frame(b"[]"),
        frame(b"{}"),
        frame(b"nonsense"),
        frame(b"\xff\xfe"),
        frame(b"[" * 200_000),
        frame(head("unknown")),
        frame(head("call", -1)),
        frame(head("call", 1 << 63)),
        frame(head("call", True)),
        frame(head("call", "1")),
        frame(head("call", 1.0)),
        frame(b'{"kind": [], "id": 1}'),
        frame(b'{"kind": "call", "id": ' + b"9" * 5000 + b"}"),
        frame(head("part", 1)),
        frame(head("part", 1), b"x") + frame(head("part", 2), b"x"),
    ],
)
def test_refused(bad: bytes) -> None:
    with pytest.raises(FrameError):
        feed_all(FrameDecoder(), [bad])


def test_length_is_refused_before_the_frame_is_there() -> None:
    """No memory is held for a frame that is too long."""
    decoder = FrameDecoder()
    with pytest.raises(FrameError):
        feed_all(decoder, [struct.pack(">II", FRAME_SIZE_MAX + 1, 2)])
    assert decoder.held_bytes == 0


def test_largest_object_crosses_in_pieces() -> None:
    data = bytes(range(256)) * (DATA_SIZE_MAX // 256)
    decoder = FrameDecoder()
    sent = list(encode(Kind.RESULT, 7, {"result": None}, data))
    assert max(map(len, sent)) <= FRAME_SIZE_MAX + 4
    (message,) = feed_all(decoder, sent)
    assert message.data == data
    assert decoder.held_bytes == 0


def test_too_much_data_is_not_sent() -> None:
    with pytest.raises(MessageTooLargeError):
        encode(Kind.CALL, 1, {}, bytes(DATA_SIZE_MAX + 1))
    with pytest.raises(MessageTooLargeError):
        encode(Kind.CALL, 1, {"arguments": "x" * FRAME_SIZE_MAX})


def test_too_much_data_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "DATA_SIZE_MAX", 10)
    decoder = FrameDecoder()
    feed_all(decoder, [frame(head("part"), b"x" * 10)])
    with pytest.raises(FrameError):
        feed_all(decoder, [frame(head("part"), b"x")])
    decoder = FrameDecoder()
    feed_all(decoder, [frame(head("part"), b"x" * 10)])
    with pytest.raises(FrameError):
        feed_all(decoder, [frame(head("call"), b"x")])


@pytest.mark.parametrize("kind", ["cancel", "error"])
def test_unfinished_message_is_dropped(kind: str) -> None:
    """Its sender was cancelled between two pieces."""
    decoder = FrameDecoder()
    assert feed_all(decoder, [frame(head("part", 5), b"half")]) == []
    (message,) = feed_all(decoder, [frame(head(kind, 5))])
    assert message.data == b""
    assert decoder.held_bytes == 0
    (message,) = feed_all(decoder, [frame(head("part", 6), b"a"), frame(head("call", 6), b"b")])
    assert message.data == b"ab"


def test_small_messages_come_between_pieces() -> None:
    decoder = FrameDecoder()
    stream = [frame(head("part", 5), b"a"), frame(head("call", 6), b"c"), frame(head("call", 5))]
    assert [(m.id, m.data) for m in feed_all(decoder, stream)] == [(6, b"c"), (5, b"a")]
