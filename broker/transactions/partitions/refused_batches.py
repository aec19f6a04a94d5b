"""Idempotent batches that were refused for now, for those that were sent right behind them.

    client ──1, 2, 3, 4, 5──> broker      five requests in flight: 1 to 4 find it no leader yet,
                                          5 finds it one
    4 answers NOT_LEADER_OR_FOLLOWER, and for 5 the log says OUT_OF_ORDER_SEQUENCE_NUMBER

librdkafka takes the latter for skipped sequence numbers: it begins a new producer epoch, and sends
all five again under it. If the log had 1 already, since it was written and its answer was lost with
the leader, it has it twice then. So 5 is answered as the one before it was: it was not written
either, and is sent again behind the others.

A log that does not know the producer yet takes any sequence number: written there, 5 would be what
the producer begins with, and 1 to 4 were out of order ever after (KAFKA-14359). So what is behind a
batch that was refused has a gap there, too (`is_behind`). That is asked of every batch for
`WATCHED_MS` after such a refusal, and of none otherwise.

A client has five in flight at most. After four such answers, or when it is the refused batch that
comes again and has a gap, the log's own word counts: a producer that has skipped something is told.
"""

from collections import OrderedDict
from struct import Struct
from typing import Final, NamedTuple

from protocol.error_codes import ErrorCode
from protocol.records.batch import HEADER_SIZE, SEQUENCE_COUNT

PRODUCERS_MAX: Final = 1_000
"""Producers in partitions that are remembered; of more, those that were refused first go."""

BEHIND_MAX: Final = 4
"""Batches that may be on their way behind one that is refused."""

WATCHED_MS: Final = 10_000.0
"""What is behind a refused batch was sent before that was answered: it comes within this time."""

_PRODUCER_POSITION: Final = 43
_producer: Final = Struct(">qhi").unpack_from


class Sender(NamedTuple):
    """Who wrote a batch, and where to.

    Attributes:
        topic: Empty where only its id is known, which this broker has not heard of, or knows no
            more: what comes behind may have another id, when the topic was created again.
    """

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int


class SentBatch(NamedTuple):
    """A batch of an idempotent producer."""

    sender: Sender
    base_sequence: int


def sent_batch(topic: str, partition: int, records: memoryview | None) -> SentBatch | None:
    """Of records, which may be malformed; None: they are not idempotent, or there are none."""
    if records is None or len(records) < HEADER_SIZE:
        return None
    producer_id, producer_epoch, base_sequence = _producer(records, _PRODUCER_POSITION)
    if producer_id < 0:
        return None
    return SentBatch(Sender(topic, partition, producer_id, producer_epoch), base_sequence)


class _Refused(NamedTuple):
    code: ErrorCode
    base_sequence: int
    left: int


class RefusedBatches:
    """See the module. For all connections: a producer's requests to a broker take one.

    Attributes:
        watched_until_ms: Until when a batch may be behind a refused one, on the monotonic clock;
            0: none is.
    """

    __slots__ = ("_refused", "watched_until_ms")

    def __init__(self) -> None:
        self._refused: OrderedDict[Sender, _Refused] = OrderedDict()
        self.watched_until_ms = 0.0

    def __len__(self) -> int:
        return len(self._refused)

    def is_watched(self, now_ms: float) -> bool:
        """Whether batches have to be asked for with `is_behind`."""
        if now_ms >= self.watched_until_ms:
            self.watched_until_ms = 0.0
        return self.watched_until_ms > 0

    def is_behind(self, batch: SentBatch) -> bool:
        """Whether it comes behind one that was refused, and has not been answered so too often."""
        before = self._refused.get(self._remembered(batch.sender))
        return before is not None and _is_behind(batch.base_sequence, before.base_sequence)

    def code_for(self, batch: SentBatch, code: ErrorCode, now_ms: float) -> ErrorCode:
        """The code to refuse a batch with; `code` is what it is refused for."""
        sender, base_sequence = batch
        if code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            sender = self._remembered(sender)
            before = self._refused.pop(sender, None)
            if before is None or not _is_behind(base_sequence, before.base_sequence):
                return code
            if before.left > 1:
                self._refused[sender] = before._replace(left=before.left - 1)
            return before.code
        if code.retriable:
            self._refused[sender] = _Refused(code, base_sequence, BEHIND_MAX)
            self._refused.move_to_end(sender)
            self.watched_until_ms = now_ms + WATCHED_MS
            if len(self._refused) > PRODUCERS_MAX:
                self._refused.popitem(last=False)
        return code

    def _remembered(self, sender: Sender) -> Sender:
        """As whom it was refused: perhaps before its topic was known here."""
        return sender if sender in self._refused else sender._replace(topic="")


def _is_behind(base_sequence: int, other: int) -> bool:
    """Whether it is the higher one; after the highest there is comes 0."""
    return 0 < (base_sequence - other) % SEQUENCE_COUNT < SEQUENCE_COUNT // 2
