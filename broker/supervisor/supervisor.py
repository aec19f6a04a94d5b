"""The brokers of a machine, the metadata store that they share, and their directories.

open    directories locked and examined ─> store served ─> folders and notes
start   all brokers at once
stop    brokers asked to stop, one after the other, each handing over what it leads ─> store closed
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from broker.controller.store.metadata_store import StoreError
from broker.controller.store.unix.store_host import StoreHost
from broker.runtime.startup_errors import StartupError
from broker.supervisor.broker_process import Launch
from broker.supervisor.plan import log_directories, plan_brokers, store_directory
from broker.supervisor.shared_directories import SharedDirectories
from broker.supervisor.supervised_broker import BrokerState, SupervisedBroker
from config.load import LoadedConfig
from storage.environment.environment import Environment

LOGGER = logging.getLogger(__name__)


class Supervisor:
    """See the module. Runs on the loop's thread; `open`, `start` and `stop` once each.

    Attributes:
        brokers: By ascending node id; empty before `open`.
        host: The metadata store; None: it is an etcd, or not open.
    """

    def __init__(
        self,
        loaded: LoadedConfig,
        count: int,
        *,
        launch: Launch,
        environment: Environment,
        machine_name: str,
    ) -> None:
        """Start nothing yet.

        Args:
            loaded: Settings of the first broker, which those of the others follow from.
            count: How many; 0: only the metadata store.
            launch: Starts a broker's process.
            environment: Clock, timer, disk, randomness, threads.
            machine_name: Rack of the brokers, where none is set.
        """
        self.brokers: list[SupervisedBroker] = []
        self.host: StoreHost | None = None
        self._loaded = loaded
        self._count = count
        self._launch = launch
        self._environment = environment
        self._machine_name = machine_name
        settings = loaded.broker
        self._store = "" if settings.metadata_store.is_shared else store_directory(settings)
        self._directories = SharedDirectories(
            environment.filesystem, log_directories(settings), self._store
        )
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def store_address(self) -> str:
        """What brokers have as `metadata.store`."""
        return str(self._loaded.broker.metadata_store) if self.host is None else self.host.address

    async def open(self) -> None:
        """Take the directories and serve the store; no broker is started yet.

        Raises:
            StartupError: With a sentence for the operator.
        """
        settings, run = self._loaded.broker, self._environment.run_blocking
        if not self._count and not self._store:
            raise StartupError("--brokers 0 serves a metadata store, and metadata.store names one")
        node_ids = range(settings.node_id, settings.node_id + self._count)
        # Before anything is made: what the settings alone refuse.
        self._plan("unix:/")
        await run(self._directories.lock)
        if self._count:
            await run(self._directories.check, node_ids)
        else:
            await run(self._directories.check_place_of_store)
        if self._store:
            try:
                self.host = await StoreHost.open(self._store, self._environment)
            except StoreError as error:
                raise StartupError(str(error)) from error
            self.host.call_when_full(_report_full)
        if self._count:
            await run(self._directories.prepare, node_ids)
        self.brokers = self._plan(self.store_address)

    def start(self) -> None:
        """Start all brokers; they serve a little later, see `served`."""
        for broker in self.brokers:
            broker.start()

    def _plan(self, store_address: str) -> list[SupervisedBroker]:
        plans = plan_brokers(
            self._loaded,
            self._count,
            store_address=store_address,
            machine_name=self._machine_name,
        )
        return [
            SupervisedBroker(plan, self._launch, self._environment, self._changed) for plan in plans
        ]

    async def served(self) -> None:
        """Wait until each broker has listened, or one has refused its start.

        Raises:
            StartupError: One has; it has written why.
        """
        await self._until(lambda: bool(self._refused()) or self._all(BrokerState.SERVING))
        refused = self._refused()
        if refused:
            raise StartupError(f"broker {refused[0].plan.node_id} does not start, see above")

    def _all(self, state: BrokerState) -> bool:
        return all(broker.state is state for broker in self.brokers)

    def _refused(self) -> Sequence[SupervisedBroker]:
        return [one for one in self.brokers if one.state is BrokerState.REFUSED]

    async def _until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            change: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(change)
            await change

    def _changed(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def hurry(self) -> None:
        """Stop all brokers at once instead of one after the other."""
        for broker in self.brokers:
            broker.tell_to_stop()

    async def stop(self) -> None:
        """Stop all that runs; nothing of it is left."""
        for broker in self.brokers:
            LOGGER.info("broker stopping node=%d", broker.plan.node_id)
            await broker.stop()
        if self.host is not None:
            await self.host.aclose()
        await self._environment.run_blocking(self._directories.unlock)


def _report_full(reason: str) -> None:
    LOGGER.error("metadata store has no room on its disk, nothing can be changed reason=%s", reason)
