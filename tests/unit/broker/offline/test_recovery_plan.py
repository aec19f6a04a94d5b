"""The plan of a recovery: nothing that is committed is left out, no epoch comes again."""

from collections.abc import Sequence
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.controller.images.cluster_image import ClusterImage
from broker.controller.images.metadata_records import chunks, encode_topic, topic_key
from broker.controller.images.partition_image import NO_LEADER, PartitionImage
from broker.offline.directory_facts import FactsError, NodeFacts, ReplicaFacts
from broker.offline.recovery_plan import EPOCH_MARGIN, Planner, RecoveryPlan, check_cluster
from config.broker import BrokerConfig
from tests.unit.broker.offline.facts import (
    INCARNATION,
    OTHER_TOPIC,
    TOPIC,
    directory_id,
    node,
    replica,
)


def stored(*partitions: PartitionImage, name: str = "t", topic_id: UUID = TOPIC) -> ClusterImage:
    items = [(topic_key(name), encode_topic(topic_id)), *chunks(topic_id, partitions)]
    return ClusterImage.empty().updated(items, 5)


def partition(index: int, *replicas: int, epoch: int = 2) -> PartitionImage:
    return PartitionImage(index, replicas[0], epoch, 4, replicas, replicas)


def plan(
    image: ClusterImage, nodes: Sequence[NodeFacts], absent: tuple[int, ...] = ()
) -> RecoveryPlan:
    planner = Planner(image, nodes, absent=absent, settings=BrokerConfig())
    return planner.plan([INCARNATION])


def test_of_an_emptied_store_topics_are_made_again() -> None:
    """The ISR is who has the longest log of the latest epoch."""
    made = plan(
        ClusterImage.empty(),
        [
            node(1, replica(end=10), replica(1, end=8)),
            node(2, replica(end=9), replica(1, end=8)),
            node(3, replica(end=99, end_epoch=4)),
        ],
    )
    (topic,) = made.topics
    assert (topic.topic_id, made.rebuilt) == (TOPIC, ["t"])
    assert topic.settings is not None
    assert topic.settings["retention.ms"] == "-1"
    first, second = topic.partitions
    assert (first.replicas, first.isr, first.leader) == ((1, 2, 3), (1,), NO_LEADER)
    assert (second.replicas, second.isr) == ((1, 2), (1, 2))
    assert first.leader_epoch == 5 + EPOCH_MARGIN
    assert first.directory_on(2) == directory_id(2)


def test_a_topic_of_an_old_copy_keeps_its_settings_and_its_replicas() -> None:
    """Replicas that moved since are all kept; who has none stays up to their number."""
    image = stored(partition(0, 1, 2, 3), partition(1, 2, 3, epoch=9))
    made = plan(image, [node(1, replica(1)), node(2, replica()), node(3), node(4, replica())])
    (topic,) = made.topics
    assert topic.settings is None
    assert topic.partitions[0].replicas == (2, 4, 1)
    assert topic.partitions[0].isr == (2, 4)
    assert topic.partitions[1].replicas == (1, 2)
    assert topic.partitions[1].leader_epoch == 9 + EPOCH_MARGIN
    assert made.highest_epoch == 9


def test_a_topic_that_no_directory_has_is_kept_and_named() -> None:
    made = plan(stored(partition(0, 1)), [node(1, replica(deleted=True))])
    assert (made.without_log, made.deleted, made.empty) == (["t"], ["t"], [])
    assert made.topics[0].partitions[0].isr == (1,)


def test_a_topic_made_anew_since_is_that_of_the_directories() -> None:
    """The old copy's id goes; logs of it are kept aside."""
    image = stored(partition(0, 1, 2))
    later = replica(topic_id=OTHER_TOPIC)
    made = plan(image, [node(1, later), node(2, replica())])
    (topic,) = made.topics
    assert (topic.topic_id, topic.replaces) == (OTHER_TOPIC, TOPIC)
    assert made.anew == ["t"]
    assert len(made.aside) == 1
    assert topic.partitions[0].replicas == (1,)


def test_a_log_that_does_not_name_its_topic_goes_with_the_others() -> None:
    made = plan(ClusterImage.empty(), [node(1, replica(topic_id=None)), node(2, replica())])
    assert made.topics[0].partitions[0].replicas == (1, 2)
    with pytest.raises(FactsError, match=r"partition\.metadata"):
        plan(ClusterImage.empty(), [node(1, replica(topic_id=None))])


def test_a_broker_that_was_not_asked_keeps_its_place() -> None:
    """Its log may be the only one, or the longest: nothing is led in its stead without a log."""
    image = stored(partition(0, 1, 2), partition(1, 2))
    made = plan(image, [node(1, replica())], absent=(2,))
    first, second = made.topics[0].partitions
    assert (first.replicas, first.isr) == ((1, 2), (1,))
    assert made.uncertain == ["t-0"]
    assert (second.replicas, second.isr, second.elr) == ((2,), (), (2,))
    assert made.waiting == ["t-1"]


def test_a_gap_among_partitions_is_filled_with_an_empty_one() -> None:
    made = plan(ClusterImage.empty(), [node(1, replica(2)), node(2, replica(2))])
    partitions = made.topics[0].partitions
    assert [one.replicas for one in partitions] == [(1, 2)] * 3
    assert made.empty == ["t-0", "t-1"]


def test_internal_topics_get_their_own_settings_and_tiered_ones_stay_tiered() -> None:
    made = plan(
        ClusterImage.empty(),
        [node(1, replica(topic="__consumer_offsets"), replica(topic="u", lost_head=True))],
    )
    offsets, tiered = made.topics
    assert offsets.settings is not None
    assert offsets.settings["cleanup.policy"] == "compact"
    assert tiered.settings is not None
    assert tiered.settings["remote.storage.enable"] == "true"


def test_brokers_of_two_clusters_are_refused() -> None:
    with pytest.raises(FactsError, match="different clusters"):
        check_cluster([node(1), node(2, cluster_id="d")], ClusterImage.empty())
    with pytest.raises(FactsError, match="named 2 times"):
        check_cluster([node(1), node(1)], ClusterImage.empty())
    with pytest.raises(FactsError, match="no log directories"):
        check_cluster([], ClusterImage.empty())


replicas = st.builds(
    replica,
    st.integers(0, 3),
    epoch=st.integers(0, 9),
    end=st.integers(0, 9),
    end_epoch=st.integers(-1, 9),
)
facts = st.lists(st.lists(replicas, max_size=4, unique_by=lambda one: one.index), max_size=4)


@given(facts, st.lists(st.sets(st.integers(1, 4), min_size=1), max_size=4), st.integers(0, 12))
def test_every_log_has_a_place_and_no_epoch_comes_again(
    found: list[list[ReplicaFacts]], known: list[set[int]], epoch: int
) -> None:
    """Whatever was found, in whatever the store says."""
    nodes = [node(number + 1, *one) for number, one in enumerate(found)]
    image = ClusterImage.empty()
    if known:
        image = stored(*(partition(n, *sorted(one), epoch=epoch) for n, one in enumerate(known)))
    if not nodes:
        return
    by_name = {topic.name: topic for topic in plan(image, nodes).topics}
    for one in nodes:
        for log in one.directories[0].replicas:
            planned = by_name["t"].partitions[log.index]
            assert one.node_id in planned.replicas
            assert planned.leader_epoch > log.epoch
            assert planned.isr
    for number in range(len(known)):
        planned = by_name["t"].partitions[number]
        assert planned.leader_epoch > epoch
        assert set(planned.isr) <= set(planned.replicas)
