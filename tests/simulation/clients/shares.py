"""Members of a share group in a simulated cluster: what was accepted comes to nobody again.

    heartbeat ──assigned──> ShareFetch of a partition ──acquired──> ShareAcknowledge
        ^                                                             │ accept, release, or nothing
        └── fenced: come back as another member <─────────────────────┘

S   a record whose acceptance was answered is not acquired by a fetch that was sent later, whoever
    has died since; and every record that was acknowledged to its producer comes to somebody, again
    and again until it is accepted, or until it was delivered too often.
"""

from collections import defaultdict
from typing import Any, Final
from uuid import UUID

from protocol.error_codes import ErrorCode
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.share_acknowledge import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from protocol.messages.share_fetch import FetchPartition, FetchTopic, ShareFetchRequest
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.simulation.clients.groups import FENCED, QUIET_S
from tests.simulation.clients.session import BACK_OFF_S, LOST, Session
from tests.simulation.world import Place, Violation

SHARE_GROUP: Final = "sharers"
GROUP_RESOURCE: Final = 32
VERSION: Final = 1

DELIVERIES_MAX: Final = 10
SHARE_SETTINGS: Final[dict[str, object]] = {
    "group_share_delivery_count_limit": DELIVERIES_MAX,
    "group_share_min_record_lock_duration_ms": 1_000,
    "group_share_record_lock_duration_ms": 3_000,
}
"""Locks of members that have died end soon, and what they had is not given up for that."""

OPENS: Final = 0
OPENED: Final = 1
"""Epochs of a share session: of the fetch that opens it anew, and of what follows."""

POLL_MS: Final = 100
RECORDS_MAX: Final = 20
RECORDS_AT_THE_END_MAX: Final = 200
"""Of one fetch: what is left at the end has to be accepted within minutes."""

ACCEPT: Final = 1
RELEASE: Final = 2
ACCEPTED: Final = 0.8
RELEASED: Final = 0.15
"""Of what was acquired; of the rest nothing is said, and its lock runs out."""


def begin_at_the_start() -> IncrementalAlterConfigsRequest:
    """A request that lets the group begin with the first record there is."""
    setting = AlterableConfig(name="share.auto.offset.reset", value="earliest")
    resource = AlterConfigsResource(
        resource_type=GROUP_RESOURCE, resource_name=SHARE_GROUP, configs=[setting]
    )
    return IncrementalAlterConfigsRequest(resources=[resource])


class ShareHistory:
    """What members of the group were given, and what they were told of it.

    Attributes:
        deliveries: Records that were given to a member, each as often as it was.
        may_release: Members release some, and say nothing of others.
    """

    def __init__(self) -> None:
        self.deliveries = 0
        self.may_release = True
        self._answers = 0
        # By partition and offset, which of the answers has said that it is accepted.
        self._accepted: defaultdict[Place, dict[int, int]] = defaultdict(dict)
        # May be accepted, or was delivered as often as it may be.
        self._settled: defaultdict[Place, set[int]] = defaultdict(set)

    @property
    def accepted(self) -> int:
        """How many records were accepted for certain."""
        return sum(map(len, self._accepted.values()))

    def mark(self) -> int:
        """For a fetch that is sent now; see `acquired`."""
        return self._answers

    def acquired(self, place: Place, offsets: range, deliveries: int, mark: int) -> None:
        """A fetch has acquired records; `mark` of when it was sent.

        Raises:
            Violation: One of them was accepted before.
        """
        self.deliveries += len(offsets)
        accepted = self._accepted[place]
        for offset in offsets:
            if accepted.get(offset, mark + 1) <= mark:
                raise Violation(
                    f"S {place}: {offset} was accepted, and is given out (delivery {deliveries})"
                )
        if deliveries >= DELIVERIES_MAX:
            self._settled[place].update(offsets)

    def accept(self, place: Place, offsets: range) -> None:
        """They are accepted."""
        self._answers += 1
        self._accepted[place].update(dict.fromkeys(offsets, self._answers))

    def lose(self, place: Place, offsets: range) -> None:
        """Whether they are accepted is not known."""
        self._settled[place].update(offsets)

    def left(self, place: Place, acked: dict[int, bytes]) -> list[int]:
        """Offsets of records that nobody has accepted, and nobody may have."""
        accepted, settled = self._accepted[place], self._settled[place]
        return [offset for offset in acked if offset not in accepted and offset not in settled]


class ShareMember:
    """One member after the other of the group, in one client."""

    def __init__(self, session: Session, history: ShareHistory, topic: str, pause_s: float) -> None:
        self._session = session
        self._history = history
        self._topic = topic
        self._pause_s = pause_s
        self._coordinator = -1
        self._topic_id = UUID(int=0)
        self._session_epoch = OPENED
        self._begin()

    async def run(self) -> None:
        """Until the session is over."""
        while not self._session.is_over:
            if not await self._beat():
                await self._session.pause(BACK_OFF_S)
                continue
            for index in self._assigned:
                await self._work(Place(self._topic, index))
            pace = self._session.world.pace
            await pace.pause(self._session.world.loop.random.random(), self._pause_s, QUIET_S)

    def _begin(self) -> None:
        """Another member, of which nobody has heard."""
        self._member = str(UUID(int=self._session.world.loop.random.getrandbits(128), version=4))
        self._epoch = 0
        self._assigned: list[int] = []

    async def _beat(self) -> bool:
        """Send a heartbeat; whether this is a member now."""
        request = ShareGroupHeartbeatRequest(
            group_id=SHARE_GROUP,
            member_id=self._member,
            member_epoch=self._epoch,
            subscribed_topic_names=None if self._epoch else [self._topic],
        )
        try:
            if self._coordinator < 0:
                find = FindCoordinatorRequest(key_type=0, coordinator_keys=[SHARE_GROUP])
                answer = await self._session.call(self._session.any_broker(), find)
                if answer.coordinators[0].error_code:
                    return False
                self._coordinator = answer.coordinators[0].node_id
            answer = await self._session.call(self._coordinator, request, VERSION)
        except LOST:
            self._coordinator = -1
            return False
        if answer.error_code in FENCED:
            self._begin()
            return False
        if answer.error_code:
            self._coordinator = -1
            return False
        self._epoch = answer.member_epoch
        if answer.assignment is not None:
            self._assigned = []
            for topic in answer.assignment.topic_partitions:
                self._topic_id = topic.topic_id
                self._assigned += sorted(topic.partitions)
        return True

    async def _work(self, place: Place) -> None:
        """Acquire a few records, and say something of them."""
        mark = self._history.mark()
        wanted = FetchPartition(partition_index=place.partition)
        most = RECORDS_MAX if self._history.may_release else RECORDS_AT_THE_END_MAX
        request = ShareFetchRequest(
            group_id=SHARE_GROUP,
            member_id=self._member,
            share_session_epoch=OPENS,
            max_wait_ms=POLL_MS,
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=most,
            batch_size=most,
            topics=[FetchTopic(topic_id=self._topic_id, partitions=[wanted])],
        )
        try:
            leader = await self._session.leader(place)
            answer = await self._session.call(leader, request, VERSION)
        except LOST:
            self._session.forget_leaders()
            return
        parts = [part for topic in answer.responses for part in topic.partitions]
        if answer.error_code or any(part.error_code for part in parts):
            self._session.forget_leaders()
            return
        self._session_epoch = OPENED
        random = self._session.world.loop.random
        for part in parts:
            for acquired in part.acquired_records:
                offsets = range(acquired.first_offset, acquired.last_offset + 1)
                self._history.acquired(place, offsets, acquired.delivery_count, mark)
                share = random.random() if self._history.may_release else 0.0
                if share < ACCEPTED + RELEASED:
                    kind = ACCEPT if share < ACCEPTED else RELEASE
                    if not await self._say(leader, place, offsets, kind):
                        return

    async def _say(self, leader: int, place: Place, offsets: range, kind: int) -> bool:
        """Accept or release records; False: the session is not open any more."""
        batch = AcknowledgementBatch(
            first_offset=offsets[0], last_offset=offsets[-1], acknowledge_types=[kind]
        )
        partition = AcknowledgePartition(
            partition_index=place.partition, acknowledgement_batches=[batch]
        )
        request = ShareAcknowledgeRequest(
            group_id=SHARE_GROUP,
            member_id=self._member,
            share_session_epoch=self._session_epoch,
            topics=[AcknowledgeTopic(topic_id=self._topic_id, partitions=[partition])],
        )
        self._session_epoch += 1
        try:
            answer = await self._session.call(leader, request, VERSION)
        except LOST:
            answer = None
        if kind == ACCEPT and (answer is None or _is_unsure(answer)):
            self._history.lose(place, offsets)
        if answer is None or answer.error_code:
            return False
        code = answer.responses[0].partitions[0].error_code
        if kind == ACCEPT and not code:
            self._history.accept(place, offsets)
        return not code


def _is_unsure(answer: Any) -> bool:
    """Whether a refusal may have come after the state was written."""
    codes = [part.error_code for topic in answer.responses for part in topic.partitions]
    return any(code != ErrorCode.NONE for code in (answer.error_code, *codes))
