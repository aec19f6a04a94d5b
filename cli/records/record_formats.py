"""Formats of `varve consume`: a record as one line of bytes, its end not included.

value       the value as it is; a null is `null`
key-value   key, tab, value
json        one object: topic, partition, offset, timestamp (ms since 1970 UTC), key, value,
            headers. Bytes that are no UTF-8 are {"base64": "..."}.
"""

import base64
import json
from collections.abc import Callable
from typing import Any, Final

_NULL: Final = b"null"


def value_line(record: Any) -> bytes:
    """The value."""
    return _NULL if record.value is None else bytes(record.value)


def key_value_line(record: Any) -> bytes:
    """Key and value."""
    return (_NULL if record.key is None else bytes(record.key)) + b"\t" + value_line(record)


def json_line(record: Any) -> bytes:
    """Everything."""
    document = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": _json_value(record.key),
        "value": _json_value(record.value),
        # A list: a record may have several headers of one key, in an order.
        "headers": [{"key": key, "value": _json_value(value)} for key, value in record.headers],
    }
    return json.dumps(document, ensure_ascii=False).encode()


def _json_value(data: bytes | None) -> object:
    if data is None:
        return None
    try:
        return bytes(data).decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


FORMATS: Final[dict[str, Callable[[Any], bytes]]] = {
    "value": value_line,
    "key-value": key_value_line,
    "json": json_line,
}
