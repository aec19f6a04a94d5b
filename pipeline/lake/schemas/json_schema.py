"""The columns of JSON objects, inferred from a sample; the caller keeps them.

    true, false            boolean
    whole numbers          bigint; decimal(38,0) when one does not fit
    other numbers          double; whole ones among them, too
    text                   string; dates and times stay text: a sample cannot promise a format
    objects                struct of all fields seen; left out where none was
    arrays                 array; of strings where all were empty
    only nulls             string, as Spark does

Where a field has several kinds, the one that nine in ten have is taken, and the others will be
quarantined; without such a majority the type is unknown, and the user has to give a schema.
"""

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa

MAX_COLUMNS: Final = 1_000
"""Fields of a sample at all levels: objects used as maps have no end of them."""

MAX_DEPTH: Final = 50

MAX_SAMPLED_RECORDS: Final = 10_000
MAX_SAMPLED_BYTES: Final = 32 * 1024 * 1024

MAJORITY: Final = 0.9

_INT64: Final = 1 << 63
_DECIMAL_LIMIT: Final = 10**38


class InferenceError(ValueError):
    """A sample from which no columns can be inferred: one sentence for each reason."""


def infer_json_schema(values: Iterable[bytes | None]) -> pa.Schema:
    """The fields of the objects of a sample, in the order in which they are first seen.

    Values that are no JSON objects do not count: they would be quarantined anyway.

    Args:
        values: Of the first records; what is above `MAX_SAMPLED_RECORDS` or `MAX_SAMPLED_BYTES` is
            ignored.

    Raises:
        InferenceError: no object among them, too many fields, or fields of several kinds.
    """
    top = _Seen("")
    objects, size = 0, 0
    for count, value in enumerate(values):
        size += len(value or b"")
        if count >= MAX_SAMPLED_RECORDS or (size > MAX_SAMPLED_BYTES and objects):
            break
        document = _object(value)
        if document is not None:
            top.add(document, 0)
            objects += 1
            if top.column_count() > MAX_COLUMNS:
                raise InferenceError(
                    f"the sampled objects have more than {MAX_COLUMNS} fields: objects used as "
                    "maps cannot be columns, give a schema"
                )
    if not objects:
        raise InferenceError("no sampled value is a JSON object: there is nothing to infer from")
    problems: list[str] = []
    kind = top.kind(problems)
    if not problems and not len(kind):
        problems.append("the sampled objects are all empty")
    if problems:
        raise InferenceError("; ".join(problems))
    return pa.schema(list(kind))


def _object(value: bytes | None) -> dict[str, Any] | None:
    if not value:
        return None
    try:
        document = json.loads(value.decode(), parse_float=float, object_pairs_hook=_pairs)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a field is there twice")
    return found


def _is_empty(kind: pa.DataType) -> bool:
    """Whether objects of which no field was seen are in it: Parquet has no such column."""
    if pa.types.is_list(kind):
        return _is_empty(kind.value_type)
    return bool(pa.types.is_struct(kind)) and not len(kind)


class _Seen:
    """Statistics of one field over all objects."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._kinds: Counter[str] = Counter()
        self._fields: dict[str, _Seen] = {}
        self._elements: _Seen | None = None
        self._largest = 0

    def column_count(self) -> int:
        inner = self._elements.column_count() if self._elements is not None else 0
        return len(self._fields) + inner + sum(f.column_count() for f in self._fields.values())

    def add(self, value: object, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise InferenceError(f"{self._path}: objects are nested more than {MAX_DEPTH} deep")
        match value:
            case None:
                return
            case bool():
                self._kinds["boolean"] += 1
            case int():
                self._kinds["bigint"] += 1
                self._largest = max(self._largest, abs(value + (value < 0)))
            case float():
                self._kinds["double"] += 1
            case str():
                self._kinds["string"] += 1
            case list():
                self._kinds["array"] += 1
                if self._elements is None:
                    self._elements = _Seen(f"{self._path}[]")
                for element in value:
                    self._elements.add(element, depth + 1)
            case dict():
                self._kinds["struct"] += 1
                for name, inner in value.items():
                    path = f"{self._path}.{name}" if self._path else name
                    self._fields.setdefault(name, _Seen(path)).add(inner, depth + 1)

    def kind(self, problems: list[str]) -> pa.DataType:
        match self._majority(problems):
            case "boolean":
                return pa.bool_()
            case "bigint":
                return self._whole()
            case "double":
                return pa.float64()
            case "array" if self._elements is not None:
                return pa.list_(self._elements.kind(problems))
            case "struct":
                fields = [
                    pa.field(name, kind)
                    for name, seen in self._fields.items()
                    if not _is_empty(kind := seen.kind(problems))
                ]
                return pa.struct(fields)
        return pa.string()

    def _whole(self) -> pa.DataType:
        if self._largest < _INT64:
            return pa.int64()
        return pa.decimal128(38, 0) if self._largest < _DECIMAL_LIMIT - 1 else pa.float64()

    def _majority(self, problems: list[str]) -> str:
        kinds = self._kinds.copy()
        if kinds["double"] and kinds["bigint"]:
            kinds["double"] += kinds.pop("bigint")
        kinds += Counter()
        if not kinds:
            return "string"
        (kind, count), *_ = kinds.most_common()
        if count < MAJORITY * kinds.total():
            counts = ", ".join(f"{kind} {count} times" for kind, count in kinds.most_common())
            problems.append(f"field {self._path} is {counts}: give a schema")
        return kind
