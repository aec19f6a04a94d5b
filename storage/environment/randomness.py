"""Source of randomness, passed in as a dependency: a seed then repeats a run."""

import random
import secrets
import uuid
from typing import Protocol


class Randomness(Protocol):
    """The few random things a broker needs."""

    def uuid4(self) -> uuid.UUID:
        """A fresh random identifier."""
        ...

    def below(self, bound: int) -> int:
        """A number in 0 .. bound - 1; 0 when `bound` is 0 or less."""
        ...

    def token_bytes(self, count: int) -> bytes:
        """So many unpredictable bytes: for keys and initialization vectors."""
        ...


class SystemRandomness:
    """The operating system's entropy for identifiers, Mersenne Twister for jitter."""

    __slots__ = ()

    def uuid4(self) -> uuid.UUID:
        """A fresh random identifier."""
        return uuid.uuid4()

    def below(self, bound: int) -> int:
        """A number in 0 .. bound - 1; 0 when `bound` is 0 or less."""
        return random.randrange(bound) if bound > 0 else 0

    def token_bytes(self, count: int) -> bytes:
        """So many bytes of the operating system's entropy."""
        return secrets.token_bytes(count)


class SeededRandomness:
    """Repeats itself for the same seed: for tests and simulations."""

    __slots__ = ("_random",)

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def uuid4(self) -> uuid.UUID:
        """A version 4 identifier drawn from the seed."""
        return uuid.UUID(int=self._random.getrandbits(128), version=4)

    def below(self, bound: int) -> int:
        """A number in 0 .. bound - 1; 0 when `bound` is 0 or less."""
        return self._random.randrange(bound) if bound > 0 else 0

    def token_bytes(self, count: int) -> bytes:
        """So many bytes drawn from the seed; worth nothing as a secret."""
        return self._random.randbytes(count)
