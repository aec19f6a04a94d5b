"""Broker settings that contradict each other are found, all of them."""

from pathlib import Path

import pytest

from config.broker import BrokerConfig
from config.broker_rules import conflicts
from config.listeners import Endpoint, Listener
from config.store_address import StoreAddressKind

LOCAL = Listener("PLAINTEXT", "127.0.0.1", 9092)


def keys(**values: object) -> list[str]:
    """Keys in conflict."""
    return [conflict.key for conflict in conflicts(BrokerConfig().replace(**values))]


def test_defaults_do_not_contradict_each_other() -> None:
    """A broker with no settings starts."""
    assert keys() == []


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("broker.id", {"broker_id": 1, "node_id": 2}),
        ("log.dirs", {"log_dirs": ("/a", "/b", "/a")}),
        ("log.dirs", {"log_dirs": ("/a", "/b/../a/")}),
        ("log.dirs", {"log_dirs": ("/a", "/a/b")}),
        ("log.dirs", {"log_dirs": ("/c", "a/b/disk-2", "./a")}),
        ("listeners", {"listeners": (Listener("A", "", 1),)}),
        ("listeners", {"listeners": (Listener("SSL", "", 1),)}),
        (
            "listeners",
            {
                "listeners": (LOCAL, Listener("B", "127.0.0.1", 9092)),
                "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT", "B": "PLAINTEXT"},
            },
        ),
        ("admin.listener", {"admin_listener": Endpoint("127.0.0.1", 9092)}),
        ("advertised.listeners", {"advertised_listeners": (Listener("B", "h", 1),)}),
        ("advertised.listeners", {"advertised_listeners": (Listener("PLAINTEXT", "::", 1),)}),
        ("listeners", {"listeners": (Listener("PLAINTEXT", "0.0.0.0", 9092),)}),
        ("inter.broker.listener.name", {"inter_broker_listener_name": "B"}),
        (
            "group.min.session.timeout.ms",
            {"group_min_session_timeout_ms": 7, "group_max_session_timeout_ms": 6},
        ),
        ("log.cleaner.threads", {"log_cleaner_threads": 0}),
        ("log.cleaner.dedupe.buffer.size", {"log_cleaner_dedupe_buffer_size": 1 << 20}),
        (
            "log.cleaner.dedupe.buffer.size",
            {"log_cleaner_dedupe_buffer_size": 2 * (1 << 20) + 1, "log_cleaner_threads": 2},
        ),
        ("max.connections.per.ip", {"max_connections_per_ip": 0}),
        ("offsets.topic.compression.codec", {"offsets_topic_compression_codec": 5}),
        ("log.retention.ms", {"log_retention_ms": 0}),
        ("log.retention.minutes", {"log_retention_minutes": -2}),
        ("log.retention.hours", {"log_retention_hours": 0}),
        (
            "log.cleaner.min.compaction.lag.ms",
            {"log_cleaner_min_compaction_lag_ms": 2, "log_cleaner_max_compaction_lag_ms": 1},
        ),
    ],
)
def test_a_contradiction_is_found(key: str, values: dict[str, object]) -> None:
    """It is told under the key that somebody would correct, and once."""
    assert keys(**values) == [key]


def test_a_log_directory_in_another_is_named() -> None:
    """Kafka ends there, too; one that is named like a partition would be taken for one."""
    (conflict,) = conflicts(BrokerConfig().replace(log_dirs=("/a/disk-2", "/a")))
    assert conflict.problem == "has /a/disk-2 in /a, where only partitions may be"
    assert keys(log_dirs=("/a", "/ab", "/b/a")) == []


def test_log_directories_are_compared_with_links_followed(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    disk, link = str(tmp_path / "disk"), str(tmp_path / "link")
    for paths in ((disk, link), (disk, f"{link}/b"), (f"{disk}/b", link)):
        assert keys(log_dirs=paths) == ["log.dirs"]


def test_several_contradictions_are_all_found() -> None:
    """One start shows them all."""
    found = keys(broker_id=1, node_id=2, log_retention_ms=0, inter_broker_listener_name="B")
    assert found == ["broker.id", "inter.broker.listener.name", "log.retention.ms"]


def test_port_zero_may_be_used_often() -> None:
    """The system chooses a different one each time."""
    listeners = (Listener("PLAINTEXT", "", 0), Listener("B", "", 0))
    protocols = {"PLAINTEXT": "PLAINTEXT", "B": "PLAINTEXT"}
    assert keys(listeners=listeners, listener_security_protocol_map=protocols) == []


def test_no_cleaner_needs_no_memory() -> None:
    """Its buffer is not checked then, nor its threads."""
    assert keys(log_cleaner_enable=False, log_cleaner_dedupe_buffer_size=1) == []
    assert keys(log_cleaner_enable=False, log_cleaner_threads=0) == []


def test_every_interface_may_be_listened_on_when_clients_are_told_another_address() -> None:
    """As in the container image."""
    everywhere = (Listener("PLAINTEXT", "0.0.0.0", 9092),)
    told = (Listener("PLAINTEXT", "localhost", 9092),)
    assert keys(listeners=everywhere, advertised_listeners=told) == []


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("broker.session.timeout.ms", {"broker_session_timeout_ms": 1_999}),
        ("broker.heartbeat.interval.ms", {"broker_heartbeat_interval_ms": 49}),
        ("broker.heartbeat.interval.ms", {"broker_heartbeat_interval_ms": 1_500}),
    ],
)
def test_a_lease_is_judged_where_there_is_one(key: str, values: dict[str, object]) -> None:
    """A file of Kafka's settings may say anything of it on a single node."""
    cluster = StoreAddressKind().parse("metadata.store", "etcd://127.0.0.1:2379")
    assert keys(metadata_store=cluster, **values) == [key]
    assert keys(**values) == []
