"""Closed segments as Aiven's plugin would have copied them."""

from storage.types.uuid_text import format_uuid
from tests.fakes.tiered.plugin_writer import PluginKey, PluginSegment, plugin_objects
from tests.unit.tiered.format.closed_segments import Segment
from tiered.format.encryption import DataKey
from tiered.format.key_ring import KeyRing


def objects_of(
    segment: Segment,
    key_ring: KeyRing,
    *,
    chunk_size: int = 1000,
    compression: bool = False,
    encryption: bool = False,
) -> dict[str, bytes]:
    """The objects of a segment by name; with `encryption` the ring has the key afterwards."""
    found = segment.metadata
    key = None
    if encryption:
        key = PluginKey(b"k" * 32, b"a" * 32, "none:d3JhcHBlZA==")
        key_ring.keys[key.aad] = DataKey(key.key, key.aad)  # type: ignore[attr-defined]  # the fake ring
    return plugin_objects(
        PluginSegment(
            found.partition.topic,
            format_uuid(found.partition.topic_id),
            found.partition.partition,
            format_uuid(found.id),
            found.start_offset,
            found.end_offset,
            found.max_timestamp_ms,
            dict(found.segment_leader_epochs),
        ),
        bytes(segment.log),
        {kind.value: bytes(data) for kind, data in segment.parts.items()},
        chunk_size=chunk_size,
        compression=compression,
        encryption=key,
    )
