"""Log directories of replicas: those that stay, and those that are added."""

from uuid import UUID

from broker.controller.images.broker_records import (
    BrokerImage,
    BrokerRegistration,
)
from broker.controller.images.cluster_image import ClusterImage
from broker.controller.images.partition_image import PartitionImage
from broker.controller.images.replica_directories import (
    UNASSIGNED,
    default_directory,
    directories_of,
    with_replicas,
)

A, B, C, D = (UUID(int=1000 + number) for number in range(4))


def image(**directories: tuple[UUID, ...]) -> ClusterImage:
    """Brokers by `b<id>`, with their directories."""
    return ClusterImage.empty().with_brokers(
        BrokerImage(
            int(name[1:]), {}, registration=BrokerRegistration(UUID(int=7), {}, directories=ids)
        )
        for name, ids in directories.items()
    )


def test_new_replica_is_in_the_only_directory_of_its_broker() -> None:
    assert directories_of(image(b1=(A,), b2=(B,)), (2, 1)) == (B, A)


def test_broker_with_several_directories_chooses_itself() -> None:
    cluster = image(b1=(A,), b2=(B, C))
    assert directories_of(cluster, (1, 2)) == (A, UNASSIGNED)
    assert default_directory(cluster, 2) == UNASSIGNED


def test_unknown_broker_and_single_node_say_nothing() -> None:
    alone = ClusterImage.empty().with_brokers([BrokerImage(1, {})])
    assert directories_of(alone, (1,)) == ()
    assert directories_of(image(), (5, 6)) == ()


def test_replicas_that_stay_keep_their_directories() -> None:
    cluster = image(b1=(A,), b2=(B,), b3=(C,))
    before = PartitionImage(0, 1, 0, 0, (1, 2), (1, 2), (D, UNASSIGNED))
    assert directories_of(cluster, (3, 2, 1), before) == (C, UNASSIGNED, D)
    assert with_replicas(cluster, before, (3, 1)).directories == (C, D)
    assert with_replicas(cluster, before, (3, 1)).replicas == (3, 1)


def test_record_without_directories_gets_those_that_are_added() -> None:
    before = PartitionImage(0, 1, 0, 0, (1,), (1,))
    assert directories_of(image(b1=(A,), b2=(B,)), (1, 2), before) == (UNASSIGNED, B)
    assert directories_of(image(b1=(A,)), (1,), before) == ()
