"""How a bug is put in: a piece of the broker is replaced, and rare ones are drawn, always alike."""

import random
from typing import Any, Final

RANDOM: Final = random.Random(4711)


def replace(owner: Any, name: str, value: object) -> None:
    """A class's or module's own thing by another.

    Raises:
        AttributeError: There is none of that name: a seeded bug would change nothing.
    """
    getattr(owner, name)
    setattr(owner, name, value)
