"""A client of schema registries with Confluent's API: schemas by id, and the latest of a subject.

    GET /schemas/ids/<id>                   {"schema": ..., "schemaType": ..., "references": [...]}
    GET /subjects/<subject>/versions/<v>    the same with "id" and "version"; v: number or latest

No `schemaType` means Avro. References are fetched with it, so that a schema is whole. Answers are
bounded, requests have a deadline, and those that a registry could not answer are repeated a few
times. No redirect is followed: it would carry the password somewhere else.

https://docs.confluent.io/platform/current/schema-registry/develop/api.html
"""

import base64
import http.client
import json
import ssl
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlsplit

from typing_extensions import override

from pipeline.lake.errors import TaskFailedError
from pipeline.lake.schemas.spec import RegistrySpec
from storage.environment.clock import Clock, SystemClock, sleep_ms

ATTEMPTS: Final = 4
PAUSES_MS: Final = (200, 1_000, 3_000)
"""Between attempts."""

MAX_ANSWER_BYTES: Final = 8 * 1024 * 1024

MAX_REFERENCES: Final = 200
"""Of one schema, with those of its references."""

MAX_CACHED_SCHEMAS: Final = 1_000

_READ_BYTES: Final = 64 * 1024

_UNKNOWN: Final = frozenset({40401, 40402, 40403})
"""Error codes: no such subject, version, schema. Another 404 is a wrong address."""


class RegistryError(TaskFailedError):
    """A registry that does not answer, or not with what it should. Names no password.

    No fault of a record: nothing is quarantined and nothing committed.
    """


class SchemaMissingError(RegistryError):
    """The registry works, and does not have what was asked for."""


class RegistryCredentials(NamedTuple):
    """User and password; they are in no text of it."""

    user: str
    password: str

    @override
    def __repr__(self) -> str:
        """Without either."""
        return "RegistryCredentials(...)"


class RegisteredSchema(NamedTuple):
    """A schema with everything that it refers to.

    Attributes:
        schema_id: The registry's.
        kind: AVRO, PROTOBUF or JSON.
        text: Of the schema; for Protobuf a serialized `FileDescriptorProto` in base64.
        references: Texts by the names under which they are referred to; those that others need
            come before them.
    """

    schema_id: int
    kind: str
    text: str
    references: Mapping[str, str]


class RegistryClient:
    """Asks one registry; remembers schemas by id, and ids that it does not have. Not pickled."""

    def __init__(
        self,
        spec: RegistrySpec,
        credentials: RegistryCredentials | None = None,
        *,
        clock: Clock | None = None,
        pause_ms: Callable[[float], None] = sleep_ms,
    ) -> None:
        """Prepare; nothing is asked yet.

        Args:
            spec: Where it is.
            credentials: Take precedence over the spec's file.
            clock: For deadlines.
            pause_ms: Waits between attempts.

        Raises:
            RegistryError: The URL is none, or a file cannot be read.
        """
        self._spec = spec
        self._clock = clock or SystemClock()
        self._pause_ms = pause_ms
        address = urlsplit(spec.url)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise RegistryError("the registry's url must be http://host or https://host")
        if address.username or address.password:
            raise RegistryError("the registry's url must not hold user and password")
        self._secure = address.scheme == "https"
        self._host = address.hostname
        self._port = address.port
        self._path = address.path.rstrip("/")
        self._name = f"{address.scheme}://{address.netloc}{self._path}"
        self._headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        given = credentials or _from_file(spec.credentials_file)
        if given is not None:
            token = base64.b64encode(f"{given.user}:{given.password}".encode()).decode()
            self._headers["Authorization"] = f"Basic {token}"
        self._cache: OrderedDict[int, RegisteredSchema | None] = OrderedDict()

    def by_id(self, schema_id: int) -> RegisteredSchema:
        """The schema that values name.

        Raises:
            SchemaMissingError: There is none of that id.
            RegistryError: The registry cannot be asked.
        """
        if schema_id in self._cache:
            self._cache.move_to_end(schema_id)
        else:
            self._remember(schema_id)
        found = self._cache[schema_id]
        if found is None:
            raise SchemaMissingError(f"{self._name} has no schema {schema_id}")
        return found

    def latest(self, subject: str) -> RegisteredSchema:
        """The newest schema of a subject.

        Raises:
            SchemaMissingError: There is no such subject.
            RegistryError: The registry cannot be asked.
        """
        answer = self._get(_subject_path(subject, "latest"))
        if answer is None:
            raise SchemaMissingError(f"{self._name} has no subject {subject}")
        if not isinstance(answer.get("id"), int):
            raise self._nonsense(f"subject {subject}")
        return self._whole(answer, answer["id"])

    def _remember(self, schema_id: int) -> None:
        answer = self._get(f"/schemas/ids/{schema_id}?format=serialized")
        self._cache[schema_id] = None if answer is None else self._whole(answer, schema_id)
        if len(self._cache) > MAX_CACHED_SCHEMAS:
            self._cache.popitem(last=False)

    def _whole(self, answer: dict[str, Any], schema_id: int) -> RegisteredSchema:
        references: dict[str, str] = {}
        self._refer(answer, references, 0)
        kind = answer.get("schemaType", "AVRO")
        return RegisteredSchema(schema_id, str(kind), _text(self, answer), references)

    def _refer(self, answer: dict[str, Any], found: dict[str, str], depth: int) -> None:
        """Fetch what a schema refers to, deepest first."""
        for reference in answer.get("references") or ():
            try:
                name, subject = str(reference["name"]), str(reference["subject"])
                version = int(reference["version"])
            except (KeyError, TypeError, ValueError):
                raise self._nonsense("a reference") from None
            if name in found:
                continue
            if len(found) >= MAX_REFERENCES or depth >= MAX_REFERENCES:
                raise RegistryError(f"{self._name}: a schema with over {MAX_REFERENCES} references")
            other = self._get(_subject_path(subject, str(version)))
            if other is None:
                raise SchemaMissingError(
                    f"{self._name} has no version {version} of {subject}, which a schema refers to"
                )
            self._refer(other, found, depth + 1)
            found[name] = _text(self, other)

    def _get(self, path: str) -> dict[str, Any] | None:
        """The answer; none where the registry says that it has no such thing."""
        problem = ""
        for attempt in range(ATTEMPTS):
            if attempt:
                self._pause_ms(PAUSES_MS[attempt - 1])
            try:
                status, body = self._ask(path)
            except (OSError, http.client.HTTPException, TimeoutError) as error:
                problem = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
                continue
            if status >= 500 or status == 429:
                problem = f"status {status}"
                continue
            return self._understood(status, body, path)
        raise RegistryError(f"{self._name} did not answer {ATTEMPTS} times, at last: {problem}")

    def _understood(self, status: int, body: bytes, path: str) -> dict[str, Any] | None:
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError):
            answer = None
        if status == 200 and isinstance(answer, dict):
            return answer
        code = answer.get("error_code") if isinstance(answer, dict) else None
        if status == 404 and code in _UNKNOWN:
            return None
        if status in (401, 403):
            raise RegistryError(f"{self._name} refuses user or password (status {status})")
        if status == 200:
            raise self._nonsense(path)
        raise RegistryError(
            f"{self._name} answers {path} with status {status}"
            + (f", error {code}" if isinstance(code, int) else "; is it a schema registry?")
        )

    def _ask(self, path: str) -> tuple[int, bytes]:
        timeout_ms = self._spec.timeout_ms
        until = self._clock.monotonic_ms() + timeout_ms
        connection = self._connection(timeout_ms / 1000)
        try:
            connection.request("GET", self._path + path, headers=self._headers)
            answer = connection.getresponse()
            body = bytearray()
            while data := answer.read(_READ_BYTES):
                body += data
                if len(body) > MAX_ANSWER_BYTES:
                    raise RegistryError(
                        f"{self._name} answers {path} with over {MAX_ANSWER_BYTES} bytes"
                    )
                if self._clock.monotonic_ms() > until:
                    raise TimeoutError(f"no whole answer in {timeout_ms} ms")
            return answer.status, bytes(body)
        finally:
            connection.close()

    def _connection(self, timeout_s: float) -> http.client.HTTPConnection:
        if not self._secure:
            return http.client.HTTPConnection(self._host, self._port, timeout=timeout_s)
        try:
            context = ssl.create_default_context(cafile=self._spec.ca_file)
        except (OSError, ssl.SSLError):
            raise RegistryError(f"no certificates in {self._spec.ca_file}") from None
        return http.client.HTTPSConnection(
            self._host, self._port, timeout=timeout_s, context=context
        )

    def _nonsense(self, where: str) -> RegistryError:
        return RegistryError(f"{self._name} answers {where} with something else than a schema")


def _text(client: RegistryClient, answer: Mapping[str, Any]) -> str:
    text = answer.get("schema")
    if not isinstance(text, str):
        raise client._nonsense("a schema")
    return text


def _subject_path(subject: str, version: str) -> str:
    return f"/subjects/{quote(subject, safe='')}/versions/{version}?format=serialized"


def _from_file(path: str | None) -> RegistryCredentials | None:
    """Two lines: user and password."""
    if path is None:
        return None
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RegistryError(
            f"the registry's credentials cannot be read: {path}: {type(error).__name__}"
        ) from None
    if len(lines) < 2 or not lines[0]:
        raise RegistryError(f"{path} must hold two lines, user and password")
    return RegistryCredentials(lines[0], lines[1])
