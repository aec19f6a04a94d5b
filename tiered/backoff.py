"""Exponential backoff with jitter, up to a maximum.

    wait = min(first * 2^n * (1 +- jitter), maximum)

Source: Kafka, ExponentialBackoff.java.
"""

from typing import Final

from storage.environment.randomness import Randomness

_DOUBLINGS_MAX: Final = 40
"""Far beyond any maximum; keeps the number small."""

_STEPS: Final = 1000


class Backoff:
    """One thing's failures in a row.

    Attributes:
        failures: Since the last success.
    """

    __slots__ = ("_first_ms", "_jitter", "_max_ms", "_randomness", "failures")

    def __init__(
        self, randomness: Randomness, *, first_ms: float, max_ms: float, jitter: float
    ) -> None:
        """Nothing has failed.

        Args:
            randomness: For the jitter.
            first_ms: After the first failure.
            max_ms: Never more.
            jitter: A fraction, 0 .. 1.
        """
        self._randomness = randomness
        self._first_ms = first_ms
        self._max_ms = max_ms
        self._jitter = jitter
        self.failures = 0

    def next_ms(self) -> float:
        """It has failed again: how long to wait."""
        wait = self._first_ms * 2.0 ** min(self.failures, _DOUBLINGS_MAX)
        self.failures += 1
        spread = (self._randomness.below(2 * _STEPS + 1) - _STEPS) / _STEPS
        return min(wait * (1.0 + self._jitter * spread), self._max_ms)

    def reset(self) -> None:
        """It has worked."""
        self.failures = 0
