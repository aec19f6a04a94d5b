"""Computation in another thread of the metadata hash of a group that reads thousands of topics.

Meanwhile the group's last hash is used. When the new one differs, the group begins another epoch,
as a small group does with the heartbeat that finds it.
"""

import logging
from collections.abc import Callable

from broker.controller.images.cluster_image import ClusterImage
from broker.groups.consumer.changes import Changes
from broker.groups.consumer.consumer_group import ConsumerGroup
from broker.groups.modern.group_hashes import GroupHashes
from broker.groups.modern.offload import Offload
from broker.runtime.log_value import log_value

logger = logging.getLogger(__name__)

INLINE_TOPICS_MAX = 200
"""Topics of a group whose hash is computed on the loop: two milliseconds when all are new."""


class HashRefresh:
    """Metadata hashes of one shard's groups."""

    def __init__(
        self,
        hashes: GroupHashes,
        *,
        offload: Offload,
        image: Callable[[], ClusterImage],
        ready: Callable[[ConsumerGroup, Changes], None],
    ) -> None:
        """`ready` is called with the changes to write when a new hash was found later."""
        self._hashes = hashes
        self._offload = offload
        self._image = image
        self._ready = ready

    def of(self, group: ConsumerGroup) -> int:
        """The hash of the group's topics, or its last one while the new one is computed."""
        image = self._image()
        known = self._hashes.known(group, image)
        if known is not None:
            return known
        if len(group.name_counts) + len(group.regex_topic_counts) <= INLINE_TOPICS_MAX:
            return self._hashes.of(group, image)
        # The hash is computed together with its patterns.
        if not group.work.is_resolving:
            self._start(group, image)
        return group.metadata_hash

    def _start(self, group: ConsumerGroup, image: ClusterImage) -> None:
        work = group.work
        if work.is_hashing:
            return
        work.is_hashing = True
        key = self._hashes.key(group, image)
        names = [*group.name_counts, *group.regex_topic_counts]

        def done(value: int) -> None:
            work.is_hashing = False
            if group.is_dead:
                return
            work.metadata_hash = (key, value)
            now = self._image()
            if self._hashes.known(group, now) is None:
                # Its topics have changed meanwhile.
                self._start(group, now)
            elif value != group.metadata_hash:
                changes = Changes(group)
                changes.set_epoch(group.group_epoch + 1, value)
                self._ready(group, changes)

        def failed(error: BaseException) -> None:
            work.is_hashing = False
            group.is_metadata_stale = True
            logger.error(
                "metadata hash of the subscribed topics could not be computed group=%s",
                log_value(group.group_id),
                exc_info=error,
            )

        self._offload.run(lambda: self._hashes.of_names(names, image), done, failed)
