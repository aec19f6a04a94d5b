"""Requests to S3 through aiobotocore: one client, errors as ours, retries, deadlines.

Safe to do twice, and so tried again within the total deadline, is everything the object store asks
for, since a key is always written with the same meaning. (What a repeated `complete` means:
`tiered.object_store.s3.upload`.) After a refusal (403) the credentials file is checked again, and
if it has changed since the call began, the call is repeated.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, TypeAlias, TypeVar

from config.object_store import StoreSettings
from storage.environment.clock import Clock
from storage.environment.randomness import Randomness
from tiered.errors import StoreDeniedError, StoreUnavailableError
from tiered.object_store.base import StoreDeadlines
from tiered.object_store.deadline import Deadline, Retry, total_ms
from tiered.object_store.s3.client import MachineCredentials, new_session, open_client, use_source
from tiered.object_store.s3.credentials import CredentialsSource
from tiered.object_store.s3.errors import client_error
from tiered.object_store.s3.ranged import open_ranged_reader
from tiered.object_store.s3.ranged_get import RangedReader
from tiered.object_store.statistics import CallStatistics, StoreStatistics

T = TypeVar("T")

Call: TypeAlias = Callable[[str, str, dict[str, Any]], Awaitable[Any]]
"""(operation, key, arguments): one call of the client with retries; `key` "" where it has none."""


class S3Calls:
    """See the module. Belongs to the loop of its first call.

    Attributes:
        ranged: Reads ranges faster, once the client is open; None where that cannot be.
    """

    def __init__(
        self,
        settings: StoreSettings,
        clock: Clock,
        randomness: Randomness,
        statistics: StoreStatistics,
        credentials: CredentialsSource | None,
        sleep: Callable[[float], Awaitable[None]],
        *,
        fast_reads: bool,
    ) -> None:
        """Nothing is asked of the store yet."""
        self.name = f"s3://{settings.bucket}/{settings.key_prefix}"
        self.ranged: RangedReader | None = None
        self._settings = settings
        self._clock = clock
        self._statistics = statistics
        self._deadlines = StoreDeadlines(
            settings.connect_timeout_ms, settings.read_timeout_ms, settings.call_timeout_ms
        )
        self._retry = Retry(settings.attempts, randomness, sleep)
        self._credentials = credentials
        self._fast_reads = fast_reads
        self._closed = False
        self._opening = asyncio.Lock()
        self._stack = AsyncExitStack()
        self._client: Any = None

    async def _open(self) -> Any:
        async with self._opening:
            if self._closed:
                raise StoreUnavailableError(f"{self.name} is closed")
            if self._client is not None:
                return self._client
            session = await asyncio.to_thread(new_session)
            if self._credentials is None:
                self._credentials = MachineCredentials(session)
            else:
                use_source(session, self._credentials)
            async with AsyncExitStack() as stack:
                client = await open_client(stack, session, self._settings, self._deadlines)
                if self._fast_reads:
                    self.ranged = await open_ranged_reader(
                        client,
                        session,
                        self._settings,
                        self._deadlines,
                        self._credentials,
                        self._clock,
                        self._statistics,
                    )
                self._stack = stack.pop_all()
            self._client = client
            return client

    async def once(self, operation: str, key: str, arguments: dict[str, Any]) -> Any:
        """One request; see `Call`."""
        arguments = {"Bucket": self._settings.bucket, **arguments}
        if key:
            arguments["Key"] = self._settings.key_prefix + key
        return await self.with_client(
            operation, key, lambda client: getattr(client, operation)(**arguments)
        )

    async def with_client(self, operation: str, key: str, work: Callable[[Any], Awaitable[T]]) -> T:
        """What `work` makes of the client; the libraries' errors become ours."""
        for renewed in (False, True):
            changes = 0 if self._credentials is None else self._credentials.changes
            try:
                return await work(self._client or await self._open())
            except Exception as error:
                ours = client_error(error, key, f"{operation} {self.name}{key}")
                if ours is None:
                    raise
                if isinstance(ours, StoreDeniedError) and not renewed and self._has_others(changes):
                    continue
                if ours is error:
                    raise
                raise ours from error
        raise AssertionError("the second attempt returns or raises")

    def _has_others(self, changes: int) -> bool:
        return self._credentials is not None and self._credentials.refused(changes)

    async def retried(self, counters: CallStatistics, work: Callable[[], Awaitable[T]]) -> T:
        """`work`, again and again as `Retry` says, counted."""

        def count() -> None:
            counters.retries += 1

        return await self._retry.run(work, count)

    def caller(self, counters: CallStatistics) -> Call:
        """`once` with retries."""

        async def call(operation: str, key: str, arguments: dict[str, Any]) -> Any:
            return await self.retried(counters, lambda: self.once(operation, key, arguments))

        return call

    def deadline(self, doing: str, size: int = 0) -> Deadline:
        """The total deadline of a call that moves `size` bytes."""
        return Deadline(total_ms(self._deadlines, size), f"{doing} in {self.name}")

    async def close(self) -> None:
        """Close all connections; calls under way fail."""
        self._closed = True
        async with self._opening:
            if self.ranged is not None:
                self.ranged.close()
            self._client = None
            await self._stack.aclose()
