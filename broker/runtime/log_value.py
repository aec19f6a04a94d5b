"""Escaping of names and reasons chosen by clients, for log lines."""

from broker.runtime.logs import quoted

_LENGTH_MAX = 255
"""Longest reason that Kafka's clients send; a name may be as long as a frame."""


def log_value(text: str) -> str:
    """The text as the value of `key=value`: cut off, quoted, without line breaks."""
    return quoted(text[:_LENGTH_MAX])
