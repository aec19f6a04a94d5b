"""Names and reasons that clients chose, made fit for a log line."""

from broker.runtime.logs import quoted

_LENGTH_MAX = 255
"""What Kafka's clients send as a reason at most; a name may be as long as a frame."""


def log_value(text: str) -> str:
    """The text as the value of `key=value`: cut off, quoted, without line breaks."""
    return quoted(text[:_LENGTH_MAX])
