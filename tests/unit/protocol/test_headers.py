"""Request and response headers by version, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.api_keys import FIRST_FLEXIBLE_VERSION, ApiKey
from protocol.errors import DecodeError
from protocol.framing import frame
from protocol.headers import (
    decode_response_header,
    encode_request_frame,
    encode_request_header,
    request_header_version,
    response_body_at,
    response_header_version,
)
from protocol.primitives import encode_string
from tests.harness.broker_headers import (
    RequestHeader,
    decode_request_header,
    encode_response_header,
)

INT16 = st.integers(-(1 << 15), (1 << 15) - 1)
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
CLIENT_IDS = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=50)


@given(st.sampled_from(list(ApiKey)), INT16, INT32, CLIENT_IDS, st.binary(max_size=20))
def test_request_header_comes_back(
    key: ApiKey, version: int, correlation_id: int, client_id: str | None, body: bytes
) -> None:
    """With the position where the body begins, for any version."""
    data = encode_request_header(key, version, correlation_id, client_id)
    expected = RequestHeader(key, version, correlation_id, client_id)
    assert decode_request_header(memoryview(data + body)) == (expected, len(data))


@given(st.sampled_from(list(ApiKey)), INT16, INT32, CLIENT_IDS, st.binary(max_size=20))
def test_request_frame_is_size_header_and_body(
    key: ApiKey, version: int, correlation_id: int, client_id: str | None, body: bytes
) -> None:
    head = encode_request_header(key, version, correlation_id, client_id)
    data = encode_request_frame(key, version, correlation_id, encode_string(client_id), body)
    assert data == frame(head, body)


@given(st.sampled_from(list(ApiKey)), st.integers(0, 20), st.binary(max_size=3))
def test_body_of_a_response_begins_behind_its_tags(key: ApiKey, version: int, tag: bytes) -> None:
    """Where it has some: a field of so many bytes."""
    data = encode_response_header(key, version, 7)
    assert response_body_at(data + b"\xff", key, version) == len(data)
    if response_header_version(key, version):
        data = data[:4] + b"\x01\x05" + bytes((len(tag),)) + tag
        assert response_body_at(data + b"\xff", key, version) == len(data)
        for size in range(4, len(data)):
            with pytest.raises(DecodeError):
                response_body_at(data[:size], key, version)


@given(st.sampled_from(list(ApiKey)), st.integers(0, 20), INT32)
def test_response_header_comes_back(key: ApiKey, version: int, correlation_id: int) -> None:
    """4 bytes, or 5 with an empty tag section."""
    data = encode_response_header(key, version, correlation_id)
    assert len(data) == 4 + response_header_version(key, version)
    assert decode_response_header(data + b"\xff", key, version) == (correlation_id, len(data))


@pytest.mark.parametrize(
    ("key", "version", "request_version", "response_version"),
    [
        (ApiKey.PRODUCE, 0, 1, 0),
        (ApiKey.PRODUCE, 8, 1, 0),
        (ApiKey.PRODUCE, 9, 2, 1),
        (ApiKey.METADATA, 8, 1, 0),
        (ApiKey.METADATA, 9, 2, 1),
        (ApiKey.API_VERSIONS, 2, 1, 0),
        (ApiKey.API_VERSIONS, 3, 2, 0),
        (ApiKey.API_VERSIONS, 99, 2, 0),
        (ApiKey.SASL_HANDSHAKE, 1, 1, 0),
        (ApiKey.OFFSET_DELETE, 0, 1, 0),
        (ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, 2, 1),
    ],
)
def test_header_versions(
    key: ApiKey, version: int, request_version: int, response_version: int
) -> None:
    """Flexible versions have 2 and 1; the answer to ApiVersions has 0 always (KIP-511)."""
    assert request_header_version(key, version) == request_version
    assert response_header_version(key, version) == response_version


def test_client_id_of_a_flexible_request_has_a_two_byte_length() -> None:
    """The one string that is not compact there; a tag section follows it."""
    assert encode_request_header(ApiKey.METADATA, 12, 7, "me").hex() == (
        "0003000c00000007" + "00026d65" + "00"
    )
    assert encode_request_header(ApiKey.METADATA, 8, 7, None).hex() == "0003000800000007ffff"


def test_unknown_tags_in_a_response_header_are_skipped() -> None:
    """The same for a client that reads our answer."""
    data = bytes.fromhex("00000007" + "01" + "0002aabb" + "c0")
    assert decode_response_header(data, ApiKey.METADATA, 12) == (7, len(data) - 1)


@pytest.mark.parametrize("key", [-1, 4, 7, 93, 32767])
def test_unknown_api_is_refused(key: int) -> None:
    """Keys 4 to 7 are dead: no version of theirs has a header."""
    with pytest.raises(DecodeError, match=f"{key} is not known"):
        request_header_version(key, 0)


def test_truncated_response_header_is_refused() -> None:
    """At every byte."""
    for size in range(5):
        with pytest.raises(DecodeError):
            decode_response_header(bytes(5)[:size], ApiKey.METADATA, 12)


def test_first_flexible_versions_agree_with_the_messages() -> None:
    """The table beside the keys says what the generated modules say."""
    from protocol.codegen.schema import load
    from protocol.messages import module_of

    for key in (ApiKey(api.key) for api in load()):
        assert FIRST_FLEXIBLE_VERSION.get(key) == module_of(key).FIRST_FLEXIBLE_VERSION
        assert key == module_of(key).API_KEY
