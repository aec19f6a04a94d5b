"""Transactions that were open where the remote part of a restored log ends.

Their producers can never end them: what was written afterwards is lost, and so is the state of
their coordinator. Until they are aborted the last stable offset stays, readers of committed
records wait, and nothing more is copied.
"""

from protocol.records.control import build_end_transaction_marker
from storage.log.log import Log
from storage.types.append_origin import AppendOrigin


def abort_open_transactions(log: Log, *, leader_epoch: int, now_ms: int) -> int:
    """Write an abort marker for every transaction that is open; returns how many there were.

    Raises:
        DiskError: The disk refused.
    """
    open_ones = [
        entry for entry in log.producer_state.active_producers() if entry.txn_first_offset >= 0
    ]
    for entry in open_ones:
        marker = build_end_transaction_marker(
            producer_id=entry.producer_id,
            producer_epoch=entry.epoch,
            commit=False,
            coordinator_epoch=max(entry.coordinator_epoch, 0),
            timestamp_ms=now_ms,
        )
        log.writer.append_as_leader(
            memoryview(marker),
            leader_epoch=leader_epoch,
            now_ms=now_ms,
            origin=AppendOrigin.COORDINATOR,
        )
    log.update_high_watermark(log.log_end_offset)
    return len(open_ones)
