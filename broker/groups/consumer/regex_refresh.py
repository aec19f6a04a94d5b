"""Resolution of consumer groups' topic patterns, off the path of heartbeats.

All patterns of a group are resolved together, so that new topics cost one rebalance. A heartbeat
starts it, when

    a pattern was never resolved, or topics were created since, or the refresh interval is over

but not while it is under way, and not again for ten seconds.

Source: Kafka, GroupMetadataManager.java (maybeUpdateRegularExpressions,
refreshRegularExpressions, handleRegularExpressionsResult).
"""

import logging
from collections.abc import Callable
from typing import NamedTuple

from broker.controller.images.cluster_image import ClusterImage
from broker.coordinator.outcome import KeyValue
from broker.groups.consumer.changes import Changes, resolved_record
from broker.groups.consumer.consumer_group import ConsumerGroup, ResolvedRegularExpression
from broker.groups.modern.group_hashes import GroupHashes
from broker.groups.modern.offload import Offload
from broker.groups.regex.topic_regex import InvalidRegexError, TopicRegex
from broker.runtime.log_value import log_value
from storage.environment.clock import Clock

logger = logging.getLogger(__name__)

REFRESH_MIN_INTERVAL_MS = 10_000
"""A group's patterns are not resolved more often than this."""

RECORD_SIZE_MAX = 512 * 1024
"""Characters of all topics that one pattern may stand for: they have to fit into one record."""

_EMPTY = ResolvedRegularExpression(frozenset(), 0, 0)


class RegexRefresh:
    """Pattern resolution for one shard's groups."""

    def __init__(
        self,
        *,
        interval_ms: int,
        clock: Clock,
        offload: Offload,
        image: Callable[[], ClusterImage],
        hashes: GroupHashes,
        hash_of: Callable[[ConsumerGroup], int],
        ready: Callable[[ConsumerGroup, Changes], None],
    ) -> None:
        """`ready` is called with the changes to write when patterns were resolved.

        `hash_of` gives a group's hash if its topics changed while they were.
        """
        self._interval_ms = interval_ms
        self._clock = clock
        self._offload = offload
        self._image = image
        self._hashes = hashes
        self._hash_of = hash_of
        self._ready = ready
        # Revision of the image that had new topics last.
        self._topics_version = image().revision

    def topics_created(self) -> None:
        """Note that there are new topics, which patterns may match."""
        self._topics_version = self._image().revision

    def maybe_refresh(self, group: ConsumerGroup, *, is_required: bool = False) -> None:
        """Start to resolve the group's patterns, if that is due or `is_required`."""
        if self.is_due(group, is_required=is_required):
            self._start(group, self._clock.now_ms())

    def is_due(self, group: ConsumerGroup, *, is_required: bool = False) -> bool:
        """Whether the group's patterns are to be resolved with the next heartbeat."""
        if not group.regex_counts or group.work.is_resolving:
            return False
        now_ms = self._clock.now_ms()
        newest = next(iter(group.resolved.values()), None)
        if newest is not None:
            age_ms = now_ms - newest.timestamp_ms
            if 0 <= age_ms <= REFRESH_MIN_INTERVAL_MS:
                return False
            is_required = (
                is_required
                or newest.version < self._topics_version
                or age_ms > self._interval_ms
                # By a clock that was ahead: for that time nothing would be resolved.
                or age_ms < 0
            )
        return is_required or len(group.regex_counts) != len(group.resolved)

    def _start(self, group: ConsumerGroup, now_ms: int) -> None:
        work = group.work
        work.is_resolving = True
        image = self._image()
        asked = _Asked(
            group.group_id,
            tuple(group.regex_counts),
            tuple(group.name_counts),
            image,
            now_ms,
            group.topics_version,
        )

        def done(found: "_Found") -> None:
            work.is_resolving = False
            if not group.is_dead:
                self._take(group, asked, found)

        def failed(error: BaseException) -> None:
            work.is_resolving = False
            # A hash refresh meanwhile was left to this task.
            group.is_metadata_stale = True
            logger.error(
                "subscribed regular expressions could not be resolved group=%s",
                log_value(group.group_id),
                exc_info=error,
            )

        self._offload.run(lambda: _resolve(asked, self._hashes), done, failed)

    def _take(self, group: ConsumerGroup, asked: "_Asked", found: "_Found") -> None:
        changes = Changes(group)
        has_changed = False
        is_whole = group.topics_version == asked.topics_version
        for regex, (resolved, record) in found.patterns.items():
            if regex not in group.regex_counts:
                is_whole = False
                continue
            has_changed = has_changed or (
                group.resolved.get(regex, _EMPTY).topics != resolved.topics
            )
            changes.set_resolved(regex, resolved, record)
        if is_whole:
            # Its subscriptions have not changed otherwise: so this is their hash.
            group.work.metadata_hash = (self._hashes.key(group, asked.image), found.metadata_hash)
        metadata_hash = self._hash_of(group)
        if has_changed or metadata_hash != group.metadata_hash:
            changes.set_epoch(group.group_epoch + 1, metadata_hash)
            group.is_metadata_stale = False
        self._ready(group, changes)


class _Asked(NamedTuple):
    """Patterns of a group, and what they are resolved with."""

    group_id: str
    patterns: tuple[str, ...]
    names: tuple[str, ...]
    image: ClusterImage
    now_ms: int
    topics_version: int


class _Found(NamedTuple):
    """The topics of each pattern, with its record; and the hash of all topics of the group."""

    patterns: dict[str, tuple[ResolvedRegularExpression, KeyValue]]
    metadata_hash: int


def _resolve(asked: _Asked, hashes: GroupHashes) -> _Found:
    found: dict[str, tuple[ResolvedRegularExpression, KeyValue]] = {}
    names = set(asked.names)
    topics = list(asked.image.topics)
    for pattern in asked.patterns:
        try:
            matching = TopicRegex.compile(pattern).resolve(topics)
        except InvalidRegexError as error:
            # It was checked when a member brought it; matching may still be too much work.
            logger.error(
                "subscribed regular expression could not be resolved group=%s error=%s",
                log_value(asked.group_id),
                log_value(str(error)),
            )
            matching = frozenset()
        if sum(map(len, matching)) > RECORD_SIZE_MAX:
            logger.error(
                "subscribed regular expression matches too many topics group=%s topics=%d",
                log_value(asked.group_id),
                len(matching),
            )
            matching = frozenset()
        resolved = ResolvedRegularExpression(matching, asked.image.revision, asked.now_ms)
        found[pattern] = resolved, resolved_record(asked.group_id, pattern, resolved)
        names |= matching
    return _Found(found, hashes.of_names(names, asked.image))
