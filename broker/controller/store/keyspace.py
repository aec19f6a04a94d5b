"""The map of a metadata store, in memory: revisions, a short history, watchers.

`Keyspace` answers reads and never waits. Changes are made in two steps: a `Stage` collects what one
or several transactions would do, the store makes it durable, and only then `apply` lets readers and
watchers see it. A stage that is dropped leaves no trace.
"""

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from operator import attrgetter

from broker.controller.store.metadata_store import (
    Changes,
    CompactedError,
    Compare,
    Delete,
    DeleteResponse,
    Event,
    EventKind,
    FutureRevisionError,
    Get,
    GetResponse,
    KeyValue,
    LeaseNotFoundError,
    Operation,
    Put,
    PutResponse,
    RangeResult,
    Relation,
    Response,
    Target,
    TxnResult,
    check_limits,
)
from broker.controller.store.watch_queue import WatchQueue

FIRST_REVISION = 1
"""Revision of a store that was never written to, as in etcd."""

HISTORY_EVENTS_MAX = 10_000
"""Changes remembered for watches and reads of the past; older ones count as compacted."""

HISTORY_BYTES_MAX = 1 << 20
"""Bytes of them: a change of a topic with ten thousand partitions has half a megabyte."""

_EVENT_BYTES = 400
"""What a change takes beside its keys and values, about."""

WATCH_BUFFER_MAX = 4096
"""Changes kept for one watcher that does not read; one more and it has to list again."""


class KeyspaceWatch:
    """A `Watch` on a `Keyspace`; buffers at most `buffer_max` changes."""

    def __init__(self, keyspace: "Keyspace", prefix: str, buffer_max: int) -> None:
        self._keyspace = keyspace
        self._prefix = prefix
        self._queue = WatchQueue(buffer_max)

    def __aiter__(self) -> "KeyspaceWatch":
        return self

    async def __anext__(self) -> Changes:
        return await self._queue.get()

    async def request_progress(self) -> None:
        """Deliver the store's revision behind what is buffered; see `Watch.request_progress`."""
        if not self._queue.is_over:
            self._queue.put(Changes(self._keyspace.revision, ()))

    async def aclose(self) -> None:
        """Stop; the iteration ends."""
        self.close()

    def close(self) -> None:
        """Stop; what is still buffered is forgotten."""
        self._keyspace.forget_watch(self)
        self._queue.close()

    def offer(self, events: Iterable[Event]) -> None:
        """Take what lies under the prefix, a revision at a time; fail when it does not fit."""
        for revision, changes in groupby(events, key=attrgetter("revision")):
            taken = tuple(event for event in changes if event.key.startswith(self._prefix))
            if taken and not self._queue.put(Changes(revision, taken)):
                self.fail(CompactedError(revision))
                return

    def fail(self, failure: CompactedError) -> None:
        """End the iteration in `failure`, after what is buffered."""
        self._keyspace.forget_watch(self)
        self._queue.fail(failure)


class Keyspace:
    """Keys, leases and the latest changes. One thread, no waiting."""

    def __init__(
        self,
        *,
        history_events_max: int = HISTORY_EVENTS_MAX,
        history_bytes_max: int = HISTORY_BYTES_MAX,
        watch_buffer_max: int = WATCH_BUFFER_MAX,
    ) -> None:
        self._items: dict[str, KeyValue] = {}
        self._keys: list[str] = []
        self._leases: dict[int, int] = {}
        self._history: deque[Event] = deque()
        self._history_events_max = history_events_max
        self._history_bytes_max = history_bytes_max
        self.history_bytes = 0
        self._watch_buffer_max = watch_buffer_max
        # A dictionary for its order: watchers are served in the order in which they came.
        self._watches: dict[KeyspaceWatch, None] = {}
        self.revision = FIRST_REVISION
        self.compacted_revision = 0
        self.last_lease = 0

    def load(
        self,
        items: Iterable[KeyValue],
        leases: Iterable[tuple[int, int]],
        *,
        revision: int,
        last_lease: int,
    ) -> None:
        """Become what a durable copy holds; it has no history, so all before is compacted."""
        self._items = {item.key: item for item in items}
        self._keys = sorted(self._items)
        self._leases = dict(leases)
        self._history.clear()
        self.history_bytes = 0
        self.revision = revision
        self.compacted_revision = revision if revision > FIRST_REVISION else 0
        self.last_lease = last_lease

    @property
    def history_events(self) -> int:
        """Changes that are remembered."""
        return len(self._history)

    @property
    def leases(self) -> dict[int, int]:
        """Living leases: id to time to live in milliseconds."""
        return dict(self._leases)

    def get(self, key: str) -> KeyValue | None:
        """The key as it stands."""
        return self._items.get(key)

    def range(
        self, prefix: str, revision: int = 0, *, after: str = "", limit: int = 0
    ) -> RangeResult:
        """The keys under `prefix`, now or as of `revision`, a page or all of them.

        Raises:
            CompactedError: The history does not reach back that far.
            FutureRevisionError: `revision` is above the newest.
        """
        if revision > self.revision:
            raise FutureRevisionError(f"revision {revision} is after {self.revision}")
        if 0 < revision < self.revision:
            if revision < self.compacted_revision:
                raise CompactedError(self.compacted_revision)
            past = self._range_in_the_past(prefix, revision)
            items = (item for item in past if item.key > after)
        else:
            items = (self._items[key] for key in self.keys_under(prefix, after))
        page = tuple(islice(items, limit or None))
        return RangeResult(self.revision, page, next(items, None) is not None)

    def _range_in_the_past(self, prefix: str, revision: int) -> tuple[KeyValue, ...]:
        found = {key: self._items[key] for key in self.keys_under(prefix)}
        for event in reversed(self._history):
            if event.revision <= revision:
                break
            if event.key.startswith(prefix):
                if event.previous is None:
                    found.pop(event.key, None)
                else:
                    found[event.key] = event.previous
        return tuple(found[key] for key in sorted(found))

    def keys_under(self, prefix: str, after: str = "") -> Iterator[str]:
        """Existing keys that start with `prefix`, in order, those behind `after`."""
        keys = self._keys
        first = max(bisect_left(keys, prefix), bisect_right(keys, after) if after else 0)
        for index in range(first, len(keys)):
            if not keys[index].startswith(prefix):
                return
            yield keys[index]

    def has_lease(self, lease: int) -> bool:
        """Whether the lease lives."""
        return lease in self._leases

    def watch(self, prefix: str, from_revision: int) -> KeyspaceWatch:
        """A watcher that first gets what the history holds from `from_revision` on."""
        watch = KeyspaceWatch(self, prefix, self._watch_buffer_max)
        self._watches[watch] = None
        if 0 < from_revision <= self.compacted_revision:
            watch.fail(CompactedError(self.compacted_revision))
        elif from_revision > 0:
            watch.offer(event for event in self._history if event.revision >= from_revision)
        return watch

    def forget_watch(self, watch: KeyspaceWatch) -> None:
        """Deliver nothing more to `watch`."""
        self._watches.pop(watch, None)

    def close_watches(self) -> None:
        """End every iteration."""
        for watch in list(self._watches):
            watch.close()

    def stage(self) -> "Stage":
        """An empty set of changes on top of what is there now."""
        return Stage(self)

    def apply(self, stage: "Stage") -> None:
        """Make a durable stage visible, and deliver it to watchers."""
        for key, item in stage.changes.items():
            present = key in self._items
            if item is not None:
                self._items[key] = item
                if not present:
                    insort(self._keys, key)
            elif present:
                del self._items[key]
                del self._keys[bisect_left(self._keys, key)]
        for lease, ttl_ms in stage.lease_changes.items():
            if ttl_ms is None:
                self._leases.pop(lease, None)
            else:
                self._leases[lease] = ttl_ms
        self.revision = stage.revision
        self.last_lease = stage.last_lease
        self._history.extend(stage.events)
        self.history_bytes += sum(map(_size_of, stage.events))
        while self._history and (
            len(self._history) > self._history_events_max
            or self.history_bytes > self._history_bytes_max
        ):
            # Changes of one revision go together: half a transaction must not be readable.
            self._forget(self._history[0].revision)
        for watch in list(self._watches):
            watch.offer(stage.events)

    def compact(self, revision: int) -> None:
        """Forget what was before `revision`.

        Raises:
            CompactedError, FutureRevisionError: As `MetadataStore.compact`.
        """
        if revision > self.revision:
            raise FutureRevisionError(f"revision {revision} is after {self.revision}")
        if revision <= self.compacted_revision:
            raise CompactedError(self.compacted_revision)
        self._forget(revision)

    def _forget(self, revision: int) -> None:
        while self._history and self._history[0].revision <= revision:
            self.history_bytes -= _size_of(self._history.popleft())
        self.compacted_revision = revision


def _size_of(event: Event) -> int:
    """Bytes that a remembered change takes, about."""
    size = _EVENT_BYTES + len(event.key)
    for item in (event.current, event.previous):
        if item is not None:
            size += len(item.value)
    return size


class Stage:
    """What transactions would do, one on top of the other, before it is durable.

    Attributes:
        changes: Last state of every touched key, None when deleted.
        lease_changes: New leases with their time, None for ended ones.
        events: Every change, in order.
        revision: The store's revision once this is applied.
    """

    def __init__(self, keyspace: Keyspace) -> None:
        self._keyspace = keyspace
        self.changes: dict[str, KeyValue | None] = {}
        self.lease_changes: dict[int, int | None] = {}
        self.events: list[Event] = []
        self.base_revision = keyspace.revision
        self.revision = keyspace.revision
        self.last_lease = keyspace.last_lease

    @property
    def dirty(self) -> bool:
        """Whether there is anything to make durable."""
        return bool(self.changes or self.lease_changes)

    def get(self, key: str) -> KeyValue | None:
        """The key as it would stand."""
        if key in self.changes:
            return self.changes[key]
        return self._keyspace.get(key)

    def txn(
        self,
        compare: Sequence[Compare],
        then: Sequence[Operation],
        otherwise: Sequence[Operation],
    ) -> TxnResult:
        """Add one transaction; on an error the stage is as before.

        Raises:
            RequestTooLargeError, DuplicateKeyError, LeaseNotFoundError: As `MetadataStore.txn`.
        """
        check_limits(compare, then, otherwise)
        succeeded = all(self._holds(condition) for condition in compare)
        operations = then if succeeded else otherwise
        for operation in operations:
            if isinstance(operation, Put) and operation.lease and not self._lives(operation.lease):
                raise LeaseNotFoundError(f"lease {operation.lease} does not exist")
        revision = self.revision + 1
        responses = tuple(self._run(operation, revision) for operation in operations)
        if self.events and self.events[-1].revision == revision:
            self.revision = revision
        return TxnResult(succeeded, self.revision, responses)

    def grant(self, ttl_ms: int) -> int:
        """Add a lease; its id."""
        self.last_lease += 1
        self.lease_changes[self.last_lease] = ttl_ms
        return self.last_lease

    def revoke(self, lease: int) -> None:
        """End a lease and delete its keys in one revision.

        Raises:
            LeaseNotFoundError: It has ended already.
        """
        if not self._lives(lease):
            raise LeaseNotFoundError(f"lease {lease} does not exist")
        self.lease_changes[lease] = None
        revision = self.revision + 1
        for key in self._keys_under(""):
            item = self.get(key)
            if item is not None and item.lease == lease:
                self._delete(item, revision)
                self.revision = revision

    def _lives(self, lease: int) -> bool:
        if lease in self.lease_changes:
            return self.lease_changes[lease] is not None
        return self._keyspace.has_lease(lease)

    def _holds(self, condition: Compare) -> bool:
        item = self.get(condition.key)
        actual: bytes | int
        match condition.target:
            case Target.VALUE:
                if item is None:
                    return False
                actual = item.value
            case Target.VERSION:
                actual = item.version if item else 0
            case Target.CREATE_REVISION:
                actual = item.create_revision if item else 0
            case Target.MOD_REVISION:
                actual = item.mod_revision if item else 0
        return _related(actual, condition.relation, condition.operand)

    def _run(self, operation: Operation, revision: int) -> Response:
        match operation:
            case Put():
                previous = self.get(operation.key)
                current = KeyValue(
                    operation.key,
                    operation.value,
                    previous.create_revision if previous else revision,
                    revision,
                    previous.version + 1 if previous else 1,
                    operation.lease,
                )
                self.changes[operation.key] = current
                self.events.append(Event(EventKind.PUT, operation.key, revision, current, previous))
                return PutResponse(previous)
            case Delete():
                deleted = self._find(operation.key, operation.prefix)
                for item in deleted:
                    self._delete(item, revision)
                return DeleteResponse(len(deleted))
            case Get():
                return GetResponse(tuple(self._find(operation.key, operation.prefix)))

    def _delete(self, item: KeyValue, revision: int) -> None:
        self.changes[item.key] = None
        self.events.append(Event(EventKind.DELETE, item.key, revision, None, item))

    def _find(self, key: str, prefix: bool) -> list[KeyValue]:
        keys = self._keys_under(key) if prefix else [key]
        return [item for item in map(self.get, keys) if item is not None]

    def _keys_under(self, prefix: str) -> list[str]:
        keys = set(self._keyspace.keys_under(prefix))
        keys.update(key for key in self.changes if key.startswith(prefix))
        return sorted(keys)


def _related(actual: bytes | int, relation: Relation, operand: bytes | int) -> bool:
    if isinstance(actual, bytes) != isinstance(operand, bytes):
        raise TypeError("values are compared with bytes, revisions and versions with numbers")
    match relation:
        case Relation.EQUAL:
            return actual == operand
        case Relation.NOT_EQUAL:
            return actual != operand
        case Relation.LESS:
            return actual < operand  # type: ignore[operator]  # both bytes or both int, see above
        case Relation.GREATER:
            return actual > operand  # type: ignore[operator]  # both bytes or both int, see above
