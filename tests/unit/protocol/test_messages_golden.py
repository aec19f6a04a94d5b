"""Frames that real clients and a released Kafka exchanged are read and written alike."""

import json
from pathlib import Path
from typing import Any

import pytest

from protocol.api_keys import ApiKey
from protocol.codegen.schema import QUORUM_APIS
from protocol.errors import DecodeError
from protocol.headers import decode_response_header, encode_request_header
from protocol.messages import module_of
from tests.harness.broker_headers import decode_request_header, encode_response_header

PATH = Path(__file__).parents[2] / "golden" / "frames" / "frames.jsonl"
FRAMES: list[dict[str, Any]] = [json.loads(line) for line in PATH.read_text().splitlines()]


def label(row: dict[str, Any]) -> str:
    client = row["origin"].split()[0].rstrip(";,")
    return f"{client}-{ApiKey(row['api_key']).name}-v{row['api_version']}-{row['kind']}"


def test_there_are_many_apis_and_clients() -> None:
    """The tests below are not empty."""
    assert len({row["api_key"] for row in FRAMES}) >= 30
    assert len({row["origin"] for row in FRAMES}) >= 4


@pytest.mark.parametrize("row", FRAMES, ids=label)
def test_frame_comes_back_to_the_byte(row: dict[str, Any]) -> None:
    """Header and body."""
    frame = bytes.fromhex(row["frame"])
    key, version = ApiKey(row["api_key"]), row["api_version"]
    module = module_of(key)
    if row["kind"] == "request":
        header, body = decode_request_header(memoryview(frame))
        assert (header.api_key, header.api_version) == (key, version)
        assert encode_request_header(*header) == frame[:body]
        request = module.decode_request(memoryview(frame)[body:], version)
        assert module.encode_request(request, version) == frame[body:]
    else:
        correlation_id, body = decode_response_header(frame, key, version)
        assert encode_response_header(key, version, correlation_id) == frame[:body]
        response = module.decode_response(memoryview(frame)[body:], version)
        assert module.encode_response(response, version) == frame[body:]


@pytest.mark.parametrize("row", FRAMES, ids=label)
def test_frame_cut_short_is_refused(row: dict[str, Any]) -> None:
    """At many places in the body."""
    frame = memoryview(bytes.fromhex(row["frame"]))
    key, version = ApiKey(row["api_key"]), row["api_version"]
    if row["kind"] == "request":
        _, body = decode_request_header(frame)
    else:
        _, body = decode_response_header(frame, key, version)
    decode = getattr(module_of(key), f"decode_{row['kind']}")
    for size in range(body, len(frame), max(1, len(frame) // 50)):
        with pytest.raises(DecodeError):
            decode(frame[body:size], version)


def test_answer_to_api_versions_says_what_kafka_4_2_serves() -> None:
    """Our tables have every version that it advertises, apart from Produce below 3.

    Of the quorum's APIs a broker of Kafka's serves those that add and remove voters.
    """
    row = next(row for row in FRAMES if row["api_key"] == 18 and row["kind"] == "response")
    frame = bytes.fromhex(row["frame"])
    response = module_of(ApiKey.API_VERSIONS).decode_response(frame[4:], row["api_version"])
    assert len(response.api_keys) > 50
    for served in response.api_keys:
        if ApiKey(served.api_key).name.lower() in QUORUM_APIS:
            continue
        module = module_of(ApiKey(served.api_key))
        assert served.max_version <= module.MAX_VERSION
        assert served.min_version >= module.MIN_VERSION or served.api_key == ApiKey.PRODUCE
