"""Consumer groups in a simulated cluster: members share partitions, commit, and go on from there.

    join ──assigned──> committed offset of each new partition ──> read ──> commit ──┐
      ^                                                            ^────────────────┘
      └── fenced, or the outcome of a commit is not known: leave, come back as another member

I11: a committed offset never goes back. A member commits offsets that grow, and is given a
partition only when the one before cannot commit for it any more; so what is fetched is never less
than what was acknowledged before. A commit without an answer may still arrive while its member is
there: until it has left, that offset counts as well.
"""

from collections import defaultdict
from typing import Any, Final, NamedTuple

from protocol.error_codes import ErrorCode
from protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.simulation.clients.history import History
from tests.simulation.clients.session import BACK_OFF_S, LOST, Consumer, Session
from tests.simulation.world import Place, Violation

POLL_MS: Final = 100
QUIET_S: Final = 15.0
"""Between two heartbeats in quiet time: a third of a session."""

LEAVING: Final = -1

LOOKS: Final = 0.3
"""So often a member asks also for what it has committed itself."""

FENCED: Final = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH}


class Committed(NamedTuple):
    """What is committed."""

    group: str
    place: Place


class GroupHistory:
    """See the module.

    Attributes:
        commits: Acknowledged ones.
        fetches: Answers with an offset.
    """

    def __init__(self) -> None:
        self.commits = 0
        self.fetches = 0
        self._acked: defaultdict[Committed, int] = defaultdict(lambda: -1)
        self._sent: defaultdict[Committed, int] = defaultdict(lambda: -1)
        self._unknown: defaultdict[Committed, dict[str, int]] = defaultdict(dict)

    def send(self, what: Committed, offset: int) -> None:
        """It is about to be committed."""
        self._sent[what] = max(self._sent[what], offset)

    def ack(self, what: Committed, offset: int) -> None:
        """It was."""
        self.commits += 1
        self._acked[what] = max(self._acked[what], offset)

    def has_commits(self, what: Committed) -> bool:
        """Whether anything of a partition was committed."""
        return self._acked[what] >= 0

    def lose(self, what: Committed, offset: int, member: str) -> None:
        """Whether it was is not known, and it may still be."""
        self._unknown[what].setdefault(member, offset)

    def gone(self, member: str) -> None:
        """No commit of this member is taken any more."""
        for unknown in self._unknown.values():
            unknown.pop(member, None)

    def least(self, what: Committed) -> int:
        """What a fetch that begins now must show at least."""
        return min([self._acked[what], *self._unknown[what].values()])

    def fetched(self, what: Committed, least: int, offset: int) -> None:
        """A fetch has shown an offset; `least` when it began.

        Raises:
            Violation: It went back, or nobody has committed it.
        """
        self.fetches += 1
        if offset < least:
            raise Violation(f"I11 {what}: {offset} is committed, {least} was acknowledged")
        if offset > self._sent[what]:
            raise Violation(f"I11 {what}: {offset} is committed, which nobody has sent")


class GroupMember:
    """One member after the other of a group, in one client."""

    def __init__(
        self,
        session: Session,
        history: History,
        groups: GroupHistory,
        *,
        group: str,
        topic: str,
        pause_s: float,
    ) -> None:
        self._session = session
        self._history = history
        self._groups = groups
        self._group = group
        self._topic = topic
        self._pause_s = pause_s
        self._lives = 0
        self._member: str | None = None
        self._epoch = 0
        self._coordinator = -1
        self._topic_id: Any = None
        self._owned: dict[int, Consumer] = {}
        self._is_changed = True
        self._is_in_doubt = False

    async def run(self) -> None:
        """Until the session is over."""
        self._begin()
        while not self._session.is_over:
            if not await self._beat():
                await self._session.pause(BACK_OFF_S)
                continue
            for index in list(self._owned):
                if not await self._work(index):
                    break
            pace = self._session.world.pace
            await pace.pause(self._session.world.loop.random.random(), self._pause_s, QUIET_S)

    def _begin(self) -> None:
        """Another member, of which nobody has heard."""
        if self._member is not None:
            self._groups.gone(self._member)
        self._lives += 1
        self._member = f"{self._session.name}-{self._lives}"
        self._epoch = 0
        self._owned.clear()
        self._is_changed = True
        self._is_in_doubt = False

    async def ask(self, request: Any) -> Any:
        """Ask the coordinator; None: no answer, or it is another one by now."""
        try:
            if self._coordinator < 0:
                find = FindCoordinatorRequest(key_type=0, coordinator_keys=[self._group])
                answer = await self._session.call(self._session.any_broker(), find)
                (found,) = answer.coordinators
                if found.error_code:
                    return None
                self._coordinator = found.node_id
            return await self._session.call(self._coordinator, request)
        except LOST:
            self._coordinator = -1
            return None

    async def _beat(self) -> bool:
        """Send a heartbeat; whether this is a member now."""
        owned = None
        # What an answer that was lost had assigned is told again to who says everything again, as
        # Kafka's consumer does after any failure.
        is_full = self._epoch == 0 or self._is_in_doubt
        if self._is_changed or is_full:
            indexes = sorted(self._owned)
            owned = [
                ConsumerGroupHeartbeatRequestTopicPartitions(
                    topic_id=self._topic_id, partitions=indexes
                )
            ] * bool(indexes)
        answer = await self.ask(
            ConsumerGroupHeartbeatRequest(
                group_id=self._group,
                member_id=self._member or "",
                member_epoch=self._epoch,
                rebalance_timeout_ms=10_000 if is_full else -1,
                subscribed_topic_names=[self._topic] if is_full else None,
                topic_partitions=owned,
            )
        )
        if answer is None:
            self._is_in_doubt = True
            return False
        if answer.error_code in FENCED:
            self._begin()
            return False
        if answer.error_code:
            self._coordinator = -1
            self._is_in_doubt = True
            return False
        self._epoch = answer.member_epoch
        self._is_changed = self._is_in_doubt = False
        if answer.assignment is not None:
            self._assign(answer.assignment)
        return True

    def _assign(self, assignment: Any) -> None:
        indexes = set()
        for topic in assignment.topic_partitions:
            self._topic_id = topic.topic_id
            indexes.update(topic.partitions)
        for index in set(self._owned) - indexes:
            del self._owned[index]
        for index in sorted(indexes - set(self._owned)):
            consumer = Consumer(self._session, self._history, Place(self._topic, index))
            consumer.position = -1
            self._owned[index] = consumer
        self._is_changed = True

    async def _work(self, index: int) -> bool:
        """Read a little of a partition and commit; False: look for what has changed first."""
        consumer, random = self._owned[index], self._session.world.loop.random
        what = Committed(self._group, Place(self._topic, index))
        if consumer.position < 0 or random.random() < LOOKS:
            offset = await self._fetch(what)
            if offset is None:
                return False
            # Without an answer to a commit, another offset of this member may be there.
            consumer.position = offset
        before = consumer.position
        if not await consumer.read(max_wait_ms=POLL_MS) or consumer.position == before:
            return True
        return await self._commit(what, consumer.position)

    async def _fetch(self, what: Committed) -> int | None:
        least = self._groups.least(what)
        topic = OffsetFetchRequestTopics(
            name=what.place.topic, partition_indexes=[what.place.partition]
        )
        answer = await self.ask(
            OffsetFetchRequest(
                groups=[
                    OffsetFetchRequestGroup(
                        group_id=self._group,
                        member_id=self._member,
                        member_epoch=self._epoch,
                        topics=[topic],
                    )
                ]
            )
        )
        if answer is None or self._is_refused(answer.groups[0].error_code):
            return None
        found = answer.groups[0].topics[0].partitions[0]
        if found.error_code:
            return None
        self._groups.fetched(what, least, found.committed_offset)
        offset: int = found.committed_offset
        return max(offset, 0)

    def _is_refused(self, code: int) -> bool:
        if code in FENCED:
            self._begin()
        elif code and code != ErrorCode.STALE_MEMBER_EPOCH:
            self._coordinator = -1
        return bool(code)

    async def _commit(self, what: Committed, offset: int) -> bool:
        self._groups.send(what, offset)
        partition = OffsetCommitRequestPartition(
            partition_index=what.place.partition, committed_offset=offset
        )
        answer = await self.ask(
            OffsetCommitRequest(
                group_id=self._group,
                member_id=self._member or "",
                generation_id_or_member_epoch=self._epoch,
                topics=[OffsetCommitRequestTopic(name=what.place.topic, partitions=[partition])],
            )
        )
        code = None if answer is None else answer.topics[0].partitions[0].error_code
        if code is None or code == ErrorCode.REQUEST_TIMED_OUT:
            self._groups.lose(what, offset, self._member or "")
            await self._leave()
            return False
        if self._is_refused(code):
            # Some refusals come after the append: the outcome is then not known either.
            if code not in FENCED and code != ErrorCode.STALE_MEMBER_EPOCH:
                self._groups.lose(what, offset, self._member or "")
                await self._leave()
            return False
        self._groups.ack(what, offset)
        return True

    async def _leave(self) -> None:
        """Until nothing that this member has sent can be applied any more."""
        while not self._session.is_over:
            answer = await self.ask(
                ConsumerGroupHeartbeatRequest(
                    group_id=self._group, member_id=self._member or "", member_epoch=LEAVING
                )
            )
            if answer is not None:
                if answer.error_code in (ErrorCode.NONE, *FENCED):
                    break
                self._coordinator = -1
            await self._session.pause(BACK_OFF_S)
        else:
            return
        self._begin()


class OffsetReader:
    """Reads what a group has committed, without being a member: for the end of a run."""

    def __init__(self, session: Session, groups: GroupHistory, what: Committed) -> None:
        self._member = GroupMember(
            session, History(), groups, group=what.group, topic=what.place.topic, pause_s=1.0
        )
        self._member._member, self._member._epoch = None, -1
        self._session = session
        self._what = what
        self.is_done = False

    async def run(self) -> None:
        """Until it was read."""
        while await self._member._fetch(self._what) is None:
            await self._session.pause(BACK_OFF_S)
        self.is_done = True
