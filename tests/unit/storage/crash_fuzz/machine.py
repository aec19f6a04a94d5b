"""A machine on which one broker's log manager comes up again and again, and what is known of it."""

import errno
from posixpath import dirname, join
from random import Random
from typing import Final
from uuid import UUID

from config.topic import TopicConfig
from storage.checkpoints.checkpoint_files import (
    HIGH_WATERMARK_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    decode_offsets,
)
from storage.checkpoints.log_directory import LogDirectory
from storage.environment.randomness import SeededRandomness
from storage.errors import DiskError, StorageError
from storage.log.directory_pace import INLINE, DirectoryPace
from storage.log.log import Log
from storage.manager.log_copy import LogCopy
from storage.manager.log_jobs import run_one_by_one
from storage.manager.log_manager import LogManager, LogManagerSettings
from storage.types.topic_partition import TopicPartition
from storage.types.uuid_text import NIL
from tests.fakes.clock import ManualClock
from tests.fakes.environment import FakeEnvironment
from tests.fakes.filesystem import KEEP_ALL, FakeFilesystem, Keep, PowerCut
from tests.unit.storage.crash_fuzz.judge import judge
from tests.unit.storage.crash_fuzz.model import Modelled
from tests.unit.storage.crash_fuzz.rules import check
from tests.unit.storage.log.log_model import NOW_MS, small_segments

DIRECTORIES: Final = ("/one", "/two")
TOPICS: Final = ("alone", "kept", "copied", "keyed")
PARTITIONS: Final = tuple(TopicPartition(topic, 0) for topic in TOPICS)
REPLICATED: Final = frozenset({"copied", "keyed"})
COMPACTED: Final = frozenset({"kept", "keyed"})
STARTS_MAX: Final = 8
TICKETS_MAX: Final = 100


class Machine:
    """See the module. What the metadata store knows survives everything: `topics`, `places`."""

    def __init__(self, seed: int) -> None:
        self.clock = ManualClock(NOW_MS)
        self.filesystem = FakeFilesystem(self.clock, open_files_max=3)
        self.filesystem.forgets_failed_writes = True
        self.filesystem.tear_failed_writes = seed % 2 == 0
        for path in DIRECTORIES:
            self.filesystem.mkdir(path)
        self.filesystem.sync_directory("/")
        self.is_quick = seed % 3 == 0
        self.topics: dict[TopicPartition, Modelled] = {}
        self.places: dict[TopicPartition, UUID] = {}
        self.configs = {tp.topic: _config(seed, tp.topic) for tp in PARTITIONS}
        self.moves: dict[TopicPartition, tuple[Log, LogCopy, LogDirectory, int]] = {}
        self.made = 0
        self.written = 0
        self.starts = 0
        self.manager = self._new_manager()
        self.start(Random(seed))

    # -- starts and ends ---------------------------------------------------------------------

    def _new_manager(self) -> LogManager:
        self.starts += 1
        manager = LogManager(
            FakeEnvironment(
                filesystem=self.filesystem,
                clock=self.clock,
                randomness=SeededRandomness(self.starts),
            ),
            DIRECTORIES,
            settings=LogManagerSettings(log_cleaner_dedupe_buffer_size=1 << 16, reserve_bytes=4096),
        )
        manager.assigned = self.places.get
        return manager

    def start(self, random: Random) -> None:
        """Come up, and have every log judged; where the power goes meanwhile, again."""
        for _ in range(STARTS_MAX):
            try:
                self._start(random)
            except (PowerCut, StorageError):
                self._lose(random.choice([None, KEEP_ALL, random]))
            else:
                if not self.has_lost_power:
                    break
                self._lose(random.choice([None, random]))
        self.judge_all()

    @property
    def has_lost_power(self) -> bool:
        """The disk has stopped, also where whoever met it took it for some failure."""
        stop = self.filesystem.stop_after
        return stop is not None and self.filesystem.changes >= stop

    def _start(self, random: Random) -> None:
        self.moves.clear()
        manager = self.manager = self._new_manager()
        known = self._known_ends()
        begun: dict[TopicPartition, int] = {}
        manager.startup.open_directories()
        manager.startup.claim("cluster", 1)
        jobs = manager.startup.load_jobs(
            lambda topic: self.configs[topic],
            is_stray=self._is_stray,
            new_epoch_of=begun.get,
            latest_epoch_of=lambda tp: self.topics[tp].epoch if tp in self.topics else None,
            topic_id_of=lambda tp: self.topics[tp].topic_id if tp in self.topics else None,
            is_replicated=lambda tp: tp.topic in REPLICATED,
        )
        for job in jobs:
            model = self.topics[job.topic_partition]
            if not job.directory.had_clean_shutdown and not model.is_replicated:
                model.epoch += 1
                begun[job.topic_partition] = model.epoch
        self.places.update(manager.found_elsewhere)
        random.shuffle(jobs)
        for job in jobs:
            job()
        for log in manager.logs():
            model = self.topics[log.topic_partition]
            known_end = known.get((dirname(log.directory), log.topic_partition), 0)
            is_short = log.log_end_offset < known_end
            check(log.is_short == is_short, "short", log, log.is_short, known_end)
            if log.needs_new_epoch and not model.is_replicated:
                model.epoch += 1
                log.begin_epoch(model.epoch)
            log.needs_new_epoch = False
            self._leave_to_writer(log)

    def _is_stray(self, topic_partition: TopicPartition, topic_id: UUID | None) -> bool:
        model = self.topics.get(topic_partition)
        return model is None or topic_id not in (None, NIL, model.topic_id)

    def _known_ends(self) -> dict[tuple[str, TopicPartition], int]:
        """By directory and partition: what its checkpoints name as committed or synced."""
        known: dict[tuple[str, TopicPartition], int] = {}
        for path in DIRECTORIES:
            for name in (HIGH_WATERMARK_CHECKPOINT, RECOVERY_POINT_CHECKPOINT):
                if self.filesystem.exists(file := join(path, name)):
                    for tp, offset in decode_offsets(self.filesystem.peek(file), file).items():
                        known[path, tp] = max(known.get((path, tp), 0), offset)
        return known

    def stop(self, random: Random) -> None:
        """Stop cleanly, and lose power or not; then start."""
        logs = self.manager.logs()
        self.manager.shutdown(side_by_side=run_one_by_one)
        for log in logs:
            self._note_durable(log)
        self.crash(random, random.choice([None, KEEP_ALL, random]))

    def crash(self, random: Random, keep: Keep, *, broken: str = "") -> None:
        """The machine loses power, or with KEEP_ALL the process dies; then start.

        `broken`: a directory whose disk refuses everything from then on.
        """
        self._lose(keep)
        for kind in ("list", "read", "write") if broken else ():
            self.filesystem.fail(kind, errno.EIO, path=broken, times=1 << 30)
        self.start(random)

    def _lose(self, keep: Keep) -> None:
        # A broker does it at once, in a thread; a kill that comes before is not looked at.
        with self.filesystem.looked_at():
            self.manager.note_failures()
        self.filesystem.crash(keep)
        for topic_partition, model in self.topics.items():
            if "compact" in self.configs[topic_partition.topic].cleanup_policy:
                model.was_compacted = True
            model.has_lost_power |= keep != KEEP_ALL

    @property
    def is_all_in_place(self) -> bool:
        """Every log is where the store says: none is in the middle of a move."""
        logs = self.manager.logs()
        at = {log.topic_partition: self.manager.directory_of(log) for log in logs}
        return all(
            (directory := at.get(tp)) is not None and directory.id == self.places.get(tp)
            for tp in self.topics
        )

    # -- what is known -----------------------------------------------------------------------

    def note_durable(self) -> None:
        """What the logs say is on disk is so from now on."""
        for log in self.manager.logs():
            self._note_durable(log)

    def _note_durable(self, log: Log) -> None:
        model = self.topics.get(log.topic_partition)
        if model is not None and log.topic_id == model.topic_id and len(model.lineages) == 1:
            model.durable_end = max(model.durable_end, log.recovery_point)
            if not log.flusher.directory_changed:
                model.former = []

    def judge_all(self) -> None:
        """Every partition that is to be here is, and is as it may be."""
        with self.filesystem.looked_at():
            self._judge_all()

    def _judge_all(self) -> None:
        manager = self.manager
        check(not manager.unopened, "alive", manager.unopened)
        for topic_partition, model in self.topics.items():
            log = manager.get(topic_partition)
            if log is None:
                self._check_absence(topic_partition, model)
            elif log.failure is None:
                check(log.topic_id in (model.topic_id, NIL), "nothing else", log, log.topic_id)
                judge(log, model)

    def _check_absence(self, topic_partition: TopicPartition, model: Modelled) -> None:
        manager = self.manager
        place = self.places.get(topic_partition)
        is_away = place is not None and manager.directory_by_id(place) is None
        if not is_away and not manager.is_loading(topic_partition):
            # One that begins anew is at once as if on disk, and without records as if never made.
            is_empty = model.durable_end == 0 or not model.lineage.batches
            check(is_empty, "nothing lost", f"{topic_partition} is not there")
        if is_away:
            try:
                self.create(topic_partition)
            except StorageError:
                return
            check(False, "failed disk", f"{topic_partition} was made elsewhere")

    # -- what brokers do all the time --------------------------------------------------------

    def create(self, topic_partition: TopicPartition) -> Log:
        """Make the log of a topic that exists.

        Raises:
            StorageError: It cannot be made now.
        """
        model = self.topics[topic_partition]
        is_new = self.manager.get(topic_partition) is None
        log = self.manager.creation.create_all(
            [(topic_partition, model.topic_id, self.configs[topic_partition.topic])],
            leader_epoch=model.epoch if model.is_leader else None,
        )[0]
        directory = self.manager.directory_of(log)
        assert directory is not None
        assert directory.id is not None
        self.places[topic_partition] = directory.id
        if is_new:
            model.begin_anew()
            self._leave_to_writer(log)
        return log

    def write_queued(self) -> None:
        """Be the directories' threads: write what logs have queued, and do what else is theirs."""
        for log in self.manager.logs():
            for _ in range(TICKETS_MAX):
                ticket = log.disk_work.begin()
                if ticket is None:
                    break
                try:
                    ticket.run()
                except DiskError as error:
                    log.disk_work.finish(ticket, error)
                    self.manager.fail_log(log, log.failure or error)
                else:
                    log.disk_work.finish(ticket)
            else:
                check(log.failure is not None, "alive", log, "its queue does not end")

    def _leave_to_writer(self, log: Log) -> None:
        """As a partition that is served: a slow directory's batches are all queued."""
        pace = DirectoryPace(self.clock.monotonic_ms, self.clock.monotonic_s)
        if self.is_quick:
            pace.inline_bytes_max = 200
        log.disk_work.leave_to(pace)

    def upkeep(self) -> None:
        """Look for room, note failures, make logs that could not be made."""
        manager = self.manager
        for log in manager.logs():
            if log.pace is INLINE:
                self._leave_to_writer(log)
        manager.note_failures()
        if any(directory.is_full for directory in manager.online()) or manager.loading:
            manager.room.check()
        for log in manager.logs():
            if log.refusal is not None:
                manager.room.check()
            if log.failure is not None:
                manager.fail_log(log, log.failure)
        for topic_partition in self.topics:
            if manager.get(topic_partition) is None and not manager.is_loading(topic_partition):
                try:
                    self.create(topic_partition)
                except StorageError:
                    continue


def _config(seed: int, topic: str) -> TopicConfig:
    compacted = topic in COMPACTED
    return small_segments(
        (300, 500, 900)[seed % 3],
        cleanup_policy=("compact",) if compacted else ("delete",),
        retention_bytes=-1 if compacted else (1500, 4000)[seed % 2],
        min_cleanable_dirty_ratio=0.01,
        delete_retention_ms=3000,
        preallocate=seed % 4 == 3,
    )
