"""What is said of servers that fail, one after the other."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import grpc
import grpc.aio
import pytest

from broker.controller.store.etcd import rpc_pb2 as rpc
from broker.controller.store.etcd.access import EtcdAccess
from broker.controller.store.etcd.endpoints import (
    AUTHENTICATE,
    LOG_EVERY,
    RANGE,
    STATUS,
    TXN,
    Endpoints,
)
from broker.controller.store.metadata_store import (
    StoreDeniedError,
    StoreFullError,
    StoreUnavailableError,
)


def test_while_none_answers_the_log_is_not_flooded(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Every call leaves one server after the other, several times a second."""
    # gRPC lives in one loop of a process, and nothing is called here.
    monkeypatch.setattr(Endpoints, "_open", lambda *_: None)
    endpoints = Endpoints(EtcdAccess(endpoints=("a:1", "b:2", "c:3")))
    caplog.set_level(logging.WARNING)
    for number in range(2 * LOG_EVERY):
        endpoints.leave(number % 3, "no connection")
    assert [line.message.split(" ")[9] for line in caplog.records] == [
        f"failed={count}" for count in (1, 2, 3, LOG_EVERY, 2 * LOG_EVERY)
    ]
    assert endpoints.failovers == 2 * LOG_EVERY


class AloneChannel:
    """To a member of etcd without a majority: it says how it is, and answers nothing else."""

    def get_state(self, *, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        return grpc.ChannelConnectivity.READY

    def unary_unary(self, method: str, *_of_it: object) -> Callable[..., Awaitable[None]]:
        async def answer(_request: object, **_options: object) -> None:
            if method != STATUS.path:
                metadata = grpc.aio.Metadata()
                raise grpc.aio.AioRpcError(
                    grpc.StatusCode.UNAVAILABLE, metadata, metadata, details="no leader"
                )

        return answer


async def test_a_member_that_is_alone_floods_no_log_by_what_it_answers(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A broker that hears nothing of its lease asks it for its status between two attempts."""
    monkeypatch.setattr(Endpoints, "_open", lambda *_: AloneChannel())
    endpoints = Endpoints(EtcdAccess(endpoints=("a:1", "b:2", "c:3")))
    caplog.set_level(logging.WARNING)
    for _ in range(10):
        await endpoints.call(STATUS, STATUS.request(), repeat=True)
        with pytest.raises(StoreUnavailableError):
            await endpoints.call(RANGE, RANGE.request(), repeat=True)
    assert len(caplog.records) == 3


class FullChannel:
    """To an etcd whose quota is used up."""

    def get_state(self, *, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        return grpc.ChannelConnectivity.READY

    def unary_unary(self, *_of_the_method: object) -> Callable[..., Awaitable[None]]:
        async def refuse(_request: object, **_options: object) -> None:
            metadata = grpc.aio.Metadata()
            raise grpc.aio.AioRpcError(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                metadata,
                metadata,
                details="etcdserver: mvcc: database space exceeded",
            )

        return refuse


async def test_an_etcd_that_is_full_says_so_and_is_left_for_no_other_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else it was asked again behind a connection that counts as new, which is refused."""
    monkeypatch.setattr(Endpoints, "_open", lambda *_: FullChannel())
    endpoints = Endpoints(EtcdAccess(endpoints=("a:1", "b:2")))
    with pytest.raises(StoreFullError, match="etcd a:1: etcdserver: mvcc: database space exceeded"):
        await endpoints.call(TXN, TXN.request(), repeat=False, unbroken=endpoints.breaks)
    assert (endpoints.failovers, endpoints.breaks) == (0, 0)


class FailedChannel:
    """A channel that does not get a connection; a call on it fails with these details."""

    def __init__(self, details: str) -> None:
        self._details = details

    def get_state(self, *, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        return grpc.ChannelConnectivity.TRANSIENT_FAILURE

    async def wait_for_state_change(self, _state: grpc.ChannelConnectivity) -> None:
        raise TimeoutError

    def unary_unary(self, *_of_the_method: object) -> Callable[..., Awaitable[None]]:
        async def fail(_request: object, **options: float) -> None:
            assert options["timeout"] < 1
            metadata = grpc.aio.Metadata()
            raise grpc.aio.AioRpcError(
                grpc.StatusCode.UNAVAILABLE, metadata, metadata, details=self._details
            )

        return fail


@pytest.mark.parametrize(
    ("details", "reason"),
    [
        (
            "failed to connect to all addresses; last error: UNKNOWN: ipv4:10.0.0.1:2379: "
            "Tls handshake failed: CERTIFICATE_VERIFY_FAILED",
            "etcd a:1 cannot be reached: UNKNOWN: ipv4:10.0.0.1:2379: "
            "Tls handshake failed: CERTIFICATE_VERIFY_FAILED",
        ),
        (
            "errors resolving a:1: Domain name not found",
            "etcd a:1 cannot be reached: errors resolving a:1: Domain name not found",
        ),
        ("", "etcd a:1 cannot be reached"),
    ],
)
async def test_why_no_server_is_reached_is_said(
    monkeypatch: pytest.MonkeyPatch, details: str, reason: str
) -> None:
    """A certificate that is not believed looks like a server that is away, but for gRPC's words."""
    monkeypatch.setattr(Endpoints, "_open", lambda *_: FailedChannel(details))
    endpoints = Endpoints(EtcdAccess(endpoints=("a:1",)))
    with pytest.raises(StoreUnavailableError) as refused:
        await endpoints.connected_channel()
    assert str(refused.value) == reason

    async def never(*_of_a_call: object) -> None:
        raise AssertionError("nothing is asked of a server that is not reached")

    with pytest.raises(StoreUnavailableError) as refused:
        await endpoints.attempt(never, repeat=True)
    assert str(refused.value) == reason


class TokenChannel:
    """To an etcd whose tokens end: it takes the newest one alone."""

    def __init__(self) -> None:
        self.given = 0

    def get_state(self, *, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        return grpc.ChannelConnectivity.READY

    def unary_unary(self, method: str, *_of_it: object) -> Callable[..., Awaitable[object]]:
        async def answer(
            _request: object, *, metadata: Sequence[tuple[str, str]] = (), **_options: object
        ) -> object:
            await asyncio.sleep(0)
            if method == AUTHENTICATE.path:
                self.given += 1
                return rpc.AuthenticateResponse(token=f"token-{self.given}")
            if dict(metadata).get("token") != f"token-{self.given}":
                nothing = grpc.aio.Metadata()
                raise grpc.aio.AioRpcError(
                    grpc.StatusCode.UNAUTHENTICATED, nothing, nothing, details="invalid auth token"
                )
            return rpc.StatusResponse(version="3.6.0")

        return answer


async def test_calls_that_need_a_token_at_once_share_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each password costs etcd a tenth of a second, and renewals of leases wait behind that."""
    channel = TokenChannel()
    monkeypatch.setattr(Endpoints, "_open", lambda *_: channel)
    endpoints = Endpoints(EtcdAccess(endpoints=("a:1",), username="varve", password="secret"))

    async def ask() -> None:
        await endpoints.call(STATUS, STATUS.request(), repeat=True)

    await asyncio.gather(*(ask() for _ in range(10)))
    assert channel.given == 1
    # The token ends: all are refused, and the first of them gets another one for all.
    channel.given += 1
    await asyncio.gather(*(ask() for _ in range(10)))
    assert channel.given == 3


async def test_a_late_refusal_takes_no_newer_token(monkeypatch: pytest.MonkeyPatch) -> None:
    channel = TokenChannel()
    monkeypatch.setattr(Endpoints, "_open", lambda *_: channel)
    endpoints = Endpoints(EtcdAccess(endpoints=("a:1",), username="varve", password="secret"))
    old = await endpoints.metadata()
    endpoints.forget_token(old)
    new = await endpoints.metadata()
    assert new != old
    endpoints.forget_token(old)
    endpoints.forget_token(())
    assert await endpoints.metadata() == new
    assert channel.given == 2


class RefusingChannel:
    """To an etcd that knows one password."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def get_state(self, *, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        return grpc.ChannelConnectivity.READY

    def unary_unary(self, method: str, *_of_it: object) -> Callable[..., Awaitable[object]]:
        async def answer(request: rpc.AuthenticateRequest, **_options: object) -> object:
            if method != AUTHENTICATE.path:
                return rpc.StatusResponse(version="3.6.0")
            self.shown.append(request.password)
            if request.password != "new":
                nothing = grpc.aio.Metadata()
                raise grpc.aio.AioRpcError(
                    grpc.StatusCode.INVALID_ARGUMENT,
                    nothing,
                    nothing,
                    details="etcdserver: authentication failed, invalid user ID or password",
                )
            return rpc.AuthenticateResponse(token="token")

        return answer


async def test_a_refused_password_is_not_shown_again_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A wrong one costs etcd as much as a right one, and renewals wait behind it."""
    channel = RefusingChannel()
    monkeypatch.setattr(Endpoints, "_open", lambda *_: channel)
    access = EtcdAccess(endpoints=("a:1",), username="varve", password="old")
    exchanged = asyncio.Event()

    async def read() -> EtcdAccess:
        await exchanged.wait()
        return replace(access, password="new")

    endpoints = Endpoints(access, read)
    for _ in range(2):
        with pytest.raises(StoreDeniedError, match="invalid user ID or password"):
            await endpoints.call(STATUS, STATUS.request(), repeat=True)
    assert channel.shown == ["old"]
    exchanged.set()
    for _ in range(3):
        await asyncio.sleep(0)
    await endpoints.call(STATUS, STATUS.request(), repeat=True)
    assert channel.shown == ["old", "new"]
