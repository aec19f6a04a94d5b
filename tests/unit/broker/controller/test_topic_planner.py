"""What is committed for a topic."""

from uuid import UUID

from broker.controller.configs.configs import ConfigRules
from broker.controller.images.cluster_image import BrokerEndpoint, BrokerImage, ClusterImage
from broker.controller.images.metadata_records import parse_partitions_key
from broker.controller.store.metadata_store import Put, key_absent, key_present
from broker.controller.topic_planner import RESERVED_IDS, TopicPlanner, fresh_id
from broker.controller.topics.topics import NewPartitions, NewTopic
from config.broker import BrokerConfig
from protocol.error_codes import ErrorCode
from storage.environment.randomness import SeededRandomness

SETTINGS = BrokerConfig()
PLANNER = TopicPlanner(SETTINGS, ConfigRules(SETTINGS), SeededRandomness(0))
IMAGE = ClusterImage.empty().with_brokers([BrokerImage(1, {"P": BrokerEndpoint("h", 1)})])


def test_creation_is_one_unit_that_needs_the_name_to_be_free() -> None:
    """The topic, its chunks, its settings: all in it."""
    new = NewTopic("t", 200, 1, configs=[("retention.ms", "1")])
    ((result, unit),) = PLANNER.plan_topics(IMAGE, [new])
    assert unit is not None
    assert unit.compare == (key_absent("topics/t"),)
    keys = [operation.key for operation in unit.operations]
    assert keys[0] == "topics/t"
    assert [parse_partitions_key(key)[1] for key in keys[1:3]] == [0, 128]
    assert keys[3] == "configs/topic/t"
    changes = [(o.key, o.value) for o in unit.operations if isinstance(o, Put)]
    assert IMAGE.updated(changes, 2).topics["t"] == result.topic


def test_extension_writes_only_the_chunks_that_change() -> None:
    ((_, unit),) = PLANNER.plan_topics(IMAGE, [NewTopic("t", 130, 1)])
    assert unit is not None
    image = IMAGE.updated([(o.key, o.value) for o in unit.operations if isinstance(o, Put)], 2)
    result, unit = PLANNER.plan_extension(image, NewPartitions("t", 131))
    assert result.error is ErrorCode.NONE
    assert unit is not None
    assert unit.compare == (key_present("topics/t"),)
    assert [parse_partitions_key(o.key)[1] for o in unit.operations] == [128]


def test_refused_topics_have_nothing_to_commit() -> None:
    ((result, unit),) = PLANNER.plan_topics(IMAGE, [NewTopic("bad name")])
    assert (result.error, result.topic, unit) == (ErrorCode.INVALID_TOPIC_EXCEPTION, None, None)
    failed, unit = PLANNER.plan_extension(IMAGE, NewPartitions("none", 1))
    assert (failed.error, unit) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)


def test_fresh_ids_are_random_and_never_reserved() -> None:
    randomness = SeededRandomness(1)
    drawn = {fresh_id(randomness) for _ in range(200)}
    assert len(drawn) == 200
    assert {UUID(int=0), UUID(int=1)} == RESERVED_IDS
    assert not drawn & RESERVED_IDS


def test_every_change_of_a_directory_is_of_the_next_partition_epoch() -> None:
    """And what is there already changes nothing: an epoch says that a record is another."""
    ((_, unit),) = PLANNER.plan_topics(IMAGE, [NewTopic("t", 3, 1)])
    assert unit is not None
    image = IMAGE.updated([(o.key, o.value) for o in unit.operations if isinstance(o, Put)], 2)
    topic = image.topics["t"]
    place, other = UUID(int=1000), UUID(int=1001)

    def assigned(before: ClusterImage, places: dict[int, UUID]) -> ClusterImage:
        planned = PLANNER.plan_places(before, topic.topic_id, places)
        changes = [(o.key, o.value) for o in planned.operations if isinstance(o, Put)]
        return before.updated(changes, before.revision + 1)

    once = assigned(image, {0: place, 2: place, 7: place})
    assert [p.partition_epoch for p in once.topics["t"].partitions] == [1, 0, 1]
    again = assigned(once, {0: place, 1: place, 2: other})
    assert [p.partition_epoch for p in again.topics["t"].partitions] == [1, 1, 2]
    assert [p.directory_on(1) for p in again.topics["t"].partitions] == [place, place, other]
