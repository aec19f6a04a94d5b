"""End of the committed rows of a bucket.

A transaction may begin in a segment that was copied and be aborted in one that was not: its rows
lie in the bucket with no sign of it. So without a broker a reader of committed rows goes no further
than the first offset of the transactions that were open when the newest segment was closed. Its
producer snapshot has them.

    copied    [ 0 .. 99 plain | 100 .. 1089 of a transaction ]   [local: the rest, its abort]
                                ^ stable end
"""

from storage.producers.snapshot import decode_snapshot


def stable_end(snapshot: bytes, log_start_offset: int, end_offset: int) -> int:
    """The stable end, exclusive: within the log.

    Args:
        snapshot: Producer snapshot of the newest segment.
        log_start_offset: Of the log.
        end_offset: Of the bucket's part of it, exclusive.

    Raises:
        CorruptFileError: It is no snapshot.
    """
    open_at = [
        entry.txn_first_offset
        for entry in decode_snapshot(snapshot, "of the newest segment")
        if entry.txn_first_offset >= 0
    ]
    return max(log_start_offset, min([*open_at, end_offset]))
