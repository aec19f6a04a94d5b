"""TxnOffsetCommit (API key 28), versions 0 to 5.

Behaviour:
- Offsets become part of the producer's transaction: they are written to `__consumer_offsets` under
  its id, and are pending until its commit marker is there. Until then OffsetFetch with
  `require_stable` returns UNSTABLE_OFFSET_COMMIT.
- The group's partition must be part of the transaction
  (`broker.transactions.partitions.verification`).
- A member commits under its generation or member epoch; without one it is not checked, as with
  producers without consumer metadata.
- Partitions that do not exist are answered UNKNOWN_TOPIC_OR_PARTITION.

Versions:
- 2   leader epoch; COORDINATOR_LOAD_IN_PROGRESS        KIP-320, KAFKA-7296
- 3   flexible; member, generation, instance id         KIP-447
- 4   TRANSACTION_ABORTABLE                             KIP-890
- 5   adds the group's partition to the transaction     KIP-890
"""

from typing import TYPE_CHECKING

from broker.coordinator.outcome import code_for_clients
from broker.groups.coordinator import OFFSETS_TOPIC
from broker.groups.offsets.transactional import TransactionalOffsetCommit
from broker.requests.answer import Answer
from broker.transactions.interfaces import ProducerIdAndEpoch
from broker.transactions.partitions.verification import (
    TransactionVerifier,
    Verdicts,
    operation_of_txn_offset_commit,
)
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services
    from storage.producers.verification import VerificationGuard

API_KEY = ApiKey.TXN_OFFSET_COMMIT
VERSIONS = (0, 5)
LOADING_IS_KNOWN_FROM_VERSION = 2
NO_SEQUENCE = -1


def handle(
    services: "Services", context: "RequestContext", request: TxnOffsetCommitRequest
) -> "TxnOffsetCommitResponse | Answer[TxnOffsetCommitResponse]":
    """Store offsets of a group as part of a transaction."""
    topics = services.controller.image.topics
    response = TxnOffsetCommitResponse(topics=[])
    commits: list[TransactionalOffsetCommit] = []
    for topic in request.topics:
        found = topics.get(topic.name)
        partition_count = 0 if found is None else len(found.partitions)
        results = []
        for partition in topic.partitions:
            result = TxnOffsetCommitResponsePartition(partition_index=partition.partition_index)
            results.append(result)
            if 0 <= partition.partition_index < partition_count:
                assert found is not None
                commits.append(
                    TransactionalOffsetCommit(topic.name, found.topic_id, partition, result)
                )
            else:
                result.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        response.topics.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=results))
    if not commits:
        return response
    answer: Answer[TxnOffsetCommitResponse] = Answer()
    commit = _Commit(services, context.api_version, request, commits, response, answer)
    offsets = services.replica_manager.leader_of(
        OFFSETS_TOPIC, services.groups.partition_for(request.group_id)
    )
    if offsets is None or not request.group_id:
        # The group coordinator returns the error.
        commit.write(None)
        return answer.result()
    TransactionVerifier(services.registrar, services.clock).verify(
        request.transactional_id,
        ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
        [(offsets, NO_SEQUENCE)],
        operation_of_txn_offset_commit(context.api_version),
        commit.verified,
    )
    return answer.result()


class _Commit:
    """One request: verified, then written, then answered.

    No functions within `handle`: compiled, those that name each other are a circle that is left to
    the garbage collector with each request.
    """

    __slots__ = ("_answer", "_api_version", "_commits", "_request", "_response", "_services")

    def __init__(
        self,
        services: "Services",
        api_version: int,
        request: TxnOffsetCommitRequest,
        commits: list[TransactionalOffsetCommit],
        response: TxnOffsetCommitResponse,
        answer: Answer[TxnOffsetCommitResponse],
    ) -> None:
        self._services = services
        self._api_version = api_version
        self._request = request
        self._commits = commits
        self._response = response
        self._answer = answer

    def verified(self, verdicts: Verdicts) -> None:
        """Write the offsets, if the group's partition is part of the transaction."""
        (verdict,) = verdicts.values()
        if verdict.error is ErrorCode.NETWORK_EXCEPTION:
            self._done(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        elif verdict.error is not ErrorCode.NONE:
            self._done(code_for_clients(verdict.error))
        else:
            self.write(verdict.guard)

    def write(self, guard: "VerificationGuard | None") -> None:
        """Have the group coordinator write the offsets, then answer."""
        self._services.groups.commit_transactional_offsets(
            self._request, self._api_version, self._commits, self._done, guard=guard
        )

    def _done(self, code: ErrorCode) -> None:
        if code is not ErrorCode.NONE:
            if (
                code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
                and self._api_version < LOADING_IS_KNOWN_FROM_VERSION
            ):
                code = ErrorCode.COORDINATOR_NOT_AVAILABLE
            for commit in self._commits:
                commit.response.error_code = code
        self._answer(self._response)
