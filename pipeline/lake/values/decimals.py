"""Decimals from the bytes that Avro and Protobuf keep of them: two's complement, big endian."""

from collections.abc import Sequence
from decimal import Context, Decimal
from typing import Final

import pyarrow as pa

_EXACT: Final = Context(prec=100)


def decimal_of(data: bytes, kind: pa.Decimal128Type) -> Decimal:
    """The number whose unscaled digits are in some bytes.

    Raises:
        pyarrow.ArrowInvalid: It has more digits than the type.
    """
    unscaled = int.from_bytes(data, "big", signed=True)
    if abs(unscaled) >= 10**kind.precision:
        raise pa.ArrowInvalid(f"a decimal of more than {kind.precision} digits")
    return Decimal(unscaled).scaleb(-kind.scale, _EXACT)


def decimals_of(values: Sequence[bytes | None], kind: pa.Decimal128Type) -> pa.Array:
    """An array of them; null where the value is.

    Raises:
        pyarrow.ArrowInvalid: One has more digits than the type.
    """
    return pa.array([None if v is None else decimal_of(v, kind) for v in values], kind)
