"""Rows of a table's file with all columns of the table, whenever it was written.

A column that came later is null, one that was widened is cast, and one that the table is
partitioned by and that its files do not hold has the value of the file's folder.
"""

from collections.abc import Mapping

import pyarrow as pa

from pipeline.lake.schemas.evolution import holds
from pipeline.lake.schemas.fitting import fit


def shaped(
    batch: pa.RecordBatch, schema: pa.Schema, known_values: Mapping[str, str]
) -> pa.RecordBatch:
    """A file's rows as the table has them.

    Args:
        batch: Of the file.
        schema: Of the table.
        known_values: Values of columns that the file may lack, as text.

    Raises:
        pyarrow.ArrowInvalid: A value does not fit its column.
    """
    columns = []
    for field in schema:
        if field.name in batch.schema.names:
            columns.append(fit(batch.column(field.name), field.type))
        elif field.name in known_values:
            value = pa.array([known_values[field.name]]).cast(field.type)[0]
            columns.append(pa.repeat(value, batch.num_rows))
        else:
            columns.append(pa.nulls(batch.num_rows, field.type))
    return pa.RecordBatch.from_arrays(columns, names=schema.names)


def without_place(file: pa.Schema, table: pa.Schema) -> str | None:
    """The first column of a file that a table's columns do not hold; None: they hold all.

    Such a column was renamed or dropped by another writer: its values would be lost.
    """
    for field in file:
        index = table.get_field_index(field.name)
        if index < 0 or not holds(table.field(index).type, field.type):
            return str(field.name)
    return None
