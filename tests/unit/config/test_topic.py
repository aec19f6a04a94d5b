"""Topic settings: the same keys, defaults, bounds and refusals as released Kafka."""

import pytest

from config.broker import BROKER_KEYS, BrokerConfig
from config.broker_rules import conflicts
from config.errors import InvalidConfigError
from config.topic import TOPIC_KEYS, TopicConfig, validate_topic_overrides
from config.topic_rules import check_stored
from tests.unit.config.golden_files import rows

OURS = {
    "record.validation",
    "tier.copy.paused",
    "tier.fetch.paused",
    # Of KIP-966, which Kafka has only in part.
    "unclean.recovery.strategy",
}
KAFKA = {row[1]: row for row in rows("kafka-4.2.0-definitions.tsv") if row[0] == "topic"}


def test_the_keys_are_kafkas_and_ours() -> None:
    """No key of Kafka 4.2 is missing, none is invented but those we say are ours."""
    assert set(TOPIC_KEYS) == set(KAFKA) | OURS
    assert {name for name, row in TOPIC_KEYS.items() if row.source == "Varve"} == OURS


@pytest.mark.parametrize("name", sorted(KAFKA))
def test_type_and_default_are_kafkas(name: str) -> None:
    """As released Kafka tells them."""
    _, _, wire_type, default, _ = KAFKA[name]
    row = TOPIC_KEYS[name]
    assert row.wire_type.name == wire_type
    text = row.format(row.default)
    assert ("null" if text is None else text) == default
    assert getattr(TopicConfig(), row.field_name) == row.default


@pytest.mark.parametrize("row", rows("kafka-4.2.0-answers.tsv"), ids=lambda row: ",".join(row[2:]))
def test_texts_are_refused_with_kafkas_sentence(row: list[str]) -> None:
    """The same question, the same answer."""
    scope, said, *pairs = row
    texts = dict(zip(pairs[::2], pairs[1::2], strict=True))
    assert _answer(scope, texts) == said


def _answer(scope: str, texts: dict[str, str]) -> str:
    """Ask.java says what the scopes mean."""
    try:
        match scope:
            case "stored":
                values = TopicConfig.resolve(BrokerConfig(), texts).model_dump()
                check_stored(values, remote_storage_system_enabled=False)
            case "broker":
                given = {
                    BROKER_KEYS[key].field_name: BROKER_KEYS[key].parse(text)
                    for key, text in texts.items()
                }
                broker = BrokerConfig().replace(remote_log_storage_system_enable=True, **given)
                problems = [conflict.problem for conflict in conflicts(broker)]
                return problems[0] if problems else ""
            case _:
                current = {"remote.storage.enable": "true"} if scope == "was-tiered" else {}
                validate_topic_overrides(
                    texts, remote_storage_system_enabled=scope != "local", current=current
                )
    except InvalidConfigError as error:
        return str(error)
    return ""


def test_an_override_is_stronger_than_the_broker() -> None:
    """And the broker is stronger than the default."""
    broker = BrokerConfig(log_segment_bytes=5_000_000, message_max_bytes=77)
    topic = TopicConfig.resolve(broker, {"max.message.bytes": "99"})
    assert (topic.segment_bytes, topic.max_message_bytes, topic.segment_ms) == (
        5_000_000,
        99,
        604_800_000,
    )


@pytest.mark.parametrize(
    ("given", "expected_ms"),
    [
        ({}, 168 * 3_600_000),
        ({"log_retention_hours": 2}, 2 * 3_600_000),
        ({"log_retention_hours": 2, "log_retention_minutes": 3}, 3 * 60_000),
        ({"log_retention_hours": 2, "log_retention_minutes": 3, "log_retention_ms": 4}, 4),
        ({"log_retention_hours": -1}, -1),
        ({"log_retention_minutes": -1}, -1),
    ],
)
def test_retention_comes_from_the_finest_unit_that_is_set(
    given: dict[str, int], expected_ms: int
) -> None:
    """log.retention.ms before minutes before hours; -1 has no unit."""
    broker = BrokerConfig(**given)  # type: ignore[arg-type]  # names and values are from the table
    assert TopicConfig.resolve(broker, {}).retention_ms == expected_ms


def test_roll_and_flush_fall_back_too() -> None:
    """log.roll.hours behind log.roll.ms, the flush scheduler's interval behind log.flush."""
    assert TopicConfig.resolve(BrokerConfig(log_roll_hours=1), {}).segment_ms == 3_600_000
    assert TopicConfig.resolve(BrokerConfig(log_roll_hours=1, log_roll_ms=5), {}).segment_ms == 5
    assert TopicConfig.resolve(BrokerConfig(log_roll_jitter_hours=1), {}).segment_jitter_ms == (
        3_600_000
    )
    broker = BrokerConfig(log_flush_scheduler_interval_ms=70)
    assert TopicConfig.resolve(broker, {}).flush_ms == 70


def test_defaults_of_a_default_broker_are_the_topics_defaults() -> None:
    """Nothing set anywhere: both ways to the values agree."""
    assert TopicConfig.resolve(BrokerConfig(), {}) == TopicConfig()


def test_every_synonym_is_a_broker_key() -> None:
    """A broker-wide default can be set for it."""
    for row in TOPIC_KEYS.values():
        for synonym in row.synonyms:
            assert synonym.key in BROKER_KEYS


def test_internal_segment_size_goes_below_the_bound() -> None:
    """What Kafka's own tests use for small segments."""
    topic = TopicConfig.resolve(BrokerConfig(), {"internal.segment.bytes": "100"})
    assert topic.segment_bytes == 100


def test_combinations_are_checked_against_the_brokers_defaults() -> None:
    """A topic may clash with what it inherits."""
    broker = BrokerConfig(log_cleaner_max_compaction_lag_ms=10)
    with pytest.raises(InvalidConfigError, match="conflict topic config setting"):
        validate_topic_overrides({"min.compaction.lag.ms": "11"}, broker)
    validate_topic_overrides({"min.compaction.lag.ms": "11"})


def test_a_stored_override_that_is_unknown_is_refused() -> None:
    """It can only come from a newer release's data."""
    with pytest.raises(InvalidConfigError, match=r"Unknown topic config name: new\.key"):
        TopicConfig.resolve(BrokerConfig(), {"new.key": "1"})
