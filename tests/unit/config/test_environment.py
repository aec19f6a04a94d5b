"""Variables become settings as in Kafka's container image."""

import pytest

from config.broker import BROKER_KEYS
from config.environment import Variable, key_of, settings_of


@pytest.mark.parametrize(
    ("variable", "key"),
    [
        ("KAFKA_LOG_DIRS", "log.dirs"),
        ("KAFKA_A__B", "a_b"),
        ("KAFKA_A___B", "a-b"),
        ("KAFKA_A____B", "a-.b"),
        ("KAFKA_LISTENER_NAME_X__Y_SSL_KEY", "listener.name.x_y.ssl.key"),
    ],
)
def test_underscores_are_dots_underscores_and_dashes(variable: str, key: str) -> None:
    """One, two, three of them."""
    assert key_of(variable) == key


def test_every_broker_key_has_its_variable() -> None:
    """The translation loses nothing."""
    for name in BROKER_KEYS:
        variable = "KAFKA_" + name.upper().replace("-", "___").replace("_", "__").replace(".", "_")
        assert list(settings_of({variable: "v"})) == [Variable(variable, name, "v")]


@pytest.mark.parametrize(
    "name",
    [
        "KAFKA_HEAP_OPTS",
        "KAFKA_OPTS",
        "KAFKA_JVM_PERFORMANCE_OPTS",
        "KAFKA_LOG4J_ROOT_LOGLEVEL",
        "KAFKA_LOG4J_LOGGERS",
        "KAFKA_TOOLS_LOG4J_LOGLEVEL",
        "KAFKA_GC_LOG_OPTS",
        "KAFKA_JMX_PORT",
        "KAFKA_JMX_OPTS",
        "KAFKA_HOME",
        "KAFKA_VERSION",
        "KAFKA_SERVICE_HOST",
        "KAFKA_SERVICE_PORT_CLIENT",
        "KAFKA_PORT",
        "KAFKA_PORT_9092_TCP_ADDR",
        "PATH",
        "VARVE_NODE_ID",
    ],
)
def test_other_variables_are_no_settings(name: str) -> None:
    """Those of the Java image, those Kubernetes makes for a service, and everybody else's."""
    assert list(settings_of({name: "v"})) == []


def test_the_cluster_id_has_its_own_variable() -> None:
    """The one variable of the image without the prefix."""
    assert list(settings_of({"CLUSTER_ID": "x"})) == [Variable("CLUSTER_ID", "cluster.id", "x")]
