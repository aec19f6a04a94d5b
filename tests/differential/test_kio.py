"""Every API, version and direction: the same bytes as kio, and the same values from them."""

from typing import Any

import pytest

from protocol.api_keys import ApiKey
from protocol.codegen.schema import Api, Struct, load
from protocol.messages import module_of
from tests.differential.kio_messages import entity, make_representable, read, to_kio, write
from tests.differential.random_messages import RandomMessages

APIS = load()
MESSAGES_PER_VERSION = 15


def cases(api: Api) -> list[tuple[str, int, Struct]]:
    return [("request", version, struct) for version, struct in api.requests.items()] + [
        ("response", version, struct) for version, struct in api.responses.items()
    ]


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_same_bytes_and_values_as_kio(api: Api) -> None:
    """What we write kio reads and writes back alike; what kio writes we read as the same values."""
    module = module_of(ApiKey(api.key))
    for kind, version, struct in cases(api):
        encode, decode = getattr(module, f"encode_{kind}"), getattr(module, f"decode_{kind}")
        cls = entity(api.name, version, kind)
        source = RandomMessages(seed=api.key * 1000 + version)
        for _ in range(MESSAGES_PER_VERSION):
            message: Any = source.message(module, struct)
            make_representable(message, struct, cls)
            twin = to_kio(message, struct, cls)
            expected = write(twin)
            assert encode(message, version) == expected
            assert read(cls, expected) == twin
            assert encode(decode(memoryview(expected), version), version) == expected
            assert to_kio(decode(memoryview(expected), version), struct, cls) == twin
