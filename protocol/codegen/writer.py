"""Lines of Python, and runs of values that one struct packs or unpacks."""

from typing import Final

from protocol.codegen.schema import Field

CODES: Final = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint16": "H",
    "uint32": "I",
    "float64": "d",
    "uuid": "16s",
}
"""Types of constant size, as `struct` spells them."""

SIZES: Final = {
    "?": 1,
    "b": 1,
    "B": 1,
    "x": 1,
    "h": 2,
    "H": 2,
    "i": 4,
    "I": 4,
    "q": 8,
    "d": 8,
    "16s": 16,
}

_TYPES: Final = {
    "bool": "bool",
    "float64": "float",
    "string": "str",
    "bytes": "bytes",
    "records": "bytes | bytearray | memoryview",
    "uuid": "UUID",
}
"""Types as Python has them; all others are int."""


class Writer:
    """Collects the lines of one function, with indentation and fresh variable names."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 1
        self._used: dict[str, int] = {}

    def line(self, text: str) -> None:
        """Add a line at the present depth."""
        self._lines.append("    " * self._depth + text)

    def indent(self) -> None:
        """Go one block deeper."""
        self._depth += 1

    def dedent(self) -> None:
        """Leave a block."""
        self._depth -= 1

    def fresh(self, stem: str) -> str:
        """Make a variable name that this function does not use yet."""
        number = self._used.get(stem, 0)
        self._used[stem] = number + 1
        return f"{stem}{number or ''}"

    def text(self) -> str:
        """Give all lines."""
        return "\n".join(self._lines) + "\n"


def struct_name(prefix: str, formats: list[str]) -> str:
    """Name the bound method of a compiled struct; `?` and `16s` are no parts of a name."""
    return prefix + "".join("z" if code == "?" else code.replace("16s", "u") for code in formats)


def struct_format(formats: list[str]) -> str:
    """Write the format for `struct.Struct`."""
    return ">" + "".join(formats)


def default_text(value: object) -> str:
    """Write a default that is not a list, a structure or a UUID."""
    text = repr(value)
    return f'"{text[1:-1]}"' if isinstance(value, str) else text


def annotation(field: Field, *, array: bool) -> str:
    """Write the type of a field, or of its elements; without "or None"."""
    base = field.struct.name if field.struct is not None else _TYPES.get(field.type, "int")
    return f"list[{base}]" if array else base
