"""Every API's messages: one generated module per API, named like the API in snake case.

    from protocol.messages.metadata import MetadataRequest, decode_request, encode_response

Each module has

    API_KEY, MIN_VERSION, MAX_VERSION, FIRST_FLEXIBLE_VERSION (None if there is none)
    a class per structure: keyword-only arguments, each with Kafka's default; names as in Kafka's
        message definitions (a structure's name that request and response share has the message's
        name before it)
    decode_request(data, version), decode_response(data, version): DecodeError and nothing else
    encode_request(message, version), encode_response(message, version): the body's bytes

Values are plain: int (also for error codes, and for times, in milliseconds), str, bytes, UUID (nil
for "none"), list. Record data is a memoryview of what was decoded, not a copy. None is null; for a
tagged structure it is "absent", which is the same as its default. A null that only later versions
can say is a ValueError from the encoder. Bytes after the message are ignored, as Kafka does:
librdkafka's Metadata request has some.
"""

from importlib import import_module
from types import ModuleType

from protocol.api_keys import ApiKey


def module_of(api_key: ApiKey) -> ModuleType:
    """Import an API's module. Only here, so that a broker pays for the APIs it uses alone."""
    return import_module(f"protocol.messages.{api_key.name.lower()}")
