"""What holds for one group."""

from broker.controller.configs.group_settings import (
    ConsumerGroupSettings,
    GroupSettings,
    ShareGroupSettings,
)
from broker.controller.configs.share_group_config import ShareGroupConfig
from broker.controller.images.cluster_image import ClusterImage, ConfigResource, ResourceType
from broker.controller.images.metadata_records import config_key, encode_config
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


def test_a_share_group_without_settings_has_those_of_the_broker() -> None:
    groups = GroupSettings(BrokerConfig().replace(group_share_record_lock_duration_ms=20_000))
    empty = ClusterImage.empty()
    assert groups.share_of(empty, "g") == ShareGroupSettings(
        45_000, 5_000, ShareGroupConfig(20_000, is_read_committed=False, auto_offset_reset="latest")
    )


def test_settings_of_a_share_group_hold_at_once() -> None:
    groups = GroupSettings(BrokerConfig())
    settings = {
        "share.session.timeout.ms": "50000",
        "share.isolation.level": "read_committed",
        "share.auto.offset.reset": "by_duration:PT1H",
        "share.record.lock.duration.ms": "15000",
    }
    image = _with(ClusterImage.empty(), "g", settings)
    assert groups.share_of(image, "g") == ShareGroupSettings(
        50_000,
        5_000,
        ShareGroupConfig(15_000, is_read_committed=True, auto_offset_reset="by_duration:PT1H"),
    )
    assert groups.share_of(image, "g") is groups.share_of(image, "g")
    image = _with(image, "g", {"share.auto.offset.reset": "now and then"})
    assert groups.share_of(image, "g") == groups.share_of(ClusterImage.empty(), "g")
