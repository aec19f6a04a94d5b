"""The generated modules: round trips, golden bytes, and the oddities that real clients rely on."""

from collections.abc import Iterator
from types import ModuleType
from uuid import UUID

import pytest

from protocol.api_keys import ApiKey
from protocol.codegen.schema import Struct, load
from protocol.errors import DecodeError
from protocol.messages import (
    api_versions,
    fetch,
    heartbeat,
    join_group,
    metadata,
    module_of,
    produce,
)
from tests.differential.random_messages import RandomMessages
from tests.harness.broker_headers import decode_request_header

APIS = {api.key: api for api in load()}


def every_version(key: ApiKey) -> Iterator[tuple[ModuleType, str, int, Struct]]:
    module = module_of(key)
    for kind, messages in (("request", APIS[key].requests), ("response", APIS[key].responses)):
        for version, struct in messages.items():
            yield module, kind, version, struct


@pytest.mark.parametrize("key", [ApiKey(key) for key in APIS], ids=lambda key: key.name.lower())
def test_every_message_comes_back(key: ApiKey) -> None:
    """Random messages of every version; fields that a version lacks have their defaults."""
    for module, kind, version, struct in every_version(key):
        encode, decode = getattr(module, f"encode_{kind}"), getattr(module, f"decode_{kind}")
        source = RandomMessages(seed=key * 1000 + version)
        for _ in range(5):
            message = source.message(module, struct)
            data = encode(message, version)
            read = decode(memoryview(data), version)
            assert encode(read, version) == data
            assert decode(data, version) == read
            assert decode(memoryview(data + b"\x00\x01trailing"), version) == read


@pytest.mark.parametrize("key", [ApiKey(key) for key in APIS], ids=lambda key: key.name.lower())
def test_defaults_can_be_written_in_every_version(key: ApiKey) -> None:
    """A message made without arguments is complete, and is read back as itself."""
    for module, kind, version, struct in every_version(key):
        cls = getattr(module, struct.name)
        data = getattr(module, f"encode_{kind}")(cls(), version)
        assert getattr(module, f"decode_{kind}")(data, version) == cls()


@pytest.mark.parametrize("key", [ApiKey(key) for key in APIS], ids=lambda key: key.name.lower())
def test_versions_outside_the_range_are_refused(key: ApiKey) -> None:
    """Reading one is a DecodeError, writing one is our mistake."""
    module = module_of(key)
    for version in (-1, module.MIN_VERSION - 1, module.MAX_VERSION + 1, 32767):
        with pytest.raises(DecodeError, match="no version"):
            module.decode_request(b"\x00" * 100, version)
        with pytest.raises(ValueError, match="no version"):
            module.encode_response(None, version)


def test_ranges_are_those_of_kafka_4_2() -> None:
    """Where kio is newer we stop earlier; a few that matter by number."""
    assert (produce.MIN_VERSION, produce.MAX_VERSION) == (3, 13)
    assert (fetch.MIN_VERSION, fetch.MAX_VERSION) == (4, 18)
    assert (metadata.MIN_VERSION, metadata.MAX_VERSION) == (0, 13)
    assert module_of(ApiKey.DESCRIBE_LOG_DIRS).MAX_VERSION == 4
    assert module_of(ApiKey.INIT_PRODUCER_ID).MAX_VERSION == 6


def test_librdkafka_metadata_request_with_trailing_bytes() -> None:
    """Captured from librdkafka 2.16.0 (confluent-kafka 2.16.1), asking for all topics.

    It writes a 4-byte placeholder where the compact array takes one, so three bytes follow the
    message, and the flags are read as false.
    """
    frame = bytes.fromhex("0003000d000000030006676f6c64656e0000000000010000")
    header, body = decode_request_header(memoryview(frame))
    assert (header.api_version, header.client_id) == (13, "golden")
    request = metadata.decode_request(memoryview(frame)[body:], header.api_version)
    assert request == metadata.MetadataRequest(topics=None, allow_auto_topic_creation=False)
    assert len(metadata.encode_request(request, 13)) == len(frame) - body - 3


def test_librdkafka_api_versions_request() -> None:
    """Captured from the same client: header v2, body v3."""
    frame = bytes.fromhex(
        "00120003000000010006676f6c64656e0017636f6e666c75656e742d6b61666b612d707974686f6e"
        "16322e31362e312d72646b61666b612d322e31362e3000"
    )
    header, body = decode_request_header(memoryview(frame))
    request = api_versions.decode_request(memoryview(frame)[body:], header.api_version)
    assert request.client_software_name == "confluent-kafka-python"
    assert request.client_software_version == "2.16.1-rdkafka-2.16.0"
    assert api_versions.encode_request(request, 3) == frame[body:]


def test_api_versions_downgrade_answer_bytes() -> None:
    """The answer to a version we do not have is encoded as v0 (KIP-511)."""
    response = api_versions.ApiVersionsResponse(
        error_code=35, api_keys=[api_versions.ApiVersion(api_key=18, max_version=4)]
    )
    assert api_versions.encode_response(response, 0).hex() == "0023" + "00000001" + "001200000004"


def test_tagged_fields_are_sent_only_where_they_differ_from_their_default() -> None:
    """ApiVersions v3: features and epoch are tags 0 to 2; unset they cost nothing."""
    response = api_versions.ApiVersionsResponse()
    assert api_versions.encode_response(response, 3).hex() == "0000" + "01" + "00000000" + "00"
    response.finalized_features_epoch = 5
    assert api_versions.encode_response(response, 3).hex() == (
        "0000" + "01" + "00000000" + "01" + "0108" + "0000000000000005"
    )


def test_a_tagged_structure_equal_to_its_default_is_left_out() -> None:
    """As Kafka does; None and the default read back as None."""
    partition = fetch.PartitionData(current_leader=fetch.LeaderIdAndEpoch())
    topic = fetch.FetchableTopicResponse(partitions=[partition])
    data = fetch.encode_response(fetch.FetchResponse(responses=[topic]), 12)
    partition.current_leader = None
    assert fetch.encode_response(fetch.FetchResponse(responses=[topic]), 12) == data
    read = fetch.decode_response(data, 12).responses[0].partitions[0]
    assert read.current_leader is None
    partition.current_leader = fetch.LeaderIdAndEpoch(leader_id=3)
    data = fetch.encode_response(fetch.FetchResponse(responses=[topic]), 12)
    read = fetch.decode_response(data, 12).responses[0].partitions[0]
    assert read.current_leader == fetch.LeaderIdAndEpoch(leader_id=3, leader_epoch=-1)


def test_unknown_tagged_fields_are_skipped_wherever_they_stand() -> None:
    """Metadata v12, one topic: a tag in the topic, two at the top, then more bytes."""
    topic_id = UUID(int=9)
    data = bytes.fromhex("02") + topic_id.bytes + bytes.fromhex("0261" + "01" + "0502aabb")
    data += bytes.fromhex("0100" + "02" + "0000" + "ff0103010203" + "ee")
    assert metadata.decode_request(memoryview(data), 12) == metadata.MetadataRequest(
        topics=[metadata.MetadataRequestTopic(topic_id=topic_id, name="a")]
    )


FETCH_V12 = bytes.fromhex(
    "ffffffff" * 2 + "00000001" + "7fffffff" + "00" + "00000000" * 2 + "010101"
)
"""A Fetch request without partitions, up to its tag section."""


@pytest.mark.parametrize("field", ["00050561626364", "00070561626364eeee"])
def test_known_tagged_field_is_read(field: str) -> None:
    """Tag 0, the cluster id; in the second case it has more content than we know of."""
    request = fetch.decode_request(FETCH_V12 + b"\x01" + bytes.fromhex(field), 12)
    assert request.cluster_id == "abcd"
    assert fetch.decode_request(FETCH_V12 + b"\x00", 12).cluster_id is None


def test_known_tagged_field_that_overruns_its_size_is_refused() -> None:
    """The string says four bytes, the field says there are three."""
    with pytest.raises(DecodeError, match="cluster_id"):
        fetch.decode_request(FETCH_V12 + bytes.fromhex("01" + "0004" + "0561626364"), 12)


def test_records_are_a_view_of_the_frame() -> None:
    """Nothing is copied, and what is written through the frame is seen."""
    partition = produce.PartitionProduceData(index=1, records=b"batch")
    topic = produce.TopicProduceData(name="t", partition_data=[partition])
    request = produce.ProduceRequest(acks=-1, topic_data=[topic])
    for version in range(3, 14):
        frame = bytearray(produce.encode_request(request, version))
        records = produce.decode_request(memoryview(frame), version).topic_data[0]
        view = records.partition_data[0].records
        assert isinstance(view, memoryview)
        assert bytes(view) == b"batch"
        frame[frame.index(b"batch")] = ord("B")
        assert bytes(view) == b"Batch"


def test_a_null_that_the_version_cannot_say_is_our_mistake() -> None:
    """JoinGroup's protocol name may be null from v7 on."""
    response = join_group.JoinGroupResponse(protocol_name=None)
    assert join_group.decode_response(join_group.encode_response(response, 7), 7) == response
    with pytest.raises(ValueError, match="protocol_name cannot be null"):
        join_group.encode_response(response, 6)


def test_a_null_that_the_version_does_not_allow_is_refused() -> None:
    """Metadata v0 has no null list of topics; v1 has."""
    assert metadata.decode_request(b"\xff\xff\xff\xff", 1).topics is None
    with pytest.raises(DecodeError, match="topics is null"):
        metadata.decode_request(b"\xff\xff\xff\xff", 0)


def test_long_strings_and_lists_have_longer_prefixes() -> None:
    """Where the compact length takes two or three bytes."""
    for size in (126, 127, 128, 16_382, 16_383, 20_000):
        name = "x" * size
        request = metadata.MetadataRequest(
            topics=[metadata.MetadataRequestTopic(name=name) for _ in range(size % 300 + 100)]
        )
        assert metadata.decode_request(metadata.encode_request(request, 12), 12) == request


def test_strings_that_are_not_utf8_are_replaced() -> None:
    """In fixed and flexible versions, and beside records, where the body is not copied."""
    fixed = heartbeat.decode_request(b"\0\x02g\xff" + bytes(4) + b"\0\x01\xe9", 0)
    assert (fixed.group_id, fixed.member_id) == ("g\ufffd", "\ufffd")
    flexible = heartbeat.decode_request(b"\x03g\xff" + bytes(4) + b"\x02\xe9" + bytes(2), 4)
    assert (flexible.group_id, flexible.member_id) == ("g\ufffd", "\ufffd")
    beside = produce.decode_request(b"\0\x02t\xff" + bytes(6) + bytes(4), 3)
    assert beside.transactional_id == "t\ufffd"
