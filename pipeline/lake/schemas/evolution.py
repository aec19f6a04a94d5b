"""Schema evolution of columns: they are added and widened, never dropped and never narrowed.

    a field that the table has not        is added, and may be null: older rows have none
    a column that the schema has not      stays, and is null in new rows
    tinyint < smallint < int < bigint     the wider one, where the table can be widened
    float < double
    decimal(p,s) < decimal(p+n,s)
    struct, array, map                    the same for what is within
    anything else                         the column stays as it is

Where the table's column stays, values that fit are rows, the others are quarantined, none is cut.
A double in a float column fits where it is one exactly. JSON's numbers have no type of their own,
so there a float column cannot stay where the schema says double.

Iceberg promotes types so, and readers of Parquet take the wider of several files'. Delta tables
are not widened: it is a feature of the table that most readers lack.
"""

from typing import Final

import pyarrow as pa

_WHOLE: Final = [pa.int8(), pa.int16(), pa.int32(), pa.int64()]


class SchemaChangeError(ValueError):
    """A schema that the table's columns cannot follow: one sentence for each reason."""


def followed(table: pa.Schema, wanted: pa.Schema, *, widen: bool) -> pa.Schema:
    """Fields for a table of the fields `table`, so that values of `wanted` find their place.

    Args:
        table: What the table has, as fields of the value.
        wanted: What the values have by their schema.
        widen: Whether types of columns that are there can be changed; else they stay.

    Raises:
        SchemaChangeError: A column is required by the table and missing in the schema, or is
            something else altogether.
    """
    problems: list[str] = []
    fields = _fields(list(table), list(wanted), "", widen=widen, problems=problems)
    if problems:
        raise SchemaChangeError("; ".join(problems))
    return pa.schema(fields)


def narrower_floats(table: list[pa.Field], wanted: list[pa.Field], path: str = "") -> list[str]:
    """Names of fields that are a float in the table and a double in the schema, at any depth."""
    known = {field.name: field.type for field in wanted}
    found = []
    for field in table:
        kind, other = field.type, known.get(field.name)
        name = f"{path}{field.name}"
        while other is not None and (
            (pa.types.is_list(kind) and pa.types.is_list(other))
            or (pa.types.is_map(kind) and pa.types.is_map(other))
        ):
            inner = "value_type" if pa.types.is_list(kind) else "item_type"
            kind, other = getattr(kind, inner), getattr(other, inner)
        if other is None:
            continue
        if pa.types.is_struct(kind) and pa.types.is_struct(other):
            found += narrower_floats(list(kind), list(other), f"{name}.")
        elif pa.types.is_float32(kind) and pa.types.is_float64(other):
            found.append(name)
    return found


def holds(table: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a column of one type has a place for everything of another."""
    if pa.types.is_struct(table) and pa.types.is_struct(wanted):
        return all(
            table.get_field_index(field.name) >= 0
            and holds(table.field(field.name).type, field.type)
            for field in wanted
        )
    if pa.types.is_list(table) and pa.types.is_list(wanted):
        return holds(table.value_type, wanted.value_type)
    if pa.types.is_map(table) and pa.types.is_map(wanted):
        return holds(table.key_type, wanted.key_type) and holds(table.item_type, wanted.item_type)
    return bool(table.equals(wanted)) or _wider(wanted, table) is not None


def _fields(
    table: list[pa.Field], wanted: list[pa.Field], path: str, *, widen: bool, problems: list[str]
) -> list[pa.Field]:
    known = {field.name: field for field in wanted}
    fields = []
    for field in table:
        other = known.get(field.name)
        if other is None:
            if not field.nullable:
                problems.append(f"{path}{field.name} must not be null, and the schema has none")
            fields.append(field)
            continue
        kind = _type(field.type, other.type, f"{path}{field.name}", widen=widen, problems=problems)
        fields.append(field.with_type(kind))
    there = {field.name for field in table}
    added = (field.with_nullable(True) for field in wanted if field.name not in there)
    return [*fields, *added]


def _type(
    table: pa.DataType, wanted: pa.DataType, path: str, *, widen: bool, problems: list[str]
) -> pa.DataType:
    if pa.types.is_struct(table) and pa.types.is_struct(wanted):
        return pa.struct(
            _fields(list(table), list(wanted), f"{path}.", widen=widen, problems=problems)
        )
    if pa.types.is_list(table) and pa.types.is_list(wanted):
        field = table.value_field
        inner = _type(field.type, wanted.value_type, f"{path}[]", widen=widen, problems=problems)
        return pa.list_(field.with_type(inner))
    if pa.types.is_map(table) and pa.types.is_map(wanted):
        inner = _type(
            table.item_type, wanted.item_type, f"{path}{{}}", widen=widen, problems=problems
        )
        return pa.map_(table.key_type, inner)
    nested = any(
        pa.types.is_nested(one) and not one.equals(other)
        for one, other in ((table, wanted), (wanted, table))
    )
    if nested:
        problems.append(f"{path} is {table} in the table and {wanted} in the schema")
        return table
    wider = _wider(table, wanted)
    return wider if wider is not None and widen else table


def _wider(narrow: pa.DataType, wide: pa.DataType) -> pa.DataType | None:
    """The second type if it holds every value of the first and is another one."""
    if narrow in _WHOLE and wide in _WHOLE:
        return wide if _WHOLE.index(wide) > _WHOLE.index(narrow) else None
    if pa.types.is_float32(narrow) and pa.types.is_float64(wide):
        return wide
    if pa.types.is_decimal128(narrow) and pa.types.is_decimal128(wide):
        same_scale = narrow.scale == wide.scale
        return wide if same_scale and narrow.precision < wide.precision else None
    return None
