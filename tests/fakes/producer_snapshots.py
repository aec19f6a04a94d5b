"""Producer snapshot files as a segment has them, out of producer entries."""

from collections.abc import Collection

from storage.producers.entry import ProducerEntry
from storage.producers.snapshot import encode_rows, row_of


def encode_snapshot(entries: Collection[ProducerEntry]) -> bytes:
    """The file's bytes for these producers."""
    return encode_rows(len(entries), map(row_of, entries))
