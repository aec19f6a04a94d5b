"""Where the cluster's state is kept: an ordered map with revisions, transactions, watches, leases.

The shape is etcd's, cut down to what a controller needs, so that one contract holds for the SQLite
file of a single node and for an etcd cluster:

- Every transaction that changes something makes the next *revision*; all its changes carry it. An
  empty store is at revision 1.
- A key knows the revision that created it, the one that last changed it, and its *version*: 1 when
  created, one more with each put. A key that does not exist compares as 0 in all three.
- A transaction compares, then does one of two lists of operations, all or nothing.
- A watch delivers each change once, all changes of one revision together, in order of revision. The
  past is short: a watch that asks for a revision the store has forgotten, or that does not keep up,
  ends in `CompactedError`, and its owner lists again.
- A lease ends when it is revoked or has not been kept alive for its time; keys attached to it are
  deleted in one transaction.

The limits are etcd's defaults, enforced here too, so that nothing written to a file today is
refused by etcd tomorrow.

Source: etcd, api/etcdserverpb/rpc.proto, server/etcdserver/api/v3rpc/key.go.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

TXN_OPERATIONS_MAX = 128
"""Longest list of comparisons, and of operations on one side (etcd: --max-txn-ops)."""

REQUEST_SIZE_MAX = 1_572_864
"""Most bytes of keys and values one transaction may carry (etcd: --max-request-bytes, 1.5 MiB)."""

OPERATION_OVERHEAD = 64
"""Bytes counted per comparison and operation beside key and value: more than protobuf adds."""


class StoreError(Exception):
    """Any expected failure of a metadata store."""


class CompactedError(StoreError):
    """The history asked for is gone, or the watcher did not keep up: list again, then watch on.

    Attributes:
        compacted_revision: Newest revision that is no longer in the history.
    """

    def __init__(self, compacted_revision: int) -> None:
        super().__init__(f"revisions up to {compacted_revision} are compacted, list again")
        self.compacted_revision = compacted_revision


class FutureRevisionError(StoreError):
    """A read asked for a revision that has not happened yet."""


class RequestTooLargeError(StoreError):
    """The transaction has too many operations or too many bytes; nothing was done."""


class DuplicateKeyError(StoreError):
    """One list of operations changes the same key twice; nothing was done."""


class LeaseNotFoundError(StoreError):
    """The lease has ended or never was; nothing was done."""


class StoreUnavailableError(StoreError):
    """The store could not answer. A change that was asked for has not been made."""


class OutcomeUnknownError(StoreUnavailableError):
    """The answer to a transaction was lost: it may have been made, or may yet be.

    Never to be repeated as it is: `StoreWriter` finds out by a transaction that excludes it.
    """


class StoreDeniedError(StoreError):
    """The store does not let us do this: name, password, certificate, or its own settings."""


class StoreReplacedError(StoreError):
    """The store is not the one it was: another cluster's, emptied, or restored from a copy.

    Its revisions may name other contents than before, and leader epochs may repeat. Nothing that it
    says is acted on any more.
    """


class StoreFullError(StoreUnavailableError):
    """Nothing was written: the store's disk has no room."""


class StoreClosedError(StoreError):
    """The store has been closed."""


@dataclass(frozen=True, slots=True)
class KeyValue:
    """One key as it stood at some revision. `lease` 0: attached to none."""

    key: str
    value: bytes
    create_revision: int
    mod_revision: int
    version: int
    lease: int = 0


class Target(enum.Enum):
    """What of a key is compared."""

    VALUE = "value"
    VERSION = "version"
    CREATE_REVISION = "create revision"
    MOD_REVISION = "mod revision"


class Relation(enum.Enum):
    """How it is compared: the key's on the left, ours on the right."""

    EQUAL = "="
    NOT_EQUAL = "!="
    LESS = "<"
    GREATER = ">"


@dataclass(frozen=True, slots=True)
class Compare:
    """One condition of a transaction.

    For a key that does not exist the numbers are 0; its value compares as false with anything.
    """

    key: str
    target: Target
    relation: Relation
    operand: bytes | int


def key_absent(key: str) -> Compare:
    """True while `key` does not exist."""
    return Compare(key, Target.VERSION, Relation.EQUAL, 0)


def key_present(key: str) -> Compare:
    """True while `key` exists."""
    return Compare(key, Target.VERSION, Relation.GREATER, 0)


def unchanged_since(key: str, mod_revision: int) -> Compare:
    """True while `key` has not changed after `mod_revision` (0: while it does not exist)."""
    return Compare(key, Target.MOD_REVISION, Relation.EQUAL, mod_revision)


def value_equals(key: str, value: bytes) -> Compare:
    """True while `key` exists and holds `value`."""
    return Compare(key, Target.VALUE, Relation.EQUAL, value)


@dataclass(frozen=True, slots=True)
class Put:
    """Create or overwrite a key. `lease` 0 also detaches it from the lease it had."""

    key: str
    value: bytes
    lease: int = 0


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a key, or with `prefix` every key that starts with it."""

    key: str
    prefix: bool = False


@dataclass(frozen=True, slots=True)
class Get:
    """Read a key, or with `prefix` every key that starts with it, in order."""

    key: str
    prefix: bool = False


Operation: TypeAlias = Put | Delete | Get


@dataclass(frozen=True, slots=True)
class PutResponse:
    """A key was written. `previous` is None when it was created."""

    previous: KeyValue | None


@dataclass(frozen=True, slots=True)
class DeleteResponse:
    """How many keys are gone."""

    deleted: int


@dataclass(frozen=True, slots=True)
class GetResponse:
    """What was found, in order of key."""

    items: tuple[KeyValue, ...]


Response: TypeAlias = PutResponse | DeleteResponse | GetResponse


@dataclass(frozen=True, slots=True)
class TxnResult:
    """What became of a transaction.

    `succeeded` says which list ran, `revision` is the store's after it, `responses` holds one entry
    per operation that ran.
    """

    succeeded: bool
    revision: int
    responses: tuple[Response, ...]


@dataclass(frozen=True, slots=True)
class RangeResult:
    """The keys under a prefix, in order, and the store's newest revision when they were read.

    `more`: there are further keys behind the last one; ask again `after` it, at the same revision.
    """

    revision: int
    items: tuple[KeyValue, ...]
    more: bool = False


class EventKind(enum.Enum):
    """What happened to a key."""

    PUT = "put"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Event:
    """One change of one key.

    `current` is None for a deletion, `previous` is None for a creation.
    """

    kind: EventKind
    key: str
    revision: int
    current: KeyValue | None
    previous: KeyValue | None


@dataclass(frozen=True, slots=True)
class Changes:
    """All changes that one revision made under a watched prefix.

    Without events it is *progress*: nothing more comes up to and including `revision`.
    """

    revision: int
    events: tuple[Event, ...]


class Watch(Protocol):
    """An async iterator of revisions, from the moment `watch` was called; closed by its owner."""

    def __aiter__(self) -> "Watch": ...

    async def __anext__(self) -> Changes: ...

    async def request_progress(self) -> None:
        """Have the watch deliver progress: the newest revision that the store has shown, or later.

        It comes behind all changes up to there. For who waits for a revision that may have changed
        nothing under the prefix.
        """
        ...

    async def aclose(self) -> None:
        """Stop; the iteration ends. Harmless when repeated."""
        ...


class MetadataStore(Protocol):
    """An ordered map with revisions, transactions, watches and leases (see the module)."""

    async def get(self, key: str) -> KeyValue | None:
        """The key as it stands, None when it does not exist."""
        ...

    async def range(
        self, prefix: str, *, revision: int = 0, after: str = "", limit: int = 0
    ) -> RangeResult:
        """The keys that start with `prefix`, in order; in pages where `limit` is given.

        Args:
            prefix: Empty for everything.
            revision: Read as of this revision; 0 is now.
            after: Begin behind this key; empty: with the first.
            limit: At most so many keys; 0: all.

        Raises:
            CompactedError: The store no longer knows that revision.
            FutureRevisionError: It has not happened yet.
        """
        ...

    async def txn(
        self,
        compare: Sequence[Compare] = (),
        then: Sequence[Operation] = (),
        otherwise: Sequence[Operation] = (),
    ) -> TxnResult:
        """Run `then` if every comparison holds, else `otherwise`; durable when this returns.

        Raises:
            RequestTooLargeError: More than 128 entries in a list, or more than 1.5 MiB.
            DuplicateKeyError: A list changes one key twice.
            LeaseNotFoundError: A put names a lease that has ended.
            StoreUnavailableError: Not committed, and will not be.
            OutcomeUnknownError: Committed, or not, or it may yet be.
        """
        ...

    def watch(self, prefix: str, from_revision: int = 0) -> Watch:
        """Changes of keys under `prefix` with a revision of at least `from_revision`.

        0 means: from the first change on that no answer of this store has shown. The buffer is
        bounded: a watcher that does not keep up gets what was buffered, then `CompactedError` from
        the iteration, as does one whose first revision is already forgotten.
        """
        ...

    async def compact(self, revision: int) -> None:
        """Forget what was before `revision`: it can be read and watched from there on.

        Raises:
            CompactedError: That is forgotten already.
            FutureRevisionError: It has not happened yet.
        """
        ...

    async def grant_lease(self, ttl_ms: int) -> int:
        """A new lease that lives `ttl_ms` at least unless kept alive; its id, above 0.

        etcd counts whole seconds and has a least time of its own: `keep_lease_alive` tells.
        """
        ...

    async def keep_lease_alive(self, lease: int) -> int:
        """Renew the lease; the milliseconds it now has.

        Raises:
            LeaseNotFoundError: It has ended. Its holder must assume that its keys are gone.
        """
        ...

    async def revoke_lease(self, lease: int) -> None:
        """End the lease and delete its keys.

        Raises:
            LeaseNotFoundError: It has ended already.
        """
        ...

    async def aclose(self) -> None:
        """Finish what was begun, end all watches, let go of the disk or the network."""
        ...


def check_limits(
    compare: Sequence[Compare], then: Sequence[Operation], otherwise: Sequence[Operation]
) -> None:
    """Refuse what etcd would refuse.

    Raises:
        RequestTooLargeError: More than 128 entries in a list, or more than 1.5 MiB.
        DuplicateKeyError: A list changes one key twice.
    """
    size = 0
    for entries in (compare, then, otherwise):
        if len(entries) > TXN_OPERATIONS_MAX:
            raise RequestTooLargeError(
                f"{len(entries)} entries in one list of a transaction, {TXN_OPERATIONS_MAX} allowed"
            )
    for condition in compare:
        size += OPERATION_OVERHEAD + len(condition.key.encode())
        if isinstance(condition.operand, bytes):
            size += len(condition.operand)
    for operations in (then, otherwise):
        size += _size_of(operations)
        _check_duplicates(operations)
    if size > REQUEST_SIZE_MAX:
        raise RequestTooLargeError(f"transaction of {size} bytes, {REQUEST_SIZE_MAX} allowed")


def _size_of(operations: Sequence[Operation]) -> int:
    size = 0
    for operation in operations:
        size += OPERATION_OVERHEAD + len(operation.key.encode())
        if isinstance(operation, Put):
            size += len(operation.value)
    return size


def _check_duplicates(operations: Sequence[Operation]) -> None:
    puts: set[str] = set()
    for operation in operations:
        if isinstance(operation, Put):
            if operation.key in puts:
                raise DuplicateKeyError(f"key {operation.key!r} is put twice in one transaction")
            puts.add(operation.key)
    for operation in operations:
        if isinstance(operation, Delete):
            hit = (
                any(key.startswith(operation.key) for key in puts)
                if operation.prefix
                else operation.key in puts
            )
            if hit:
                raise DuplicateKeyError(
                    f"key {operation.key!r} is put and deleted in one transaction"
                )
