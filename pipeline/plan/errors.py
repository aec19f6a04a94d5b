"""Errors of planning, in sentences for the user.

PlanError
├── OptionsError          the location or its options: every mistake at once
├── TopicError            a topic, partition or incarnation that is not in the bucket
└── DamagedBucketError    an object without which the log is unknown
"""

from collections.abc import Sequence

from protocol.picklable_error import PicklableError


class PlanError(PicklableError):
    """Any expected failure of planning."""


class OptionsError(PlanError, ValueError):
    """Mistakes in what was asked for.

    Attributes:
        mistakes: A sentence each.
    """

    def __init__(self, mistakes: Sequence[str]) -> None:
        super().__init__("; ".join(mistakes))
        self.mistakes = tuple(mistakes)


class TopicError(PlanError):
    """A requested topic or partition is not in the bucket."""


class DamagedBucketError(PlanError):
    """An object that is damaged, or of a newer version.

    Attributes:
        key: The object.
        position: First byte known to be wrong, in the object; -1 if that is unknown.
    """

    def __init__(self, key: str, position: int, problem: str) -> None:
        super().__init__(f"{key} at byte {position}: {problem}")
        self.key = key
        self.position = position
        self.problem = problem
