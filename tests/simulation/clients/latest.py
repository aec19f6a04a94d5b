"""I6: the high watermark that clients see never goes back."""

from protocol.error_codes import ErrorCode
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.fakes.network.client import LATEST
from tests.simulation.clients.session import BACK_OFF_S, LOST, Session, within
from tests.simulation.world import Place, Violation


class LatestReader:
    """Asks for the end of a partition, again and again, as a client that forgets no leader epoch.

    Attributes:
        answers: How many it was given.
    """

    def __init__(self, session: Session, place: Place, *, pause_s: float) -> None:
        self._session = session
        self._place = place
        self._pause_s = pause_s
        self._leader = -1
        self._epoch = -1
        self._end = -1
        self.answers = 0

    async def run(self) -> None:
        """Until the session is over."""
        while not self._session.is_over:
            try:
                if self._leader < 0:
                    await self._find()
                await self._ask()
            except LOST:
                self._leader = -1
                await self._session.pause(BACK_OFF_S)
            await self._session.rest(self._pause_s)

    async def _find(self) -> None:
        node_id = self._session.any_broker()
        try:
            client = await self._session.client(node_id)
            answer = await within(client.metadata(self._place.topic))
        except LOST:
            self._session.drop(node_id)
            raise
        for partition in answer.topics[0].partitions:
            # A broker that lags names an older leader: that is not believed.
            if (
                partition.partition_index == self._place.partition
                and partition.leader_id >= 0
                and partition.leader_epoch >= self._epoch
            ):
                self._leader, self._epoch = partition.leader_id, partition.leader_epoch

    async def _ask(self) -> None:
        if self._leader < 0:
            return
        wanted = ListOffsetsPartition(
            partition_index=self._place.partition,
            current_leader_epoch=self._epoch,
            timestamp=LATEST,
        )
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name=self._place.topic, partitions=[wanted])]
        )
        answer = await self._session.call(self._leader, request)
        partition = answer.topics[0].partitions[0]
        if partition.error_code:
            if partition.error_code != ErrorCode.OFFSET_NOT_AVAILABLE:
                self._leader = -1
            return
        self.answers += 1
        if partition.offset < self._end:
            raise Violation(f"I6 {self._place}: ends at {partition.offset}, was {self._end}")
        self._end = partition.offset
