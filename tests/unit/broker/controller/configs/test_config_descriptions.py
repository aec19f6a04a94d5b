"""Settings as clients see them: value, source, synonyms."""

from broker.controller.configs.config_descriptions import (
    ConfigDescriptions,
    ConfigEntry,
    ConfigSource,
    ConfigSynonym,
)
from broker.controller.images.cluster_image import ClusterImage, ConfigResource, ResourceType
from broker.controller.images.metadata_records import config_key, encode_config
from config.broker import BROKER_KEYS, BrokerConfig
from config.kinds import WireType
from config.topic import TOPIC_KEYS

ME = ConfigResource(ResourceType.BROKER, "1")
ALL = ConfigResource(ResourceType.BROKER, "")


def image_with(**settings: dict[str, str]) -> ClusterImage:
    resources = {"me": ME, "all": ALL}
    return ClusterImage.empty().updated(
        [(config_key(resources[who]), encode_config(given)) for who, given in settings.items()], 2
    )


def named(entries: list[ConfigEntry], name: str) -> ConfigEntry:
    return next(entry for entry in entries if entry.name == name)


def test_default_of_a_topic() -> None:
    """Kafka's default, with the broker key it would come from as synonym."""
    entries = ConfigDescriptions(BrokerConfig(), ClusterImage.empty()).topic_with({})
    entry = named(entries, "segment.bytes")
    assert (entry.value, entry.source) == ("1073741824", ConfigSource.DEFAULT_CONFIG)
    assert entry.synonyms == [
        ConfigSynonym("log.segment.bytes", "1073741824", ConfigSource.DEFAULT_CONFIG)
    ]
    assert (entry.type, entry.read_only, entry.is_sensitive) == (WireType.INT, False, False)
    assert entry.documentation == TOPIC_KEYS["segment.bytes"].text
    assert [e.name for e in entries] == sorted(e.name for e in entries)
    assert "internal.segment.bytes" not in {e.name for e in entries}


def test_every_level_is_a_synonym_strongest_first() -> None:
    """Topic, this broker, all brokers, start-up, default."""
    settings = BrokerConfig().replace(log_segment_bytes=4_000_000)
    image = image_with(me={"log.segment.bytes": "2000000"}, all={"log.segment.bytes": "3000000"})
    entries = ConfigDescriptions(settings, image).topic_with({"segment.bytes": "1500000"})
    entry = named(entries, "segment.bytes")
    assert (entry.value, entry.source) == ("1500000", ConfigSource.TOPIC_CONFIG)
    assert entry.synonyms == [
        ConfigSynonym("segment.bytes", "1500000", ConfigSource.TOPIC_CONFIG),
        ConfigSynonym("log.segment.bytes", "2000000", ConfigSource.DYNAMIC_BROKER_CONFIG),
        ConfigSynonym("log.segment.bytes", "3000000", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        ConfigSynonym("log.segment.bytes", "4000000", ConfigSource.STATIC_BROKER_CONFIG),
        ConfigSynonym("log.segment.bytes", "1073741824", ConfigSource.DEFAULT_CONFIG),
    ]
    without = named(ConfigDescriptions(settings, image).topic_with({}), "segment.bytes")
    assert (without.value, without.source) == ("2000000", ConfigSource.DYNAMIC_BROKER_CONFIG)


def test_retention_in_hours_is_shown_as_kafka_shows_it() -> None:
    """Its value in milliseconds, but no synonyms and DEFAULT_CONFIG: the key itself is not set."""
    settings = BrokerConfig().replace(log_retention_hours=2)
    entry = named(ConfigDescriptions(settings, ClusterImage.empty()).topic_with({}), "retention.ms")
    assert (entry.value, entry.source, entry.synonyms) == (
        "7200000",
        ConfigSource.DEFAULT_CONFIG,
        [],
    )
    settings = settings.replace(log_retention_ms=5)
    entry = named(ConfigDescriptions(settings, ClusterImage.empty()).topic_with({}), "retention.ms")
    assert [s.name for s in entry.synonyms] == [
        "log.retention.ms",
        "log.retention.hours",
        "log.retention.hours",
    ]
    assert entry.source is ConfigSource.STATIC_BROKER_CONFIG


def test_override_is_written_as_kafka_writes_it() -> None:
    """A boolean in capitals was accepted; it is shown in small letters."""
    entry = named(
        ConfigDescriptions(BrokerConfig(), ClusterImage.empty()).topic_with(
            {"preallocate": "TRUE"}
        ),
        "preallocate",
    )
    assert entry.value == "true"


def test_override_of_an_internal_key_is_shown() -> None:
    entries = ConfigDescriptions(BrokerConfig(), ClusterImage.empty()).topic_with(
        {"internal.segment.bytes": "100"}
    )
    assert named(entries, "internal.segment.bytes").value == "100"


def test_broker_entries_tell_what_can_be_changed() -> None:
    """Read-only is what needs a restart."""
    settings = BrokerConfig().replace(num_partitions=7)
    entries = ConfigDescriptions(settings, image_with(me={"log.cleaner.backoff.ms": "5"})).broker()
    partitions = named(entries, "num.partitions")
    assert (partitions.value, partitions.read_only) == ("7", True)
    assert partitions.source is ConfigSource.STATIC_BROKER_CONFIG
    backoff = named(entries, "log.cleaner.backoff.ms")
    assert (backoff.value, backoff.read_only) == ("5", False)
    assert backoff.source is ConfigSource.DYNAMIC_BROKER_CONFIG
    assert {e.name for e in entries} >= {n for n, r in BROKER_KEYS.items() if not r.internal}


def test_unknown_key_is_shown_without_its_value() -> None:
    """It may be a secret of whoever put it there."""
    entry = named(
        ConfigDescriptions(BrokerConfig(), image_with(me={"their.password": "x"})).broker(),
        "their.password",
    )
    assert (entry.value, entry.is_sensitive) == (None, True)
    assert [s.value for s in entry.synonyms] == [None]


def test_all_brokers_shows_only_what_is_set_on_all() -> None:
    """Whatever this broker uses itself."""
    image = image_with(
        me={"log.cleaner.backoff.ms": "5"}, all={"log.cleaner.backoff.ms": "6", "x": "y"}
    )
    entries = ConfigDescriptions(BrokerConfig(), image).all_brokers()
    source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    assert [(e.name, e.value, e.source) for e in entries] == [
        ("log.cleaner.backoff.ms", "6", source),
        ("x", None, source),
    ]
    assert entries[0].synonyms == [ConfigSynonym("log.cleaner.backoff.ms", "6", source)]


def test_group_and_client_metrics_entries() -> None:
    group = ConfigResource(ResourceType.GROUP, "g")
    metrics = ConfigResource(ResourceType.CLIENT_METRICS, "m")
    image = ClusterImage.empty().updated(
        [
            (config_key(group), encode_config({"consumer.session.timeout.ms": "50000"})),
            (config_key(metrics), encode_config({"interval.ms": "1000"})),
        ],
        2,
    )
    descriptions = ConfigDescriptions(BrokerConfig(), image)
    entry = named(descriptions.group("g"), "consumer.session.timeout.ms")
    assert (entry.value, entry.source) == ("50000", ConfigSource.GROUP_CONFIG)
    entry = named(descriptions.group("other"), "consumer.session.timeout.ms")
    assert (entry.value, entry.source) == ("45000", ConfigSource.DEFAULT_CONFIG)
    entry = named(descriptions.client_metrics("m"), "interval.ms")
    assert (entry.value, entry.source) == ("1000", ConfigSource.CLIENT_METRICS_CONFIG)
    entry = named(descriptions.client_metrics("m"), "match")
    assert (entry.value, entry.synonyms, entry.type) == ("", [], WireType.LIST)
