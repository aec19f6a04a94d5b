"""An anomaly, and which kinds Kafka's model allows."""

from typing import Final, NamedTuple

_CYCLES_ALLOWED: Final = ("G0", "G1c-ww", "G-single", "G2")

ALLOWED: Final = frozenset(
    {"int-send-skip"}
    | {kind + order for kind in _CYCLES_ALLOWED for order in ("", "-process", "-realtime")}
)
"""Reported and no mistake: writes of transactions interleave in Kafka, and a reader sees of others'
transactions what it gets to, by design. Jepsen allows the same (`allowed-error-types`)."""

REPLICATED: Final = frozenset(
    {
        "diverged-replica",
        "epoch-offset-reuse",
        "two-leaders",
        "epoch-went-back",
        "record-insane",
        "write-by-nobody",
        "history-gap",
        "broker-ended",
    }
)
"""Of brokers, replicas' files and the store, not of clients' histories: `tests.checker.cluster`."""

FORBIDDEN: Final = REPLICATED | frozenset(
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
        "realtime-send",
        "G1c",
        "G1c-process",
        "G1c-realtime",
        "hanging-transaction",
        "group-offset-lost",
        "group-offset-aborted",
        "group-offset-beyond",
        "output-duplicate",
        "output-missing",
        "output-without-input",
        "share-lost",
        "share-unfinished",
        "share-redelivered",
        "share-delivery-count",
        "share-count-repeated",
    }
)
"""Never, in any history."""


class Anomaly(NamedTuple):
    """One finding."""

    kind: str
    text: str
