"""A schema registry on loopback with Confluent's API, as far as clients and serializers use it.

    POST /subjects/<s>/versions            register: {"id"}
    POST /subjects/<s>                     look up: {"subject", "id", "version", "schema"}
    GET  /subjects                         names
    GET  /subjects/<s>/versions            numbers
    GET  /subjects/<s>/versions/<v>        one, or `latest`
    GET  /schemas/ids/<id>                 by id

Protobuf's schemas are kept as the serializer sends them, in base64.
"""

import base64
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit


class FakeSchemaRegistry:
    """Schemas in memory.

    Attributes:
        url: Where it listens.
        requests: How often each path was asked for.
        user, password: Demanded, if there is a user.
        faults: Answers (status, body) that are given first, one to each request; a status of 0
            closes the connection.
        before: Called with each path, before it is answered.
    """

    def __init__(self) -> None:
        self.url = ""
        self.requests: Counter[str] = Counter()
        self.user = ""
        self.password = ""
        self.faults: list[tuple[int, bytes]] = []
        self.before: Callable[[str], None] = lambda path: None
        self._schemas: list[dict[str, Any]] = []
        self._subjects: dict[str, list[int]] = {}
        self._lock = threading.Lock()

    def register(
        self,
        subject: str,
        schema: str,
        kind: str = "AVRO",
        references: list[dict[str, Any]] | None = None,
    ) -> int:
        """The id of a schema under a subject, which may have it already."""
        entry = {"schema": schema, "schemaType": kind, "references": references or []}
        with self._lock:
            if entry not in self._schemas:
                self._schemas.append(entry)
            schema_id = self._schemas.index(entry) + 1
            versions = self._subjects.setdefault(subject, [])
            if schema_id not in versions:
                versions.append(schema_id)
        return schema_id

    def answer(self, method: str, path: str, body: Any, token: str) -> tuple[int, Any]:
        """Status and JSON."""
        wanted = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
        if self.user and token != f"Basic {wanted}":
            return 401, {"error_code": 401, "message": "Unauthorized"}
        match (method, [unquote(part) for part in path.strip("/").split("/")]):
            case "POST", ["subjects", subject, "versions"]:
                schema_id = self.register(subject, *_parts(body))
                return 200, {"id": schema_id}
            case "POST", ["subjects", subject]:
                return self._look_up(subject, body)
            case "GET", ["subjects"]:
                return 200, list(self._subjects)
            case "GET", ["subjects", subject, "versions"]:
                found = self._subjects.get(subject)
                return (200, list(range(1, len(found) + 1))) if found else _missing(40401)
            case "GET", ["subjects", subject, "versions", version]:
                return self._version(subject, version)
            case "GET", ["schemas", "ids", schema_id]:
                number = int(schema_id)
                if not 0 < number <= len(self._schemas):
                    return _missing(40403)
                return 200, self._schemas[number - 1]
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}

    def _look_up(self, subject: str, body: Any) -> tuple[int, Any]:
        schema, kind, references = _parts(body)
        entry = {"schema": schema, "schemaType": kind, "references": references}
        for version, schema_id in enumerate(self._subjects.get(subject, ()), start=1):
            if self._schemas[schema_id - 1] == entry:
                return 200, {"subject": subject, "version": version, "id": schema_id, **entry}
        return _missing(40403)

    def _version(self, subject: str, version: str) -> tuple[int, Any]:
        versions = self._subjects.get(subject)
        if versions is None:
            return _missing(40401)
        number = len(versions) if version == "latest" else int(version)
        if not 0 < number <= len(versions):
            return _missing(40402)
        schema_id = versions[number - 1]
        entry = self._schemas[schema_id - 1]
        return 200, {"subject": subject, "version": number, "id": schema_id, **entry}


def _parts(body: Any) -> tuple[str, str, list[dict[str, Any]]]:
    return body["schema"], body.get("schemaType") or "AVRO", body.get("references") or []


def _missing(code: int) -> tuple[int, Any]:
    return 404, {"error_code": code, "message": "not found"}


@contextmanager
def running_registry() -> Iterator[FakeSchemaRegistry]:
    """One that answers until the end of the block."""
    registry = FakeSchemaRegistry()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer("GET")

        def do_POST(self) -> None:
            self._answer("POST")

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the base class has it
            """Nothing."""

        def _answer(self, method: str) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            path = urlsplit(self.path).path
            registry.requests[path] += 1
            registry.before(path)
            if registry.faults:
                status, data = registry.faults.pop(0)
            else:
                token = self.headers.get("Authorization") or ""
                status, found = registry.answer(method, path, body, token)
                data = json.dumps(found).encode()
            if status == 0:
                self.close_connection = True
                return
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    registry.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
