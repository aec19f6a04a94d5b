"""What a log serves, and what it knows of it: reads, leader epochs, producers, transactions."""

from collections.abc import Iterator, Sequence
from typing import Final

from storage.errors import StorageError
from storage.log.log import Log
from tests.unit.storage.crash_fuzz.model import COMMITTED, Batch, Lineage, Modelled, producers_of
from tests.unit.storage.crash_fuzz.rules import RuleBroken, check, short
from tests.unit.storage.log.log_model import read_batches

BATCHES_REMEMBERED: Final = 5


def check_reads(found: list[Batch], log: Log) -> None:
    """Through the indexes the same is read as without them."""
    served = [b for b in found if b.end > log.log_start_offset]
    try:
        read = read_batches(log, max_bytes=700, has_gaps=True)
    except StorageError as error:
        raise RuleBroken(f"nothing lost: {log} cannot be read: {error}") from error
    check(read == [b.data for b in served], "nothing lost", f"{log}: reads differ from its files")


def check_epochs(found: list[Batch], log: Log) -> None:
    epochs = log.leader_epochs
    for batch in found:
        if batch.end <= log.log_start_offset:
            continue
        known = epochs.epoch_for_offset(max(batch.base, log.log_start_offset))
        check(known == batch.header.leader_epoch, "leader epochs", log, short(batch), known)
    entries = epochs.entries()
    check(entries == sorted(entries), "leader epochs", log, entries)
    latest = entries[-1] if entries else (-1, 0)
    is_known = latest[0] == log.latest_leader_epoch or not found
    check(is_known, "leader epochs", log, entries, log.latest_leader_epoch)
    check(latest[1] <= log.log_end_offset, "leader epochs", log, entries)


def check_producers(found: list[Batch], log: Log, lineage: Lineage, model: Modelled) -> None:
    whole = producers_of(lineage.until(log.log_end_offset).batches)
    # What was deleted is forgotten, also where the log start has gone back since.
    start = max(log.log_start_offset, model.log_start)
    here = producers_of(b for b in found if b.base >= start)
    for producer_id, expected in whole.items():
        entry = log.producer_state.last_entry(producer_id)
        if entry is None:
            check(producer_id not in here, "producers", log, f"forgot {producer_id}")
            continue
        is_right = entry.epoch == expected.epoch or model.was_shortened
        check(is_right, "producers", log, entry, expected)
        known = [(b.first_offset, b.last_offset, b.last_sequence) for b in entry.batches]
        if model.was_shortened:
            # A snapshot may know a later one, which compaction has taken since.
            left = here.get(producer_id)
            newest = left.batches[-1:] if left and left.epoch >= entry.epoch else []
            check(set(newest) <= set(known), "producers", log, entry, newest)
            continue
        remembered = expected.batches[-BATCHES_REMEMBERED:]
        suffix = remembered[len(remembered) - len(known) :]
        # Of a compacted log the last one is there for its producer's sake, and others are not.
        is_subset = set(known) <= set(expected.batches)
        is_right = is_subset if model.was_compacted else known == suffix
        check(is_right, "producers", log, entry, expected)
        if remembered and remembered[-1][0] >= start:
            check(known[-1:] == remembered[-1:], "producers", log, entry, expected)
        if expected.txn_first < 0 or expected.txn_first >= start:
            check(entry.txn_first_offset == expected.txn_first, "producers", log, entry, expected)


def check_read_committed(found: list[Batch], log: Log, lineage: Lineage, model: Modelled) -> None:
    until = lineage.until(log.log_end_offset)
    unstable = until.unstable(log.high_watermark)
    start = log.log_start_offset
    stable = log.high_watermark if unstable is None else min(unstable, log.high_watermark)
    if unstable is None or unstable >= max(start, model.log_start):
        # After a start a transaction counts as ended whose marker is there, committed or not.
        undecided = until.unstable(until.end)
        limit = log.high_watermark if undecided is None else min(undecided, log.high_watermark)
        # In a log that was cut a transaction may be open again of which compaction left nothing.
        is_right = stable <= log.last_stable_offset or model.was_shortened
        is_right = is_right and log.last_stable_offset <= limit
        check(is_right, "read_committed", log, log.last_stable_offset, stable, limit)
    stable = log.last_stable_offset
    outcomes = until.outcomes()
    served = [b for b in found if b.end > start and max(b.base, start) < stable]
    for at in sorted({0, len(served) // 2}):
        batches = served[at:]
        if not batches:
            return
        begin = max(batches[0].base, start)
        aborted = log.reader.aborted_transactions(begin, stable)
        seen = [b.base for b in _committed(batches, aborted) if b.records]
        expected = [b.base for b in batches if b.records and outcomes[b.base] == COMMITTED]
        check(seen == expected, "read_committed", log, f"from {begin}", seen, expected, aborted)


def _committed(batches: Sequence[Batch], aborted: list[tuple[int, int]]) -> Iterator[Batch]:
    """What a consumer passes on, as Kafka's does it."""
    waiting = sorted(aborted, key=lambda each: each[1])
    passed_over: set[int] = set()
    for batch in batches:
        while waiting and waiting[0][1] <= batch.header.last_offset:
            passed_over.add(waiting.pop(0)[0])
        producer = batch.header.producer_id
        if batch.header.is_control:
            if batch.commits is False:
                passed_over.discard(producer)
        elif not (batch.header.is_transactional and producer in passed_over):
            yield batch
