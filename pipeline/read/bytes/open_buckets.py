"""Buckets that this process has open, kept from one piece to the next.

Opening one takes a tenth of a second and an executor's worker reads hundreds of pieces, so the last
few stay open: their connections, the manifests read, the data keys unwrapped. A process that was
forked begins with none.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from pipeline.plan.bucket import Bucket, BucketOptions, open_bucket
from pipeline.read.bytes.store_thread import StoreThread

OPEN_MAX: Final = 2
"""Buckets that are kept open; one that is asked for beyond them closes the one used longest ago."""

Opener = Callable[[BucketOptions], Awaitable[Bucket]]


class LentBucket(NamedTuple):
    """An open bucket and what goes with it; valid until `OPEN_MAX` others were asked for.

    Attributes:
        bucket: Its calls run in `thread`.
        thread: See `store_thread`.
    """

    bucket: Bucket
    thread: StoreThread


class OpenBuckets:
    """See the module. Not for several threads at a time."""

    def __init__(self, opener: Opener = open_bucket) -> None:
        self._opener = opener
        self._thread: StoreThread | None = None
        self._open: OrderedDict[BucketOptions, LentBucket] = OrderedDict()

    def lend(self, options: BucketOptions) -> LentBucket:
        """Open it, or give the one that is open.

        Raises:
            PlanError: It cannot be: see `open_bucket`.
        """
        thread = self._thread
        if thread is None or not thread.is_alive:
            # What another process has open is not ours to close.
            self._open.clear()
            thread = self._thread = StoreThread()
        lent = self._open.get(options)
        if lent is None:
            while len(self._open) >= OPEN_MAX:
                _, oldest = self._open.popitem(last=False)
                thread.run(oldest.bucket.close())
            bucket = thread.run(self._open_one(options))
            lent = LentBucket(bucket, thread)
            self._open[options] = lent
        self._open.move_to_end(options)
        return lent

    async def _open_one(self, options: BucketOptions) -> Bucket:
        return await self._opener(options)

    def close(self) -> None:
        """Close all; the next `lend` opens again."""
        thread, self._thread = self._thread, None
        if thread is not None and thread.is_alive:
            for lent in self._open.values():
                thread.run(lent.bucket.close())
            thread.close()
        self._open.clear()
