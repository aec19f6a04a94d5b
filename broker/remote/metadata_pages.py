"""Pages of `__remote_log_metadata`: whole batches, checked, as the records that they hold."""

from typing import Final

from protocol.errors import DecodeError
from protocol.records.batch import crc_matches, iterate_batches
from protocol.records.record import iterate_records
from tiered.metadata.log import LogPage

BATCH_BYTES_MAX: Final = 16 * 1024 * 1024
"""Most bytes one batch may decompress to. Ours hold a few; a client's may hold anything."""


def page_of(view: memoryview, offset: int) -> LogPage:
    """The records of whole batches, from `offset` on.

    Raises:
        DecodeError: A batch is damaged.
    """
    records: list[tuple[int, bytes]] = []
    next_offset = offset
    for position, header in iterate_batches(view, allow_partial=True):
        if header.last_offset < offset:
            continue
        if not crc_matches(view, position, header):
            raise DecodeError(f"checksum of the batch at {header.base_offset} does not fit")
        if not header.is_control:
            records += [
                (record_offset, value or b"")
                for record_offset, _, _, value, _ in iterate_records(
                    view[position:], max_size=BATCH_BYTES_MAX
                )
                if record_offset >= offset
            ]
        next_offset = header.next_offset
    return LogPage(records, next_offset)
