"""The APIs that kafka-python knows: the same tables, the same bytes."""

from typing import Any
from uuid import UUID

import pytest

from protocol.api_keys import ApiKey
from protocol.codegen.schema import Api, Field, Struct, load
from protocol.messages import module_of
from tests.differential.kafka_python_messages import (
    classes,
    covers,
    definition,
    make_representable,
    snake,
    to_kafka_python,
)
from tests.differential.random_messages import RandomMessages

MESSAGES_PER_VERSION = 4
APIS = [api for api in load() if (api.key, "request") in classes()]


def messages(api: Api) -> list[tuple[str, int, Struct]]:
    return [("request", version, struct) for version, struct in api.requests.items()] + [
        ("response", version, struct) for version, struct in api.responses.items()
    ]


def test_kafka_python_knows_most_apis() -> None:
    """The tests below are not empty."""
    assert len(APIS) >= 52


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_tables_say_what_kafkas_definitions_say(api: Api) -> None:
    """Names, order, types, nulls, tags, defaults and first flexible version of every version."""
    for kind, version, struct in messages(api):
        source = definition(struct.name)
        assert source["type"] == kind
        if covers(source["validVersions"], version):
            assert struct.flexible == covers(source["flexibleVersions"], version)
            compare(struct, source["fields"], version)


def compare(struct: Struct, fields: list[dict[str, Any]], version: int) -> None:
    present = [field for field in fields if covers(field["versions"], version)]
    by_name = {snake(field["name"]): field for field in present}
    tagged = [f for f in present if covers(f.get("taggedVersions"), version)]
    plain = [snake(field["name"]) for field in present if field not in tagged]
    assert [field.name for field in struct.plain] == plain
    assert {f.name: f.tag for f in struct.tagged} == {snake(f["name"]): f["tag"] for f in tagged}
    for field in struct.fields:
        theirs = by_name[field.name]
        where = f"{struct.name}.{field.name} v{version}"
        wire_type = theirs["type"].removeprefix("[]")
        assert field.array == theirs["type"].startswith("[]"), where
        if field.struct is None:
            assert field.type == wire_type, where
            assert field.default == default_of(theirs, field, version), where
        else:
            assert field.struct.name.endswith(wire_type), where
            compare(field.struct, theirs["fields"], version)
        assert field.nullable == covers(theirs.get("nullableVersions"), version), where


def default_of(theirs: dict[str, Any], field: Field, version: int) -> Any:
    value = theirs.get("default")
    if value == "null":
        return None if covers(theirs.get("nullableVersions"), version) else default_of({}, field, 0)
    if field.array:
        return ()
    match field.type:
        case "bool":
            return str(value).lower() == "true"
        case "string":
            return value or ""
        case "bytes":
            return b""
        case "records":
            return None if field.nullable else b""
        case "uuid":
            return None
        case "float64":
            return float(value or 0)
    return int(str(value or 0), 0)


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_same_bytes_as_kafka_python(api: Api) -> None:
    """What kafka-python writes is what we write, and we read it as the same message."""
    module = module_of(ApiKey(api.key))
    for kind, version, struct in messages(api):
        cls = classes()[api.key, kind]
        if version > cls.max_version:
            continue
        encode, decode = getattr(module, f"encode_{kind}"), getattr(module, f"decode_{kind}")
        source = RandomMessages(seed=api.key * 1000 + version)
        for _ in range(MESSAGES_PER_VERSION):
            message = source.message(module, struct)
            make_representable(message, struct)
            theirs = bytes(to_kafka_python(message, struct, cls, version).encode(version=version))
            assert encode(message, version) == theirs
            assert encode(decode(memoryview(theirs), version), version) == theirs


def test_nil_uuid_is_what_kafka_python_reads() -> None:
    """A UUID is 16 bytes, most significant first."""
    module = module_of(ApiKey.METADATA)
    topic = module.MetadataResponseTopic(name="t", topic_id=UUID(int=258))
    data = module.encode_response(module.MetadataResponse(topics=[topic]), 12)
    read = classes()[int(ApiKey.METADATA), "response"].decode(data, version=12)
    assert read.topics[0].topic_id == UUID(int=258)
