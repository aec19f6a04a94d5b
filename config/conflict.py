"""A conflict between settings that are each valid alone."""

from typing import NamedTuple


class Conflict(NamedTuple):
    """Something wrong with `key`, given the other settings."""

    key: str
    problem: str
    expected: str = ""
