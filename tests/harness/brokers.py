"""A cluster in one process: whole brokers on one store in memory, real sockets, real files.

    async with ClusterHarness(tmp_path) as cluster:          three brokers, let in
        client = await cluster.client(1)
        await cluster.create_topic("orders", partitions=2)
        await cluster.kill(2)                                as kill -9: see there
        await cluster.restart(2)
        await cluster.until(lambda: cluster.replicas_equal("orders"))

For system tests of what brokers do together. Time is real; what depends on order and chance belongs
into `tests.simulation`.
"""

import asyncio
import contextlib
import contextvars
import weakref
from collections.abc import Callable, Coroutine, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from typing_extensions import override

from broker.broker import Broker
from broker.controller.store.keyspace import Stage
from broker.controller.store.metadata_store import (
    Compare,
    KeyValue,
    LeaseNotFoundError,
    Operation,
    RangeResult,
    StoreUnavailableError,
    TxnResult,
    Watch,
)
from broker.network.connection_poller import ConnectionPoller
from broker.network.connector import Connecting, Connector
from broker.network.network import Listening, SocketNetwork
from broker.network.stream import Poller, Stream
from broker.replication.fetcher.fetchers import Fetchers
from broker.runtime.timer import TimerWheel
from config.broker import BrokerConfig
from config.listeners import Listener
from protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from storage.environment.clock import Clock, SystemClock
from storage.environment.filesystem import Filesystem
from tests.fakes.broker.metadata_store import MemoryStore
from tests.fakes.network.client import Client

SESSION_MS: Final = 5_000
"""Longer than a busy machine keeps the loop of all from renewing: who lives keeps its lease."""

HEARTBEAT_MS: Final = 200
UNTIL_S: Final = 60.0
"""What does not happen at all is found out then; a busy machine has done everything else."""

CREATE_MS: Final = 30_000
STOP_S: Final = 120.0

_T = TypeVar("_T")

_NODE: contextvars.ContextVar["Node | None"] = contextvars.ContextVar("node", default=None)
"""Whose tasks are whose: a task has the context of what made it."""


def _make_task(
    loop: asyncio.AbstractEventLoop,
    work: Coroutine[Any, Any, Any],
    context: contextvars.Context | None = None,
) -> "asyncio.Task[Any]":
    task = asyncio.Task(work, loop=loop, context=context)
    node = _NODE.get() if context is None else context.get(_NODE)
    if node is not None:
        node.tasks.add(task)
    return task


class SharedStore(MemoryStore):
    """The store of all brokers: what it does for one is no task of that broker's process.

    Else a kill would end the writer of all.
    """

    @override
    def _enqueue(self, command: Callable[[Stage], _T]) -> "asyncio.Future[_T]":
        return contextvars.Context().run(super()._enqueue, command)


class CutStore:
    """A broker's way to the shared store, which can be cut.

    Cut, calls fail and watches bring nothing: what was sent before may have been done.
    """

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._open = asyncio.Event()
        self._open.set()

    def cut(self) -> None:
        """From now on."""
        self._open.clear()

    def heal(self) -> None:
        """Carry again."""
        self._open.set()

    def _check(self) -> None:
        if not self._open.is_set():
            raise StoreUnavailableError("the store cannot be reached")

    @property
    def revision(self) -> int:
        return self._store.revision

    async def get(self, key: str) -> KeyValue | None:
        self._check()
        return await self._store.get(key)

    async def range(
        self, prefix: str, *, revision: int = 0, after: str = "", limit: int = 0
    ) -> RangeResult:
        self._check()
        return await self._store.range(prefix, revision=revision, after=after, limit=limit)

    async def txn(
        self,
        compare: Sequence[Compare] = (),
        then: Sequence[Operation] = (),
        otherwise: Sequence[Operation] = (),
    ) -> TxnResult:
        self._check()
        return await self._store.txn(compare, then, otherwise)

    def watch(self, prefix: str, from_revision: int = 0) -> "CutWatch":
        self._check()
        return CutWatch(self._store.watch(prefix, from_revision), self._open)

    async def compact(self, revision: int) -> None:
        self._check()
        await self._store.compact(revision)

    async def grant_lease(self, ttl_ms: int) -> int:
        self._check()
        return await self._store.grant_lease(ttl_ms)

    async def keep_lease_alive(self, lease: int) -> int:
        self._check()
        return await self._store.keep_lease_alive(lease)

    async def revoke_lease(self, lease: int) -> None:
        self._check()
        await self._store.revoke_lease(lease)

    async def aclose(self) -> None:
        """The store is shared: it stays open."""


class CutWatch:
    """A watch that brings nothing while its store is cut, and everything afterwards."""

    def __init__(self, watch: Watch, is_open: asyncio.Event) -> None:
        self._watch = watch
        self._open = is_open

    def __aiter__(self) -> "CutWatch":
        return self

    async def __anext__(self) -> Any:
        changes = await self._watch.__anext__()
        await self._open.wait()
        return changes

    async def request_progress(self) -> None:
        if self._open.is_set():
            await self._watch.request_progress()

    async def aclose(self) -> None:
        await self._watch.aclose()


class KeptNetwork(SocketNetwork):
    """Remembers what was opened, so that it can be closed as the end of a process closes it."""

    def __init__(self) -> None:
        self._listening: list[Listening] = []
        self._streams: list[Stream] = []
        self._pollers: list[ConnectionPoller] = []

    def listen(self, host: str, port: int, *, backlog: int, receive_buffer_bytes: int) -> Listening:
        made = super().listen(
            host, port, backlog=backlog, receive_buffer_bytes=receive_buffer_bytes
        )
        self._listening.append(made)
        return made

    def stream(self, accepted: Any, *, send_buffer_bytes: int, receive_buffer_bytes: int) -> Stream:
        made = super().stream(
            accepted, send_buffer_bytes=send_buffer_bytes, receive_buffer_bytes=receive_buffer_bytes
        )
        self._streams.append(made)
        return made

    def connection_poller(self, loop: Poller, clock: Clock) -> ConnectionPoller | None:
        made = super().connection_poller(loop, clock)
        if made is not None:
            self._pollers.append(made)
        return made

    def connector(self, loop: asyncio.AbstractEventLoop, *, receive_buffer_bytes: int) -> Connector:
        return _KeptConnector(
            super().connector(loop, receive_buffer_bytes=receive_buffer_bytes), self._streams
        )

    def close_all(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close every socket; nothing of this process is called back for one again."""
        for poller in self._pollers:
            poller.close()
        opened: list[Listening | Stream] = [*self._listening, *self._streams]
        for one in opened:
            # A stream keeps its descriptor's number, which may be another's after its close.
            if getattr(one, "_socket", one).fileno() >= 0:
                loop.remove_reader(one.fileno())
                loop.remove_writer(one.fileno())
            one.close()


class _KeptConnector:
    def __init__(self, connector: Connector, streams: list[Stream]) -> None:
        self._connector = connector
        self._streams = streams

    def connect(self, host: str, port: int, done: Callable[[Stream | OSError], None]) -> Connecting:
        def connected(result: Stream | OSError) -> None:
            if not isinstance(result, OSError):
                self._streams.append(result)
            done(result)

        return self._connector.connect(host, port, connected)


class Node:
    """A broker's place: its directory, its port, and the process that is there now.

    Attributes:
        broker: The newest; killed or stopped where `is_running` is false.
        store: Its way to the store.
        log_dirs: Its log directories: `directory` itself, or folders in it.
        filesystem: With them; None: the machine's.
        clock: Of the broker, from its next start on; None: the machine's.
    """

    def __init__(self, node_id: int, directory: Path, log_dirs: int) -> None:
        self.node_id = node_id
        self.directory = directory
        self.log_dirs = (
            (directory,) if log_dirs == 1 else tuple(directory / f"d{n}" for n in range(log_dirs))
        )
        self.filesystem: Filesystem | None = None
        self.clock: Clock | None = None
        self.port = 0
        self.is_running = False
        self.tasks: weakref.WeakSet[asyncio.Task[Any]] = weakref.WeakSet()
        self.broker: Broker
        self.store: CutStore
        self.network: KeptNetwork

    def begin(self, work: Coroutine[Any, Any, _T]) -> "asyncio.Task[_T]":
        """Work of the broker's process: it ends with it, as does what it begins."""
        context = contextvars.copy_context()
        context.run(_NODE.set, self)
        return asyncio.get_running_loop().create_task(work, context=context)


class ClusterHarness:
    """See the module. `settings` are those of every broker; `racks` are theirs, in order.

    Each has `log_dirs` log directories.
    """

    def __init__(
        self, directory: Path, *, brokers: int = 3, log_dirs: int = 1, **settings: object
    ) -> None:
        racks = settings.pop("racks", ())
        assert isinstance(racks, tuple)
        self.directory = directory
        self.settings = settings
        self.racks: tuple[str, ...] = racks
        self.loop = asyncio.get_running_loop()
        self.loop.set_task_factory(_make_task)  # type: ignore[arg-type]  # a context from 3.11 on
        self.timer = TimerWheel(self.loop, SystemClock())
        self.store = SharedStore(self.timer)
        self.nodes = {
            node_id: Node(node_id, directory / str(node_id), log_dirs)
            for node_id in range(1, brokers + 1)
        }
        self._clients: list[Client] = []

    async def __aenter__(self) -> Self:
        try:
            await asyncio.gather(*(self.start(node_id) for node_id in self.nodes))
            await self.until(lambda: self.let_in() == set(self.nodes))
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop what runs, then the store."""
        for client in self._clients:
            await client.close()
        for node in self.nodes.values():
            if node.is_running:
                node.store.heal()
                # A stop that hangs is a failure, not the end of the whole run.
                await asyncio.wait_for(self.stop(node.node_id), STOP_S)
        await self.store.aclose()
        self.timer.close()

    # -- brokers ---------------------------------------------------------------------------------

    def broker(self, node_id: int) -> Broker:
        """The broker that runs there, or ran there last."""
        return self.nodes[node_id].broker

    def fetchers(self, node_id: int) -> Fetchers:
        """What this broker follows leaders with."""
        side = self.broker(node_id).side
        assert side is not None
        assert side.fetchers is not None
        return side.fetchers

    @property
    def running(self) -> list[Broker]:
        """All that run."""
        return [node.broker for node in self.nodes.values() if node.is_running]

    async def start(self, node_id: int, **settings: object) -> Broker:
        """Start a broker that does not run; it listens when this returns."""
        node = self.nodes[node_id]
        config = BrokerConfig().replace(
            **{
                "node_id": node_id,
                "log_dirs": tuple(map(str, node.log_dirs)),
                "listeners": (Listener("PLAINTEXT", "127.0.0.1", node.port),),
                "admin_listener": None,
                "broker_rack": self.racks[node_id - 1] if self.racks else None,
                "broker_session_timeout_ms": SESSION_MS,
                "broker_heartbeat_interval_ms": HEARTBEAT_MS,
                "offsets_topic_num_partitions": 2,
                "transaction_state_log_num_partitions": 2,
                "share_coordinator_state_topic_num_partitions": 2,
                "group_initial_rebalance_delay_ms": 0,
                **self.settings,
                **settings,
            }
        )
        node.store = CutStore(self.store)
        node.network = KeptNetwork()

        async def run() -> None:
            node.broker = Broker(
                config,
                store=node.store,
                network=node.network,
                filesystem=node.filesystem,
                clock=node.clock,
            )
            try:
                await node.broker.start()
            except BaseException:
                await node.broker.stop()
                raise

        await node.begin(run())
        node.is_running = True
        # The same after a restart, as clients know it.
        node.port = node.broker.addresses[0][2]
        return node.broker

    async def stop(self, node_id: int) -> None:
        """End a broker as SIGTERM does."""
        node = self.nodes[node_id]
        node.is_running = False
        await node.broker.stop()

    async def kill(self, node_id: int, *, revoke: bool = False) -> None:
        """End a broker as kill -9 does: nothing is flushed, marked, answered or handed over.

        What it has written is there, as the kernel's page cache would be. Its lease ends by itself,
        or is revoked now if `revoke` says so.
        """
        node = self.nodes[node_id]
        broker = node.broker
        node.is_running = False
        lease = await self._lease_of(node_id) if revoke else None
        node.store.cut()
        node.network.close_all(self.loop)
        broker.local.timer.close()
        await self._end_tasks(node)
        # Threads finish what they are at; nothing is begun any more.
        broker.local.writers.close()
        broker.local.timer.close()
        await asyncio.to_thread(broker.log_manager.shutdown, clean=False)
        if broker.local.cleaners is not None:
            # Its processes would see that their broker is gone.
            await asyncio.to_thread(broker.local.cleaners.close)
        broker.local.disk.close()
        broker.local.timer.close()
        if lease is not None:
            # The others may have fenced it by evidence meanwhile.
            with contextlib.suppress(LeaseNotFoundError):
                await self.store.revoke_lease(lease)

    async def _end_tasks(self, node: Node) -> None:
        """Cancel the broker's tasks, until none is left: some make others when they end."""
        for _ in range(100):
            tasks = [task for task in node.tasks if not task.done()]
            if not tasks:
                return
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=1.0)
        raise AssertionError(f"tasks of broker {node.node_id} do not end")

    async def _lease_of(self, node_id: int) -> int | None:
        item = await self.store.get(f"live/{node_id}")
        return None if item is None else item.lease

    async def restart(self, node_id: int, **settings: object) -> Broker:
        """Start a broker that was killed or stopped, on the same directory and port."""
        return await self.start(node_id, **settings)

    def cut_from_store(self, node_id: int) -> None:
        """The store cannot be reached by this broker; its peers and clients can."""
        self.nodes[node_id].store.cut()

    def heal(self) -> None:
        """The store can be reached by all that run."""
        for node in self.nodes.values():
            if node.is_running:
                node.store.heal()

    # -- what brokers see ------------------------------------------------------------------------

    def let_in(self) -> set[int]:
        """Brokers that live and are not fenced, in the image of every broker that runs."""
        seen = [
            {
                one.node_id
                for one in broker.controller.image.brokers.values()
                if one.is_live and not one.is_fenced
            }
            for broker in self.running
            if broker.controller is not None
        ]
        return set.intersection(*seen) if seen else set()

    def is_out(self, node_id: int) -> bool:
        """Whether no broker that runs has this one let in; `let_in` lacks it from the first on."""
        found = [
            broker.controller.image.brokers.get(node_id)
            for broker in self.running
            if broker.controller is not None
        ]
        return all(one is None or one.is_fenced or not one.is_live for one in found)

    def leader_of(self, topic: str, partition: int = 0) -> int:
        """As the newest image of all brokers says; -1: none."""
        images = [broker.controller.image for broker in self.running if broker.controller]
        found = max(images, key=lambda image: image.revision).partition(topic, partition)
        return -1 if found is None else found.leader

    def leads(self, node_id: int, topic: str, partition: int = 0) -> bool:
        """Whether a broker has taken the leader's role: the image alone does not make it so."""
        broker = self.nodes[node_id].broker
        return (
            self.nodes[node_id].is_running
            and broker.replicas.leader_of(topic, partition) is not None
        )

    async def leading(self, topic: str, partition: int = 0) -> int:
        """The broker that the image names and that leads; waits until there is one."""

        def find() -> bool:
            leader = self.leader_of(topic, partition)
            return leader in self.nodes and self.leads(leader, topic, partition)

        await self.until(find)
        return self.leader_of(topic, partition)

    async def until(self, condition: Callable[[], bool], *, timeout_s: float = UNTIL_S) -> None:
        """Wait for the condition."""
        async with asyncio.timeout(timeout_s):
            while not condition():  # noqa: ASYNC110  any state of any broker
                await asyncio.sleep(0.01)

    # -- clients ---------------------------------------------------------------------------------

    async def client(self, node_id: int) -> Client:
        """A connection to one broker, closed with the cluster."""
        client = await Client.connect("127.0.0.1", self.nodes[node_id].port)
        self._clients.append(client)
        return client

    async def create_topic(
        self, name: str, *, partitions: int = 1, replicas: int = -1, **configs: Any
    ) -> None:
        """Create a topic by any broker that runs; return when all have it in their image."""
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=replicas,
            configs=[
                CreatableTopicConfig(name=key.replace("_", "."), value=str(value))
                for key, value in configs.items()
            ],
        )
        client = await self.client(self.running[0].settings.node_id)
        request = CreateTopicsRequest(topics=[topic], timeout_ms=CREATE_MS)
        (result,) = (await client.call(request)).topics
        assert result.error_code == 0, result
        await self.until(
            lambda: all(
                broker.controller is not None and name in broker.controller.image.topics
                for broker in self.running
            )
        )

    # -- logs ------------------------------------------------------------------------------------

    def log_bytes(self, node_id: int, topic: str, partition: int = 0) -> bytes:
        """All batches of a replica as they lie on its disk; empty where there is none."""
        segments: list[Path] = []
        for log_dir in self.nodes[node_id].log_dirs:
            segments += sorted((log_dir / f"{topic}-{partition}").glob("*.log"))
        return b"".join(path.read_bytes() for path in segments)

    def replicas_equal(
        self, topic: str, partition: int = 0, among: Iterable[int] | None = None
    ) -> bool:
        """Whether all replicas (those `among` these brokers) hold the same bytes."""
        ids = list(self.nodes if among is None else among)
        return len({self.log_bytes(node_id, topic, partition) for node_id in ids}) == 1
