"""A client that deletes the oldest records of a partition now and then (DeleteRecords)."""

from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tests.simulation.clients.history import History
from tests.simulation.clients.session import BACK_OFF_S, LOST, Session
from tests.simulation.world import Place


class Trimmer:
    """See the module. What it has asked for may be gone, whether or not it was answered."""

    def __init__(self, session: Session, history: History, place: Place, pause_s: float) -> None:
        self._session = session
        self._history = history
        self._place = place
        self._pause_s = pause_s

    async def run(self) -> None:
        """Until the session is over."""
        random = self._session.world.loop.random
        while not self._session.is_over:
            await self._session.rest(10 * self._pause_s)
            start, end = (
                self._session.world.log_start(self._place),
                self._history.acked_end[self._place],
            )
            if end > start:
                await self._delete_before(random.randint(start, end))

    async def _delete_before(self, offset: int) -> None:
        wanted = DeleteRecordsPartition(partition_index=self._place.partition, offset=offset)
        request = DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=self._place.topic, partitions=[wanted])],
            timeout_ms=3_000,
        )
        trimmed = self._history.trimmed
        trimmed[self._place] = max(trimmed[self._place], offset)
        try:
            answer = await self._session.call(await self._session.leader(self._place), request)
        except LOST:
            self._session.forget_leaders()
            await self._session.pause(BACK_OFF_S)
            return
        partition = answer.topics[0].partitions[0]
        if partition.error_code:
            self._session.forget_leaders()
        else:
            self._history.delete(self._place, offset, partition.low_watermark, self._in_sync())

    def _in_sync(self) -> frozenset[str]:
        """Names of the processes that are in sync now: the leader has waited for those."""
        world = self._session.world
        image = world.image.partition(*self._place)
        return frozenset(
            world.brokers[node].process.name for node in (() if image is None else image.isr)
        )
