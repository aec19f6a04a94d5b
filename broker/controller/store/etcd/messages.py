"""The contract's values as etcd's messages, and back.

Keys are UTF-8 and lie under the store's prefix, which callers never see.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from broker.controller.store.etcd import rpc_pb2 as rpc
from broker.controller.store.metadata_store import (
    Compare,
    Delete,
    DeleteResponse,
    Event,
    EventKind,
    Get,
    GetResponse,
    KeyValue,
    Operation,
    Put,
    PutResponse,
    Relation,
    Response,
    StoreError,
    Target,
    TxnResult,
)

_RELATIONS: Final = {
    Relation.EQUAL: rpc.Compare.EQUAL,
    Relation.NOT_EQUAL: rpc.Compare.NOT_EQUAL,
    Relation.LESS: rpc.Compare.LESS,
    Relation.GREATER: rpc.Compare.GREATER,
}

_ALL_KEYS: Final = b"\0"


class Messages:
    """Requests and answers of one store.

    Args:
        prefix: Before every key, such as `/varve/`.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix.encode()

    def key(self, key: str) -> bytes:
        """The key as etcd has it."""
        return self._prefix + key.encode()

    def span(self, prefix: str, after: str = "") -> tuple[bytes, bytes]:
        """`key` and `range_end` of all keys under `prefix`, those behind `after`."""
        first = self.key(prefix)
        end = _end_of(first)
        if after:
            first = max(first, self.key(after) + b"\0")
        return first or _ALL_KEYS, end

    def item(self, found: rpc.KeyValue) -> KeyValue:
        """A key as it stood."""
        return KeyValue(
            found.key[len(self._prefix) :].decode(),
            found.value,
            found.create_revision,
            found.mod_revision,
            found.version,
            found.lease,
        )

    def items(self, found: Iterable[rpc.KeyValue]) -> tuple[KeyValue, ...]:
        """The keys of an answer."""
        return tuple(map(self.item, found))

    def event(self, event: rpc.Event) -> Event:
        """A change. After a compaction `previous` may be missing for a key that existed."""
        key = event.kv.key[len(self._prefix) :].decode()
        previous = self.item(event.prev_kv) if event.HasField("prev_kv") else None
        revision = event.kv.mod_revision
        if event.type == rpc.Event.DELETE:
            return Event(EventKind.DELETE, key, revision, None, previous)
        return Event(EventKind.PUT, key, revision, self.item(event.kv), previous)

    def txn(
        self,
        compare: Sequence[Compare],
        then: Sequence[Operation],
        otherwise: Sequence[Operation],
    ) -> rpc.TxnRequest:
        """A transaction's request."""
        return rpc.TxnRequest(
            compare=[self._condition(condition) for condition in compare],
            success=[self._operation(operation) for operation in then],
            failure=[self._operation(operation) for operation in otherwise],
        )

    def result(self, answer: rpc.TxnResponse) -> TxnResult:
        """What became of a transaction."""
        return TxnResult(
            answer.succeeded,
            answer.header.revision,
            tuple(self._response(response) for response in answer.responses),
        )

    def _condition(self, condition: Compare) -> rpc.Compare:
        message = rpc.Compare(result=_RELATIONS[condition.relation], key=self.key(condition.key))
        operand = condition.operand
        if isinstance(operand, bytes) != (condition.target is Target.VALUE):
            raise TypeError("values are compared with bytes, revisions and versions with numbers")
        if isinstance(operand, bytes):
            message.target, message.value = rpc.Compare.VALUE, operand
        elif condition.target is Target.VERSION:
            message.target, message.version = rpc.Compare.VERSION, operand
        elif condition.target is Target.CREATE_REVISION:
            message.target, message.create_revision = rpc.Compare.CREATE, operand
        else:
            message.target, message.mod_revision = rpc.Compare.MOD, operand
        return message

    def _operation(self, operation: Operation) -> rpc.RequestOp:
        if isinstance(operation, Put):
            put = rpc.PutRequest(
                key=self.key(operation.key),
                value=operation.value,
                lease=operation.lease,
                prev_kv=True,
            )
            return rpc.RequestOp(request_put=put)
        first, end = self.key(operation.key), b""
        if operation.prefix:
            first, end = self.span(operation.key)
        if isinstance(operation, Delete):
            delete = rpc.DeleteRangeRequest(key=first, range_end=end)
            return rpc.RequestOp(request_delete_range=delete)
        assert isinstance(operation, Get)
        return rpc.RequestOp(request_range=rpc.RangeRequest(key=first, range_end=end))

    def _response(self, response: rpc.ResponseOp) -> Response:
        kind = response.WhichOneof("response")
        if kind == "response_put":
            put = response.response_put
            return PutResponse(self.item(put.prev_kv) if put.HasField("prev_kv") else None)
        if kind == "response_delete_range":
            return DeleteResponse(response.response_delete_range.deleted)
        if kind == "response_range":
            return GetResponse(self.items(response.response_range.kvs))
        raise StoreError("etcd answered an operation with nothing")


def _end_of(prefix: bytes) -> bytes:
    """The first key behind all that start with `prefix`; a zero byte if there is none."""
    stem = prefix.rstrip(b"\xff")
    if not stem:
        return _ALL_KEYS
    return stem[:-1] + bytes((stem[-1] + 1,))
