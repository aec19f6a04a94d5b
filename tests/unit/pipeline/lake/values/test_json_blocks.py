"""JSON in blocks against one record at a time, by another reader: no row shifts, none is lost."""

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.lake.schemas.ddl import parse_ddl
from pipeline.lake.schemas.spec import ConverterSpec, FieldSpec
from pipeline.lake.values import json_blocks
from pipeline.lake.values.block_parsing import MAX_BLOCK_BYTES, parse_in_blocks
from pipeline.lake.values.converter import Converter
from pipeline.lake.values.json_blocks import JsonFormat
from tests.effort import examples
from tests.unit.pipeline.lake.values.batches import batch

FIELDS = parse_ddl("a bigint, s string, f double, o struct<x: tinyint, s: string>, l array<int>")


class Unfit(Exception):
    """The record does not fit, by the model."""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        name.encode()
        found.setdefault("\0twice", set()).update({name} if name in found else ())
        found[name] = value
    return found


def _text(value: object) -> None:
    """Every string is Unicode, also where nobody looks at it."""
    if isinstance(value, str):
        value.encode()
    elif isinstance(value, list):
        for element in value:
            _text(element)
    elif isinstance(value, dict):
        for name, inner in value.items():
            if name != "\0twice":
                _text(inner)


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise Unfit
    return number


def _column(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_struct(kind) and isinstance(value, dict):
        if value.get("\0twice", set()) & {field.name for field in kind}:
            raise Unfit
        return {field.name: _column(value.get(field.name), field.type) for field in kind}
    if pa.types.is_list(kind) and isinstance(value, list):
        return [_column(element, kind.value_type) for element in value]
    if pa.types.is_string(kind) and isinstance(value, str):
        return value
    if pa.types.is_float64(kind) and type(value) in {int, float}:
        return float(value)
    if pa.types.is_integer(kind) and type(value) is int:
        limit = 1 << (kind.bit_width - 1)
        if -limit <= value < limit:
            return value
    raise Unfit


def _model(value: bytes) -> dict[str, Any] | None:
    """The row of one record by Python's own reader; None: it does not fit."""
    try:
        document = json.loads(value.decode(), object_pairs_hook=_pairs, parse_float=_finite)
        _text(document)
        if not isinstance(document, dict):
            return None
        row = _column(document, pa.struct(list(FIELDS)))
    except (ValueError, Unfit):
        return None
    assert isinstance(row, dict)
    return row


_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-130, 130),
    st.sampled_from([2**31, -(2**31), 2**63 - 1, -(2**63), 2**63, 10**25]),
    st.floats(allow_nan=True, allow_infinity=True),
    st.text(max_size=6),
    st.sampled_from(["} null", '"}\n{"', "\\", "}{", "\0", "\ud7ff", "{}"]),
)
_ANY = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["a", "s", "x", "zz", ""]), inner, max_size=3),
    ),
    max_leaves=6,
)
_FITTING = st.fixed_dictionaries(
    {},
    optional={
        "a": st.integers(-(2**63), 2**63 - 1) | st.none(),
        "s": st.text(max_size=8) | st.sampled_from(["} null", "}\n{", '"']),
        "f": st.floats(allow_nan=False, allow_infinity=False) | st.integers(-5, 5),
        "o": st.fixed_dictionaries({}, optional={"x": st.integers(-128, 127), "q": _ANY}),
        "l": st.lists(st.integers(-(2**31), 2**31 - 1) | st.none(), max_size=3),
        "zz": _ANY,
    },
)
_DOCUMENTS = st.builds(
    lambda document, indent, ascii_only, before, after: (
        before + json.dumps(document, indent=indent, ensure_ascii=ascii_only) + after
    ).encode("utf-8", "surrogatepass"),
    st.one_of(_FITTING, _FITTING, _ANY),
    st.sampled_from([None, None, 1]),
    st.booleans(),
    st.sampled_from(["", "", " ", "\r\n"]),
    st.sampled_from(["", "", "\n", " \t"]),
)
_FRAGMENTS = st.lists(
    st.sampled_from(
        [
            *(b"{", b"}", b"[", b"]", b'"', b"\n", b",", b":", b"null", b'{"a":1}', b"{}", b"\\"),
            *(b"\0", b"\xff", b"\xef\xbb\xbf", b'"a"', b"1", b" ", b"1.5", b'"a":1', b'"a":2,'),
            *(b'\\"', b"\\u0000", b'"\\ud800"', b"NaN", b"\x0c", b"\xc3\xa9", b"//", b"'", b"01"),
        ]
    ),
    max_size=8,
).map(b"".join)
_PIECES = st.one_of(
    # Two documents that are not in records of their own, and one that is in two.
    _DOCUMENTS.map(lambda value: [value]),
    st.tuples(_DOCUMENTS, _DOCUMENTS).map(lambda two: [two[0] + two[1]]),
    st.tuples(_DOCUMENTS, st.integers(0, 40)).map(lambda cut: [cut[0][: cut[1]], cut[0][cut[1] :]]),
    _FRAGMENTS.map(lambda value: [value]),
    _FRAGMENTS.map(lambda value: [b"{" + value + b"}"]),
)
_VALUES = st.lists(_PIECES, max_size=8).map(lambda pieces: [v for piece in pieces for v in piece])


@examples(400)
@given(_VALUES)
@example([b'{"a":1', b',"s":"x"}', b'{"a":1}{"a":2}', b'{"a":3}'])
@example([b'{"a":1}\n{"a":2}', b'{"a":3}\0', b'{"a":4}'])
@example([b'{"s":"', b'"}', b'{"s":"}', b'{"}', b'{"a":1}'])
@example([b"null", b"{}null{}", b"{} null", b"{}\n\nnull", b"null{}"])
@example([b'{},"a":{}', b"{}}", b"{},{}", b'{"a":1},'])
@example([b"", b" ", b"\n", b"[]", b"5", b'"x"'])
def test_every_record_is_one_row_or_one_misfit_as_alone(values: list[bytes]) -> None:
    """The rows are those of the records one by one, in order, each at its own offset."""
    converted = Converter(ConverterSpec(FieldSpec("json", fields=FIELDS))).convert(batch(values))

    wanted = {100 + at: row for at, value in enumerate(values) if (row := _model(value))}
    names = FIELDS.names
    found = {
        row["offset"]: {name: row[name] for name in names} for row in converted.rows.to_pylist()
    }
    assert repr(found) == repr(wanted)
    converted.rows.validate(full=True)
    out = converted.quarantined
    assert out.column("offset").to_pylist() == [
        100 + at for at in range(len(values)) if 100 + at not in wanted
    ]
    assert out.column("value").to_pylist() == [v for v in values if _model(v) is None]
    assert all(out.column("reason").to_pylist())


@examples(60)
@given(_VALUES, st.integers(1, 60))
def test_borders_of_blocks_change_nothing(values: list[bytes], block_bytes: int) -> None:
    """A block ends anywhere between two records."""
    column = pa.array(values, pa.binary())
    whole = JsonFormat(FIELDS).parse(column)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            json_blocks, "parse_in_blocks", partial(parse_in_blocks, max_block_bytes=block_bytes)
        )
        cut = JsonFormat(FIELDS).parse(column)
    assert repr(cut.columns.to_pylist()) == repr(whole.columns.to_pylist())
    assert [misfit.position for misfit in cut.misfits] == [m.position for m in whole.misfits]


def _one(ddl: str, value: str) -> Any:
    """The column `v` of one record, or the reason for which it is none."""
    parsed = JsonFormat(parse_ddl(f"v {ddl}")).parse(pa.array([value.encode()], pa.binary()))
    if parsed.misfits:
        assert parsed.columns.num_rows == 0
        return parsed.misfits[0].reason
    return parsed.columns.column("v")[0].as_py()


@pytest.mark.parametrize(
    ("ddl", "text", "value"),
    [
        ("date", '"2024-02-29"', date(2024, 2, 29)),
        ("array<date>", '["2024-02-29", null]', [date(2024, 2, 29), None]),
        ("struct<d: date>", "null", None),
        ("struct<d: date>", '{"d": null}', {"d": None}),
        ("timestamp", '"2024-01-01T02:00:00+02:00"', datetime(2024, 1, 1, tzinfo=UTC)),
        ("timestamp", '"2024-01-01"', datetime(2024, 1, 1, tzinfo=UTC)),
        ("decimal(10,2)", "1.25", Decimal("1.25")),
        ("decimal(38,0)", "9" * 38, Decimal("9" * 38)),
        ("decimal(10,2)", '"1.20"', Decimal("1.20")),
        ("float", "1.5", 1.5),
        ("float", "-Infinity", -math.inf),
        ("double", "12345678901234567890", 12345678901234567890.0),
        ("string", '"\\u0000"', "\0"),
        ("tinyint", "-128", -128),
    ],
)
def test_a_value_that_fits(ddl: str, text: str, value: object) -> None:
    """Dates are text in JSON and dates in the table."""
    assert _one(ddl, f'{{"v": {text}}}') == value


@pytest.mark.parametrize(
    ("ddl", "text", "reason"),
    [
        ("tinyint", "128", "couldn't parse:128"),
        ("bigint", "9223372036854775808", "couldn't parse:9223372036854775808"),
        ("bigint", "1.0", "couldn't parse:1.0"),
        ("bigint", '"1"', "changed from number to string"),
        ("float", "1e39", "too big"),
        ("array<float>", "[1, -1e39]", "too big"),
        ("double", "1e400", "Number too big"),
        ("decimal(4,2)", "1.234", "requires scale 3"),
        ("decimal(4,2)", "123.45", "requires precision 5"),
        ("date", '"2023-02-29"', "2023-02-29"),
        ("date", "5", "changed from string to number"),
        ("timestamp", '"yesterday"', "couldn't parse:yesterday"),
        ("string", "1", "changed from string to number"),
        ("string not null", "null", "a required field was null"),
        ("struct<x: date not null>", "{}", "required field was absent"),
    ],
)
def test_a_value_that_does_not_fit_is_told(ddl: str, text: str, reason: str) -> None:
    """Nothing is cut, rounded to infinity, or turned from text into a number."""
    assert reason in _one(ddl, f'{{"v": {text}}}')


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "the value is empty"),
        (b"[1]", "the value is not a JSON object"),
        (b"null", "the value is not a JSON object"),
        (b'{"v":1}x', "the value does not end with its JSON object"),
        (b'\xef\xbb\xbf{"v":1}', "the value begins with a byte order mark"),
        (b'{"v":"\xff"}', "the value is not UTF-8 at byte 6"),
        (b'{"v":1}{"v":2}', "the value holds more than one JSON document"),
        (b"{}null{}", "the value holds more than one JSON document"),
        (b'{"v":\0}', "the value holds a NUL byte"),
        (b'{"v":1,"v":2}', "Column(/v) was specified twice"),
    ],
)
def test_the_reason_is_precise(value: bytes, reason: str) -> None:
    """Somebody has to find out what a producer did."""
    parsed = JsonFormat(parse_ddl("v bigint")).parse(pa.array([value, b'{"v":7}'], pa.binary()))
    assert [reason in misfit.reason for misfit in parsed.misfits] == [True]
    assert parsed.columns.to_pydict() == {"v": [7]}


def test_nesting_without_end_and_long_strings_are_rows() -> None:
    """Neither a stack nor a block limits what a record may hold where nobody looks."""
    deep = b'{"v":1,"z":' + b"[" * 200_000 + b"]" * 200_000 + b"}"
    objects = b'{"v":2,"z":' + b'{"z":' * 50_000 + b"null" + b"}" * 50_000 + b"}"
    long = b'{"s":"' + b"x" * (3 * MAX_BLOCK_BYTES) + b'"}'
    quotes = b'{"s":"' + b'\\"' * 500_000 + b'} null"}'
    fields = parse_ddl("v int, s string")
    parsed = JsonFormat(fields).parse(pa.array([deep, long, objects, quotes], pa.binary()))
    assert parsed.misfits == []
    assert parsed.columns.column("v").to_pylist() == [1, None, 2, None]
    assert [len(s or "") for s in parsed.columns.column("s").to_pylist()] == [
        *(0, 3 * MAX_BLOCK_BYTES, 0, 500_000 + 6),
    ]


def test_records_that_break_a_block_leave_the_rest_in_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Twenty bad ones among twenty thousand cost some hundred parses, not thousands."""
    values = [b'{"a": %d}' % n for n in range(20_000)]
    for n in range(0, 20_000, 1_000):
        values[n] = b'{"a": 1.5}'
    calls = 0
    read = JsonFormat._read

    def counted(self: JsonFormat, records: pa.BinaryArray) -> pa.RecordBatch:
        nonlocal calls
        calls += 1
        return read(self, records)

    monkeypatch.setattr(JsonFormat, "_read", counted)
    parsed = JsonFormat(FIELDS).parse(pa.array(values, pa.binary()))
    assert [misfit.position for misfit in parsed.misfits] == list(range(0, 20_000, 1_000))
    assert parsed.columns.num_rows == 19_980
    assert calls < 20 * 2 * 16


def test_misleading_rows_do_not_cost_a_parse_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record of many documents moves the row that the reader names in its errors."""
    values = [b'{"a": 1}' * 500, *[b'{"a": %d}' % n for n in range(1_000)], b'{"a": x}']
    calls = 0
    read = JsonFormat._read

    def counted(self: JsonFormat, records: pa.BinaryArray) -> pa.RecordBatch:
        nonlocal calls
        calls += 1
        return read(self, records)

    monkeypatch.setattr(JsonFormat, "_read", counted)
    parsed = JsonFormat(FIELDS).parse(pa.array(values, pa.binary()))
    assert [misfit.position for misfit in parsed.misfits] == [0, 1001]
    assert calls < 60


@pytest.mark.parametrize(
    "value", [b"null", b" null", b"{}null", b"{} \n null{}", b'{"a":[{}]}null{}']
)
def test_no_top_level_null_comes_to_the_reader(
    value: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There it would write to memory that is not its own."""
    given: list[bytes] = []
    read = JsonFormat._read

    def seen(self: JsonFormat, records: pa.BinaryArray) -> pa.RecordBatch:
        given.extend(records.to_pylist())
        return read(self, records)

    monkeypatch.setattr(JsonFormat, "_read", seen)
    harmless = b'{"s":"} null", "z": [{}, null], "zz": {}}'
    parsed = JsonFormat(FIELDS).parse(pa.array([value, harmless], pa.binary()))
    assert given == [harmless]
    assert [misfit.position for misfit in parsed.misfits] == [0]


def test_a_type_that_json_has_not_is_refused() -> None:
    """When the job starts, by name."""
    with pytest.raises(ValueError, match="blob: JSON has no binary"):
        JsonFormat(parse_ddl("id int, blob binary"))
    with pytest.raises(ValueError, match="m: JSON has no map"):
        JsonFormat(parse_ddl("m map<string, int>"))
