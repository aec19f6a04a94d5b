"""What may be set at run time, on what, and what it amounts to."""

from uuid import UUID

import pytest

from broker.controller.configs.configs import (
    CONFIG_VALUE_LENGTH_MAX,
    ConfigOperation,
    ConfigRules,
    Operation,
    check_broker_name,
    effective_settings,
)
from broker.controller.images.cluster_image import (
    BrokerImage,
    ClusterImage,
    ConfigResource,
    ResourceType,
)
from broker.controller.images.metadata_records import (
    config_key,
    encode_config,
    encode_topic,
    topic_key,
)
from broker.runtime.errors import ApiError
from config.broker import BrokerConfig
from protocol.error_codes import ErrorCode

SETTINGS = BrokerConfig().replace(num_io_threads=8, log_retention_ms=1000)
RULES = ConfigRules(SETTINGS)
NOTHING = ClusterImage.empty()
TOPIC = ConfigResource(ResourceType.TOPIC, "t")
ME = ConfigResource(ResourceType.BROKER, "1")
ALL = ConfigResource(ResourceType.BROKER, "")


def refusal(
    resource: ConfigResource,
    new: dict[str, str],
    current: dict[str, str] | None = None,
    image: ClusterImage = NOTHING,
) -> tuple[ErrorCode, str | None]:
    with pytest.raises(ApiError) as caught:
        RULES.check(resource, new, current or {}, image)
    return caught.value.code, caught.value.message


def image_with(resource: ConfigResource, settings: dict[str, str]) -> ClusterImage:
    return NOTHING.updated([(config_key(resource), encode_config(settings))], 2)


def test_operations_run_in_order() -> None:
    operations = [
        ConfigOperation("a", Operation.SET, "1"),
        ConfigOperation("b", Operation.DELETE),
        ConfigOperation("none", Operation.DELETE),
    ]
    assert RULES.after(TOPIC, {"b": "2", "c": "3"}, operations) == {"a": "1", "c": "3"}


@pytest.mark.parametrize(
    ("current", "operation", "value", "after"),
    [
        (None, Operation.APPEND, "compact", "delete,compact"),
        ("compact", Operation.APPEND, "delete", "compact,delete"),
        ("compact", Operation.APPEND, "compact,delete,delete", "compact,delete"),
        (None, Operation.SUBTRACT, "delete", ""),
        ("compact,delete", Operation.SUBTRACT, "compact", "delete"),
        ("compact", Operation.SUBTRACT, "delete", "compact"),
        # As Java splits lists: empty words at the end are none.
        (None, Operation.APPEND, "compact,", "delete,compact"),
        (None, Operation.APPEND, ",", "delete"),
        (None, Operation.APPEND, ",,", "delete"),
        ("compact,delete", Operation.SUBTRACT, "delete,", "compact"),
    ],
)
def test_lists_are_edited_from_what_is_set_or_the_default(
    current: str | None, operation: Operation, value: str, after: str
) -> None:
    """A word that is there already is not added; one that is not there is not missed."""
    given = {} if current is None else {"cleanup.policy": current}
    change = ConfigOperation("cleanup.policy", operation, value)
    assert RULES.after(TOPIC, given, [change]) == {"cleanup.policy": after}


@pytest.mark.parametrize("name", ["retention.ms", "no.such.key"])
@pytest.mark.parametrize("operation", [Operation.APPEND, Operation.SUBTRACT])
def test_list_operations_need_a_list(name: str, operation: Operation) -> None:
    with pytest.raises(ApiError) as caught:
        RULES.after(TOPIC, {}, [ConfigOperation(name, operation, "1")])
    assert caught.value.code is ErrorCode.INVALID_CONFIG
    assert caught.value.message == (
        f"Can't {operation.name} to key {name} because its type is not LIST."
    )


@pytest.mark.parametrize("name", ["metrics", "match"])
@pytest.mark.parametrize("operation", [Operation.APPEND, Operation.SUBTRACT])
def test_lists_of_client_metrics_are_set_as_a_whole(name: str, operation: Operation) -> None:
    """As in Kafka, although their type is LIST."""
    resource = ConfigResource(ResourceType.CLIENT_METRICS, "s")
    with pytest.raises(ApiError) as caught:
        RULES.after(resource, {name: "a"}, [ConfigOperation(name, operation, "b")])
    assert caught.value.code is ErrorCode.INVALID_CONFIG
    assert caught.value.message == (
        f"Can't {operation.name} to key {name} because its type is not LIST."
    )


def test_topic_settings_are_judged_with_kafkas_sentences() -> None:
    RULES.check(TOPIC, {"retention.ms": "-1", "cleanup.policy": "compact,delete"}, {}, NOTHING)
    assert refusal(TOPIC, {"no.such.key": "1"}) == (
        ErrorCode.INVALID_CONFIG,
        "Unknown topic config name: no.such.key",
    )
    assert refusal(TOPIC, {"retention.ms": "x"}) == (
        ErrorCode.INVALID_CONFIG,
        "Invalid value x for configuration retention.ms: Not a number of type LONG",
    )
    assert refusal(TOPIC, {"segment.bytes": "1"})[0] is ErrorCode.INVALID_CONFIG


def test_topic_names_are_judged() -> None:
    assert refusal(ConfigResource(ResourceType.TOPIC, ""), {}) == (
        ErrorCode.INVALID_REQUEST,
        "Default topic resources are not allowed.",
    )
    assert refusal(ConfigResource(ResourceType.TOPIC, "a b"), {})[0] is (
        ErrorCode.INVALID_TOPIC_EXCEPTION
    )


def test_only_dynamic_broker_keys_can_be_set() -> None:
    """The others need a restart, and say so; unknown ones are kept for whoever understands them."""
    RULES.check(ME, {"log.cleaner.backoff.ms": "1", "somebody.elses.key": "x"}, {}, NOTHING)
    assert refusal(ME, {"num.partitions": "3"}) == (
        ErrorCode.INVALID_REQUEST,
        "Cannot update these configs dynamically: num.partitions",
    )


@pytest.mark.parametrize(
    "key",
    [
        "connection.failed.authentication.delay.ms",
        "controller.quorum.voters",
        "group.streams.max.size",
        "metadata.log.segment.bytes",
        "quota.window.num",
        "telemetry.max.bytes",
    ],
)
def test_what_kafka_reads_at_a_start_is_not_kept_as_unknown(key: str) -> None:
    """What an earlier release has kept does not stand in the way of other changes."""
    for resource in (ME, ALL):
        assert refusal(resource, {key: "1"}) == (
            ErrorCode.INVALID_REQUEST,
            f"Cannot update these configs dynamically: {key}",
        )
    RULES.check(ME, {key: "1", "log.cleaner.backoff.ms": "1"}, {key: "1"}, NOTHING)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("metric.reporters", "some.Reporter"),
        ("ssl.keystore.location", "/k"),
        ("listener.name.plaintext.ssl.keystore.location", "/k"),
        ("sasl.jaas.config", "secret"),
        ("authorizer.class.name", "some.Authorizer"),
        ("principal.builder.class", "some.Builder"),
    ],
)
def test_what_would_be_relied_on_is_not_kept_as_unknown(key: str, value: str) -> None:
    """Nor is its value repeated; what is there already is not judged again."""
    for resource in (ME, ALL):
        code, message = refusal(resource, {key: value})
        assert code is ErrorCode.INVALID_REQUEST
        assert message == f"Kafka has these settings, Varve does not support them yet: {key}"
    RULES.check(ME, {key: value, "log.cleaner.backoff.ms": "1"}, {key: value}, NOTHING)


@pytest.mark.parametrize("value", ["", "org.apache.kafka.common.metrics.JmxReporter"])
def test_kafkas_own_reporter_may_be_named(value: str) -> None:
    """Tools set it together with others."""
    RULES.check(ALL, {"metric.reporters": value}, {}, NOTHING)


@pytest.mark.parametrize("key", ["max.connections", "max.connection.creation.rate"])
def test_nobody_is_locked_out_at_run_time(key: str) -> None:
    for resource in (ME, ALL):
        assert refusal(resource, {key: "0"}) == (ErrorCode.INVALID_REQUEST, f"Invalid {key} 0")
        RULES.check(resource, {key: "1"}, {}, NOTHING)


def test_addresses_without_a_limit_of_their_own_may_be_kept_out() -> None:
    """Only where another address has one (as in Kafka)."""
    none = {"max.connections.per.ip": "0"}
    assert refusal(ALL, none)[0] is ErrorCode.INVALID_REQUEST
    RULES.check(ALL, {**none, "max.connections.per.ip.overrides": "127.0.0.1:9"}, {}, NOTHING)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("0", "Log cleaner threads should be at least 1"),
        ("1", "Log cleaner threads cannot be reduced to less than half the current value 4"),
        (
            "9",
            "Log cleaner threads cannot be increased to more than double the current value 4",
        ),
    ],
)
def test_cleaner_threads_are_resized_in_steps(value: str, message: str) -> None:
    """As Kafka's cleaner judges it."""
    key = "log.cleaner.threads"
    four = image_with(ME, {key: "4"})
    for good in ("2", "4", "8"):
        RULES.check(ME, {key: good}, {key: "4"}, four)
    assert refusal(ME, {key: value}, {key: "4"}, four) == (ErrorCode.INVALID_REQUEST, message)


def test_broker_values_are_judged_as_invalid_request() -> None:
    """Kafka's code for these is INVALID_REQUEST (KAFKA-13609)."""
    code, message = refusal(ME, {"log.cleaner.backoff.ms": "x"})
    assert code is ErrorCode.INVALID_REQUEST
    assert message is not None
    assert "log.cleaner.backoff.ms" in message


def test_listeners_are_set_on_one_broker_only() -> None:
    value = "PLAINTEXT://127.0.0.1:9092"
    RULES.check(ME, {"listeners": value}, {}, NOTHING)
    assert refusal(ALL, {"listeners": value}) == (
        ErrorCode.INVALID_REQUEST,
        "Cannot update these configs at default cluster level, broker id must be specified: "
        "listeners",
    )
    for resource in (ME, ALL):
        assert refusal(resource, {"advertised.listeners": value}) == (
            ErrorCode.INVALID_REQUEST,
            "Cannot update these configs dynamically: advertised.listeners",
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"listener.security.protocol.map": "PLAINTEXT:SSL"},
            "Security protocol cannot be updated for existing listener PLAINTEXT",
        ),
        (
            {"listeners": "NEW://:9093", "listener.security.protocol.map": "NEW:PLAINTEXT"},
            "Advertised listener must be specified for inter-broker listener PLAINTEXT",
        ),
        (
            {"listeners": "PLAINTEXT://:9092,NEW://:9093"},
            "listeners listener NEW has no security protocol",
        ),
    ],
)
def test_what_clients_rely_on_stays(change: dict[str, str], message: str) -> None:
    assert refusal(ME, change) == (ErrorCode.INVALID_REQUEST, message)


def test_min_isr_is_the_clusters() -> None:
    """Neither set on one broker nor taken from all (KIP-966); what is set elsewhere may change."""
    everywhere = {"min.insync.replicas": "1"}
    RULES.check(ALL, {"min.insync.replicas": "2"}, everywhere, NOTHING)
    RULES.check(ME, {**everywhere, "background.threads": "9"}, everywhere, NOTHING)
    assert refusal(ME, everywhere) == (
        ErrorCode.INVALID_CONFIG,
        "Broker-level min.insync.replicas cannot be altered while ELR is enabled.",
    )
    with pytest.raises(ApiError, match=r"Cluster-level min\.insync\.replicas cannot be removed"):
        RULES.check(ALL, {}, everywhere, NOTHING)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("3", "value should be at least half the current value 8"),
        ("17", "value should not be greater than double the current value 8"),
    ],
)
def test_pools_are_resized_in_steps(value: str, message: str) -> None:
    """At least half, at most double of what runs now."""
    RULES.check(ME, {"num.io.threads": "4"}, {}, NOTHING)
    RULES.check(ME, {"num.io.threads": "16"}, {}, NOTHING)
    code, text = refusal(ME, {"num.io.threads": value})
    assert code is ErrorCode.INVALID_REQUEST
    assert text == (
        f"Dynamic thread count update validation failed for num.io.threads={value}, {message}"
    )


def test_another_brokers_settings_are_not_judged_by_ours() -> None:
    """What that one was started with is not known here; it has judged them before."""
    other = ConfigResource(ResourceType.BROKER, "2")
    image = NOTHING.with_brokers([BrokerImage(node, {}, None) for node in (1, 2)])
    RULES.check(other, {"num.io.threads": "32"}, {"num.io.threads": "16"}, image)
    assert refusal(other, {"num.io.threads": "x"}, {}, image)[0] is ErrorCode.INVALID_REQUEST
    assert refusal(other, {"num.partitions": "3"}, {}, image)[0] is ErrorCode.INVALID_REQUEST


def test_steps_count_from_what_is_set_now() -> None:
    """And a pool that is not touched is not judged again."""
    image = image_with(ME, {"num.io.threads": "16"})
    RULES.check(ME, {"num.io.threads": "32"}, {"num.io.threads": "16"}, image)
    assert refusal(ME, {"num.io.threads": "4"}, {"num.io.threads": "16"}, image)[0] is (
        ErrorCode.INVALID_REQUEST
    )
    shrunk = image_with(ME, {"num.io.threads": "4"})
    RULES.check(
        ALL,
        {"num.io.threads": "16", "log.cleaner.backoff.ms": "1"},
        {"num.io.threads": "16"},
        shrunk,
    )


def test_settings_that_contradict_each_other_are_refused() -> None:
    """As at a start: the broker must not run into it later."""
    assert (
        refusal(
            ME,
            {
                "log.cleaner.min.compaction.lag.ms": "1000",
                "log.cleaner.max.compaction.lag.ms": "500",
            },
        )[0]
        is ErrorCode.INVALID_REQUEST
    )


def test_settings_that_contradict_a_topic_are_refused() -> None:
    """The topic has a lag of its own that the new default would exceed."""
    resource = ConfigResource(ResourceType.TOPIC, "t")
    image = NOTHING.updated(
        [
            (topic_key("t"), encode_topic(UUID(int=7))),
            (config_key(resource), encode_config({"min.compaction.lag.ms": "1000"})),
        ],
        2,
    )
    RULES.check(ALL, {"log.cleaner.max.compaction.lag.ms": "2000"}, {}, image)
    code, message = refusal(ALL, {"log.cleaner.max.compaction.lag.ms": "500"}, {}, image)
    assert code is ErrorCode.INVALID_REQUEST
    assert message is not None
    assert "topic t" in message


def test_topic_is_judged_with_what_brokers_use_now() -> None:
    """The default that was set at run time counts, not the one of the start."""
    image = image_with(ALL, {"log.cleaner.max.compaction.lag.ms": "500"})
    RULES.check(TOPIC, {"min.compaction.lag.ms": "1000"}, {}, NOTHING)
    assert refusal(TOPIC, {"min.compaction.lag.ms": "1000"}, {}, image)[0] is (
        ErrorCode.INVALID_CONFIG
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("x", "Node id must be an integer, but it is: x"),
        ("\u0661", "Node id must be an integer, but it is: \u0661"),
        ("2", "Unexpected broker id, expected 1, but received 2"),
    ],
)
def test_other_brokers_are_not_ours_to_change(name: str, message: str) -> None:
    with pytest.raises(ApiError) as caught:
        check_broker_name(name, (1,))
    assert (caught.value.code, caught.value.message) == (ErrorCode.INVALID_REQUEST, message)
    check_broker_name("", (1,))
    check_broker_name("1", (1,))


def test_values_and_their_number_are_bounded() -> None:
    RULES.check(ME, {"unknown": "x" * CONFIG_VALUE_LENGTH_MAX}, {}, NOTHING)
    code, message = refusal(ME, {"unknown": "x" * (CONFIG_VALUE_LENGTH_MAX + 1)})
    assert code is ErrorCode.INVALID_CONFIG
    assert message is not None
    assert "exceeds the maximum value size of 32767 bytes" in message
    many = {f"unknown.{i}": "" for i in range(1001)}
    assert refusal(ME, many)[0] is ErrorCode.INVALID_CONFIG


def test_strongest_setting_wins() -> None:
    """On the broker, on all brokers, as started, default; keys that are not dynamic never."""
    image = NOTHING
    assert effective_settings(SETTINGS, image) is SETTINGS
    image = image.updated(
        [(config_key(ALL), encode_config({"log.retention.ms": "2000", "num.partitions": "9"}))], 2
    )
    assert effective_settings(SETTINGS, image).log_retention_ms == 2000
    assert effective_settings(SETTINGS, image).num_partitions == SETTINGS.num_partitions
    image = image.updated([(config_key(ME), encode_config({"log.retention.ms": "3000"}))], 3)
    assert effective_settings(SETTINGS, image).log_retention_ms == 3000
    other = ConfigResource(ResourceType.BROKER, "2")
    image = image.updated([(config_key(other), encode_config({"log.retention.ms": "4"}))], 4)
    assert effective_settings(SETTINGS, image).log_retention_ms == 3000


def test_stored_value_that_is_no_longer_accepted_is_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The broker starts, with a warning."""
    image = image_with(ME, {"log.retention.ms": "x", "log.cleaner.backoff.ms": "5"})
    settings = effective_settings(SETTINGS, image)
    assert settings.log_retention_ms == 1000
    assert settings.log_cleaner_backoff_ms == 5
    assert "log.retention.ms" in caplog.text


def test_loggers_are_no_resource_of_the_store() -> None:
    resource = ConfigResource(ResourceType.BROKER_LOGGER, "1")
    assert refusal(resource, {})[0] is ErrorCode.INVALID_REQUEST
    assert RULES.keys(ResourceType.BROKER_LOGGER) == {}


TIERED = {"remote.storage.enable": "true"}
LEAVING = {"remote.storage.enable": "false", "remote.log.delete.on.disable": "true"}


def test_tiered_topics_need_remote_storage_in_the_broker() -> None:
    """Kafka's sentence without it."""
    code, message = refusal(TOPIC, TIERED)
    assert code is ErrorCode.INVALID_CONFIG
    assert message == (
        "Tiered Storage functionality is disabled in the broker. "
        "Topic cannot be configured with remote log storage."
    )
    ConfigRules(SETTINGS.replace(remote_log_storage_system_enable=True)).check(
        TOPIC, {**TIERED, "local.retention.ms": "1000"}, {}, NOTHING
    )


@pytest.mark.parametrize("new", [{}, {"retention.ms": "5"}, {"remote.storage.enable": "false"}])
def test_a_topic_leaves_remote_storage_only_with_its_data(new: dict[str, str]) -> None:
    """Whichever way the setting goes: changed, deleted, or with all others."""
    rules = ConfigRules(SETTINGS.replace(remote_log_storage_system_enable=True))
    with pytest.raises(ApiError, match="It is invalid to disable remote storage without deleting"):
        rules.check(TOPIC, new, TIERED, NOTHING)
    rules.check(TOPIC, {**new, **LEAVING}, TIERED, NOTHING)


def test_brokers_pools_of_the_remote_log_are_resized_in_steps() -> None:
    """As Kafka's, with its sentence."""
    code, message = refusal(ME, {"remote.log.reader.threads": "21"})
    assert (code, message) == (
        ErrorCode.INVALID_REQUEST,
        "Dynamic thread count update validation failed for remote.log.reader.threads=21, "
        "value should not be greater than double the current value 10",
    )
    RULES.check(ME, {"remote.log.reader.threads": "20"}, {}, NOTHING)


def test_a_default_for_all_topics_may_not_contradict_a_tiered_topic() -> None:
    """Nor is the topic taken for one that must not be tiered."""
    rules = ConfigRules(SETTINGS.replace(remote_log_storage_system_enable=True))
    image = NOTHING.updated(
        [
            (topic_key("t"), encode_topic(UUID(int=5))),
            (config_key(TOPIC), encode_config({**TIERED, "local.retention.ms": "500"})),
        ],
        2,
    )
    rules.check(ALL, {"log.retention.ms": "501"}, {}, image)
    with pytest.raises(ApiError, match="Contradicts what is set on topic t: Invalid value 500"):
        rules.check(ALL, {"log.retention.ms": "400"}, {}, image)
