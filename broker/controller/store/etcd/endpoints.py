"""The servers of an etcd cluster: one channel each, deadlines, and the next one when one is away.

gRPC's own choice among several addresses is not used: it waits up to two minutes before it tries an
address again, and a server that accepts and never answers looks connected to it. Here every call
has a deadline, a call that misses it makes the next server the one that is asked, and a call is
made only on a channel that is connected: what is not sent has certainly not been carried out.
Certificates that have changed are those of the next connection (`access.py`).

All of it lives in the store's own event loop (see `thread.py`).
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

import grpc
import grpc.aio

from broker.controller.store.etcd import rpc_pb2 as rpc
from broker.controller.store.etcd.access import EtcdAccess, ReadAccess, RenewedAccess
from broker.controller.store.etcd.errors import (
    NO_AUTHENTICATION,
    is_token_refused,
    store_error,
)
from broker.controller.store.latency import Latency
from broker.controller.store.metadata_store import (
    OutcomeUnknownError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
)

LOGGER = logging.getLogger(__name__)

MESSAGE_BYTES_MAX: Final = 64 << 20
"""Longest answer that is taken: a page of 1,000 keys of 12 kB has 12 MB."""

CONNECT_MS: Final = 400.0
"""For a channel to be connected before the next server is tried."""

REQUEST_MS: Final = 2_000.0
"""For an answer before the next server is tried."""

SLOW_MS: Final = 250.0
"""An answer that takes longer is logged, at most every `WARN_EVERY_S`."""

WARN_EVERY_S: Final = 10.0

REFUSED_S: Final = 1.0
"""Before a password that was refused is shown again, unless it has changed."""

RETIRED_S: Final = 5.0
"""Before a channel is closed whose place another one has taken: nobody waits on it any more."""

REASON_MS: Final = 200.0
"""For gRPC to say why a server cannot be reached, which it knows at once."""

NO_CONNECTION: Final = "no connection"

_NO_ADDRESS: Final = "failed to connect to all addresses; last error: "
"""What gRPC puts before the reason."""

LOG_EVERY: Final = 150
"""Servers that fail in a row between two lines of the log, once each of them had one."""

ATTEMPTS: Final = 2
"""How often each server is tried before a call counts as failed."""

CHANNEL_OPTIONS: Final = (
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
    ("grpc.enable_retries", 0),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 2_000),
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.use_local_subchannel_pool", 1),
)

_T = TypeVar("_T")

Metadata: TypeAlias = Sequence[tuple[str, str]]
"""What goes with a call beside its request."""


class ReconnectedError(StoreUnavailableError):
    """The connection is newer than the last look at the store: nothing was sent."""


@dataclass(frozen=True, slots=True)
class Method:
    """A call of etcd's API: its path and the classes of question and answer."""

    path: str
    request: Any
    response: Any


RANGE: Final = Method("/etcdserverpb.KV/Range", rpc.RangeRequest, rpc.RangeResponse)
TXN: Final = Method("/etcdserverpb.KV/Txn", rpc.TxnRequest, rpc.TxnResponse)
COMPACT: Final = Method("/etcdserverpb.KV/Compact", rpc.CompactionRequest, rpc.CompactionResponse)
WATCH: Final = Method("/etcdserverpb.Watch/Watch", rpc.WatchRequest, rpc.WatchResponse)
GRANT: Final = Method(
    "/etcdserverpb.Lease/LeaseGrant", rpc.LeaseGrantRequest, rpc.LeaseGrantResponse
)
REVOKE: Final = Method(
    "/etcdserverpb.Lease/LeaseRevoke", rpc.LeaseRevokeRequest, rpc.LeaseRevokeResponse
)
KEEP_ALIVE: Final = Method(
    "/etcdserverpb.Lease/LeaseKeepAlive", rpc.LeaseKeepAliveRequest, rpc.LeaseKeepAliveResponse
)
STATUS: Final = Method("/etcdserverpb.Maintenance/Status", rpc.StatusRequest, rpc.StatusResponse)
AUTHENTICATE: Final = Method(
    "/etcdserverpb.Auth/Authenticate", rpc.AuthenticateRequest, rpc.AuthenticateResponse
)


class Endpoints:
    """Channels to the servers, of which one at a time is asked. Event loop of the store only.

    Attributes:
        failovers: How often a server was left for the next one.
        breaks: Connections that ended, and calls that failed: another etcd may answer behind each.
        latency: Of calls that were answered.
    """

    def __init__(self, access: EtcdAccess, read_access: ReadAccess | None = None) -> None:
        """`read_access`: reads again what may have changed of it; None: nothing may."""
        if not access.endpoints:
            raise ValueError("etcd without an endpoint")
        self._endpoints = access.endpoints
        self._access = RenewedAccess(access, read_access)
        self._channels = [self._open(endpoint) for endpoint in self._endpoints]
        # What each channel was made with, and the closing of those that others have replaced.
        self._made_with = [access.tls] * len(self._channels)
        self._retiring: set[asyncio.Task[None]] = set()
        self._current = 0
        self._token = ""
        self._logging_in: asyncio.Task[None] | None = None
        self._refusal: _Refusal | None = None
        self._is_open = False
        self.failovers = 0
        # Since the last answer.
        self._in_a_row = 0
        self.breaks = 0
        self.latency = Latency()
        self._warned_s = -math.inf

    def _open(self, endpoint: str) -> grpc.aio.Channel:
        tls = self._access.now.tls
        if tls is None:
            return grpc.aio.insecure_channel(endpoint, options=CHANNEL_OPTIONS)
        credentials = grpc.ssl_channel_credentials(tls.authority, tls.key, tls.certificate)
        return grpc.aio.secure_channel(endpoint, credentials, options=CHANNEL_OPTIONS)

    @property
    def current(self) -> int:
        """Number of the server that is asked now."""
        return self._current

    def name(self, number: int) -> str:
        """Its address."""
        return self._endpoints[number]

    def leave(self, number: int, reason: str) -> None:
        """Ask the next server from now on, unless `number` has been left already."""
        self.breaks += 1
        self._access.look_again()
        if number != self._current or len(self._channels) == 1:
            return
        self._current = (number + 1) % len(self._channels)
        self.failovers += 1
        self._in_a_row += 1
        # Each of them once, and while none answers no more than a line a minute or so.
        if self._in_a_row <= len(self._channels) or self._in_a_row % LOG_EVERY == 0:
            LOGGER.warning(
                "etcd endpoint failed, using the next one endpoint=%s next=%s failed=%d reason=%s",
                self.name(number),
                self.name(self._current),
                self._in_a_row,
                reason,
            )

    async def call(
        self,
        method: Method,
        request: Any,
        *,
        repeat: bool,
        deadline_ms: float = REQUEST_MS,
        unbroken: int | None = None,
    ) -> Any:
        """One question, one answer, from whichever server gives it in time.

        Args:
            method: What is called.
            request: Its message.
            repeat: Ask again when the answer is lost: for what changes nothing, or may be done
                twice.
            deadline_ms: For each attempt.
            unbroken: Send it only while `breaks` is that; None: in any case.

        Raises:
            ReconnectedError: `breaks` is more.
            StoreUnavailableError: No server could be reached, or none answered what may be
                repeated.
            OutcomeUnknownError: It was sent and not answered, and is not to be repeated.
            StoreError: etcd refused it, see `errors`.
        """

        async def ask(channel: grpc.aio.Channel, metadata: Metadata) -> Any:
            send = channel.unary_unary(
                method.path, method.request.SerializeToString, method.response.FromString
            )
            return await send(request, timeout=deadline_ms / 1000, metadata=metadata)

        began_s = asyncio.get_running_loop().time()
        counts = method is not STATUS
        answer = await self.attempt(ask, repeat=repeat, unbroken=unbroken, counts=counts)
        self._took(asyncio.get_running_loop().time() - began_s)
        return answer

    def _took(self, seconds: float) -> None:
        self.latency.count += 1
        self.latency.total_s += seconds
        self.latency.last_s = seconds
        now_s = asyncio.get_running_loop().time()
        if seconds > SLOW_MS / 1000 and now_s - self._warned_s > WARN_EVERY_S:
            self._warned_s = now_s
            LOGGER.warning(
                "etcd is slow endpoint=%s ms=%.0f", self.name(self._current), seconds * 1000
            )

    async def keep_alive(self, lease: int, deadline_ms: float) -> rpc.LeaseKeepAliveResponse:
        """Renew a lease once, on a stream of its own: one that was given up is out of step."""

        async def ask(channel: grpc.aio.Channel, metadata: Metadata) -> rpc.LeaseKeepAliveResponse:
            stream = self.stream(KEEP_ALIVE, channel, metadata, deadline_ms)
            try:
                await stream.write(rpc.LeaseKeepAliveRequest(ID=lease))
                answer = await stream.read()
            finally:
                stream.cancel()
            if not isinstance(answer, rpc.LeaseKeepAliveResponse):
                raise StoreUnavailableError("etcd ended a renewal without an answer")
            return answer

        answer: rpc.LeaseKeepAliveResponse = await self.attempt(ask, repeat=True)
        return answer

    async def attempt(
        self,
        ask: Callable[[grpc.aio.Channel, Metadata], Awaitable[_T]],
        *,
        repeat: bool,
        unbroken: int | None = None,
        counts: bool = True,
    ) -> _T:
        """Run `ask` on a connected channel; on the next one when it fails; see `call`.

        An answer that does not count leaves the number of failures in a row: a member of etcd gives
        it also where it is alone, and answers nothing else.
        """
        failure: StoreError = StoreUnavailableError("no etcd endpoint can be reached")
        renewed = False
        metadata: Metadata = ()
        attempts = ATTEMPTS * len(self._channels)
        while attempts > 0:
            attempts -= 1
            number = self._current
            if not await self._connected(number):
                reason = await self._no_connection(number)
                failure = self._unreachable(number, reason)
                self.leave(number, reason)
                continue
            try:
                metadata = await self.metadata()
                if unbroken not in (None, self.breaks):
                    raise ReconnectedError(f"etcd {self.name(number)} has a new connection")
                answer = await ask(self._channels[number], metadata)
                if counts:
                    self._in_a_row = 0
                return answer
            except grpc.aio.AioRpcError as error:
                details = error.details() or ""
                if self._access.now.username and is_token_refused(details) and not renewed:
                    # The token has ended, etcd was restarted, or authentication was enabled.
                    self.forget_token(metadata)
                    renewed = True
                    attempts += 1
                    continue
                failure = store_error(error.code(), details, self.name(number))
            except ReconnectedError:
                raise
            except StoreUnavailableError as error:
                failure = error
            if isinstance(failure, StoreFullError) or not isinstance(
                failure, OutcomeUnknownError | StoreUnavailableError
            ):
                # Full is the whole etcd: another server says no other.
                raise failure
            self.leave(number, str(failure))
            if isinstance(failure, OutcomeUnknownError) and not repeat:
                raise failure
        if isinstance(failure, OutcomeUnknownError):
            raise StoreUnavailableError(str(failure)) from failure
        raise failure

    async def metadata(self) -> Metadata:
        """What goes with each call: the token of our name, if there is one.

        As other clients of etcd do, a name is kept for later where authentication is not enabled:
        so it can be while brokers run that have one. Calls that need a token at once share the
        request for it: a password costs etcd a tenth of a second of CPU each time.
        """
        if not self._access.now.username or self._is_open:
            return ()
        if not self._token:
            if self._refusal is not None and self._refusal.is_fresh(self._access.now.password):
                raise self._refusal.again()
            if self._logging_in is None:
                self._logging_in = asyncio.get_running_loop().create_task(self._log_in())
                self._logging_in.add_done_callback(self._logged_in)
            await asyncio.shield(self._logging_in)
        return () if self._is_open else (("token", self._token),)

    def _logged_in(self, task: "asyncio.Task[None]") -> None:
        self._logging_in = None
        if not task.cancelled():
            # Perhaps nobody waits for it any more.
            task.exception()

    async def _log_in(self) -> None:
        send = self._channels[self._current].unary_unary(
            AUTHENTICATE.path,
            rpc.AuthenticateRequest.SerializeToString,
            rpc.AuthenticateResponse.FromString,
        )
        shown = self._access.now
        request = rpc.AuthenticateRequest(name=shown.username, password=shown.password)
        try:
            answer = await send(request, timeout=REQUEST_MS / 1000)
        except grpc.aio.AioRpcError as error:
            if NO_AUTHENTICATION not in (error.details() or ""):
                if error.code() is grpc.StatusCode.INVALID_ARGUMENT:
                    self._refusal = _Refusal(error, shown.password)
                    self._access.look_again()
                raise
            LOGGER.warning(
                "etcd has authentication not enabled, no password is used endpoint=%s",
                self.name(self._current),
            )
            self._is_open = True
            return
        self._token = answer.token

    def forget_token(self, refused: Metadata) -> None:
        """Authenticate again before the next call.

        `refused`: what went with the call that was refused; a token that came since is kept.
        """
        if not self._token or refused == (("token", self._token),):
            self._token, self._is_open = "", False

    def stream(
        self,
        method: Method,
        channel: grpc.aio.Channel,
        metadata: Metadata,
        deadline_ms: float | None = None,
    ) -> Any:
        """A stream each way on one server."""
        begin = channel.stream_stream(
            method.path, method.request.SerializeToString, method.response.FromString
        )
        timeout = None if deadline_ms is None else deadline_ms / 1000
        return begin(timeout=timeout, metadata=metadata)

    async def connected_channel(self) -> tuple[int, grpc.aio.Channel]:
        """The server that is asked now, connected.

        Raises:
            StoreUnavailableError: It cannot be reached; the next one is asked from now on.
        """
        number = self._current
        if not await self._connected(number):
            reason = await self._no_connection(number)
            self.leave(number, reason)
            raise self._unreachable(number, reason)
        return number, self._channels[number]

    async def _no_connection(self, number: int) -> str:
        """Why a server cannot be reached, as far as gRPC says it.

        It tells nothing of a channel but that it has failed, and the reason to who calls there: a
        name that nobody knows, a port where nobody listens, a certificate that is not believed.
        """
        channel = self._channels[number]
        if channel.get_state() is grpc.ChannelConnectivity.TRANSIENT_FAILURE:
            ask = channel.unary_unary(
                STATUS.path, STATUS.request.SerializeToString, STATUS.response.FromString
            )
            try:
                await ask(STATUS.request(), timeout=REASON_MS / 1000)
            except grpc.aio.AioRpcError as error:
                if error.code() is grpc.StatusCode.UNAVAILABLE:
                    return (error.details() or NO_CONNECTION).removeprefix(_NO_ADDRESS)
        return NO_CONNECTION

    def _unreachable(self, number: int, reason: str) -> StoreUnavailableError:
        why = "" if reason == NO_CONNECTION else f": {reason}"
        return StoreUnavailableError(f"etcd {self.name(number)} cannot be reached{why}")

    async def _connected(self, number: int) -> bool:
        loop = asyncio.get_running_loop()
        until = loop.time() + CONNECT_MS / 1000
        is_new = False
        while True:
            if self._made_with[number] != self._access.now.tls:
                self._renew(number)
            channel = self._channels[number]
            state = channel.get_state(try_to_connect=True)
            if state is grpc.ChannelConnectivity.READY:
                return True
            if not is_new:
                is_new = True
                self.breaks += 1
            left = until - loop.time()
            if left <= 0 or state is grpc.ChannelConnectivity.SHUTDOWN:
                return False
            try:
                await asyncio.wait_for(channel.wait_for_state_change(state), left)
            except TimeoutError:
                return False

    def _renew(self, number: int) -> None:
        """Connect with the certificates of now, where there is no connection by those of before."""
        former = self._channels[number]
        if former.get_state() is grpc.ChannelConnectivity.READY:
            return
        self._channels[number] = self._open(self.name(number))
        self._made_with[number] = self._access.now.tls
        task = asyncio.get_running_loop().create_task(_retire(former))
        self._retiring.add(task)
        task.add_done_callback(self._retiring.discard)

    async def aclose(self) -> None:
        """Close all channels; what is under way ends."""
        self._access.close()
        retiring = list(self._retiring)
        for task in retiring:
            task.cancel()
        await asyncio.gather(*retiring, *(channel.close() for channel in self._channels))


async def _retire(channel: grpc.aio.Channel) -> None:
    """Close it later; at once when cancelled."""
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(RETIRED_S)
    await channel.close()


class _Refusal:
    """A password that etcd has refused: it costs etcd as much each time as one that is right."""

    def __init__(self, error: grpc.aio.AioRpcError, password: str) -> None:
        self._error = error
        self._password = password
        self._until_s = asyncio.get_running_loop().time() + REFUSED_S

    def is_fresh(self, password: str) -> bool:
        """Whether the same would be refused again."""
        return password == self._password and asyncio.get_running_loop().time() < self._until_s

    def again(self) -> grpc.aio.AioRpcError:
        """The same answer, as an error of its own."""
        error = self._error
        return grpc.aio.AioRpcError(
            error.code(),
            error.initial_metadata(),
            error.trailing_metadata(),
            details=error.details(),
        )
