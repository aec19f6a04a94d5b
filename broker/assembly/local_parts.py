"""What a broker has before anything is opened: clock, threads, logs, partitions; nothing waits.

clock, loop ──> TimerWheel, Disks, DirectoryWriters ──> Environment ──> LogManager ──> cleaners
└──> ReplicaManager
"""

import asyncio
import os
from typing import TYPE_CHECKING

from broker.cleaning.process import LocalCleaningProcess
from broker.cleaning.process_cleaner import ProcessCleaner, limits_of
from broker.lifecycle.live_settings import disk_threads
from broker.network.iteration_end import IterationEnd
from broker.network.network import Network, SocketNetwork
from broker.replicas.fetch_sessions import FetchSessionCache
from broker.replicas.lookups import Lookups
from broker.replicas.replica_manager import ReplicaManager
from broker.runtime.directory_writer import DirectoryWriters
from broker.runtime.disk import Disks
from broker.runtime.loop_lag import LoopLag
from broker.runtime.machine import Machine
from broker.runtime.on_loop import OnLoop
from broker.runtime.timer import TimerWheel
from storage.environment.alerts import Alerts
from storage.environment.clock import Clock, SystemClock, sleep_ms
from storage.environment.descriptors import DescriptorShares, descriptor_limit, share_out
from storage.environment.environment import Environment
from storage.environment.filesystem import Filesystem
from storage.environment.local_filesystem import LocalFilesystem
from storage.environment.randomness import Randomness, SystemRandomness
from storage.environment.throttle import Throttle
from storage.manager.log_manager import LogManager, LogManagerSettings

if TYPE_CHECKING:
    from config.broker import BrokerConfig


class LocalParts:
    """See the module; built on the running loop.

    Attributes:
        settings: As configured; what changes at run time is `DynamicSettings`'s.
        log_dirs: Absolute paths.
        cleaners: Processes that clean logs; None: threads do.
        network: Sockets of this machine, or those of a simulation.
    """

    def __init__(
        self,
        settings: "BrokerConfig",
        *,
        clock: Clock | None,
        randomness: Randomness | None,
        filesystem: Filesystem | None,
        descriptors: DescriptorShares | None,
        network: Network | None,
        machine: Machine,
    ) -> None:
        """See `Broker`."""
        self.settings = settings
        self.descriptors = descriptors or share_out(descriptor_limit())
        self.log_dirs = tuple(os.path.abspath(path) for path in settings.log_dirs)
        self.clock: Clock = clock or SystemClock()
        self.loop = asyncio.get_running_loop()
        self.timer = TimerWheel(self.loop, self.clock)
        self.iteration_end = IterationEnd(self.loop.call_soon, self.clock)
        self.machine = machine
        self.disk = Disks(disk_threads(settings), self.log_dirs, machine=machine)
        self.writers = DirectoryWriters(
            self.loop, self.clock, self.log_dirs, self.disk, machine=machine
        )
        self.lookups = Lookups()
        self.lag = LoopLag(self.timer, self.clock)
        self.filesystem: Filesystem = filesystem or LocalFilesystem(shares=self.descriptors)
        self.environment = Environment(
            clock=self.clock,
            timer=self.timer,
            filesystem=self.filesystem,
            randomness=randomness or SystemRandomness(),
            run_blocking=self.disk.run,
        )
        self.network: Network = network or SocketNetwork()
        self.alerts = Alerts()
        self._on_loop = OnLoop(self.loop)
        self.cleaner_throttle = Throttle(
            self.clock, sleep_ms, settings.log_cleaner_io_max_bytes_per_second
        )
        self.log_manager = LogManager(
            self.environment,
            self.log_dirs,
            settings=LogManagerSettings.of(settings),
            on_owner=self._on_loop,
            cleaner_throttle=self.cleaner_throttle,
            alerts=self.alerts,
        )
        self.cleaners: ProcessCleaner | None = None
        if filesystem is None:
            # Another file system than the machine's is this process's alone.
            self.cleaners = self._clean_in_processes()
        self.replicas = ReplicaManager(
            clock=self.clock,
            timer=self.timer,
            disk=self.disk,
            loop=self.loop,
            writers=self.writers,
        )
        self.sessions = FetchSessionCache(
            settings.max_incremental_fetch_session_cache_slots,
            self.clock,
            self.environment.randomness,
        )

    def _clean_in_processes(self) -> ProcessCleaner:
        compaction = self.log_manager.compaction
        cleaners = ProcessCleaner(
            LocalCleaningProcess,
            lambda: compaction.in_thread,
            filesystem=self.filesystem,
            clock=self.clock,
            limits=limits_of(self.settings),
        )
        compaction.clean_with(cleaners)
        return cleaners

    async def writes_ended(self) -> None:
        """Wait until nothing is written or flushed; then end the directories' threads.

        A flush under way may fail, and the kernel tells of that once: one that closed the log
        beside it would succeed, and the directory be marked clean.
        """
        for partition in list(self.replicas.partitions()):
            if partition.preparation is not None:
                await partition.preparation.end()
            await partition.idle()
        self.writers.close()

    async def close_logs(self, *, clean: bool, broker_epoch: int) -> None:
        """Flush every log and close it.

        Args:
            clean: The directories are marked as cleanly shut down.
            broker_epoch: What the marker says; -1: nothing.

        Raises:
            StorageError: A disk refused.
        """
        await self.disk.run(
            self.log_manager.shutdown,
            clean=clean,
            side_by_side=self.machine.run_all,
            broker_epoch=broker_epoch,
        )

    def close(self) -> None:
        """End timers and threads, last of all."""
        self.timer.close()
        self._on_loop.close()
        self.disk.close()
