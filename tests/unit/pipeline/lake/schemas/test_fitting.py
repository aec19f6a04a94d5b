"""Values as other types: whole, or an error."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from pipeline.lake.schemas.fitting import fit


def _struct(**fields: pa.DataType) -> pa.StructType:
    return pa.struct(list(fields.items()))


@pytest.mark.parametrize(
    ("values", "has", "wanted", "result"),
    [
        ([1, None], pa.int32(), pa.int64(), [1, None]),
        ([1.5, float("inf")], pa.float64(), pa.float32(), [1.5, float("inf")]),
        ([1.25, None, -0.1], pa.float64(), pa.decimal128(5, 2),
         [Decimal("1.25"), None, Decimal("-0.10")]),
        ([86_400_000_000, None], pa.timestamp("us"), pa.date32(), [date(1970, 1, 2), None]),
        ([datetime(2026, 1, 2, tzinfo=UTC)], pa.timestamp("us", "UTC"), pa.date32(),
         [date(2026, 1, 2)]),
        ([{"b": 1}, None], _struct(b=pa.int8()), _struct(a=pa.string(), b=pa.int64()),
         [{"a": None, "b": 1}, None]),
        ([[1], None, []], pa.large_list(pa.int32()), pa.list_(pa.int64()), [[1], None, []]),
        ([[("k", 1)], None], pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), pa.int64()),
         [[("k", 1)], None]),
        (["x", None], pa.large_string(), pa.string(), ["x", None]),
    ],
)  # fmt: skip
def test_values_that_fit(values: list[Any], has: Any, wanted: Any, result: list[Any]) -> None:
    """By name in structs, nulls at every level."""
    fitted = fit(pa.array(values, has), wanted)
    fitted.validate(full=True)
    assert fitted.type == wanted
    assert fitted.to_pylist() == result
    assert fit(pa.array([*values, *values], has).slice(len(values)), wanted).to_pylist() == result


@pytest.mark.parametrize(
    ("values", "has", "wanted"),
    [
        ([300], pa.int32(), pa.int8()),
        ([1e39], pa.float64(), pa.float32()),
        ([1.5], pa.float64(), pa.int64()),
        ([0.5, 0.1], pa.float64(), pa.float32()),
        ([1.25, 1.255], pa.float64(), pa.decimal128(5, 2)),
        ([0, 86_400_000_001], pa.timestamp("us"), pa.date32()),
        ([datetime(2026, 1, 2, 3, tzinfo=UTC)], pa.timestamp("us", "UTC"), pa.date32()),
        (
            [{"a": None}],
            _struct(a=pa.int8()),
            pa.struct([pa.field("a", pa.int8(), nullable=False)]),
        ),
        ([[1, 300]], pa.list_(pa.int32()), pa.list_(pa.int8())),
    ],
)
def test_values_that_do_not_fit(values: list[Any], has: Any, wanted: Any) -> None:
    """Nothing is cut."""
    with pytest.raises(pa.ArrowInvalid):
        fit(pa.array(values, has), wanted)


def test_what_is_below_a_null_is_no_value() -> None:
    """Builders leave anything there."""
    below = pa.array(["", "2024-01-01"])
    array = pa.StructArray.from_arrays([below], names=["d"], mask=pa.array([True, False]))
    assert [row and str(row["d"]) for row in fit(array, _struct(d=pa.date32())).to_pylist()] == [
        None,
        "2024-01-01",
    ]


def test_not_a_number_is_itself() -> None:
    fitted = fit(pa.array([float("nan"), None]), pa.float32())
    assert str(fitted.to_pylist()) == "[nan, None]"


def test_numbers_without_a_type_are_rounded() -> None:
    """JSON's 0.1 is no float and no double; what is too large for a float is none either."""
    assert fit(pa.array([0.1]), pa.float32(), rounds=True).to_pylist() == [0.10000000149011612]
    with pytest.raises(pa.ArrowInvalid):
        fit(pa.array([1e39]), pa.float32(), rounds=True)
