"""Frames: read as they were written, in whatever pieces they come; bounded, and never guessed."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.controller.store.unix.fields import FrameError
from broker.controller.store.unix.frames import (
    RELEASE,
    Frame,
    Hello,
    Kind,
    Welcome,
    decode_hello,
    decode_welcome,
    encode_frame,
    encode_hello,
    encode_welcome,
    read_frame,
)

BYTES_MAX = 1_000

FRAMES = st.builds(
    Frame, st.sampled_from(Kind), st.integers(0, 2**32 - 1), st.binary(max_size=BYTES_MAX - 5)
)


async def read_all(data: bytes, pieces: list[int]) -> list[Frame]:
    """All frames of a connection on which `data` comes, cut at `pieces`."""
    reader = asyncio.StreamReader()
    at = 0
    for size in pieces:
        reader.feed_data(data[at : at + size])
        at += size
    reader.feed_data(data[at:])
    reader.feed_eof()
    frames = []
    while (frame := await read_frame(reader, BYTES_MAX)) is not None:
        frames.append(frame)
    return frames


@given(st.lists(FRAMES, max_size=5), st.lists(st.integers(1, 20), max_size=10))
async def test_frames_are_read_as_they_were_written(frames: list[Frame], pieces: list[int]) -> None:
    assert await read_all(b"".join(map(encode_frame, frames)), pieces) == frames


@given(st.binary(max_size=200))
async def test_garbage_is_an_error_of_the_frame(data: bytes) -> None:
    """Whatever comes: frames, or `FrameError`; nothing else, and no more memory than the limit."""
    try:
        frames = await read_all(data, [])
    except FrameError:
        return
    assert b"".join(map(encode_frame, frames)) == data


@given(FRAMES, st.data())
async def test_a_frame_that_ends_too_soon_is_none(frame: Frame, data: st.DataObject) -> None:
    whole = encode_frame(frame)
    cut = data.draw(st.integers(1, len(whole) - 1))
    with pytest.raises(FrameError, match="ended within a frame"):
        await read_all(whole[:cut], [])


async def test_a_frame_beyond_the_limit_is_refused_by_its_length_alone() -> None:
    """Nothing of it is waited for."""
    reader = asyncio.StreamReader()
    reader.feed_data(b"\xff\xff\xff\xff\x01\x00\x00\x00\x01")
    with pytest.raises(FrameError, match="a frame of 4294967295 bytes, 5 to 1000 are taken"):
        await read_frame(reader, BYTES_MAX)


async def test_a_kind_that_there_is_not_is_refused() -> None:
    with pytest.raises(FrameError, match="kind 40"):
        await read_all(b"\x00\x00\x00\x05\x28\x00\x00\x00\x01", [])


def test_greetings_are_read_as_they_were_written() -> None:
    assert decode_hello(encode_hello(Hello(RELEASE, "node 1"))) == Hello(RELEASE, "node 1")
    welcome = Welcome(RELEASE, 2**63 - 1, 17)
    assert decode_welcome(encode_welcome(welcome)) == welcome


def test_another_release_is_recognised_whatever_follows() -> None:
    body = encode_hello(Hello(RELEASE + 1, "x")) + b"what release 2 has"
    assert decode_hello(body).release == RELEASE + 1


def test_who_greets_otherwise_is_none_of_us() -> None:
    with pytest.raises(FrameError, match="no metadata store's"):
        decode_hello(b"GET / HTTP/1.1\r\n")
