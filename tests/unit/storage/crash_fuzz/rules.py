"""What a broken rule is, and how it is named."""

from tests.unit.storage.crash_fuzz.model import Batch


class RuleBroken(AssertionError):
    """What a log is not allowed to be."""


def check(holds: object, rule: str, *facts: object) -> None:
    """Raise if a rule does not hold."""
    if not holds:
        raise RuleBroken(f"{rule}: {', '.join(map(str, facts))}")


def short(batch: Batch) -> str:
    """A batch in a message."""
    header = batch.header
    return f"[{batch.base}..{batch.end}) epoch {header.leader_epoch} of {header.producer_id}"
