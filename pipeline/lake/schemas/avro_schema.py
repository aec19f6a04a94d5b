"""Avro's schemas as trees, and the columns that they become.

    boolean int long float double           boolean int bigint float double
    bytes, fixed                            binary
    string, enum                            string
    array, map (keys are text)              array, map
    record                                  struct; at the top the columns themselves
    [null, T], [T, null], [T]               T, null where it is null
    [int, long], [float, double]            bigint, double (also with null)
    other unions                            struct<member0, member1, ...>, all but one null
    int date                                date
    long timestamp-millis, -micros          timestamp
    long local-timestamp-millis, -micros    timestamp_ntz
    bytes, fixed decimal                    decimal(p,s); binary where p > 38
    other logical types                     what they are made of

As Spark's `from_avro` has them. Recursive types have no columns and are refused, and so are arrays
of values that take no bytes: five bytes could claim a billion of them.

https://avro.apache.org/docs/1.12.0/specification/
"""

import json
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import pyarrow as pa

from pipeline.lake.schemas.ddl import MAX_DECIMAL_DIGITS

PRIMITIVES: Final = frozenset(
    {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}
)

MAX_SCHEMA_BYTES: Final = 4 * 1024 * 1024

MAX_DEPTH: Final = 50

_TIMESTAMP: Final = pa.timestamp("us", tz="UTC")


class AvroSchemaError(ValueError):
    """A schema that is none, or one that no columns can be made of: a sentence."""


class Primitive:
    """A simple type, and what it stands for."""

    __slots__ = ("arrow", "logical", "name")

    def __init__(self, name: str, arrow: pa.DataType, logical: str = "") -> None:
        self.name = name
        self.arrow = arrow
        self.logical = logical


class Fixed:
    """So many bytes."""

    __slots__ = ("arrow", "full_name", "logical", "size")

    def __init__(self, full_name: str, size: int, arrow: pa.DataType, logical: str = "") -> None:
        self.full_name = full_name
        self.size = size
        self.arrow = arrow
        self.logical = logical


class Enum:
    """One of some words."""

    __slots__ = ("arrow", "full_name", "symbols")

    def __init__(self, full_name: str, symbols: list[str]) -> None:
        self.full_name = full_name
        self.symbols = symbols
        self.arrow: pa.DataType = pa.string()


class Array:
    """Any number of one type."""

    __slots__ = ("arrow", "items")

    def __init__(self, items: "Node") -> None:
        self.items = items
        self.arrow: pa.DataType = pa.list_(items.arrow)


class Map:
    """One type by text."""

    __slots__ = ("arrow", "values")

    def __init__(self, values: "Node") -> None:
        self.values = values
        self.arrow: pa.DataType = pa.map_(pa.string(), values.arrow)


class Record:
    """Fields."""

    __slots__ = ("arrow", "fields", "full_name")

    def __init__(self, full_name: str, fields: list[tuple[str, "Node"]]) -> None:
        self.full_name = full_name
        self.fields = fields
        self.arrow: pa.DataType = pa.struct([(name, node.arrow) for name, node in fields])


class Union:
    """One of several types.

    Attributes:
        branches: In the schema's order, null among them.
        members: Those that are not null.
        arrow: Of the one member, of both numbers, or a struct of members.
    """

    __slots__ = ("arrow", "branches", "members")

    def __init__(self, branches: list["Node"]) -> None:
        self.branches = branches
        self.members = [node for node in branches if not is_null(node)]
        names = {node.name for node in self.members if isinstance(node, Primitive)}
        plain = all(isinstance(node, Primitive) and not node.logical for node in self.members)
        self.arrow: pa.DataType
        if len(self.members) == 1:
            self.arrow = self.members[0].arrow
        elif plain and names == {"int", "long"}:
            self.arrow = pa.int64()
        elif plain and names == {"float", "double"}:
            self.arrow = pa.float64()
        else:
            members = [(f"member{n}", node.arrow) for n, node in enumerate(self.members)]
            self.arrow = pa.struct(members)

    @property
    def is_struct(self) -> bool:
        """Whether members are fields of a struct."""
        return len(self.members) > 1 and bool(pa.types.is_struct(self.arrow))


Node: TypeAlias = Primitive | Fixed | Enum | Array | Map | Record | Union


def is_null(node: Node) -> bool:
    """Whether the type has no value but null."""
    return isinstance(node, Primitive) and node.name == "null"


def parse_avro_schema(text: str | bytes, references: Mapping[str, str] | None = None) -> Node:
    """The tree of a schema.

    Args:
        text: JSON.
        references: Schemas that its names are of, by name: as a registry gives them.

    Raises:
        AvroSchemaError: It is no schema, or one that no columns can be made of.
    """
    if len(text) > MAX_SCHEMA_BYTES:
        raise AvroSchemaError(f"a schema of more than {MAX_SCHEMA_BYTES} bytes")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        if isinstance(text, str) and text.strip() in PRIMITIVES:
            found = text.strip()
        else:
            raise AvroSchemaError(f"not JSON: {error}") from None
    parser = _Parser()
    for name, other in (references or {}).items():
        try:
            parser.parse(json.loads(other), "", 0)
        except (ValueError, RecursionError) as error:
            raise AvroSchemaError(f"reference {name}: {error}") from None
    return parser.parse(found, "", 0)


def avro_fields(node: Node, column: str = "value") -> tuple[pa.Schema, bool]:
    """The fields of a schema, and whether it has none and is a column by itself.

    Raises:
        AvroSchemaError: A record without any field that has values.
    """
    if not isinstance(node, Record):
        if is_null(node):
            raise AvroSchemaError("a schema of null has no column")
        return pa.schema([pa.field(column, node.arrow)]), True
    if not node.fields:
        raise AvroSchemaError(f"{node.full_name} has no field that could be a column")
    return pa.schema(list(node.arrow)), False


class _Parser:
    """Resolves names; `_open` are the types that are being parsed around the present one."""

    def __init__(self) -> None:
        self._named: dict[str, Node] = {}
        self._open: set[str] = set()

    def parse(self, found: Any, namespace: str, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise AvroSchemaError(f"types are nested more than {MAX_DEPTH} deep")
        if isinstance(found, str):
            return self._by_name(found, namespace)
        if isinstance(found, list):
            return self._union(found, namespace, depth)
        if not isinstance(found, dict):
            raise AvroSchemaError(f"a type is expected, not {json.dumps(found)[:80]}")
        kind = found.get("type")
        match kind:
            case "record" | "error":
                return self._record(found, namespace, depth)
            case "enum":
                name, _ = self._declare(found, namespace)
                symbols = found.get("symbols")
                if not isinstance(symbols, list) or not all(isinstance(s, str) for s in symbols):
                    raise AvroSchemaError(f"enum {name} has no symbols")
                return self._named.setdefault(name, Enum(name, symbols))
            case "fixed":
                return self._fixed(found, namespace)
            case "array":
                items = self.parse(found.get("items"), namespace, depth + 1)
                if takes_no_bytes(items):
                    raise AvroSchemaError("an array of values that take no bytes")
                return Array(items)
            case "map":
                return Map(self.parse(found.get("values"), namespace, depth + 1))
            case str() if kind in PRIMITIVES:
                return _logical(kind, found)
        return self.parse(kind, namespace, depth + 1)

    def _by_name(self, name: str, namespace: str) -> Node:
        if name in PRIMITIVES:
            return _logical(name, {})
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        if full in self._open:
            raise AvroSchemaError(f"{full} holds itself: recursive types have no columns")
        node = self._named.get(full) or self._named.get(name)
        if node is None:
            raise AvroSchemaError(f"{full} is no type")
        return node

    def _declare(self, found: dict[str, Any], namespace: str) -> tuple[str, str]:
        """Full name and namespace of a named type."""
        name = found.get("name")
        if not isinstance(name, str) or not name:
            raise AvroSchemaError(f"a {found['type']} without a name")
        if "." not in name:
            inside = found.get("namespace", namespace)
            name = f"{inside}.{name}" if inside else name
        if name in self._named or name in self._open:
            raise AvroSchemaError(f"{name} is defined twice")
        return name, name.rpartition(".")[0]

    def _record(self, found: dict[str, Any], namespace: str, depth: int) -> Node:
        name, inside = self._declare(found, namespace)
        fields = found.get("fields")
        if not isinstance(fields, list):
            raise AvroSchemaError(f"record {name} has no fields")
        self._open.add(name)
        parsed: list[tuple[str, Node]] = []
        for field in fields:
            if not isinstance(field, dict) or not isinstance(field.get("name"), str):
                raise AvroSchemaError(f"record {name} has a field without a name")
            try:
                parsed.append((field["name"], self.parse(field.get("type"), inside, depth + 1)))
            except AvroSchemaError as error:
                raise AvroSchemaError(f"{field['name']}: {error}") from None
        if len({field for field, _ in parsed}) < len(parsed):
            raise AvroSchemaError(f"record {name} has a field twice")
        self._open.discard(name)
        node = self._named[name] = Record(name, parsed)
        return node

    def _fixed(self, found: dict[str, Any], namespace: str) -> Node:
        name, _ = self._declare(found, namespace)
        size = found.get("size")
        if not isinstance(size, int) or size < 0:
            raise AvroSchemaError(f"fixed {name} has no size")
        decimal = _decimal(found)
        arrow, logical = (decimal, "decimal") if decimal is not None else (pa.binary(), "")
        node = self._named[name] = Fixed(name, size, arrow, logical)
        return node

    def _union(self, found: list[Any], namespace: str, depth: int) -> Node:
        branches = [self.parse(branch, namespace, depth + 1) for branch in found]
        if any(isinstance(branch, Union) for branch in branches):
            raise AvroSchemaError("a union within a union")
        if all(is_null(branch) for branch in branches):
            raise AvroSchemaError("a union without values")
        return Union(branches)


def takes_no_bytes(node: Node) -> bool:
    """Whether a value of the type is written as nothing."""
    if isinstance(node, Record):
        return all(takes_no_bytes(inner) for _, inner in node.fields)
    return is_null(node) or (isinstance(node, Fixed) and node.size == 0)


_LOGICAL: Final = {
    ("int", "date"): pa.date32(),
    ("long", "timestamp-millis"): _TIMESTAMP,
    ("long", "timestamp-micros"): _TIMESTAMP,
    ("long", "local-timestamp-millis"): pa.timestamp("us"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}

_PLAIN: Final = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}


def _logical(name: str, found: Mapping[str, Any]) -> Primitive:
    logical = found.get("logicalType")
    if isinstance(logical, str) and (name, logical) in _LOGICAL:
        return Primitive(name, _LOGICAL[name, logical], logical)
    decimal = _decimal(found) if name == "bytes" else None
    if decimal is not None:
        return Primitive(name, decimal, "decimal")
    return Primitive(name, _PLAIN[name])


def _decimal(found: Mapping[str, Any]) -> pa.DataType | None:
    """A decimal's type; none where it is none, or one that readers have to ignore."""
    precision, scale = found.get("precision"), found.get("scale", 0)
    if found.get("logicalType") != "decimal" or not isinstance(precision, int):
        return None
    if not isinstance(scale, int) or not 0 <= scale <= precision <= MAX_DECIMAL_DIGITS:
        return None
    return pa.decimal128(precision, scale) if precision else None
