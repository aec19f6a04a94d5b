"""Identity of the broker, admin port, log lines."""

from typing import Literal

from config.compound_kinds import HostPort
from config.definition import Settings, config_key, count
from config.kinds import Boolean, Choice, Text
from config.listeners import Endpoint


class NodeSettings(Settings):
    """Identity, admin port, the broker's own log lines."""

    node_id: int = config_key(
        "node.id",
        count(0),
        default=1,
        text="This broker's number in the cluster; clients see it in Metadata.",
        difference="Kafka has no default; ours lets a single node start with nothing set. "
        "`broker.id` alone sets it too.",
    )
    broker_id: int = config_key(
        "broker.id",
        count(-1, special=((-1, "as node.id"),)),
        default=-1,
        text="Old name of `node.id`. When both are set they must be equal.",
    )
    broker_rack: str | None = config_key(
        "broker.rack",
        Text("name of a rack or zone"),
        default=None,
        text="Rack of this broker: reported to clients, and used to spread replicas.",
    )
    cluster_id: str | None = config_key(
        "cluster.id",
        Text("22 characters of base64url, as `kafka-storage random-uuid` prints them"),
        default=None,
        text="Id of a new cluster, written into its data directories at the first start. Later "
        "starts must not contradict what is written there. Unset: a random one. The container "
        "image's `CLUSTER_ID` sets it too.",
        source="Varve",
    )
    admin_listener: Endpoint | None = config_key(
        "admin.listener",
        HostPort(),
        default=Endpoint("127.0.0.1", 9644),
        text="Address of the HTTP server for `/metrics`, `/healthz` and `/readyz`. Empty: "
        "no such server.",
        source="Varve",
    )
    log_format: Literal["key=value", "json"] = config_key(
        "log.format",
        Choice(("key=value", "json")),
        default="key=value",
        text="Form of the broker's own log lines, which go to standard error.",
        source="Varve",
    )
    log_level: Literal["debug", "info", "warning", "error"] = config_key(
        "log.level",
        Choice(("debug", "info", "warning", "error"), ignore_case=True),
        default="info",
        text="Least severity of the broker's own log lines.",
        source="Varve",
    )
    auto_create_topics_enable: bool = config_key(
        "auto.create.topics.enable",
        Boolean(),
        default=True,
        text="Create a topic automatically when a client that allows it requests one that "
        "does not exist.",
    )
    delete_topic_enable: bool = config_key(
        "delete.topic.enable",
        Boolean(),
        default=True,
        text="Allow DeleteTopics; otherwise it is answered with TOPIC_DELETION_DISABLED.",
    )
    num_partitions: int = config_key(
        "num.partitions",
        count(1, "partitions"),
        default=1,
        text="Number of partitions of topics that are created without one.",
    )
    default_replication_factor: int = config_key(
        "default.replication.factor",
        count(1, "replicas"),
        default=1,
        text="Replication factor of topics that are created without one.",
    )
    max_request_partition_size_limit: int = config_key(
        "max.request.partition.size.limit",
        count(1, "partitions"),
        default=2000,
        text="Most partitions in one answer to DescribeTopicPartitions.",
        source="KIP-966",
    )
    background_threads: int = config_key(
        "background.threads",
        count(1, "threads"),
        default=10,
        text="Threads for retention, flushing and file deletion.",
        difference="Size of the pool, never below 4, in which everything runs that waits for the "
        "disk, also uncached reads and syncs.",
        dynamic=True,
    )
    controlled_shutdown_enable: bool = config_key(
        "controlled.shutdown.enable",
        Boolean(),
        default=True,
        text="Hand leadership over before stopping.",
        difference="No effect on a single node: no other broker can take over.",
    )
