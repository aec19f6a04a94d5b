"""Factory of aiobotocore clients; the only place that knows their settings.

- Its own retries are off: ours know the total deadline.
- Payloads are not hashed for the signature (one SHA-256 pass less, at 2 CPU s/GB), and checksums
  are sent only where S3 demands them, since older S3-compatible stores refuse the newer headers.
- No `Expect: 100-continue`: some stores never answer it.
"""

import base64
import hashlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from config.object_store import StoreSettings
from tiered.errors import StoreDeniedError
from tiered.object_store.base import StoreDeadlines
from tiered.object_store.moved_bytes import moved
from tiered.object_store.s3.credentials import Credentials, CredentialsSource

if TYPE_CHECKING:
    from aiobotocore.session import AioSession

DEFAULT_REGION: Final = "us-east-1"
"""For stores at an endpoint of their own, most of which take any."""

SLICE_BYTES: Final = 256 * 1024
"""What is handed to the connection at a time: more would be copied more than once."""


class UploadBody:
    """A part's memory as the body of a request, without copying it first.

    Botocore asks for `read`, `seek`, `tell`, `len`; aiohttp iterates.
    """

    def __init__(self, view: memoryview) -> None:
        self._view = view
        self._position = 0

    def __len__(self) -> int:
        return len(self._view)

    def read(self, size: int = -1) -> bytes:
        """A copy; only for checksums that the library insists on."""
        end = len(self._view) if size < 0 else self._position + size
        data = bytes(self._view[self._position : end])
        self._position += len(data)
        return data

    def seek(self, position: int, whence: int = 0) -> int:
        """Set the position."""
        self._position = position + (0, self._position, len(self._view))[whence]
        return self._position

    def tell(self) -> int:
        """The position."""
        return self._position

    async def __aiter__(self) -> AsyncIterator[memoryview]:
        for begin in range(0, len(self._view), SLICE_BYTES):
            piece = self._view[begin : begin + SLICE_BYTES]
            yield piece
            # Asked for the next one, the connection has taken it.
            moved(len(piece))


class MachineCredentials:
    """The default chain: environment, shared files, web identity, instance metadata."""

    def __init__(self, session: "AioSession") -> None:
        self.changes = 0
        self._session = session

    async def current(self) -> Credentials:
        """What the chain finds, refreshed by it before it expires."""
        found = await self._session.get_credentials()
        if found is None:
            raise StoreDeniedError("no credentials: none in the settings, none on the machine")
        frozen = await found.get_frozen_credentials()
        return Credentials(frozen.access_key, frozen.secret_key, frozen.token)

    def refused(self, changes: int) -> bool:
        """It refreshes itself."""
        return False


def new_session() -> "AioSession":
    """Import the library, which takes half a second, and make a session of it."""
    from aiobotocore.session import get_session

    session = get_session()
    session.register_component("data_loader", _loader(session.get_config_variable("data_path")))
    return session


@cache
def _loader(data_path: str | None) -> Any:
    """Keeps what it has read of the library's descriptions of S3: a fifth of a second a time."""
    from botocore.loaders import create_loader

    return create_loader(data_path)


def use_source(session: "AioSession", source: CredentialsSource) -> None:
    """Let the session sign with the current credentials of `source`."""
    from aiobotocore.credentials import AioCredentials
    from botocore.credentials import ReadOnlyCredentials

    class SourceCredentials(AioCredentials):  # type: ignore[misc]  # the library has no types
        async def get_frozen_credentials(self) -> Any:
            return ReadOnlyCredentials(*await source.current())

    class SourceProvider:
        async def load_credentials(self) -> Any:
            return SourceCredentials("unused", "unused")

    session.register_component("credential_provider", SourceProvider())


async def open_client(
    stack: AsyncExitStack, session: "AioSession", settings: StoreSettings, deadlines: StoreDeadlines
) -> Any:
    """A client that lives until the stack is closed."""
    from aiobotocore.config import AioConfig

    config = AioConfig(
        connect_timeout=deadlines.connect_ms / 1000,
        read_timeout=deadlines.read_ms / 1000,
        max_pool_connections=settings.max_connections,
        retries={"total_max_attempts": 1, "mode": "standard"},
        signature_version="s3v4",
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        tcp_keepalive=True,
        s3={
            "payload_signing_enabled": False,
            "addressing_style": "path" if settings.path_style else "virtual",
        },
    )
    client = await stack.enter_async_context(
        session.create_client(
            "s3",
            region_name=settings.region or (DEFAULT_REGION if settings.endpoint_url else None),
            endpoint_url=settings.endpoint_url or None,
            config=config,
        )
    )
    client.meta.events.register_last("before-call.s3", _send_at_once)
    client.meta.events.register_last("before-call.s3.HeadBucket", _mark_redirected)
    if settings.checksum == "md5":
        client.meta.events.register_last("before-call.s3.DeleteObjects", _add_md5)
    return client


def _send_at_once(params: dict[str, Any], **_: object) -> None:
    params["headers"].pop("Expect", None)


def _mark_redirected(params: dict[str, Any], **_: object) -> None:
    """The library asks by this call for the region that a redirection did not name.

    Where an address redirects everything, as one of http does to https, it would ask again for the
    redirection of this call, and so on until the interpreter's stack is full.
    """
    params["context"]["s3_redirect"]["redirected"] = True


def _add_md5(params: dict[str, Any], **_: object) -> None:
    """For stores from before 2024, which demand Content-MD5 in DeleteObjects."""
    digest = hashlib.md5(params["body"], usedforsecurity=False).digest()
    params["headers"]["Content-MD5"] = base64.b64encode(digest).decode()
