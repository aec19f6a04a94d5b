"""A table's files in S3, or in anything that speaks its protocol and honours If-None-Match.

Botocore, blocking: a task writes one file at a time, to a local scratch file first, so that an
object appears whole by one PUT and a task that dies leaves nothing half written behind. One PUT
takes up to 5 GiB, far above `target_file_bytes`.
"""

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from pipeline.lake.errors import ForeignTableError, TableUnavailableError
from pipeline.lake.stores.table_store import StoredFile
from storage.environment.filesystem import Filesystem
from storage.environment.randomness import Randomness
from storage.errors import DiskError

if TYPE_CHECKING:
    from pipeline.lake.settings.config import StoreConfig

CONNECT_TIMEOUT_S: Final = 5
READ_TIMEOUT_S: Final = 30
ATTEMPTS: Final = 4
COPY_BYTES: Final = 1024 * 1024
DELETE_MAX: Final = 1000
"""Keys of one DeleteObjects."""

REFUSED: Final = ("400", "401", "403")
"""Of who asks: credentials that are wrong, denied or over."""

PRECONDITION_FAILED: Final = "412"
RANGE_BEYOND_END: Final = "416"
NOT_IMPLEMENTED: Final = "501"
CONFLICT: Final = "409"
CONFLICT_ATTEMPTS: Final = 5
"""Of a conditional put while another one of the same key is under way."""


class S3Store:
    """`TableStore` in a bucket; see the module."""

    def __init__(
        self,
        bucket: str,
        prefix: str,
        options: "StoreConfig",
        filesystem: Filesystem,
        randomness: Randomness,
    ) -> None:
        """Nothing is asked of the store yet.

        Args:
            bucket: Its name.
            prefix: Of the table's keys, without `/` at either end; may be empty.
            options: Endpoint and credentials.
            filesystem: For scratch files, in the machine's folder for temporary files.
            randomness: For their names.
        """
        self.uri = f"s3://{bucket}/{prefix}".rstrip("/")
        self._bucket = bucket
        self._prefix = f"{prefix}/" if prefix else ""
        self._filesystem = filesystem
        self._randomness = randomness
        self._options = options
        self._known_client: Any = None

    @property
    def _client(self) -> Any:
        if self._known_client is None:
            self._known_client = _client(self._options)
        return self._known_client

    def scratch_path(self, key: str) -> str:
        """In the machine's folder for temporary files."""
        return f"{tempfile.gettempdir()}/varve-{self._randomness.uuid4().hex}.parquet"

    def publish(self, path: str, key: str) -> int:
        """One PUT of the file, which is removed then."""
        with self._translated_errors():
            size = self._filesystem.file_size(path)
            with open(path, "rb") as body:
                self._client.put_object(
                    Bucket=self._bucket, Key=self._prefix + key, Body=body, ContentLength=size
                )
            self._filesystem.unlink(path)
        return size

    def discard(self, path: str) -> None:
        """Unlink the scratch file."""
        with contextlib.suppress(DiskError):
            self._filesystem.unlink(path, missing_ok=True)

    def put(self, key: str, data: bytes) -> None:
        """One PUT."""
        with self._translated_errors():
            self._client.put_object(Bucket=self._bucket, Key=self._prefix + key, Body=data)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """One PUT with If-None-Match; a lost answer is resolved by a HEAD of the object."""
        from botocore.exceptions import ClientError

        with self._translated_errors():
            for attempt in range(CONFLICT_ATTEMPTS):
                try:
                    self._client.put_object(
                        Bucket=self._bucket, Key=self._prefix + key, Body=data, IfNoneMatch="*"
                    )
                except ClientError as error:
                    status = _status(error)
                    if status == PRECONDITION_FAILED:
                        return self.get(key) == data
                    if status == NOT_IMPLEMENTED:
                        raise ForeignTableError(
                            f"{self.uri}: the store does not know If-None-Match, by which of two "
                            "jobs one commits; keep the table in another store"
                        ) from error
                    if status != CONFLICT or attempt + 1 == CONFLICT_ATTEMPTS:
                        raise
                else:
                    return True
        raise AssertionError("the last attempt raises")

    def get(self, key: str) -> bytes | None:
        """GetObject."""
        from botocore.exceptions import ClientError

        with self._translated_errors():
            try:
                answer = self._client.get_object(Bucket=self._bucket, Key=self._prefix + key)
                data: bytes = answer["Body"].read()
            except ClientError as error:
                if _status(error) == "404" and _code(error) != "NoSuchBucket":
                    return None
                raise
            return data

    def read(self, key: str, start: int, length: int) -> bytes | None:
        """GetObject with a range."""
        from botocore.exceptions import ClientError

        if length <= 0:
            return b""
        with self._translated_errors():
            try:
                answer = self._client.get_object(
                    Bucket=self._bucket,
                    Key=self._prefix + key,
                    Range=f"bytes={start}-{start + length - 1}",
                )
                data: bytes = answer["Body"].read()
            except ClientError as error:
                if _status(error) == RANGE_BEYOND_END:
                    return b""
                if _status(error) == "404" and _code(error) != "NoSuchBucket":
                    return None
                raise
            return data

    @contextmanager
    def local(self, key: str) -> Iterator[str | None]:
        """A copy in the machine's folder for temporary files, `COPY_BYTES` at a time."""
        path = self.scratch_path(key)
        try:
            yield path if self._download(key, path) else None
        finally:
            self.discard(path)

    def _download(self, key: str, path: str) -> bool:
        from botocore.exceptions import ClientError

        with self._translated_errors():
            try:
                answer = self._client.get_object(Bucket=self._bucket, Key=self._prefix + key)
            except ClientError as error:
                if _status(error) == "404" and _code(error) != "NoSuchBucket":
                    return False
                raise
            with open(path, "wb") as file:
                for part in answer["Body"].iter_chunks(COPY_BYTES):
                    file.write(part)
        return True

    def size(self, key: str) -> int | None:
        """HeadObject."""
        from botocore.exceptions import ClientError

        with self._translated_errors():
            try:
                answer = self._client.head_object(Bucket=self._bucket, Key=self._prefix + key)
            except ClientError as error:
                if _status(error) == "404":
                    return None
                raise
            return int(answer["ContentLength"])

    def list(self, prefix: str, *, after: str = "") -> Iterator[StoredFile]:
        """ListObjectsV2, page by page."""
        arguments: dict[str, Any] = {"Bucket": self._bucket, "Prefix": self._prefix + prefix}
        if after:
            arguments["StartAfter"] = self._prefix + after
        cut = len(self._prefix)
        while True:
            with self._translated_errors():
                page = self._client.list_objects_v2(**arguments)
            for found in page.get("Contents", ()):
                modified_ms = int(found["LastModified"].timestamp() * 1000)
                yield StoredFile(found["Key"][cut:], int(found["Size"]), modified_ms)
            if not page.get("IsTruncated"):
                return
            arguments["ContinuationToken"] = page["NextContinuationToken"]

    def scratch_files(self) -> Iterator[StoredFile]:
        """None: they are not in the bucket, and a PUT is whole or not at all."""
        return iter(())

    def delete(self, keys: Sequence[str]) -> None:
        """One by one where there are few, else 1,000 a call."""
        with self._translated_errors():
            for begin in range(0, len(keys), DELETE_MAX):
                some = keys[begin : begin + DELETE_MAX]
                answer = self._client.delete_objects(
                    Bucket=self._bucket,
                    Delete={"Objects": [{"Key": self._prefix + k} for k in some], "Quiet": True},
                )
                if errors := answer.get("Errors"):
                    raise TableUnavailableError(
                        f"{self.uri}: {len(errors)} objects were not deleted, the first: "
                        f"{errors[0].get('Code')}"
                    )

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Errors as ours; after a refusal credentials are loaded again: they may have expired."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            yield
        except ClientError as error:
            if _status(error) in REFUSED:
                self._known_client = None
            raise TableUnavailableError(f"{self.uri}: {error}") from error
        except (BotoCoreError, DiskError, OSError) as error:
            raise TableUnavailableError(f"{self.uri}: {error}") from error


def botocore_session(options: "StoreConfig") -> Any:
    """A session that finds credentials as the settings say."""
    from botocore.session import Session

    session = Session(profile=options.profile or None)
    if options.credentials_file:
        session.set_config_variable("credentials_file", options.credentials_file)
    return session


def _client(options: "StoreConfig") -> Any:
    from botocore.config import Config

    session = botocore_session(options)
    secret = options.secret_access_key
    return session.create_client(
        "s3",
        region_name=options.region or "us-east-1",
        endpoint_url=options.endpoint or None,
        aws_access_key_id=options.access_key_id or None,
        aws_secret_access_key=None if secret is None else secret.get_secret_value(),
        config=Config(
            connect_timeout=CONNECT_TIMEOUT_S,
            read_timeout=READ_TIMEOUT_S,
            retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
            s3={"addressing_style": "path" if options.path_style else "auto"},
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        ),
    )


def _status(error: Any) -> str:
    return str(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", ""))


def _code(error: Any) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))
