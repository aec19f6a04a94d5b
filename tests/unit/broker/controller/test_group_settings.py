"""What holds for one consumer group."""

from broker.controller.cluster_image import ClusterImage, ConfigResource, ResourceType
from broker.controller.group_settings import ConsumerGroupSettings, GroupSettings
from broker.controller.metadata_records import config_key, encode_config
from config.broker import BrokerConfig


def _with(image: ClusterImage, group_id: str, settings: dict[str, str]) -> ClusterImage:
    key = config_key(ConfigResource(ResourceType.GROUP, group_id))
    return image.updated([(key, encode_config(settings))], image.revision + 1)


def test_a_group_without_settings_has_those_of_the_broker() -> None:
    groups = GroupSettings(BrokerConfig())
    assert groups.of(ClusterImage.empty(), "g") == ConsumerGroupSettings(45_000, 5_000)
    image = _with(ClusterImage.empty(), "other", {"consumer.session.timeout.ms": "50000"})
    assert groups.of(image, "g") is groups.default


def test_settings_hold_at_once_and_until_they_are_taken_back() -> None:
    groups = GroupSettings(BrokerConfig())
    image = _with(ClusterImage.empty(), "g", {"consumer.session.timeout.ms": "50000"})
    assert groups.of(image, "g") == ConsumerGroupSettings(50_000, 5_000)
    image = _with(image, "g", {"consumer.heartbeat.interval.ms": "7000"})
    assert groups.of(image, "g") == ConsumerGroupSettings(45_000, 7_000)
    image = _with(image, "g", {})
    assert groups.of(image, "g") == groups.default


def test_a_group_is_read_once_for_each_change() -> None:
    """Every heartbeat asks."""
    groups = GroupSettings(BrokerConfig())
    image = _with(ClusterImage.empty(), "g", {"consumer.session.timeout.ms": "50000"})
    assert groups.of(image, "g") is groups.of(image, "g")


def test_what_an_earlier_release_accepted_is_left_out() -> None:
    groups = GroupSettings(BrokerConfig())
    image = _with(ClusterImage.empty(), "g", {"consumer.session.timeout.ms": "soon"})
    assert groups.of(image, "g") == groups.default
