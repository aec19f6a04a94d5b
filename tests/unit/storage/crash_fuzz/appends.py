"""Steps that append: as leader and as follower, and that change between the two."""

from random import Random

from storage.log.log import Log
from storage.types.transaction_marker import TransactionMarker
from tests.unit.storage.crash_fuzz.machine import Machine
from tests.unit.storage.crash_fuzz.model import Batch, Lineage, Modelled, parse, producers_of
from tests.unit.storage.crash_fuzz.rules import check
from tests.unit.storage.crash_fuzz.sends import draw


def served(machine: Machine, random: Random) -> tuple[Log, Modelled] | None:
    """A log that serves, and what is known of it."""
    logs = [log for log in machine.manager.logs() if log.topic_partition in machine.topics]
    if not logs:
        return None
    log = random.choice(sorted(logs, key=lambda each: str(each.topic_partition)))
    return log, machine.topics[log.topic_partition]


def append(machine: Machine, random: Random) -> None:
    """As leader or as follower, a few batches; the high watermark follows."""
    found = served(machine, random)
    if found is None:
        return
    log, model = found
    if model.is_leader:
        for _ in range(random.choice((1, 2, 4))):
            lead(machine, random, log, model)
    else:
        _follow(machine, random, log, model)
    if random.random() < 0.8:
        machine.write_queued()
    if random.random() < 0.7:
        log.update_high_watermark(log.log_end_offset)
    else:
        log.update_high_watermark(random.randint(log.high_watermark, log.log_end_offset))


def lead(machine: Machine, random: Random, log: Log, model: Modelled) -> None:
    """One batch as leader, or the last one of an idempotent producer again."""
    if random.random() < 0.1:
        _send_again(machine, random, log, model)
        return
    machine.written += 1
    send = draw(random, model.lineage, machine.written)
    now_ms = machine.clock.now_ms()
    batch = parse(send.build(now_ms, log.next_offset, model.epoch))
    model.may_append([batch])
    if send.commits is None:
        records = memoryview(bytearray(send.build(now_ms)))
        info = log.writer.append_as_leader(records, leader_epoch=model.epoch, now_ms=now_ms)
        check(not info.duplicate, "producers", log, "a new batch counts as sent again", send)
        first = info.first_offset
    else:
        marker = TransactionMarker(send.producer_id, send.producer_epoch, send.commits, 1, 0)
        log.producer_state.check_marker(marker)
        first = log.markers.append([marker], leader_epoch=model.epoch, now_ms=now_ms)
    check(first == batch.base, "nothing else", log, f"{first} for {batch.base}")


def _send_again(machine: Machine, random: Random, log: Log, model: Modelled) -> None:
    """The last batch of an idempotent producer, whose answer was lost: it gets the first one."""
    known = producers_of(model.lineage.batches)
    sent = [b for b in model.lineage.batches if b.header.producer_id in (1, 2)]
    if not sent or sent[-1].base < log.log_start_offset or model.was_compacted:
        return
    batch = sent[-1]
    if batch.header.producer_epoch != known[batch.header.producer_id].epoch:
        return
    info = log.writer.append_as_leader(
        memoryview(bytearray(batch.data)),
        leader_epoch=model.epoch,
        now_ms=machine.clock.now_ms(),
    )
    check(info.duplicate, "producers", log, "a batch that was sent again is there twice")
    check(info.first_offset == batch.base, "producers", log, info)


def _follow(machine: Machine, random: Random, log: Log, model: Modelled) -> None:
    """What a leader answers: batches of one epoch or two, the last perhaps cut off."""
    now_ms = machine.clock.now_ms()
    batches: list[Batch] = []
    epoch = max(model.epoch - random.choice((0, 0, 1)), log.latest_leader_epoch, 0)
    lineage = model.lineage
    offset = log.next_offset
    for _ in range(random.choice((1, 2, 3, 5))):
        if "compact" in log.config.cleanup_policy and random.random() < 0.15:
            model.was_compacted = True
            offset += random.randint(1, 3)
        if epoch < model.epoch and random.random() < 0.5:
            epoch += 1
        machine.written += 1
        so_far = Lineage(lineage.begin, [*lineage.batches, *batches])
        send = draw(random, so_far, machine.written)
        batches.append(parse(send.build(now_ms, offset, epoch)))
        offset = batches[-1].end
    model.may_append(batches)
    records = b"".join(batch.data for batch in batches)
    if random.random() < 0.3:
        records += batches[-1].data[: random.randrange(len(batches[-1].data))]
    log.follower.append(
        memoryview(bytearray(records)),
        fetch_offset=log.next_offset,
        leader_epoch=model.epoch,
    )


def role(machine: Machine, random: Random) -> None:
    """Another leader is elected: this broker, or not."""
    found = served(machine, random)
    if found is None or not found[1].is_replicated:
        return
    log, model = found
    model.epoch += random.choice((1, 1, 2))
    model.is_leader = random.random() < 0.5
    if model.is_leader:
        log.begin_to_lead(model.epoch)
