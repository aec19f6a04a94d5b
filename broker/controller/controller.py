"""The controller: the one place that changes the cluster's state.

    request ──> plan on the image ──> commit to the store ──> image feed ──> listeners ──> answer
                (refusals end here)   (compare-and-set,       (one image     (logs are created
                                       durable)                a revision)    and deleted)

Changes run one after the other (`broker.controller.changes`), so listeners see every image once and
in order. What a listener could not do (a directory that failed) does not undo the change: the
metadata is the truth, and a start brings the disk in line with it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from broker.controller.changes import Changes
from broker.controller.cluster_opening import ClusterIdError, open_cluster
from broker.controller.configs.config_changes import ConfigChanges
from broker.controller.configs.configs import ConfigOperation, ConfigRules
from broker.controller.configs.group_settings import (
    ConsumerGroupSettings,
    GroupSettings,
    ShareGroupSettings,
)
from broker.controller.feature_changes import FeatureChanges
from broker.controller.image_feed import ImageFeed, Listener, ListenerOfNow
from broker.controller.images.cluster_image import (
    BrokerEndpoint,
    BrokerImage,
    ClusterImage,
    ResourceType,
    TopicImage,
)
from broker.controller.images.features import FeatureUpdate
from broker.controller.images.metadata_records import (
    REMOTE_CLAIM_KEY,
    ConfigResource,
    deleted_topic_key,
    directory_key,
    encode_directory,
    encode_record,
)
from broker.controller.images.response_cache import ResponseCache
from broker.controller.images.results import CreateTopicResult, Result
from broker.controller.producer_ids import (
    PRODUCER_ID_BLOCK_SIZE,
    ProducerIdBlocks,
    ProducerIds,
)
from broker.controller.store.metadata_store import Delete, MetadataStore, Put, StoreReplacedError
from broker.controller.store.store_writer import Unit
from broker.controller.topic_changes import TopicChanges
from broker.controller.topic_planner import Choice, TopicPlanner
from broker.controller.topics.auto_creation import AutoCreation
from broker.controller.topics.lingering_brokers import LingeringBrokers
from broker.controller.topics.tiered_topics import shown, tiered_topics
from broker.controller.topics.topic_metadata import TopicMetadata
from broker.controller.topics.topics import NewPartitions, NewTopic
from broker.runtime.errors import ApiError
from broker.runtime.timer import Timer
from config.broker import BrokerConfig
from config.errors import InvalidConfigError
from config.topic_rules import check_stored
from protocol.error_codes import ErrorCode
from storage.environment.randomness import Randomness

LOGGER = logging.getLogger(__name__)


class RemoteStorageDisabledError(Exception):
    """Topics have their history in remote storage, and the broker has none; it must not start."""


def check_remote_storage(image: ClusterImage, settings: BrokerConfig) -> None:
    """Refuse a start without remote storage where topics need it.

    Raises:
        RemoteStorageDisabledError: With Kafka's sentence and the topics' names.
    """
    tiered = tiered_topics(image)
    try:
        check_stored(
            {"remote_storage_enable": bool(tiered)},
            remote_storage_system_enabled=settings.remote_log_storage_system_enable,
        )
    except InvalidConfigError as error:
        raise RemoteStorageDisabledError(f"{error} ({shown(tiered)})") from error


class Controller:
    """See the module; made by `Controller.open`. Runs on the loop's thread."""

    def __init__(
        self,
        store: MetadataStore,
        settings: BrokerConfig,
        image: ClusterImage,
        randomness: Randomness,
        *,
        is_alone: bool = True,
    ) -> None:
        self._store = store
        self._settings = settings
        self._feed = ImageFeed(store, image)
        self.changes = Changes(self._feed, store if is_alone else None)
        self._is_alone = is_alone
        self._own = Changes(self._feed, store)
        self._following: asyncio.Task[None] | None = None
        self._blocks = ProducerIdBlocks(store)
        self.producer_ids = ProducerIds(self._blocks)
        self.config_rules = ConfigRules(settings)
        self._config_changes = ConfigChanges(
            self.changes, image=lambda: self._feed.image, rules=self.config_rules
        )
        self._group_settings = GroupSettings(settings)
        self._feature_changes = FeatureChanges(
            self.changes, image=lambda: self._feed.image, node_id=settings.node_id
        )
        self._planner = TopicPlanner(settings, self.config_rules, randomness)
        self.topic_changes = TopicChanges(
            self.changes, self._planner, image=lambda: self._feed.image
        )
        self._auto_creation = AutoCreation(
            settings,
            image=lambda: self._feed.image,
            create=self._request_topics,
            start=self.changes.start,
            lowers_replication=is_alone,
        )
        self.create_by_controller: (
            Callable[[Sequence[NewTopic]], Awaitable[list[CreateTopicResult] | None]] | None
        ) = None
        """Has topics created by the active controller, where that is another broker."""
        self.lingering = LingeringBrokers()
        self.is_isolated: Callable[[], bool] = lambda: False
        """Whether others may have taken this broker's place, and it cannot hear of it."""
        self.assign_by_controller: Callable[..., Awaitable[set[UUID]]] | None = None
        """In a cluster, has the active controller write down where replicas lie; see
        `assign_directories`."""
        self.response_cache = ResponseCache()
        self.topic_metadata = TopicMetadata()

    @classmethod
    async def open(
        cls,
        store: MetadataStore,
        settings: BrokerConfig,
        *,
        randomness: Randomness,
        cluster_id: str | None = None,
        endpoints: Mapping[str, BrokerEndpoint] | None = None,
        is_alone: bool = True,
    ) -> "Controller":
        """Load the cluster's state, give a new cluster its id; place this broker if it is alone.

        Args:
            store: Open; stays the caller's to close.
            settings: This broker's.
            randomness: For topic ids, the cluster id and where placement begins.
            cluster_id: What the data directories say; None: `cluster.id` of the settings, else what
                the store has, else a random one.
            endpoints: What to advertise per listener; None: as the settings say.
            is_alone: The store is of this node, which is all brokers there are. Else brokers
                register in the store (`broker.membership`), and the image has those that did.

        Raises:
            ClusterIdError: The store belongs to another cluster, or `cluster.id` names another
                than the directories.
            RemoteStorageDisabledError: Topics are tiered and `remote.log.storage.system.enable` is
                not set.
            MetadataFormatError: The store's content cannot be read.
            StoreError: The store cannot be used.
        """
        wanted = settings.cluster_id
        if cluster_id and wanted and cluster_id != wanted:
            what = "the log directories belong"
            raise ClusterIdError(wanted, cluster_id, what, " as cluster.id says")
        image = await open_cluster(
            store,
            settings,
            randomness=randomness,
            cluster_id=cluster_id or wanted,
            is_alone=is_alone,
        )
        check_remote_storage(image, settings)
        if not is_alone:
            return cls(store, settings, image, randomness, is_alone=False)
        if endpoints is None:
            endpoints = {
                listener.name: BrokerEndpoint(listener.host, listener.port)
                for listener in settings.listeners_for_clients
            }
        broker = BrokerImage(settings.node_id, dict(endpoints), settings.broker_rack)
        return cls(store, settings, image.with_brokers([broker]), randomness)

    @property
    def image(self) -> ClusterImage:
        """The cluster as it stands; read it once per request."""
        return self._feed.image

    @property
    def settings(self) -> BrokerConfig:
        """What this broker was started with; `effective_settings` has what was set since."""
        return self._settings

    @property
    def effective_settings(self) -> BrokerConfig:
        """What this broker uses now: as it was started, then what was set at run time."""
        return self.config_rules.effective(self._feed.image)

    def group_config(self, group_id: str) -> ConsumerGroupSettings:
        """Settings of a consumer group as they stand; cheap enough for every heartbeat."""
        return self._group_settings.of(self._feed.image, group_id)

    def share_group_config(self, group_id: str) -> ShareGroupSettings:
        """Settings of a share group as they stand; cheap enough for every heartbeat."""
        return self._group_settings.share_of(self._feed.image, group_id)

    def subscribe(self, listener: Listener) -> None:
        """Have `listener` awaited with (old, new) after every change, in order of subscription.

        It is not called with the image that is there already.
        """
        self._feed.subscribe(listener)

    def subscribe_now(self, listener: ListenerOfNow) -> None:
        """Have `listener` called with (old, new) in the turn of every change; see `ImageFeed`."""
        self._feed.subscribe_now(listener)

    def subscribe_revisions(self, listener: Callable[[ClusterImage], None]) -> None:
        """Have `listener` called after every change of the store; see `ImageFeed`."""
        self._feed.subscribe_revisions(listener)

    async def reach(self, revision: int) -> None:
        """Wait until the image is of `revision` or later, and every listener has had it.

        Raises:
            StoreError: The store cannot be read, or is closed.
        """
        await self._feed.reach(revision)

    def advertise(self, endpoints: Mapping[str, BrokerEndpoint]) -> None:
        """Replace the advertised listeners of a single node, once bound and ports are known."""
        self._place_alone(listeners=dict(endpoints))

    def report_offline(self, directories: Iterable[UUID]) -> None:
        """Take which log directories of a single node are missing, or have failed."""
        self._place_alone(failed_directories=tuple(sorted(directories)))

    def _place_alone(self, **changes: Any) -> None:
        brokers = dict(self._feed.image.brokers)
        node_id = self._settings.node_id
        brokers[node_id] = replace(brokers[node_id], **changes)
        self._feed.place_brokers(list(brokers.values()))

    def follow(
        self,
        timer: Timer,
        *,
        on_replaced: Callable[[str], None],
        on_unsupported: Callable[[str], None],
    ) -> None:
        """Make images of all changes as they come, also of those of other brokers.

        Args:
            timer: For waiting while the store cannot be read.
            on_unsupported: Called, with a sentence, when the cluster has a feature at a level that
                this release does not have.
            on_replaced: Called, with the reason, when the store is not the one it was. The image
                stays what it is from then on.
        """
        self._feed.on_unsupported = on_unsupported
        following = asyncio.get_running_loop().create_task(
            self._feed.follow(timer), name="image feed"
        )

        def over(task: "asyncio.Task[None]") -> None:
            error = None if task.cancelled() else task.exception()
            if isinstance(error, StoreReplacedError):
                on_replaced(str(error))
            elif error is not None:
                LOGGER.error("image feed has ended", exc_info=error)

        following.add_done_callback(over)
        self._following = following

    async def aclose(self) -> None:
        """Finish what has begun; in a cluster, do not wait for a store that is away."""
        if not self._is_alone:
            await self._feed.aclose()
        await self.changes.aclose()
        await self._own.aclose()
        await self._feed.aclose()
        if self._following is not None:
            await asyncio.wait([self._following])
        await self.producer_ids.aclose()

    # -- topics ----------------------------------------------------------------------------------

    async def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False
    ) -> list[CreateTopicResult]:
        """Create topics; one result per topic, in order.

        Names are expected to differ (the handler answers for those given twice). Each topic is
        created whole or not at all; the request may be carried out for a part of its topics.
        """
        if validate_only:
            return [result for result, _ in self._planner.plan_topics(self._feed.image, topics)]
        return await self.changes.run(self.topic_changes.create(topics))

    async def delete_topics(self, topic_ids: Iterable[UUID]) -> dict[UUID, Result]:
        """Delete topics by id: their partitions, settings, and through the listeners their logs.

        Once committed it is done: a crash before the logs are gone leaves directories whose topic
        id is not in the image, which the next start removes.
        """
        return await self.changes.run(self.topic_changes.delete(list(dict.fromkeys(topic_ids))))

    async def forget_deleted(self, topic_ids: Iterable[UUID]) -> None:
        """Nothing of these is left in remote storage.

        In a cluster any broker says so: ids of topics never come back, and nothing is decided
        by the note's absence.
        """
        if not self._is_alone:
            for topic_id in topic_ids:
                await self._store.txn(then=[Delete(deleted_topic_key(topic_id))])
            return
        await self.changes.run(self.topic_changes.forget_deleted(list(topic_ids)))

    async def note_remote_claim(self) -> None:
        """Note for all brokers, also those to come, that the cluster has claimed a bucket.

        Raises:
            StoreError: The store refused.
        """
        if not await self.has_remote_claim():
            await self._store.txn(then=[Put(REMOTE_CLAIM_KEY, encode_record({}))])

    async def has_remote_claim(self) -> bool:
        """Whether that has been noted.

        Raises:
            StoreError: The store cannot be read.
        """
        return await self._store.get(REMOTE_CLAIM_KEY) is not None

    async def create_partitions(
        self, requests: Sequence[NewPartitions], *, validate_only: bool = False
    ) -> list[Result]:
        """Extend topics; one result per request, in order. Names are expected to differ."""
        if validate_only:
            return [
                result
                for result, _ in (
                    self._planner.plan_extension(self._feed.image, request) for request in requests
                )
            ]
        return await self.changes.run(self.topic_changes.extend(requests))

    async def begin_epochs(self, lost: Mapping[UUID, Collection[int]]) -> set[UUID]:
        """Raise the leader epochs of partitions whose logs are lost: their new logs are empty.

        Args:
            lost: Indexes, at least one, by topic id.

        Returns:
            The topics for which this is committed; the others have been deleted, or the store
            refuses.
        """
        return await self.changes.run(self.topic_changes.begin_epochs(lost))

    # -- log directories of this node --------------------------------------------------------------

    def place_by(self, placement: Callable[[], Choice]) -> None:
        """Have the log directories of new partitions chosen by `placement`, a choice a request."""
        self._planner.placement = placement

    async def assign_directories(
        self, places: Mapping[UUID, Mapping[int, UUID]], *, stays: bool = False
    ) -> set[UUID]:
        """Write down in which log directories of this node partitions lie.

        Args:
            places: By topic id, then index; at least one.
            stays: They lie there already. A member of a cluster says so until it is written down;
                a single node puts it right at its next start.

        Returns:
            The topics for which this is committed; the others have been deleted, or the store
            refuses.
        """
        if self.assign_by_controller is not None:
            return await self.assign_by_controller(places, stays=stays)
        return await self.changes.run(self.topic_changes.assign_directories(places))

    async def record_directories(self, paths: Mapping[UUID, str | None]) -> None:
        """Write down which log directories this node has, and where; None: it has it no longer.

        Raises:
            StoreError: The store refused.
        """
        units = []
        for directory_id, path in paths.items():
            key = directory_key(self._settings.node_id, directory_id)
            operation = Delete(key) if path is None else Put(key, encode_directory(path))
            units.append(Unit(compare=(), operations=(operation,)))
        # Its own keys, which every broker writes by itself.
        for error in await self._own.run(self._own.commit(units)):
            if error is not None:
                raise error

    # -- automatic creation of topics --------------------------------------------------------------

    def is_creating(self, name: str) -> bool:
        """Whether a topic is being created automatically: it does not serve requests yet."""
        return self._auto_creation.is_creating(name)

    def auto_create(self, name: str) -> "asyncio.Future[CreateTopicResult] | None":
        """Create a topic that a client used; see `AutoCreation.create`."""
        return self._auto_creation.create(name)

    async def _request_topics(self, topics: Sequence[NewTopic]) -> list[CreateTopicResult]:
        if not self.changes.is_controller and self.create_by_controller is not None:
            results = await self.create_by_controller(topics)
            if results is not None:
                return results
        return await self.create_topics(topics)

    async def ensure_internal_topic(self, name: str) -> TopicImage:
        """The topic, created with its own settings when it is not there yet.

        Raises:
            ApiError: It could not be created.
        """
        topic = self._feed.image.topics.get(name)
        if topic is not None:
            return topic
        future = self.auto_create(name)
        if future is None:
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        result = await asyncio.shield(future)
        if result.topic is None:
            raise ApiError(result.error, result.message)
        return result.topic

    # -- features and settings ---------------------------------------------------------------------

    async def update_features(
        self, updates: Sequence[FeatureUpdate], *, validate_only: bool = False
    ) -> tuple[ErrorCode, str | None]:
        """Change finalised levels, all that are asked for or none; the error and why."""
        return await self._feature_changes.update(updates, validate_only=validate_only)

    async def alter_configs(
        self,
        changes: Mapping[ConfigResource, Mapping[str, str]],
        *,
        validate_only: bool = False,
    ) -> dict[ConfigResource, Result]:
        """Replace all that is set on each resource (the old AlterConfigs)."""

        def plan(resource: ConfigResource) -> dict[str, str]:
            return dict(changes[resource])

        return await self._config_changes.alter(list(changes), plan, validate_only=validate_only)

    async def incremental_alter_configs(
        self,
        changes: Mapping[ConfigResource, Sequence[ConfigOperation]],
        *,
        validate_only: bool = False,
    ) -> dict[ConfigResource, Result]:
        """Set, delete, append to and subtract from single settings (KIP-339)."""

        def plan(resource: ConfigResource) -> dict[str, str]:
            current = self._feed.image.config(resource)
            return self.config_rules.after(resource, current, changes[resource])

        return await self._config_changes.alter(list(changes), plan, validate_only=validate_only)

    def judge_own(
        self,
        changes: Mapping[ConfigResource, Mapping[str, str] | Sequence[ConfigOperation]],
    ) -> dict[ConfigResource, ApiError]:
        """Refusals among changes of this broker's own settings, for what only it can judge.

        Args:
            changes: Of any resources, as `alter_configs` or `incremental_alter_configs` has them.
        """
        own = ConfigResource(ResourceType.BROKER, str(self._settings.node_id))
        if own not in changes:
            return {}
        image = self._feed.image
        current = image.config(own)
        change = changes[own]
        try:
            new = (
                dict(change)
                if isinstance(change, Mapping)
                else self.config_rules.after(own, current, change)
            )
            self.config_rules.check(own, new, current, image)
        except ApiError as error:
            return {own: error}
        return {}

    # -- producer ids ------------------------------------------------------------------------------

    async def allocate_producer_ids(self, count: int = PRODUCER_ID_BLOCK_SIZE) -> range:
        """A block of producer ids, never given out twice; see `ProducerIdBlocks.allocate`."""
        return await self._blocks.allocate(count)
