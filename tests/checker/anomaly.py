"""An anomaly, and which kinds Kafka's model allows."""

from typing import Final, NamedTuple

ALLOWED: Final = frozenset({"int-send-skip", "G0", "G1c-ww"})
"""Reported and no mistake: writes of transactions interleave in Kafka, by design."""

FORBIDDEN: Final = frozenset(
    {
        "inconsistent-offsets",
        "duplicate",
        "lost-write",
        "unseen",
        "G1a",
        "phantom",
        "precommitted-read",
        "torn",
        "int-poll-skip",
        "int-nonmonotonic-poll",
        "poll-skip",
        "nonmonotonic-poll",
        "int-nonmonotonic-send",
        "nonmonotonic-send",
        "G1c",
        "hanging-transaction",
        "group-offset-lost",
        "group-offset-aborted",
        "group-offset-beyond",
        "output-duplicate",
        "output-missing",
        "output-without-input",
    }
)
"""Never, in any history."""


class Anomaly(NamedTuple):
    """One finding."""

    kind: str
    text: str
