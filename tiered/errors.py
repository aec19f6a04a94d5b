"""Errors of the remote log: its expected failures.

    TieredError
    ├── RemoteStorageError               the object store could not do it
    │   ├── ObjectNotFoundError          no such object (or no such side file of a segment)
    │   ├── StoreUnavailableError        refused, reset, 5xx, throttled: worth another try
    │   │   └── StoreTimeoutError        a deadline has passed: connect, read or total
    │   ├── StoreDeniedError             401, 403: credentials or policy
    │   └── TierProcessError             the tier process has ended or does not answer; retriable
    ├── CorruptRemoteDataError           bytes in the bucket are not those that were written
    ├── CorruptSegmentError              a local segment or side file must not be copied
    ├── QueueFullError                   the bounded queue of remote reads is full
    ├── RemoteStorageNotReadyError       metadata of the partition is still being read; retriable
    ├── RemoteOffsetNotFoundError        no copied segment holds the (leader epoch, offset)
    ├── InvalidTransitionError           a segment's or partition's state may not change so
    └── RemotePausedError                reading is paused by an operator

`broker.runtime.errors` is the one place that maps these to Kafka's error codes.
"""

from protocol.picklable_error import PicklableError


class TieredError(PicklableError):
    """Any expected failure of the remote log."""


class RemoteStorageError(TieredError):
    """A request to the object store failed."""


class ObjectNotFoundError(RemoteStorageError):
    """No such object."""

    def __init__(self, key: str) -> None:
        super().__init__(f"no such object: {key}")
        self.key = key


class StoreUnavailableError(RemoteStorageError):
    """Worth another try: refused, reset, 5xx, throttled, a body that was too short."""


class StoreTimeoutError(StoreUnavailableError):
    """A deadline has passed."""


class StoreDeniedError(RemoteStorageError):
    """Credentials or policy do not allow it."""


class TierProcessError(RemoteStorageError):
    """The tier process has ended, or does not answer; what was asked may or may not be done."""


class CorruptRemoteDataError(TieredError):
    """Bytes in the bucket are not those that were written.

    Attributes:
        key: The object.
        position: First byte known to be wrong, in the object; -1 if unknown.
    """

    def __init__(self, key: str, position: int, problem: str) -> None:
        super().__init__(f"{key} at byte {position}: {problem}")
        self.key = key
        self.position = position
        self.problem = problem


class CorruptSegmentError(TieredError):
    """A local segment must not be copied.

    Attributes:
        path: The file at fault.
        position: Where in it; -1 if unknown.
        rebuildable: It is an index, which can be made again from the log.
    """

    def __init__(self, path: str, position: int, problem: str, *, rebuildable: bool) -> None:
        super().__init__(f"{path} at byte {position}: {problem}")
        self.path = path
        self.position = position
        self.problem = problem
        self.rebuildable = rebuildable


class QueueFullError(TieredError):
    """`remote.log.reader.max.pending.tasks` reads wait already."""


class RemoteStorageNotReadyError(TieredError):
    """The partition's metadata is still being read. Clients try again."""


class RemoteOffsetNotFoundError(TieredError):
    """No copied segment holds the (leader epoch, offset)."""

    def __init__(self, partition: object, epoch: int | None, offset: int) -> None:
        super().__init__(f"{partition} has no remote segment with offset {offset} in epoch {epoch}")
        self.offset = offset
        self.epoch = epoch


class InvalidTransitionError(TieredError):
    """A segment or partition may not change its state so."""


class RemotePausedError(TieredError):
    """Reading from remote storage is paused by an operator."""
