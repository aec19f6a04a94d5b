"""The image: made from keys in any order, replaced as a whole, never changed."""

from uuid import UUID

import pytest

from broker.controller.images.cluster_image import (
    BrokerEndpoint,
    BrokerImage,
    ClusterImage,
    ConfigResource,
    PartitionImage,
    ResourceType,
)
from broker.controller.images.metadata_records import (
    MetadataFormatError,
    chunks,
    config_key,
    encode_config,
    encode_topic,
    topic_key,
)

ID = UUID(int=7)
TOPIC = ConfigResource(ResourceType.TOPIC, "t")


def partitions_of(count: int) -> list[PartitionImage]:
    return [PartitionImage(i, 1, 0, 0, (1,), (1,)) for i in range(count)]


def keys_of(name: str, topic_id: UUID, count: int) -> list[tuple[str, bytes | None]]:
    return [(topic_key(name), encode_topic(topic_id)), *chunks(topic_id, partitions_of(count))]


def test_order_of_keys_does_not_matter() -> None:
    """A listing has partitions before their topic."""
    keys = [*keys_of("t", ID, 300), (config_key(TOPIC), encode_config({"a": "1"}))]
    forwards = ClusterImage.empty().updated(keys, 2)
    backwards = ClusterImage.empty().updated(reversed(keys), 2)
    assert forwards == backwards
    assert list(forwards.topics["t"].partitions) == partitions_of(300)
    assert forwards.topics["t"].overrides == {"a": "1"}


def test_names_of_ids() -> None:
    image = ClusterImage.empty().updated(keys_of("t", ID, 1), 2)
    assert image.name_of(ID.bytes) == "t"
    assert image.name_of(UUID(int=8).bytes) is None


def test_update_leaves_the_old_image_alone() -> None:
    old = ClusterImage.empty().updated(keys_of("t", ID, 2), 2)
    new = old.updated([(topic_key("t"), None)], 3)
    assert set(old.topics) == {"t"}
    assert new.topics == {}
    assert new.topics_by_id == {}
    assert (old.revision, new.revision) == (2, 3)


def test_topics_that_did_not_change_are_the_same_objects() -> None:
    """What others have computed from them stays valid."""
    old = ClusterImage.empty().updated([*keys_of("t", ID, 2), *keys_of("u", UUID(int=8), 2)], 2)
    new = old.updated([(config_key(TOPIC), encode_config({"a": "1"}))], 3)
    assert new.topics["u"] is old.topics["u"]
    assert new.topics["t"] is not old.topics["t"]


def test_topic_replaced_by_one_of_the_same_name_starts_over() -> None:
    """Nothing of the old one's partitions and settings remains."""
    old = ClusterImage.empty().updated(
        [*keys_of("t", ID, 300), (config_key(TOPIC), encode_config({"a": "1"}))], 2
    )
    new = old.updated([(config_key(TOPIC), None), *keys_of("t", UUID(int=8), 1)], 3)
    assert len(new.topics["t"].partitions) == 1
    assert new.topics["t"].overrides == {}
    assert set(new.topics_by_id) == {UUID(int=8)}


def test_partitions_without_a_topic_are_not_shown() -> None:
    image = ClusterImage.empty().updated(keys_of("t", ID, 2)[1:], 2)
    assert image.topics == {}


def test_look_ups() -> None:
    image = ClusterImage.empty().updated(keys_of("t", ID, 2), 2)
    assert image.partition("t", 1) == PartitionImage(1, 1, 0, 0, (1,), (1,))
    assert image.partition("t", 2) is None
    assert image.partition("t", -1) is None
    assert image.partition("u", 0) is None
    assert image.partition_count == 2
    assert image.config(TOPIC) == {}
    assert image.config(ConfigResource(ResourceType.TOPIC, "u")) == {}
    assert image.config(ConfigResource(ResourceType.GROUP, "g")) == {}


def test_internal_topics_are_marked() -> None:
    image = ClusterImage.empty().updated(
        [*keys_of("__consumer_offsets", ID, 1), *keys_of("__mine", UUID(int=8), 1)], 2
    )
    assert image.topics["__consumer_offsets"].internal
    assert not image.topics["__mine"].internal


def test_brokers_are_replaced_together() -> None:
    endpoint = {"PLAINTEXT": BrokerEndpoint("h", 1)}
    image = ClusterImage.empty().with_brokers([BrokerImage(1, endpoint), BrokerImage(2, endpoint)])
    assert set(image.brokers) == {1, 2}
    again = image.with_brokers([BrokerImage(3, endpoint)])
    assert set(again.brokers) == {3}
    assert again.broker_revision > image.broker_revision


def test_damage_is_told() -> None:
    with pytest.raises(MetadataFormatError):
        ClusterImage.empty().updated([(topic_key("t"), b"?")], 2)


def test_settings_cannot_be_changed_in_place() -> None:
    image = ClusterImage.empty().updated(
        [*keys_of("t", ID, 1), (config_key(TOPIC), encode_config({"a": "1"}))], 2
    )
    with pytest.raises(TypeError):
        image.topics["t"].overrides["a"] = "2"  # type: ignore[index]  # what is to fail
