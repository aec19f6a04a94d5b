"""Object groups: the objects of one copy, which lie side by side in a listing."""

from dataclasses import dataclass

from tiered.format.object_keys import ObjectSuffix, SegmentKey
from tiered.object_store.base import ObjectInfo
from tiered.segment_metadata import TopicIdPartition


@dataclass(slots=True)
class ObjectGroup:
    """All that the bucket has of one copy.

    Attributes:
        key: Of the first of them.
        objects: In key order.
        suffixes: Which there are.
    """

    key: SegmentKey
    objects: list[ObjectInfo]
    suffixes: set[ObjectSuffix]

    @property
    def partition(self) -> TopicIdPartition:
        """Of the copied segment."""
        return self.key.segment_id.partition

    @property
    def is_whole(self) -> bool:
        """None is missing."""
        return self.suffixes.issuperset(ObjectSuffix)

    @property
    def modified_ms(self) -> int:
        """When the newest was written, by the store's clock."""
        return max(found.modified_ms for found in self.objects)

    @property
    def keys(self) -> list[str]:
        """Names, the manifest's first: without it the others are garbage for everyone."""
        names = [found.key for found in self.objects]
        manifest = f".{ObjectSuffix.MANIFEST}"
        return sorted(names, key=lambda name: (not name.endswith(manifest), name))


class ObjectGrouping:
    """Given objects in key order, gives back groups as soon as they are complete."""

    __slots__ = ("_group",)

    def __init__(self) -> None:
        self._group: ObjectGroup | None = None

    def add(self, key: SegmentKey, found: ObjectInfo) -> ObjectGroup | None:
        """The next object; returns the group before it if this one begins another."""
        group = self._group
        if group is not None and group.key.segment_id == key.segment_id:
            group.objects.append(found)
            group.suffixes.add(key.suffix)
            return None
        self._group = ObjectGroup(key, [found], {key.suffix})
        return group

    def finish(self) -> ObjectGroup | None:
        """There are no more objects."""
        group, self._group = self._group, None
        return group
