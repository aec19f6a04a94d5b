"""The follower's half of an incremental fetch session (KIP-227): only what has changed is sent.

    NEW ──epoch 0: all is sent──> OPENING ──answered with an id──> OPEN: epoch 1, 2, ...
     ^                               └──answered without one──> NEW  │   what has changed is sent
     └──────────────── no answer, or an error of the session ────────┘

The leader keeps the last that it was told of each partition: in a round in which nothing changed a
request has no partition in it, however many there are. The epoch counts requests, so it moves when
one is sent: the next may leave before its answer has come.

Source: Kafka, FetchSessionHandler.java, FetchMetadata.java.
"""

from typing import Final

from broker.replication.fetcher.followed_partition import FollowedPartition
from protocol.hot.follower_fetch import pack_partition

PARTITIONS_MAX: Final = 5_000
"""Sent in one request; brokers take 10,000. The others follow in the next, at once."""

NO_SESSION: Final = 0
FIRST_EPOCH: Final = 0
EPOCH_MAX: Final = 0x7FFF_FFFF


CATCH_UP_BYTES: Final = 256 * 1024
"""Most bytes of a partition that is far behind in one answer: what is in sync shares the answers,
and the loop, with it."""


class FollowerSession:
    """See the module.

    Attributes:
        members: All partitions that are fetched, by topic id and index.
        max_bytes: `replica.fetch.max.bytes`.
        requests: Number of the latest request.
    """

    __slots__ = (
        "_changed",
        "_epoch",
        "_forgotten",
        "_id",
        "_known",
        "max_bytes",
        "members",
        "requests",
    )

    def __init__(self, max_bytes: int) -> None:
        self.members: dict[tuple[bytes, int], FollowedPartition] = {}
        self.max_bytes = max_bytes
        self.requests = 0
        self._id = NO_SESSION
        self._epoch = FIRST_EPOCH
        # In the order in which they changed.
        self._changed: dict[tuple[bytes, int], FollowedPartition] = {}
        self._forgotten: dict[tuple[bytes, int], None] = {}
        # What the leader has in the session, whatever is followed by now.
        self._known: dict[tuple[bytes, int], None] = {}

    @property
    def is_open(self) -> bool:
        """The leader has given the session an id."""
        return self._id != NO_SESSION and self._epoch != FIRST_EPOCH

    @property
    def has_changes(self) -> bool:
        """Something is to be sent that the leader does not have yet."""
        return bool(self._changed)

    def add(self, followed: FollowedPartition) -> None:
        """Fetch a partition from the next request on."""
        self.members[followed.key] = followed
        self._forgotten.pop(followed.key, None)
        self._changed[followed.key] = followed

    def remove(self, followed: FollowedPartition) -> None:
        """Fetch a partition no longer; nothing happens if it is not, or another has its key."""
        key = followed.key
        if self.members.get(key) is not followed:
            return
        del self.members[key]
        self._changed.pop(key, None)
        if key in self._known:
            self._forgotten[key] = None

    def look_at(self, followed: FollowedPartition) -> None:
        """Send a partition again if the leader knows it otherwise than it is."""
        log = followed.partition.log
        if (
            log.log_end_offset != followed.sent_offset
            or log.log_start_offset != followed.sent_log_start
            or log.latest_leader_epoch != followed.sent_epoch
        ):
            self._changed[followed.key] = followed

    def next_request(
        self,
    ) -> tuple[tuple[int, int], dict[bytes, list[bytes]], dict[bytes, list[int]]]:
        """What the next request says: (session id, epoch), partitions, partitions to forget."""
        topics: dict[bytes, list[bytes]] = {}
        max_bytes = self.max_bytes
        changed = self._changed
        if len(changed) > PARTITIONS_MAX:
            keys = list(changed)[:PARTITIONS_MAX]
            now = [changed.pop(key) for key in keys]
        else:
            now = list(changed.values())
            changed.clear()
        self.requests += 1
        for followed in now:
            log = followed.partition.log
            followed.sent_in = self.requests
            followed.sent_offset = end_offset = log.log_end_offset
            followed.sent_log_start = log_start = log.log_start_offset
            followed.sent_epoch = epoch = log.latest_leader_epoch
            self._known[followed.key] = None
            topic_id, index = followed.key
            packed = pack_partition(
                index,
                followed.leader_epoch,
                end_offset,
                epoch,
                log_start,
                min(max_bytes, CATCH_UP_BYTES) if followed.is_behind else max_bytes,
            )
            of_topic = topics.get(topic_id)
            if of_topic is None:
                topics[topic_id] = [packed]
            else:
                of_topic.append(packed)
        forgotten: dict[bytes, list[int]] = {}
        for key in self._forgotten:
            self._known.pop(key, None)
            topic_id, index = key
            forgotten.setdefault(topic_id, []).append(index)
        self._forgotten.clear()
        session = (self._id, self._epoch)
        if self._epoch != FIRST_EPOCH:
            self._epoch = 1 if self._epoch == EPOCH_MAX else self._epoch + 1
        return session, topics, forgotten

    def answered(self, session_id: int) -> None:
        """The leader has answered without an error for the session."""
        if self._epoch != FIRST_EPOCH:
            return
        if session_id == NO_SESSION:
            # It keeps none: everything is sent each time.
            self.reset()
            return
        self._id = session_id
        self._epoch = 1

    def reset(self) -> None:
        """Begin a new session, in the place of the one there was: all is sent again."""
        self._epoch = FIRST_EPOCH
        self._forgotten.clear()
        self._known.clear()
        self._changed = dict(self.members)
