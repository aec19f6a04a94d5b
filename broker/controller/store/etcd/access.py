"""Where etcd is and how to be let in, by files that may change while the store is used.

    a server fails, or refuses the password ──> the files are read again, and nobody waits for that
        as before      it is what it is
        changed        the next token is asked for, the next connection made with what they hold now
        not readable   what there was stays: half of a key and its certificate may be there so far

Passwords are exchanged and certificates end while brokers run. A broker that kept those of its
start would be locked out from then on, all of them at once, until it was started again.
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from broker.runtime.startup_errors import StartupError

LOGGER = logging.getLogger(__name__)

LOOK_AGAIN_S: Final = 1.0
"""Between two readings of the files, however many calls fail."""


@dataclass(frozen=True, slots=True)
class EtcdAccess:
    """Where etcd is and how to be let in.

    Attributes:
        endpoints: `host:port` each, in the order in which they are tried.
        tls: Certificates: of the authority (None: the machine's), own key and own certificate
            (None: no client certificate), all PEM; None: no encryption.
        username: Empty: no authentication.
    """

    endpoints: tuple[str, ...]
    tls: "TlsFiles | None" = None
    username: str = ""
    password: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Contents of PEM files, None where there is none."""

    authority: bytes | None = None
    key: bytes | None = field(default=None, repr=False)
    certificate: bytes | None = None


ReadAccess: TypeAlias = Callable[[], Awaitable[EtcdAccess]]
"""Reads the files; raises StartupError, as at a start. Called in the store's loop."""


class RenewedAccess:
    """See the module. Event loop of the store only.

    Attributes:
        now: As read last.
    """

    def __init__(self, access: EtcdAccess, read: ReadAccess | None = None) -> None:
        """`read`: None where there are no files, or they count as they were."""
        self.now = access
        self._read = read
        self._reading: asyncio.Task[None] | None = None
        self._next_s = -math.inf
        self._complaint = ""

    def look_again(self) -> None:
        """Something was refused or failed: see whether the files have changed."""
        if self._read is None or self._reading is not None:
            return
        loop = asyncio.get_running_loop()
        if loop.time() >= self._next_s:
            self._next_s = loop.time() + LOOK_AGAIN_S
            self._reading = loop.create_task(self._look(self._read))
            self._reading.add_done_callback(self._looked)

    async def _look(self, read: ReadAccess) -> None:
        before = self.now
        try:
            self.now = await read()
        except StartupError as error:
            if str(error) != self._complaint:
                self._complaint = str(error)
                LOGGER.warning("files for etcd not read again, using what they held: %s", error)
            return
        self._complaint = ""
        if self.now != before:
            LOGGER.info(
                "files for etcd have changed password=%s certificates=%s",
                self.now.password != before.password,
                self.now.tls != before.tls,
            )

    def _looked(self, task: "asyncio.Task[None]") -> None:
        self._reading = None
        if not task.cancelled() and (error := task.exception()) is not None:
            LOGGER.warning("files for etcd not read again error=%r", error)

    def close(self) -> None:
        """Read no more."""
        self._read = None
        if self._reading is not None:
            self._reading.cancel()
