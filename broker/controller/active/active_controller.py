"""The active controller: what this broker does while it is the cluster's controller.

    standby ──elected (epoch)──> active ──deposed, or the image names another──> standby
                                   │
          image of a change of brokers or settings, end of a lease, took over
                                   v
            reconcile: plan ──> commit ──> plan again ... ──> let brokers in ──> settled
            AlterPartition: all that wait ──> one plan ──> one transaction ──> answers

All of it takes turns with the other changes (`broker.controller.changes`), and every transaction
compares the controller epoch (`guarded_writes`). A single node is always active, and its brokers
never change: nothing of this costs it anything.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from broker.controller.active.broker_states import BrokerStates
from broker.controller.active.failover_causes import Cause, causes_of
from broker.controller.active.guarded_writes import GuardedWrites
from broker.controller.active.isr_queue import IsrQueue, code_of_commit
from broker.controller.active.leader_requests import (
    LeaderRequest,
    LeaderResult,
    plan_elections,
)
from broker.controller.active.leaderless import LeaderlessReport
from broker.controller.active.lease_ends import LeaseEnds
from broker.controller.active.log_recovery import (
    LogRecovery,
    PartitionRecovery,
    plan_longest,
    report_recovered,
)
from broker.controller.active.partition_change import Election
from broker.controller.active.partition_plan import Chunk, PartitionPlan, chunk_of, units_of
from broker.controller.active.reassignments import (
    ReassignmentRequest,
    ReassignmentResult,
    plan_reassignment,
    reassigning,
)
from broker.controller.active.reconcile import (
    Moves,
    admissions_of,
    fences_of,
    is_decided_anew,
    lacking,
    lacks_room,
    plan_partitions,
)
from broker.controller.active.replica_assignments import plan_assignments
from broker.controller.active.replica_assignments import response_of as where_they_lie
from broker.controller.active.slices import Slices
from broker.controller.active.topic_terms import TopicTerms
from broker.controller.active.unregistration import unregistration_of
from broker.controller.changes import Changes
from broker.controller.configs.configs import ConfigRules
from broker.controller.images.cluster_image import ClusterImage
from broker.controller.images.results import result_of
from broker.controller.store.metadata_store import StoreError
from broker.controller.store.store_writer import NotControllerError
from broker.runtime.errors import ApiError
from broker.runtime.timer import Timer, TimerHandle
from protocol.error_codes import ErrorCode
from protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)
from storage.environment.clock import Clock

LOGGER = logging.getLogger(__name__)

RECOVER_AGAIN_MS: Final = 500.0
"""Before partitions are looked at again whose logs could not all be compared."""

AGAIN_MS: Final = 200.0
"""Before reconciling again what could not be committed."""

STEPS_MAX: Final = 100
"""Transactions in a row of one reconcile; more of them, and other things have their turn first."""

REASSIGNED_PER_TURN: Final = 500
"""Partitions of one request that are planned and committed before other changes have a turn."""


class ActiveController:
    """See the module. Runs on the loop's thread.

    Attributes:
        epoch: Of the controller, 0 while it is another broker, and on a single node.
        unclean_elections: Leaders that were elected without a guarantee, since the start; as
            Kafka counts them, also those that are the only replica.
        elr_elections: Leaders that were elected from the ELR, since the start.
        failover_ms: How long the last failover took, by cause.
        leaders_lost: Leaders that partitions have lost or got, by cause, since the start.
    """

    def __init__(
        self,
        *,
        node_id: int,
        changes: Changes,
        image: Callable[[], ClusterImage],
        rules: ConfigRules,
        writes: Callable[[int], GuardedWrites],
        timer: Timer,
        clock: Clock,
    ) -> None:
        """Wait to be elected.

        Args:
            node_id: Of this broker.
            changes: All of the cluster's state go through it.
            image: The newest.
            rules: Settings of the cluster.
            writes: Makes the transactions of a controller epoch.
            timer: For what is tried again.
            clock: For slices, and leases that have ended.
        """
        self._node_id = node_id
        self._make_writes = writes
        self._writes: GuardedWrites | None = None
        self._changes = changes
        self._image = image
        self._rules = rules
        self.timer = timer
        self._clock = clock
        self._ends = LeaseEnds(node_id, clock)
        self._isr_queue = IsrQueue(
            changes, image=image, states=self._states, rules=rules, clock=clock
        )
        self._again: TimerHandle | None = None
        self.recovery = LogRecovery(
            self._elect_longest, self._recover_later, changes.start_unawaited
        )
        self._leaderless = LeaderlessReport()
        self._is_dirty = False
        self._is_reconciling = False
        self.epoch = 0
        self.unclean_elections = 0
        self.elr_elections = 0
        self.failovers = 0
        self.failover_ms: dict[Cause, float] = {}
        self.leaders_lost: dict[Cause, int] = {}

    @property
    def is_active(self) -> bool:
        """Whether this broker is the cluster's controller."""
        return self._changes.is_controller

    @property
    def early_lease_ends(self) -> int:
        """How often leases have ended before their time."""
        return self._ends.early_ends

    def _states(self, image: ClusterImage) -> BrokerStates:
        return BrokerStates.of(image, self._ends, self._clock.monotonic_ms())

    def on_elected(self, epoch: int) -> None:
        """This broker has become the controller: it reconciles, then serves."""
        self.epoch = epoch
        self._leaderless = LeaderlessReport()
        self._writes = self._make_writes(epoch)
        self._changes.begin(self._writes)
        LOGGER.info("controller elected node=%d epoch=%d", self._node_id, epoch)
        self.reconcile()

    def on_resigned(self) -> None:
        """Another broker is the controller, or none."""
        if self._writes is not None:
            self._changes.resign()
            self._writes.end()
            self._writes = None
            LOGGER.info("controller resigned node=%d epoch=%d", self._node_id, self.epoch)
        self.epoch = 0
        if self._again is not None:
            self._again.cancel()
            self._again = None

    def on_image(self, old: ClusterImage, new: ClusterImage) -> None:
        """Follow the brokers: in the turn of each image, on every broker."""
        if old.brokers is not new.brokers:
            self._ends.see(old, new)
        elif not (self.is_active and (is_decided_anew(old, new) or lacks_room(new))):
            return
        if self.is_active:
            self.reconcile()

    # -- reconcile -------------------------------------------------------------------------------

    def reconcile(self) -> None:
        """Bring partitions and fences in line with the brokers there are, soon."""
        self._is_dirty = True
        if not self._is_reconciling:
            self._is_reconciling = True
            self._changes.start_unawaited(self._reconcile())

    async def _reconcile(self) -> None:
        began_ms = self._clock.monotonic_ms()
        try:
            for _ in range(STEPS_MAX):
                if not (self._is_dirty and self.is_active):
                    return
                self._is_dirty = False
                try:
                    is_done = await self._changes.run(self._step(began_ms))
                except StoreError as error:
                    LOGGER.info("reconcile interrupted error=%s", error)
                    is_done = False
                if not is_done:
                    break
            if self.is_active:
                self._reconcile_after(AGAIN_MS)
        finally:
            self._is_reconciling = False

    def _reconcile_after(self, delay_ms: float) -> None:
        if self._again is not None:
            self._again.cancel()
        self._again = self.timer.call_later_ms(delay_ms, self._reconcile_now)

    def _reconcile_now(self) -> None:
        self._again = None
        if self.is_active:
            self.reconcile()

    async def _step(self, began_ms: float) -> bool:
        """Plan and commit once; whether all that was planned has been committed."""
        image = self._image()
        now_ms = self._clock.monotonic_ms()
        states = BrokerStates.of(image, self._ends, now_ms)
        if states.next_ms is not None:
            self._reconcile_after(max(states.next_ms - now_ms, 0.0) + 1.0)
        slices = Slices(self._clock)
        terms = TopicTerms(image, self._rules, states)
        plan = await plan_partitions(image, states, terms, slices)
        fences = fences_of(image, states, self._ends)
        if not plan and not fences:
            if plan.is_undecided:
                # Looked at again when it is known (`states.next_ms`), or when a lease is back.
                return True
            admissions = dict(admissions_of(image, states))
            if not admissions:
                await self._leaderless.look(plan.leaderless, terms, slices)
                if plan.leaderless:
                    await self.recovery.pursue(plan.leaderless, image, terms, slices)
                return True
            self._is_dirty = True
            errors = await self._changes.commit(list(admissions.values()), until_applied=False)
            for node, error in zip(admissions, errors, strict=True):
                if error is None:
                    self._log_admission(image, node)
            return not any(errors)
        self._is_dirty = True
        units = [*fences, *(await units_of(plan, slices)).values()]
        errors = await self._changes.commit(units, until_applied=False)
        if not any(errors):
            await self._report(plan, states, began_ms)
        return not any(errors)

    def _log_admission(self, image: ClusterImage, node: int) -> None:
        broker = image.brokers[node]
        lacks = lacking(image, broker)
        if lacks:
            LOGGER.warning("broker not let in node=%d epoch=%d why=%s", node, broker.epoch, lacks)
        else:
            LOGGER.info("broker let in node=%d epoch=%d", node, broker.epoch)

    async def _count(self, plan: PartitionPlan) -> Moves:
        moves = Moves()
        slices = Slices(self._clock)
        for _topic, old, new in plan.changes():
            moves.count(old, new)
            if slices.is_over:
                await slices.turn()
        self.unclean_elections += moves.unclean + moves.alone
        self.elr_elections += moves.from_elr
        return moves

    async def _report(self, plan: PartitionPlan, states: BrokerStates, began_ms: float) -> None:
        took_ms = self._clock.monotonic_ms() - began_ms
        moves = await self._count(plan)
        if not (states.dead or moves.moved or moves.leaderless):
            return
        self.failovers += 1
        causes = await causes_of(plan, states, self._ends, Slices(self._clock))
        for cause, count in causes.items():
            self.failover_ms[cause] = took_ms
            self.leaders_lost[cause] = self.leaders_lost.get(cause, 0) + count
        log = LOGGER.warning if moves.unclean or moves.alone else LOGGER.info
        log(
            "leaders elected causes=%s fenced=%s draining=%s moved=%d without_leader=%d "
            "from_elr=%d alone=%d unclean=%d partitions_changed=%d ms=%.1f",
            ",".join(f"{cause.value}:{count}" for cause, count in causes.items()),
            list(states.dead),
            sorted(states.draining),
            moves.moved,
            moves.leaderless,
            moves.from_elr,
            moves.alone,
            moves.unclean,
            plan.count,
            took_ms,
        )

    # -- recovery --------------------------------------------------------------------------------

    def _recover_later(self) -> None:
        def look() -> None:
            if self.is_active:
                self.reconcile()

        self.timer.call_later_ms(RECOVER_AGAIN_MS, look)

    async def _elect_longest(self, chosen: list[PartitionRecovery]) -> None:
        if self.is_active:
            await self._changes.run(self._elect_chosen(chosen))

    async def _elect_chosen(self, chosen: list[PartitionRecovery]) -> None:
        image = self._image()
        states = self._states(image)
        terms = TopicTerms(image, self._rules, states)
        plan = PartitionPlan(image)
        slices = Slices(self._clock)
        await plan_longest(plan, terms, chosen, slices)
        units = await units_of(plan, slices)
        errors = await self._changes.commit(list(units.values()), until_applied=False)
        if not any(errors):
            moves = await self._count(plan)
            if moves.unclean:
                lost = self.leaders_lost
                lost[Cause.UNCLEAN] = lost.get(Cause.UNCLEAN, 0) + moves.unclean
            report_recovered(chosen)

    # -- elections that are asked for ------------------------------------------------------------

    async def elect_leaders(
        self, election: Election, wanted: Sequence[LeaderRequest]
    ) -> list[LeaderResult]:
        """Elect leaders as an administrator asks; one result per partition, in order."""
        return await self._changes.run(self._elect_leaders(election, wanted))

    async def _elect_leaders(
        self, election: Election, wanted: Sequence[LeaderRequest]
    ) -> list[LeaderResult]:
        image = self._image()
        states = self._states(image)
        plan = PartitionPlan(image)
        terms = TopicTerms(image, self._rules, states)
        slices = Slices(self._clock)
        results: list[LeaderResult] = []
        for request in wanted:
            results += plan_elections(plan, terms, election, [request])
            await slices.turn()
        chunks = await units_of(plan, slices)
        errors = await self._changes.commit(list(chunks.values()), until_applied=False)
        failed = dict(zip(chunks, errors, strict=True))
        if not any(errors):
            await self._count(plan)
        return [self._committed(image, result, failed) for result in results]

    def _committed(
        self, image: ClusterImage, result: LeaderResult, failed: Mapping[Chunk, StoreError | None]
    ) -> LeaderResult:
        topic = image.topics.get(result.request.topic)
        if topic is None or result.error is not ErrorCode.NONE:
            return result
        error = failed.get(chunk_of(topic.topic_id, result.request.partition))
        if error is None:
            return result
        why = result_of(error)
        return LeaderResult(result.request, why.error, why.message)

    # -- reassignments ---------------------------------------------------------------------------

    async def alter_reassignments(
        self, wanted: Sequence[ReassignmentRequest], *, may_resize: bool = True
    ) -> list[ReassignmentResult]:
        """Give partitions other replicas, or those of before; one result each, in order.

        Args:
            wanted: At most some hundreds are planned at once; other changes come in between.
            may_resize: The number of replicas may become another.
        """
        results: list[ReassignmentResult] = []
        for start in range(0, len(wanted), REASSIGNED_PER_TURN):
            part = wanted[start : start + REASSIGNED_PER_TURN]
            results += await self._changes.run(self._reassign(part, may_resize=may_resize))
        begun = sum(one.error is ErrorCode.NONE for one in results)
        LOGGER.info(
            "reassignments altered partitions=%d of=%d under_way=%d",
            begun,
            len(wanted),
            sum(1 for _ in reassigning(self._image())),
        )
        return results

    async def _reassign(
        self, wanted: Sequence[ReassignmentRequest], *, may_resize: bool
    ) -> list[ReassignmentResult]:
        image = self._image()
        states = self._states(image)
        plan = PartitionPlan(image)
        terms = TopicTerms(image, self._rules, states)
        slices = Slices(self._clock)
        results = []
        for request in wanted:
            results.append(plan_reassignment(plan, terms, request, may_resize=may_resize))
            await slices.turn()
        chunks = await units_of(plan, slices)
        errors = await self._changes.commit(list(chunks.values()), until_applied=False)
        failed = dict(zip(chunks, errors, strict=True))
        if not any(errors):
            await self._count(plan)
        for at, (request, error, _) in enumerate(results):
            topic = image.topics.get(request.topic)
            if topic is None or error is not ErrorCode.NONE:
                continue
            why = result_of(failed.get(chunk_of(topic.topic_id, request.partition)))
            results[at] = ReassignmentResult(request, why.error, why.message)
        return results

    # -- brokers that are gone -------------------------------------------------------------------

    async def unregister(self, node_id: int) -> None:
        """Forget a broker that is gone for good.

        Raises:
            ApiError: See `broker.controller.active.unregistration`.
        """
        await self._changes.run(self._unregister(node_id))

    async def _unregister(self, node_id: int) -> None:
        unit = unregistration_of(self._image(), node_id)
        (error,) = await self._changes.commit([unit], until_applied=False)
        result = result_of(error)
        if result.error is not ErrorCode.NONE:
            raise ApiError(result.error, result.message)
        LOGGER.info("broker unregistered node=%d", node_id)

    # -- ISR changes -----------------------------------------------------------------------------

    async def alter_partition(
        self, request: AlterPartitionRequest, version: int
    ) -> AlterPartitionResponse:
        """Change ISRs as their leaders ask; answered when this broker's image has them.

        Raises:
            ApiError: NOT_CONTROLLER, STALE_BROKER_EPOCH, BROKER_ID_NOT_REGISTERED.
        """
        if not self.is_active:
            raise ApiError(ErrorCode.NOT_CONTROLLER)
        return await self._isr_queue.add(request, version)

    # -- log directories -------------------------------------------------------------------------

    async def assign_replicas(
        self, request: AssignReplicasToDirsRequest
    ) -> AssignReplicasToDirsResponse:
        """Write down where a broker's replicas lie; answered when this broker's image has it.

        Raises:
            ApiError: NOT_CONTROLLER, STALE_BROKER_EPOCH, BROKER_ID_NOT_REGISTERED.
        """
        if not self.is_active:
            raise ApiError(ErrorCode.NOT_CONTROLLER)
        return await self._changes.run(self._assign_replicas(request))

    async def _assign_replicas(
        self, request: AssignReplicasToDirsRequest
    ) -> AssignReplicasToDirsResponse:
        plan = PartitionPlan(self._image())
        slices = Slices(self._clock)
        planned = await plan_assignments(plan, request, slices)
        chunks = await units_of(plan, slices)
        errors = await self._changes.commit(list(chunks.values()), until_applied=False)
        if any(isinstance(error, NotControllerError) for error in errors):
            raise ApiError(ErrorCode.NOT_CONTROLLER)
        failed = dict(zip(chunks, errors, strict=True))
        broker = self._image().brokers.get(request.broker_id)
        if broker is None or not all(broker.has_online(place) for place, _ in planned):
            # It was not known that these are there.
            self.reconcile()
        return where_they_lie(
            planned,
            lambda topic, index: code_of_commit(failed.get(chunk_of(topic.topic_id, index))),
        )
