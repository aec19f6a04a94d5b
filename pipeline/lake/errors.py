"""Errors of a lake job that are expected.

LakeError
├── JobConfigError          every mistake of a job's settings at once
├── MissingExtraError       a library that this needs is not installed
├── CommitConflictError     another commit was made since the table was read: read it again
├── TableUnavailableError   the table's store or catalog did not do it; worth another try
├── TaskFailedError         a task or its process ended early; worth another try
└── JobStopError            needs a decision of the operator
├── TopicReplacedError  the topic was recreated; the table holds rows of the old one
├── StartError          the log has nothing where the table should begin
├── LostOffsetsError    offsets the table still needs are gone from the log
├── LogBehindTableError the log ends below what the table has: a restored node
├── ForeignTableError   the table is not this job's, or not what it was
└── NothingRemovedError it is not known what the table has, so nothing was removed
"""

from collections.abc import Sequence
from uuid import UUID

from protocol.picklable_error import PicklableError


class LakeError(PicklableError):
    """Any expected failure of a lake job."""


class JobConfigError(LakeError):
    """Every mistake of a job's settings, in the order of the file."""

    def __init__(self, mistakes: Sequence[str], origin: str = "job.yaml") -> None:
        noun = "mistake" if len(mistakes) == 1 else "mistakes"
        lines = "\n".join(f"  {mistake}" for mistake in mistakes)
        super().__init__(f"{len(mistakes)} {noun} in {origin}:\n{lines}")
        self.mistakes = tuple(mistakes)


class MissingExtraError(LakeError):
    """A library is not installed; the text says what to install."""

    def __init__(self, module: str, extra: str) -> None:
        super().__init__(f"{module} is not installed: pip install '.[{extra}]'")
        self.module = module
        self.extra = extra


class CommitConflictError(LakeError):
    """Another commit was made since the table was read. Nothing of this one is in the table."""


class TableUnavailableError(LakeError):
    """The table's store or catalog failed a request, or its outcome is unknown.

    To be retried after the table is read again: the commit may be there.
    """


class TaskFailedError(LakeError):
    """A task failed, or the process that ran it is gone. Nothing was committed."""


class JobStopError(LakeError):
    """The job stands until a person has decided."""


class TopicReplacedError(JobStopError):
    """A topic of that name was deleted and recreated."""

    def __init__(self, topic: str, known: UUID, found: UUID) -> None:
        super().__init__(
            f"topic {topic} was recreated: the table holds rows of the topic with id {known}, "
            f"the log is of {found}. With --new-incarnation the job goes on with the new one, "
            "from its start, and keeps the rows of the old one"
        )


class StartError(JobStopError):
    """The log has nothing where `source.start` lets the table begin."""


class LostOffsetsError(JobStopError):
    """Offsets the table still needs are below the log start, or in a gap of it."""

    def __init__(self, topic: str, partition: int, start: int, end: int) -> None:
        super().__init__(
            f"{topic}-{partition}: offsets {start} to {end - 1} are gone from the log before the "
            "table had them; with source.fail_on_data_loss: false the job goes on behind them"
        )
        self.partition = partition
        self.start = start
        self.end = end


class LogBehindTableError(JobStopError):
    """The log ends below what the table has."""

    def __init__(self, topic: str, partition: int, end: int, reached: int) -> None:
        super().__init__(
            f"{topic}-{partition} ends at offset {end}, and the table has offsets up to "
            f"{reached - 1}: the log was cut or restored, and gives these offsets to other records"
        )


class ForeignTableError(JobStopError):
    """The table is another job's, or not in a state this job left it in."""


class NothingRemovedError(JobStopError):
    """Upkeep does not know all that a table has, so it has removed nothing."""
