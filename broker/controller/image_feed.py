"""The cluster's images: one per revision of the metadata store, in order, to all listeners.

    load at revision r ──> watch from r + 1 ──> image of the next revision ──> listeners of now
         ^                                          │    (roles change in this very turn)
         │                                          ├──> queue ──> awaited listeners, one by one
         └──── the store has forgotten what is next ┘             (logs are created and deleted)

Our own changes come the same way as those of other brokers, so that every broker makes the same
image of the same revision. A change is answered when its revision has been reached here. What many
keys of a revision say is decoded in slices of the loop, before the image is made in one turn. An
image waits for no awaited listener: behind a slow disk there may be one that ends a leadership.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from broker.controller.images.cluster_image import (
    BrokerImage,
    ClusterImage,
    decode_chunk,
    is_shown,
)
from broker.controller.images.metadata_records import MetadataFormatError, UnsupportedLevelError
from broker.controller.images.partition_image import PartitionImage
from broker.controller.store.metadata_store import (
    Changes,
    CompactedError,
    KeyValue,
    MetadataStore,
    StoreClosedError,
    StoreError,
    StoreReplacedError,
    Watch,
)
from broker.controller.store.whole_range import whole_range
from broker.runtime.pauses import pause
from broker.runtime.timer import Timer

LOGGER = logging.getLogger(__name__)

FOLLOW_AGAIN_MS: Final = 200.0
"""Before a store that could not be read is asked again."""

DECODED_PER_TURN: Final = 6
"""Keys that are decoded before the loop has its turn: of partitions, 1 to 2 ms."""

Listener = Callable[[ClusterImage, ClusterImage], Awaitable[None]]
"""Called with the old and the new image, after the commit, before the answer."""

ListenerOfNow = Callable[[ClusterImage, ClusterImage], None]
"""Called with the old and the new image in the turn in which the new one came."""

PENDING_MAX = 1_000
"""Images that wait for awaited listeners; behind these, the last one is replaced by the next."""


class ImageFeed:
    """See the module. Runs on the loop's thread.

    Attributes:
        image: The newest; replaced as a whole.
        on_unsupported: Called, with a sentence, when a feature has a level that this release does
            not have: it must not go on, and the image keeps the level of before.
    """

    def __init__(self, store: MetadataStore, image: ClusterImage) -> None:
        self._store = store
        self.image = image
        self._listeners: list[Listener] = []
        self._listeners_of_now: list[ListenerOfNow] = []
        self._listeners_of_revisions: list[Callable[[ClusterImage], None]] = []
        # What awaited listeners have had, and what they have not had yet.
        self._notified = image
        self._pending: deque[ClusterImage] = deque()
        self._notifying: asyncio.Task[None] | None = None
        self._watch: Watch | None = None
        self._placed = False
        # Callers of `reach` take what the watch has, one at a time.
        self._turn = asyncio.Lock()
        self._closed = False
        self.on_unsupported: Callable[[str], None] = _nothing

    def subscribe(self, listener: Listener) -> None:
        """Have `listener` awaited with (old, new) after every change, in order of subscription.

        It is not called with the image that is there already.
        """
        self._listeners.append(listener)

    def subscribe_now(self, listener: ListenerOfNow) -> None:
        """Have `listener` called with (old, new) in the turn of every change, before all awaited.

        It must be quick, and wait for nothing. It is not called with the image that is there.
        """
        self._listeners_of_now.append(listener)

    def subscribe_revisions(self, listener: Callable[[ClusterImage], None]) -> None:
        """Have `listener` called in the turn of every change, also of what no image shows.

        It gets the image of that revision; it must be quick, and wait for nothing.
        """
        self._listeners_of_revisions.append(listener)

    @property
    def pending(self) -> int:
        """Images that awaited listeners have not had yet."""
        return len(self._pending)

    def place_brokers(self, brokers: list[BrokerImage]) -> None:
        """Replace the brokers of the image: those of a single node, which are not in the store."""
        self._placed = True
        self._replace_pending(self.image.with_brokers(brokers))

    async def reach(self, revision: int) -> None:
        """Wait until the image is of `revision` or later, and every listener has had it.

        Raises:
            StoreClosedError: The store or the feed has been closed.
            StoreError: The store cannot be read.
        """
        await self.see(revision)
        while self._pending and self._notified.revision < revision:
            if self._closed:
                raise StoreClosedError("the feed of images is closed")
            assert self._notifying is not None
            await asyncio.shield(self._notifying)

    async def see(self, revision: int) -> None:
        """Wait until the image is of `revision` or later, whatever awaited listeners are at.

        Raises:
            StoreClosedError: The store or the feed has been closed.
            StoreError: The store cannot be read.
        """
        while self.image.revision < revision:
            if self._watch is not None and not self._closed:
                # What has changed nothing is shown by progress alone.
                await self._watch.request_progress()
            async with self._turn:
                if self.image.revision < revision:
                    await self._step()

    async def follow(self, timer: Timer | None = None) -> None:
        """Make images of what others change, until the feed or the store is closed.

        Args:
            timer: For waiting before the next try where the store cannot be read; None: at once.

        Raises:
            StoreReplacedError: The store is not the one it was: nothing more is taken from it.
        """
        while not self._closed:
            try:
                async with self._turn:
                    await self._step()
            except StoreClosedError:
                return
            except StoreReplacedError:
                raise
            except StoreError as error:
                LOGGER.warning("metadata store: cannot be followed, trying again error=%s", error)
                await self._end_watch()
                if timer is not None:
                    await pause(timer, FOLLOW_AGAIN_MS)

    async def aclose(self) -> None:
        """End the watch; who waits gets StoreClosedError."""
        self._closed = True
        if self._watch is not None:
            await self._watch.aclose()
        if self._notifying is not None:
            await self._notifying

    async def _end_watch(self) -> None:
        watch, self._watch = self._watch, None
        if watch is not None:
            await watch.aclose()

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
            self._replace_pending(self.image.at(changes.revision))
            if changes.events:
                self._tell_revision()
            return
        decoded: dict[str, list[PartitionImage]] = {}
        try:
            await _decode(keys, decoded)
        finally:
            # Also if who waits for it is cancelled: the watch gives it once.
            if not self._closed:
                self._take(keys, changes.revision, decoded)

    def _take(
        self,
        keys: Sequence[tuple[str, bytes | None]],
        revision: int,
        decoded: Mapping[str, list[PartitionImage]],
    ) -> None:
        try:
            image = self.image.updated(keys, revision, decoded)
        except MetadataFormatError:
            image = self.image.updated(filter(self._can_be_read, keys), revision)
        self._replace(image)

    async def _reload(self) -> None:
        await self._end_watch()
        content = await whole_range(self._store, "")
        decoded: dict[str, list[PartitionImage]] = {}
        items = [item for item in content.items if is_shown(item.key)]
        await _decode([(item.key, item.value) for item in items], decoded)
        before = self.image
        image = ClusterImage.loaded(
            (one for one in items if one.key in decoded or self._item_can_be_read(one)),
            content.revision,
            controller_id=before.controller_id if self._placed else -1,
            decoded=decoded,
        )
        self._replace(
            image.with_brokers_of(before) if self._placed else image.with_brokers_after(before)
        )

    def _replace_pending(self, image: ClusterImage) -> None:
        """Replace the image by one in which nothing has changed that listeners look at."""
        if self._notified is self.image:
            self._notified = image
        elif self._pending[-1] is self.image:
            self._pending[-1] = image
        self.image = image

    def _replace(self, image: ClusterImage) -> None:
        old, self.image = self.image, image
        for listener in self._listeners_of_now:
            try:
                listener(old, image)
            except Exception:  # the metadata is committed: it stands whatever a listener could do
                LOGGER.exception("metadata listener failed revision=%d", image.revision)
        self._tell_revision()
        if len(self._pending) >= PENDING_MAX:
            self._pending.pop()
        self._pending.append(image)
        if self._notifying is None or self._notifying.done():
            self._notifying = asyncio.get_running_loop().create_task(
                self._notify(), name="image feed"
            )

    def _tell_revision(self) -> None:
        for listener in self._listeners_of_revisions:
            try:
                listener(self.image)
            except Exception:  # as above
                LOGGER.exception("metadata listener failed revision=%d", self.image.revision)

    async def _notify(self) -> None:
        while self._pending and not self._closed:
            image = self._pending[0]
            for listener in self._listeners:
                try:
                    await listener(self._notified, image)
                except Exception:  # as above
                    LOGGER.exception("metadata listener failed revision=%d", image.revision)
            # It may have been replaced meanwhile by one that differs in nothing of theirs.
            self._notified = self._pending.popleft()

    def _item_can_be_read(self, item: KeyValue) -> bool:
        return is_shown(item.key) and self._can_be_read((item.key, item.value))

    def _can_be_read(self, change: tuple[str, bytes | None]) -> bool:
        """Whether a changed key can go into an image; if not, the image keeps what it had of it."""
        try:
            ClusterImage.empty().updated([change], 0)
        except UnsupportedLevelError as error:
            self.on_unsupported(str(error))
            return False
        except MetadataFormatError as error:
            LOGGER.error("metadata record cannot be read, keeping what was there error=%s", error)
            return False
        return True


async def _decode(
    keys: Sequence[tuple[str, bytes | None]], decoded: dict[str, list[PartitionImage]]
) -> None:
    """Decode the partitions among many changed keys in slices of the loop; few are left out."""
    if len(keys) <= DECODED_PER_TURN:
        return
    for count, (key, value) in enumerate(keys, 1):
        try:
            partitions = decode_chunk(key, value)
        except MetadataFormatError:
            continue  # found again when the image is made
        if partitions is not None:
            decoded[key] = partitions
        if count % DECODED_PER_TURN == 0:
            await asyncio.sleep(0)


def _nothing(_reason: str) -> None:
    """No broker is to be ended."""
