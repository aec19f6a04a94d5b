"""Share sessions (KIP-932): the partitions that a member of a share group reads from this broker.

    request's epoch   meaning                              answer
    0                 lists all; opens a new session       all partitions
    n > 0             changes since request n - 1          those with records, new ones, failed ones
    -1                the last one                         nothing; its records are released

A member has one session, named by group and member id. It ends with the last epoch, or with the
connection it was opened on. There are at most `group.share.max.share.sessions`; none is evicted,
since a member's locks depend on its session.

Source: Kafka, ShareSessionCache.java, ShareSession.java, CachedSharePartition.java.
"""

from collections.abc import Hashable, Iterable
from typing import NamedTuple
from uuid import UUID

from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
EPOCH_MAX = 2**31 - 1

PARTITIONS_MAX = 10_000
"""Partitions of one session: as many as a request may list."""

TOTAL_PARTITIONS_MAX = 500_000
"""Partitions of all sessions."""

TopicPartitionId = tuple[UUID, int]


class SessionKey(NamedTuple):
    """The group and member of a session."""

    group_id: str
    member_id: str


class ShareSession:
    """A member's session; `epoch` is the one expected in its next request.

    `partitions` has for each whether the next response has to include it in any case.
    """

    __slots__ = ("connection", "epoch", "key", "partitions")

    def __init__(self, key: SessionKey, connection: Hashable) -> None:
        self.key = key
        self.connection = connection
        self.epoch = 1
        self.partitions: dict[TopicPartitionId, bool] = {}

    def must_include(
        self, partition: TopicPartitionId, *, has_records: bool, has_failed: bool
    ) -> bool:
        """Whether the response includes the partition; after an error so does the next one."""
        was_due = self.partitions.get(partition)
        if was_due is None:
            return has_records or has_failed
        self.partitions[partition] = has_failed
        if has_records:
            # The others come first next time.
            del self.partitions[partition]
            self.partitions[partition] = has_failed
        return was_due or has_records or has_failed


class ShareSessions:
    """All sessions of this broker."""

    __slots__ = ("_by_connection", "_members", "_sessions", "partition_count", "slots")

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.partition_count = 0
        self._sessions: dict[SessionKey, ShareSession] = {}
        self._by_connection: dict[Hashable, set[SessionKey]] = {}
        self._members: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, key: SessionKey) -> ShareSession | None:
        """A member's session."""
        return self._sessions.get(key)

    def members_of(self, group_id: str) -> int:
        """Sessions of a group."""
        return self._members.get(group_id, 0)

    def of_connection(self, connection: Hashable) -> list[SessionKey]:
        """Keys of the sessions that were opened on a connection."""
        return list(self._by_connection.get(connection, ()))

    def open(
        self, key: SessionKey, partitions: Iterable[TopicPartitionId], connection: Hashable
    ) -> None:
        """Open a session; it replaces the member's earlier one, whose locks stay.

        Raises:
            ApiError: SHARE_SESSION_LIMIT_REACHED.
        """
        self.remove(key)
        wanted = dict.fromkeys(partitions, False)
        if (
            len(self._sessions) >= self.slots
            or len(wanted) > PARTITIONS_MAX
            or self.partition_count + len(wanted) > TOTAL_PARTITIONS_MAX
        ):
            raise ApiError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        session = ShareSession(key, connection)
        session.partitions = wanted
        self._sessions[key] = session
        self.partition_count += len(wanted)
        self._by_connection.setdefault(connection, set()).add(key)
        self._members[key.group_id] = self.members_of(key.group_id) + 1

    def resume(self, key: SessionKey, epoch: int) -> ShareSession:
        """The session, for a request that is not its first.

        Raises:
            ApiError: SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH.
        """
        session = self._sessions.get(key)
        if session is None:
            raise ApiError(ErrorCode.SHARE_SESSION_NOT_FOUND)
        if epoch != FINAL_EPOCH:
            if session.epoch != epoch:
                raise ApiError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
            session.epoch = 1 if epoch == EPOCH_MAX else epoch + 1
        return session

    def update(
        self,
        session: ShareSession,
        added: Iterable[TopicPartitionId],
        forgotten: Iterable[TopicPartitionId],
    ) -> None:
        """Apply the changes that a request lists.

        Raises:
            ApiError: SHARE_SESSION_LIMIT_REACHED: it has too many now, and is ended.
        """
        before = len(session.partitions)
        for partition in added:
            session.partitions.setdefault(partition, True)
        for partition in forgotten:
            session.partitions.pop(partition, None)
        now = len(session.partitions)
        self.partition_count += now - before
        if now > before and (now > PARTITIONS_MAX or self.partition_count > TOTAL_PARTITIONS_MAX):
            self.remove(session.key)
            raise ApiError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)

    def remove(self, key: SessionKey) -> ShareSession | None:
        """End a session; None when there is none."""
        session = self._sessions.pop(key, None)
        if session is None:
            return None
        self.partition_count -= len(session.partitions)
        keys = self._by_connection[session.connection]
        keys.discard(key)
        if not keys:
            del self._by_connection[session.connection]
        left = self._members[key.group_id] - 1
        if left:
            self._members[key.group_id] = left
        else:
            del self._members[key.group_id]
        return session
