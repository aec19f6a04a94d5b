"""Identifiers as Kafka writes them in files: 22 characters of URL-safe base64, no padding.

Source: Kafka, Uuid.java.
"""

import base64
import binascii
from uuid import UUID

NIL = UUID(int=0)


def format_uuid(uuid: UUID) -> str:
    """Kafka's text of an identifier."""
    return base64.urlsafe_b64encode(uuid.bytes).rstrip(b"=").decode()


def parse_uuid(text: str) -> UUID:
    """The identifier in Kafka's text.

    Raises:
        ValueError: It is not 22 characters of URL-safe base64.
    """
    if len(text) != 22 or "=" in text:
        raise ValueError(f"{text[:40]!r} is not an identifier of 22 characters")
    try:
        raw = base64.b64decode(text + "==", altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"{text!r} is not an identifier in URL-safe base64") from error
    return UUID(bytes=raw)
