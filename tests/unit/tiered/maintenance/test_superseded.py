"""A copy that others hold is garbage; one that holds a record that no other has is history."""

from collections.abc import Sequence

import pytest
from typing_extensions import override

from tests.fakes.tiered.manifest_bucket import ManifestBucket
from tests.fakes.timer import ManualTimer
from tests.unit.tiered.metadata.lookup_metadata import LookupMetadata
from tiered.deadline import Deadline
from tiered.format.object_keys import ObjectKeys
from tiered.maintenance.superseded import held_by, is_superseded
from tiered.segment_metadata import RemoteLogSegmentMetadata


def key_of(segment: RemoteLogSegmentMetadata) -> str:
    return ObjectKeys().segment_keys(segment).manifest


class Bucket(ManifestBucket):
    @override
    async def is_complete(self, metadata: RemoteLogSegmentMetadata) -> bool:
        return all(key in self.objects for key in ObjectKeys().segment_keys(metadata))


class World:
    def __init__(self) -> None:
        self.bucket = Bucket()
        self.metadata = LookupMetadata()
        self.timer = ManualTimer()

    def copy(self, start: int, last: int, *epochs: tuple[int, int]) -> RemoteLogSegmentMetadata:
        """One that the metadata does not know."""
        return self.bucket.add("t", 0, start, last, epochs=epochs or None)

    def known(self, start: int, last: int, *epochs: tuple[int, int]) -> RemoteLogSegmentMetadata:
        segment = self.copy(start, last, *epochs)
        self.metadata.add_finished(segment)
        return segment

    async def is_superseded(self, segment: RemoteLogSegmentMetadata) -> bool:
        return await is_superseded(
            key_of(segment),
            self.bucket,
            self.metadata,
            lambda _calls, what: Deadline(self.timer, 1000, what),
        )


async def test_what_the_next_leader_has_copied_again() -> None:
    """It rolls at other offsets; records are named by offset and epoch."""
    world = World()
    copy = world.copy(10, 29)
    assert not await world.is_superseded(copy)
    world.known(0, 14)
    assert not await world.is_superseded(copy)
    world.known(15, 49)
    assert await world.is_superseded(copy)


@pytest.mark.parametrize("gap", [(0, 14, 16, 49), (0, 9, 15, 49)])
async def test_a_record_that_is_in_no_other_keeps_it(gap: Sequence[int]) -> None:
    world = World()
    copy = world.copy(10, 29)
    world.known(gap[0], gap[1])
    world.known(gap[2], gap[3])
    assert not await world.is_superseded(copy)


async def test_offsets_of_another_epoch_are_other_records() -> None:
    world = World()
    copy = world.copy(10, 29, (1, 10), (3, 20))
    world.known(0, 49, (1, 0), (2, 15), (3, 20))
    assert held_by(copy, world.metadata) == []
    assert not await world.is_superseded(copy)
    world.known(15, 19, (1, 15))
    assert await world.is_superseded(copy)


async def test_others_must_be_there() -> None:
    world = World()
    copy = world.copy(10, 19)
    other = world.known(10, 19)
    del world.bucket.objects[key_of(other)]
    assert not await world.is_superseded(copy)


async def test_a_manifest_that_is_gone_or_damaged_says_nothing() -> None:
    world = World()
    copy = world.copy(10, 19)
    world.known(10, 19)
    world.bucket.objects[key_of(copy)] = b"{}"
    assert not await world.is_superseded(copy)
    del world.bucket.objects[key_of(copy)]
    assert not await world.is_superseded(copy)
