"""Columns of a schema as the text that `parse_ddl` reads."""

import re

import pyarrow as pa

from pipeline.lake.schemas.ddl import type_to_ddl


def to_ddl(schema: pa.Schema) -> str:
    """`id bigint, name string not null`; ValueError for a type that tables have not."""
    return ", ".join(map(_column, schema))


def _column(field: pa.Field) -> str:
    plain = re.fullmatch(r"[A-Za-z_]\w*", field.name, re.ASCII)
    name = field.name if plain else f"`{field.name.replace('`', '``')}`"
    return f"{name} {type_to_ddl(field.type)}{'' if field.nullable else ' not null'}"
