"""The cluster's images: one per revision of the metadata store, in order, to all listeners.

    load at revision r ──> watch from r + 1 ──> image of the next revision ──> listeners, one by one
         ^                                                                          │
         └────────── the store has forgotten what is next <─────────────────────────┘

Our own changes come the same way as those of other brokers, so that every broker makes the same
image of the same revision. A change is answered when its revision has been reached here.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from broker.controller.images.cluster_image import BrokerImage, ClusterImage, is_shown
from broker.controller.images.metadata_records import MetadataFormatError
from broker.controller.store.metadata_store import (
    Changes,
    CompactedError,
    MetadataStore,
    StoreClosedError,
    Watch,
)
from broker.controller.store.whole_range import whole_range

LOGGER = logging.getLogger(__name__)

Listener = Callable[[ClusterImage, ClusterImage], Awaitable[None]]
"""Called with the old and the new image, after the commit, before the answer."""


class ImageFeed:
    """See the module. Runs on the loop's thread.

    Attributes:
        image: The newest; replaced as a whole.
    """

    def __init__(self, store: MetadataStore, image: ClusterImage) -> None:
        self._store = store
        self.image = image
        self._listeners: list[Listener] = []
        self._watch: Watch | None = None
        # Callers of `reach` take what the watch has, one at a time.
        self._turn = asyncio.Lock()
        self._closed = False

    def subscribe(self, listener: Listener) -> None:
        """Have `listener` awaited with (old, new) after every change, in order of subscription.

        It is not called with the image that is there already.
        """
        self._listeners.append(listener)

    def place_brokers(self, brokers: list[BrokerImage]) -> None:
        """Replace the brokers of the image, which are not in the store."""
        self.image = self.image.with_brokers(brokers)

    async def reach(self, revision: int) -> None:
        """Wait until the image is of `revision` or later, and every listener has had it.

        Raises:
            StoreClosedError: The store or the feed has been closed.
            StoreError: The store cannot be read.
        """
        while self.image.revision < revision:
            async with self._turn:
                if self.image.revision < revision:
                    await self._step()

    async def follow(self) -> None:
        """Make images of what others change, until the feed or the store is closed."""
        while not self._closed:
            try:
                async with self._turn:
                    await self._step()
            except StoreClosedError:
                return

    async def aclose(self) -> None:
        """End the watch; who waits gets StoreClosedError."""
        self._closed = True
        if self._watch is not None:
            await self._watch.aclose()

    async def _step(self) -> None:
        if self._closed:
            raise StoreClosedError("the feed of images is closed")
        if self._watch is None:
            self._watch = self._store.watch("", self.image.revision + 1)
        try:
            changes = await anext(self._watch, None)
        except CompactedError as error:
            LOGGER.warning(
                "metadata store: changes are compacted, reading all of it revision=%d compacted=%d",
                self.image.revision,
                error.compacted_revision,
            )
            await self._reload()
            return
        if changes is None:
            raise StoreClosedError("the metadata store is closed")
        await self._apply(changes)

    async def _apply(self, changes: Changes) -> None:
        if changes.revision <= self.image.revision:
            return
        keys = [
            (event.key, None if event.current is None else event.current.value)
            for event in changes.events
            if is_shown(event.key)
        ]
        if not keys:
            self.image = self.image.at(changes.revision)
            return
        try:
            image = self.image.updated(keys, changes.revision)
        except MetadataFormatError:
            image = self.image.updated(filter(_can_be_read, keys), changes.revision)
        await self._replace(image)

    async def _reload(self) -> None:
        assert self._watch is not None
        await self._watch.aclose()
        self._watch = None
        content = await whole_range(self._store, "")
        keys = [(item.key, item.value) for item in content.items if is_shown(item.key)]
        image = ClusterImage.empty(controller_id=self.image.controller_id).updated(
            filter(_can_be_read, keys), content.revision
        )
        await self._replace(image.with_brokers_of(self.image))

    async def _replace(self, image: ClusterImage) -> None:
        old, self.image = self.image, image
        for listener in self._listeners:
            try:
                await listener(old, image)
            except Exception:  # the metadata is committed: it stands whatever a listener could do
                LOGGER.exception("metadata listener failed revision=%d", image.revision)


def _can_be_read(change: tuple[str, bytes | None]) -> bool:
    """Whether a changed key can go into an image; if not, the image keeps what it had of it."""
    try:
        ClusterImage.empty().updated([change], 0)
    except MetadataFormatError as error:
        LOGGER.error("metadata record cannot be read, keeping what was there error=%s", error)
        return False
    return True
