"""A watch as the store's thread sees it: where it goes on, and what it hands to the data loop.

next     the first revision that is not delivered
resume   where a new connection begins: behind a progress, too, so that it is not compacted
     while nothing happens under the prefix
handed   changes given to the data loop, `taken` by it: no more than BUFFER_EVENTS_MAX lie
     between, whatever the data loop does
"""

from collections.abc import Callable
from typing import Final

from broker.controller.store.metadata_store import Changes, CompactedError, StoreError

BUFFER_EVENTS_MAX: Final = 4_096
"""Changes on their way to the data loop, and again in the watch's queue there; one more and its
owner has to list again."""


class Followed:
    """See the module; in the store's loop, but for `taken`.

    Attributes:
        number: On the connection.
        wanted: Progress of at least this revision is to be delivered; 0: none.
        taken: Changes that the data loop has taken; written there.
    """

    def __init__(
        self,
        prefix: str,
        first_revision: int,
        deliver: Callable[[Changes], None],
        fail: Callable[[StoreError], None],
    ) -> None:
        self.prefix = prefix
        self.resume = first_revision
        self.number = 0
        self.wanted = 0
        self.taken = 0
        self._next = first_revision
        self._handed = 0
        self._deliver = deliver
        self.fail = fail

    def want(self, revision: int) -> None:
        """Deliver the next progress of at least `revision`."""
        self.wanted = max(self.wanted, revision, 1)

    def take(self, changes: Changes) -> bool:
        """Hand over what came; False: the data loop is too far behind, and the watch has ended."""
        revision = changes.revision
        self.resume = max(self.resume, revision + 1)
        if not changes.events:
            if self.wanted and revision >= self.wanted:
                self.wanted = 0
                self._deliver(changes)
            return True
        if revision < self._next:
            return True
        self._next = revision + 1
        self._handed += len(changes.events)
        if self._handed - self.taken > BUFFER_EVENTS_MAX:
            self.fail(CompactedError(revision))
            return False
        self._deliver(changes)
        return True
