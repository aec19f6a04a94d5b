r"""JSON objects to columns, a block at a time, and never a row at another record's place.

Arrow's reader knows documents, not records: it would give one row for two records that together
are a document, and two for a record that holds two. So a block is made such that it cannot:

    record \n record \n record \n

    every record begins with "{" and ends with "}", without white space,
    and none holds a NUL, at which the reader stops

A line feed is not allowed within a JSON string, so at each of ours the reader is outside of one.
The last thing before it is a closing brace and the first behind it an opening one: no document has
the two in a row, so each of ours ends a document or is an error. Thus every record holds at least
one whole document, and when there are as many rows as records, each is exactly one.

Where a block fails, the record that broke it is found, and the others stay in blocks. A top-level
`null` crashes the reader of pyarrow 26 (it writes beside its builders); one can only come behind
the first document of a record, so records in which `null` follows a brace are checked before.

`NaN` and `Infinity` are numbers, as in Spark's `from_json`. Fields that the table has not are left
out. Numbers that are too large, have decimal places or are in quotes do not fit into whole
numbers; dates and timestamps are ISO 8601 text.
"""

import re
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from pipeline.lake.schemas.fitting import fit
from pipeline.lake.values.block_parsing import BrokenBlockError, parse_in_blocks
from pipeline.lake.values.by_schema import one_batch
from pipeline.lake.values.parsed import Misfit, Parsed
from pipeline.lake.values.raw import not_utf8, utf8_problem

_SPACE: Final = b" \t\r\n"
_NULL_BEHIND_BRACE: Final = re.compile(rb"\}[ \t\r\n]*null")
_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[{}\[\]]', re.DOTALL)
_ROW: Final = re.compile(r" in row ([0-9]+)$")


class JsonFormat:
    """Objects to the columns of a schema that is fixed."""

    bare = False

    def __init__(self, fields: pa.Schema) -> None:
        """Prepare.

        Args:
            fields: Names as they are in the objects.

        Raises:
            ValueError: a type that JSON values cannot have here.
        """
        self.schema = fields
        self._wire = pa.schema([_on_the_wire(field) for field in fields])

    def parse(self, values: pa.BinaryArray) -> Parsed:
        """The objects' fields; a value that is no object of this schema is a misfit."""
        reasons = _misframed(values)
        kept = [n for n in range(len(values)) if n not in reasons] if reasons else None
        framed = values if kept is None else values.take(pa.array(kept, pa.int64()))
        parts, broken = parse_in_blocks(framed, self._read)
        for at, reason in broken.items():
            reasons[at if kept is None else kept[at]] = reason
        misfits = [Misfit(at, reasons[at]) for at in sorted(reasons)]
        return Parsed(one_batch(parts, self.schema), misfits)

    def _read(self, records: pa.BinaryArray) -> pa.RecordBatch:
        """All records as rows.

        Raises:
            BrokenBlockError: at least one of them does not fit.
        """
        try:
            return self._rows(records)
        except pa.ArrowInvalid as error:
            reason = str(error)
        row = _ROW.search(reason)
        raise BrokenBlockError(_ROW.sub("", reason), int(row[1]) if row else None)

    def _rows(self, records: pa.BinaryArray) -> pa.RecordBatch:
        joined = pc.binary_join_element_wise(records, pa.scalar(b"\n"), pa.scalar(b""))
        block = joined.buffers()[2]
        read = pyarrow.json.read_json(
            pa.BufferReader(block),
            read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=block.size + 1),
            parse_options=pyarrow.json.ParseOptions(
                explicit_schema=self._wire,
                newlines_in_values=False,
                unexpected_field_behavior="ignore",
            ),
        )
        if read.num_rows != len(records):
            raise pa.ArrowInvalid("the value holds more than one JSON document")
        read = read.combine_chunks()
        columns = [
            # A number of JSON has no type of its own: it becomes the column's nearest float.
            fit(_contiguous(read.column(n)), field.type, rounds=True)
            for n, field in enumerate(self.schema)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def json_kinds(kind: pa.DataType) -> pa.DataType:
    """The type to request of Arrow's reader for a column of `kind`.

    Raises:
        ValueError: there is no such way.
    """
    if pa.types.is_struct(kind):
        return pa.struct([_on_the_wire(field) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(json_kinds(kind.value_type))
    if pa.types.is_date32(kind):
        return pa.string()
    if pa.types.is_float32(kind):
        return pa.float64()
    known = (
        pa.types.is_boolean,
        pa.types.is_signed_integer,
        pa.types.is_float64,
        pa.types.is_string,
        pa.types.is_timestamp,
        pa.types.is_decimal128,
    )
    if not any(is_known(kind) for is_known in known):
        raise ValueError(f"JSON has no {kind}: give text, a number, a struct or an array")
    return kind


def _on_the_wire(field: pa.Field) -> pa.Field:
    try:
        return field.with_type(json_kinds(field.type))
    except ValueError as error:
        raise ValueError(f"{field.name}: {error}") from None


def _misframed(values: pa.BinaryArray) -> dict[int, str]:
    """Values that may not come into a block, by position, each with its reason."""
    if not len(values):
        return {}
    suspects: set[int] = set()
    framed = pc.and_(pc.starts_with(values, b"{"), pc.ends_with(values, b"}"))
    if not pc.all(framed).as_py():
        suspects.update(_positions(pc.invert(framed)))
    data = _data(values)
    if _contains(data, b"\0"):
        suspects.update(_positions(pc.match_substring(values, "\0")))
    if _contains(data, b"null") and _NULL_BEHIND_BRACE.search(data):
        suspects.update(_positions(pc.match_substring_regex(values, r"\}[ \t\r\n]*null")))
    suspects.update(not_utf8(values))
    found = ((at, _frame_problem(values[at].as_py())) for at in suspects)
    return {at: reason for at, reason in found if reason is not None}


def _frame_problem(value: bytes) -> str | None:
    """Why a value is not one JSON object, as far as its frame shows; none if nothing is wrong."""
    if (problem := utf8_problem(value)) is not None:
        return problem
    bare = value.strip(_SPACE)
    if not bare:
        return "the value is empty"
    if bare.startswith(b"\xef\xbb\xbf"):
        return "the value begins with a byte order mark"
    if not bare.startswith(b"{"):
        return "the value is not a JSON object"
    if not bare.endswith(b"}"):
        return "the value does not end with its JSON object"
    if b"\0" in bare:
        return "the value holds a NUL byte"
    if not _is_one_document(bare):
        return "the value holds more than one JSON document"
    return None


def _is_one_document(bare: bytes) -> bool:
    """Whether the object that a value begins with ends where the value ends.

    For what is not JSON either answer is right: the reader finds that itself.
    """
    depth = 0
    for token in _TOKEN.finditer(bare):
        first = token[0][:1]
        if first in b"{[":
            depth += 1
        elif first in b"}]":
            depth -= 1
            if depth == 0:
                return token.end() == len(bare)
    return False


def _positions(mask: pa.BooleanArray) -> list[int]:
    positions: list[int] = pc.indices_nonzero(mask).to_pylist()
    return positions


def _data(values: pa.BinaryArray) -> memoryview:
    """All bytes of the values, one after the other."""
    offsets, data = values.buffers()[1:3]
    if data is None or offsets is None:
        return memoryview(b"")
    bounds = memoryview(offsets).cast("i")
    return memoryview(data)[bounds[values.offset] : bounds[values.offset + len(values)]]


def _contains(data: memoryview, needle: bytes) -> bool:
    return re.search(re.escape(needle), data) is not None


def _contiguous(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return combined.combine_chunks() if isinstance(combined, pa.ChunkedArray) else combined
