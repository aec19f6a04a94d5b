"""Sources are joined in order, values know their source, and all mistakes come at once."""

import pytest

from config.broker import BROKER_KEYS
from config.errors import ConfigLoadError
from config.listeners import Listener
from config.load import FILE_SIZE_MAX, LoadedConfig, Source, load

COMPOSE_FILE_OF_KAFKA = {
    "CLUSTER_ID": "4L6g3nShT-eMCtK--X86sw",
    "KAFKA_NODE_ID": "1",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@broker:29093",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_LISTENERS": "CONTROLLER://:29093,PLAINTEXT_HOST://0.0.0.0:9092,PLAINTEXT://:19092",
    "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT_HOST://localhost:9092,PLAINTEXT://broker:19092",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": (
        "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT"
    ),
    "KAFKA_INTER_BROKER_LISTENER_NAME": "PLAINTEXT",
    "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
    "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
    "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
    "KAFKA_SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_LOG_DIRS": "/tmp/kraft-combined-logs",
    "KAFKA_HEAP_OPTS": "-Xmx1G",
    "KAFKA_LOG4J_ROOT_LOGLEVEL": "DEBUG",
}


def from_file(
    content: str | bytes, name: str = "server.properties", **more: object
) -> LoadedConfig:
    """Load with a file of that content."""
    data = content.encode() if isinstance(content, str) else content
    return load(config_file=f"/etc/{name}", read_file=lambda _: data, **more)  # type: ignore[arg-type]  # passed on


def mistakes(**arguments: object) -> list[tuple[str, str]]:
    """Key and problem of every mistake."""
    with pytest.raises(ConfigLoadError) as caught:
        load(**arguments)  # type: ignore[arg-type]  # passed on
    return [(mistake.key, mistake.problem) for mistake in caught.value.mistakes]


def source_of(loaded: LoadedConfig, name: str) -> Source:
    return {setting.row.name: setting.source for setting in loaded.settings}[name]


def test_nothing_set_is_a_working_configuration() -> None:
    """All defaults, no warning."""
    loaded = load()
    assert loaded.warnings == ()
    assert {setting.source for setting in loaded.settings} == {Source.DEFAULT}
    assert {setting.row.name for setting in loaded.settings} == set(BROKER_KEYS)


def test_each_source_is_stronger_than_the_one_before() -> None:
    """Defaults, file, environment, command line."""
    loaded = from_file(
        "num.partitions=2\nnum.io.threads=3\nnode.id=4\n",
        environment={"KAFKA_NUM_IO_THREADS": "5", "KAFKA_NODE_ID": "6"},
        assignments=["node.id=7"],
    )
    broker = loaded.broker
    assert (broker.num_partitions, broker.num_io_threads, broker.node_id) == (2, 5, 7)
    assert source_of(loaded, "num.network.threads") is Source.DEFAULT
    assert source_of(loaded, "num.partitions") is Source.FILE
    assert source_of(loaded, "num.io.threads") is Source.ENVIRONMENT
    assert source_of(loaded, "node.id") is Source.COMMAND_LINE
    origins = {setting.row.name: setting.origin for setting in loaded.settings}
    assert origins["num.partitions"] == "server.properties:1"
    assert origins["num.io.threads"] == "environment KAFKA_NUM_IO_THREADS"


def test_a_yaml_file_is_known_by_its_name() -> None:
    """.yaml and .yml; everything else is properties."""
    assert from_file("num: {partitions: 4}", "a.yml").broker.num_partitions == 4
    assert from_file("num.partitions: 4", "a.conf").broker.num_partitions == 4


def test_every_mistake_is_told_at_once() -> None:
    """With key, value, what was expected, and where it was read."""
    with pytest.raises(ConfigLoadError) as caught:
        from_file(
            "num.partitions=0\nnope=1\nretention.ms=5\n",
            environment={"KAFKA_NUM_IO_THREADS": "many"},
            assignments=["log.retention.ms=0", "broken", "ssl.key.password=secret"],
        )
    assert sorted(str(caught.value).splitlines()) == [
        "  broken: is not KEY=VALUE (--set)",
        "  log.retention.ms=0: is neither unlimited nor at least 1; expected -1, or 1 and more "
        "(--set)",
        "  nope: unknown setting (server.properties:2)",
        "  num.io.threads=many: Not a number of type INT; expected integer, threads, at least 1 "
        "(environment KAFKA_NUM_IO_THREADS)",
        "  num.partitions=0: Value must be at least 1; expected integer, partitions, at least 1 "
        "(server.properties:1)",
        "  retention.ms: is a setting of topics; its default for all topics is log.retention.ms "
        "or log.retention.minutes or log.retention.hours (server.properties:3)",
        "  ssl.key.password: Kafka has this setting, Varve does not support it yet (--set)",
        "7 mistakes in the settings:",
    ]


def test_a_stronger_source_corrects_a_mistake() -> None:
    """Only what counts is checked."""
    assert (
        from_file("num.partitions=x", assignments=["num.partitions=3"]).broker.num_partitions == 3
    )


def test_a_misspelt_key_is_told_its_neighbour() -> None:
    """Most unknown keys are slips."""
    assert mistakes(assignments=["num.partition=1"]) == [
        ("num.partition", "unknown setting, did you mean num.partitions?")
    ]


def test_one_bad_setting_does_not_hide_contradictions_between_others() -> None:
    """And is not reported twice."""
    found = mistakes(assignments=["listeners=x", "broker.id=1", "node.id=2"])
    assert [key for key, _ in found] == ["listeners", "broker.id"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"a=\xff", "is not UTF-8 at byte 2"),
        (b"a=\\u1", "line 1: \\u is not followed by four hexadecimal digits"),
        (b"#" * (FILE_SIZE_MAX + 1), f"is larger than {FILE_SIZE_MAX} bytes"),
    ],
)
def test_a_file_that_cannot_be_read_is_a_mistake(content: bytes, problem: str) -> None:
    """Beside the others, not instead of them."""
    with pytest.raises(ConfigLoadError) as caught:
        from_file(content, assignments=["nope=1"])
    found = [(mistake.key, mistake.problem) for mistake in caught.value.mistakes]
    assert found == [("--config", problem), ("nope", "unknown setting")]


def test_a_missing_file_is_a_mistake() -> None:
    """A broker that starts on defaults instead would look like one that lost its data."""
    found = mistakes(config_file="/no/such/file")
    assert found == [("--config", "cannot be read: No such file or directory")]


def test_a_byte_order_mark_is_not_part_of_the_first_key() -> None:
    """Editors on Windows write it."""
    assert from_file(b"\xef\xbb\xbfnum.partitions=4").broker.num_partitions == 4


def test_kraft_settings_cost_one_warning_that_names_them() -> None:
    """Nothing else happens."""
    loaded = load(assignments=["process.roles=broker", "controller.quorum.voters=1@h:1"])
    assert loaded.warnings == (
        "settings of Kafka that have no meaning here are ignored: "
        "controller.quorum.voters, process.roles",
    )


def test_a_compose_file_of_kafka_starts() -> None:
    """The controllers' listeners are left out, the rest counts."""
    loaded = load(environment=COMPOSE_FILE_OF_KAFKA)
    broker = loaded.broker
    assert broker.listeners == (
        Listener("PLAINTEXT_HOST", "0.0.0.0", 9092),
        Listener("PLAINTEXT", "", 19092),
    )
    assert broker.listeners_for_clients[1] == Listener("PLAINTEXT", "broker", 19092)
    assert broker.cluster_id == "4L6g3nShT-eMCtK--X86sw"
    assert broker.group_initial_rebalance_delay_ms == 0
    assert len(loaded.warnings) == 1


def test_an_empty_text_unsets_what_may_be_unset() -> None:
    """`admin.listener=` switches the admin port off; a number cannot be empty."""
    broker = load(assignments=["admin.listener=", "broker.rack= ", "log.retention.ms="]).broker
    assert (broker.admin_listener, broker.broker_rack, broker.log_retention_ms) == (
        None,
        None,
        None,
    )
    assert mistakes(assignments=["num.partitions="]) == [
        ("num.partitions", "Not a number of type INT")
    ]


def test_a_value_carried_over_from_an_old_name_has_its_source() -> None:
    """`varve config --effective` tells where node.id came from."""
    loaded = load(assignments=["broker.id=5", "log.dir=/x"])
    assert loaded.broker.log_dirs == ("/x",)
    assert source_of(loaded, "node.id") is Source.COMMAND_LINE
    assert source_of(loaded, "log.dirs") is Source.COMMAND_LINE


def test_a_value_may_contain_equals_signs() -> None:
    """The first one ends the key."""
    assert load(assignments=["broker.rack=a=b"]).broker.broker_rack == "a=b"
