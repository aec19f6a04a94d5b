"""Deletion of S3 objects: a thousand keys a request, or one by one where the store cannot.

DeleteObjects is the call that S3-compatible stores disagree about most: some lack it, some demand
Content-MD5 (`checksum` "md5" in the settings sends it), some know no other checksum. A store that
refuses it once is not asked again.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from tiered.errors import (
    ObjectNotFoundError,
    RemoteStorageError,
    StoreDeniedError,
    StoreUnavailableError,
)
from tiered.object_store.s3.calls import Call, S3Calls
from tiered.object_store.s3.errors import NotImplementedByStoreError, answer_error
from tiered.object_store.statistics import CallStatistics

SINGLE_DELETES_AT_ONCE: Final = 8


class S3Deleter:
    """See the module.

    Attributes:
        singly: The store has refused DeleteObjects.
    """

    def __init__(self, calls: S3Calls, key_prefix: str) -> None:
        self.singly = False
        self._calls = calls
        self._key_prefix = key_prefix

    async def delete(self, keys: Sequence[str], counters: CallStatistics) -> None:
        """Remove objects; missing ones are fine."""
        if len(keys) > 1 and not self.singly:
            try:
                await self._calls.retried(counters, lambda: self._delete_many(keys))
            except NotImplementedByStoreError:
                await self._delete_singly(keys, self._calls.caller(counters))
                self.singly = True
            return
        await self._delete_singly(keys, self._calls.caller(counters))

    async def _delete_many(self, keys: Sequence[str]) -> None:
        objects = [{"Key": self._key_prefix + key} for key in keys]
        try:
            answer = await self._calls.once(
                "delete_objects", "", {"Delete": {"Objects": objects, "Quiet": True}}
            )
        except (StoreDeniedError, StoreUnavailableError):
            raise
        except RemoteStorageError as error:
            # 400, 405, 501: MissingContentMD5, MethodNotAllowed and their like. Were it something
            # else, such as a missing bucket, deleting one by one will fail as well.
            raise NotImplementedByStoreError(str(error)) from error
        for problem in answer.get("Errors", ()):
            code = str(problem.get("Code", ""))
            if code == "NoSuchKey":
                continue
            key = str(problem.get("Key", ""))
            status = 403 if code == "AccessDenied" else 500
            raise answer_error(status, code, str(problem.get("Message", "")), key, f"delete {key}")

    async def _delete_singly(self, keys: Sequence[str], call: Call) -> None:
        waiting = list(reversed(keys))

        async def work() -> None:
            while waiting:
                try:
                    await call("delete_object", waiting.pop(), {})
                except ObjectNotFoundError:
                    continue

        tasks = [asyncio.create_task(work()) for _ in keys[:SINGLE_DELETES_AT_ONCE]]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
