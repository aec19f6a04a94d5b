"""Encoded responses that only depend on the cluster image, kept until the image changes.

Every client of a cluster asks for the same metadata after every change, and encoding five thousand
partitions takes milliseconds of the event loop.
"""

from typing import Final

from broker.controller.images.cluster_image import ClusterImage

ENTRIES_MAX: Final = 32
"""Responses kept: versions times listeners times what was asked for."""

BYTES_MAX: Final = 32 * 1024 * 1024
"""Bytes of all of them together; a larger one is not kept."""


class ResponseCache:
    """The responses to one image; the oldest goes when there are too many."""

    __slots__ = ("_entries", "_image", "hits", "misses", "size")

    def __init__(self) -> None:
        self._image: ClusterImage | None = None
        self._entries: dict[tuple[object, ...], bytes] = {}
        self.size = 0
        self.hits = 0
        self.misses = 0

    def get(self, image: ClusterImage, key: tuple[object, ...]) -> bytes | None:
        """The response to `key` under exactly this image, None when it is not kept."""
        found = self._entries.get(key) if image is self._image else None
        if found is None:
            self.misses += 1
        else:
            self.hits += 1
        return found

    def put(self, image: ClusterImage, key: tuple[object, ...], body: bytes) -> None:
        """Keep a response; those to other images are forgotten."""
        if image is not self._image:
            self._image = image
            self._entries.clear()
            self.size = 0
        if len(body) > BYTES_MAX:
            return
        self.size += len(body) - len(self._entries.pop(key, b""))
        self._entries[key] = body
        while len(self._entries) > ENTRIES_MAX or self.size > BYTES_MAX:
            oldest = next(iter(self._entries))
            self.size -= len(self._entries.pop(oldest))

    def __len__(self) -> int:
        return len(self._entries)
