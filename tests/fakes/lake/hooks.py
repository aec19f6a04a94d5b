"""A table whose every step is seen, so that something can happen before or behind any of them.

hook("publish", False)   before a data file appears
hook("commit", True)     behind a commit, before anybody is told
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

import pyarrow as pa

from pipeline.lake.batch.progress import Progress
from pipeline.lake.files.data_file import DataFile
from pipeline.lake.sinks.base import Sink, TableFile, TableView
from pipeline.lake.stores.table_store import StoredFile, TableStore
from pipeline.lake.work.task import OpenStore

Hook = Callable[[str, bool], None]


class HookedStore:
    """`TableStore` with a hook before and behind what changes or reads it."""

    def __init__(self, store: TableStore, hook: Hook) -> None:
        self.uri = store.uri
        self._store = store
        self._hook = hook

    def scratch_path(self, key: str) -> str:
        return self._store.scratch_path(key)

    def publish(self, path: str, key: str) -> int:
        self._hook("publish", False)
        size = self._store.publish(path, key)
        self._hook("publish", True)
        return size

    def discard(self, path: str) -> None:
        self._store.discard(path)

    def put(self, key: str, data: bytes) -> None:
        self._hook("put", False)
        self._store.put(key, data)
        self._hook("put", True)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        self._hook("put_if_absent", False)
        done = self._store.put_if_absent(key, data)
        self._hook("put_if_absent", True)
        return done

    def get(self, key: str) -> bytes | None:
        self._hook("get", False)
        return self._store.get(key)

    def read(self, key: str, start: int, length: int) -> bytes | None:
        self._hook("read", False)
        return self._store.read(key, start, length)

    def local(self, key: str) -> AbstractContextManager[str | None]:
        self._hook("local", False)
        return self._store.local(key)

    def scratch_files(self) -> Iterator[StoredFile]:
        self._hook("list", False)
        return self._store.scratch_files()

    def size(self, key: str) -> int | None:
        return self._store.size(key)

    def list(self, prefix: str, *, after: str = "") -> Iterator[StoredFile]:
        self._hook("list", False)
        return self._store.list(prefix, after=after)

    def delete(self, keys: Sequence[str]) -> None:
        self._hook("delete", False)
        self._store.delete(keys)
        self._hook("delete", True)


class HookedSink:
    """`Sink` with a hook before and behind its commits; its store is hooked as well."""

    def __init__(self, sink: Sink, hook: Hook) -> None:
        self.name = sink.name
        self.folder = sink.folder
        self.keeps_partition_columns = sink.keeps_partition_columns
        self._sink = sink
        self._hook = hook

    @property
    def store(self) -> TableStore:
        return HookedStore(self._sink.store, self._hook)

    def view(self) -> TableView:
        self._hook("look", False)
        return self._sink.view()

    def keys(self, view: TableView) -> Sequence[str]:
        return self._sink.keys(view)

    def files(self, view: TableView) -> Sequence[TableFile]:
        return self._sink.files(view)

    def replace(self, view: TableView, files: Sequence[DataFile], remove: Sequence[str]) -> None:
        self._hook("commit", False)
        self._sink.replace(view, files, remove)
        self._hook("commit", True)

    def check(self, view: TableView) -> None:
        self._sink.check(view)

    def create(self, schema: pa.Schema, progress: Progress) -> None:
        self._hook("create", False)
        self._sink.create(schema, progress)
        self._hook("create", True)

    def commit(
        self,
        view: TableView,
        schema: pa.Schema,
        files: Sequence[DataFile],
        progress: Progress,
        remove: Sequence[str] = (),
    ) -> None:
        self._hook("commit", False)
        self._sink.commit(view, schema, files, progress, remove)
        self._hook("commit", True)


class OpenHooked(NamedTuple):
    """Opens a hooked store in a task of this process."""

    opener: OpenStore
    hook: Hook

    def __call__(self) -> TableStore:
        return HookedStore(self.opener(), self.hook)
