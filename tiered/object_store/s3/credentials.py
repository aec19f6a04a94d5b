"""Credentials for S3: fixed keys, a file that may be rotated, or the default chain.

The file is an AWS credentials file:

    [default]
    aws_access_key_id = ...
    aws_secret_access_key = ...
    aws_session_token = ...          (only for temporary credentials)

It is checked again at most once a second, when something is signed, and read again when its time
of modification has changed. While it is missing or half written, as in the middle of a rotation,
the credentials read before stay in use.

A request that is refused may have been signed before they changed, although the new ones are loaded
by now: so what counts is whether they have changed since it began (`changes`).
"""

import configparser
import logging
from typing import Final, NamedTuple, Protocol

from typing_extensions import override

from storage.environment.clock import Clock
from storage.environment.filesystem import Filesystem
from storage.errors import DiskError
from tiered.errors import StoreDeniedError

LOGGER = logging.getLogger(__name__)

LOOK_INTERVAL_MS: Final = 1_000


class Credentials(NamedTuple):
    """An access key; `token` is None for keys that do not expire."""

    access_key_id: str
    secret_access_key: str
    token: str | None = None

    @override
    def __repr__(self) -> str:
        """Without the secrets: this may come into a log."""
        return f"Credentials({self.access_key_id!r})"


class CredentialsSource(Protocol):
    """Source of the current credentials.

    Attributes:
        changes: How often they have become others.
    """

    changes: int

    async def current(self) -> Credentials:
        """What to sign with now; StoreDeniedError when there is nothing."""
        ...

    def refused(self, changes: int) -> bool:
        """Check for new ones after a refusal. Whether they changed since `changes`."""
        ...


class FixedCredentials:
    """Keys from the settings."""

    def __init__(self, access_key_id: str, secret_access_key: str) -> None:
        self.changes = 0
        self._credentials = Credentials(access_key_id, secret_access_key)

    async def current(self) -> Credentials:
        """Always the same."""
        return self._credentials

    def refused(self, changes: int) -> bool:
        """There are no others."""
        return False


class CredentialsFile:
    """An AWS credentials file; see the module."""

    def __init__(self, filesystem: Filesystem, path: str, profile: str, clock: Clock) -> None:
        self.changes = 0
        self._filesystem = filesystem
        self._path = path
        self._profile = profile
        self._clock = clock
        self._credentials: Credentials | None = None
        self._problem = ""
        self._modified_ms = -1
        self._look_at_ms = -1.0

    async def current(self) -> Credentials:
        """What the file says, or said when it was last whole."""
        now_ms = self._clock.monotonic_ms()
        if now_ms >= self._look_at_ms:
            self._look_at_ms = now_ms + LOOK_INTERVAL_MS
            self._look()
        if self._credentials is None:
            raise StoreDeniedError(self._problem)
        return self._credentials

    def refused(self, changes: int) -> bool:
        """Read the file now, whatever its time says."""
        self._modified_ms = -1
        self._look()
        return self.changes != changes

    def _look(self) -> None:
        try:
            modified_ms = self._filesystem.mtime_ms(self._path)
            if modified_ms == self._modified_ms:
                return
            text = self._filesystem.read_bytes(self._path).decode()
            credentials = parse_credentials(text, self._profile)
        except (DiskError, UnicodeDecodeError, ValueError) as error:
            problem = f"no credentials in {self._path}: {error}"
            if problem != self._problem:
                LOGGER.warning("%s", problem)
            self._problem = problem
            return
        if credentials != self._credentials:
            self.changes += 1
            if self._credentials is not None:
                LOGGER.info("object store credentials reloaded from %s", self._path)
        self._credentials = credentials
        self._problem = ""
        self._modified_ms = modified_ms


def parse_credentials(text: str, profile: str) -> Credentials:
    """Read an AWS credentials file.

    Raises:
        ValueError: No such profile, or a key is missing. The text is not repeated.
    """
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(text)
        section = parser[profile]
        access_key_id = section["aws_access_key_id"].strip()
        secret_access_key = section["aws_secret_access_key"].strip()
        token = section.get("aws_session_token", "").strip() or None
    except KeyError as error:
        raise ValueError(f"profile {profile}: {error.args[0]} is missing") from None
    except configparser.Error as error:
        raise ValueError(f"it is no credentials file ({type(error).__name__})") from None
    if not access_key_id or not secret_access_key:
        raise ValueError(f"profile {profile}: a key is empty")
    return Credentials(access_key_id, secret_access_key, token)
