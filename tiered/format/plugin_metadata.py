"""Custom metadata of Aiven's plugin in Kafka's records: where a segment's objects lie.

    uvarint  how many fields follow; of each
    uvarint  tag        0 remote_size    zigzag varint: bytes of all three objects
                        1 object_prefix  compact string: what stands in front of the key
                        2 object_key     compact string: the key without prefix and suffix
    uvarint  size
    size     the field

Which fields there are is the plugin's setting `custom.metadata.fields.include`; usually there are
none. Where there are, they count before what is derived from the segment's ids: the prefix may have
been another one when it was copied.

Source: Aiven-Open/tiered-storage-for-apache-kafka, SegmentCustomMetadataSerde.java,
SegmentCustomMetadataField.java, ObjectKeyFactory.java; KIP-482.
"""

from typing import Final, NamedTuple

_PREFIX: Final = 1
_KEY: Final = 2
_FIELDS_MAX: Final = 16


class ObjectPlace(NamedTuple):
    """Where a segment's objects lie; None: as is derived.

    Attributes:
        prefix: In front of the key.
        key: Without the dot and the suffix.
    """

    prefix: str | None
    key: str | None


def object_place(custom: bytes | None) -> ObjectPlace:
    """The place in custom metadata; empty for bytes that are none of the plugin's."""
    nothing = ObjectPlace(None, None)
    if not custom:
        return nothing
    try:
        fields = _fields(custom)
        texts = {tag: _text(fields[tag]) for tag in (_PREFIX, _KEY) if tag in fields}
    except (IndexError, ValueError):
        return nothing
    return ObjectPlace(texts.get(_PREFIX), texts.get(_KEY))


def _fields(data: bytes) -> dict[int, bytes]:
    count, at = _varint(data, 0)
    if count > _FIELDS_MAX:
        raise ValueError(f"{count} fields")
    fields = {}
    for _ in range(count):
        tag, at = _varint(data, at)
        size, at = _varint(data, at)
        if at + size > len(data):
            raise ValueError("a field is cut off")
        fields[tag] = data[at : at + size]
        at += size
    if at != len(data):
        raise ValueError("something follows the fields")
    return fields


def _text(field: bytes) -> str:
    length, at = _varint(field, 0)
    if len(field) != at + length - 1:
        raise ValueError("a string of another length")
    return field[at:].decode()


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 28:
            raise ValueError("no varint")
