"""Custom metadata of Kafka's records, by their published format."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.tiered.storage_manager.memory_tier import text_segment, tier_world
from tiered.errors import RemoteStorageError
from tiered.format.object_keys import ObjectKeys
from tiered.format.plugin_metadata import ObjectPlace, object_place

NOTHING = ObjectPlace(None, None)


def _field(tag: int, data: bytes) -> bytes:
    return bytes([tag, len(data)]) + data


def _compact(text: str) -> bytes:
    return bytes([len(text.encode()) + 1]) + text.encode()


SIZE = _field(0, b"\xac\x02")
PREFIX, KEY = _field(1, _compact("old/")), _field(2, _compact("t-x/0/00-y"))


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (None, NOTHING),
        (b"", NOTHING),
        (b"\0", NOTHING),
        (b"\1" + SIZE, NOTHING),
        (b"\2" + SIZE + PREFIX, ObjectPlace("old/", None)),
        (b"\3" + SIZE + PREFIX + KEY, ObjectPlace("old/", "t-x/0/00-y")),
        (b"\1" + _field(1, _compact("")), ObjectPlace("", None)),
        (b"\1" + PREFIX + b"x", NOTHING),
        (b"\1" + PREFIX[:-1], NOTHING),
        (b"\1" + _field(1, b"\5ab"), NOTHING),
        (b"\1" + _field(1, b"\2\xff"), NOTHING),
        (b"\xff" * 9, NOTHING),
    ],
)
def test_fields_are_understood(data: bytes | None, place: ObjectPlace) -> None:
    assert object_place(data) == place


@given(st.binary(max_size=128))
def test_any_bytes_are_no_trouble(data: bytes) -> None:
    assert isinstance(object_place(data), ObjectPlace)


async def test_a_segment_is_read_where_it_was_put() -> None:
    """The prefix was longer, then."""
    world = tier_world()
    world.tier._key_prefix = "kafka/"
    segment = text_segment()
    keys = await world.copy(segment)
    for name in keys:
        world.store._store(f"2024/{name}", world.store.objects.pop(name).data, None)
    moved = replace(segment.metadata, custom_metadata=b"\1" + _field(1, _compact("kafka/2024/")))
    assert await world.tier.is_complete(moved)
    assert not await world.tier.is_complete(segment.metadata)
    assert (await world.tier.fetch_indexes(moved, "/cache", "s")).log_bytes == len(segment.log)
    elsewhere = replace(segment.metadata, custom_metadata=b"\1" + _field(1, _compact("other/")))
    with pytest.raises(RemoteStorageError, match=r"rsm\.config\.key\.prefix"):
        await world.tier.is_complete(elsewhere)
    stem = ObjectKeys().segment_keys(segment.metadata).log.removesuffix(".log")
    told = replace(segment.metadata, custom_metadata=b"\1" + _field(2, _compact("2024/" + stem)))
    assert await world.tier.is_complete(told)
