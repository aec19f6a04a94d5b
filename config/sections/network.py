"""Listeners, sockets and the limits on what strangers may use up."""

from collections.abc import Mapping

from config.compound_kinds import CountByHost, Listeners, ProtocolMap
from config.definition import Settings, config_key, count, milliseconds, size
from config.kinds import INT_MAX, Integer, Text
from config.listeners import Listener


class NetworkSettings(Settings):
    """Listeners, connections, requests and their limits."""

    listeners: tuple[Listener, ...] = config_key(
        "listeners",
        Listeners(),
        default=(Listener("PLAINTEXT", "127.0.0.1", 9092),),
        text="Addresses to listen on. An empty host is every interface.",
        difference="Kafka's default is every interface; ours is this machine only. The "
        "container image listens on every interface.",
        dynamic=True,
    )
    advertised_listeners: tuple[Listener, ...] = config_key(
        "advertised.listeners",
        Listeners(),
        default=(),
        text="Addresses advertised to clients. Unset: those of `listeners`, with this "
        "machine's name for an empty host.",
        source="Kafka, KIP-103",
    )
    listener_security_protocol_map: Mapping[str, str] = config_key(
        "listener.security.protocol.map",
        ProtocolMap(),
        default={
            "SASL_SSL": "SASL_SSL",
            "PLAINTEXT": "PLAINTEXT",
            "SSL": "SSL",
            "SASL_PLAINTEXT": "SASL_PLAINTEXT",
        },
        text="Security protocol of every listener name.",
        source="Kafka, KIP-103",
        difference="Only PLAINTEXT is served so far; a listener with another protocol is refused.",
        dynamic=True,
    )
    inter_broker_listener_name: str | None = config_key(
        "inter.broker.listener.name",
        Text("name of a listener"),
        default=None,
        text="Listener that other brokers call.",
        difference="No effect on a single node.",
    )
    num_network_threads: int = config_key(
        "num.network.threads",
        count(1, "processors"),
        default=3,
        text="Processors of every listener; a connection stays with one of them.",
        difference="Processors take turns on one event loop instead of being threads: the number "
        "spreads bookkeeping, not work over cores, and above 256 is taken as that. More cores are "
        "used by more brokers.",
        dynamic=True,
    )
    num_io_threads: int = config_key(
        "num.io.threads",
        count(1, "threads"),
        default=8,
        text="Request handlers that may run at the same time.",
        difference="Handlers are tasks on the event loop, not threads: those that wait for the "
        "disk use a thread of `background.threads`, Produce and cached Fetch need "
        "none.",
        dynamic=True,
    )
    queued_max_requests: int = config_key(
        "queued.max.requests",
        count(1, "requests"),
        default=500,
        text="Requests that may wait in the request channel for a handler. At this limit "
        "no connection is read until one has been taken.",
    )
    queued_max_request_bytes: int = config_key(
        "queued.max.request.bytes",
        size(bits=64, special=((-1, "no limit"),)),
        default=-1,
        text="Bytes of requests that have arrived and are not answered yet. At this limit "
        "unfinished requests are read on in turn, as many as fit; a single one may pass it.",
        difference="What is announced is not reserved: it counts as it arrives. Requests of up to "
        "4 KiB do not wait. Without a limit, unfinished requests may still hold no more than a "
        "quarter of the memory that the process may have: the machine's, or less by its "
        "container or `ulimit -v`.",
    )
    socket_send_buffer_bytes: int = config_key(
        "socket.send.buffer.bytes",
        size(-1, special=((-1, "the system's default"),)),
        default=102_400,
        text="SO_SNDBUF of client connections.",
        difference="Kafka's default leaves the size to the system.",
    )
    socket_receive_buffer_bytes: int = config_key(
        "socket.receive.buffer.bytes",
        size(-1, special=((-1, "the system's default"),)),
        default=102_400,
        text="SO_RCVBUF of client connections.",
        difference="Kafka's default leaves the size to the system.",
    )
    socket_request_max_bytes: int = config_key(
        "socket.request.max.bytes",
        size(1),
        default=104_857_600,
        text="Largest request. A longer one closes the connection as soon as its length is read, "
        "before memory is taken for it.",
    )
    socket_listen_backlog_size: int = config_key(
        "socket.listen.backlog.size",
        Integer("connections", 1),
        default=4096,
        text="Connections the system holds for a listener before they are accepted. The system's "
        "own limit (`net.core.somaxconn`) applies too.",
        difference="Kafka's default is 50: the 51st of as many clients that connect at once "
        "waits a second before its next attempt.",
        source="KIP-764",
    )
    max_connections: int = config_key(
        "max.connections",
        count(0, "connections"),
        default=INT_MAX,
        text="Connections of the whole broker. A further one is closed as soon as it is accepted.",
        source="KIP-402",
        difference="Kafka accepts no more until one closes, which leaves clients waiting without "
        "a word.",
        dynamic=True,
    )
    max_connections_per_ip: int = config_key(
        "max.connections.per.ip",
        count(0, "connections"),
        default=INT_MAX,
        text="Connections of one address. A further one is closed as soon as it is accepted.",
        dynamic=True,
    )
    max_connections_per_ip_overrides: Mapping[str, int] = config_key(
        "max.connections.per.ip.overrides",
        CountByHost(),
        default={},
        text="Other limits for some addresses.",
        dynamic=True,
    )
    max_connection_creation_rate: int = config_key(
        "max.connection.creation.rate",
        count(0, "connections per second"),
        default=INT_MAX,
        text="New connections of the whole broker in a second. Beyond it accepting waits for the "
        "next second.",
        source="KIP-612",
        dynamic=True,
    )
    connections_max_idle_ms: int = config_key(
        "connections.max.idle.ms",
        milliseconds(special=((-1, "never"),)),
        default=600_000,
        text="Close a connection on which nothing has happened for this long.",
    )
    request_timeout_ms: int = config_key(
        "request.timeout.ms",
        milliseconds(bits=32),
        default=30_000,
        text="Timeout of requests that the broker itself sends.",
        difference="No effect on a single node.",
    )
    fetch_max_bytes: int = config_key(
        "fetch.max.bytes",
        size(1024),
        default=57_671_680,
        text="Most record bytes in one Fetch response, whatever the client asks for. The first "
        "batch goes out whole even when it is larger.",
        source="KIP-74",
    )
    max_incremental_fetch_session_cache_slots: int = config_key(
        "max.incremental.fetch.session.cache.slots",
        count(0, "sessions"),
        default=1000,
        text="Incremental fetch sessions remembered; without a slot a client sends full requests.",
        source="KIP-227",
    )
    fetch_purgatory_purge_interval_requests: int = config_key(
        "fetch.purgatory.purge.interval.requests",
        count(unit="requests"),
        default=1000,
        text="Satisfied requests that may linger in the fetch purgatory.",
        difference="No effect: a satisfied request leaves at once.",
    )
    producer_purgatory_purge_interval_requests: int = config_key(
        "producer.purgatory.purge.interval.requests",
        count(unit="requests"),
        default=1000,
        text="Satisfied requests that may linger in the produce purgatory.",
        difference="No effect: a satisfied request leaves at once.",
    )
    delete_records_purgatory_purge_interval_requests: int = config_key(
        "delete.records.purgatory.purge.interval.requests",
        count(unit="requests"),
        default=1,
        text="Satisfied requests that may linger in the delete-records purgatory.",
        difference="No effect: a satisfied request leaves at once.",
    )
