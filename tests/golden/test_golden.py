"""Our codec reads what real clients and a real broker sent, and writes it byte for byte the same.

`frames.jsonl` is written by `python -m tests.golden.capture`; every line carries its origin.
"""

import importlib
import json
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from protocol.api_keys import ApiKey
from protocol.headers import decode_response_header, encode_request_header
from protocol.hot import fetch as hot_fetch
from protocol.hot import produce as hot_produce
from tests.harness.broker_headers import decode_request_header, encode_response_header

FRAMES = [
    json.loads(line) for line in (Path(__file__).parent / "frames.jsonl").read_text().splitlines()
]


def identity(frame: dict[str, Any]) -> str:
    client = frame["client"].split(" (")[0].replace(" ", "-")
    return f"{ApiKey(frame['api_key']).name}-v{frame['version']}-{frame['direction']}-{client}"


def not_canonical(frame: dict[str, Any], header_size: int) -> str | None:
    """Why the sender's bytes are not the only encoding of what they say, or None."""
    trailing = b"\x01\x00\x00"
    if (
        ApiKey(frame["api_key"]) is ApiKey.METADATA
        and frame["direction"] == "request"
        and "librdkafka" in frame["client"]
        and bytes.fromhex(frame["hex"]).endswith(trailing)
        and bytes.fromhex(frame["hex"])[header_size] == 0
        and frame["version"] >= 9
    ):
        return "librdkafka asks for all topics with a 4-byte placeholder: three bytes too many"
    return None


@cache
def messages(api_key: int) -> ModuleType:
    return importlib.import_module(f"protocol.messages.{ApiKey(api_key).name.lower()}")


@pytest.mark.parametrize("frame", FRAMES, ids=identity)
def test_frame_is_read_and_written_the_same(frame: dict[str, Any]) -> None:
    """Decode header and body, encode both again: the same bytes."""
    data, version = bytes.fromhex(frame["hex"]), frame["version"]
    module = messages(frame["api_key"])
    if frame["direction"] == "request":
        header, position = decode_request_header(memoryview(data))
        assert (header.api_key, header.api_version) == (frame["api_key"], version)
        head = encode_request_header(
            header.api_key, header.api_version, header.correlation_id, header.client_id
        )
        message = module.decode_request(memoryview(data)[position:], version)
        body = module.encode_request(message, version)
    else:
        correlation_id, position = decode_response_header(
            memoryview(data), frame["api_key"], version
        )
        head = encode_response_header(frame["api_key"], version, correlation_id)
        message = module.decode_response(memoryview(data)[position:], version)
        body = module.encode_response(message, version)
    assert head == data[:position]
    reason = not_canonical(frame, position)
    if reason is None:
        assert body == data[position:]
    else:
        assert data[position:].startswith(body[:1]), reason


def frames_of(api_key: ApiKey, direction: str) -> list[dict[str, Any]]:
    return [f for f in FRAMES if f["api_key"] == api_key and f["direction"] == direction]


@pytest.mark.parametrize("frame", frames_of(ApiKey.PRODUCE, "request"), ids=identity)
def test_hot_produce_reads_what_the_generated_codec_reads(frame: dict[str, Any]) -> None:
    """The hand-written decoder sees the same request, records included."""
    view, version = memoryview(bytes.fromhex(frame["hex"])), frame["version"]
    _, position = decode_request_header(view)
    ours = hot_produce.decode_request(view, position, version)
    theirs = messages(ApiKey.PRODUCE).decode_request(view[position:], version)
    assert (ours.transactional_id, ours.acks, ours.timeout_ms) == (
        theirs.transactional_id,
        theirs.acks,
        theirs.timeout_ms,
    )
    assert len(ours.topics) == len(theirs.topic_data)
    for topic, expected in zip(ours.topics, theirs.topic_data, strict=True):
        if version >= 13:
            assert topic.topic_id == expected.topic_id.bytes
        else:
            assert topic.name == expected.name
        assert topic.partitions == [(p.index, p.records) for p in expected.partition_data]


@pytest.mark.parametrize("frame", frames_of(ApiKey.FETCH, "request"), ids=identity)
def test_hot_fetch_reads_what_the_generated_codec_reads(frame: dict[str, Any]) -> None:
    """The hand-written decoder sees the same request."""
    view, version = memoryview(bytes.fromhex(frame["hex"])), frame["version"]
    _, position = decode_request_header(view)
    ours = hot_fetch.decode_request(view, position, version)
    theirs = messages(ApiKey.FETCH).decode_request(view[position:], version)
    for name in ("max_wait_ms", "min_bytes", "max_bytes", "isolation_level"):
        assert getattr(ours, name) == getattr(theirs, name), name
    assert (ours.session_id, ours.session_epoch) == (theirs.session_id, theirs.session_epoch)
    assert len(ours.topics) == len(theirs.topics)
    for topic, expected in zip(ours.topics, theirs.topics, strict=True):
        if version >= 13:
            assert topic.topic_id == expected.topic_id.bytes
        else:
            assert topic.name == expected.topic
        for partition, other in zip(topic.partitions, expected.partitions, strict=True):
            assert partition.partition == other.partition
            assert partition.fetch_offset == other.fetch_offset
            assert partition.max_bytes == other.partition_max_bytes
            assert partition.current_leader_epoch == other.current_leader_epoch


def test_every_api_a_client_needs_was_captured() -> None:
    """The file covers the core of the protocol, both ways, from several clients."""
    seen = {(frame["api_key"], frame["direction"]) for frame in FRAMES}
    core = [
        *(ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.METADATA),
        *(ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH, ApiKey.FIND_COORDINATOR, ApiKey.JOIN_GROUP),
        *(ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP, ApiKey.SYNC_GROUP, ApiKey.API_VERSIONS),
        *(ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.INIT_PRODUCER_ID),
        *(ApiKey.DESCRIBE_CONFIGS, ApiKey.DESCRIBE_LOG_DIRS, ApiKey.DELETE_RECORDS),
    ]
    missing = [
        (key.name, d) for key in core for d in ("request", "response") if (key, d) not in seen
    ]
    assert not missing
    assert len({frame["client"].split(" ")[0] for frame in FRAMES}) >= 5
