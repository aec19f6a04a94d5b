"""Steps that a broker does at intervals: flushes, checkpoints, retention, compaction."""

from random import Random

from storage.errors import DiskError
from tests.unit.storage.crash_fuzz.appends import lead, served
from tests.unit.storage.crash_fuzz.machine import Machine
from tests.unit.storage.crash_fuzz.rules import check


def flush(machine: Machine, random: Random) -> None:
    """All of a log, or what was rolled; sometimes with an append meanwhile."""
    found = served(machine, random)
    if found is None:
        return
    log, model = found
    up_to = log.active_base_offset if random.random() < 0.3 else None
    if random.random() < 0.7:
        log.flusher.flush(up_to)
        return
    ticket = log.flusher.begin_flush(up_to)
    if ticket is None:
        return
    try:
        if model.is_leader:
            lead(machine, random, log, model)
    finally:
        try:
            ticket.run()
        except DiskError:
            log.flusher.abandon_flush(ticket)
            raise
        log.flusher.finish_flush(ticket)


def roll(machine: Machine, random: Random) -> None:
    """A new segment."""
    found = served(machine, random)
    if found is not None:
        found[0].writer.roll()


def retention(machine: Machine, random: Random) -> None:
    """Of all logs."""
    for log in machine.manager.logs():
        model = machine.topics[log.topic_partition]
        model.log_start = max(model.log_start, log.high_watermark)
    machine.manager.for_each(lambda log: log.retention.delete_old_segments())
    for log in machine.manager.logs():
        machine.topics[log.topic_partition].log_start = log.log_start_offset


def remove(machine: Machine, random: Random) -> None:
    """Files and directories that left long ago."""
    machine.clock.advance(2000)
    machine.manager.deletion.remove_deleted()


def delete_records(machine: Machine, random: Random) -> None:
    """Up to some offset below the high watermark."""
    found = served(machine, random)
    if found is None:
        return
    log, model = found
    offset = random.randint(log.log_start_offset, log.high_watermark)
    model.log_start = max(model.log_start, offset)
    log.delete_records(offset)


def checkpoint(machine: Machine, random: Random) -> None:
    """All offsets of all logs, or some."""
    checkpoints = machine.manager.checkpoints
    random.choice([checkpoints.write, checkpoints.write, checkpoints.write_recovery_points])()
    if machine.filesystem.is_sound:
        checkpoints.write_log_start_offsets()
        for log in machine.manager.logs():
            directory = machine.manager.directory_of(log)
            if directory is not None and not directory.is_full:
                machine.topics[log.topic_partition].durable_start = log.log_start_offset


def compact(machine: Machine, random: Random) -> None:
    """The dirtiest log."""
    for log in machine.manager.logs():
        if "compact" in log.config.cleanup_policy:
            machine.topics[log.topic_partition].was_compacted = True
    machine.clock.advance(random.choice((0, 1000, 5000)))
    machine.manager.compaction.clean_dirtiest()
    check(not machine.manager.cleaning.uncleanable, "alive", machine.manager.cleaning.uncleanable)
