"""The runtime of a coordinator: the shards of its topic that this broker serves, and their loading.

    on_elected ──> queue ──> replay ──> on_loaded ──> ACTIVE ──> on_active       (`election`)
                     ^                                   │
                     └───────── fail ────────────────────┤    the outcome of an append is unknown
                                                         └──> on_resigned: on_unloaded

Partitions are loaded one after the other by one task, in slices. The high watermark of a new leader
lags behind its log until followers have fetched from it, and everything in the log counts: such a
partition waits until its end is committed, for as long as that takes, while others are loaded. One
that cannot be read is FAILED, with an alert; it does not keep the others from being loaded. It is
read again after a while, unless what was read is damaged.

A leader epoch comes with every election and resignation, and what is older than the newest one seen
changes nothing. An election in the epoch of a shard that loads or serves is ignored. In a newer one
another broker may have been leader in between: the shard is unloaded, and the partition is loaded
again. A resignation in the election's own epoch or a newer one ends it.

A shard serves while its partition is led here and no other broker may lead it
(`Partition.is_in_doubt`): a broker that was paused or cut off says NOT_COORDINATOR before it has
heard of its successor.

Source: Kafka, CoordinatorRuntime.java.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar
from uuid import UUID

from broker.coordinator.deferred import DeferredCalls, Refuse
from broker.coordinator.election import TRANSITIONS, Election, ElectionState
from broker.coordinator.loader import ShardLoader
from broker.coordinator.partitioner import partition_for_group
from broker.coordinator.shard import Shard
from broker.coordinator.slices import Slices
from broker.coordinator.stats import LoadStats
from broker.coordinator.topics_change import TopicsChange
from broker.coordinator.unavailable_partitions import UnavailablePartitions
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode
from protocol.errors import DecodeError
from storage.environment.alerts import Alerts
from storage.environment.environment import Environment
from storage.errors import StorageError
from storage.types.topic_partition import TopicPartition

if TYPE_CHECKING:
    from broker.controller.controller import Controller
    from broker.controller.images.cluster_image import ClusterImage
    from broker.replicas.replica_manager import ReplicaManager

logger = logging.getLogger(__name__)

UNCOMMITTED_DELAY_MS = 50.0
"""Retry delay of a load that could not wait for the log end to be committed."""

DELETED_TOPICS_MAX = 10_000
"""Most topics whose deletion is remembered."""

RELOAD_FIRST_MS = 10_000.0
RELOAD_MAX_MS = 300_000.0
"""Delay after which a partition that could not be read is read again; doubled with each failure."""

COMMIT_WAIT_MS = 10_000.0
"""After which a load that waits for the log end to be committed says so, and goes on waiting."""

AnyShard = TypeVar("AnyShard", bound=Shard)

OnFailed = Callable[[ErrorCode | None], None]

Build = Callable[[TopicPartition, int, OnFailed], AnyShard]
"""Makes an empty shard for a partition and a leader epoch; the callback, called when the shard
fails, goes to its log."""


class CoordinatorTopic(NamedTuple):
    """The internal topic of a coordinator.

    Attributes:
        name: Of the topic.
        holds: What its shards hold, in the plural, for the log: `groups`.
        partition_count: While the topic does not exist.
        read_size: Bytes read from a log at a time.
    """

    name: str
    holds: str
    partition_count: int
    read_size: int


class CoordinatorRuntime(Generic[AnyShard]):
    """See the module. All methods run on the event loop and none blocks.

    Attributes:
        topic: The coordinator's topic.
        unavailable: Partitions of it that cannot be read.
        stats: Counters of loads.
    """

    def __init__(
        self,
        topic: CoordinatorTopic,
        build: Build[AnyShard],
        *,
        timeout_ms: float,
        environment: Environment,
        replicas: "ReplicaManager",
        controller: "Controller",
        stats: LoadStats,
        alerts: Alerts | None = None,
    ) -> None:
        """A runtime without shards; begins with `start`.

        Args:
            topic: Whose partitions are loaded.
            build: Makes shards.
            timeout_ms: How long calls wait for a shard (`when_active`).
            environment: Clock and timer.
            replicas: Hosts the partitions.
            controller: Knows the topics, and creates this one.
            stats: Added to.
            alerts: Where unavailable partitions are reported.
        """
        self.topic = topic.name
        self.unavailable = UnavailablePartitions(topic.name, alerts)
        self.stats = stats
        self._what = topic.holds
        self._build = build
        self._partition_count = topic.partition_count
        self._read_size = topic.read_size
        self._clock = environment.clock
        self._timer = environment.timer
        self._replicas = replicas
        self._controller = controller
        self._is_running = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._elections: dict[int, Election] = {}
        # By partition, the newest leader epoch seen, ours or another broker's; `_topic_id`'s.
        self._newest_epochs: dict[int, int] = {}
        self._topic_id: UUID | None = None
        # Name by id, the latest ones: proof for shards that come later.
        self._deleted_topics: dict[UUID, str] = {}
        # Shards of the elections that are ACTIVE.
        self._active: dict[int, AnyShard] = {}
        self._failed: list[AnyShard] = []
        self._deferred: DeferredCalls[AnyShard] = DeferredCalls(environment.timer, timeout_ms)
        self._queue: deque[Election] = deque()
        self._loading: asyncio.Task[None] | None = None
        self._creation: asyncio.Task[None] | None = None

    # -- life ------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Begin to serve; shards come with `on_elected`."""
        self._is_running = True
        self._loop = asyncio.get_running_loop()
        self._controller.subscribe(self._on_image)
        self._load_queued()

    async def stop(self) -> None:
        """Unload every shard, and refuse all deferred calls."""
        self._is_running = False
        tasks = [task for task in (self._loading, self._creation) if task is not None]
        self._loading = self._creation = None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._queue.clear()
        self._unload_failed()
        for partition_index in {*self._elections, *self._deferred.partitions}:
            self.on_resigned(partition_index)

    @property
    def is_running(self) -> bool:
        """Whether requests are served."""
        return self._is_running

    @property
    def is_loading(self) -> bool:
        """Whether some shard is not loaded yet: its groups are missing from what is visible."""
        return any(election.is_loading for election in self._elections.values())

    @property
    def is_in_doubt(self) -> bool:
        """Whether another broker may have some shard by now: what is visible may be its past."""
        return not all(map(self._is_led, self._active))

    @property
    def is_reading(self) -> bool:
        """Whether some shard is read here, or about to be; not one that waits for other brokers."""
        return any(one.is_loading and not one.is_waiting for one in self._elections.values())

    def is_loading_partition(self, partition_index: int) -> bool:
        """Whether a record appended now may be missed by the shard that is being read."""
        election = self._elections.get(partition_index)
        return election is not None and election.is_loading

    @property
    def waiting_count(self) -> int:
        """Partitions that are not loaded because their log end is not committed yet."""
        return sum(1 for one in self._elections.values() if one.is_loading and one.is_waiting)

    def on_elected(self, partition_index: int, leader_epoch: int) -> None:
        """This broker leads the partition in `leader_epoch`: load it."""
        self._look_at_topic()
        if self._is_outdated(partition_index, leader_epoch):
            return
        known = self._elections.get(partition_index)
        if known is not None:
            if leader_epoch == known.leader_epoch and known.state is not ElectionState.FAILED:
                return
            self._end(known, ElectionState.CLOSED)
        self._begin(partition_index, leader_epoch)

    def on_resigned(self, partition_index: int, leader_epoch: int | None = None) -> None:
        """This broker does not lead the partition in `leader_epoch`.

        None: its log is not here any more, whatever the epoch.
        """
        self._look_at_topic()
        if leader_epoch is not None:
            if self._is_outdated(partition_index, leader_epoch):
                return
            # Another broker's to report, or none's.
            self.unavailable.clear(partition_index)
        election = self._elections.get(partition_index)
        if election is not None:
            self._end(election, ElectionState.CLOSED)
        self._deferred.refuse(partition_index, ErrorCode.NOT_COORDINATOR)

    def _is_outdated(self, partition_index: int, leader_epoch: int) -> bool:
        """Whether a newer epoch has been seen; remembers this one if not."""
        newest = self._newest_epochs.get(partition_index, leader_epoch)
        if leader_epoch < newest:
            return True
        self._newest_epochs[partition_index] = leader_epoch
        return False

    def _look_at_topic(self) -> None:
        """End all elections of the topic's last incarnation: the next has epochs of its own."""
        topic = self._controller.image.topics.get(self.topic)
        if topic is None or topic.topic_id == self._topic_id:
            return
        if self._topic_id is not None:
            self._forget_topic(self._topic_id)
        self._topic_id = topic.topic_id

    def _forget_topic(self, topic_id: UUID) -> None:
        if topic_id == self._topic_id:
            self._topic_id = None
            self._newest_epochs.clear()
        for election in list(self._elections.values()):
            if election.topic_id == topic_id:
                self._end(election, ElectionState.CLOSED)
                self._deferred.refuse(election.partition_index, ErrorCode.NOT_COORDINATOR)

    def _begin(self, partition_index: int, leader_epoch: int, *, failures: int = 0) -> None:
        election = Election(partition_index, leader_epoch, self._topic_id, failures=failures)
        self._elections[partition_index] = election
        self._queue.append(election)
        self._load_queued()

    def _end(self, election: Election, state: ElectionState) -> AnyShard | None:
        """The election is over, or has FAILED; its shard, if it has one, serves no more.

        Returns:
            The shard, which the caller has to unload, where it is FAILED.
        """
        election.move_to(state)
        shard = self._active.pop(election.partition_index, None)
        if state is ElectionState.FAILED:
            return shard
        del self._elections[election.partition_index]
        if shard is not None:
            summary = shard.summary()
            shard.on_unloaded()
            if summary:
                logger.info(
                    "%s unloaded partition=%s-%d %s",
                    self._what,
                    self.topic,
                    election.partition_index,
                    summary,
                )
        return None

    def _fail(self, election: Election, code: ErrorCode | None) -> None:
        """Load the partition again, if still here and readable: memory may differ from the log."""
        if ElectionState.FAILED not in TRANSITIONS[election.state]:
            return
        shard = self._end(election, ElectionState.FAILED)
        if shard is not None:
            # The caller is in the middle of a change of the shard.
            self._failed.append(shard)
            self._timer.call_later_ms(0, self._unload_failed)
        index = election.partition_index
        partition = self._replicas.leader_of(self.topic, index)
        if partition is None or partition.log.failure is not None or not self._is_running:
            # The partition is gone, with its topic or its disk: its return is an election.
            return
        logger.error(
            "append failed: reloading shard topic=%s partition=%d error=%s",
            self.topic,
            index,
            "refused" if code is None else code.name,
        )
        self.stats.reloads += 1
        self._end(election, ElectionState.CLOSED)
        self._begin(index, election.leader_epoch)

    def _unload_failed(self) -> None:
        failed, self._failed = self._failed, []
        for shard in failed:
            shard.on_unloaded()

    # -- loading ---------------------------------------------------------------------------------

    def _load_queued(self) -> None:
        if self._is_running and self._queue and (self._loading is None or self._loading.done()):
            assert self._loop is not None
            self._loading = self._loop.create_task(self._load_all())

    async def _load_all(self) -> None:
        while self._queue:
            election = self._queue.popleft()
            if not election.is_loading:
                continue
            if election.state is ElectionState.INITIAL:
                election.move_to(ElectionState.LOADING)
            try:
                shard = await self._load(election)
                if shard is not None:
                    await self._activate(election, shard)
            except Exception as error:  # noqa: BLE001  whatever it is, the others are loaded
                self._load_failed(election, error)

    async def _load(self, election: Election) -> AnyShard | None:
        """The shard; None if it is no longer wanted, or its log end offset is not committed."""
        started_ms = self._clock.monotonic_ms()
        where = TopicPartition(self.topic, election.partition_index)
        partition = self._replicas.leader_of(*where)
        if partition is None:
            raise KeyError(str(where))
        log = partition.log
        end_offset = log.next_offset
        if log.high_watermark < end_offset:
            election.waits += 1
            election.is_waiting = True
            self._replicas.when_committed(
                partition,
                end_offset - 1,
                end_offset,
                lambda code, _offset: self._go_on_loading(election, code, end_offset),
                COMMIT_WAIT_MS,
            )
            return None
        election.is_waiting = False
        shard = self._build(where, election.leader_epoch, partial(self._fail, election))
        loader = ShardLoader(
            self._replicas,
            where,
            shard,
            read_size=self._read_size,
            slices=Slices(self._clock),
            is_wanted=lambda: election.is_loading,
        )
        try:
            await loader.load(log.log_start_offset, end_offset)
            self.stats.skipped_records += loader.skipped_records
            await shard.on_loaded()
        except BaseException:
            shard.on_unloaded()
            raise
        if not election.is_loading:
            # Resigned meanwhile: the records may be those of a deleted topic.
            shard.on_unloaded()
            return None
        took_ms = self._clock.monotonic_ms() - started_ms
        self.stats.loaded_partitions += 1
        self.stats.loaded_records += loader.records
        self.stats.loading_ms += took_ms
        if loader.records:
            logger.info(
                "%s loaded partition=%s-%d %s records=%d elapsed_ms=%d",
                self._what,
                self.topic,
                election.partition_index,
                shard.summary(),
                loader.records,
                took_ms,
            )
        return shard

    def _go_on_loading(self, election: Election, code: ErrorCode, end_offset: int) -> None:
        """The log end is committed, or is not after a while, or the partition has left."""
        if not election.is_loading:
            return
        if code is ErrorCode.NONE:
            self._retry_load(election)
            return
        if code is ErrorCode.REQUEST_TIMED_OUT:
            logger.warning(
                "%s not loaded yet: the log end is not committed partition=%s-%d end_offset=%d "
                "leader_epoch=%d waits=%d",
                self._what,
                self.topic,
                election.partition_index,
                end_offset,
                election.leader_epoch,
                election.waits,
            )
        # Never at once: the wait may have been refused, and a resignation may be on its way.
        self._timer.call_later_ms(UNCOMMITTED_DELAY_MS, partial(self._retry_load, election))

    def _retry_load(self, election: Election) -> None:
        if election.is_loading:
            self._queue.append(election)
            self._load_queued()

    async def _activate(self, election: Election, shard: AnyShard) -> None:
        election.move_to(ElectionState.ACTIVE)
        index = election.partition_index
        self._active[index] = shard
        self.unavailable.clear(index)
        self._deferred.serve(index, shard)
        try:
            await shard.on_active(dict(self._deleted_topics))
        except Exception:
            # It serves all the same.
            logger.exception(
                "%s loaded, but pending work failed partition=%s-%d", self._what, self.topic, index
            )

    def _load_failed(self, election: Election, error: Exception) -> None:
        """Leave the partition without a coordinator: served empty, it would lose its state."""
        if not election.is_loading:
            # It was resigned: the log may have been truncated under the load, or closed.
            return
        self.stats.load_failures += 1
        index = election.partition_index
        is_expected = isinstance(error, (DecodeError, StorageError, OSError, KeyError))
        logger.error(
            "%s cannot be loaded partition=%s-%d error=%s",
            self._what,
            self.topic,
            index,
            error,
            exc_info=None if is_expected else error,
        )
        self._end(election, ElectionState.FAILED)
        self.unavailable.set(index, f"{self._what} cannot be loaded: {error}")
        self._deferred.refuse(index, ErrorCode.NOT_COORDINATOR)
        if isinstance(error, (StorageError, OSError)):
            # Descriptors that are short come back, and another replica may fill up what is missing.
            # Five doublings pass the limit; a power of some thousand is no float any more.
            delay_ms = min(RELOAD_FIRST_MS * 2 ** min(election.failures, 5), RELOAD_MAX_MS)
            self._timer.call_later_ms(delay_ms, partial(self._load_again, election))

    def _load_again(self, election: Election) -> None:
        """Read a partition again that could not be read, if it is led here in the same election."""
        index = election.partition_index
        if self._is_running and self._elections.get(index) is election:
            self._end(election, ElectionState.CLOSED)
            self._begin(index, election.leader_epoch, failures=election.failures + 1)

    # -- topics ----------------------------------------------------------------------------------

    async def _on_image(self, old: "ClusterImage", new: "ClusterImage") -> None:
        """Drop all shards if their topic was deleted; notify them of changes of other topics.

        State kept of a deleted topic would be lost with the next start, and a topic that is created
        again may even spread keys differently.
        """
        if old.topics is new.topics:
            return
        own = old.topics.get(self.topic)
        if own is not None and own.topic_id not in new.topics_by_id:
            self._forget_topic(own.topic_id)
            self.unavailable.clear_all()
        change = TopicsChange(old, new)
        self._deleted_topics.update(change.deleted)
        while len(self._deleted_topics) > DELETED_TOPICS_MAX:
            del self._deleted_topics[next(iter(self._deleted_topics))]
        for shard in list(self._active.values()):
            await shard.on_topics_changed(change)

    async def ensure_topic(self) -> None:
        """Create the topic if it is not there.

        Raises:
            ApiError: It could not be created.
        """
        await self._controller.ensure_internal_topic(self.topic)

    # -- which shard -----------------------------------------------------------------------------

    def partition_for(self, key: str) -> int:
        """The partition of a key, whether the topic exists yet or not."""
        topic = self._controller.image.topics.get(self.topic)
        count = len(topic.partitions) if topic is not None else 0
        return partition_for_group(key, count or self._partition_count)

    def find(self, key: str) -> AnyShard | ErrorCode:
        """The shard of a key, or why it cannot be served here and now."""
        # As `partition_for`, inlined: every request of a coordinator takes this path.
        topic = self._controller.image.topics.get(self.topic)
        count = len(topic.partitions) if topic is not None else self._partition_count
        partition_index = partition_for_group(key, count or self._partition_count)
        shard = self._active.get(partition_index)
        if shard is None:
            return self._why_not(partition_index)
        # As `_is_led`, inlined.
        partition = self._replicas.leader_of(self.topic, partition_index)
        if partition is None or (
            partition.leading is not None and partition.is_in_doubt(self._clock.monotonic_ms())
        ):
            return ErrorCode.NOT_COORDINATOR
        return shard

    def _is_led(self, partition_index: int) -> bool:
        """Whether the partition is led here, and certainly by no other broker.

        Else a resignation is on its way, or another broker may lead by now without our having heard
        of it: clients have to look for their coordinator, whatever is in memory here.
        """
        partition = self._replicas.leader_of(self.topic, partition_index)
        return partition is not None and not partition.is_in_doubt(self._clock.monotonic_ms())

    def _why_not(self, partition_index: int) -> ErrorCode:
        if not self._is_running:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        election = self._elections.get(partition_index)
        if election is not None and election.is_loading and self._is_led(partition_index):
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ErrorCode.NOT_COORDINATOR

    def shard_at(self, partition_index: int) -> AnyShard | None:
        """The active shard of a partition."""
        return self._active.get(partition_index)

    def shards(self) -> Collection[AnyShard]:
        """The active shards; not to be kept while the loop runs other things."""
        return self._active.values()

    def when_active(self, key: str, work: Callable[[AnyShard], None], refuse: Refuse) -> None:
        """Call `work` with the key's shard: now, or when it has been loaded.

        The topic is created if it does not exist. `refuse` is called instead, with the client's
        error, if there will be no shard, or none in time.
        """
        found = self.find(key)
        if not isinstance(found, ErrorCode):
            work(found)
            return
        is_new = self.topic not in self._controller.image.topics
        comes = found is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS or (is_new and self._is_running)
        if not comes:
            refuse(found)
            return
        self._deferred.wait(self.partition_for(key), work, refuse)
        if is_new and (self._creation is None or self._creation.done()):
            self._creation = asyncio.get_running_loop().create_task(self._create_topic())

    async def _create_topic(self) -> None:
        try:
            await self.ensure_topic()
        except ApiError as error:
            logger.warning("topic cannot be created topic=%s error=%s", self.topic, error)
            for partition_index in self._deferred.partitions:
                self._deferred.refuse(partition_index, ErrorCode.COORDINATOR_NOT_AVAILABLE)
