"""A small S3 server of our own: objects in memory, one kind of fault for one class of requests.

    with MemoryS3() as s3:
        s3.break_down(Fault.HANG, "copy")
        ... a store at s3.url, any bucket ...
        s3.heal()

It runs in a thread with a loop of its own, so that a test may block.
`tests.fakes.s3.faulty_server` spoils answers of a real server; this one sees the request's body
too, and is quick enough for whole brokers under load.

    class    requests
    copy     PUT of an object or a part; POST that begins or completes an upload; its DELETE
    fetch    GET of a `.log`
    index    GET of a `.rsm-manifest` or `.indexes`
    delete   DELETE of an object, POST ?delete
    list     GET of a bucket: its objects or its uploads
    other    what is left: HEAD, and objects that are no segment's

What happens to a request of the broken class:

    UNAVAILABLE  503 SlowDown, nothing is done
    LATE         done, but the answer comes after `late_s`
    RESET        uploads: half of the body is read, then the connection is reset;
                 others: when half of the answer has gone out
    SHORT        the same, but the connection is closed politely
    WRONG        a bit is flipped: of the body that came (a checksum among the headers is compared
                 then, as S3 does), or of the answer's
    DENIED       403 AccessDenied, nothing is done
    SLOW         bytes of uploads are taken, and of answers are sent, at 10 KB/s until it is healed
    HANG         the request is read and never answered, also after healing
    LOST         done, and the connection is reset without an answer
"""

import asyncio
import base64
import contextlib
import hashlib
import itertools
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import formatdate
from enum import Enum, auto
from socket import SO_LINGER, SOL_SOCKET
from types import TracebackType
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from fastcrc import crc32

SLOW_BYTES_PER_SECOND: Final = 10_000
SEGMENT_SUFFIXES: Final = (".log", ".indexes", ".rsm-manifest")
CLASSES: Final = ("copy", "fetch", "index", "delete", "list")


class Fault(Enum):
    """See the module."""

    UNAVAILABLE = auto()
    LATE = auto()
    RESET = auto()
    SHORT = auto()
    WRONG = auto()
    DENIED = auto()
    SLOW = auto()
    HANG = auto()
    LOST = auto()


@dataclass(slots=True)
class Stored:
    """An object."""

    data: bytes
    modified_s: float


@dataclass(slots=True)
class Upload:
    """An unfinished one."""

    key: str
    began_s: float
    parts: dict[int, bytes] = field(default_factory=dict)


@dataclass(slots=True)
class Request:
    """One that has come; `spoilt` if the fault was applied; `seconds` until it ended."""

    number: int
    kind: str
    method: str
    key: str
    query: dict[str, str]
    headers: dict[str, str]
    began_s: float
    body: bytes = b""
    spoilt: Fault | None = None
    seconds: float | None = None
    sent: int = 0

    @property
    def wanted_bytes(self) -> int:
        """Of a ranged GET."""
        first, _, last = self.headers["range"].removeprefix("bytes=").partition("-")
        return int(last) - int(first) + 1


@dataclass(slots=True)
class _Answer:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


class _CutError(Exception):
    """The connection ends here."""


Hook = Callable[[Request, bool], bool]
"""Called in the server's thread with each request twice: when it is read and not done (False), and
when it is done and not answered (True). Whether to go on; else the request hangs."""


class MemoryS3:
    """See the module.

    Attributes:
        url: Of the server.
        objects, uploads: What it holds; the bucket's name is not looked at.
        requests: All so far, those under way included.
        spoilt: Requests that the present fault was applied to, by class.
        hook: See `Hook`.
        delay_s: Before every answer.
        late_s: See LATE.
        bytes_per_second: Of answers' bodies, for a store that is slow but well; 0: at once.
    """

    def __init__(self) -> None:
        self.url = ""
        self.objects: dict[str, Stored] = {}
        self.uploads: dict[str, Upload] = {}
        self.requests: list[Request] = []
        self.spoilt: Counter[str] = Counter()
        self.hook: Hook | None = None
        self.delay_s = 0.0
        self.late_s = 1.0
        self.bytes_per_second = 0
        self._fault: Fault | None = None
        self._classes: frozenset[str] = frozenset()
        self._numbers = itertools.count()
        self._upload_ids = itertools.count(1)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memory-s3", daemon=True)

    # -- for tests -------------------------------------------------------------------------------

    def break_down(self, fault: Fault, *classes: str) -> None:
        """Spoil all requests of these classes from now on; without any, of all."""
        self.spoilt.clear()
        self._classes = frozenset(classes or (*CLASSES, "other"))
        self._fault = fault

    def heal(self) -> None:
        """No more; what hangs goes on hanging."""
        self._fault = None

    def under_way(self, kind: str) -> int:
        """Requests of a class that have not ended."""
        return sum(one.kind == kind and one.seconds is None for one in self.requests)

    def __enter__(self) -> "MemoryS3":
        self._thread.start()
        assert self._started.wait(60)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._stop)
        self._thread.join(60)

    # -- the thread ------------------------------------------------------------------------------

    def _run(self) -> None:
        with asyncio.Runner() as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=1 << 18)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._started.set()
        await self._over.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        # For the last connections to close.
        await asyncio.sleep(0.02)

    def _stop(self) -> None:
        self._over.set()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._connection(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                await self._exchange(reader, writer)
        except (OSError, asyncio.IncompleteReadError, _CutError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        request = _parse(head, next(self._numbers))
        self.requests.append(request)
        try:
            await self._handle(request, reader, writer)
        finally:
            request.seconds = time.monotonic() - request.began_s

    def _spoils(self, request: Request) -> Fault | None:
        fault = self._fault
        if fault is None or request.kind not in self._classes:
            return None
        if request.spoilt is None:
            request.spoilt = fault
            self.spoilt[request.kind] += 1
        return fault

    async def _handle(
        self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        fault = self._spoils(request)
        size = int(request.headers.get("content-length", "0"))
        uploads = request.kind == "copy" and size > 0
        if uploads and fault in (Fault.RESET, Fault.SHORT):
            await reader.readexactly(size // 2)
            self._cut(writer, reset=fault is Fault.RESET)
        request.body = await self._read_body(request, reader, size, slow=fault is Fault.SLOW)
        if fault is Fault.HANG or not self._goes_on(request, done=False):
            await self._hang(reader)
        if fault is Fault.UNAVAILABLE:
            await self._send(writer, request, _error(503, "SlowDown"))
            return
        if fault is Fault.DENIED:
            await self._send(writer, request, _error(403, "AccessDenied"))
            return
        if uploads and fault is Fault.WRONG:
            request.body = _flipped(request.body)
        answer = self._do(request)
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        if not self._goes_on(request, done=True):
            await self._hang(reader)
        if fault is Fault.LATE:
            await asyncio.sleep(self.late_s)
        if fault is Fault.LOST:
            self._cut(writer, reset=True)
        if fault is Fault.WRONG and not uploads and answer.body:
            answer.body = _flipped(answer.body)
        await self._send(writer, request, answer, fault)

    def _goes_on(self, request: Request, *, done: bool) -> bool:
        return self.hook is None or self.hook(request, done)

    async def _read_body(
        self, request: Request, reader: asyncio.StreamReader, size: int, *, slow: bool
    ) -> bytes:
        if not slow:
            return await reader.readexactly(size)
        body = bytearray()
        while len(body) < size and self._spoils(request) is Fault.SLOW:
            body += await reader.readexactly(min(SLOW_BYTES_PER_SECOND // 20, size - len(body)))
            await asyncio.sleep(0.05)
        return bytes(body + await reader.readexactly(size - len(body)))

    @staticmethod
    async def _hang(reader: asyncio.StreamReader) -> None:
        await reader.read(1)
        raise _CutError

    @staticmethod
    def _cut(writer: asyncio.StreamWriter, *, reset: bool) -> None:
        if reset:
            connection = writer.get_extra_info("socket")
            connection.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        raise _CutError

    async def _send(
        self,
        writer: asyncio.StreamWriter,
        request: Request,
        answer: _Answer,
        fault: Fault | None = None,
    ) -> None:
        headers = {"content-length": str(len(answer.body)), "x-amz-request-id": "1"}
        headers |= answer.headers
        lines = [f"HTTP/1.1 {answer.status} Told", *(f"{k}: {v}" for k, v in headers.items())]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        body = b"" if request.method == "HEAD" else answer.body
        if fault in (Fault.RESET, Fault.SHORT):
            writer.write(body[: len(body) // 2])
            await writer.drain()
            # Else the reset overtakes what has just been sent.
            await asyncio.sleep(0.02)
            self._cut(writer, reset=fault is Fault.RESET)
        while fault is Fault.SLOW and body and self._spoils(request) is Fault.SLOW:
            body = await self._send_some(writer, request, body, SLOW_BYTES_PER_SECOND // 20)
            await asyncio.sleep(0.05)
        while self.bytes_per_second and body:
            body = await self._send_some(writer, request, body, self.bytes_per_second // 50)
            await asyncio.sleep(0.02)
        await self._send_some(writer, request, body, len(body))

    @staticmethod
    async def _send_some(
        writer: asyncio.StreamWriter, request: Request, body: bytes, count: int
    ) -> bytes:
        writer.write(body[:count])
        request.sent += len(body[:count])
        await writer.drain()
        if writer.transport.is_closing():
            raise _CutError
        return body[count:]

    # -- S3 --------------------------------------------------------------------------------------

    def _do(self, request: Request) -> _Answer:
        query, method, key = request.query, request.method, request.key
        problem = _checksum_problem(request)
        if problem is not None:
            return problem
        if not key:
            if method == "POST" and "delete" in query:
                return self._delete_many(request.body)
            if method == "GET" and "uploads" in query:
                return self._list_uploads(query)
            return self._list(query) if method == "GET" else _Answer()
        if method == "POST" and "uploads" in query:
            upload_id = f"upload-{next(self._upload_ids)}"
            self.uploads[upload_id] = Upload(key, time.time())
            return _xml("InitiateMultipartUploadResult", f"<UploadId>{upload_id}</UploadId>")
        if "uploadId" in query:
            return self._upload(request)
        if method == "PUT":
            return self._put(key, request.body)
        if method == "DELETE":
            self.objects.pop(key, None)
            return _Answer(204)
        return self._get(request)

    def _put(self, key: str, data: bytes) -> _Answer:
        self.objects[key] = Stored(data, time.time())
        return _Answer(headers={"etag": _etag(data)})

    def _upload(self, request: Request) -> _Answer:
        upload_id = request.query["uploadId"]
        upload = self.uploads.get(upload_id)
        if upload is None:
            return _error(404, "NoSuchUpload")
        if request.method == "PUT":
            upload.parts[int(request.query["partNumber"])] = request.body
            return _Answer(headers={"etag": _etag(request.body)})
        del self.uploads[upload_id]
        if request.method == "DELETE":
            return _Answer(204)
        self._put(upload.key, b"".join(data for _, data in sorted(upload.parts.items())))
        return _xml("CompleteMultipartUploadResult", f"<ETag>{_etag(b'')}</ETag>")

    def _get(self, request: Request) -> _Answer:
        found = self.objects.get(request.key)
        if found is None:
            return _error(404, "NoSuchKey")
        headers = {
            "etag": _etag(found.data),
            "last-modified": formatdate(found.modified_s, usegmt=True),
        }
        if request.method == "HEAD":
            return _Answer(200, b"", headers | {"content-length": str(len(found.data))})
        wanted = request.headers.get("range")
        if wanted is None:
            return _Answer(200, found.data, headers)
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        begin, end = int(first), min(int(last or len(found.data)) + 1, len(found.data))
        if begin >= len(found.data):
            return _error(416, "InvalidRange")
        headers["content-range"] = f"bytes {begin}-{end - 1}/{len(found.data)}"
        return _Answer(206, found.data[begin:end], headers)

    def _delete_many(self, body: bytes) -> _Answer:
        for element in ElementTree.fromstring(body).iter():
            if element.tag.endswith("Key") and element.text:
                self.objects.pop(element.text, None)
        return _xml("DeleteResult", "")

    def _list(self, query: dict[str, str]) -> _Answer:
        after = query.get("continuation-token", query.get("start-after", ""))
        limit = int(query.get("max-keys", "1000"))
        prefix = query.get("prefix", "")
        delimiter = query.get("delimiter", "")
        objects = dict(self.objects)
        keys = sorted(
            {
                name
                for key in objects
                if key.startswith(prefix) and (name := _told_as(key, prefix, delimiter)) > after
            }
        )
        rows = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(objects[key].data)}</Size>"
            f"<LastModified>{_iso(objects[key].modified_s)}</LastModified></Contents>"
            if key in objects
            else f"<CommonPrefixes><Prefix>{escape(key)}</Prefix></CommonPrefixes>"
            for key in keys[:limit]
        )
        truncated = len(keys) > limit
        if truncated:
            token = escape(keys[limit - 1])
            rows += f"<NextContinuationToken>{token}</NextContinuationToken>"
        rows += f"<IsTruncated>{str(truncated).lower()}</IsTruncated>"
        return _xml("ListBucketResult", rows)

    def _list_uploads(self, query: dict[str, str]) -> _Answer:
        rows = "".join(
            f"<Upload><Key>{escape(one.key)}</Key><UploadId>{upload_id}</UploadId>"
            f"<Initiated>{_iso(one.began_s)}</Initiated></Upload>"
            for upload_id, one in list(self.uploads.items())
            if one.key.startswith(query.get("prefix", ""))
        )
        return _xml("ListMultipartUploadsResult", f"<IsTruncated>false</IsTruncated>{rows}")


def _parse(head: str, number: int) -> Request:
    first, *lines = head.split("\r\n")
    method, target, _ = first.split(" ")
    url = urlsplit(target)
    _, _, key = unquote(url.path.lstrip("/")).partition("/")
    query = dict(parse_qsl(url.query, keep_blank_values=True))
    headers = {
        name.lower(): value.strip()
        for name, separator, value in (line.partition(":") for line in lines)
        if separator
    }
    kind = _class_of(method, key, query)
    return Request(number, kind, method, key, query, headers, time.monotonic())


def _class_of(method: str, key: str, query: dict[str, str]) -> str:
    if not key:
        return {"GET": "list", "POST": "delete"}.get(method, "other")
    if not key.endswith(SEGMENT_SUFFIXES):
        return "other"
    if method == "GET":
        return "fetch" if key.endswith(".log") else "index"
    if method == "DELETE" and "uploadId" not in query:
        return "delete"
    return "other" if method == "HEAD" else "copy"


def _checksum_problem(request: Request) -> _Answer | None:
    body, headers = request.body, request.headers
    if request.method != "PUT":
        return None
    md5 = hashlib.md5(body, usedforsecurity=False).digest()
    crc = int(crc32.iscsi(body)).to_bytes(4, "big")
    for name, right in (("content-md5", md5), ("x-amz-checksum-crc32c", crc)):
        if headers.get(name, "") not in ("", base64.b64encode(right).decode()):
            return _error(400, "BadDigest")
    return None


def _flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def _etag(data: bytes) -> str:
    return f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'


def _told_as(key: str, prefix: str, delimiter: str) -> str:
    """The key, or its common prefix where it has a delimiter behind the prefix."""
    at = key.find(delimiter, len(prefix)) if delimiter else -1
    return key if at < 0 else key[: at + len(delimiter)]


def _iso(seconds: float) -> str:
    text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def _xml(name: str, inner: str, status: int = 200) -> _Answer:
    namespace = ' xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n<{name}{namespace}>{inner}</{name}>'
    return _Answer(status, text.encode(), {"content-type": "application/xml"})


def _error(status: int, code: str) -> _Answer:
    text = f"<Error><Code>{code}</Code><Message>told to</Message></Error>"
    return _Answer(status, text.encode(), {"content-type": "application/xml"})
