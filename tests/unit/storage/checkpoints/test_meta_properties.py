"""meta.properties."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.checkpoints.meta_properties import (
    MetaProperties,
    decode_meta_properties,
    encode_meta_properties,
    read_meta_properties,
    write_meta_properties,
)
from storage.errors import CorruptFileError
from tests.effort import examples
from tests.fakes.filesystem import FakeFilesystem

DIRECTORY_ID = UUID("d02dd1e2-0255-42b0-96dc-29b7cae4d452")
RESERVED = {"version", "cluster.id", "node.id", "directory.id", "broker.id"}
KEYS = st.text(min_size=1, max_size=8).filter(lambda key: key not in RESERVED)


def test_what_kafka_writes_is_read() -> None:
    """As `kafka-storage format` of release 4.2 leaves it."""
    data = (
        b"#\n#Fri Nov 20 12:00:00 UTC 2026\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\n"
        b"directory.id=0C3R4gJVQrCW3Cm3yuTUUg\nnode.id=1\nversion=1\n"
    )
    assert decode_meta_properties(data, "x") == MetaProperties(
        "MkU3OEVBNTcwNTJENDM2Qg", 1, DIRECTORY_ID
    )


def test_what_we_write() -> None:
    """Plain lines, sorted."""
    meta = MetaProperties("c", 3, DIRECTORY_ID)
    assert encode_meta_properties(meta) == (
        b"#\ncluster.id=c\ndirectory.id=0C3R4gJVQrCW3Cm3yuTUUg\nnode.id=3\nversion=1\n"
    )


def test_version_0_says_broker() -> None:
    """Of brokers with ZooKeeper."""
    assert decode_meta_properties(b"version=0\nbroker.id=4\n", "x") == MetaProperties(None, 4)


@examples(200)
@given(st.text(max_size=10), st.dictionaries(KEYS, st.text(max_size=8), max_size=4))
def test_round_trip(cluster_id: str, other: dict[str, str]) -> None:
    """Any text survives Java's escapes."""
    meta = MetaProperties(cluster_id, 1, DIRECTORY_ID, other)
    assert decode_meta_properties(encode_meta_properties(meta), "x") == meta


def test_java_forms() -> None:
    """Continued lines, other separators, escapes, comments."""
    data = b"! note\r\nversion : 1\ncluster.id a\\\n   b\\u0041\\=\nnode.id=7\nx\\ y=1\n"
    assert decode_meta_properties(data, "x") == MetaProperties("abA=", 7, None, {"x y": "1"})


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"version=2\n",
        b"version=x\n",
        b"node.id=1\n",
        b"version=1\nnode.id=x\n",
        b"version=1\ndirectory.id=short\n",
        b"version=1\nx=\\uZZZZ\n",
        b"version=1\nx=\\ud800\n",
    ],
)
def test_damage_is_named(data: bytes) -> None:
    """The broker must not guess whose directory it is."""
    with pytest.raises(CorruptFileError, match="somewhere"):
        decode_meta_properties(data, "somewhere")


@pytest.mark.parametrize("data", [b"", b"\0" * 100, b"node.id=1\n"])
def test_an_empty_file_says_what_to_do(data: bytes) -> None:
    """As a power cut leaves it; a file that is missing is made again by its partitions."""
    with pytest.raises(CorruptFileError, match=r"^somewhere is empty or damaged.*move it away"):
        decode_meta_properties(data, "somewhere")


def test_file() -> None:
    """Missing, then written."""
    filesystem = FakeFilesystem()
    filesystem.mkdir("/d")
    assert read_meta_properties(filesystem, "/d/meta.properties") is None
    write_meta_properties(filesystem, "/d/meta.properties", MetaProperties("c", 1))
    assert read_meta_properties(filesystem, "/d/meta.properties") == MetaProperties("c", 1)


def test_who_wrote_it() -> None:
    """Kafka's file has a date; ours has none, and names its store since there is that key."""
    kafkas = b"#\n#Fri Nov 20 12:00:00 UTC 2026\ncluster.id=c\nnode.id=1\nversion=1\n"
    assert not decode_meta_properties(kafkas, "x").is_ours
    ours = kafkas.replace(b"#Fri Nov 20 12:00:00 UTC 2026\n", b"")
    assert decode_meta_properties(ours, "x").is_ours
    named = kafkas + b"varve.metadata.store=0C3R4gJVQrCW3Cm3yuTUUg\n"
    meta = decode_meta_properties(named, "x")
    assert (meta.is_ours, meta.store_id) == (True, DIRECTORY_ID)
    assert decode_meta_properties(b"version=0\nbroker.id=4\n", "x").version == 0


def test_a_damaged_name_of_the_store_is_no_missing_one() -> None:
    """It would make a directory of ours one of nobody."""
    with pytest.raises(CorruptFileError):
        decode_meta_properties(b"version=1\nvarve.metadata.store=junk\n", "x")
