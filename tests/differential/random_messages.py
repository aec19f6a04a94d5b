"""Random messages of any API and version, from the field tables the codec is generated from."""

import random
from types import ModuleType
from typing import Any, Final
from uuid import UUID

from protocol.codegen.schema import Field, Struct

BOUNDS: Final = {
    "int8": (-(1 << 7), (1 << 7) - 1),
    "int16": (-(1 << 15), (1 << 15) - 1),
    "int32": (-(1 << 31), (1 << 31) - 1),
    "int64": (-(1 << 63), (1 << 63) - 1),
    "uint16": (0, (1 << 16) - 1),
    "uint32": (0, (1 << 32) - 1),
}
TEXTS: Final = ("", "a", "orders", "Überraschung", "日本語", "🦀", "x" * 126, "y" * 127, "z" * 300)
COUNTS: Final = (0, 0, 1, 1, 2, 3)


class RandomMessages:
    """Makes messages; the same seed gives the same ones."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def message(self, module: ModuleType, struct: Struct, depth: int = 0) -> Any:
        """Make one with every field of that version, and every other field left at its default."""
        values = {field.name: self._value(module, field, depth) for field in struct.fields}
        return getattr(module, struct.name)(**values)

    def _value(self, module: ModuleType, field: Field, depth: int) -> Any:
        chance = self._random
        if field.tag is not None and chance.random() < 0.4:
            return list(field.default) if isinstance(field.default, tuple) else self._default(field)
        if field.nullable and chance.random() < 0.2:
            return None
        if field.array:
            # One long list now and then, for counts whose varint has two bytes.
            long = depth == 0 and field.struct is None and chance.random() < 0.1
            count = 130 if long else chance.choice(COUNTS)
            return [self._scalar(module, field, depth) for _ in range(count)]
        return self._scalar(module, field, depth)

    def _default(self, field: Field) -> Any:
        return UUID(int=0) if field.type == "uuid" else field.default

    def _scalar(self, module: ModuleType, field: Field, depth: int) -> Any:
        chance = self._random
        if field.struct is not None:
            return self.message(module, field.struct, depth + 1)
        match field.type:
            case "bool":
                return chance.random() < 0.5
            case "float64":
                return chance.uniform(-1e9, 1e9)
            case "string":
                return chance.choice(TEXTS)
            case "bytes" | "records":
                return chance.randbytes(chance.choice((0, 1, 5, 126, 127, 200)))
            case "uuid":
                return UUID(int=chance.choice((0, chance.getrandbits(128))))
        low, high = BOUNDS[field.type]
        return chance.choice((low, high, -1 if low else 1, 0, 1, chance.randint(low, high)))
