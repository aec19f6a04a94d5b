"""The transaction coordinator, as far as partitions ask it."""

from collections.abc import Callable, Collection
from typing import NamedTuple

from broker.transactions.interfaces import PartitionErrors, ProducerIdAndEpoch
from protocol.error_codes import ErrorCode
from storage.types.topic_partition import TopicPartition


class Question(NamedTuple):
    """What was asked."""

    transactional_id: str
    producer: ProducerIdAndEpoch
    partitions: tuple[TopicPartition, ...]
    add: bool
    done: Callable[[PartitionErrors], None]

    def answer(self, code: ErrorCode = ErrorCode.NONE) -> None:
        self.done(dict.fromkeys(self.partitions, code))


class FakeRegistrar:
    """Answers at once with `answers`, one after the other, then `code`; or not, with `hold`."""

    def __init__(self) -> None:
        self.code = ErrorCode.NONE
        self.answers: list[ErrorCode] = []
        self.hold = False
        self.asked: list[Question] = []
        self.held: list[Question] = []

    def add_or_verify(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Collection[TopicPartition],
        *,
        add: bool,
        done: Callable[[PartitionErrors], None],
    ) -> None:
        question = Question(transactional_id, producer, tuple(partitions), add, done)
        self.asked.append(question)
        if self.hold:
            self.held.append(question)
        else:
            question.answer(self.answers.pop(0) if self.answers else self.code)

    def answer_oldest(self, code: ErrorCode = ErrorCode.NONE) -> None:
        self.held.pop(0).answer(code)
