"""Producer snapshot files as a segment has them, out of producer entries."""

from collections.abc import Collection

from storage.producers.entry import ProducerEntry
from storage.producers.snapshot import encode_rows, rows_of


def encode_snapshot(entries: Collection[ProducerEntry]) -> bytes:
    """The file's bytes for these producers."""
    return encode_rows(map(rows_of, entries), len(entries))
