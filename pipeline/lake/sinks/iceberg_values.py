"""Values of Iceberg's metadata: manifest entries, bounds, and the schema as converters have it."""

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from pipeline.lake.files.data_file import DataFile
from pipeline.lake.files.partition_values import iceberg_value
from pipeline.lake.settings.config import PartitionField

OFFSET: Final = "offset"
TIMESTAMP: Final = "timestamp"


def lower_bound(file: Any, field: Any) -> int:
    """The lower bound of a column of whole numbers or times; 0 where the table has none."""
    from pyiceberg.conversions import from_bytes

    bound = (file.lower_bounds or {}).get(field.field_id)
    return 0 if bound is None else int(from_bytes(field.field_type, bound))


def why_sealed(task: Any, table: Any) -> str:
    """Why the bytes of a file alone do not give its rows; empty: they do."""
    if task.delete_files:
        return "rows of it are deleted by delete files"
    if task.file.spec_id != table.metadata.default_spec_id:
        return "it is partitioned as the table was before"
    return ""


def manifest_entry(transaction: Any, path: str, file: DataFile) -> Any:
    """Manifest's entry, with bounds of offset and timestamp: what scans prune by."""
    from pyiceberg.conversions import to_bytes
    from pyiceberg.manifest import DataFile as IcebergFile
    from pyiceberg.manifest import DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    metadata = transaction.table_metadata
    schema = metadata.schema()
    lower, upper = {}, {}
    bounds = {
        OFFSET: (file.first_offset, file.last_offset),
        TIMESTAMP: (file.min_timestamp_us, file.max_timestamp_us),
    }
    for name, (least, most) in bounds.items():
        field = schema.find_field(name)
        lower[field.field_id] = to_bytes(field.field_type, least)
        upper[field.field_id] = to_bytes(field.field_type, most)
    fields = {field.name: field for field in _fields(metadata.spec())}
    values = [iceberg_value(fields[name], text) for name, text in file.values]
    return IcebergFile.from_args(
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(*values),
        record_count=file.rows,
        file_size_in_bytes=file.size,
        column_sizes={},
        value_counts={},
        null_value_counts={},
        nan_value_counts={},
        lower_bounds=lower,
        upper_bounds=upper,
        key_metadata=None,
        split_offsets=None,
        equality_ids=None,
        sort_order_id=None,
        spec_id=metadata.default_spec_id,
    )


def _fields(spec: Any) -> Iterator[PartitionField]:
    for field in spec.fields:
        transform = str(field.transform)
        source = field.name.removesuffix(f"_{transform}")
        yield PartitionField(transform, source)


def arrow_schema(table: Any) -> pa.Schema:
    """Without the field ids and with plain texts: as converters have it."""
    return _plain(table.schema().as_arrow())


def _plain(schema: pa.Schema) -> pa.Schema:
    return pa.schema([_plain_field(field) for field in schema])


def _plain_field(field: pa.Field) -> pa.Field:
    return pa.field(field.name, _plain_type(field.type), field.nullable)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_plain_field(kind.value_field).with_name("element"))
    if pa.types.is_map(kind):
        return pa.map_(_plain_type(kind.key_type), _plain_field(kind.item_field))
    if pa.types.is_struct(kind):
        return pa.struct([_plain_field(kind.field(index)) for index in range(kind.num_fields)])
    return kind
