"""Values that a table is partitioned by, as text: `2026-11-22` for day(timestamp).

    year 2026   month 2026-11   day 2026-11-22   hour 2026-11-22-05   identity: the value itself

In UTC. Text orders as time does, names Hive-style folders, and is what Iceberg shows for its
transforms; `iceberg_value` is the number its manifests hold instead.
"""

from collections.abc import Iterator, Sequence
from datetime import date
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.lake.settings.config import PartitionField

_FORMATS: Final = {"year": "%Y", "month": "%Y-%m", "day": "%Y-%m-%d", "hour": "%Y-%m-%d-%H"}

_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()


def text_column(batch: pa.RecordBatch, field: PartitionField) -> pa.Array:
    """The values of a batch, one per row."""
    column = batch.column(field.source)
    if field.transform == "identity":
        return column.cast(pa.string())
    # Strftime is asked once per distinct hour, not once per row: a batch has few of them.
    hours = pc.floor_temporal(column, unit="hour").dictionary_encode()
    words = pc.strftime(hours.dictionary, format=_FORMATS[field.transform])
    return words.take(hours.indices)


def split(
    batch: pa.RecordBatch, fields: Sequence[PartitionField]
) -> Iterator[tuple[tuple[tuple[str, str], ...], pa.RecordBatch]]:
    """Parts of a batch that have the same values, in the order of their first rows."""
    if not fields:
        yield (), batch
        return
    columns = [text_column(batch, field) for field in fields]
    joined = pc.binary_join_element_wise(*columns, "\x00").dictionary_encode()
    for index, value in enumerate(joined.dictionary.to_pylist()):
        values = tuple((f.name, text) for f, text in zip(fields, value.split("\x00"), strict=True))
        if len(joined.dictionary) == 1:
            yield values, batch
        else:
            yield values, batch.filter(pc.equal(joined.indices, index))


def iceberg_value(field: PartitionField, text: str) -> int | str:
    """As Iceberg keeps it: years, months, days or hours since 1970, or the value itself."""
    if field.transform == "identity":
        return int(text) if field.source == "partition" else text
    numbers = [int(part) for part in text.split("-")]
    if field.transform == "year":
        return numbers[0] - 1970
    if field.transform == "month":
        return (numbers[0] - 1970) * 12 + numbers[1] - 1
    days = date(numbers[0], numbers[1], numbers[2]).toordinal() - _EPOCH_DAY
    return days if field.transform == "day" else days * 24 + numbers[3]
