"""`__remote_log_metadata` in memory: outlives the managers that use it, perhaps several at once.

topic.hold = True            appends wait for `commit_held`
topic.fail_append = error    appends raise it, and write nothing
topic.fail_read = error      reads raise it
topic.trim(0, 100)           what comes before offset 100 of partition 0 is gone
topic.cut(0, 100)            what comes from offset 100 on is gone
topic.stop_serving(0)        RemoteStorageNotReadyError until `serve(0)`
"""

import asyncio
from uuid import UUID

from tiered.errors import RemoteOffsetNotFoundError, RemoteStorageNotReadyError
from tiered.metadata.log import LogOffsets, LogPage, MetadataLogListener

RECORDS_PER_PAGE = 300


class MetadataTopic:
    def __init__(self, partitions: int = 4) -> None:
        self.topic_id = UUID(int=77)
        self.partition_count = partitions
        self.records: list[list[bytes]] = [[] for _ in range(partitions)]
        self.starts = [0] * partitions
        self.hold = False
        self.held: list[tuple[int, bytes, asyncio.Future[int]]] = []
        self.fail_append: Exception | None = None
        self.fail_read: Exception | None = None
        self.fail_open: Exception | None = None
        self.not_served: set[int] = set()
        self.reads = 0
        self.read_records = 0
        self.listeners: list[MetadataLogListener] = []

    def end(self, partition: int) -> int:
        return self.starts[partition] + len(self.records[partition])

    def put(self, partition: int, *values: bytes) -> int:
        """Append, as anybody might."""
        offset = self.end(partition)
        self.records[partition] += values
        for listener in self.listeners:
            listener.on_advanced(partition)
        return offset

    def commit_held(self) -> None:
        held, self.held = self.held, []
        for partition, value, future in held:
            offset = self.put(partition, value)
            if not future.done():
                future.set_result(offset)

    def fail_held(self, error: Exception) -> None:
        held, self.held = self.held, []
        for _, _, future in held:
            if not future.done():
                future.set_exception(error)

    def trim(self, partition: int, start: int) -> None:
        del self.records[partition][: start - self.starts[partition]]
        self.starts[partition] = start

    def cut(self, partition: int, end: int) -> None:
        del self.records[partition][end - self.starts[partition] :]

    def stop_serving(self, partition: int) -> None:
        self.not_served.add(partition)

    def serve(self, partition: int) -> None:
        self.not_served.discard(partition)
        for listener in self.listeners:
            listener.on_advanced(partition)


class FakeMetadataLog:
    """One broker's access to the topic; with `leads` it is told to lead all its partitions."""

    def __init__(self, topic: MetadataTopic, *, leads: bool = True) -> None:
        self.topic = topic
        self.leads = leads
        self.listener: MetadataLogListener | None = None

    @property
    def topic_id(self) -> UUID:
        return self.topic.topic_id

    @property
    def partition_count(self) -> int:
        return self.topic.partition_count

    async def open(self, listener: MetadataLogListener) -> None:
        await asyncio.sleep(0)
        if self.topic.fail_open is not None:
            raise self.topic.fail_open
        self.listener = listener
        self.topic.listeners.append(listener)
        if self.leads:
            for partition in range(self.topic.partition_count):
                listener.on_elected(partition)

    def _check(self, partition: int) -> None:
        if partition in self.topic.not_served:
            raise RemoteStorageNotReadyError(f"metadata partition {partition} is not served")

    async def append(self, partition: int, *values: bytes) -> int:
        self._check(partition)
        if self.topic.fail_append is not None:
            raise self.topic.fail_append
        if not self.topic.hold:
            return self.topic.put(partition, *values)
        (value,) = values
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.topic.held.append((partition, value, future))
        return await future

    async def read(self, partition: int, offset: int, max_bytes: int) -> LogPage:
        self._check(partition)
        topic = self.topic
        topic.reads += 1
        if topic.fail_read is not None:
            raise topic.fail_read
        start = topic.starts[partition]
        if not start <= offset <= topic.end(partition):
            raise RemoteOffsetNotFoundError(partition, None, offset)
        values = topic.records[partition][offset - start : offset - start + RECORDS_PER_PAGE]
        topic.read_records += len(values)
        return LogPage(list(enumerate(values, offset)), offset + len(values))

    async def offsets(self, partition: int) -> LogOffsets:
        self._check(partition)
        return LogOffsets(self.topic.starts[partition], self.topic.end(partition))

    def close(self) -> None:
        if self.listener is not None:
            self.topic.listeners.remove(self.listener)
            self.listener = None
