"""Factory of the object store that the settings name."""

from config.object_store import StoreSettings
from storage.environment.clock import Clock
from storage.environment.filesystem import Filesystem
from storage.environment.randomness import Randomness
from tiered.errors import RemoteStorageError
from tiered.object_store.base import ObjectStore
from tiered.object_store.s3.credentials import (
    CredentialsFile,
    CredentialsSource,
    FixedCredentials,
)


def open_store(
    settings: StoreSettings, filesystem: Filesystem, clock: Clock, randomness: Randomness
) -> ObjectStore:
    """Make a store, ready for calls; no network request is made yet.

    A directory is made if it is missing. A bucket is not: every call on one that is not there
    raises a RemoteStorageError that says so.

    Raises:
        RemoteStorageError: The settings do not name a store, or the directory cannot be made.
    """
    if settings.backend == "filesystem":
        from tiered.object_store.filesystem import FilesystemObjectStore

        if not settings.root:
            raise RemoteStorageError("the object store has no root directory")
        return FilesystemObjectStore(
            filesystem, settings.root, clock, randomness, key_prefix=settings.key_prefix
        )
    if settings.backend == "s3":
        from tiered.object_store.s3.store import S3ObjectStore

        if not settings.bucket:
            raise RemoteStorageError("the object store has no bucket")
        credentials: CredentialsSource | None = None
        if settings.access_key_id:
            credentials = FixedCredentials(settings.access_key_id, settings.secret_access_key)
        elif settings.credentials_file:
            credentials = CredentialsFile(
                filesystem, settings.credentials_file, settings.credentials_profile, clock
            )
        return S3ObjectStore(settings, clock, randomness, credentials=credentials)
    raise RemoteStorageError(f"no such object store: {settings.backend!r}")
