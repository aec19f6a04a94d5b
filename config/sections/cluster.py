"""Being one broker of several: the store they share, and the lease that says that one lives."""

from config.definition import Settings, config_key, milliseconds
from config.kinds import Boolean, Text
from config.store_address import SQLITE, StoreAddress, StoreAddressKind


class ClusterSettings(Settings):
    """The metadata store, and membership of a cluster, which has no effect on a single node."""

    metadata_store: StoreAddress = config_key(
        "metadata.store",
        StoreAddressKind(),
        default=SQLITE,
        text="Where the cluster's state is kept. `sqlite`: in a file of this node's own, which is "
        "then alone. `etcd://host:port,...` or, with TLS, `etcds://host:port,...`: in etcd, and "
        "all brokers that name the same one are a cluster; needs the extra `cluster`. The port is "
        "2379 if none is given. `unix:/path/of/socket`: in a file that another process of this "
        "machine serves there, to brokers of this machine.",
        source="Varve",
    )
    metadata_store_prefix: str = config_key(
        "metadata.store.prefix",
        Text("beginning of all keys in etcd", non_empty=True),
        default="/varve/",
        text="What of etcd belongs to this cluster; two clusters may share one etcd.",
        source="Varve",
    )
    metadata_store_username: str | None = config_key(
        "metadata.store.username",
        Text("name of a user of etcd"),
        default=None,
        text="User of etcd. Unset: etcd asks for none.",
        source="Varve",
    )
    metadata_store_password_file: str | None = config_key(
        "metadata.store.password.file",
        Text("path of a file"),
        default=None,
        text="File whose first line is that user's password. It is read again when etcd refuses "
        "what it held.",
        source="Varve",
    )
    metadata_store_tls_ca_file: str | None = config_key(
        "metadata.store.tls.ca.file",
        Text("path of a PEM file"),
        default=None,
        text="Certificates of authorities that etcd's certificate is checked with. Unset: those of "
        "the machine. This file and the next two are read again when a connection cannot be made.",
        source="Varve",
    )
    metadata_store_tls_certificate_file: str | None = config_key(
        "metadata.store.tls.certificate.file",
        Text("path of a PEM file"),
        default=None,
        text="Certificate that this broker shows to etcd.",
        source="Varve",
    )
    metadata_store_tls_key_file: str | None = config_key(
        "metadata.store.tls.key.file",
        Text("path of a PEM file"),
        default=None,
        text="Private key of that certificate.",
        source="Varve",
    )
    broker_session_timeout_ms: int = config_key(
        "broker.session.timeout.ms",
        milliseconds(1, bits=32),
        default=3_000,
        text="How long a broker counts as living without renewing its lease in the metadata store.",
        difference="Kafka's default is 9000. In a cluster at least 2000, which is etcd's least, "
        "and rounded up to whole seconds. No effect on a single node.",
    )
    broker_heartbeat_interval_ms: int = config_key(
        "broker.heartbeat.interval.ms",
        milliseconds(1, bits=32),
        default=500,
        text="How often a broker renews its lease.",
        difference="Kafka's default is 2000. In a cluster at least 50, and less than half of "
        "broker.session.timeout.ms. No effect on a single node.",
    )
    broker_loop_stall_max_ms: int = config_key(
        "broker.loop.stall.max.ms",
        milliseconds(500, bits=32),
        default=4_000,
        text="How long the event loop may stand still, say in a write to a slow disk, before the "
        "broker lets its lease end and others lead its partitions.",
        source="Varve",
        difference="No effect on a single node.",
    )
    log_dir_failure_timeout_ms: int = config_key(
        "log.dir.failure.timeout.ms",
        milliseconds(1),
        default=30_000,
        text="How long a broker tries to report a failed log directory to the cluster before it "
        "stops: until then others do not lead what lay there.",
        source="KIP-858",
        difference="No effect on a single node.",
    )
    broker_fence_on_refused_connections: bool = config_key(
        "broker.fence.on.refused.connections",
        Boolean(),
        default=True,
        text="Say that another broker is dead when its connections have ended and new ones are "
        "refused twice. When two brokers say so, its lease is revoked: others lead its partitions "
        "within tenths of a second. False where a proxy stands between brokers and accepts or "
        "refuses in their place.",
        source="Varve",
        difference="No effect on a single node.",
    )
