"""Compares a log with what it may and must hold: the rules of the package, one after the other."""

from protocol.records.batch import crc_matches, iterate_batches
from storage.log.log import Log
from tests.unit.storage.crash_fuzz.model import (
    ABORTED,
    COMMITTED,
    Batch,
    Lineage,
    Modelled,
    parse,
)
from tests.unit.storage.crash_fuzz.rules import RuleBroken, check, short
from tests.unit.storage.crash_fuzz.served import (
    check_epochs,
    check_producers,
    check_read_committed,
    check_reads,
)


def judge(log: Log, model: Modelled) -> None:
    """Check a log, and settle what the model did not know of it.

    Raises:
        RuleBroken: A rule does not hold.
    """
    found = all_batches(log)
    lineage = _lineage_of(found, log, model)
    if model.has_lost_power:
        lineage = _without_holes(found, lineage, model, log.log_start_offset)
        left = len(lineage.until(log.log_end_offset).batches)
        model.was_shortened |= model.was_compacted and left < len(model.lineages[0].batches)
    if model.was_cut:
        # What was removed for the sake of what is cut now is gone.
        # Not what was deleted: a power cut may bring that back.
        first = min(log.segment_facts()[0].base_offset, model.log_start)
        before = [batch for batch in lineage.batches if batch.end <= first]
        lineage = Lineage(lineage.begin, [*before, *found])
        model.was_cut = False
    _check_log_start(log, model)
    _check_nothing_lost(found, log, lineage, model)
    check_reads(found, log)
    check_epochs(found, log)
    check_producers(found, log, lineage, model)
    check_read_committed(found, log, lineage, model)
    model.settle(lineage, log.log_end_offset)
    model.has_lost_power = False


def all_batches(log: Log) -> list[Batch]:
    """All that is in the files, also below the log start."""
    found: list[Batch] = []
    for segment in log.segment_facts():
        data = memoryview(segment.open_file().read_at(segment.size, 0))
        check(len(data) == segment.size, "nothing else", f"{segment.path} is short")
        for position, header in iterate_batches(data):
            check(crc_matches(data, position, header), "nothing else", "CRC", header)
            batch = parse(bytes(data[position : position + header.size]))
            check(batch.base >= segment.base_offset, "nothing else", segment.path, header)
            check(not found or batch.base >= found[-1].end, "no hole", "overlap", header)
            found.append(batch)
    check(not found or found[-1].end <= log.log_end_offset, "nothing else", "beyond the end", log)
    return found


# -- nothing else ----------------------------------------------------------------------------------


def _lineage_of(found: list[Batch], log: Log, model: Modelled) -> Lineage:
    """Which of the lineages it is, the newest first; with a failed append that has come back."""
    reasons = []
    for lineage in reversed([*model.former, *model.lineages]):
        foreign = _foreign(found, lineage)
        if foreign is None:
            return lineage
        if foreign is found[-1] and foreign in model.failed:
            return Lineage(lineage.begin, [*lineage.until(foreign.base).batches, foreign])
        reasons.append(f"not in the lineage to {lineage.end}: {short(foreign)}")
    raise RuleBroken(f"nothing else: {log}, {'; '.join(reasons)}")


def _foreign(found: list[Batch], lineage: Lineage) -> Batch | None:
    known = {batch.base: batch for batch in lineage.batches}
    for batch in found:
        original = known.get(batch.base)
        if original is None or not _is_rest_of(batch, original):
            return batch
    return None


def _is_rest_of(batch: Batch, original: Batch) -> bool:
    """Whether it is the batch that was appended, or what compaction has left of it."""
    if batch.data == original.data:
        return True
    left, whole = batch.header, original.header
    return (
        (left.last_offset, left.leader_epoch, left.producer_id, left.producer_epoch)
        == (whole.last_offset, whole.leader_epoch, whole.producer_id, whole.producer_epoch)
        and (left.base_sequence, left.is_control, left.is_transactional)
        == (whole.base_sequence, whole.is_control, whole.is_transactional)
        and set(batch.records) <= set(original.records)
        and batch.commits in (None, original.commits)
    )


def _without_holes(
    found: list[Batch], lineage: Lineage, model: Modelled, log_start: int
) -> Lineage:
    """Leave out what a power cut may have taken before the first batch that is there.

    As none of it was ever synced, and no other replica has it: nothing would be gained by giving up
    what is behind it.
    """
    here = {batch.base for batch in found}
    first = found[0].base if found else lineage.end
    return Lineage(
        lineage.begin,
        [
            batch
            for batch in lineage.batches
            if batch.base in here
            or batch.base < model.durable_end
            or batch.end <= log_start
            or not (batch.base < first and not model.is_replicated)
        ],
    )


# -- nothing lost, no hole -------------------------------------------------------------------------


def _check_log_start(log: Log, model: Modelled) -> None:
    start = log.log_start_offset
    limit = max(model.log_start, min(lineage.begin for lineage in model.lineages))
    check(start <= limit, "log start", f"{log} begins above {limit}")
    check(start >= model.durable_start, "log start", f"{log}: {model.durable_start} was deleted")
    check(log.recovery_point <= log.log_end_offset, "nothing lost", log, log.recovery_point)
    check(start <= log.high_watermark <= log.log_end_offset, "log start", log, log.high_watermark)


def _check_nothing_lost(found: list[Batch], log: Log, lineage: Lineage, model: Modelled) -> None:
    end = log.log_end_offset
    # Of a log that has no records left a start may forget where it ended.
    durable_end = min(model.durable_end, lineage.end)
    check(end >= durable_end, "nothing lost", f"{log} ends below {durable_end}")
    if not found and not any(b.end > log.log_start_offset for b in lineage.until(end).batches):
        return
    here = {batch.base: batch for batch in found}
    expected = [b for b in lineage.until(end).batches if b.end > log.log_start_offset]
    check(
        not expected or expected[-1].end == end or model.was_compacted,
        "no hole",
        f"{log}: the last batch is {short(expected[-1]) if expected else None}",
    )
    missing = [batch for batch in expected if batch.base not in here]
    if model.was_compacted:
        _check_compaction(found, log, lineage.until(end))
    else:
        check(not missing, "no hole", log, durable_end, *map(short, missing))


def _check_compaction(found: list[Batch], log: Log, lineage: Lineage) -> None:
    outcomes = lineage.outcomes()
    start = log.log_start_offset
    here = {record.offset for batch in found for record in batch.records}
    # By key: the last record that explains why earlier ones are missing, the last tombstone gone.
    explains: dict[bytes | None, int] = {}
    gone: dict[bytes | None, int] = {}
    for batch in lineage.batches:
        for record in batch.records if outcomes.get(batch.base) == COMMITTED else ():
            if record.offset in here:
                explains[record.key] = record.offset
            elif record.value is None and record.offset >= start:
                explains[record.key] = gone[record.key] = record.offset
    for batch in lineage.batches:
        outcome = outcomes.get(batch.base, COMMITTED)
        for record in batch.records:
            if record.offset in here or record.offset < start:
                continue
            is_explained = outcome == ABORTED or (
                outcome == COMMITTED and explains.get(record.key, -1) >= record.offset
            )
            check(is_explained, "compaction", f"{log} lacks {record} ({outcome})")
    for batch in found:
        for record in batch.records if outcomes.get(batch.base) == COMMITTED else ():
            deleted_at = gone.get(record.key, -1)
            check(
                record.offset > deleted_at or record.offset < start,
                "compaction",
                f"{log} has {record}, deleted at {deleted_at}",
            )
