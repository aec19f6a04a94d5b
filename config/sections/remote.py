"""Remote storage: copying, expiring, reading back, and the metadata about it (KIP-405)."""

from config.definition import Settings, config_key, count, milliseconds, size
from config.kinds import LONG_MAX, Boolean, Double, Integer, Text
from config.remote_kinds import Implementation

STORAGE_MANAGER = "io.aiven.kafka.tieredstorage.RemoteStorageManager"
"""The plugin whose settings and whose layout of the bucket are ours."""

METADATA_MANAGER = (
    "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager"
)
"""Kafka's: records in `__remote_log_metadata`."""

STORAGE_PREFIX = "rsm.config."
METADATA_PREFIX = "rlmm.config."

_NO_CLASSES = "No effect: nothing is loaded from elsewhere."
_ANY_PREFIX = "Accepted, and what is set under another prefix is shown under the usual one."


class RemoteLogSettings(Settings):
    """Remote storage, Kafka's settings.

    Those under `rlmm.config.` are of Kafka's metadata manager on a topic.
    """

    remote_log_storage_system_enable: bool = config_key(
        "remote.log.storage.system.enable",
        Boolean(),
        default=False,
        text="Enable tiered storage. Closed segments of topics with "
        "`remote.storage.enable` are then copied to remote storage. It cannot be "
        "disabled while such topics exist.",
        source="KIP-405",
    )
    remote_log_storage_manager_class_name: str | None = config_key(
        "remote.log.storage.manager.class.name",
        Implementation(
            {STORAGE_MANAGER: STORAGE_MANAGER},
            f"leave this unset or use {STORAGE_MANAGER}, and choose the object store with "
            "rsm.config.storage.backend.class (filesystem or s3)",
        ),
        default=None,
        text="Class of the RemoteStorageManager, which copies and reads segments. Aiven's "
        "plugin is accepted: its settings are ours, and so is its layout of the "
        "bucket.",
        source="KIP-405",
        difference=f"{_NO_CLASSES} Unset is the same as Aiven's.",
    )
    remote_log_storage_manager_class_path: str | None = config_key(
        "remote.log.storage.manager.class.path",
        Text("class path"),
        default=None,
        text="Class path of that class, in Kafka.",
        source="KIP-405",
        difference=_NO_CLASSES,
    )
    remote_log_storage_manager_impl_prefix: str = config_key(
        "remote.log.storage.manager.impl.prefix",
        Text("beginning of names", non_empty=True),
        default=STORAGE_PREFIX,
        text="Prefix of the settings of the RemoteStorageManager.",
        source="KIP-405",
        difference=_ANY_PREFIX,
    )
    remote_log_metadata_manager_class_name: str = config_key(
        "remote.log.metadata.manager.class.name",
        Implementation(
            {METADATA_MANAGER: METADATA_MANAGER},
            f"leave this unset or use {METADATA_MANAGER}; tier.metadata.snapshots=bucket keeps "
            "the metadata's snapshots in the object store",
        ),
        default=METADATA_MANAGER,
        text="Class of the RemoteLogMetadataManager, which knows the segments in remote storage.",
        source="KIP-405",
        difference=_NO_CLASSES,
    )
    remote_log_metadata_manager_class_path: str | None = config_key(
        "remote.log.metadata.manager.class.path",
        Text("class path"),
        default=None,
        text="Class path of that class, in Kafka.",
        source="KIP-405",
        difference=_NO_CLASSES,
    )
    remote_log_metadata_manager_impl_prefix: str = config_key(
        "remote.log.metadata.manager.impl.prefix",
        Text("beginning of names", non_empty=True),
        default=METADATA_PREFIX,
        text="Prefix of the settings of the RemoteLogMetadataManager.",
        source="KIP-405",
        difference=_ANY_PREFIX,
    )
    remote_log_metadata_manager_listener_name: str | None = config_key(
        "remote.log.metadata.manager.listener.name",
        Text("listener name", non_empty=True),
        default=None,
        text="The listener through which Kafka's metadata manager talks to its brokers.",
        source="KIP-405",
        difference="No effect on a single node: the topic is read and written in place.",
    )
    remote_log_metadata_custom_metadata_max_bytes: int = config_key(
        "remote.log.metadata.custom.metadata.max.bytes",
        size(0),
        default=128,
        text="Most bytes of custom metadata that the remote storage manager may add to a "
        "segment's metadata.",
        source="KIP-405",
    )
    remote_log_index_file_cache_total_size_bytes: int = config_key(
        "remote.log.index.file.cache.total.size.bytes",
        size(1, bits=64),
        default=1_073_741_824,
        text="Most bytes of indexes of remote segments kept on local disk.",
        source="KIP-405",
        dynamic=True,
    )
    remote_log_manager_thread_pool_size: int = config_key(
        "remote.log.manager.thread.pool.size",
        count(1, "threads"),
        default=2,
        text="Threads for the tasks of followers, before these had a setting of their own.",
        source="KIP-405",
        difference="No effect.",
    )
    remote_log_manager_copier_thread_pool_size: int = config_key(
        "remote.log.manager.copier.thread.pool.size",
        count(1, "partitions"),
        default=10,
        text="Partitions whose segments are copied at the same time.",
        source="KIP-950",
        dynamic=True,
    )
    remote_log_manager_expiration_thread_pool_size: int = config_key(
        "remote.log.manager.expiration.thread.pool.size",
        count(1, "partitions"),
        default=10,
        text="Partitions whose old remote segments are removed at the same time.",
        source="KIP-950",
        dynamic=True,
    )
    remote_log_manager_follower_thread_pool_size: int = config_key(
        "remote.log.manager.follower.thread.pool.size",
        count(1, "partitions"),
        default=2,
        text="Follower partitions whose remote log tasks run at the same time.",
        source="Kafka",
        dynamic=True,
    )
    remote_log_manager_task_interval_ms: int = config_key(
        "remote.log.manager.task.interval.ms",
        milliseconds(1),
        default=30_000,
        text="How often the remote log tasks of each partition run: copying and expiration.",
        source="KIP-405",
    )
    remote_log_manager_task_retry_backoff_ms: int = config_key(
        "remote.log.manager.task.retry.backoff.ms",
        milliseconds(1),
        default=500,
        text="Wait before the first retry of a remote log task; doubled with each further failure.",
        source="KIP-405",
    )
    remote_log_manager_task_retry_backoff_max_ms: int = config_key(
        "remote.log.manager.task.retry.backoff.max.ms",
        milliseconds(1),
        default=30_000,
        text="Longest wait between retries of a remote log task.",
        source="KIP-405",
    )
    remote_log_manager_task_retry_jitter: float = config_key(
        "remote.log.manager.task.retry.jitter",
        Double("share of the wait", 0, 0.5),
        default=0.2,
        text="Random share by which waits between retries vary.",
        source="KIP-405",
    )
    remote_log_manager_copy_max_bytes_per_second: int = config_key(
        "remote.log.manager.copy.max.bytes.per.second",
        Integer("bytes per second", 1, bits=64),
        default=LONG_MAX,
        text="Most bytes this broker copies to remote storage.",
        source="KIP-956",
        dynamic=True,
    )
    remote_log_manager_copy_quota_window_num: int = config_key(
        "remote.log.manager.copy.quota.window.num",
        count(1, "windows"),
        default=11,
        text="Windows over which the rate of copying is measured.",
        source="KIP-956",
    )
    remote_log_manager_copy_quota_window_size_seconds: int = config_key(
        "remote.log.manager.copy.quota.window.size.seconds",
        count(1, "seconds"),
        default=1,
        text="Length of one such window.",
        source="KIP-956",
    )
    remote_log_manager_fetch_max_bytes_per_second: int = config_key(
        "remote.log.manager.fetch.max.bytes.per.second",
        Integer("bytes per second", 1, bits=64),
        default=LONG_MAX,
        text="Most bytes this broker reads from remote storage for consumers.",
        source="KIP-956",
        dynamic=True,
    )
    remote_log_manager_fetch_quota_window_num: int = config_key(
        "remote.log.manager.fetch.quota.window.num",
        count(1, "windows"),
        default=11,
        text="Windows over which the rate of reading is measured.",
        source="KIP-956",
    )
    remote_log_manager_fetch_quota_window_size_seconds: int = config_key(
        "remote.log.manager.fetch.quota.window.size.seconds",
        count(1, "seconds"),
        default=1,
        text="Length of one such window.",
        source="KIP-956",
    )
    remote_log_reader_threads: int = config_key(
        "remote.log.reader.threads",
        count(1, "downloads"),
        default=10,
        text="Downloads from remote storage that run at the same time for waiting consumers.",
        source="KIP-405",
        dynamic=True,
    )
    remote_log_reader_max_pending_tasks: int = config_key(
        "remote.log.reader.max.pending.tasks",
        count(1, "downloads"),
        default=100,
        text="Downloads that may wait for one of the `remote.log.reader.threads`; further "
        "ones are refused, and the consumer tries again.",
        source="KIP-405",
    )
    remote_fetch_max_wait_ms: int = config_key(
        "remote.fetch.max.wait.ms",
        milliseconds(1, bits=32),
        default=500,
        text="How long a Fetch waits for remote storage. After that the partition's part of the "
        "answer is empty; the download goes on (`tier.abandoned.reads`).",
        source="KIP-1018",
        dynamic=True,
    )
    remote_list_offsets_request_timeout_ms: int = config_key(
        "remote.list.offsets.request.timeout.ms",
        milliseconds(1),
        default=30_000,
        text="Timeout of a ListOffsets by timestamp that reads remote storage.",
        source="KIP-1075",
        dynamic=True,
    )
    rlmm_config_remote_log_metadata_topic_num_partitions: int = config_key(
        "rlmm.config.remote.log.metadata.topic.num.partitions",
        count(1, "partitions"),
        default=50,
        text="Partitions of `__remote_log_metadata` when it is created; not to be changed later.",
        source="KIP-405",
    )
    rlmm_config_remote_log_metadata_topic_replication_factor: int = config_key(
        "rlmm.config.remote.log.metadata.topic.replication.factor",
        Integer("replicas", 1, bits=16),
        default=3,
        text="Replicas of `__remote_log_metadata`.",
        source="KIP-405",
        difference="1 on a single node. In a cluster never fewer: the brokers are waited for.",
    )
    rlmm_config_remote_log_metadata_topic_retention_ms: int = config_key(
        "rlmm.config.remote.log.metadata.topic.retention.ms",
        milliseconds(special=((-1, "no limit"),)),
        default=-1,
        text="`retention.ms` of `__remote_log_metadata`: longer than that of every tiered topic.",
        source="KIP-405",
        difference="No effect: nothing is dropped from it.",
    )
    rlmm_config_remote_log_metadata_consume_wait_ms: int = config_key(
        "rlmm.config.remote.log.metadata.consume.wait.ms",
        milliseconds(0),
        default=120_000,
        text="How long Kafka waits until it has read back what it has written.",
        source="KIP-405",
        difference="No effect on a single node: what is written is known at once.",
    )
    rlmm_config_remote_log_metadata_initialization_retry_interval_ms: int = config_key(
        "rlmm.config.remote.log.metadata.initialization.retry.interval.ms",
        milliseconds(0),
        default=100,
        text="How long Kafka waits between attempts to create the topic.",
        source="KIP-405",
        difference="No effect.",
    )
    rlmm_config_remote_log_metadata_initialization_retry_max_timeout_ms: int = config_key(
        "rlmm.config.remote.log.metadata.initialization.retry.max.timeout.ms",
        milliseconds(0),
        default=120_000,
        text="How long Kafka goes on trying to create it.",
        source="KIP-405",
        difference="No effect.",
    )
