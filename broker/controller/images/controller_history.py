"""The controllers that have written a store, each with its last write: these identify a copy.

    key                  value
    controller-writes    "<node id> <controller epoch> ..."  put by each transaction of a controller
    controller-history   {"v": 1, "ended": [["<node id> <controller epoch>", <revision>], ...]}
                         controllers of before, and the revision of the last write of each

A store that is given back from a copy has forgotten the writes since, and its revisions go on: its
leases end, others use the etcd, or `etcdutl snapshot restore --bump-revision` raises them. So that
a revision is high enough shows nothing. But a write that was seen is the controller's last or was
followed by others of it, and both can be looked up for as long as the history reaches back.

The history is put with each election, in its transaction: its own revision is the epoch of the one
that is elected. A release that does not put it breaks the chain, which then begins anew.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from broker.controller.images.metadata_records import (
    MetadataFormatError,
    decode_record,
    encode_record,
)
from broker.controller.store.metadata_store import KeyValue

WRITES_KEY: Final = "controller-writes"
"""The key that makes outcomes known; it goes from one controller to the next."""

HISTORY_KEY: Final = "controller-history"

CONTROLLERS_KEYS: Final = "controller-"
"""What both begin with."""

ENDED_MAX: Final = 64
"""Controllers that are remembered: a broker that was away for more elections compares less."""


class Write(NamedTuple):
    """The newest write of a controller.

    Attributes:
        writer: Node id and controller epoch, as in the value.
        revision: Of the store.
    """

    writer: str
    revision: int

    @property
    def epoch(self) -> int:
        """The controller epoch."""
        return int(self.writer.partition(" ")[2])


def newest_write(value: bytes, revision: int) -> Write | None:
    """What the value of `WRITES_KEY` says; None: nothing that can be read."""
    words = value.decode("ascii", "replace").split(" ")
    if len(words) < 2 or not (words[0].isdecimal() and words[1].isdecimal()):
        return None
    return Write(" ".join(words[:2]), revision)


@dataclass(frozen=True, slots=True)
class ControllerHistory:
    """Both keys of a store, as they stand.

    Attributes:
        newest: The newest write of all; None: no controller has written yet.
        ended: Controllers of before, oldest first.
        writes_revision: Modification revision of `WRITES_KEY`; 0: it is not there.
        history_revision: Of `HISTORY_KEY`.
    """

    newest: Write | None = None
    ended: tuple[Write, ...] = ()
    writes_revision: int = 0
    history_revision: int = 0

    @classmethod
    def of(cls, items: Iterable[KeyValue]) -> "ControllerHistory":
        """From the keys of a store, which may be all of them. One that is damaged says nothing."""
        newest: Write | None = None
        ended: tuple[Write, ...] = ()
        revisions = {WRITES_KEY: 0, HISTORY_KEY: 0}
        for item in items:
            if item.key in revisions:
                revisions[item.key] = item.mod_revision
            if item.key == WRITES_KEY:
                newest = newest_write(item.value, item.mod_revision)
            elif item.key == HISTORY_KEY:
                ended = _decode(item.value)
        return cls(newest, ended, revisions[WRITES_KEY], revisions[HISTORY_KEY])

    def at_election(self) -> bytes:
        """The value of `HISTORY_KEY` for the transaction that makes another the controller."""
        newest, ended = self.newest, self.ended
        if newest is not None:
            if ended and ended[-1].writer == newest.writer:
                ended = (*ended[:-1], newest)
            elif self.history_revision == newest.epoch:
                ended = (*ended, newest)
            else:
                ended = (newest,)
        return encode_record({"ended": [list(one) for one in ended[-ENDED_MAX:]]})

    def lacks(self, seen: Write) -> bool:
        """Whether the store has not, and never had, a write that was seen: it is another's copy."""
        newest, ended = self.newest, self.ended
        if newest is None:
            return True
        last = {one.writer: one.revision for one in (*ended, newest)}.get(seen.writer)
        if last is not None:
            return last < seen.revision
        is_whole = bool(ended) and (
            self.history_revision == newest.epoch or ended[-1].writer == newest.writer
        )
        if is_whole and seen.epoch >= ended[0].epoch:
            return True
        # Who wrote it is forgotten; later writes there must be.
        return newest.revision < seen.revision


def _decode(value: bytes) -> tuple[Write, ...]:
    try:
        fields = decode_record(HISTORY_KEY, value)
        ended = tuple(Write(str(writer), int(revision)) for writer, revision in fields["ended"])
        return ended if all(one.epoch for one in ended) else ()
    except (KeyError, MetadataFormatError, TypeError, ValueError):
        return ()
