"""The topic `__remote_log_metadata` itself: found, or created with the settings it must have.

It is an ordinary topic to clients, as in Kafka (`Topic.java` does not list it): Metadata does not
mark it internal, and an authorized client may read and write it. Records that are none of ours are
counted and change nothing (`tiered.metadata.partition_reader`).

Source: Kafka, TopicBasedRemoteLogMetadataManager.java (createTopic),
TopicBasedRemoteLogMetadataManagerConfig.java.
"""

import logging
from typing import TYPE_CHECKING, Final

from broker.controller.configs.configs import ConfigOperation, Operation
from broker.controller.images.metadata_records import ConfigResource, ResourceType
from broker.controller.images.topic_names import REMOTE_LOG_METADATA
from broker.controller.topics.topics import REMOTE_LOG_METADATA_CONFIGS, NewTopic
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode
from tiered.errors import RemoteStorageError

if TYPE_CHECKING:
    from broker.controller.controller import Controller
    from broker.controller.images.cluster_image import TopicImage

__all__ = [
    "REMOTE_LOG_METADATA",
    "TOPIC_CONFIGS",
    "ensure_cluster_metadata_topic",
    "ensure_metadata_topic",
]

LOGGER = logging.getLogger(__name__)

TOPIC_CONFIGS: Final = REMOTE_LOG_METADATA_CONFIGS


async def ensure_metadata_topic(
    controller: "Controller", *, partitions: int, replication_factor: int
) -> "TopicImage":
    """The topic as it is; with `partitions` when it has to be created first.

    The replication factor is lowered to the number of brokers there are. On a topic that another
    program has made (Kafka, say) settings that would lose events are corrected.

    Raises:
        RemoteStorageError: The controller cannot do it now.
    """
    topic = controller.image.topics.get(REMOTE_LOG_METADATA)
    if topic is None:
        await _create(controller, partitions, replication_factor)
        topic = controller.image.topics.get(REMOTE_LOG_METADATA)
        if topic is None:
            raise RemoteStorageError(f"{REMOTE_LOG_METADATA} was deleted at once")
    elif len(topic.partitions) != partitions:
        LOGGER.warning(
            "remote.log.metadata.topic.num.partitions has no effect: %s has partitions=%d, not %d",
            REMOTE_LOG_METADATA,
            len(topic.partitions),
            partitions,
        )
    await _correct(controller, topic)
    return topic


async def ensure_cluster_metadata_topic(controller: "Controller") -> "TopicImage":
    """The topic of a cluster as it is; created with the configured partitions and replicas.

    Never with fewer replicas: until enough brokers are there it is waited for. Settings that would
    lose events are corrected by the broker that is the controller.

    Raises:
        RemoteStorageError: It cannot be created now, or its settings lose events.
    """
    topic = controller.image.topics.get(REMOTE_LOG_METADATA)
    if topic is None:
        try:
            topic = await controller.ensure_internal_topic(REMOTE_LOG_METADATA)
        except ApiError as error:
            raise RemoteStorageError(
                f"{REMOTE_LOG_METADATA} cannot be created with as many replicas as "
                f"rlmm.config.remote.log.metadata.topic.replication.factor says: {error}"
            ) from error
    await _correct(controller, topic)
    return topic


async def _create(controller: "Controller", partitions: int, replication_factor: int) -> None:
    brokers = max(len(controller.image.brokers), 1)
    (result,) = await controller.create_topics(
        [
            NewTopic(
                REMOTE_LOG_METADATA,
                partitions,
                min(replication_factor, brokers),
                (),
                tuple(TOPIC_CONFIGS.items()),
            )
        ]
    )
    if result.error not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
        raise RemoteStorageError(
            f"{REMOTE_LOG_METADATA} cannot be created: {result.error.name} {result.message or ''}"
        )


async def _correct(controller: "Controller", topic: "TopicImage") -> None:
    wrong = {
        name: value for name, value in TOPIC_CONFIGS.items() if topic.overrides.get(name) != value
    }
    if not wrong:
        return
    resource = ConfigResource(ResourceType.TOPIC, REMOTE_LOG_METADATA)
    results = await controller.incremental_alter_configs(
        {resource: [ConfigOperation(name, Operation.SET, value) for name, value in wrong.items()]}
    )
    result = results[resource]
    if result.error is not ErrorCode.NONE:
        raise RemoteStorageError(
            f"{REMOTE_LOG_METADATA} keeps settings that lose events ({', '.join(wrong)}): "
            f"{result.error.name} {result.message or ''}"
        )
    LOGGER.warning("settings of %s corrected %s", REMOTE_LOG_METADATA, wrong)
