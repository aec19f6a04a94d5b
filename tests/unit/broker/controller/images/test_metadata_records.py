"""Keys and values of the store: what is written is read back, and damage is told."""

import json
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.controller.images.metadata_records import (
    PARTITIONS_PER_CHUNK,
    ConfigResource,
    MetadataFormatError,
    ResourceType,
    chunks,
    config_key,
    decode_config,
    decode_next_producer_id,
    decode_partitions,
    decode_topic,
    encode_config,
    encode_next_producer_id,
    encode_partitions,
    encode_topic,
    parse_config_key,
    parse_partitions_key,
    partitions_key,
)
from broker.controller.images.partition_image import PartitionImage
from broker.controller.store.metadata_store import REQUEST_SIZE_MAX

NODES = st.integers(0, 2**31 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.uuids())
def test_topic_round_trip(topic_id: UUID) -> None:
    """The id comes back."""
    assert decode_topic("topics/t", encode_topic(topic_id)) == topic_id


NODE_LISTS = st.lists(NODES, max_size=5).map(tuple)


@given(
    st.lists(
        st.builds(
            PartitionImage,
            st.just(0),
            NODES,
            NODES,
            NODES,
            NODE_LISTS,
            NODE_LISTS,
            st.lists(st.uuids(), max_size=3).map(tuple),
            NODE_LISTS,
            NODE_LISTS,
            st.booleans(),
            NODE_LISTS,
            NODE_LISTS,
        ),
        max_size=5,
    ),
    st.integers(0, 10),
)
def test_partitions_round_trip(rows: list[PartitionImage], chunk: int) -> None:
    """All fields, with indexes from the chunk's first one on."""
    first = chunk * PARTITIONS_PER_CHUNK
    partitions = [replace(row, index=first + i) for i, row in enumerate(rows)]
    value = encode_partitions(partitions)
    assert decode_partitions("partitions/x", value, first) == partitions


def test_partitions_of_older_releases_are_read() -> None:
    """Five elements, or six with directories; and a plain partition is still written as five."""
    plain = PartitionImage(0, 1, 2, 3, (1, 2), (1,))
    assert encode_partitions([plain]) == b'{"v":1,"p":[[[1,2],[1],1,2,3]]}'
    assert decode_partitions("p", b'{"v":1,"p":[[[1,2],[1],1,2,3]]}', 0) == [plain]
    six = b'{"v":1,"p":[[[1],[1],1,0,0,["AAAAAAAAQACAAAAAAAAABQ"]]]}'
    (placed,) = decode_partitions("p", six, 0)
    assert placed.directory_on(1) == UUID("00000000-0000-4000-8000-000000000005")
    assert (placed.elr, placed.adding, placed.is_recovering) == ((), (), False)


@given(st.dictionaries(TEXT, TEXT))
def test_config_round_trip(settings: dict[str, str]) -> None:
    """Any text in keys and values."""
    assert decode_config("configs/topic/t", encode_config(settings)) == settings


@given(st.sampled_from(list(ResourceType)), TEXT)
def test_config_key_round_trip(kind: ResourceType, name: str) -> None:
    """Names may hold slashes, be empty, be anything."""
    resource = ConfigResource(kind, name)
    assert parse_config_key(config_key(resource)) == resource


@given(st.uuids(), st.integers(0, 1000))
def test_partitions_key_round_trip(topic_id: UUID, chunk: int) -> None:
    """Id and index come back, and keys are in order of the index."""
    first = chunk * PARTITIONS_PER_CHUNK
    key = partitions_key(topic_id, first)
    assert parse_partitions_key(key) == (topic_id, first)
    assert key < partitions_key(topic_id, first + PARTITIONS_PER_CHUNK)


@given(st.integers(0, 2**63 - 1))
def test_producer_id_round_trip(producer_id: int) -> None:
    """All 63 bits."""
    assert decode_next_producer_id(encode_next_producer_id(producer_id)) == producer_id


def test_chunks_begin_where_the_first_change_is() -> None:
    """Extending a topic rewrites the chunk its last partition is in, and no other."""
    topic_id = UUID(int=7)
    partitions = [PartitionImage(i, 1, 0, 0, (1,), (1,)) for i in range(300)]
    assert [parse_partitions_key(key)[1] for key, _ in chunks(topic_id, partitions)] == [
        0,
        128,
        256,
    ]
    for present, expected in (
        (0, [0, 128, 256]),
        (127, [0, 128, 256]),
        (128, [128, 256]),
        (256, [256]),
    ):
        written = chunks(topic_id, partitions, from_index=present)
        assert [parse_partitions_key(key)[1] for key, _ in written] == expected


def test_largest_topic_fits_one_transaction() -> None:
    """10,000 partitions with three replicas of large node ids are within etcd's limits."""
    node = 2**31 - 1
    replicas = (node, node, node)
    partitions = [PartitionImage(i, node, 9999, 9999, replicas, replicas) for i in range(10_000)]
    written = chunks(UUID(int=1), partitions)
    assert len(written) < 126
    assert sum(len(key) + len(value) + 64 for key, value in written) < REQUEST_SIZE_MAX


@pytest.mark.parametrize(
    "value",
    [b"", b"\xff", b"[]", b"{}", b'{"v":2,"id":"AAAAAAAAAAAAAAAAAAAAAQ"}', b'{"v":1,"id":"x"}'],
)
def test_damaged_value_is_told(value: bytes) -> None:
    """With the key, as one expected error; also a value of a newer release."""
    with pytest.raises(MetadataFormatError, match="topics/t"):
        decode_topic("topics/t", value)
    with pytest.raises(MetadataFormatError, match="partitions/x"):
        decode_partitions("partitions/x", value, 0)
    with pytest.raises(MetadataFormatError, match="configs/x"):
        decode_config("configs/x", value)
    with pytest.raises(MetadataFormatError, match="producer-ids"):
        decode_next_producer_id(value)


@pytest.mark.parametrize("key", ["configs/none/x", "configs/"])
def test_unknown_resource_type_is_told(key: str) -> None:
    with pytest.raises(MetadataFormatError):
        parse_config_key(key)


def test_values_are_json_anybody_can_read() -> None:
    """With a version, for those who come after us."""
    assert json.loads(encode_config({"b": "2", "a": "ü"})) == {"v": 1, "c": {"a": "ü", "b": "2"}}
