"""Rows in order, in bounded memory: the same rows, whatever runs and blocks they went through."""

from datetime import date
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.lake.maintain.sort_order import SortBy, place, sort_columns
from pipeline.lake.maintain.sorted_runs import cut, merged

SCHEMA = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", tz="UTC")),
        pa.field("value", pa.list_(pa.string())),
    ]
)

KEYS = st.one_of(st.none(), st.binary(max_size=3))


def batch(rows: list[tuple[Any, ...]], schema: pa.Schema = SCHEMA) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True))
    return pa.record_batch(
        [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)],
        schema=schema,
    )


def in_batches(rows: list[tuple[Any, ...]], size: int) -> list[pa.RecordBatch]:
    return [batch(rows[at : at + size]) for at in range(0, len(rows), size)]


@st.composite
def log_rows(draw: st.DrawFn) -> list[tuple[Any, ...]]:
    coordinates = draw(
        st.lists(
            st.tuples(st.integers(0, 3), st.integers(0, 50)), unique=True, min_size=1, max_size=60
        )
    )
    return [
        (draw(KEYS), partition, offset, draw(st.integers(-3, 3)), [f"{partition}-{offset}"])
        for partition, offset in coordinates
    ]


@given(
    log_rows(),
    st.integers(1, 20),
    st.integers(64, 4000),
    st.integers(64, 500),
    st.sampled_from(["timestamp", "key", "offset"]),
)
def test_all_rows_come_out_in_order_however_they_are_cut(
    rows: list[tuple[Any, ...]], size: int, run_bytes: int, block_bytes: int, by: SortBy
) -> None:
    with TemporaryDirectory() as folder:
        found = merged(
            in_batches(rows, size), by, folder, run_bytes=run_bytes, block_bytes=block_bytes
        )
        table = pa.Table.from_batches(list(found), schema=SCHEMA)
    micros = table.column("timestamp").cast(pa.int64()).to_pylist()
    out = table.to_pydict()
    names = ("key", "partition", "offset")
    given_rows = {(p, o): (k, t) for k, p, o, t, _ in rows}
    assert sorted(zip(out["partition"], out["offset"], strict=True)) == sorted(given_rows)
    for key, partition, offset, time, value in zip(
        *(out[name] for name in names), micros, out["value"], strict=True
    ):
        assert given_rows[partition, offset] == (key, time)
        assert value == [f"{partition}-{offset}"]
    firsts: list[Any] = {
        "timestamp": micros,
        "key": [(key is None, key or b"") for key in out["key"]],
        "offset": [0] * len(micros),
    }[by]
    places = list(zip(firsts, out["partition"], out["offset"], strict=True))
    assert places == sorted(places)


def test_rows_of_one_run_never_touch_the_disk(tmp_path: Path) -> None:
    rows = [(b"k", 0, offset, offset, ["v"]) for offset in range(100)]
    for _ in merged(in_batches(rows, 7), "offset", str(tmp_path)):
        assert list(tmp_path.iterdir()) == []


def test_a_merge_never_has_more_than_some_runs_open(tmp_path: Path) -> None:
    """Many runs become fewer, longer ones first; each is removed when it is used up."""
    rows = [(b"k", 0, (offset * 7919) % 1201, offset, ["v"]) for offset in range(1201)]
    found = merged(in_batches(rows, 10), "offset", str(tmp_path), run_bytes=800, block_bytes=400)
    first = next(found)
    assert len(list(tmp_path.iterdir())) <= 32
    offsets = first.column("offset").to_pylist()
    for one in found:
        offsets += one.column("offset").to_pylist()
    assert offsets == list(range(1201))


def test_a_row_that_is_larger_than_a_block_is_a_block(tmp_path: Path) -> None:
    large = "x" * 10_000
    rows = [(None, 0, offset, 0, [large]) for offset in (3, 1, 2)]
    found = list(merged([batch(rows)], "offset", str(tmp_path), run_bytes=500, block_bytes=100))
    assert [o for one in found for o in one.column("offset").to_pylist()] == [1, 2, 3]


def test_parts_of_a_batch_have_all_rows() -> None:
    rows = [(b"k" * n, 0, n, 0, None) for n in range(50)]
    whole = batch(rows)
    parts = list(cut(whole, 200))
    assert len(parts) > 5
    assert pa.Table.from_batches(parts).equals(pa.Table.from_batches([whole]))


@pytest.mark.parametrize(
    "keys",
    [
        pa.array([3.0, None, float("nan"), -1.0, float("inf")]),
        pa.array(["b", None, "a\U0001f600", "a\uffff", ""]),
        pa.array([b"b", None, b"\xff", b""], pa.binary()),
        pa.array([date(2026, 1, 2), None, date(1969, 1, 1)]),
        pa.array([Decimal("2.50"), None, Decimal("-1.00")], pa.decimal128(9, 2)),
        pa.array([True, None, False]),
    ],
)
def test_keys_of_plain_types_are_compared_as_arrow_sorts_them(keys: pa.Array) -> None:
    """Nulls and NaN, too: where runs are merged, Python compares what Arrow has sorted."""
    count = len(keys)
    rows = pa.record_batch(
        {
            "key": keys,
            "partition": pa.array([0] * count, pa.int32()),
            "offset": pa.array(range(count), pa.int64()),
        }
    )
    columns = sort_columns(rows, "key")
    indices = pc.sort_indices(rows, sort_keys=[("key", "ascending"), ("offset", "ascending")])
    places = [place(columns, row) for row in range(count)]
    assert sorted(range(count), key=places.__getitem__) == indices.to_pylist()


def test_of_a_key_with_fields_plain_values_are_compared() -> None:
    kind = pa.struct([("id", pa.int64()), ("tags", pa.list_(pa.string())), ("at", pa.date32())])
    rows = pa.record_batch(
        {
            "key": pa.array([{"id": 2, "tags": ["x"], "at": None}, None], kind),
            "partition": pa.array([0, 0], pa.int32()),
            "offset": pa.array([0, 1], pa.int64()),
        }
    )
    columns = sort_columns(rows, "key")
    assert [column.to_pylist() for column in columns] == [[2, None], [None, None], [0, 0], [0, 1]]
