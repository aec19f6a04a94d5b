"""Bodies of answers, changes and failures.

ANSWER to GET                revision u64, item or none
ANSWER to RANGE              revision u64, more flag, items
ANSWER to TXN                succeeded flag, revision u64, u16 count, responses
ANSWER to GRANT, KEEP_ALIVE  number u64: the lease; the milliseconds that it has
ANSWER to COMPACT, REVOKE, PING   empty
CHANGES   revision u64, u32 count, events; without events it is progress
FAILED, ENDED   code u8, number u64 (compacted revision, else 0), message text
REFUSED   message text

item      key text, value blob, create revision u64, mod revision u64, version u64, lease u64
items     u32 count, items
or none   flag, and the item if it is set
response  u8 0: put     previous item or none
      u8 1: delete  u32 keys
      u8 2: get     items
event     u8 0 put, 1 delete; key text; current item or none; previous item or none
"""

from typing import Final

from broker.controller.store.metadata_store import (
    Changes,
    CompactedError,
    DeleteResponse,
    DuplicateKeyError,
    Event,
    EventKind,
    FutureRevisionError,
    GetResponse,
    KeyValue,
    LeaseNotFoundError,
    OutcomeUnknownError,
    PutResponse,
    RangeResult,
    RequestTooLargeError,
    Response,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
    TxnResult,
)
from broker.controller.store.unix.fields import FieldReader, FieldWriter, FrameError

_PUT: Final = 0
_DELETE: Final = 1
_GET: Final = 2

_COMPACTED: Final = 1
_UNAVAILABLE: Final = 6
_CODES: Final[dict[int, type[StoreError]]] = {
    2: FutureRevisionError,
    3: RequestTooLargeError,
    4: DuplicateKeyError,
    5: LeaseNotFoundError,
    _UNAVAILABLE: StoreUnavailableError,
    7: OutcomeUnknownError,
    8: StoreFullError,
}


def encode_item(revision: int, item: KeyValue | None) -> bytes:
    """Answer to GET."""
    fields = FieldWriter()
    fields.u64(revision)
    _write_optional(fields, item)
    return fields.done()


def decode_item(body: bytes) -> tuple[int, KeyValue | None]:
    """Answer to GET: revision and item.

    Raises:
        FrameError: As all here, for what it is not.
    """
    fields = FieldReader(body)
    revision, item = fields.u64(), _read_optional(fields)
    fields.end()
    return revision, item


def encode_range_result(result: RangeResult) -> bytes:
    """Answer to RANGE."""
    fields = FieldWriter()
    fields.u64(result.revision)
    fields.flag(result.more)
    _write_items(fields, result.items)
    return fields.done()


def decode_range_result(body: bytes) -> RangeResult:
    """Answer to RANGE."""
    fields = FieldReader(body)
    revision, more, items = fields.u64(), fields.flag(), _read_items(fields)
    fields.end()
    return RangeResult(revision, items, more)


def encode_txn_result(result: TxnResult) -> bytes:
    """Answer to TXN."""
    fields = FieldWriter()
    fields.flag(result.succeeded)
    fields.u64(result.revision)
    fields.u16(len(result.responses))
    for response in result.responses:
        match response:
            case PutResponse():
                fields.u8(_PUT)
                _write_optional(fields, response.previous)
            case DeleteResponse():
                fields.u8(_DELETE)
                fields.u32(response.deleted)
            case GetResponse():
                fields.u8(_GET)
                _write_items(fields, response.items)
    return fields.done()


def decode_txn_result(body: bytes) -> TxnResult:
    """Answer to TXN."""
    fields = FieldReader(body)
    succeeded, revision = fields.flag(), fields.u64()
    responses = tuple(_read_response(fields) for _ in range(fields.u16()))
    fields.end()
    return TxnResult(succeeded, revision, responses)


def encode_changes(changes: Changes) -> bytes:
    """Body of CHANGES."""
    fields = FieldWriter()
    fields.u64(changes.revision)
    fields.u32(len(changes.events))
    for event in changes.events:
        fields.u8(_PUT if event.kind is EventKind.PUT else _DELETE)
        fields.text(event.key)
        _write_optional(fields, event.current)
        _write_optional(fields, event.previous)
    return fields.done()


def decode_changes(body: bytes) -> Changes:
    """Body of CHANGES."""
    fields = FieldReader(body)
    revision = fields.u64()
    events = tuple(_read_event(fields, revision) for _ in range(fields.u32()))
    fields.end()
    return Changes(revision, events)


def encode_failure(error: StoreError) -> bytes:
    """Body of FAILED and ENDED; an error without a code of its own is `StoreUnavailableError`."""
    fields = FieldWriter()
    if isinstance(error, CompactedError):
        fields.u8(_COMPACTED)
        fields.u64(error.compacted_revision)
    else:
        codes = [code for code, kind in _CODES.items() if type(error) is kind]
        fields.u8(codes[0] if codes else _UNAVAILABLE)
        fields.u64(0)
    fields.text(str(error))
    return fields.done()


def decode_failure(body: bytes) -> StoreError:
    """Body of FAILED and ENDED."""
    fields = FieldReader(body)
    code, number, text = fields.u8(), fields.u64(), fields.text()
    fields.end()
    if code == _COMPACTED:
        return CompactedError(number)
    kind = _CODES.get(code)
    if kind is None:
        raise FrameError(f"failure {code}, which there is not")
    return kind(text)


def _read_response(fields: FieldReader) -> Response:
    kind = fields.u8()
    if kind == _PUT:
        return PutResponse(_read_optional(fields))
    if kind == _DELETE:
        return DeleteResponse(fields.u32())
    if kind == _GET:
        return GetResponse(_read_items(fields))
    raise FrameError(f"response {kind}, which there is not")


def _read_event(fields: FieldReader, revision: int) -> Event:
    kind = fields.u8()
    if kind > _DELETE:
        raise FrameError(f"event {kind}, which there is not")
    what = EventKind.PUT if kind == _PUT else EventKind.DELETE
    return Event(what, fields.text(), revision, _read_optional(fields), _read_optional(fields))


def _write_items(fields: FieldWriter, items: tuple[KeyValue, ...]) -> None:
    fields.u32(len(items))
    for item in items:
        _write_item(fields, item)


def _read_items(fields: FieldReader) -> tuple[KeyValue, ...]:
    return tuple(_read_item(fields) for _ in range(fields.u32()))


def _write_optional(fields: FieldWriter, item: KeyValue | None) -> None:
    fields.flag(item is not None)
    if item is not None:
        _write_item(fields, item)


def _read_optional(fields: FieldReader) -> KeyValue | None:
    return _read_item(fields) if fields.flag() else None


def _write_item(fields: FieldWriter, item: KeyValue) -> None:
    fields.text(item.key)
    fields.blob(item.value)
    fields.u64(item.create_revision)
    fields.u64(item.mod_revision)
    fields.u64(item.version)
    fields.u64(item.lease)


def _read_item(fields: FieldReader) -> KeyValue:
    return KeyValue(
        fields.text(), fields.blob(), fields.u64(), fields.u64(), fields.u64(), fields.u64()
    )
