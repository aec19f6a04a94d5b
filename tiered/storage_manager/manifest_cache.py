"""Manifest cache: manifests of segments that are being read, parsed, their data key unwrapped.

Kept in memory by least recent use, up to MAXIMUM_BYTES as their sums weigh. A manifest never
changes in what matters here (`rewrap` changes how the data key is wrapped, not the key), so nothing
in memory grows stale; a deleted segment's is forgotten.
"""

from collections import OrderedDict
from typing import Final, NamedTuple
from uuid import UUID

from tiered.format.manifest import SegmentManifest
from tiered.format.transform import ChunkTransform

MAXIMUM_BYTES: Final = 32 * 1024 * 1024

_WEIGHT: Final = 4096
"""Of a manifest without chunks, its objects and its cipher."""


class OpenManifest(NamedTuple):
    """A manifest, and the transform of its segment's chunks."""

    manifest: SegmentManifest
    transform: ChunkTransform

    @property
    def weight(self) -> int:
        """Bytes in memory, about: two sums of 4 and two positions of up to 36 a chunk."""
        return _WEIGHT + 80 * self.manifest.chunk_index.count


class ManifestMemory:
    """See the module.

    Attributes:
        maximum_bytes: Most that all weigh.
        weight: What they weigh.
        hits, misses: Of `get`.
    """

    def __init__(self, maximum_bytes: int = MAXIMUM_BYTES) -> None:
        self.maximum_bytes = maximum_bytes
        self.weight = 0
        self.hits = 0
        self.misses = 0
        self._by_id: OrderedDict[UUID, OpenManifest] = OrderedDict()

    def get(self, segment: UUID) -> OpenManifest | None:
        """A segment's, if it is here."""
        found = self._by_id.get(segment)
        if found is None:
            self.misses += 1
            return None
        self.hits += 1
        self._by_id.move_to_end(segment)
        return found

    def put(self, opened: OpenManifest) -> None:
        """Keep one, for as long as there is room; one that is larger than all room is not kept."""
        segment = opened.manifest.metadata.id
        self.forget(segment)
        self._by_id[segment] = opened
        self.weight += opened.weight
        while self.weight > self.maximum_bytes:
            _, oldest = self._by_id.popitem(last=False)
            self.weight -= oldest.weight

    def forget(self, segment: UUID) -> None:
        """Drop one, if it is here."""
        found = self._by_id.pop(segment, None)
        if found is not None:
            self.weight -= found.weight

    def as_dict(self) -> dict[str, int]:
        """For metrics."""
        return {
            "entries": len(self._by_id),
            "bytes": self.weight,
            "maximum_bytes": self.maximum_bytes,
            "hits": self.hits,
            "misses": self.misses,
        }
