"""Broker settings: Kafka's keys, types and defaults, but for what we say differs."""

import pytest

from config.broker import BROKER_KEYS, BrokerConfig
from config.foreign import is_passed_over, is_refused
from config.listeners import Listener
from tests.unit.config.golden_files import rows

_ROWS = rows("kafka-4.2.0-definitions.tsv")
KAFKA = {row[1]: row for row in _ROWS if row[0] == "broker"} | {
    f"rlmm.config.{row[1]}": row for row in _ROWS if row[0] == "metadata"
}
DYNAMIC = {row[1] for row in _ROWS if row[0] == "dynamic"}
AIVEN = {f"rsm.config.{row[0]}": row for row in rows("aiven-definitions.tsv")}
"""From docs/configs.rst of the plugin, with the two keys it defines for encryption."""
SHARED = sorted(set(KAFKA) & set(BROKER_KEYS))
RANGED = [
    name
    for name in SHARED
    if KAFKA[name][4].startswith("[") and ",..." in KAFKA[name][4] and " or " not in KAFKA[name][4]
]
"""Keys for which Kafka checks a range."""
OTHER_DEFAULTS = {
    "broker.session.timeout.ms",
    "broker.heartbeat.interval.ms",
    "node.id",
    "socket.listen.backlog.size",
    "listeners",
    "advertised.listeners",
    "log.dirs",
    "log.dir",
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "transaction.state.log.min.isr",
    "share.coordinator.state.topic.replication.factor",
    "share.coordinator.state.topic.min.isr",
}
"""Keys whose default is not Kafka's."""


def test_every_key_of_kafka_has_one_fate() -> None:
    """Ours, passed over, or refused: none is merely unknown."""
    fates = {
        name: (is_passed_over(name, "x"), is_refused(name))
        for name in KAFKA | AIVEN
        if name not in BROKER_KEYS
    }
    assert {name: fate for name, fate in fates.items() if sum(fate) != 1} == {}


def test_keys_that_kafka_does_not_have_are_marked_ours() -> None:
    """Nobody looks for them in Kafka's documentation."""
    ours = {name for name, row in BROKER_KEYS.items() if row.source == "Varve"}
    undocumented = {name for name, row in BROKER_KEYS.items() if row.internal}
    assert undocumented == {
        "follower.replication.throttled.rate",
        "leader.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
        "zookeeper.connect",
    }
    assert ours == set(BROKER_KEYS) - set(KAFKA) - set(AIVEN) - undocumented
    aivens = {name for name, row in BROKER_KEYS.items() if row.source.startswith("Aiven")}
    assert aivens == set(BROKER_KEYS) & set(AIVEN)


@pytest.mark.parametrize("name", sorted(set(AIVEN) & set(BROKER_KEYS)))
def test_the_object_stores_keys_are_aivens(name: str) -> None:
    """The same type; another default says so; the lowest and highest value are the same."""
    row, (_, wire_type, default, allowed) = BROKER_KEYS[name], AIVEN[name]
    assert row.wire_type.name == wire_type
    text = row.format(row.default)
    if ("null" if text is None else text) != default:
        optional = row.default is None or not row.default
        assert row.difference or (default == "<none>" and optional)
    if "[" in allowed and ",..." in allowed:
        kind = row.kind
        lowest, highest = getattr(kind, "minimum", None), getattr(kind, "maximum", None)
        bounds = allowed.removeprefix("null or ").strip("[]").split(",...")
        assert str(lowest) == bounds[0]
        widest = {f",{2**31 - 1}", f",{2**63 - 1}", ""}
        assert bounds[1] in (widest if highest is None else {f",{highest}"})


@pytest.mark.parametrize("name", sorted(set(KAFKA) & set(BROKER_KEYS)))
def test_what_may_change_at_run_time_is_what_may_in_kafka(name: str) -> None:
    """Neither more nor less."""
    assert BROKER_KEYS[name].dynamic == (name in DYNAMIC)


@pytest.mark.parametrize("name", SHARED)
def test_types_are_kafkas(name: str) -> None:
    """As released Kafka tells them."""
    assert BROKER_KEYS[name].wire_type.name == KAFKA[name][2]


@pytest.mark.parametrize("name", SHARED)
def test_defaults_are_kafkas_or_named_as_different(name: str) -> None:
    """A default of our own says so in the documentation, or follows from another key that does."""
    row = BROKER_KEYS[name]
    text = row.format(row.default)
    same = ("null" if text is None else text) == KAFKA[name][3]
    assert same == (name not in OTHER_DEFAULTS)
    if not same and name not in {"advertised.listeners", "log.dir"}:
        assert row.difference


@pytest.mark.parametrize("name", RANGED)
def test_bounds_are_kafkas(name: str) -> None:
    """The lowest and the highest value Kafka takes are the last ones we take."""
    kind = BROKER_KEYS[name].kind
    lowest, highest = getattr(kind, "minimum", None), getattr(kind, "maximum", None)
    shown = f"[{lowest},...]" if highest is None else f"[{lowest},...,{highest}]"
    assert shown == KAFKA[name][4]


def test_every_key_is_a_field_of_the_model() -> None:
    """`.` becomes `_`, nothing else."""
    assert {row.field_name for row in BROKER_KEYS.values()} == set(BrokerConfig.model_fields)


def test_a_default_broker_serves_this_machine_only() -> None:
    """Nobody else reaches a broker that was started without a thought about it."""
    broker = BrokerConfig()
    assert broker.listeners == (Listener("PLAINTEXT", "127.0.0.1", 9092),)
    assert broker.listeners_for_clients == broker.listeners
    assert str(broker.admin_listener) == "127.0.0.1:9644"
    assert broker.log_dirs == ("./data",)


def test_old_names_are_carried_over() -> None:
    """broker.id is node.id; log.dir counts where log.dirs is not given."""
    broker = BrokerConfig(broker_id=7, log_dir=("/a",))
    assert (broker.node_id, broker.log_dirs) == (7, ("/a",))
    assert BrokerConfig(log_dir=("/a",), log_dirs=("/b",)).log_dirs == ("/b",)
    assert BrokerConfig(broker_id=7, node_id=8).node_id == 8


def test_advertised_listeners_are_what_clients_are_told() -> None:
    """They replace the addresses we listen on."""
    told = (Listener("PLAINTEXT", "example.org", 19092),)
    assert BrokerConfig(advertised_listeners=told).listeners_for_clients == told


def test_a_listener_has_the_protocol_of_the_map() -> None:
    """The default map knows the protocols by their own names."""
    broker = BrokerConfig(listener_security_protocol_map={"A": "PLAINTEXT"})
    assert broker.protocol_of("A") == "PLAINTEXT"
    assert broker.protocol_of("B") is None
    assert BrokerConfig().protocol_of("SSL") == "SSL"


def test_replaced_settings_keep_the_others() -> None:
    """A copy for tests and tools."""
    broker = BrokerConfig(num_partitions=3).replace(node_id=9)
    assert (broker.num_partitions, broker.node_id) == (3, 9)
