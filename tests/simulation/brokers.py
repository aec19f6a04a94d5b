"""Brokers of a simulated cluster: each a host, a disk, a clock, and one process after another."""

from collections.abc import Callable, Iterator
from posixpath import dirname
from random import Random
from typing import Any, Final, cast

from broker.broker import Broker
from broker.membership.last_run import BOOT_ID_FILE
from broker.runtime.startup_errors import StartupError
from config.broker import BrokerConfig
from config.listeners import Listener
from config.tier import TierConfig
from storage.environment.descriptors import share_out
from storage.environment.environment import Environment
from storage.environment.randomness import SeededRandomness
from storage.types.partition_directory import DirectoryState
from storage.types.topic_partition import TopicPartition
from tests.fakes.filesystem import KEEP_ALL, Event, FakeFilesystem
from tests.simulation.clock import SimClock
from tests.simulation.loop import Process
from tests.simulation.machine import SimMachine
from tests.simulation.network import SimNetwork
from tests.simulation.remote.bucket import Bucket
from tests.simulation.remote.tier_process import SimTier
from tests.simulation.store import StoreClient, StoreServer
from tiered.tier import Tier

PORT: Final = 9092
DIRECTORIES: Final = ("/data", "/more")
"""Log directories, each a disk of its own; of most brokers the first alone."""

COPY: Final = f"-{DirectoryState.FUTURE.value}"
"""How a copy's folder ends that is not in its log's place yet."""

DESCRIPTORS: Final = 20_000
OPEN_FILES_MAX: Final = 256
DRIFT: Final = 0.01
OFFSET_MS: Final = 2_000.0
"""How much clocks of different machines are apart, at most."""

SETTINGS: Final[dict[str, object]] = {
    "log_dirs": DIRECTORIES[:1],
    "admin_listener": None,
    "broker_session_timeout_ms": 3000,
    "broker_heartbeat_interval_ms": 500,
    "offsets_topic_num_partitions": 1,
    "transaction_state_log_num_partitions": 1,
    "share_coordinator_state_topic_num_partitions": 1,
    "group_initial_rebalance_delay_ms": 0,
    "num_recovery_threads_per_data_dir": 1,
    "queued_max_request_bytes": 64 << 20,
}


class SimBroker:
    """See the module.

    Attributes:
        broker: Of the newest process; None before the first start.
        process: The newest.
        lives: How many there were.
        on_change: Called with the broker's id at each change of its disk.
        on_event: Called with each of these changes, after that.
        on_commit: Called with it when a transaction of it was carried out in the store.
        tier: Its tier process, once it has one.
        filesystem: Of the machine, as the process sees it.
        settings: Of each of its processes.
        moved: Copies of logs that have taken their places in another directory.
        held_back: Times that a replica had to wait for a throttle, at a process that has ended.
        timed_out: Transactions that such a process has aborted because their time was up.
        is_running: The process was started, and has not ended.
        is_stopping: It was told to end.
        is_wanted: Once it has, it is started again.
    """

    def __init__(
        self,
        node_id: int,
        network: SimNetwork,
        server: StoreServer,
        bucket: Bucket,
        **settings: object,
    ) -> None:
        self.node_id = node_id
        self.host = f"b{node_id}"
        self.network = network
        self.loop = network.loop
        random = self.loop.random
        self.clock = SimClock(
            self.loop,
            offset_ms=random.uniform(-OFFSET_MS, OFFSET_MS),
            drift=random.uniform(-DRIFT, DRIFT),
        )
        self._boots = 1
        self.on_change: Callable[[int], None] = lambda _node_id: None
        self.on_event: Callable[[Event], None] = lambda _event: None
        self.on_commit: Callable[[int], None] = lambda _node_id: None
        self.filesystem = self._mount(FakeFilesystem(open_files_max=OPEN_FILES_MAX))
        self.broker: Broker | None = None
        self.tier: SimTier | None = None
        self.process = Process(self.host)
        self.lives = self.moved = self.held_back = self.timed_out = 0
        self.is_running = self.is_stopping = self.is_wanted = False
        self.on_exit: Callable[[int, str], None] = lambda _node_id, _reason: None
        self.on_ending: Callable[[int], None] = lambda _node_id: None
        self.on_started: Callable[[SimBroker], None] = lambda _place: None
        self._server = server
        self._bucket = bucket
        self.settings = {
            **SETTINGS,
            "node_id": node_id,
            "listeners": (Listener("PLAINTEXT", self.host, PORT),),
            **settings,
        }

    def _mount(self, filesystem: FakeFilesystem) -> FakeFilesystem:
        filesystem.clock = self.clock  # type: ignore[assignment]  # all that is asked is now_ms
        filesystem.observer = lambda _event: None
        filesystem.mkdir(dirname(BOOT_ID_FILE))
        filesystem.poke(BOOT_ID_FILE, f"{self._boots:08x}-0000-4000-8000-000000000000\n".encode())
        filesystem.observer = lambda event: self._changed(filesystem, event)
        return filesystem

    def _changed(self, filesystem: FakeFilesystem, event: Event) -> None:
        # What a process that is dying still does in its handle is not seen by anybody.
        if filesystem is self.filesystem and self.is_running:
            self.on_change(self.node_id)
        if filesystem is self.filesystem and self.is_running:
            self.moved += event.kind == "rename" and event.path.endswith(COPY)
            self.on_event(event)

    @property
    def directories(self) -> tuple[str, ...]:
        """Its log directories."""
        found = self.settings["log_dirs"]
        assert isinstance(found, tuple)
        return found

    def folders(self) -> Iterator[tuple[str, str]]:
        """What its log directories have: their paths, and the names there."""
        for directory in self.directories:
            for entry in self.filesystem.list_directory(directory):
                yield directory, entry.name

    def is_copied(self, topic: str, partition: int) -> bool:
        """Whether a copy of a replica is made in another directory, or takes its place now."""
        hosted = self.broker.hosted if self.broker is not None else None
        return hosted is not None and TopicPartition(topic, partition) in hosted.log_mover._moves

    def folder(self, topic: str, partition: int) -> str | None:
        """Where it has a replica: of the log that serves, else the first there is on its disks."""
        broker = self.broker if self.is_running else None
        replica = None if broker is None else broker.replicas.replica_of(topic, partition)
        if replica is not None:
            return replica.log.directory
        folders = (f"{directory}/{topic}-{partition}" for directory in self.directories)
        return next((folder for folder in folders if self.filesystem.exists(folder)), None)

    def committed(self, process: Process) -> None:
        """A transaction of a process was carried out in the store."""
        if process is self.process and self.is_running:
            self.on_commit(self.node_id)

    def start(self) -> None:
        """Begin to start; a start that fails is the end of the process."""
        assert not self.is_running
        self.lives += 1
        self.is_running = True
        self.is_stopping = self.is_wanted = False
        self.broker = None
        process = self.process = Process(
            f"{self.host}.{self.lives}", node_id=self.node_id, rate=self.clock.rate
        )
        self.network.boot(self.host)
        store = StoreClient(self.network, self._server, self.host, process)
        store.on_commit = lambda: self.committed(process)
        network = self.network.host(self.host, process)
        seed = self.loop.random.getrandbits(64)

        async def run() -> None:
            broker = Broker(
                BrokerConfig().replace(**self.settings),
                clock=self.clock,
                randomness=SeededRandomness(seed),
                filesystem=self.filesystem,
                descriptors=share_out(DESCRIPTORS),
                store=store,
                network=network,
                machine=SimMachine(self.loop),
                open_tier=lambda tier, environment: self._open_tier(process, tier, environment),
            )
            if self.process is not process:
                return
            self.broker = broker
            broker.failed.add_done_callback(lambda done: self._failed(process, done.result()))
            try:
                await broker.start()
            except StartupError as error:
                self._failed(process, str(error))
                return
            self.on_started(self)

        self.loop.spawn(process, run())

    def _open_tier(self, process: Process, settings: TierConfig, environment: Environment) -> Tier:
        self.tier = SimTier(
            self.loop, process, lambda: self._bucket.build_tier(settings, environment)
        )
        tier: Any = self.tier
        return cast("Tier", tier)

    def _end_tier(self) -> None:
        if self.tier is not None:
            self.tier.end()
            self.tier = None

    def _failed(self, process: Process, reason: str) -> None:
        if process is self.process and self.is_running:
            self.ended()
            self.on_exit(self.node_id, reason)

    @property
    def is_ready(self) -> bool:
        """Every log is open."""
        return self.is_running and self.broker is not None and self.broker.ready

    async def stop(self) -> None:
        """End as SIGTERM does; in the broker's own process."""
        assert self.broker is not None
        self.is_stopping = True
        await self.broker.stop()
        is_wanted = self.is_wanted
        self.ended()
        if is_wanted:
            self.loop.call_in(self.loop.outside, self._start_again)

    def _start_again(self) -> None:
        if not self.is_running:
            self.start()

    def ended(self) -> None:
        """The process has come to its end by itself."""
        self.on_ending(self.node_id)
        self._count(self.broker)
        self.loop.graveyard.append(self.broker)
        self.is_running = False
        self.loop.kill(self.process)
        self._end_tier()
        self.network.kill(self.process)
        self.filesystem = self._mount(self.filesystem.after_crash(KEEP_ALL))

    def _count(self, broker: Broker | None) -> None:
        """Add up what a process has counted, at its end."""
        if broker is not None and broker.hosted is not None:
            self.held_back += sum(quota.held_back for quota in broker.hosted.quotas)
        if broker is not None and broker.transactions is not None:
            self.timed_out += broker.transactions.stats.timeouts

    def count(self) -> None:
        """Add up what the process that runs has counted; once, at the end of a run."""
        if self.is_running:
            self._count(self.broker)

    def restore(self, disk: FakeFilesystem, *, boots: bool) -> None:
        """End, and have a disk as it was before: a copy, which is used up.

        Args:
            disk: From `filesystem.after_crash`.
            boots: The machine starts anew; else it is the process alone that has ended.
        """
        if boots:
            self.crash(None)
        else:
            self.kill()
        self.filesystem = self._mount(disk)

    def kill(self) -> None:
        """Kill -9: what was written is there, nothing else."""
        self.ended()

    def crash(self, keep: Random | None) -> None:
        """The machine loses its power: what was not synced is gone, or (`keep`) some of it."""
        self.on_ending(self.node_id)
        self._count(self.broker)
        self.loop.graveyard.append(self.broker)
        self.is_running = False
        self.loop.kill(self.process)
        self._end_tier()
        self.network.crash(self.host, self.process)
        self._boots += 1
        self.filesystem = self._mount(self.filesystem.after_crash(keep))
