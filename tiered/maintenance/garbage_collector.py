"""Garbage collection of the bucket: orphaned objects are deleted, missing ones reported.

The bucket is listed page by page. Names are in the order of topic, partition and offset, so that
one partition at a time is compared with its metadata:

    the metadata owns it, or a copy under way here does    stays
    its partition's metadata is not visible here            stays: its owner is unknown
    all of a copy is there, manifest and all                stays, and is said to be unknown, unless
                                                            its topic was deleted here, or known
                                                            copies hold all that it holds
    younger than `tier.gc.grace.ms` by the store's own clock     stays, this time
    a partition's history                                   stays, unless its topic was deleted here
    no name of a segment's object                           stays
    else                                                    removed

and segments that are COPY_SEGMENT_FINISHED must be whole. A bucket that another cluster has claimed
is only reported on, and so is any while the metadata is known to have lost something.

The start of a copy is published, on disk, before its first byte is uploaded, and a deleted segment
has no manifest any more. So a whole copy that is unknown to the metadata is no garbage: it is the
history of a log, and the metadata was lost. `varve tier rebuild-metadata` publishes it again.

Not visible here are partitions this broker does not host. So an empty broker that is pointed at a
full bucket removes nothing, and a restore still finds all of it. Partitions whose deletion this
broker has finished, now or before a restart, count as visible without segments, so that what a
cancelled copy uploaded late goes too.

The store's clock counts: a small object is written and its time is read from the listing. Our own
clock may be wrong by days, and young objects would pass for old ones.
"""

import logging
from collections.abc import Callable, Container
from typing import Final
from uuid import UUID

from config.tier import TierConfig
from storage.environment.alerts import AlertKind, Alerts
from storage.environment.environment import Environment
from tiered.deadline import Deadline, call_deadline_ms, sleep_ms
from tiered.errors import ObjectNotFoundError
from tiered.format.object_keys import ObjectKeys
from tiered.maintenance.bucket_ownership import CLAIM_KEY, Claim
from tiered.maintenance.bucket_trouble import BucketTrouble
from tiered.maintenance.damaged_segments import LISTED, DamagedSegments
from tiered.maintenance.lost_metadata import HOW_TO_GO_ON
from tiered.maintenance.object_groups import ObjectGroup, ObjectGrouping
from tiered.maintenance.scrub_pass import OwnedSegments, ScrubPass
from tiered.maintenance.scrub_report import ScrubReport, UnknownCopy
from tiered.maintenance.superseded import is_superseded
from tiered.maintenance.verified_position import VERIFIED_KEY
from tiered.metadata.remote_log_metadata_manager import RemoteLogMetadataManager
from tiered.object_store.base import ObjectInfo, PendingUpload
from tiered.segment_metadata import SegmentState, TopicIdPartition
from tiered.tier import Tier

_log = logging.getLogger(__name__)

SUPERSEDED_READS_MAX: Final = 1_000
"""Manifests of unknown copies that are read in one pass; what is beyond it stays."""

CLOCK_KEY: Final = "varve-clock.json"

PAGE_INTERVAL_MS: Final = 100.0
"""Between two pages of 1,000 objects: ten listing requests a second at most."""

UNKNOWN_COPIES: Final = "unknown copies"
"""Subject of the alert."""

MISSING_MAX: Final = 1_000
KEYS_MAX: Final = 1_000
"""Names that a report holds."""

REMOVALS_MAX: Final = 300
"""Segments removed in one call: three objects each, and stores take 1,000."""


class Scrubber:
    """See the module.

    Attributes:
        last: Report of the last pass that went through; None: there was none yet.
        removed_from_ms: When the last pass began that removed what it found, monotonic; None: there
            was none yet.
        runs: Passes that went through.
        removed_objects, removed_bytes, aborted_uploads: Of all passes.
    """

    __slots__ = (
        "_alerts",
        "_claim",
        "_clock",
        "_damaged",
        "_in_flight",
        "_is_deleted",
        "_keys",
        "_metadata",
        "_settings",
        "_tier",
        "_timer",
        "_trouble",
        "aborted_uploads",
        "last",
        "removed_bytes",
        "removed_from_ms",
        "removed_objects",
        "runs",
    )

    def __init__(
        self,
        *,
        metadata: RemoteLogMetadataManager,
        tier: Tier,
        claim: Claim,
        environment: Environment,
        settings: Callable[[], TierConfig],
        in_flight: Container[UUID],
        is_deleted: Callable[[TopicIdPartition], bool],
        alerts: Alerts,
        damaged: DamagedSegments,
        trouble: BucketTrouble,
    ) -> None:
        """Nothing runs before `run_once`.

        Args:
            metadata: Of the segments, which own objects.
            tier: The bucket.
            claim: On the bucket.
            environment: Of the broker.
            settings: The present ones.
            in_flight: Ids of copies under way here.
            is_deleted: Whether this broker has deleted the partition, or its topic was deleted.
            alerts: Where unknown copies are reported.
            damaged: Where missing segments are.
            trouble: Told whether garbage could be removed.
        """
        self._metadata = metadata
        self._tier = tier
        self._claim = claim
        self._clock = environment.clock
        self._timer = environment.timer
        self._settings = settings
        self._in_flight = in_flight
        self._is_deleted = is_deleted
        self._alerts = alerts
        self._damaged = damaged
        self._trouble = trouble
        self._keys = ObjectKeys()
        self.last: ScrubReport | None = None
        self.removed_from_ms: float | None = None
        self.runs = 0
        self.removed_objects = 0
        self.removed_bytes = 0
        self.aborted_uploads = 0

    async def run_once(self, *, dry_run: bool = False) -> ScrubReport:
        """One pass over the bucket.

        Args:
            dry_run: Remove nothing, only say what would be.

        Raises:
            TieredError: It could not be finished; what was removed until then was garbage.
        """
        report = ScrubReport()
        began_monotonic_ms = self._clock.monotonic_ms()
        report.is_ours = await self._claim.check()
        report.owner = self._claim.owner or ""
        report.lost += self._metadata.losses()
        removes = self._claim.is_settled and not dry_run and not report.lost
        began_ms = self._clock.now_ms()
        oldest_ms = self._settings().tier_gc_grace_ms
        store_now_ms = await self._store_now_ms() if report.is_ours else began_ms
        limit_ms = store_now_ms - oldest_ms
        await self._scrub_objects(report, limit_ms, began_ms, removes)
        await self._scrub_uploads(report, limit_ms, removes)
        self.last = report
        self.runs += 1
        self._report(report)
        if removes:
            self.removed_from_ms = began_monotonic_ms
            self.removed_objects += report.removed_objects
            self.removed_bytes += report.removed_bytes
            self.aborted_uploads += report.aborted_uploads
        if report.removed_objects or report.missing_segments or not report.is_ours:
            _log.warning(
                "bucket of cluster %s: %d orphaned objects %s, %d segments are missing",
                report.owner,
                report.removed_objects,
                "were removed" if removes else "would be removed",
                report.missing_segments,
            )
        return report

    def leave(self) -> None:
        """Another broker goes on: what the last pass has found is out of date."""
        if self.last is not None:
            self.last = None
            self._alerts.clear(AlertKind.TIER_METADATA_LOST, UNKNOWN_COPIES)
            self._damaged.found(LISTED, ())

    def _report(self, report: ScrubReport) -> None:
        if report.is_ours:
            # Of a bucket that is not the one that was claimed nothing is known to be missing.
            self._damaged.found(LISTED, report.missing)
        if report.unknown_copies:
            first = report.unknown[0]
            self._alerts.set(
                AlertKind.TIER_METADATA_LOST,
                UNKNOWN_COPIES,
                f"{report.unknown_copies} complete segments are in the bucket that "
                f"__remote_log_metadata does not know (the first of {first.segment_id.partition} "
                f"from offset {first.start_offset} on): it has lost events. Such segments are "
                "kept; "
                f"{HOW_TO_GO_ON}",
            )
        else:
            self._alerts.clear(AlertKind.TIER_METADATA_LOST, UNKNOWN_COPIES)

    def _deadline(self, calls: int, what: str) -> Deadline:
        timeout_ms = self._settings().store.call_timeout_ms
        return Deadline(self._timer, call_deadline_ms(timeout_ms, calls), what)

    async def _store_now_ms(self) -> int:
        async with self._deadline(2, "read of the store's clock"):
            await self._tier.put_object(CLOCK_KEY, b"{}\n")
            page = await self._tier.list_objects(CLOCK_KEY, None)
        for found in page.objects:
            if found.key == CLOCK_KEY:
                return found.modified_ms
        # It is eventually consistent, then: its time is unknown, and all objects count as young.
        return 0

    # -- objects -----------------------------------------------------------------------------

    async def _scrub_objects(
        self, report: ScrubReport, limit_ms: int, began_ms: int, removes: bool
    ) -> None:
        grouping = ObjectGrouping()
        work = ScrubPass(limit_ms=limit_ms, began_ms=began_ms, removes=removes)
        continuation: str | None = None
        while True:
            async with self._deadline(1, "listing the bucket"):
                page = await self._tier.list_objects("", continuation)
            # What is owned is looked up once per page and partition, and again before a removal.
            work.owned = None
            for found in page.objects:
                report.objects += 1
                report.object_bytes += found.size
                key = self._keys.parse(found.key)
                if key is None:
                    self._see_other(report, work, found)
                    continue
                group = grouping.add(key, found)
                if group is not None:
                    await self._see(report, work, group)
            await self._remove(report, work)
            continuation = page.continuation
            if continuation is None:
                break
            await sleep_ms(self._timer, PAGE_INTERVAL_MS)
        last = grouping.finish()
        if last is not None:
            await self._see(report, work, last)
            await self._remove(report, work)
        await self._leave(report, work)
        for partition in self._metadata.partitions():
            if partition not in work.partitions:
                await self._report_missing(report, partition, frozenset(), began_ms)

    def _see_other(self, report: ScrubReport, work: "ScrubPass", found: ObjectInfo) -> None:
        """An object that is no segment's."""
        partition = self._keys.parse_history(found.key)
        if partition is None:
            report.foreign_objects += 1
            return
        report.histories += 1
        if self._is_stray(found):
            if found.modified_ms > work.limit_ms:
                report.young_objects += 1
            else:
                work.histories.append(found)

    def _is_stray(self, found: ObjectInfo) -> bool:
        """A history that went with its topic, and that a write on its way then has brought back."""
        partition = self._keys.parse_history(found.key)
        return (
            partition is not None
            and self._is_deleted(partition)
            and not self._metadata.is_ready(partition)
        )

    async def _see(self, report: ScrubReport, work: "ScrubPass", group: ObjectGroup) -> None:
        if group.partition != work.present:
            await self._leave(report, work)
            work.enter(group.partition)
        if group.is_whole:
            work.whole.add(group.key.segment_id.id)
        count = len(group.objects)
        if work.owned is None:
            work.owned = self._owned(group.partition)
        if work.owned is None:
            report.hidden_objects += count
        elif self._is_owned(group, work.owned):
            return
        elif group.modified_ms > work.limit_ms:
            report.young_objects += count
        elif self._is_history(group) and not await self._is_superseded(work, group):
            await self._see_unknown(report, work, group)
        else:
            work.garbage.append(group)
            if len(work.garbage) >= REMOVALS_MAX:
                await self._remove(report, work)

    def _owned(self, partition: TopicIdPartition) -> Container[UUID] | None:
        """Ids of the segments that the metadata knows; None: unknown here."""
        if self._metadata.is_ready(partition):
            return OwnedSegments(self._metadata.known_of(partition))
        return frozenset() if self._is_deleted(partition) else None

    def _is_owned(self, group: ObjectGroup, owned: Container[UUID]) -> bool:
        segment_id = group.key.segment_id.id
        return segment_id in owned or segment_id in self._in_flight

    async def _see_unknown(
        self, report: ScrubReport, work: "ScrubPass", group: ObjectGroup
    ) -> None:
        if not work.has_unknown:
            # It may have been removed since it was listed, and forgotten for that. Once one is
            # proved the others of the partition need no call each.
            async with self._deadline(1, "read of an unknown manifest"):
                try:
                    await self._tier.get_object(self._keys.keys_of(*group.key[:2]).manifest)
                except ObjectNotFoundError:
                    return
            work.has_unknown = True
        report.unknown_copies += 1
        report.unknown_by_partition[group.partition] += 1
        if len(report.unknown) < MISSING_MAX:
            size = sum(found.size for found in group.objects)
            report.unknown.append(UnknownCopy(group.key.segment_id, group.key.start_offset, size))

    async def _is_superseded(self, work: "ScrubPass", group: ObjectGroup) -> bool:
        """Whether copies that the metadata knows hold all that an unknown one holds."""
        if work.superseded_reads >= SUPERSEDED_READS_MAX:
            return False
        if not self._metadata.is_ready(group.partition):
            return False
        work.superseded_reads += 1
        manifest = self._keys.keys_of(*group.key[:2]).manifest
        return await is_superseded(manifest, self._tier, self._metadata, self._deadline)

    def _is_history(self, group: ObjectGroup) -> bool:
        """Whether all objects of a copy are there, and its topic was not deleted.

        Also below the log start, which is its leader's to know: it is said to be unknown all the
        same, and a rebuild of the metadata leaves it alone.
        """
        return group.is_whole and not self._is_deleted(group.partition)

    async def _remove(self, report: ScrubReport, work: "ScrubPass") -> None:
        """Remove the garbage found so far; all of it is of one page, or a little before."""
        groups, work.garbage = work.garbage, []
        histories, work.histories = work.histories, []
        keys: list[str] = []
        size = 0
        if groups:
            # Other brokers publish too: what was begun before the listing is known then.
            async with self._deadline(1, "reading metadata before garbage is removed"):
                await self._metadata.caught_up({group.partition for group in groups})
        owned: dict[TopicIdPartition, Container[UUID] | None] = {}
        for group in groups:
            if group.partition not in owned:
                owned[group.partition] = self._owned(group.partition)
            present = owned[group.partition]
            # Awaits lie between the first check and this one: the partition may have gone.
            if present is None or self._is_owned(group, present):
                continue
            keys += group.keys
            size += sum(found.size for found in group.objects)
        # After the segments that it lists.
        for found in histories:
            if self._is_stray(found):
                keys.append(found.key)
                size += found.size
        if not keys:
            return
        if work.removes:
            await self._claim.require()
            with self._trouble.removing():
                async with self._deadline(1, "removing garbage"):
                    await self._tier.delete_objects(keys)
        report.removed_objects += len(keys)
        report.removed_bytes += size
        report.removed_keys += keys[: max(0, KEYS_MAX - len(report.removed_keys))]

    # -- what is missing ---------------------------------------------------------------------

    async def _leave(self, report: ScrubReport, work: "ScrubPass") -> None:
        if work.present is not None:
            await self._report_missing(report, work.present, work.whole, work.began_ms)

    async def _report_missing(
        self,
        report: ScrubReport,
        partition: TopicIdPartition,
        whole: Container[UUID],
        began_ms: int,
    ) -> None:
        if not self._metadata.is_ready(partition):
            return
        for segment in self._metadata.segments(partition):
            # What was published after the listing began may have been written after its page.
            is_finished = segment.state is SegmentState.COPY_SEGMENT_FINISHED
            if not is_finished or segment.id in whole or segment.event_timestamp_ms >= began_ms:
                continue
            async with self._deadline(2, f"check of {segment.id}"):
                if await self._tier.is_complete(segment):
                    continue
            if not self._metadata.is_ready(partition):
                return
            present = self._metadata.known_of(partition).segment(segment.id)
            if present is not None and present.state is SegmentState.COPY_SEGMENT_FINISHED:
                report.missing_segments += 1
                if len(report.missing) < MISSING_MAX:
                    report.missing.append(segment)

    # -- uploads -----------------------------------------------------------------------------

    async def _scrub_uploads(self, report: ScrubReport, limit_ms: int, removes: bool) -> None:
        async with self._deadline(2, "listing unfinished uploads"):
            uploads = await self._tier.list_uploads("")
        for upload in uploads:
            if upload.started_ms > limit_ms or not self._is_abandoned(upload):
                continue
            if removes:
                async with self._deadline(1, "aborting an upload"):
                    await self._tier.abort_upload(upload)
            report.aborted_uploads += 1

    def _is_abandoned(self, upload: PendingUpload) -> bool:
        """Whether an upload began so long ago that no writer goes on with it."""
        if upload.key in (CLOCK_KEY, CLAIM_KEY, VERIFIED_KEY):
            # Of the few objects that are the bucket's own: written within seconds, or again.
            return True
        history = self._keys.parse_history(upload.key)
        if history is not None:
            # It is written within seconds, or again.
            return self._owned(history) is not None
        key = self._keys.parse(upload.key)
        if key is None:
            return False
        partition, id_ = key.segment_id
        if id_ in self._in_flight:
            return False
        if not self._metadata.is_ready(partition):
            return self._is_deleted(partition)
        known = self._metadata.known_of(partition).segment(id_)
        # Of a finished copy: the store had begun an upload, its answer was lost, and another one
        # was made. What else the metadata knows may be under way, here or elsewhere.
        return known is None or known.state is SegmentState.COPY_SEGMENT_FINISHED
