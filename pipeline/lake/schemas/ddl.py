"""Columns as text, in Spark's DDL.

    id bigint not null, tags array<string>, place struct<lat: double>

What Spark's `from_json` takes as a schema, without intervals, variants and comments. It is how a
schema is given in a file, and how an inferred one is kept beside the table.

    columns  = column {"," column}
    column   = name [":"] type ["not" "null"]
    name     = word | "`" anything, "``" for a backtick "`"
    type     = word | "decimal" ["(" digits ["," digits] ")"] | "array" "<" type ">"
             | "map" "<" type "," type ">" | "struct" "<" [columns] ">"
"""

import re
from typing import Final, NoReturn

import pyarrow as pa

_TIMESTAMP: Final = pa.timestamp("us", tz="UTC")

_SIMPLE: Final = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": _TIMESTAMP,
    "timestamp_ntz": pa.timestamp("us"),
}

_OTHER_NAMES: Final = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "timestamp_ltz": "timestamp",
    "dec": "decimal",
    "numeric": "decimal",
}

_WORDS: Final = {kind: word for word, kind in _SIMPLE.items()}

_TOKEN: Final = re.compile(r"\s*(?:(`(?:[^`]|``)+`)|(\w+)|([<>(),:]))")

MAX_DEPTH: Final = 50
"""Of types within types."""

MAX_DECIMAL_DIGITS: Final = 38


class SchemaTextError(ValueError):
    """Text that is no schema: what is wrong, and where."""


def parse_ddl(text: str) -> pa.Schema:
    """The columns that a text declares.

    Raises:
        SchemaTextError: with the position.
    """
    parser = _Parser(text)
    fields = parser.columns(0)
    if parser.token:
        parser.fail("a comma or the end is expected")
    if not fields:
        raise SchemaTextError("a schema needs at least one column")
    return pa.schema(fields)


def type_to_ddl(kind: pa.DataType) -> str:
    """One type in Spark's words.

    Raises:
        ValueError: tables have no such type.
    """
    if pa.types.is_decimal128(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_list(kind):
        return f"array<{type_to_ddl(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{type_to_ddl(kind.key_type)},{type_to_ddl(kind.item_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(_column(field, ': ') for field in kind)}>"
    word = _WORDS.get(kind)
    if word is None:
        raise ValueError(f"tables have no type {kind}")
    return word


def _column(field: pa.Field, between: str) -> str:
    quoted = f"`{field.name.replace('`', '``')}`"
    plain = re.fullmatch(r"[A-Za-z_]\w*", field.name, re.ASCII)
    required = "" if field.nullable else " not null"
    return f"{field.name if plain else quoted}{between}{type_to_ddl(field.type)}{required}"


class _Parser:
    """Reads tokens one after the other: `token` is the next, empty at the end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._next = 0
        self._start = 0
        self._quoted = False
        self.token = ""
        self._step()

    def columns(self, depth: int) -> list[pa.Field]:
        fields = []
        while self.token and self._symbol() != ">":
            name = self._name()
            if self._symbol() == ":":
                self._step()
            kind = self._type(depth)
            required = self._word() == "not"
            if required:
                self._step()
                if self._word() != "null":
                    self.fail("'null' is expected after 'not'")
                self._step()
            fields.append(pa.field(name, kind, nullable=not required))
            if self._symbol() != ",":
                break
            self._step()
            if not self.token:
                self.fail("a column is expected after the comma")
        names = [field.name for field in fields]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            self.fail(f"{', '.join(twice)} is there twice")
        return fields

    def fail(self, problem: str) -> NoReturn:
        found = self.token or "the end"
        raise SchemaTextError(f"position {self._start}, at {found!r}: {problem}")

    def _type(self, depth: int) -> pa.DataType:
        if depth > MAX_DEPTH:
            self.fail(f"types are nested more than {MAX_DEPTH} deep")
        word = self._word()
        word = _OTHER_NAMES.get(word, word)
        if word == "decimal":
            self._step()
            return self._decimal()
        if word in _SIMPLE:
            self._step()
            return _SIMPLE[word]
        if word not in {"array", "map", "struct"}:
            known = [*_SIMPLE, "decimal(p,s)", "array<>", "map<,>", "struct<>"]
            self.fail(f"a type is expected: {', '.join(known)}")
        self._step()
        self._expect("<")
        kind: pa.DataType
        if word == "array":
            kind = pa.list_(self._type(depth + 1))
        elif word == "map":
            key = self._type(depth + 1)
            self._expect(",")
            kind = pa.map_(key, self._type(depth + 1))
        else:
            kind = pa.struct(self.columns(depth + 1))
        self._expect(">")
        return kind

    def _decimal(self) -> pa.DataType:
        precision, scale = 10, 0
        if self._symbol() == "(":
            self._step()
            precision = self._digits()
            if self._symbol() == ",":
                self._step()
                scale = self._digits()
            self._expect(")")
        if not 1 <= precision <= MAX_DECIMAL_DIGITS or scale > precision:
            self.fail(f"decimal(p,s) needs 1 <= p <= {MAX_DECIMAL_DIGITS} and s <= p")
        return pa.decimal128(precision, scale)

    def _digits(self) -> int:
        if not re.fullmatch(r"[0-9]{1,3}", self.token) or self._quoted:
            self.fail("a number is expected")
        number = int(self.token)
        self._step()
        return number

    def _name(self) -> str:
        if not self._quoted and not re.fullmatch(r"\w+", self.token):
            self.fail("a column's name is expected")
        name = self.token
        self._step()
        return name

    def _word(self) -> str:
        """The token as a word of the language; empty for a quoted name."""
        return "" if self._quoted else self.token.lower()

    def _symbol(self) -> str:
        """The token as a sign of the language; empty for a quoted name."""
        return "" if self._quoted else self.token

    def _expect(self, symbol: str) -> None:
        if self._symbol() != symbol:
            self.fail(f"{symbol!r} is expected")
        self._step()

    def _step(self) -> None:
        match = _TOKEN.match(self._text, self._next)
        self._start = self._next
        self._quoted = False
        if match is None:
            self.token = self._text[self._next :].strip()[:1]
            if self.token:
                self.fail("this is no part of a schema")
            return
        quoted, word, symbol = match.groups()
        self._start, self._next = match.start(match.lastindex or 0), match.end()
        self._quoted = quoted is not None
        self.token = quoted[1:-1].replace("``", "`") if quoted else word or symbol
