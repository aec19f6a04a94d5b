"""Steps of who follows, operates and controls: cuts, topics that come and go, settings, moves."""

from contextlib import suppress
from random import Random
from uuid import UUID

from storage.errors import StorageError
from storage.log.log import Log
from storage.types.topic_partition import TopicPartition
from tests.unit.storage.crash_fuzz.appends import served
from tests.unit.storage.crash_fuzz.judge import all_batches
from tests.unit.storage.crash_fuzz.machine import PARTITIONS, REPLICATED, Machine
from tests.unit.storage.crash_fuzz.model import Modelled
from tests.unit.storage.crash_fuzz.moves import begin_move, cancel_move, finish_move
from tests.unit.storage.crash_fuzz.rules import check


def truncate(machine: Machine, random: Random) -> None:
    """A follower's log, to where it agrees with its leader's."""
    found = served(machine, random)
    if found is None or not found[1].is_replicated:
        return
    log, model = found
    model.is_leader = False
    model.epoch += 1
    low = log.log_start_offset if random.random() < 0.7 else max(log.log_end_offset - 6, 0)
    offset = random.randint(min(low, log.log_end_offset), log.log_end_offset)
    first = log.segment_facts()[0].base_offset
    with machine.filesystem.looked_at():
        left_end = max((b.end for b in all_batches(log) if b.end <= offset), default=first)
    model.may_be_cut(offset, left_end, wholly=offset < first)
    machine.manager.truncation.truncate_to(log, offset)
    check(log.log_end_offset <= offset, "nothing else", log, f"was cut at {offset}")
    _cut(log, model)


def start_at(machine: Machine, random: Random) -> None:
    """A follower's log, whose leader begins elsewhere."""
    found = served(machine, random)
    if found is None or not found[1].is_replicated:
        return
    log, model = found
    model.is_leader = False
    model.epoch += 1
    offset = random.randint(0, log.log_end_offset + 5)
    model.may_be_cut(offset, offset, wholly=True)
    machine.manager.truncation.start_at(log, offset)
    check(log.log_start_offset == log.log_end_offset == offset, "log start", log, offset)
    _cut(log, model)


def _cut(log: Log, model: Modelled) -> None:
    model.lineages = [model.lineage]
    model.is_cutting = False
    model.log_start = log.log_start_offset
    model.durable_start = min(model.durable_start, log.log_start_offset)
    model.durable_end = min(model.durable_end, log.log_end_offset)


def create(machine: Machine, random: Random) -> None:
    """A topic, perhaps once more."""
    missing = [tp for tp in PARTITIONS if tp not in machine.topics]
    if not missing:
        return
    topic_partition = random.choice(missing)
    machine.made += 1
    machine.places.pop(topic_partition, None)
    machine.topics[topic_partition] = Modelled(
        topic_partition, UUID(int=machine.made << 64), topic_partition.topic in REPLICATED
    )
    machine.create(topic_partition)


def delete(machine: Machine, random: Random) -> None:
    """A topic: first in the store."""
    if not machine.topics:
        return
    topic_partition = random.choice(sorted(machine.topics))
    _delete(machine, topic_partition)


def _delete(machine: Machine, topic_partition: TopicPartition) -> None:
    del machine.topics[topic_partition]
    machine.places.pop(topic_partition, None)
    manager = machine.manager
    manager.deletion.forget_offline([topic_partition])
    manager.deletion.delete_all([topic_partition])


def config(machine: Machine, random: Random) -> None:
    """A topic is compacted from now on, or is not any more; deleted by retention or not."""
    topic = random.choice(PARTITIONS).topic
    policy = random.choice((("compact",), ("compact", "delete"), ("delete",)))
    changed = machine.configs[topic].model_copy(update={"cleanup_policy": policy})
    machine.configs[topic] = changed
    for log in machine.manager.logs():
        if log.topic_partition.topic == topic:
            log.update_config(changed)


def move(machine: Machine, random: Random) -> None:
    """A log to the other directory: the first half, or the second, or it is cancelled."""
    if not machine.moves:
        found = served(machine, random)
        if found is not None:
            begin_move(machine, found[0])
        return
    topic_partition = random.choice(sorted(machine.moves))
    if random.random() < 0.1:
        cancel_move(machine, topic_partition)
        return

    def meanwhile() -> None:
        if random.random() < 0.1 and topic_partition in machine.topics:
            with suppress(StorageError):
                _delete(machine, topic_partition)

    finish_move(machine, topic_partition, meanwhile)
