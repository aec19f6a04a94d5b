"""Work on the bucket as a whole, beside that on each partition.

    ownership      reads the claim again, and removes objects of copies that were given up here
    garbage        `Scrubber`, by one broker of the cluster, the steward
    verification   `Verifier`, by the steward too, and only with `tier.verify.bytes.per.second`

Each is a periodic task of one pool.
"""

from collections.abc import Callable
from typing import Final

from config.tier import TierConfig
from storage.environment.alerts import Alerts
from storage.environment.environment import Environment
from tiered.errors import RemoteStorageError
from tiered.maintenance.bucket_ownership import Claim
from tiered.maintenance.bucket_trouble import BucketTrouble, Work
from tiered.maintenance.damaged_segments import DamagedSegments
from tiered.maintenance.garbage_collector import Scrubber
from tiered.maintenance.scrub_report import ScrubReport
from tiered.maintenance.verified_position import VerifiedPosition
from tiered.maintenance.verifier import Verifier
from tiered.metadata.remote_log_metadata_manager import RemoteLogMetadataManager
from tiered.segment_metadata import TopicIdPartition
from tiered.tasks.periodic import PeriodicTasks
from tiered.tasks.segment_copy import SegmentCopy
from tiered.tasks.task_pool import TaskPool
from tiered.tier import Tier

JOBS_AT_A_TIME: Final = 3
"""One of each kind."""


class BucketChores:
    """See the module. Touched on the loop's thread only.

    Attributes:
        pool: For its gauges.
        scrubber, verifier: See there.
    """

    def __init__(
        self,
        *,
        metadata: RemoteLogMetadataManager,
        tier: Tier,
        claim: Claim,
        environment: Environment,
        settings: Callable[[], TierConfig],
        tasks: PeriodicTasks,
        copy: SegmentCopy,
        is_deleted: Callable[[TopicIdPartition], bool],
        alerts: Alerts,
        trouble: BucketTrouble,
    ) -> None:
        """Nothing runs before `start`.

        Args:
            metadata: Of all partitions.
            tier: The object store's calls.
            claim: This broker's, on the bucket.
            environment: Of the broker.
            settings: The present ones.
            tasks: Makes periodic tasks.
            copy: Knows the copies under way, and those that were given up.
            is_deleted: Whether a partition was deleted here, and may have left objects.
            alerts: For what is lost.
            trouble: Told whether the claim could be read, and garbage removed.
        """
        self.pool = TaskPool("scrubber", JOBS_AT_A_TIME)
        self._metadata = metadata
        self._claim = claim
        self._timer = environment.timer
        self._settings = settings
        self._copy = copy
        self._trouble = trouble
        self._is_started = False
        damaged = DamagedSegments(alerts)
        self.scrubber = Scrubber(
            metadata=metadata,
            tier=tier,
            claim=claim,
            environment=environment,
            settings=settings,
            in_flight=copy.in_flight,
            is_deleted=is_deleted,
            alerts=alerts,
            damaged=damaged,
            trouble=trouble,
        )
        self.verifier = Verifier(
            metadata=metadata,
            tier=tier,
            environment=environment,
            settings=settings,
            kept=VerifiedPosition(
                tier=tier, claim=claim, timer=environment.timer, settings=settings
            ),
            require_bucket=claim.require_bucket_now,
            damaged=damaged,
        )
        self._ownership = tasks.make(
            "check of the bucket's ownership",
            self.pool,
            is_due=lambda: claim.has_incarnations or copy.has_given_up(),
            work=self._check_claim,
        )
        self._garbage = tasks.make(
            "garbage collection",
            self.pool,
            is_due=lambda: metadata.is_steward,
            work=self._scrub,
            interval_ms=lambda: float(settings().tier_gc_interval_ms),
        )
        self._verification = tasks.make(
            "verification",
            self.pool,
            is_due=self.may_verify,
            work=self.verifier.run_once,
        )

    def start(self) -> None:
        """Check the ownership; what lists the bucket begins after `tier.gc.interval.ms`."""
        self._is_started = True
        self._ownership.start()
        # Not at once: a start has better things to do than to list the bucket.
        self._timer.call_later_ms(self._settings().tier_gc_interval_ms, self._start_listing)

    def _start_listing(self) -> None:
        if self._is_started:
            self._garbage.start()
            self._verification.start()

    def doubt(self) -> None:
        """The claim was gone and is there again: what is listed now may lack segments."""
        if self._is_started:
            self._garbage.start()

    def stop(self) -> None:
        """Begin nothing more; jobs under way end with the pool."""
        self._is_started = False
        for task in (self._ownership, self._garbage, self._verification):
            task.stop()

    async def collect_garbage(self, *, dry_run: bool = False) -> ScrubReport:
        """One pass over the bucket, with what is known of all partitions of the cluster.

        Raises:
            RemoteStorageNotReadyError: That is another broker's to do.
            TieredError: It could not be finished.
        """
        inspected = await self._metadata.begin_inspection()
        try:
            return await self.scrubber.run_once(dry_run=dry_run)
        finally:
            self._metadata.end_inspection(inspected)

    async def _check_claim(self) -> None:
        if self._claim.has_incarnations:
            try:
                await self._claim.check()
            except RemoteStorageError as error:
                self._trouble.failed(Work.READS, error)
                raise
            self._trouble.worked(Work.READS)
        if self._copy.has_given_up():
            await self._copy.remove_given_up()

    async def _scrub(self) -> None:
        await self.collect_garbage()

    def may_verify(self) -> bool:
        """Whether this broker verifies; one that does not any more leaves its round."""
        if not self._metadata.is_steward:
            self.verifier.leave()
            self.scrubber.leave()
            return False
        return self._settings().verify_bytes_per_second > 0
