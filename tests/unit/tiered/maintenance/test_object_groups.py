"""Objects of one copy come together again, across pages."""

from uuid import UUID

from tiered.format.object_keys import ObjectKeys
from tiered.maintenance.object_groups import ObjectGroup, ObjectGrouping
from tiered.object_store.base import ObjectInfo
from tiered.segment_metadata import RemoteLogSegmentId, TopicIdPartition

KEYS = ObjectKeys()
PARTITION = TopicIdPartition(UUID(int=1), "t", 0)


def _names(number: int) -> list[str]:
    return sorted(KEYS.keys_of(RemoteLogSegmentId(PARTITION, UUID(int=number)), number))


def test_groups_are_given_when_the_next_begins() -> None:
    grouping = ObjectGrouping()
    found: list[ObjectGroup] = []
    names = _names(1) + _names(2)[:1] + _names(3)
    for at, name in enumerate(names):
        key = KEYS.parse(name)
        assert key is not None
        group = grouping.add(key, ObjectInfo(name, 1, at))
        if group is not None:
            found.append(group)
    last = grouping.finish()
    assert last is not None
    found.append(last)
    assert [len(group.objects) for group in found] == [3, 1, 3]
    assert [group.is_whole for group in found] == [True, False, True]
    assert found[0].modified_ms == 2
    assert found[0].keys[0].endswith(".rsm-manifest")
    assert found[0].partition == PARTITION
    assert grouping.finish() is None
