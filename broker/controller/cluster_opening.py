"""Opening of a cluster's state: read whole, and what a new cluster lacks is written.

    read ──> lacks nothing ──> the image
      ^  └─> lacks its id, features, settings ──> one transaction that finds them absent
      └───── made, or another broker was first, or the outcome is unknown

Several brokers may open a new cluster in the same moment: one of them writes, all read the same.
"""

from typing import Final

from broker.controller.configs.configs import MIN_ISR
from broker.controller.images.cluster_image import ClusterImage, ConfigResource, ResourceType
from broker.controller.images.features import INITIAL
from broker.controller.images.metadata_records import (
    CLUSTER_ID_KEY,
    FEATURES_KEY,
    INCARNATION_KEY,
    config_key,
    encode_config,
    encode_features,
)
from broker.controller.images.store_marks import check_marks
from broker.controller.store.metadata_store import (
    Compare,
    MetadataStore,
    OutcomeUnknownError,
    Put,
    RangeResult,
    StoreError,
    key_absent,
    value_equals,
)
from broker.controller.store.whole_range import whole_range
from broker.controller.topic_planner import fresh_id
from config.broker import BrokerConfig
from storage.environment.randomness import Randomness
from storage.types.uuid_text import format_uuid

ATTEMPTS_MAX: Final = 20
"""Each time another broker was first; then it is found out why by the operator."""


class ClusterIdError(Exception):
    """The store or the directories belong to another cluster; the broker must not start."""

    def __init__(
        self, wanted: str, found: str, what: str = "the metadata store belongs", why: str = ""
    ) -> None:
        super().__init__(f"{what} to cluster {found}, not to {wanted}{why}")
        self.wanted = wanted
        self.found = found


async def open_cluster(
    store: MetadataStore,
    settings: BrokerConfig,
    *,
    randomness: Randomness,
    cluster_id: str | None,
    is_alone: bool,
) -> ClusterImage:
    """The cluster's image, once it has an id, features and `min.insync.replicas`.

    Args:
        store: Open.
        settings: Of this broker, which a new cluster begins with.
        randomness: For ids.
        cluster_id: The one that the store must have, or gets; None: any, or a random one.
        is_alone: A single node, which is the controller. A cluster gets an incarnation, too.

    Raises:
        ClusterIdError: The store belongs to another cluster.
        MetadataFormatError: The store's content cannot be read.
        UnfinishedStoreError: The store's contents are half of a copy or of a recovery.
        StoreError: The store cannot be used.
    """
    for _ in range(ATTEMPTS_MAX):
        content = await whole_range(store, "")
        check_marks(content.items)
        image = ClusterImage.loaded(
            content.items, content.revision, controller_id=settings.node_id if is_alone else -1
        )
        if image.cluster_id and cluster_id and cluster_id != image.cluster_id:
            raise ClusterIdError(cluster_id, image.cluster_id)
        chosen = cluster_id or format_uuid(fresh_id(randomness))
        compare, puts = _lacking(content, image, chosen, settings)
        if not is_alone:
            _lacks(content, INCARNATION_KEY, format_uuid(fresh_id(randomness)), compare, puts)
        if not puts:
            return image
        try:
            await store.txn(compare=compare, then=puts)
        except OutcomeUnknownError:
            continue
    raise StoreError("other brokers change the cluster's settings again and again")


def _lacking(
    content: RangeResult, image: ClusterImage, cluster_id: str, settings: BrokerConfig
) -> tuple[list[Compare], list[Put]]:
    compare: list[Compare] = []
    puts: list[Put] = []
    _lacks(content, CLUSTER_ID_KEY, cluster_id, compare, puts)
    if all(item.key != FEATURES_KEY for item in content.items):
        compare.append(key_absent(FEATURES_KEY))
        puts.append(Put(FEATURES_KEY, encode_features(INITIAL)))
    everywhere = ConfigResource(ResourceType.BROKER, "")
    current = image.config(everywhere)
    if MIN_ISR not in current:
        key = config_key(everywhere)
        compare.append(value_equals(key, encode_config(current)) if current else key_absent(key))
        value = encode_config({**current, MIN_ISR: str(settings.min_insync_replicas)})
        puts.append(Put(key, value))
    return compare, puts


def _lacks(
    content: RangeResult, key: str, text: str, compare: list[Compare], puts: list[Put]
) -> None:
    if all(item.key != key for item in content.items):
        compare.append(key_absent(key))
        puts.append(Put(key, text.encode()))
