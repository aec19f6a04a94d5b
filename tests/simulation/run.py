"""One run of a simulated cluster: boot, work and faults, healing, judgement.

boot      brokers start, topics are made
faults    clients work, the nemesis follows its plan, invariants are checked
heal      all is repaired, what is dead is started: partitions are led and whole in time (I13)
judge     whole logs are read and compared with what clients were told; replicas are equal
"""

import asyncio
import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Final

from storage.types.partition_directory import DirectoryState, parse_directory
from tests.simulation.brokers import DIRECTORIES
from tests.simulation.clients.groups import Committed, GroupHistory, GroupMember, OffsetReader
from tests.simulation.clients.history import History
from tests.simulation.clients.keys import CONFIGS as KEY_CONFIGS
from tests.simulation.clients.keys import KEYED, KeyHistory, KeyReader, KeyWriter
from tests.simulation.clients.keys import SETTINGS as KEY_SETTINGS
from tests.simulation.clients.latest import LatestReader
from tests.simulation.clients.lives import FLEETING, TopicLives
from tests.simulation.clients.lives import PLACE as FLEETING_PLACE
from tests.simulation.clients.losses import CONFIGS as LOSSES
from tests.simulation.clients.losses import LOOSE, LossHistory, LossyProducer, LossyReader
from tests.simulation.clients.losses import PLACE as LOSSY_PLACE
from tests.simulation.clients.session import (
    Consumer,
    HistoryReader,
    Producer,
    Session,
    create_topic,
)
from tests.simulation.clients.shares import (
    SHARE_SETTINGS,
    ShareHistory,
    ShareMember,
    begin_at_the_start,
)
from tests.simulation.clients.transactions import (
    CommittedReader,
    TransactionalProducer,
    TransactionHistory,
)
from tests.simulation.clients.transactions import (
    Outcome as End,
)
from tests.simulation.clients.trimmer import Trimmer
from tests.simulation.faults.crash_points import CrashPoint, CrashPoints
from tests.simulation.faults.nemesis import Fault, Nemesis, draw_plan, quiet_times
from tests.simulation.invariants import Invariants
from tests.simulation.oracles.unclean import UncleanElections
from tests.simulation.remote.bucket import WAY_S
from tests.simulation.remote.coverage import RemoteCoverage
from tests.simulation.world import Place, Violation, World

TOPIC: Final = "orders"
GROUP: Final = "readers"
BOOT_S: Final = 60.0
LED_S: Final = 20.0
WHOLE_S: Final = 60.0
READ_S: Final = 120.0
CLEAN_S: Final = 300.0
FLUSHES: Final = 0.2
"""So many runs sync each batch before it is acknowledged."""
TIERED: Final = {
    "remote_storage_enable": "true",
    "local_retention_ms": "2000",
}
"""What the topic is told when it is copied to the bucket."""

TRIMMED: Final = 0.4
"""In so many of the runs records are deleted; with a bucket, of those in which some expire."""

LIVES: Final = 0.4
"""In so many of the runs a topic is deleted and made again."""

SHARERS: Final = 0.4
"""In so many of the runs in which nothing goes there is a share group."""

KEYS: Final = 0.4
"""In so many of the runs without a bucket there is a compacted topic."""

LOSSY: Final = 0.4
"""In so many of the runs without a bucket there is a topic that may lose records."""

TWO_DIRECTORIES: Final = 0.4
"""In so many of the runs brokers have two log directories."""

KEPT: Final = tuple(f"-{one.value}" for one in (DirectoryState.STRAY, DirectoryState.FUTURE))
"""How folders end that a broker keeps of a topic it does not know: its log, and a copy of it."""

PRODUCERS: Final = (("idempotent", -1), ("second-idempotent", -1), ("lone", 1))


@dataclass(frozen=True)
class Shape:
    """What a cluster and its load look like.

    Attributes:
        has_quiet_times: Faults come in episodes, and clients do little between them.
        is_tiered: The topic is copied to a bucket, and leaves the disks soon.
        retention_ms: How long it keeps a record; -1: for ever.
        is_trimmed: A client deletes old records.
        bucket_s: How long a request to the bucket takes at most, and its answer.
        has_lives: Another topic is deleted and made again, all along.
        sharers: Members of a share group.
        has_keys: A compacted topic is written and read, too.
        directories: Log directories of each broker.
        losses: Settings of a topic that may lose records, written and read, too; empty: none.
    """

    brokers: int = 3
    replicas: int = 3
    min_in_sync: int = 2
    partitions: int = 2
    pause_s: float = 0.5
    transactional: int = 1
    members: int = 2
    has_quiet_times: bool = False
    is_tiered: bool = False
    retention_ms: int = -1
    is_trimmed: bool = False
    bucket_s: float = WAY_S
    has_lives: bool = False
    sharers: int = 0
    has_keys: bool = False
    directories: int = 1
    losses: dict[str, object] = field(default_factory=dict)
    settings: dict[str, object] = field(default_factory=dict)


def draw_shape(seed: int, *, quiet: bool = False, tiered: bool = False) -> Shape:
    """The shape of a seed: settings that bring faults of other kinds to the surface."""
    random = Random(f"shape {seed}")
    session_ms, heartbeat_ms = random.choice(((3_000, 500), (3_000, 800), (9_000, 2_000)))
    settings: dict[str, object] = {
        "broker_session_timeout_ms": session_ms,
        "broker_heartbeat_interval_ms": heartbeat_ms,
        "replica_lag_time_max_ms": random.choice((1_000, 4_000, 30_000)),
        "replica_fetch_wait_max_ms": random.choice((100, 500)),
    }
    if random.random() < FLUSHES:
        settings["log_flush_interval_messages"] = 1
    retention_ms, bucket_s = -1, WAY_S
    is_trimmed = not tiered and Random(f"trimmed {seed}").random() < TRIMMED
    if tiered:
        of_tier = Random(f"tier {seed}")
        retention_ms = of_tier.choice((-1, 15_000, 40_000))
        is_trimmed = retention_ms > 0 and of_tier.random() < TRIMMED
        settings |= draw_tier(of_tier)
        # What a follower has not heard is committed once it is out of sync.
        settings["replica_lag_time_max_ms"] = of_tier.choice((1_000, 4_000))
        # Slow ones have a copy under way at most times, also when a leader dies.
        bucket_s = of_tier.choice((WAY_S, WAY_S, 0.3, 1.0))
    brokers = random.choice((3, 3, 3, 4))
    partitions = random.randint(1, 3)
    pause_s = random.choice((1.0, 2.0, 4.0) if quiet else (0.3, 1.0, 3.0, 3.0))
    # What expires or is deleted is not looked for by those who count all they have written.
    transactional = random.randint(0, 2) if retention_ms < 0 else 0
    members = random.randint(0, 3) if retention_ms < 0 else 0
    if is_trimmed:
        transactional = 0
    has_keys = not tiered and Random(f"keys {seed}").random() < KEYS
    if has_keys:
        settings |= KEY_SETTINGS
    of_sharers = Random(f"sharers {seed}")
    sharers = 0
    if retention_ms < 0 and not is_trimmed and of_sharers.random() < SHARERS:
        sharers = of_sharers.randint(1, 3)
    return Shape(
        brokers=brokers,
        partitions=partitions,
        pause_s=pause_s,
        transactional=transactional,
        members=members,
        has_quiet_times=quiet,
        is_tiered=tiered,
        retention_ms=retention_ms,
        is_trimmed=is_trimmed,
        bucket_s=bucket_s,
        has_lives=Random(f"lives {seed}").random() < LIVES,
        sharers=sharers,
        has_keys=has_keys,
        losses=draw_losses(seed, tiered=tiered),
        directories=2 if Random(f"directories {seed}").random() < TWO_DIRECTORIES else 1,
        settings=settings,
    )


def draw_losses(seed: int, *, tiered: bool) -> dict[str, object]:
    """Settings of a topic that may lose records; empty: there is none."""
    random = Random(f"losses {seed}")
    return random.choice(LOSSES) if not tiered and random.random() < LOSSY else {}


def draw_tier(random: Random) -> dict[str, object]:
    """Settings of remote storage: all is small and often, so that a run sees much of it."""
    return {
        "remote_log_storage_system_enable": True,
        "rsm_config_storage_root": "/bucket",
        "log_segment_bytes": random.choice((500, 2_000, 8_000)),
        "log_retention_check_interval_ms": 1_000,
        "remote_log_manager_task_interval_ms": random.choice((300, 1_000, 3_000)),
        "rlmm_config_remote_log_metadata_topic_num_partitions": random.choice((1, 2)),
        "tier_gc_interval_ms": 5_000,
        "tier_gc_grace_ms": random.choice((2_000, 30_000)),
        "tier_history_interval_ms": random.choice((0, 3_000)),
        "tier_metadata_snapshots": random.choice(("local", "bucket")),
        "tier_verify_bytes_per_second": 0,
    }


@dataclass
class Outcome:
    """How a run ended.

    Attributes:
        violation: None: everything held.
        virtual_s: How long the run was, of it `quiet_s` between episodes.
        struck: How many faults have happened.
        violated_s: When it was found, from the start of the faults.
        cleaned: Records of a compacted topic that readers did not find any more, of all reads.
        shared: Records that a share group has accepted.
        moved: Logs that have changed their directory.
        unclean: Elections that were, of a topic that allows them.
        points: Crash points passed, by broker and kind.
        has_crashed: The crash point that was asked for was reached.
        done: Faults as they happened.
        lines: Of the brokers' logs.
        state: Of everything, when a violation was found.
    """

    seed: int
    plan: list[Fault]
    violation: str | None = None
    trace: int = 0
    handles: int = 0
    virtual_s: float = 0.0
    quiet_s: float = 0.0
    struck: int = 0
    acked: int = 0
    lone_acks: int = 0
    read: int = 0
    committed: int = 0
    aborted: int = 0
    unknown: int = 0
    commits: int = 0
    fetches: int = 0
    checks: int = 0
    copied: int = 0
    remote_removed: int = 0
    deleted: int = 0
    shared: int = 0
    cleaned: int = 0
    unclean: int = 0
    moved: int = 0
    violated_s: float = 0.0
    points: dict[tuple[int, str], int] = field(default_factory=dict)
    has_crashed: bool = False
    done: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    state: list[str] = field(default_factory=list)


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
    if work.lives is not None:
        outcome.deleted = len(work.lives.deleted)
    outcome.committed = work.transactions.count(End.COMMITTED)
    outcome.aborted = work.transactions.count(End.ABORTED)
    outcome.unknown = work.transactions.count(End.UNKNOWN)
    outcome.commits = work.groups.commits
    outcome.fetches = work.groups.fetches
    outcome.cleaned = work.keys.cleaned
    outcome.shared = work.shares.accepted
    outcome.moved = sum(place.moved for place in world.brokers.values())
    outcome.unclean = work.losses.losses
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
        self.places = [Place(TOPIC, index) for index in range(shape.partitions)]
        self.transactions = TransactionHistory()
        self.groups = GroupHistory()
        self.shares = ShareHistory()
        self.keys = KeyHistory(history)
        self.losses = LossHistory(history)
        self.lives: TopicLives | None = None
        self._lives_task: asyncio.Task[None] | None = None
        self.sessions: list[Session] = []
        self.plan: list[Fault] = []
        self.faults_from_s = 0.0
        self.crash_points = CrashPoints(world, None)

    def run(self, duration_s: float) -> None:
        """All of it."""
        self.boot()
        self.work()
        self.crash_points.begin()
        self.faults_from_s = self.world.loop.time()
        self.nemesis.begin(quiet_times(self.plan, duration_s) if self.shape.has_quiet_times else [])
        self.world.run_for(duration_s)
        self.crash_points.end()
        self.heal()
        self.judge()

    def session(self, name: str) -> Session:
        """A client."""
        session = Session(self.world, name)
        self.sessions.append(session)
        return session

    def boot(self) -> None:
        """Until the topic is there, and everything is whole."""
        world = self.world
        world.loop.observer = self.invariants.observe
        world.loop.observe_every = self.invariants.every
        self.history.on_ack = self.invariants.acknowledged
        for place in world.brokers.values():
            place.on_ending = self.invariants.check
        world.server.store.on_stored = self.invariants.stored
        world.server.store.on_expired = self.invariants.lease_expired
        for place in world.brokers.values():
            place.start()
        world.until(world.is_whole, limit_s=BOOT_S, what="all brokers are let in")
        admin = self.session("admin")
        configs: dict[str, object] = {"retention_ms": self.shape.retention_ms}
        configs = configs | TIERED if self.shape.is_tiered else {}
        made = admin.begin(create_topic(admin, TOPIC, self.shape.partitions, **configs))
        world.until(
            lambda: made.done() and world.is_whole(), limit_s=BOOT_S, what="the topic is whole"
        )
        if self.shape.has_keys:
            keyed = admin.begin(create_topic(admin, KEYED, 1, **KEY_CONFIGS))
            world.until(
                lambda: keyed.done() and world.is_whole(),
                limit_s=BOOT_S,
                what="the compacted topic is whole",
            )
        if self.shape.losses:
            self.invariants.unclean = UncleanElections(world, self.losses)
            world.lossy = LOOSE
            loose = admin.begin(create_topic(admin, LOOSE, 1, **self.shape.losses))
            world.until(
                lambda: loose.done() and world.is_whole(),
                limit_s=BOOT_S,
                what="the topic that may lose records is whole",
            )
        if self.shape.sharers:
            told = admin.begin(admin.call(1, begin_at_the_start()))
            world.until(told.done, limit_s=BOOT_S, what="the share group has its settings")

    def work(self) -> None:
        """Clients begin."""
        for place in self.places:
            at = place.partition
            for name, acks in (
                (f"idempotent{at}", -1),
                (f"second-idempotent{at}", -1),
                (f"lone{at}", 1),
            ):
                session = self.session(name)
                producer = Producer(
                    session, self.history, place, acks=acks, pause_s=self.shape.pause_s
                )
                session.begin(producer.run())
            session = self.session(f"consumer{at}")
            session.begin(Consumer(session, self.history, place).run())
            if self.shape.is_tiered:
                session = self.session(f"from the start{at}")
                session.begin(HistoryReader(session, self.history, place, self.shape.pause_s).run())
            if self.shape.is_trimmed:
                session = self.session(f"trimmer{at}")
                session.begin(Trimmer(session, self.history, place, self.shape.pause_s).run())
            session = self.session(f"latest{at}")
            session.begin(LatestReader(session, place, pause_s=self.shape.pause_s).run())
        if self.shape.has_lives:
            session = self.session("lives")
            configs = TIERED if self.shape.is_tiered else {}
            self.lives = TopicLives(session, self.shape.pause_s, dict(configs))
            self._lives_task = session.begin(self.lives.run())
        for number in range(self.shape.members):
            session = self.session(f"member{number}")
            member = GroupMember(
                session,
                self.history,
                self.groups,
                group=GROUP,
                topic=TOPIC,
                pause_s=self.shape.pause_s,
            )
            session.begin(member.run())
        if self.shape.has_keys:
            for name, acks in (("keyed", -1), ("lone-keyed", 1)):
                session = self.session(name)
                session.begin(KeyWriter(session, self.keys, self.shape.pause_s, acks).run())
            session = self.session("keys from the start")
            session.begin(KeyReader(session, self.keys, self.shape.pause_s).run())
        if self.shape.losses:
            for name, acks in (("loose-idempotent", -1), ("lone-loose", 1)):
                session = self.session(name)
                producer = LossyProducer(
                    session, self.history, self.losses, acks=acks, pause_s=self.shape.pause_s
                )
                session.begin(producer.run())
            session = self.session("loose reader")
            session.begin(LossyReader(session, self.losses, self.shape.pause_s).run())
        for number in range(self.shape.sharers):
            self._begin_sharing(f"sharer{number}")
        for number in range(self.shape.transactional):
            session = self.session(f"txn{number}")
            worker = TransactionalProducer(
                session, self.transactions, self.places, pause_s=self.shape.pause_s
            )
            session.begin(worker.run())

    def _begin_sharing(self, name: str) -> None:
        session = self.session(name)
        session.begin(ShareMember(session, self.shares, TOPIC, self.shape.pause_s).run())

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
        world.until(world.is_whole, limit_s=WHOLE_S, what="I13 all replicas are in sync")

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
        world = self.world
        for session in self.sessions:
            session.is_over = True
        world.until(self._are_equal, limit_s=WHOLE_S, what="I13 replicas are equal")
        readers = []
        for place in self.places:
            session = self.session(f"judge{place.partition}")
            consumer = Consumer(session, History(), place)
            session.begin(consumer.run())
            readers.append((consumer, place))
        world.until(
            lambda: all(reader.position >= self._end(place) for reader, place in readers),
            limit_s=READ_S,
            what="all records can be read",
        )
        for reader, place in readers:
            seen = dict(sorted(reader.history.seen[place].items()))
            self.history.judge(place, seen, world.log_start(place))
        self._judge_transactions()
        self._judge_groups()
        if self.shape.has_keys:
            session = self.session("judge of keys")
            read = session.begin(KeyReader(session, self.keys, self.shape.pause_s).read())
            self.world.until(read.done, limit_s=READ_S, what="K the compacted topic can be read")
        if self.shape.losses:
            self._judge_losses()
        if self.shape.sharers:
            self._judge_shares()
        if self.lives is not None:
            self._judge_lives(self.lives)
        if self.invariants.remote is not None:
            self._judge_bucket(self.invariants.remote)
        self._judge_directories()

    def _judge_directories(self) -> None:
        """J: each replica lies once, where the store says, and nothing else of any partition."""
        try:
            self.world.until(
                lambda: not any(self._misplaced()),
                limit_s=CLEAN_S,
                what="J each replica lies where the store says",
            )
        except Violation as violation:
            raise Violation(f"{violation}: {list(self._misplaced())}") from None

    def _misplaced(self) -> Iterator[str]:
        image = self.world.image
        for node_id, place in self.world.brokers.items():
            broker = place.broker
            assert broker is not None
            ids = {one.path: one.id for one in broker.local.log_manager.directories}
            lies: dict[str, list[str]] = {}
            for directory, name in place.folders():
                parsed = parse_directory(name)
                if parsed is not None and parsed.state is DirectoryState.CURRENT:
                    lies.setdefault(name, []).append(directory)
                elif name.endswith(KEPT[1]) and not name.startswith(FLEETING):
                    yield f"{node_id}:{directory}/{name} is a copy that is not made any more"
            for topic in image.topics.values():
                for one in topic.partitions:
                    if node_id not in one.replicas:
                        continue
                    name = f"{topic.name}-{one.index}"
                    found, said = lies.pop(name, []), one.directory_on(node_id)
                    if [ids[directory] for directory in found] != [said]:
                        yield f"{node_id}: {name} is in {found}, and is said to be in {said}"
            yield from (f"{node_id}: {name} is nobody's" for name in lies)

    def _judge_bucket(self, remote: RemoteCoverage) -> None:
        """I14: the bucket has what the metadata says, once garbage was collected."""
        leaders = []
        for place in (*self.places, FLEETING_PLACE):
            image = self.world.image.partition(*place)
            if image is None:
                continue
            broker = self.world.brokers[image.leader].broker
            assert broker is not None
            led = broker.replicas.leader_of(*place)
            assert led is not None
            leaders.append(led)
        try:
            self.world.until(
                lambda: not remote.leftovers(leaders),
                limit_s=CLEAN_S,
                what="I14 the bucket has what the metadata says",
            )
        except Violation as violation:
            raise Violation(f"{violation}: {remote.leftovers(leaders)}") from None

    def _judge_lives(self, lives: TopicLives) -> None:
        """Who was deleted is gone, from the disks in time; the last life is whole."""
        world = self.world
        assert self._lives_task is not None
        world.until(self._lives_task.done, limit_s=READ_S, what="the topic's last step is done")
        topic = world.image.topics.get(FLEETING)
        if topic is not None and topic.topic_id in lives.deleted:
            raise Violation(f"I16 {FLEETING} {topic.topic_id} was deleted, and is there again")
        life = lives.life
        if life is not None:
            if topic is None or topic.topic_id != life.topic_id:
                raise Violation(f"I16 {life} was not deleted, and is gone: {topic}")
            session = self.session("judge of lives")
            read = session.begin(lives.read(session, life, lambda: False))
            world.until(read.done, limit_s=READ_S, what=f"I16 {life} can be read")
        try:
            world.until(
                lambda: not any(self._folders_left()),
                limit_s=CLEAN_S,
                what="I16 no folder of a deleted topic is left",
            )
        except Violation as violation:
            raise Violation(f"{violation}: {list(self._folders_left())}") from None

    def _folders_left(self) -> Iterator[str]:
        """Folders of the topic that is made anew which are not those of its replicas.

        A broker that was away when a topic was deleted keeps its folder as a stray: what the store
        does not know may have been lost. So it does with a copy that was made of it.
        """
        image = self.world.image.partition(*FLEETING_PLACE)
        replicas = () if image is None else image.replicas
        for node_id, place in self.world.brokers.items():
            for directory, name in place.folders():
                is_its = name == f"{FLEETING}-0" and node_id in replicas
                is_known = is_its or name.endswith(KEPT)
                if name.startswith(FLEETING) and not is_known:
                    yield f"{node_id}:{directory}/{name}"

    def _judge_losses(self) -> None:
        """U: of the topic that may lose records is there what it may not."""
        session = self.session("judge of losses")
        reader = LossyReader(session, self.losses, 0.0)
        session.begin(reader.run())
        self.world.until(
            lambda: reader.position >= self._end(LOSSY_PLACE),
            limit_s=READ_S,
            what="U all records can be read",
        )
        session.is_over = True
        self.losses.judge(list(dict(sorted(reader.values.items())).values()))

    def _judge_groups(self) -> None:
        """I11, and that a coordinator is there again."""
        readers = []
        for place in self.places if self.groups.commits else ():
            session = self.session(f"committed offset{place.partition}")
            reader = OffsetReader(session, self.groups, Committed(GROUP, place))
            session.begin(reader.run())
            readers.append(reader)
        self.world.until(
            lambda: all(reader.is_done for reader in readers),
            limit_s=READ_S,
            what="I11 committed offsets can be read",
        )

    def _judge_shares(self) -> None:
        """S: each record has come to somebody, who has accepted it."""
        shares, acked = self.shares, self.history.acked
        shares.may_release = False
        self._begin_sharing("last sharer")
        try:
            self.world.until(
                lambda: not any(shares.left(place, acked[place]) for place in self.places),
                limit_s=READ_S,
                what="S all records are accepted",
            )
        except Violation as violation:
            left = {place: shares.left(place, acked[place])[:5] for place in self.places}
            raise Violation(f"{violation}: not {left}") from None

    def _judge_transactions(self) -> None:
        readers = []
        for place in self.places if self.transactions.transactions else ():
            session = self.session(f"committed{place.partition}")
            reader = CommittedReader(session, place)
            session.begin(reader.run())
            readers.append((reader, place))
        self.world.until(
            lambda: all(reader.position >= self._end(place) for reader, place in readers),
            limit_s=READ_S,
            what="all transactions are over and can be read",
        )
        self.transactions.judge({place: reader.values for reader, place in readers})

    def _end(self, place: Place) -> int:
        image = self.world.image.partition(*place)
        assert image is not None
        broker = self.world.brokers[image.leader].broker
        led = None if broker is None else broker.replicas.leader_of(*place)
        return 1 << 62 if led is None else led.log.log_end_offset

    def _are_equal(self) -> bool:
        places = [*self.places, *([LOSSY_PLACE] if self.shape.losses else [])]
        return all(
            self._end(place) == end for place in places for end in self._ends(place)
        ) and all(
            len(
                {
                    tuple(self.world.batches(node, place, start, 1 << 62).items())
                    for node in self._of(place)
                }
            )
            == 1
            for place in places
            for start in [self._common_start(place)]
        )

    def _common_start(self, place: Place) -> int:
        """From where on all replicas have a partition on their disks."""
        starts = [0]
        for node in self._of(place):
            broker = self.world.brokers[node].broker
            replica = None if broker is None else broker.replicas.replica_of(*place)
            if replica is not None:
                starts.append(replica.log.local_log_start_offset)
        return max(starts)

    def _ends(self, place: Place) -> Iterator[int]:
        for node in self._of(place):
            broker = self.world.brokers[node].broker
            replica = None if broker is None else broker.replicas.replica_of(*place)
            yield -1 if replica is None else replica.log.log_end_offset

    def _of(self, place: Place) -> tuple[int, ...]:
        image = self.world.image.partition(*place)
        assert image is not None
        return image.replicas
