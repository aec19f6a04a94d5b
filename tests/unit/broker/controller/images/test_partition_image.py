"""A partition's image: log directories of its replicas."""

from uuid import UUID

from broker.controller.images.partition_image import PartitionImage

ONE = UUID(int=11)
TWO = UUID(int=12)


def test_directory_of_each_replica() -> None:
    """One at a time; those that are not known stay unknown."""
    partition = PartitionImage(0, 1, 0, 0, (1, 2, 3), (1,))
    assert partition.directory_on(1) is None
    placed = partition.placed(2, TWO)
    assert placed.directory_on(2) == TWO
    assert placed.directory_on(1) is None
    both = placed.placed(1, ONE)
    assert [both.directory_on(node) for node in (1, 2, 3, 4)] == [ONE, TWO, None, None]


def test_no_directory_is_known_is_the_same_as_before() -> None:
    """So a partition whose last directory is forgotten is stored as one that never had any."""
    partition = PartitionImage(0, 1, 0, 0, (1, 2), (1,))
    assert partition.placed(1, ONE).placed(1, None) == partition
