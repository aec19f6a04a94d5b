"""How long the answers of a metadata store took that other processes serve."""

from dataclasses import dataclass


@dataclass(slots=True)
class Latency:
    """How long answers took, in seconds. Written in the store's thread, read anywhere."""

    count: int = 0
    total_s: float = 0.0
    last_s: float = 0.0
