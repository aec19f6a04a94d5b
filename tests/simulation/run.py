"""One run of a simulated cluster: boot, work and faults, healing, judgement.

boot      brokers start, topics are made
faults    clients work (`clients/load.py`), the nemesis follows its plan, invariants are checked
heal      all is repaired, what is dead is started: partitions are led and whole in time (I13)
judge     whole logs are read and compared with what clients were told (`oracles/judgement.py`)
"""

import gc
from collections.abc import Callable
from typing import Final

from tests.simulation.brokers import DIRECTORIES
from tests.simulation.clients.history import History
from tests.simulation.clients.load import BOOT_S, Load
from tests.simulation.clients.losses import LOOSE
from tests.simulation.clients.session import Session
from tests.simulation.clients.shares import SHARE_SETTINGS
from tests.simulation.clients.transactions import Outcome as End
from tests.simulation.faults.crash_points import CrashPoint, CrashPoints
from tests.simulation.faults.nemesis import Fault, Nemesis, draw_plan, quiet_times
from tests.simulation.oracles.invariants import Invariants
from tests.simulation.oracles.judgement import WHOLE_S, Judgement
from tests.simulation.oracles.unclean import UncleanElections
from tests.simulation.outcome import Outcome
from tests.simulation.remote.coverage import RemoteCoverage
from tests.simulation.shape import Shape, draw_shape
from tests.simulation.world import Violation, World

LED_S: Final = 20.0


def run(
    seed: int,
    duration_s: float,
    *,
    shape: Shape | None = None,
    plan: list[Fault] | None = None,
    log: Callable[[str], object] | None = None,
    crash: CrashPoint | None = None,
    choose: Callable[[int, str, int], CrashPoint | None] | None = None,
    collects: bool = True,
) -> Outcome:
    """Run a seed; its faults, or those of `plan`, and a crash at a point.

    `choose`: where to crash, see `CrashPoints`. `collects`: what the run leaves; not if the
    process ends with it.
    """
    shape = shape or draw_shape(seed)
    if plan is None:
        plan = draw_plan(
            seed,
            shape.brokers,
            duration_s,
            quiet=shape.has_quiet_times,
            tiered=shape.is_tiered,
            directories=shape.directories,
            lossy=bool(shape.losses),
            synced=shape.settings.get("log_flush_interval_messages") == 1,
        )
    outcome = Outcome(seed, plan)
    world = world_of(seed, shape)
    world.loop.log = log
    # When the collector runs depends on what ran before, and what it collects closes files.
    gc.disable()
    history = History()
    invariants = Invariants(world, history, min_in_sync=shape.min_in_sync)
    if shape.is_tiered:
        invariants.remote = RemoteCoverage(world, history, shape.retention_ms)
        world.bucket.usual_s = shape.bucket_s
    nemesis = Nemesis(world, plan)
    nemesis.may_forget = shape.min_in_sync > 1
    invariants.assignments = nemesis.assignments
    work = Run(world, history, invariants, nemesis, shape)
    work.plan = plan
    work.crash_points = crash_points = CrashPoints(world, crash, choose)
    try:
        work.run(duration_s)
    except Violation as violation:
        outcome.violation = f"{world.loop.time():.6f} {violation}"
        outcome.violated_s = world.loop.time() - work.faults_from_s
        outcome.state = world.describe()
    finally:
        for place in world.brokers.values():
            place.count()
        world.close(collects=collects)
        if collects:
            gc.enable()
    outcome.trace = world.loop.trace
    outcome.handles = world.loop.handles
    outcome.virtual_s = world.loop.time() - world.began_s
    outcome.quiet_s = world.pace.quiet_s
    outcome.struck = nemesis.struck
    outcome.acked = history.count
    outcome.lone_acks = history.lone_acks
    outcome.read = sum(map(len, history.seen.values()))
    outcome.checks = invariants.checks
    if invariants.remote is not None:
        outcome.copied = invariants.remote.copied
        outcome.remote_removed = invariants.remote.removed
    if work.load.lives is not None:
        outcome.deleted = len(work.load.lives.deleted)
    outcome.committed = work.load.transactions.count(End.COMMITTED)
    outcome.aborted = work.load.transactions.count(End.ABORTED)
    outcome.unknown = work.load.transactions.count(End.UNKNOWN)
    outcome.commits = work.load.groups.commits
    outcome.fetches = work.load.groups.fetches
    outcome.cleaned = work.load.keys.cleaned
    outcome.shared = work.load.shares.accepted
    outcome.moved = sum(place.moved for place in world.brokers.values())
    outcome.left = work.load.transactions.left
    outcome.timed_out = sum(place.timed_out for place in world.brokers.values())
    outcome.held_back = sum(place.held_back for place in world.brokers.values())
    outcome.added = len(work.load.places) - shape.partitions
    outcome.moves = nemesis.assignments.moves
    outcome.replaced = nemesis.assignments.replaced
    outcome.given_up = nemesis.assignments.given_up
    outcome.unclean = work.load.losses.losses
    outcome.points = dict(crash_points.counts)
    outcome.has_crashed = crash_points.has_struck
    outcome.done = nemesis.done
    outcome.lines = world.lines
    return outcome


def world_of(seed: int, shape: Shape) -> World:
    """A cluster of a shape, not yet started."""
    return World(
        seed,
        brokers=shape.brokers,
        default_replication_factor=shape.replicas,
        min_insync_replicas=shape.min_in_sync,
        offsets_topic_replication_factor=shape.replicas,
        rlmm_config_remote_log_metadata_topic_replication_factor=shape.replicas,
        transaction_state_log_replication_factor=shape.replicas,
        transaction_state_log_min_isr=shape.min_in_sync,
        share_coordinator_state_topic_replication_factor=shape.replicas,
        share_coordinator_state_topic_min_isr=shape.min_in_sync,
        log_dirs=DIRECTORIES[: shape.directories],
        **SHARE_SETTINGS,
        **shape.settings,
    )


class Run:
    """A run step by step; see the module."""

    def __init__(
        self,
        world: World,
        history: History,
        invariants: Invariants,
        nemesis: Nemesis,
        shape: Shape,
    ) -> None:
        self.world = world
        self.history = history
        self.invariants = invariants
        self.nemesis = nemesis
        self.shape = shape
        self.load = Load(world, history, shape)
        self.plan: list[Fault] = []
        self.faults_from_s = 0.0
        self.crash_points = CrashPoints(world, None)

    @property
    def sessions(self) -> list[Session]:
        """All clients so far."""
        return self.load.sessions

    def session(self, name: str) -> Session:
        """A client."""
        return self.load.session(name)

    def run(self, duration_s: float) -> None:
        """All of it."""
        self.boot()
        self.load.begin()
        self.crash_points.begin()
        self.faults_from_s = self.world.loop.time()
        self.nemesis.begin(quiet_times(self.plan, duration_s) if self.shape.has_quiet_times else [])
        self.world.run_for(duration_s)
        self.crash_points.end()
        self.heal()
        self.judge()

    def boot(self) -> None:
        """Until the topic is there, and everything is whole."""
        world = self.world
        world.loop.observer = self.invariants.observe
        world.loop.observe_every = self.invariants.every
        self.history.on_ack = self.invariants.acknowledged
        for place in world.brokers.values():
            place.on_ending = self.invariants.check
        world.server.store.on_stored = self._stored
        world.server.store.on_expired = self.invariants.lease_expired
        for place in world.brokers.values():
            place.start()
        world.until(world.is_whole, limit_s=BOOT_S, what="all brokers are let in")
        if self.shape.losses:
            self.invariants.unclean = UncleanElections(world, self.load.losses)
            world.lossy = LOOSE
        self.load.make_topics()

    def _stored(self) -> None:
        self.invariants.stored()
        self.world.note_leaders()
        self.load.look(self.world.image)

    def heal(self) -> None:
        """I13: what is broken is mended, and all is whole in time."""
        world = self.world
        ended = world.loop.spawn(world.loop.outside, self.nemesis.end())
        world.until(ended.done, limit_s=LED_S, what="the faults have ended")
        world.network.heal()
        world.network.slow.clear()
        world.server.lost_answers = 0.0
        world.bucket.heal()
        world.loop.resume(world.server.process)
        for node_id, place in world.brokers.items():
            world.loop.resume(place.process)
            world.start(node_id)
        # Faults still under way end within the next seconds.
        world.until(self._is_led, limit_s=LED_S, what="I13 all partitions are led")
        lifted = world.loop.spawn(world.loop.outside, self.nemesis.lift_throttles())
        world.until(lifted.done, limit_s=WHOLE_S, what="no throttle is left")
        world.until(world.is_whole, limit_s=WHOLE_S, what="I13 all replicas are in sync")
        world.until(self.load.is_used, limit_s=WHOLE_S, what="partitions that were added are used")

    def _is_led(self) -> bool:
        for topic in self.world.image.topics.values():
            for partition in topic.partitions:
                place = self.world.brokers.get(partition.leader)
                if place is None or not place.is_ready or place.broker is None:
                    return False
                led = place.broker.replicas.leader_of(topic.name, partition.index)
                if led is None or led.leader_epoch != partition.leader_epoch:
                    return False
        return True

    def judge(self) -> None:
        """Compare logs, and what clients were told."""
        Judgement(self.load, self.invariants).judge()
