"""A partition's image: log directories of its replicas, and a reassignment of them."""

from dataclasses import replace
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


def test_what_was_before_a_reassignment_and_what_will_be_after() -> None:
    partition = PartitionImage(0, 1, 0, 0, (1, 2), (1,))
    assert (partition.original, partition.target) == ((1, 2), (1, 2))
    assert not partition.is_reassigning
    moving = replace(partition, replicas=(3, 2, 1, 4), adding=(3, 4), removing=(1, 4))
    assert (moving.original, moving.target) == ((2, 1), (3, 2))
    assert moving.is_reassigning


def test_replicas_that_are_kept_keep_their_directories() -> None:
    """And there is no reassignment any more."""
    placed = PartitionImage(0, 1, 0, 0, (1, 2, 3), (1,), adding=(3,)).placed(2, TWO).placed(3, ONE)
    kept = placed.keeping((3, 1))
    assert (kept.replicas, kept.adding) == ((3, 1), ())
    assert [kept.directory_on(node) for node in (1, 2, 3)] == [None, None, ONE]
    assert placed.keeping((1,)).directories == ()
