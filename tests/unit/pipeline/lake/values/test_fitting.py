"""Values as other types: whole, or an error."""

from typing import Any

import pyarrow as pa
import pytest

from pipeline.lake.values.fitting import fit


def _struct(**fields: pa.DataType) -> pa.StructType:
    return pa.struct(list(fields.items()))


@pytest.mark.parametrize(
    ("values", "has", "wanted", "result"),
    [
        ([1, None], pa.int32(), pa.int64(), [1, None]),
        ([1.5], pa.float64(), pa.float32(), [1.5]),
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
