"""The actions of a scenario: those of Kafka's TieredStorageTestHarness, one class each.

Each does its work on a running cluster and returns when what it expects holds; what does not come
about within `context.WAIT_S` fails the scenario. Names, arguments and meaning are Kafka's, seen
from outside: where Kafka's harness looks into the broker's objects, these ask by the protocol, look
into the bucket and into log directories.

Source: Kafka, storage/src/test/java/org/apache/kafka/tiered/storage/actions.
"""

from tests.system.tiered.broker_actions import (
    AlterLogDir,
    BounceBroker,
    EraseBrokerStorage,
    ReassignReplica,
    ShrinkReplica,
    StartBroker,
    StopBroker,
    UpdateBrokerConfig,
    UpdateTopicConfig,
)
from tests.system.tiered.expectations import (
    ExpectBrokerInISR,
    ExpectEmptyRemoteStorage,
    ExpectLeader,
    ExpectLeaderEpochCheckpoint,
    ExpectListOffsets,
    ExpectTopicIdToMatchInRemoteStorage,
    ExpectUserTopicMappedToMetadataPartitions,
)
from tests.system.tiered.topic_actions import (
    Action,
    Consume,
    CreatePartitions,
    CreateTopic,
    DeleteRecords,
    DeleteTopic,
    ExpectedSegment,
    Produce,
    one_batch_segments,
)

ACTIONS: tuple[type, ...] = (
    CreateTopic,
    CreatePartitions,
    Produce,
    Consume,
    BounceBroker,
    StartBroker,
    StopBroker,
    EraseBrokerStorage,
    ReassignReplica,
    ShrinkReplica,
    AlterLogDir,
    DeleteRecords,
    DeleteTopic,
    UpdateBrokerConfig,
    UpdateTopicConfig,
    ExpectLeader,
    ExpectBrokerInISR,
    ExpectLeaderEpochCheckpoint,
    ExpectListOffsets,
    ExpectEmptyRemoteStorage,
    ExpectTopicIdToMatchInRemoteStorage,
    ExpectUserTopicMappedToMetadataPartitions,
)
"""The 22 of Kafka's harness."""

__all__ = [
    "ACTIONS",
    "Action",
    "AlterLogDir",
    "BounceBroker",
    "Consume",
    "CreatePartitions",
    "CreateTopic",
    "DeleteRecords",
    "DeleteTopic",
    "EraseBrokerStorage",
    "ExpectBrokerInISR",
    "ExpectEmptyRemoteStorage",
    "ExpectLeader",
    "ExpectLeaderEpochCheckpoint",
    "ExpectListOffsets",
    "ExpectTopicIdToMatchInRemoteStorage",
    "ExpectUserTopicMappedToMetadataPartitions",
    "ExpectedSegment",
    "Produce",
    "ReassignReplica",
    "ShrinkReplica",
    "StartBroker",
    "StopBroker",
    "UpdateBrokerConfig",
    "UpdateTopicConfig",
    "one_batch_segments",
]
