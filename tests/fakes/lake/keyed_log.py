"""A log for keyed tables: any records in any partitions, and what a table must be after them."""

import json
import signal
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from pipeline.lake.errors import TableUnavailableError, TaskFailedError
from pipeline.lake.schemas.spec import ConverterSpec, FieldSpec
from pipeline.plan.piece import Piece
from storage.environment.clock import sleep_ms
from tests.fakes.lake.jobs import Deadly, lake_job
from tests.fakes.lake.numbers_log import FakeLog

FIELDS = pa.schema([pa.field("id", pa.int64()), pa.field("name", pa.string())])

UPSERT = ConverterSpec(FieldSpec("json", fields=FIELDS), FieldSpec("raw"), mode="upsert")


class Record(NamedTuple):
    """Of one partition; its offset is its place there."""

    partition: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int


class KeyedLog(FakeLog):
    """Records by partition, each from offset 0 on; more can be written later."""

    def __init__(self, records: Sequence[Record] = ()) -> None:
        super().__init__({})
        self.records: dict[int, list[Record]] = {}
        self.write(records)

    def write(self, records: Sequence[Record]) -> None:
        for record in records:
            self.records.setdefault(record.partition, []).append(record)
        self.partitions = {n: (0, len(some)) for n, some in self.records.items()}

    def read(self, piece: Piece) -> Iterator[pa.RecordBatch]:
        some = self.records[piece.partition.partition]
        for begin in range(piece.start_offset, piece.end_offset, 7):
            end = min(begin + 7, piece.end_offset)
            yield batch_of(piece.partition.topic, some[begin:end], begin)


def batch_of(topic: str, records: Sequence[Record], start: int) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "key": pa.array([one.key for one in records], pa.binary()),
            "value": pa.array([one.value for one in records], pa.binary()),
            "topic": pa.array([topic] * len(records)),
            "partition": pa.array([one.partition for one in records], pa.int32()),
            "offset": pa.array(range(start, start + len(records)), pa.int64()),
            "timestamp": pa.array(
                [one.timestamp_ms * 1000 for one in records], pa.timestamp("us", tz="UTC")
            ),
        }
    )


def fits(value: bytes | None) -> bool:
    """Whether a value is a row of `FIELDS`, or deletes."""
    if value is None:
        return True
    try:
        found = json.loads(value)
    except ValueError:
        return False
    return isinstance(found, dict) and isinstance(found.get("id", 0), int)


Place = tuple[int, int]


def oracle(
    log: KeyedLog, ends: Mapping[int, int] | None = None
) -> dict[bytes, tuple[Place, bytes]]:
    """By key: where its row is from, and the value; a plain fold of all records in their order.

    `ends`: by partition, of what is folded; none: all.
    """
    ordered = []
    for partition, records in log.records.items():
        newest = -(1 << 62)
        end = len(records) if ends is None else ends.get(partition, 0)
        for offset, record in enumerate(records[:end]):
            newest = max(newest, record.timestamp_ms)
            ordered.append((newest, partition, offset, record))
    rows: dict[bytes, tuple[Place, bytes]] = {}
    for _, partition, offset, record in sorted(ordered, key=lambda one: one[:3]):
        if record.key is None or not fits(record.value):
            continue
        if record.value is None:
            rows.pop(record.key, None)
        else:
            rows[record.key] = ((partition, offset), record.value)
    return rows


def rows_of_table(table: pa.Table) -> dict[bytes, tuple[Place, bytes]]:
    """The same of a table; a key that is there twice is an error."""
    found: dict[bytes, tuple[Place, bytes]] = {}
    if not table.num_rows:
        return found
    for row in table.to_pylist():
        assert row["key"] not in found, row
        value = json.dumps({"id": row["id"], "name": row["name"]}).encode()
        found[row["key"]] = ((row["partition"], row["offset"]), value)
    return found


def value(number: int) -> bytes:
    return json.dumps({"id": number, "name": f"n{number}"}).encode()


def numbered_log(count: int) -> KeyedLog:
    """So many records over two partitions; a key may be in both, as if the topic had grown."""
    return KeyedLog([_numbered(n) for n in range(count)])


def _numbered(n: int) -> Record:
    key = f"k{n * 13 % 17}".encode()
    content: bytes | None = value(n)
    if n % 5 == 4:
        content = None
    elif n % 19 == 7:
        content = b"{no json"
    return Record((n * 13 % 17 + n // 40) % 2, key, content, 1000 + n - n % 3 * 20)


def keep_keyed(kind: str, root: str, count: int, steps: int, number: int = signal.SIGKILL) -> None:
    """What a process does: keep the table behind the log, and die at a step; 0: do not."""
    hook = Deadly(steps, number)
    log = numbered_log(count)

    def read(piece: Piece) -> Iterator[pa.RecordBatch]:
        for batch in log.read(piece):
            hook()
            yield batch

    job = lake_job(kind, Path(root), log, spec=UPSERT, read_piece=read, hook=hook)
    for _ in range(1000):
        try:
            if job.step() is None:
                return
        except (TableUnavailableError, TaskFailedError):
            # SQLite's lock is with another process, or another one has committed the batch.
            sleep_ms(5)
    raise AssertionError("the table is never reached")
