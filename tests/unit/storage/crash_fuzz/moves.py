"""A move of a log between directories, in the steps of `broker.replicas.log_mover`."""

from collections.abc import Callable
from uuid import UUID

from storage.errors import StorageError
from storage.log.log import Log
from storage.manager.log_copy import CopyCancelledError
from storage.types.topic_partition import TopicPartition
from tests.unit.storage.crash_fuzz.machine import Machine


def begin_move(machine: Machine, log: Log) -> None:
    """Copy what there is; nothing compacts the log from now on."""
    manager = machine.manager
    target = next((d for d in manager.online() if d is not manager.directory_of(log)), None)
    if target is None or not manager.cleaning.try_pause(log.topic_partition):
        return
    try:
        copy = manager.moves.begin_move(log, target)
    except StorageError:
        manager.cleaning.resume(log.topic_partition)
        raise
    machine.moves[log.topic_partition] = (log, copy, target, log.generation)
    try:
        manager.moves.copy_segments(log, copy)
    except StorageError:
        cancel_move(machine, log.topic_partition)
        raise


def cancel_move(machine: Machine, topic_partition: TopicPartition) -> None:
    """Before it was taken out."""
    _, copy, target, _ = machine.moves.pop(topic_partition)
    machine.manager.moves.drop_copy(copy, target)
    machine.manager.cleaning.resume(topic_partition)


def finish_move(
    machine: Machine, topic_partition: TopicPartition, meanwhile: Callable[[], None]
) -> None:
    """Let the copy take the log's place; `meanwhile`: in the moment before the log is taken out.

    Raises:
        StorageError: It is not moved.
    """
    manager = machine.manager
    log, copy, target, generation = machine.moves[topic_partition]
    source = manager.directory_of(log)
    assert source is not None

    def check_wanted() -> None:
        if manager.get(topic_partition) is not log or log.generation != generation:
            raise CopyCancelledError("deleted or cut")

    is_noted = is_remembered = False
    try:
        check_wanted()
        manager.moves.copy_segments(log, copy)
        log.flusher.flush()
        assert target.id is not None
        machine.places[topic_partition] = target.id
        is_noted = True
        manager.moves.copy_segments(log, copy)
        check_wanted()
        is_remembered = True
        manager.moves.before_take_out(log)
        meanwhile()
        check_wanted()
    except StorageError:
        if is_remembered:
            manager.moves.not_taken_out(log)
        cancel_move(machine, topic_partition)
        _stays(machine, topic_partition, source.id if is_noted else None)
        raise
    del machine.moves[topic_partition]
    manager.moves.take_out(log)
    copy.hurry()
    config = machine.configs[topic_partition.topic]
    try:
        try:
            manager.moves.finish_move(log, copy, target)
            manager.moves.swap(log, copy, target, config)
        except StorageError:
            _stays(machine, topic_partition, source.id)
            manager.moves.put_back(log, copy, target, config)
            raise
    finally:
        manager.cleaning.resume(topic_partition)


def _stays(machine: Machine, topic_partition: TopicPartition, directory_id: UUID | None) -> None:
    if directory_id is not None and topic_partition in machine.topics:
        machine.places[topic_partition] = directory_id
