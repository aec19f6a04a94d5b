"""An array as another type, where every value fits: structs by field name, and never by cutting."""

import pyarrow as pa
import pyarrow.compute as pc


def fit(array: pa.Array, wanted: pa.DataType, *, rounds: bool = False) -> pa.Array:
    """The array as `wanted`.

    Fields of a struct are found by name: those that `array` has not are null, those that `wanted`
    has not are left out. Nulls stay nulls at every level.

    Args:
        array: Of any type.
        wanted: What it shall be.
        rounds: A double may become the nearest float; else it has to be one.

    Raises:
        pyarrow.ArrowInvalid: a value does not fit (too large, cut, no date), or a field that must
            not be null is.
    """
    if array.type.equals(wanted):
        return array
    if pa.types.is_struct(wanted) and pa.types.is_struct(array.type):
        return _struct(array, wanted, rounds=rounds)
    if pa.types.is_list(wanted) and _is_list(array.type):
        values = fit(array.values, wanted.value_type, rounds=rounds)
        offsets = _offsets(array)
        return pa.ListArray.from_arrays(offsets, values, type=wanted, mask=_mask(array))
    if pa.types.is_map(wanted) and pa.types.is_map(array.type):
        return pa.MapArray.from_arrays(
            _offsets(array),
            fit(array.keys, wanted.key_type, rounds=rounds),
            fit(array.items, wanted.item_type, rounds=rounds),
            type=wanted,
            mask=_mask(array),
        )
    if pa.types.is_float32(wanted) and pa.types.is_float64(array.type) and rounds:
        return _float32(array)
    fitted = array.cast(wanted)
    if _may_cut(array.type, wanted) and _is_cut(array, fitted):
        raise pa.ArrowInvalid(f"a value would be cut to fit into {wanted}")
    return fitted


def _struct(array: pa.StructArray, wanted: pa.StructType, *, rounds: bool) -> pa.Array:
    # `flatten` puts the struct's own nulls into its fields: what a builder left below a null
    # struct is no value, and may not even be one that can be converted.
    fields = dict(zip((field.name for field in array.type), array.flatten(), strict=True))
    children = []
    for field in wanted:
        child = fields.get(field.name)
        fitted = (
            pa.nulls(len(array), field.type)
            if child is None
            else fit(child, field.type, rounds=rounds)
        )
        if not field.nullable and fitted.null_count > array.null_count:
            raise pa.ArrowInvalid(f"{field.name} must not be null")
        children.append(fitted)
    if not children:
        return pa.array([None if null else {} for null in array.is_null().to_pylist()], wanted)
    return pa.StructArray.from_arrays(children, fields=list(wanted), mask=_mask(array))


def _may_cut(kind: pa.DataType, wanted: pa.DataType) -> bool:
    """Where Arrow's own cast does not check what is lost."""
    return bool(
        (pa.types.is_float64(kind) and pa.types.is_float32(wanted))
        or (pa.types.is_floating(kind) and pa.types.is_decimal(wanted))
        or (pa.types.is_timestamp(kind) and pa.types.is_date(wanted))
    )


def _is_cut(array: pa.Array, fitted: pa.Array) -> bool:
    """Whether a value is another one than before; NaN is itself."""
    same = pc.equal(fitted.cast(array.type), array)
    if pa.types.is_floating(array.type):
        same = pc.or_(same, pc.is_nan(array))
    return pc.all(same, min_count=0).as_py() is False


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _offsets(array: pa.Array) -> pa.Array:
    # As an array of its own: Arrow takes no mask beside a slice.
    return pa.array(array.offsets.to_numpy(), pa.int32())


def _mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None


def _float32(array: pa.Array) -> pa.Array:
    narrow = array.cast(pa.float32())
    lost = pc.and_(pc.is_inf(narrow), pc.is_finite(array))
    if pc.any(lost).as_py():
        raise pa.ArrowInvalid("number too big to be stored in float")
    return narrow
