"""Rules between broker settings that contradict each other.

Every rule gives the keys it concerns and what is wrong; `config.load` adds where they came from.

Source: Kafka 4.2, KafkaConfig.scala, SocketServerConfigs.java; KIP-103.
"""

import itertools
import os
from collections.abc import Iterator, Sequence

from config.broker import BROKER_KEYS, BrokerConfig
from config.conflict import Conflict
from config.errors import InvalidConfigError
from config.group_rules import group_conflicts
from config.remote_rules import remote_conflicts
from config.topic import broker_defaults
from config.topic_rules import check_combinations

SERVED_PROTOCOLS = frozenset({"PLAINTEXT"})
"""Security protocols that the network layer speaks."""

SESSION_MIN_MS = 2_000
"""Least `broker.session.timeout.ms` in a cluster: etcd gives no shorter lease."""

HEARTBEAT_MIN_MS = 50

_NOWHERE = frozenset({"0.0.0.0", "::"})
_MIB = 1024 * 1024


def conflicts(broker: BrokerConfig) -> Iterator[Conflict]:
    """Everything wrong between the settings of one broker."""
    yield from _identity(broker)
    yield from _listeners(broker)
    yield from _advertised(broker)
    yield from _limits(broker)
    yield from _cluster(broker)
    yield from group_conflicts(broker)
    yield from _retention(broker)
    defaults = broker_defaults(broker)
    try:
        check_combinations(defaults, remote_storage_system_enabled=False)
    except InvalidConfigError as error:
        yield Conflict("log.cleaner.min.compaction.lag.ms", str(error))
    if broker.remote_log_storage_system_enable:
        yield from remote_conflicts(broker)


def _identity(broker: BrokerConfig) -> Iterator[Conflict]:
    if broker.broker_id not in (-1, broker.node_id):
        yield Conflict("broker.id", f"differs from node.id={broker.node_id}")
    yield from _log_dirs(broker.log_dirs)


def _log_dirs(paths: Sequence[str]) -> Iterator[Conflict]:
    """A log directory holds partitions only: what else lies in it may be taken for one.

    Paths are compared as they are written, from the working directory, and with symbolic links
    followed.
    """
    for resolve in (os.path.abspath, os.path.realpath):
        places = [resolve(path) for path in paths]
        if len(set(places)) != len(places):
            yield Conflict("log.dirs", "names a directory twice")
            return
        for one, outer in itertools.permutations(range(len(places)), 2):
            if os.path.commonpath((places[one], places[outer])) == places[outer]:
                problem = f"has {paths[one]} in {paths[outer]}, where only partitions may be"
                yield Conflict("log.dirs", problem, "directories beside each other")
                return


def _listeners(broker: BrokerConfig) -> Iterator[Conflict]:
    bound: dict[tuple[str, int], str] = {}
    for listener in broker.listeners:
        protocol = broker.protocol_of(listener.name)
        if protocol is None:
            yield Conflict(
                "listeners",
                f"listener {listener.name} has no security protocol",
                f"{listener.name}:PLAINTEXT in listener.security.protocol.map",
            )
        elif protocol not in SERVED_PROTOCOLS:
            yield Conflict(
                "listeners",
                f"listener {listener.name} asks for {protocol}, which Varve does not speak yet",
                "PLAINTEXT",
            )
        if listener.port and bound.setdefault((listener.host, listener.port), listener.name) != (
            listener.name
        ):
            yield Conflict("listeners", f"port {listener.port} is used by two listeners")
    admin = broker.admin_listener
    if admin is not None and admin.port and (admin.host, admin.port) in bound:
        yield Conflict("admin.listener", f"port {admin.port} is a listener's already")


def _advertised(broker: BrokerConfig) -> Iterator[Conflict]:
    names = {listener.name for listener in broker.listeners}
    for listener in broker.advertised_listeners:
        if listener.name not in names:
            yield Conflict("advertised.listeners", f"{listener.name} is none of the listeners")
    given = bool(broker.advertised_listeners)
    for listener in broker.listeners_for_clients:
        if listener.host in _NOWHERE:
            yield Conflict(
                "advertised.listeners" if given else "listeners",
                f"clients cannot connect to {listener.host}",
                "an address they can reach" if given else "advertised.listeners to be set too",
            )
    inter_broker = broker.inter_broker_listener_name
    if inter_broker is not None and inter_broker.upper() not in names:
        yield Conflict("inter.broker.listener.name", "is none of the listeners")


def _cluster(broker: BrokerConfig) -> Iterator[Conflict]:
    store = broker.metadata_store
    if not store.with_tls:
        for key in ("ca", "certificate", "key"):
            if getattr(broker, f"metadata_store_tls_{key}_file") is not None:
                yield Conflict(
                    f"metadata.store.tls.{key}.file", "has no effect without TLS", "etcds://"
                )
    if (broker.metadata_store_tls_certificate_file is None) != (
        broker.metadata_store_tls_key_file is None
    ):
        yield Conflict(
            "metadata.store.tls.certificate.file",
            "and metadata.store.tls.key.file are given together or not at all",
        )
    if (broker.metadata_store_username is None) != (broker.metadata_store_password_file is None):
        yield Conflict(
            "metadata.store.username",
            "and metadata.store.password.file are given together or not at all",
        )
    if store.socket and broker.metadata_store_username is not None:
        yield Conflict("metadata.store.username", "has no effect on a socket", "etcd://")
    if store.is_shared:
        yield from _lease(broker)
    if store.is_shared and broker.metadata_log_dir is not None:
        yield Conflict("metadata.log.dir", f"has no effect with metadata.store={store}")


def _lease(broker: BrokerConfig) -> Iterator[Conflict]:
    # A file of Kafka's settings may have any of these where they have no effect.
    session_ms, heartbeat_ms = broker.broker_session_timeout_ms, broker.broker_heartbeat_interval_ms
    if session_ms < SESSION_MIN_MS:
        yield Conflict(
            "broker.session.timeout.ms",
            "is below the least time of a lease in etcd",
            f"at least {SESSION_MIN_MS}",
        )
    if heartbeat_ms < HEARTBEAT_MIN_MS:
        yield Conflict(
            "broker.heartbeat.interval.ms",
            "would have the lease renewed all the time",
            f"at least {HEARTBEAT_MIN_MS}",
        )
    if 2 * heartbeat_ms >= session_ms:
        yield Conflict(
            "broker.heartbeat.interval.ms",
            "leaves a broker a single try to renew its lease of "
            f"broker.session.timeout.ms={session_ms}",
            f"less than {session_ms // 2}",
        )


def _limits(broker: BrokerConfig) -> Iterator[Conflict]:
    if broker.group_min_session_timeout_ms > broker.group_max_session_timeout_ms:
        yield Conflict(
            "group.min.session.timeout.ms",
            f"is above group.max.session.timeout.ms={broker.group_max_session_timeout_ms}",
        )
    if broker.max_connections_per_ip == 0 and not broker.max_connections_per_ip_overrides:
        yield Conflict(
            "max.connections.per.ip",
            "can be 0 only with max.connections.per.ip.overrides: nobody could connect",
            "at least 1",
        )
    threads = broker.log_cleaner_threads
    if broker.log_cleaner_enable and threads < 1:
        yield Conflict("log.cleaner.threads", "leaves nobody to compact logs", "at least 1")
    elif broker.log_cleaner_enable and broker.log_cleaner_dedupe_buffer_size // threads <= _MIB:
        yield Conflict(
            "log.cleaner.dedupe.buffer.size",
            "leaves a cleaner thread no more than 1 MiB",
            f"at least {(_MIB + 1) * threads} bytes",
        )
    if broker.offsets_topic_compression_codec not in range(5):
        yield Conflict("offsets.topic.compression.codec", "is no codec", "0 to 4")


def _retention(broker: BrokerConfig) -> Iterator[Conflict]:
    for name in ("log.retention.ms", "log.retention.minutes", "log.retention.hours"):
        value = getattr(broker, BROKER_KEYS[name].field_name)
        if value is not None and (value == 0 or value < -1):
            yield Conflict(name, "is neither unlimited nor at least 1", "-1, or 1 and more")
