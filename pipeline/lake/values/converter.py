"""Converter of records to rows: each record is exactly one row or one quarantined record.

    record (key, value, topic, partition, offset, timestamp, ...)
        value and key fit  ->  a row: its coordinates, key, headers, columns of the value
        else               ->  the quarantine, as it was, with the reason

A null value is a row whose value columns are all null, as `from_json` of null is; it is quarantined
where a column must not be null.

For a table that is kept by key a null value deletes, a Debezium envelope may, and a null key is
quarantined. Its rows have the columns that order them (`pipeline.lake.schemas.columns`), of which
`_order_time` is the record's own time here.
"""

from functools import partial
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.lake.schemas.columns import (
    COORDINATES,
    HEADERS,
    KEY_BYTES,
    MAX_REASON_CHARS,
    ORDER_TIME,
    QUARANTINE_SCHEMA,
    TIMESTAMP,
    no_quarantine,
    value_columns,
)
from pipeline.lake.schemas.registry import RegistryClient, RegistryCredentials
from pipeline.lake.schemas.spec import ConverterSpec, FieldSpec
from pipeline.lake.values.formats import open_format
from pipeline.lake.values.parsed import Misfit, ValueFormat

Flags: TypeAlias = np.ndarray[tuple[int], np.dtype[np.bool_]]


class Converted(NamedTuple):
    """Every record of a batch, as a row or in the quarantine.

    Attributes:
        rows: Columns of `Converter.row_schema`, in the records' order.
        quarantined: Columns of `columns.QUARANTINE_SCHEMA`, in the records' order.
        behind: Ids of schemas whose records have fields or types that the table lacks (those of
            keys as negative numbers): their rows are incomplete. The job evolves the spec
            (`TableColumns.evolved`) and converts the range again before it commits.
        deletes: For each row, whether it is none and deletes that of its key; None: no row does.
    """

    rows: pa.RecordBatch
    quarantined: pa.RecordBatch
    behind: frozenset[int] = frozenset()
    deletes: Flags | None = None


class _Side(NamedTuple):
    """One side of all records of a batch, after parsing.

    Attributes:
        columns: Of those that fit and are not null.
        row_of: Per record: its row in `columns`; -1: null or a misfit.
        misfits: By position.
        behind: See `Converted`.
        deletes: See `Parsed`.
    """

    columns: pa.RecordBatch
    row_of: np.ndarray[tuple[int], np.dtype[np.int64]]
    misfits: dict[int, Misfit]
    behind: frozenset[int]
    deletes: Flags | None


class Converter:
    """Converts batches one after the other; made from its spec wherever it is needed."""

    def __init__(self, spec: ConverterSpec, credentials: RegistryCredentials | None = None) -> None:
        """Prepare; nothing is asked of a registry yet.

        Args:
            spec: What values and keys are.
            credentials: For the spec's registry; none: its file, or none at all.

        Raises:
            ValueError: a schema that the format cannot have, or columns of one name.
            RegistryError: the registry's address or credentials cannot be used.
        """
        self.spec: Final = spec
        client = partial(RegistryClient, credentials=credentials)
        self._is_keyed = spec.mode != "append"
        self._value = open_format(spec.value, "value", client)
        self._key = open_format(spec.key, "key", client) if spec.key is not None else None
        self.schema: Final[pa.Schema] = value_columns(self._value.schema)
        self.row_schema: Final[pa.Schema] = pa.schema([*self._leading(), *self.schema])

    def convert(self, batch: pa.RecordBatch) -> Converted:
        """Rows and misfits of a batch.

        Args:
            batch: Columns key, value, topic, partition, offset, timestamp, and headers if the spec
                wants them; others are not read.

        Raises:
            RegistryError: the registry cannot be asked, or does not know a schema: no fault of the
                record, so nothing is quarantined.
        """
        value = _parse_side(self._value, batch.column("value"), self.spec.value)
        key = None
        if self._key is not None and self.spec.key is not None:
            key = _parse_side(self._key, batch.column("key"), self.spec.key)
        misfits = dict(value.misfits)
        if key is not None:
            for at, misfit in key.misfits.items():
                misfits.setdefault(at, misfit._replace(reason=f"key: {misfit.reason}"))
        if self._is_keyed:
            self._refuse_null_keys(batch.column("key"), misfits)
        else:
            self._refuse_nulls(value, misfits)
        kept = None
        if misfits:
            inside = np.ones(batch.num_rows, bool)
            inside[list(misfits)] = False
            kept = np.flatnonzero(inside)
        behind = value.behind
        if key is not None:
            behind |= {-schema_id for schema_id in key.behind}
        rows = self._rows(batch, value, key, kept)
        deletes = self._deletes(value, kept) if self._is_keyed else None
        return Converted(rows, _quarantine(batch, misfits), behind, deletes)

    def _deletes(
        self, value: _Side, kept: np.ndarray[tuple[int], np.dtype[np.int64]] | None
    ) -> Flags:
        rows = value.row_of if kept is None else value.row_of[kept]
        gone = rows < 0
        if value.deletes is not None and len(value.deletes):
            gone |= value.deletes[rows]
        return gone

    def _leading(self) -> list[pa.Field]:
        fields = list(COORDINATES)
        if self._is_keyed:
            fields.append(pa.field(ORDER_TIME, TIMESTAMP))
            if self.spec.identity == KEY_BYTES:
                fields.append(pa.field(KEY_BYTES, pa.binary()))
            if taken := {field.name.lower() for field in self.schema} & {ORDER_TIME, KEY_BYTES}:
                raise ValueError(f"a table by key has a column {min(taken)} of its own")
        if self._key is not None:
            kind = self._key.schema
            bare = kind.field(0).type if self._key.bare else pa.struct(list(kind))
            fields.append(pa.field("key", bare))
        if self.spec.headers:
            fields.append(pa.field("headers", HEADERS))
        return fields

    def _refuse_nulls(self, value: _Side, misfits: dict[int, Misfit]) -> None:
        required = [field.name for field in self.schema if not field.nullable]
        if required:
            reason = f"the value is null, and {', '.join(required)} must not be"
            for at in np.flatnonzero(value.row_of < 0).tolist():
                misfits.setdefault(at, Misfit(at, reason))

    def _refuse_null_keys(self, keys: pa.Array, misfits: dict[int, Misfit]) -> None:
        if keys.null_count:
            for at in pc.indices_nonzero(keys.is_null()).to_pylist():
                misfits.setdefault(at, Misfit(at, "the key is null, and rows are kept by key"))

    def _rows(
        self,
        batch: pa.RecordBatch,
        value: _Side,
        key: _Side | None,
        kept: np.ndarray[tuple[int], np.dtype[np.int64]] | None,
    ) -> pa.RecordBatch:
        at = pa.array(kept) if kept is not None else None
        columns = [_as(batch.column(field.name), at, field.type) for field in COORDINATES]
        if self._is_keyed:
            columns.append(columns[-1])
            if self.spec.identity == KEY_BYTES:
                columns.append(_as(batch.column("key"), at, pa.binary()))
        if key is not None:
            parts = _spread(key, kept)
            kind = self.row_schema.field("key").type
            if self._key is not None and self._key.bare:
                columns += parts
            else:
                missing = key.row_of if kept is None else key.row_of[kept]
                mask = pa.array(missing < 0)
                columns.append(pa.StructArray.from_arrays(parts, fields=list(kind), mask=mask))
        if self.spec.headers:
            columns.append(_as(batch.column("headers"), at, HEADERS))
        columns += _spread(value, kept)
        return pa.RecordBatch.from_arrays(columns, schema=self.row_schema)


def _parse_side(reader: ValueFormat, side: pa.Array, spec: FieldSpec) -> _Side:
    side = side.cast(pa.binary())
    lengths = pc.fill_null(pc.binary_length(side), 0)
    usable = side.is_valid()
    if spec.format not in ("raw", "string"):
        usable = pc.and_(usable, pc.less_equal(lengths, spec.max_value_bytes))
    mask = usable.to_numpy(zero_copy_only=False)
    misfits = {}
    for at in np.flatnonzero(~mask).tolist():
        if side[at].is_valid:
            reason = f"longer than {spec.max_value_bytes} bytes"
            misfits[at] = Misfit(at, reason)
    positions = np.flatnonzero(mask)
    values = side if mask.all() else side.take(pa.array(positions))
    parsed = reader.parse(values)
    fits = np.ones(len(values), bool)
    for misfit in parsed.misfits:
        fits[misfit.position] = False
        at = int(positions[misfit.position])
        misfits[at] = misfit._replace(position=at)
    row_of = np.full(len(side), -1, np.int64)
    row_of[positions[fits]] = np.arange(parsed.columns.num_rows)
    return _Side(parsed.columns, row_of, misfits, parsed.behind, parsed.deletes)


def _spread(side: _Side, kept: np.ndarray[tuple[int], np.dtype[np.int64]] | None) -> list[pa.Array]:
    """Columns with one row for each record that is kept, null where the side is."""
    rows = side.row_of if kept is None else side.row_of[kept]
    if len(rows) == side.columns.num_rows and (rows == np.arange(len(rows))).all():
        return list(side.columns.columns)
    indices = pa.array(rows, mask=rows < 0)
    return [column.take(indices) for column in side.columns.columns]


def _as(column: pa.Array, at: pa.Array | None, kind: pa.DataType) -> pa.Array:
    return (column if at is None else column.take(at)).cast(kind)


def _quarantine(batch: pa.RecordBatch, misfits: dict[int, Misfit]) -> pa.RecordBatch:
    if not misfits:
        return no_quarantine()
    ordered = [misfits[at] for at in sorted(misfits)]
    at = pa.array([misfit.position for misfit in ordered], pa.int64())
    columns = [
        _as(batch.column(field.name), at, field.type) for field in list(QUARANTINE_SCHEMA)[:-2]
    ]
    columns.append(pa.array([misfit.schema_id for misfit in ordered], pa.int64()))
    columns.append(pa.array([misfit.reason[:MAX_REASON_CHARS] for misfit in ordered], pa.string()))
    return pa.RecordBatch.from_arrays(columns, schema=QUARANTINE_SCHEMA)
