"""Rebuild of `__remote_log_metadata` from the bucket's manifests, after it was lost.

    list the bucket ─> whole copies that the metadata does not know, partition by partition
    ─> read their manifests ─> publish each started and finished, in one batch of the topic
    ─> what was lost is found: partitions that waited are checked again, garbage is collected

A manifest is written last and removed first, so it proves that its copy was finished and not
deleted, and has all that the topic's records had, leader epochs included. A partition's history is
read before its manifests: its log start may have been lost with the rest. Not published are copies

    of partitions this broker has no metadata of    their topic is not here, or is not tiered
    of topics that were deleted here, or whose      their removal goes on
    history says that they are being deleted
    that are below the log start offset, this       they have expired; published again they would be
    broker's or the history's                       removed at once, so only on request

It may be stopped and begun again at any time: what was published is known then, and skipped.
Copies that overlap, or are of another history, are published too: which of them is read follows
from their leader epochs, as it did before.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from tiered.deadline import CallDeadlines
from tiered.errors import (
    CorruptRemoteDataError,
    ObjectNotFoundError,
    RemoteStorageError,
    TieredError,
)
from tiered.format.manifest import SegmentManifest
from tiered.format.object_keys import ObjectKeys
from tiered.maintenance.object_groups import ObjectGroup, ObjectGrouping
from tiered.metadata.history import HistoryState, HistorySummary
from tiered.metadata.history_reader import read_histories
from tiered.metadata.publisher import MetadataPublisher
from tiered.metadata.remote_log_metadata_manager import RemoteLogMetadataManager
from tiered.segment_metadata import TopicIdPartition
from tiered.tasks.remote_log_manager import RemoteLogManager
from tiered.tier import Tier

SEGMENTS_PER_BATCH: Final = 100
"""Published together: one batch of the topic, one sync."""

READS_AT_A_TIME: Final = 16
"""Manifests that are read together."""

PROBLEMS_MAX: Final = 1_000


@dataclass(slots=True)
class RebuildReport:
    """Report of one rebuild.

    Attributes:
        told_segments, told_bytes: Published again (with `dry_run`: would be); bytes of logs.
        partitions: Of how many partitions.
        known_segments: Whole copies that the metadata knew.
        hidden_segments: Of partitions this broker has no metadata of.
        deleted_segments: Of topics that were deleted here, or are being deleted.
        below_log_start: Wholly below their log's start, and left alone.
        problems: Sentences about copies that could not be published; the first of them.
        problem_count: How many those are.
        held_back: Partitions that wait still, and why.
        found: What was lost counts as found.
    """

    told_segments: int = 0
    told_bytes: int = 0
    partitions: int = 0
    known_segments: int = 0
    hidden_segments: int = 0
    deleted_segments: int = 0
    below_log_start: int = 0
    problems: list[str] = field(default_factory=list)
    problem_count: int = 0
    held_back: dict[str, str] = field(default_factory=dict)
    found: bool = False

    def add_problem(self, text: str) -> None:
        """One more copy that cannot be published."""
        self.problem_count += 1
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(text)


class RebuildBusyError(RemoteStorageError):
    """One is under way already."""


class MetadataRebuild:
    """See the module. One for the broker; runs on its loop."""

    def __init__(
        self,
        *,
        metadata: RemoteLogMetadataManager,
        manager: RemoteLogManager,
        tier: Tier,
        publisher: MetadataPublisher,
        deadlines: CallDeadlines,
        is_deleted: Callable[[UUID], bool],
        log_start_of: Callable[[TopicIdPartition], int | None],
    ) -> None:
        """Nothing runs before `run`.

        Args:
            metadata: To publish to.
            manager: Of the partitions that wait.
            tier: The bucket.
            publisher: Describes the copies that were found as this broker's.
            deadlines: Of reading the bucket.
            is_deleted: Whether a topic was deleted here, by its id.
            log_start_of: The log start offset of a partition; None: it has no log here.
        """
        self._metadata = metadata
        self._manager = manager
        self._tier = tier
        self._publisher = publisher
        self._deadlines = deadlines
        self._is_deleted = is_deleted
        self._log_start_of = log_start_of
        self._keys = ObjectKeys()
        self._is_running = False

    async def run(
        self, *, dry_run: bool = False, below_log_start: bool = False, accept_loss: bool = False
    ) -> RebuildReport:
        """Do it; see the module.

        Args:
            dry_run: Publish nothing, only report what would be.
            below_log_start: Also copies below the log start offset, which expire then.
            accept_loss: What cannot be published is lost: partitions that would wait still begin
                where they have records, and what is unknown counts as not there.

        Raises:
            RebuildBusyError: One is under way.
            TieredError: It could not be finished; what was published stays so.
        """
        if self._is_running:
            raise RebuildBusyError("the metadata is being rebuilt already")
        self._is_running = True
        try:
            return await self._run(dry_run, below_log_start, accept_loss)
        finally:
            self._is_running = False

    async def _run(self, dry_run: bool, below_log_start: bool, accept_loss: bool) -> RebuildReport:
        report = RebuildReport()
        if not dry_run:
            await self._metadata.accept_partitions()
        present: TopicIdPartition | None = None
        keys: list[str] = []
        known: frozenset[UUID] = frozenset()
        async for group in self._whole_copies():
            if group.partition != present:
                await self._publish_all(report, present, keys, dry_run, below_log_start)
                present, keys = group.partition, []
                known = self._known(present)
            if self._is_wanted(report, group, known):
                keys.append(self._keys.keys_of(*group.key[:2]).manifest)
        await self._publish_all(report, present, keys, dry_run, below_log_start)
        for partition in self._metadata.partitions():
            if not self._metadata.is_ready(partition):
                report.add_problem(f"metadata of {partition} is still being read: run it again")
        if not dry_run and (accept_loss or not report.problem_count):
            await self._metadata.found()
            report.found = True
            if accept_loss:
                self._manager.accept_losses()
            self._manager.check_held_back()
        report.held_back = {str(held): reason for held, reason in self._manager.held_back.items()}
        return report

    async def _whole_copies(self) -> AsyncIterator[ObjectGroup]:
        grouping = ObjectGrouping()
        continuation: str | None = None
        while True:
            async with self._deadlines.of(1, "listing the bucket"):
                page = await self._tier.list_objects("", continuation)
            for found in page.objects:
                key = self._keys.parse(found.key)
                group = None if key is None else grouping.add(key, found)
                if group is not None and group.is_whole:
                    yield group
            continuation = page.continuation
            if continuation is None:
                break
        last = grouping.finish()
        if last is not None and last.is_whole:
            yield last

    def _known(self, partition: TopicIdPartition) -> frozenset[UUID]:
        if not self._metadata.is_ready(partition):
            return frozenset()
        return frozenset(one.id for one in self._metadata.segments(partition))

    def _is_wanted(self, report: RebuildReport, group: ObjectGroup, known: frozenset[UUID]) -> bool:
        partition = group.partition
        if partition in self._manager.gone or self._is_deleted(partition.topic_id):
            report.deleted_segments += 1
        elif not self._metadata.is_ready(partition):
            report.hidden_segments += 1
        elif group.key.segment_id.id in known or group.key.segment_id.id in self._manager.in_flight:
            report.known_segments += 1
        else:
            return True
        return False

    async def _publish_all(
        self,
        report: RebuildReport,
        partition: TopicIdPartition | None,
        keys: list[str],
        dry_run: bool,
        below_log_start: bool,
    ) -> None:
        if partition is None or not keys:
            return
        history = await self._history(report, partition)
        if history is not None and history.state is HistoryState.DELETING:
            report.deleted_segments += len(keys)
            return
        found: list[SegmentManifest] = []
        for start in range(0, len(keys), READS_AT_A_TIME):
            part = keys[start : start + READS_AT_A_TIME]
            read = await asyncio.gather(*(self._read(report, key) for key in part))
            found += [one for one in read if one is not None]
        recorded = 0 if history is None else history.log_start_offset
        log_start = 0 if below_log_start else max(recorded, self._log_start_of(partition) or 0)
        wanted = [one for one in found if one.metadata.end_offset >= log_start]
        report.below_log_start += len(found) - len(wanted)
        # The later copy of the same offsets takes the place of the earlier one, as it did then.
        wanted.sort(key=lambda one: one.created_ms)
        report.partitions += bool(wanted)
        for start in range(0, len(wanted), SEGMENTS_PER_BATCH):
            some = [one.metadata for one in wanted[start : start + SEGMENTS_PER_BATCH]]
            if not dry_run:
                await self._metadata.restore([self._publisher.finished(one) for one in some])
            report.told_segments += len(some)
            report.told_bytes += sum(one.segment_size_bytes for one in some)

    async def _history(
        self, report: RebuildReport, partition: TopicIdPartition
    ) -> HistorySummary | None:
        """None: there is none, or it cannot be read, which is a problem."""
        problems: list[str] = []
        name = self._keys.history_key(partition)
        async with self._deadlines.of(1, f"reading {name}"):
            found = await read_histories(self._tier, [name], problems)
        for text in problems:
            report.add_problem(text)
        return found.get(partition)

    async def _read(self, report: RebuildReport, key: str) -> SegmentManifest | None:
        try:
            async with self._deadlines.of(1, f"reading {key}"):
                manifest = SegmentManifest.from_json(await self._tier.get_object(key), key)
            async with self._deadlines.of(2, f"check of {key}"):
                if await self._tier.is_complete(manifest.metadata):
                    return manifest
            report.add_problem(f"{key}: its objects are not of the sizes it says")
        except ObjectNotFoundError:
            return None  # removed meanwhile
        except CorruptRemoteDataError as error:
            report.add_problem(f"{error.key}: {error.problem}")
        except TieredError as error:
            report.add_problem(f"{key}: {error}")
        return None
