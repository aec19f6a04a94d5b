"""The router: from a frame to the handler of its API and version, and back to a framed response.

    frame: api key int16, api version int16, correlation id int32, client id nullable string,
           [tag section from the API's first flexible version], body

A handler is one of three kinds, decided once at start-up from its module:

    hot       Produce, Fetch, OffsetCommit: decodes the frame itself, answers in place or parks
    inline    `def handle`: gets the decoded request, returns the response, or an `Answer` that is
              given later (`broker.requests.answer`), or, if it has to run a coroutine, a Future
    worker    `async def handle`: takes one of the `num.io.threads` workers while it runs

Bytes that cannot be decoded, and API keys or versions that are not served, close the connection
with one log line, as in Kafka; only ApiVersions is answered in version 0 whatever was asked
(KIP-511).

Source of the shape: Kafka, KafkaApis.scala.
"""

import asyncio
import importlib
import inspect
import logging
from collections.abc import Callable, Coroutine, Iterable
from struct import Struct
from struct import error as StructError
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from typing_extensions import override

from broker.network.request_channel import Router
from broker.requests.answer import Answer
from broker.requests.api_stats import ApiStats
from broker.requests.forwarded import forwarded
from broker.requests.inter_broker import for_brokers_only
from broker.requests.reply import PARKED, Body, HotResult, Parked, Reply, frame_response
from broker.requests.request_context import RequestContext
from broker.requests.request_limits import check_elements, check_size, elements_max_of
from broker.runtime.errors import ApiError
from broker.runtime.log_value import log_value
from protocol.api_keys import FIRST_FLEXIBLE_VERSION, ApiKey
from protocol.error_codes import ErrorCode
from protocol.errors import DecodeError
from protocol.messages.api_versions import ApiVersion
from protocol.primitives import skip_tagged_fields
from protocol.quick import read_header

if TYPE_CHECKING:
    from broker.network.connection import Connection
    from broker.network.response import Pieces, ResponseSlot
    from broker.services import Services
    from storage.environment.clock import Clock

LOGGER = logging.getLogger(__name__)

HEADER: Final = Struct(">hhih")
"""API key, version, correlation id, length of the client id (-1: null)."""

HEADER_SIZE: Final = 10
_read_header: Final = read_header
API_VERSIONS: Final = int(ApiKey.API_VERSIONS)

HotHandler = Callable[["Connection", RequestContext, memoryview, int], HotResult]


class Api:
    """One served API."""

    __slots__ = (
        "advertised_min",
        "elements_max",
        "first_flexible",
        "forward",
        "handle",
        "hot",
        "is_advertised",
        "is_forwarded",
        "key",
        "max_version",
        "messages",
        "min_version",
        "module_name",
        "name",
        "needs_worker",
        "stats",
    )

    def __init__(self, module: ModuleType) -> None:
        self.key = ApiKey(module.API_KEY)
        self.name = self.key.name
        versions: tuple[int, int] = module.VERSIONS
        self.min_version, self.max_version = versions
        self.advertised_min: int = getattr(module, "ADVERTISED_FROM", self.min_version)
        # A version that no request reaches stands for 'never flexible'.
        self.first_flexible = FIRST_FLEXIBLE_VERSION.get(self.key, 1 << 15)
        self.elements_max = elements_max_of(self.key)
        self.hot: HotHandler | None = None
        self.handle: Callable[..., Any] | None = getattr(module, "handle", None)
        self.needs_worker = inspect.iscoroutinefunction(self.handle)
        self.is_forwarded: bool = getattr(module, "FORWARDED", False)
        # Of a handler that has something to say before the controller; see `_forwarded`.
        self.forward: Callable[..., Any] | None = getattr(module, "forward", None)
        is_for_brokers: bool = getattr(module, "FOR_BROKERS_ONLY", False)
        self.is_advertised = not is_for_brokers
        if is_for_brokers and self.handle is not None:
            self.handle = for_brokers_only(self.handle)
        self.module_name = f"protocol.messages.{self.key.name.lower()}"
        self.messages: Any = None
        self.stats = ApiStats()

    def codec(self) -> Any:
        """The API's generated message module, imported when it is first needed."""
        if self.messages is None:
            self.messages = importlib.import_module(self.module_name)
        return self.messages

    def decode(self, data: memoryview, version: int) -> Any:
        """A request's body as a message, if it is not too much for one request.

        Raises:
            DecodeError: The bytes are malformed, or exceed `broker.requests.request_limits`.
        """
        check_size(self.key, len(data))
        request = self.codec().decode_request(data, version)
        if len(data) > self.elements_max:
            check_elements(request, self.elements_max)
        return request


class KafkaApis(Router):
    """See the module."""

    __slots__ = (
        "_clock",
        "_flags",
        "_now_s",
        "_on_sent",
        "_services",
        "apis",
        "by_key",
        "malformed",
        "unsupported",
    )

    def __init__(self, services: "Services", apis: Iterable[Api], clock: "Clock") -> None:
        self._services = services
        self._clock = clock
        self._now_s = clock.monotonic_s
        self.apis = sorted(apis, key=lambda api: api.key)
        self.by_key: dict[int, Api] = {int(api.key): api for api in self.apis}
        self._flags = bytes(
            int(key in self.by_key and self.by_key[key].needs_worker) for key in range(256)
        )
        self.malformed = 0
        self.unsupported = 0
        # Made once: each look at a method is an object.
        self._on_sent: Callable[[RequestContext], None] = self._observe

    def advertised(self) -> list[ApiVersion]:
        """The APIs that ApiVersions lists, by key."""
        return [
            ApiVersion(api_key=int(a.key), min_version=a.advertised_min, max_version=a.max_version)
            for a in self.apis
            if a.is_advertised
        ]

    # -- Router ----------------------------------------------------------------------------------

    @override
    def needs_worker(self, frame: memoryview) -> bool:
        """Whether the frame is for a handler that may wait for a disk."""
        return frame[0] == 0 and self._flags[frame[1]] == 1

    @override
    def handle(self, connection: "Connection", frame: memoryview) -> None:
        """Decode, handle and answer a frame in place."""
        begun = self._begin(connection, frame)
        if begun is None:
            return
        api, context, position = begun
        try:
            hot = api.hot
            if hot is not None:
                result = hot(connection, context, frame, position)
            else:
                result = self._inline(api, connection, context, frame[position:])
        except DecodeError as error:
            self._malformed(connection, f"{api.name} v{context.api_version}: {error}")
            return
        except Exception:  # noqa: BLE001  because a bug in one handler must not stop the loop
            self._broken(connection, api, context)
            return
        if isinstance(result, Parked) or connection.closed:
            return
        api.stats.observe(self._now_s() * 1000.0 - context.started_ms)
        connection.answer_now(None if result is None else frame_response(context, result))

    @override
    def start(
        self, connection: "Connection", frame: memoryview, slot: "ResponseSlot"
    ) -> "Coroutine[Any, Any, Pieces | None] | None":
        """Decode a frame whose handler takes a worker; the caller runs what is returned."""
        begun = self._begin(connection, frame)
        if begun is None:
            return None
        api, context, position = begun
        try:
            request = api.decode(frame[position:], context.api_version)
        except DecodeError as error:
            self._malformed(connection, f"{api.name} v{context.api_version}: {error}")
            return None
        except Exception:  # noqa: BLE001  because a bug in one decoder must not stop the channel
            self._broken(connection, api, context)
            return None
        return self._work(api, connection, context, request)

    async def _work(
        self, api: Api, connection: "Connection", context: RequestContext, request: Any
    ) -> "Pieces | None":
        assert api.handle is not None
        try:
            body: Body | None = None
            if api.is_forwarded:
                channel = self._services.channel
                is_settled = await channel.settle()
                if is_settled and not channel.is_here:
                    body = await self._forwarded(api, context, request)
                    is_settled = body is not None or await channel.settle(unanswered=True)
                if not is_settled:
                    # As by Kafka without a controller there is no answer; other brokers are tried.
                    connection.close("the metadata store cannot be read")
                    return None
            if body is None:
                response = await api.handle(self._services, context, request)
                body = api.codec().encode_response(response, context.api_version)
        except ApiError as error:
            body = self._error_body(api, context, error)
        except Exception:  # noqa: BLE001  because a bug in one handler must not stop the loop
            self._broken(connection, api, context)
            return None
        if body is None:
            self._broken(connection, api, context)
            return None
        api.stats.observe(self._now_s() * 1000.0 - context.started_ms)
        return frame_response(context, body)

    async def _forwarded(self, api: Api, context: RequestContext, request: Any) -> Body | None:
        """The controller's answer, or the handler's own before it; None: to be handled here."""
        codec = api.codec()
        channel = self._services.channel
        if api.forward is None:
            return await forwarded(channel, codec, context, request)

        async def send(rest: Any) -> Any:
            body = await forwarded(channel, codec, context, rest)
            return None if body is None else codec.decode_response(body, context.api_version)

        response = await api.forward(self._services, request, send)
        if response is None:
            return None
        encoded: Body = codec.encode_response(response, context.api_version)
        return encoded

    async def open_envelope(self, outer: RequestContext, data: memoryview) -> bytes:
        """Handle a request that another broker's client sent, for `handlers.envelope`.

        Returns:
            The answer: header and body, without a size.

        Raises:
            ApiError: INVALID_REQUEST, UNSUPPORTED_VERSION; the request has not been handled.
        """
        try:
            key, version, correlation_id, length = HEADER.unpack_from(data)
            api = self.by_key.get(key)
            if api is None or not api.is_forwarded:
                raise ApiError(ErrorCode.INVALID_REQUEST, f"API key {key} is not forwarded")
            if not api.min_version <= version <= api.max_version:
                raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
            position = HEADER_SIZE + max(length, 0)
            client_id = str(data[HEADER_SIZE:position], "utf-8", "replace") if length >= 0 else None
            is_flexible = version >= api.first_flexible
            if is_flexible:
                position = skip_tagged_fields(data, position)
            request = api.decode(data[position:], version)
        except (DecodeError, IndexError, StructError) as error:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"in the envelope: {error}") from error
        context = RequestContext(
            key,
            version,
            correlation_id,
            client_id,
            outer.connection,
            outer.started_ms,
            is_flexible,
        )
        api.stats.requests += 1
        assert api.handle is not None
        try:
            response = await api.handle(self._services, context, request)
            body = api.codec().encode_response(response, version)
        except ApiError as error:
            body = self._error_body(api, context, error)
            if body is None:
                raise
        return b"".join(frame_response(context, body))[4:]

    # -- the generic path ------------------------------------------------------------------------

    def _inline(
        self, api: Api, connection: "Connection", context: RequestContext, data: memoryview
    ) -> HotResult:
        request = api.decode(data, context.api_version)
        assert api.handle is not None
        try:
            response = api.handle(self._services, context, request)
        except ApiError as error:
            body = self._error_body(api, context, error)
            if body is None:
                raise
            return body
        if isinstance(response, Answer):
            return self._when_given(api, connection, context, response)
        if isinstance(response, asyncio.Future):
            return self._when_done(api, connection, context, response)
        if isinstance(response, bytes):
            return response
        encoded: Body = api.codec().encode_response(response, context.api_version)
        return encoded

    def _when_given(
        self, api: Api, connection: "Connection", context: RequestContext, answer: Answer[Any]
    ) -> Parked:
        """Answer when a parked handler's answer is given, at the end of that loop iteration."""
        reply = self.open_reply(connection, context)
        reply.when_abandoned(answer.abandon)

        def send(response: Any) -> None:
            try:
                body: Body = api.codec().encode_response(response, context.api_version)
            except Exception:  # noqa: BLE001  because the client must not wait for ever
                self._broken(connection, api, context)
            else:
                reply.send_with_others(body)

        answer.wait_for(send)
        return PARKED

    def _when_done(
        self,
        api: Api,
        connection: "Connection",
        context: RequestContext,
        future: "asyncio.Future[Any]",
    ) -> Parked | Body:
        """Answer when a parked handler's future is done; it costs no worker meanwhile."""
        if future.done() and not future.cancelled() and future.exception() is None:
            body: Body = api.codec().encode_response(future.result(), context.api_version)
            return body
        reply = self.open_reply(connection, context)
        reply.when_abandoned(lambda: _cancel(future))

        def finish(done: "asyncio.Future[Any]") -> None:
            if done.cancelled():
                if not connection.closed:
                    # Not because the client has left: then nothing else will answer it.
                    connection.close("request was cancelled")
                return
            try:
                reply.send(api.codec().encode_response(done.result(), context.api_version))
            except ApiError as error:
                body = self._error_body(api, context, error)
                if body is None:
                    self._broken(connection, api, context)
                else:
                    reply.send(body)
            except Exception:  # noqa: BLE001  because the client must not wait for ever
                self._broken(connection, api, context)

        future.add_done_callback(finish)
        return PARKED

    def open_reply(self, connection: "Connection", context: RequestContext) -> Reply:
        """Reserve the request's place in the order of answers, for an answer given later."""
        return Reply(connection.open_slot(), context, self._on_sent)

    def _observe(self, context: RequestContext) -> None:
        stats = self.by_key[context.api_key].stats
        stats.observe(self._now_s() * 1000.0 - context.started_ms)

    # -- headers ---------------------------------------------------------------------------------

    def _begin(
        self, connection: "Connection", frame: memoryview
    ) -> tuple[Api, RequestContext, int] | None:
        """Read the header and count the request: its API, context, and where the body begins.

        None when the connection has been answered, or closed, for what the header says.
        """
        header = _read_header(frame, connection.client_id_raw)
        if header is None:
            self._malformed(connection, "request header is cut off")
            return None
        key, version, correlation_id, length, position, following = header
        api = self.by_key.get(key)
        if api is None or not api.min_version <= version <= api.max_version:
            self._unsupported(connection, key, version, correlation_id)
            return None
        flexible = version >= api.first_flexible
        try:
            if position < 0:
                # Not as in the request before, whose client id is decoded.
                position = self._read_client_id(connection, frame, length)
            if flexible:
                if following == 0:
                    position += 1
                else:
                    position = skip_tagged_fields(frame, position)
        except (DecodeError, IndexError) as error:
            self._malformed(connection, f"request header: {error}")
            return None
        context = RequestContext(
            key,
            version,
            correlation_id,
            connection.client_id,
            connection.info,
            # When it was received: what was received with it, and handled before, counts.
            connection.last_active_ms,
            flexible and key != API_VERSIONS,
        )
        connection.requests += 1
        stats = api.stats
        stats.requests += 1
        stats.request_bytes += len(frame)
        return api, context, position

    @staticmethod
    def _read_client_id(connection: "Connection", frame: memoryview, length: int) -> int:
        """Set `connection.client_id`; decoded once as long as the client does not change it."""
        if length < 0:
            connection.client_id = None
            connection.client_id_raw = b""
            return HEADER_SIZE
        end = HEADER_SIZE + length
        if end > len(frame):
            raise DecodeError("client id is cut off")
        raw = bytes(frame[HEADER_SIZE:end])
        if raw != connection.client_id_raw or connection.client_id is None:
            # Some libraries send whatever bytes the application named: Kafka takes them likewise.
            connection.client_id = raw.decode(errors="replace")
            connection.client_id_raw = raw
        return end

    # -- errors ----------------------------------------------------------------------------------

    def _malformed(self, connection: "Connection", reason: str) -> None:
        self.malformed += 1
        connection.close(f"malformed request: {reason}")

    def _unsupported(
        self, connection: "Connection", key: int, version: int, correlation_id: int
    ) -> None:
        self.unsupported += 1
        if key == API_VERSIONS and key in self.by_key:
            api = self.by_key[key]
            context = RequestContext(
                key, 0, correlation_id, None, connection.info, self._clock.monotonic_ms()
            )
            api.stats.requests += 1
            assert api.handle is not None
            response = api.handle(self._services, context, None)
            connection.answer_now(frame_response(context, api.codec().encode_response(response, 0)))
            return
        connection.close(f"unsupported request: API key {key} version {version}")

    def _error_body(self, api: Api, context: RequestContext, error: ApiError) -> bytes | None:
        """A response with `error` only, for APIs with a top-level error code."""
        api.stats.errors += 1
        codec = api.codec()
        response_class = getattr(codec, _class_name(api.name) + "Response")
        response = response_class()
        if not hasattr(response, "error_code"):
            return None
        response.error_code = int(error.code)
        if hasattr(response, "error_message"):
            response.error_message = error.message
        body: bytes = codec.encode_response(response, context.api_version)
        return body

    def _broken(self, connection: "Connection", api: Api, context: RequestContext) -> None:
        """Log a bug of the broker with its traceback, and close this one connection."""
        api.stats.errors += 1
        LOGGER.error(
            "handler failed api=%s version=%d client=%s address=%s:%d",
            api.name,
            context.api_version,
            log_value(context.client_id or ""),
            context.connection.peer_host,
            context.connection.peer_port,
            exc_info=True,  # noqa: LOG014  because every caller is an exception handler
        )
        connection.close("internal error")


def _class_name(api_name: str) -> str:
    return "".join(word.capitalize() for word in api_name.split("_"))


def _cancel(future: "asyncio.Future[Any]") -> None:
    future.cancel()
