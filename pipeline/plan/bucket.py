"""A bucket that is read: where it is, how it is reached, and what reads its segments.

    location                    store
    s3://bucket/a/prefix        objects of the bucket whose names begin with `a/prefix/`
    s3://bucket                 all of them
    file:///a/directory         files below the directory; `/a/directory` is the same

Options travel to executors as they are, and there everybody opens a bucket of his own: key files
are read where the data is decrypted. Nothing is ever written.
"""

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from typing_extensions import override

from config.object_store import StoreSettings
from pipeline.plan.errors import OptionsError, PlanError
from storage.environment.clock import Clock, SystemClock
from storage.environment.filesystem import Filesystem
from storage.environment.local_filesystem import LocalFilesystem
from storage.environment.randomness import Randomness, SystemRandomness
from storage.errors import DiskError
from tiered.format.key_ring import MODULUS_BITS_MIN, KeyPair, KeyRing
from tiered.object_store.base import ObjectStore
from tiered.open_store import open_store
from tiered.storage_manager.disk_threads import DiskThreads
from tiered.storage_manager.manifest_cache import ManifestMemory
from tiered.storage_manager.read import SegmentReader
from tiered.storage_manager.statistics import TierStatistics

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

GONE_MAX: Final = 10_000
"""Segments that are remembered as gone; beyond that all are forgotten."""

MANIFESTS_BYTES_MAX: Final = 16 * 1024 * 1024
"""What the manifests in memory may weigh (`tiered.storage_manager.manifest_cache`)."""

_LOCATION: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<rest>.*)", re.DOTALL)
_BUCKET_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]")
_S3_SCHEMES: Final = ("s3", "s3a")


class BucketOptions(NamedTuple):
    """Address and credentials of a bucket. Pickled to executors; its text hides the secrets.

    Attributes:
        location: See the module.
        endpoint: URL of a store that is not Amazon's.
        region: Of the bucket.
        path_style: The bucket's name stands in the path, not in the host.
        credentials_file: An AWS credentials file, read again when it changes.
        profile: Of that file.
        access_key_id, secret_access_key: Instead of a file. Without any: the machine's own chain
            (environment, shared files, web identity, instance metadata).
        key_pairs: (id, path of the private half in PEM) for encrypted segments.
        key_prefix: In front of every name as it is, in place of the location's path and its `/`;
            for buckets whose prefix ends with no `/`.
        connect_timeout_ms, read_timeout_ms, call_timeout_ms, attempts, max_connections: See
            `config.object_store.StoreSettings`.
    """

    location: str
    endpoint: str = ""
    region: str = ""
    path_style: bool = False
    credentials_file: str = ""
    profile: str = ""
    access_key_id: str = ""
    secret_access_key: str = ""
    key_pairs: tuple[tuple[str, str], ...] = ()
    key_prefix: str | None = None
    connect_timeout_ms: int = 5_000
    read_timeout_ms: int = 10_000
    call_timeout_ms: int = 60_000
    attempts: int = 3
    max_connections: int = 32

    @override
    def __repr__(self) -> str:
        """Without the secrets: this may come into a log."""
        shown = ", ".join(
            f"{name}={value!r}"
            for name, value in self._replace(
                location=_without_secrets(self.location), endpoint=_without_secrets(self.endpoint)
            )
            ._asdict()
            .items()
            if name not in ("access_key_id", "secret_access_key")
            and value != self._field_defaults.get(name)
        )
        return f"BucketOptions({shown})"


class Location(NamedTuple):
    """A location taken apart.

    Attributes:
        backend: "s3" or "filesystem".
        bucket: Of S3.
        root: Directory of the other.
        key_prefix: In front of every name; ends with `/` or is empty.
    """

    backend: str
    bucket: str
    root: str
    key_prefix: str


def parse_location(location: str) -> Location:
    """Take a location apart.

    Raises:
        OptionsError: It names no store.
    """
    shown = _without_secrets(location)
    if location.startswith("/"):
        return Location("filesystem", "", location, "")
    match = _LOCATION.fullmatch(location)
    if match is None and location.startswith("file:/"):
        return Location("filesystem", "", location.removeprefix("file:"), "")
    if match is None:
        raise OptionsError([f"the path {shown!r} is neither s3://bucket/prefix nor file:///dir"])
    scheme, rest = match["scheme"].lower(), match["rest"]
    if scheme == "file":
        if not rest.startswith("/"):
            raise OptionsError([f"the path {shown!r} has a host: a directory is file:///dir"])
        return Location("filesystem", "", rest, "")
    if scheme not in _S3_SCHEMES:
        raise OptionsError([f"the path {shown!r} begins with neither s3:// nor file://"])
    bucket, _, prefix = rest.partition("/")
    mistakes = []
    if not _BUCKET_NAME.fullmatch(bucket):
        mistakes.append(f"the path {shown!r} has no usable name of a bucket")
    prefix = prefix.rstrip("/")
    if any(part in ("", ".", "..") for part in prefix.split("/")) and prefix:
        mistakes.append(f"the prefix {prefix!r} has an empty part, `.` or `..`")
    if mistakes:
        raise OptionsError(mistakes)
    return Location("s3", bucket, "", f"{prefix}/" if prefix else "")


def _without_secrets(location: str) -> str:
    """Without what stands before an `@`: old URLs have a key and its secret there."""
    before, at, after = location.rpartition("@")
    return f"{before.partition('://')[0]}://...@{after}" if at else location


def option_mistakes(options: BucketOptions) -> list[str]:
    """All mistakes in them that can be found without a store or a file."""
    mistakes: list[str] = []
    is_s3 = True
    try:
        is_s3 = parse_location(options.location).backend == "s3"
    except OptionsError as error:
        mistakes += error.mistakes
    if bool(options.access_key_id) != bool(options.secret_access_key):
        mistakes.append("store.accessKeyId and store.secretAccessKey belong together")
    if options.access_key_id and (options.credentials_file or options.profile):
        mistakes.append(
            "store.accessKeyId contradicts store.credentialsFile and store.profile: give one"
        )
    if options.profile and not options.credentials_file:
        mistakes.append("store.profile needs store.credentialsFile, which has it")
    if options.endpoint and not re.fullmatch(r"https?://[^/@]+(/[^@]*)?", options.endpoint):
        shown = _without_secrets(options.endpoint)
        mistakes.append(f"store.endpoint {shown!r} is no http:// or https:// address")
    if not is_s3:
        given = {
            "store.endpoint": options.endpoint,
            "store.region": options.region,
            "store.pathStyle": options.path_style,
            "store.credentialsFile": options.credentials_file,
            "store.accessKeyId": options.access_key_id,
        }
        named = [name for name, value in given.items() if value]
        if named:
            mistakes.append(f"{', '.join(named)}: of no meaning for a directory")
    ids = [pair_id for pair_id, _ in options.key_pairs]
    mistakes += [
        f"keyPairs: {pair_id!r} is no id of a key pair"
        for pair_id in ids
        if not pair_id.strip() or ":" in pair_id
    ]
    twice = {pair_id for pair_id in ids if ids.count(pair_id) > 1}
    mistakes += [f"keyPairs: {pair_id!r} comes twice" for pair_id in sorted(twice)]
    mistakes += [f"keyPairs: {one!r} has no file" for one, path in options.key_pairs if not path]
    return mistakes


class Bucket:
    """An open bucket; belongs to the loop of its first call.

    Attributes:
        store: Lists and reads objects.
        reader: Reads segments, verified.
        threads: For what must not block the loop.
        manifests: Those that the reader has opened.
        gone: Segments that were planned and are not there any more: no history is believed that
            names one.
        key_ring: The key pairs.
    """

    def __init__(
        self,
        store: ObjectStore,
        key_ring: KeyRing,
        *,
        filesystem: Filesystem,
        clock: Clock,
        randomness: Randomness,
    ) -> None:
        self.store = store
        self.threads = DiskThreads()
        self.manifests = ManifestMemory(MANIFESTS_BYTES_MAX)
        self.key_ring = key_ring
        self.gone: set[UUID] = set()
        self.reader = SegmentReader(
            store,
            filesystem,
            self.threads,
            key_ring,
            randomness,
            TierStatistics(clock),
            self.manifests,
        )

    def forget(self, segment: UUID) -> None:
        """A segment is not there any more."""
        self.manifests.forget(segment)
        if len(self.gone) >= GONE_MAX:
            self.gone.clear()
        self.gone.add(segment)

    def misses(self, segments: Iterable[UUID]) -> bool:
        """Whether any of them is known to be gone."""
        return bool(self.gone) and not self.gone.isdisjoint(segments)

    async def close(self) -> None:
        """Give back connections and threads."""
        self.threads.close()
        await self.store.close()

    async def __aenter__(self) -> "Bucket":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def open_bucket(
    options: BucketOptions,
    *,
    filesystem: Filesystem | None = None,
    clock: Clock | None = None,
    randomness: Randomness | None = None,
) -> Bucket:
    """Ready for calls; key files have been read, the store has been asked nothing yet.

    Args:
        options: Which.
        filesystem: The machine's own by default, as the other two.
        clock: For deadlines and counters.
        randomness: For the spread of retries.

    Raises:
        OptionsError: Every mistake in the options.
        PlanError: There is no such directory, or a key file cannot be used.
    """
    mistakes = option_mistakes(options)
    if mistakes:
        raise OptionsError(mistakes)
    filesystem = filesystem or LocalFilesystem()
    clock = clock or SystemClock()
    randomness = randomness or SystemRandomness()
    settings = store_settings(options)
    # A store that is written to makes its directory; a reader must not, for a slip of the pen.
    if settings.backend == "filesystem" and not filesystem.exists(settings.root):
        raise PlanError(f"there is no directory {settings.root}")
    key_ring = load_key_ring(dict(options.key_pairs), filesystem, randomness)
    return Bucket(
        open_store(settings, filesystem, clock, randomness),
        key_ring,
        filesystem=filesystem,
        clock=clock,
        randomness=randomness,
    )


def store_settings(options: BucketOptions) -> StoreSettings:
    """The same in the words of `tiered`."""
    location = parse_location(options.location)
    prefix = location.key_prefix if options.key_prefix is None else options.key_prefix
    return StoreSettings(
        backend=location.backend,
        root=location.root,
        key_prefix=prefix,
        bucket=location.bucket,
        region=options.region,
        endpoint_url=options.endpoint,
        path_style=options.path_style,
        access_key_id=options.access_key_id,
        secret_access_key=options.secret_access_key,
        credentials_file=options.credentials_file,
        credentials_profile=options.profile or "default",
        connect_timeout_ms=options.connect_timeout_ms,
        read_timeout_ms=options.read_timeout_ms,
        call_timeout_ms=options.call_timeout_ms,
        attempts=options.attempts,
        max_connections=options.max_connections,
    )


def load_key_ring(
    paths: Mapping[str, str], filesystem: Filesystem, randomness: Randomness
) -> KeyRing:
    """Key pairs that only unwrap: their private halves.

    Raises:
        PlanError: A file cannot be read, or is no RSA key in PEM; names the pair and the file.
    """
    pairs = {}
    for pair_id, path in paths.items():
        private = _load_private(pair_id, path, filesystem)
        pairs[pair_id] = KeyPair(private.public_key(), private)
    return KeyRing("", pairs, randomness)


def _load_private(pair_id: str, path: str, filesystem: Filesystem) -> "RSAPrivateKey":
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        private = load_pem_private_key(filesystem.read_bytes(path), password=None)
    except DiskError as error:
        raise PlanError(f"key pair {pair_id!r}: {path} cannot be read: {error}") from error
    except (ValueError, TypeError, UnsupportedAlgorithm):
        # Not the library's text, and not as a cause: it may quote what it read.
        raise PlanError(
            f"key pair {pair_id!r}: {path} is not an unencrypted private key in PEM"
        ) from None
    if not isinstance(private, RSAPrivateKey) or private.key_size < MODULUS_BITS_MIN:
        raise PlanError(
            f"key pair {pair_id!r}: {path} is not an RSA key of {MODULUS_BITS_MIN} bits or more"
        )
    return private
