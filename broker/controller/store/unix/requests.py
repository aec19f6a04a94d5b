"""Bodies of requests.

GET         key text
RANGE       prefix text, revision u64, after text, limit u32
TXN         three lists, each u16 count and entries: comparisons, then, otherwise
COMPACT     revision u64
GRANT       ttl_ms u64
KEEP_ALIVE  lease u64
REVOKE      lease u64
WATCH       prefix text, first revision u64 (above 0)
PING, PROGRESS, UNWATCH   empty

comparison  key text, target u8 (0 value, 1 version, 2 create, 3 mod revision),
        relation u8 (0 =, 1 !=, 2 <, 3 >), operand: blob for a value, else i64
operation   u8 0: put     key text, value blob, lease u64
        u8 1: delete  key text, prefix flag
        u8 2: get     key text, prefix flag
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from broker.controller.store.metadata_store import (
    Compare,
    Delete,
    Get,
    Operation,
    Put,
    Relation,
    Target,
)
from broker.controller.store.unix.fields import FieldReader, FieldWriter, FrameError

_TARGETS: Final = (Target.VALUE, Target.VERSION, Target.CREATE_REVISION, Target.MOD_REVISION)
_RELATIONS: Final = (Relation.EQUAL, Relation.NOT_EQUAL, Relation.LESS, Relation.GREATER)
_PUT: Final = 0
_DELETE: Final = 1
_GET: Final = 2

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class RangeRequest:
    """See `MetadataStore.range`."""

    prefix: str
    revision: int = 0
    after: str = ""
    limit: int = 0


@dataclass(frozen=True, slots=True)
class TxnRequest:
    """See `MetadataStore.txn`."""

    compare: tuple[Compare, ...]
    then: tuple[Operation, ...]
    otherwise: tuple[Operation, ...]


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """See `MetadataStore.watch`."""

    prefix: str
    first_revision: int


def encode_text(text: str) -> bytes:
    """Body of GET."""
    fields = FieldWriter()
    fields.text(text)
    return fields.done()


def decode_text(body: bytes) -> str:
    """Body of GET.

    Raises:
        FrameError: As all here, for what it is not.
    """
    fields = FieldReader(body)
    text = fields.text()
    fields.end()
    return text


def encode_number(number: int) -> bytes:
    """Body of COMPACT, GRANT, KEEP_ALIVE, REVOKE."""
    fields = FieldWriter()
    fields.u64(number)
    return fields.done()


def decode_number(body: bytes) -> int:
    """Body of COMPACT, GRANT, KEEP_ALIVE, REVOKE."""
    fields = FieldReader(body)
    number = fields.u64()
    fields.end()
    return number


def encode_range(request: RangeRequest) -> bytes:
    """Body of RANGE."""
    fields = FieldWriter()
    fields.text(request.prefix)
    fields.u64(request.revision)
    fields.text(request.after)
    fields.u32(request.limit)
    return fields.done()


def decode_range(body: bytes) -> RangeRequest:
    """Body of RANGE."""
    fields = FieldReader(body)
    request = RangeRequest(fields.text(), fields.u64(), fields.text(), fields.u32())
    fields.end()
    return request


def encode_watch(request: WatchRequest) -> bytes:
    """Body of WATCH."""
    fields = FieldWriter()
    fields.text(request.prefix)
    fields.u64(request.first_revision)
    return fields.done()


def decode_watch(body: bytes) -> WatchRequest:
    """Body of WATCH."""
    fields = FieldReader(body)
    request = WatchRequest(fields.text(), fields.u64())
    fields.end()
    if request.first_revision == 0:
        raise FrameError("a watch from revision 0")
    return request


def encode_txn(request: TxnRequest) -> bytes:
    """Body of TXN.

    Raises:
        TypeError: A value is compared with a number, or a number with bytes.
    """
    fields = FieldWriter()
    fields.u16(len(request.compare))
    for condition in request.compare:
        _write_compare(fields, condition)
    for operations in (request.then, request.otherwise):
        fields.u16(len(operations))
        for operation in operations:
            _write_operation(fields, operation)
    return fields.done()


def decode_txn(body: bytes) -> TxnRequest:
    """Body of TXN."""
    fields = FieldReader(body)
    request = TxnRequest(
        _entries(fields, _read_compare),
        _entries(fields, _read_operation),
        _entries(fields, _read_operation),
    )
    fields.end()
    return request


def _write_compare(fields: FieldWriter, condition: Compare) -> None:
    fields.text(condition.key)
    fields.u8(_TARGETS.index(condition.target))
    fields.u8(_RELATIONS.index(condition.relation))
    operand = condition.operand
    if isinstance(operand, bytes) != (condition.target is Target.VALUE):
        raise TypeError("values are compared with bytes, revisions and versions with numbers")
    if isinstance(operand, bytes):
        fields.blob(operand)
    else:
        fields.i64(operand)


def _read_compare(fields: FieldReader) -> Compare:
    key = fields.text()
    target = _one_of(_TARGETS, fields.u8(), "target")
    relation = _one_of(_RELATIONS, fields.u8(), "relation")
    operand = fields.blob() if target is Target.VALUE else fields.i64()
    return Compare(key, target, relation, operand)


def _write_operation(fields: FieldWriter, operation: Operation) -> None:
    match operation:
        case Put():
            fields.u8(_PUT)
            fields.text(operation.key)
            fields.blob(operation.value)
            fields.u64(operation.lease)
        case Delete():
            fields.u8(_DELETE)
            fields.text(operation.key)
            fields.flag(operation.prefix)
        case Get():
            fields.u8(_GET)
            fields.text(operation.key)
            fields.flag(operation.prefix)


def _read_operation(fields: FieldReader) -> Operation:
    kind = fields.u8()
    if kind == _PUT:
        return Put(fields.text(), fields.blob(), fields.u64())
    if kind == _DELETE:
        return Delete(fields.text(), fields.flag())
    if kind == _GET:
        return Get(fields.text(), fields.flag())
    raise FrameError(f"operation {kind}, which there is not")


def _entries(fields: FieldReader, read: Callable[[FieldReader], _T]) -> tuple[_T, ...]:
    return tuple(read(fields) for _ in range(fields.u16()))


def _one_of(known: Sequence[_T], number: int, what: str) -> _T:
    if number >= len(known):
        raise FrameError(f"{what} {number}, which there is not")
    return known[number]
