"""How we want the library's client, and the bodies it sends."""

import hashlib
import io
from base64 import b64encode
from contextlib import AsyncExitStack
from typing import Any

from config.object_store import StoreSettings
from tiered.object_store.base import StoreDeadlines
from tiered.object_store.moved_bytes import counting
from tiered.object_store.s3.client import (
    SLICE_BYTES,
    UploadBody,
    _add_md5,
    _send_at_once,
    new_session,
    open_client,
)


async def test_a_body_is_sent_in_slices_without_a_copy() -> None:
    memory = bytearray(2 * SLICE_BYTES + 5)
    pieces = [piece async for piece in UploadBody(memoryview(memory))]
    assert [len(piece) for piece in pieces] == [SLICE_BYTES, SLICE_BYTES, 5]
    assert all(piece.obj is memory for piece in pieces)


async def test_a_body_tells_what_the_connection_has_taken() -> None:
    with counting() as moved:
        taken = aiter(UploadBody(memoryview(bytearray(2 * SLICE_BYTES + 5))))
        await anext(taken)
        assert moved.count == 0
        await anext(taken)
        assert moved.count == SLICE_BYTES
        await anext(taken)
        assert [piece async for piece in taken] == []
        assert moved.count == 2 * SLICE_BYTES + 5


def test_a_body_is_a_file_to_the_library() -> None:
    data = bytes(range(100))
    ours, real = UploadBody(memoryview(data)), io.BytesIO(data)
    assert len(ours) == 100
    for position, whence in ((10, 0), (5, 1), (-20, 2), (0, 2), (0, 0)):
        assert ours.seek(position, whence) == real.seek(position, whence)
        assert ours.tell() == real.tell()
        assert ours.read(7) == real.read(7)
    assert ours.read() == real.read()
    assert ours.read(5) == b""


async def test_the_client_is_as_the_settings_say() -> None:
    settings = StoreSettings(
        bucket="b", endpoint_url="http://127.0.0.1:1", path_style=True, max_connections=7
    )
    async with AsyncExitStack() as stack:
        client = await open_client(
            stack, new_session(), settings, StoreDeadlines(connect_ms=1500, read_ms=2500)
        )
        config = client.meta.config
        assert (config.connect_timeout, config.read_timeout) == (1.5, 2.5)
        assert config.max_pool_connections == 7
        assert config.retries == {"total_max_attempts": 1, "mode": "standard"}
        assert client.meta.region_name == "us-east-1"


def test_uploads_are_sent_without_asking_first() -> None:
    params: dict[str, Any] = {"headers": {"Expect": "100-continue", "x": "y"}}
    _send_at_once(params)
    _send_at_once(params)
    assert params["headers"] == {"x": "y"}


def test_md5_of_the_request() -> None:
    params: dict[str, Any] = {"headers": {}, "body": b"<Delete/>"}
    _add_md5(params)
    expected = b64encode(hashlib.md5(b"<Delete/>", usedforsecurity=False).digest()).decode()
    assert params["headers"] == {"Content-MD5": expected}
