"""A registry that answers, refuses, fails, and says something else."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.lake.schemas import registry as registry_module
from pipeline.lake.schemas.registry import (
    RegistryClient,
    RegistryCredentials,
    RegistryError,
    SchemaMissingError,
)
from pipeline.lake.schemas.spec import RegistrySpec
from tests.fakes.clock import ManualClock
from tests.fakes.kafka.schema_registry import FakeSchemaRegistry, running_registry


@pytest.fixture
def registry() -> Iterator[FakeSchemaRegistry]:
    with running_registry() as running:
        yield running


def _client(
    registry: FakeSchemaRegistry, pauses: list[float] | None = None, **rest: Any
) -> RegistryClient:
    waited = pauses if pauses is not None else []
    spec = RegistrySpec(registry.url, timeout_ms=2_000, **rest)
    return RegistryClient(spec, clock=ManualClock(), pause_ms=waited.append)


def test_schemas_are_found_by_id_and_subject(registry: FakeSchemaRegistry) -> None:
    """An id is asked for once, whether the registry has it or not."""
    first = registry.register("orders value/1", '"int"')
    second = registry.register("orders value/1", '"long"', "JSON")
    client = _client(registry)
    assert client.latest("orders value/1").schema_id == second
    for _ in range(2):
        assert client.by_id(first).text == '"int"'
        assert client.by_id(second).kind == "JSON"
        with pytest.raises(SchemaMissingError, match="has no schema 77"):
            client.by_id(77)
    assert [registry.requests[f"/schemas/ids/{n}"] for n in (first, second, 77)] == [1, 1, 1]
    with pytest.raises(SchemaMissingError, match="has no subject nobody"):
        client.latest("nobody")


def test_references_come_with_a_schema(registry: FakeSchemaRegistry) -> None:
    """Those of references first, each once."""
    registry.register("a", '"a"')
    to_a = {"name": "A", "subject": "a", "version": 1}
    registry.register("b", '"b"', references=[to_a])
    found = registry.register(
        "c", '"c"', references=[{"name": "B", "subject": "b", "version": 1}, to_a]
    )
    schema = _client(registry).by_id(found)
    assert list(schema.references.items()) == [("A", '"a"'), ("B", '"b"')]
    lost = registry.register("d", '"d"', references=[{"name": "X", "subject": "x", "version": 3}])
    with pytest.raises(SchemaMissingError, match="has no version 3 of x"):
        _client(registry).by_id(lost)


def test_references_without_end_are_an_error(
    registry: FakeSchemaRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A registry may be wrong, too."""
    monkeypatch.setattr(registry_module, "MAX_REFERENCES", 5)
    many = [{"name": f"R{n}", "subject": "r", "version": 1} for n in range(9)]
    registry.register("r", '"int"')
    found = registry.register("s", '"s"', references=many)
    with pytest.raises(RegistryError, match="over 5 references"):
        _client(registry).by_id(found)
    again = {"name": "Self", "subject": "loop", "version": 1}
    looped = registry.register("loop", '"l"', references=[again])
    with pytest.raises(RegistryError, match="over 5 references"):
        _client(registry).by_id(looped)


def test_what_a_registry_could_not_answer_is_asked_again(registry: FakeSchemaRegistry) -> None:
    """Busy, overloaded, gone: a few times, with pauses."""
    found = registry.register("s", '"int"')
    registry.faults = [(503, b""), (429, b"{}"), (0, b"")]
    pauses: list[float] = []
    assert _client(registry, pauses).by_id(found).text == '"int"'
    assert pauses == [200, 1_000, 3_000]
    registry.faults = [(500, b"")] * 4
    with pytest.raises(RegistryError, match=r"did not answer 4 times, at last: status 500"):
        _client(registry).by_id(found)
    assert registry.faults == []


@pytest.mark.parametrize(
    ("status", "body", "problem"),
    [
        (200, b"<html>", "with something else than a schema"),
        (200, b"[]", "with something else than a schema"),
        (200, b"{}", "with something else than a schema"),
        (200, b'{"schema": 5}', "with something else than a schema"),
        (200, b'{"schema": "x", "references": [{}]}', "with something else than a schema"),
        (404, b"<html>", "status 404; is it a schema registry?"),
        (404, b'{"error_code": 404}', "status 404, error 404"),
        (302, b"", "status 302"),
        (403, b"{}", "refuses user or password (status 403)"),
        (422, b'{"error_code": 42201}', "status 422, error 42201"),
    ],
)
def test_other_answers_are_precise_errors(
    registry: FakeSchemaRegistry, status: int, body: bytes, problem: str
) -> None:
    """None of them is a schema that is not there."""
    registry.faults = [(status, body)]
    with pytest.raises(RegistryError) as raised:
        _client(registry).by_id(1)
    assert problem in str(raised.value)
    assert not isinstance(raised.value, SchemaMissingError)
    assert registry.url in str(raised.value)


def test_a_registry_that_is_not_there_is_an_error() -> None:
    """With its address and what happened."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    client = RegistryClient(RegistrySpec(f"http://127.0.0.1:{port}"), pause_ms=lambda ms: None)
    with pytest.raises(RegistryError, match=rf"127.0.0.1:{port} did not answer 4 times.*refused"):
        client.by_id(1)


def test_answers_are_bounded(registry: FakeSchemaRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    """In bytes and in time."""
    found = registry.register("s", json.dumps("x" * 200_000))
    clock = ManualClock()
    spec = RegistrySpec(registry.url, timeout_ms=2_000)
    client = RegistryClient(spec, clock=clock, pause_ms=lambda ms: None)
    registry.before = lambda path: clock.advance(2_001)
    with pytest.raises(RegistryError, match="no whole answer in 2000 ms"):
        client.by_id(found)
    monkeypatch.setattr(registry_module, "MAX_ANSWER_BYTES", 100_000)
    with pytest.raises(RegistryError, match="with over 100000 bytes"):
        _client(registry).by_id(found)


def test_the_cache_is_bounded(
    registry: FakeSchemaRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ids come from records, so anybody may make them up."""
    monkeypatch.setattr(registry_module, "MAX_CACHED_SCHEMAS", 2)
    client = _client(registry)
    for schema_id in (1, 2, 1, 3, 1, 2):
        with pytest.raises(SchemaMissingError):
            client.by_id(schema_id)
    assert [registry.requests[f"/schemas/ids/{n}"] for n in (1, 2, 3)] == [1, 2, 1]


def test_credentials_are_sent_and_never_told(registry: FakeSchemaRegistry, tmp_path: Path) -> None:
    """From a file or from whoever opens the client."""
    registry.user, registry.password = "me", "hunter2"
    found = registry.register("s", '"int"')
    file = tmp_path / "credentials"
    file.write_text("me\nhunter2\n")
    assert _client(registry, credentials_file=str(file)).by_id(found).text == '"int"'
    given = RegistryCredentials("me", "hunter2")
    assert RegistryClient(RegistrySpec(registry.url), given).by_id(found).text == '"int"'
    wrong = RegistryClient(RegistrySpec(registry.url), given._replace(password="hunter3"))
    with pytest.raises(RegistryError, match="refuses user or password") as raised:
        wrong.by_id(found)
    for text in (
        str(raised.value),
        repr(given),
        str(given),
        repr(wrong),
        repr(wrong.__dict__["_spec"]),
    ):
        assert "hunter" not in text


def test_an_address_that_is_none_is_told_at_once(tmp_path: Path) -> None:
    """Before a job starts; without repeating what may be a password."""
    for url, problem in [
        ("registry:8081", "must be http://host or https://host"),
        ("http://me:hunter2@host", "must not hold user and password"),
    ]:
        with pytest.raises(RegistryError, match=problem) as raised:
            RegistryClient(RegistrySpec(url))
        assert "hunter2" not in str(raised.value)
    with pytest.raises(RegistryError, match="cannot be read"):
        RegistryClient(RegistrySpec("http://h", credentials_file=str(tmp_path / "none")))
    (tmp_path / "one").write_text("hunter2")
    with pytest.raises(RegistryError, match="two lines") as raised:
        RegistryClient(RegistrySpec("http://h", credentials_file=str(tmp_path / "one")))
    assert "hunter2" not in str(raised.value)
    client = RegistryClient(RegistrySpec("https://h", ca_file=str(tmp_path / "none")))
    with pytest.raises(RegistryError, match="no certificates in"):
        client.by_id(1)
