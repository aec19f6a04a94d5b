"""Bugs of logs: producers' state, compaction, directories."""

from dataclasses import replace as changed
from typing import Any

from tests.checker.mutation.seeding import replace


def producers_kept_over_truncation() -> None:
    """A truncated log remembers batches of producers that it no longer has."""
    from storage.producers.state import ProducerStateManager

    replace(ProducerStateManager, "truncate_and_reload", lambda *_: None)


def producers_kept_over_full_disk() -> None:
    """A log whose queued batches found no room goes on remembering them."""
    from storage.log.rollback import ProducerRollback

    def keeping(self: ProducerRollback, _ticket: Any, _error: BaseException | None) -> None:
        self.is_under_way = False
        state = self._state
        state.leader_epochs.forget_from_end(state.log_end_offset)
        state.load_latest_epoch()
        state.end_rollback()

    replace(ProducerRollback, "finish", keeping)


def cleaned_above_the_high_watermark() -> None:
    """Compaction takes what is not committed for what replaces older values."""
    from storage.cleaner import log_cleaner_manager

    measure = log_cleaner_manager.measure

    class Ahead:
        def __init__(self, log: Any) -> None:
            self._log = log
            self.last_stable_offset = log.log_end_offset

        def __getattr__(self, name: str) -> Any:
            return getattr(self._log, name)

    def measured(log: Any, *arguments: Any) -> Any:
        return changed(measure(Ahead(log), *arguments), log=log)

    replace(log_cleaner_manager, "measure", measured)


def unfinished_copies_left() -> None:
    """What a broker that died has copied of a log to another directory stays there."""
    from storage.manager.log_startup import LogStartup
    from tests.simulation.brokers import COPY

    jobs_of = LogStartup._jobs_of

    def leaving(
        self: LogStartup, directory: Any, names: Any, holders: Any, *rest: Any, **named: Any
    ) -> Any:
        names = [one for one in names if not one.name.endswith(COPY)]
        return jobs_of(self, directory, names, holders, *rest, **named)

    replace(LogStartup, "_jobs_of", leaving)


def moved_without_its_end() -> None:
    """A log that changes its directory lacks what it took since it was copied the last time."""
    from storage.manager.log_copy import LogCopy
    from storage.manager.log_moves import LogMoves

    copy_segments, extend = LogMoves.copy_segments, LogCopy._extend

    def copied_once(self: LogMoves, log: Any, copy: LogCopy) -> int:
        return 0 if copy.size_bytes else copy_segments(self, log, copy)

    def leaving_out(self: LogCopy, name: str, size: int) -> int:
        return 0 if name in self._copied else extend(self, name, size)

    replace(LogMoves, "copy_segments", copied_once)
    replace(LogCopy, "_extend", leaving_out)


def removed_replicas_left() -> None:
    """The log of a replica that went elsewhere stays on the disk."""
    from broker.replicas.logs.log_removal import LogRemoval

    replace(LogRemoval, "replicas_removed", lambda *_: None)
