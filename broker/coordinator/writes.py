"""Appends under way of a shard's log, and the callers' parts of gathered ones.

Write ──┬── committed ──> apply, done(NONE)
├── refused ────> deferred records are deferred again, or written separately; done(why)
└── unknown ────> the log fails, done(why)
"""

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.coordinator.outcome import OUTCOME_UNKNOWN, TOO_LARGE, Done, KeyValue, code_for_clients
from broker.runtime.timer import TimerHandle
from protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from broker.coordinator.shard_log import ShardLog

logger = logging.getLogger(__name__)

Apply = Callable[[int], None]
"""Applies the records to memory; called with the offset of the first one."""

GATHERED_RECORDS_MAX: Final = 250
"""Most records of a gathered batch: two milliseconds to apply and answer as many commits."""

GATHERED_BYTES_MAX: Final = 128 * 1024
"""Of keys and values: an eighth of what a topic allows by default."""


class Part(NamedTuple):
    """One caller's part of a gathered batch."""

    records: Sequence[KeyValue]
    apply: Apply
    done: Done


class Gathered:
    """A gathered batch; a callback that fails keeps no other from being called."""

    __slots__ = ("_size", "parts", "records")

    def __init__(self) -> None:
        self._size = 0
        self.records: list[KeyValue] = []
        self.parts: list[Part] = []

    def has_room(self, count: int, size: int) -> bool:
        """Whether `count` records of `size` bytes in all fit as well."""
        return (
            len(self.records) + count <= GATHERED_RECORDS_MAX
            and self._size + size <= GATHERED_BYTES_MAX
        )

    def add(self, records: Sequence[KeyValue], size: int, apply: Apply, done: Done) -> None:
        """Add a caller's records, `size` bytes in all."""
        self._size += size
        self.records.extend(records)
        self.parts.append(Part(records, apply, done))

    def apply(self, base_offset: int) -> None:
        """Have each caller change memory."""
        for part in self.parts:
            try:
                part.apply(base_offset)
            except Exception:
                logger.exception("appended record could not be applied offset=%d", base_offset)
            base_offset += len(part.records)

    def done(self, code: ErrorCode) -> None:
        """Call each caller's `done`."""
        for part in self.parts:
            try:
                part.done(code)
            except Exception:
                logger.exception("caller of an append could not be answered code=%s", code.name)


class Write:
    """One append under way; `complete` is its callback.

    Attributes:
        at_append: Whether memory changes at APPEND.
        is_applied: Whether it has changed, so.
        is_written: Whether the log has, or had, the records: then no error is a refusal.
        is_complete: Whether the outcome of the append is known.
        timeout: Answers the caller before that.
        behind: Callers that wait for its outcome, whose own answer is no part of it.
        early: Outcomes that came before the append returned, and have to wait for it.
        held: Deferred records in front of its own, in the same batch.
        records: Its own, if there are deferred ones.
    """

    __slots__ = (
        "_apply",
        "_done",
        "_log",
        "_refused",
        "_too_large",
        "at_append",
        "behind",
        "early",
        "held",
        "is_applied",
        "is_complete",
        "is_written",
        "records",
        "timeout",
    )

    def __init__(
        self,
        log: "ShardLog",
        apply: Apply | None,
        done: Done,
        refused: Callable[[], None] | None,
        too_large: Callable[[], None] | None = None,
    ) -> None:
        """`too_large` is called instead of all else if the batch is too large."""
        self._log = log
        self._apply = apply
        self._done: Done | None = done
        self._refused = refused
        self._too_large = too_large
        self.at_append = self.is_applied = self.is_written = False
        self.early: list[tuple[ErrorCode, int]] | None = None
        self.behind: list[Done] = []
        self.held: list[KeyValue] | None = None
        self.records: Sequence[KeyValue] = ()
        self.is_complete = False
        self.timeout: TimerHandle | None = None

    def complete(self, code: ErrorCode, base_offset: int) -> None:
        """Complete the append, with an error and -1 or with its base offset."""
        if self.early is not None:
            self.early.append((code, base_offset))
            return
        self.is_complete = True
        if self.timeout is not None:
            self.timeout.cancel()
        if code is ErrorCode.NONE:
            if self.held is not None:
                self._log.held_written()
            if self._apply is not None:
                self._apply(base_offset if self.held is None else base_offset + len(self.held))
            done, self._done = self._done, None
            if done is not None:
                done(code)
            if self.behind:
                self._answer_behind(code)
            return
        self._fail(code)

    def appended(self, base_offset: int) -> None:
        """At APPEND: the records were appended at `base_offset`, or refused (-1)."""
        early, self.early = self.early, None
        if base_offset >= 0:
            self.is_applied = True
            apply, self._apply = self._apply, None
            if apply is not None:
                apply(base_offset if self.held is None else base_offset + len(self.held))
        for code, offset in early or ():
            self.complete(code, offset)

    def _fail(self, code: ErrorCode) -> None:
        log = self._log
        held, self.held = self.held, None
        if log.is_closed:
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        elif code in OUTCOME_UNKNOWN or self.is_applied or self.is_written:
            log.fail(code)
        elif held is not None:
            if code in TOO_LARGE and len(held) + len(self.records) > 1:
                log.write_separately(held, self.records, self, code)
                return
            log.hold_again(held, code)
        elif code in TOO_LARGE and self._too_large is not None:
            self._too_large()
            return
        if self._refused is not None:
            self._refused()
        self._answer(code)
        self._answer_behind(code_for_clients(code))

    def _answer_behind(self, code: ErrorCode) -> None:
        behind, self.behind = self.behind, []
        for done in behind:
            try:
                done(code)
            except Exception:
                logger.exception("caller behind an append could not be answered code=%s", code.name)

    def time_out(self) -> None:
        """Answer the caller; the append goes on."""
        self._answer(ErrorCode.REQUEST_TIMED_OUT)

    def break_off(self) -> None:
        """Fail the append, which has raised: its outcome is unknown."""
        self.is_complete = True
        self._answer(ErrorCode.UNKNOWN_SERVER_ERROR)
        self._answer_behind(ErrorCode.UNKNOWN_SERVER_ERROR)

    def _answer(self, code: ErrorCode) -> None:
        done, self._done = self._done, None
        if done is not None:
            done(code_for_clients(code))
