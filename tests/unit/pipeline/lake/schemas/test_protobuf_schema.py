"""Descriptors from files and registries."""

import base64

import pytest

from pipeline.lake.schemas.protobuf_schema import (
    ProtobufSchemaError,
    index_path,
    message_of_file,
    message_of_registry,
)
from tests.fakes.lake.proto_messages import definition, file, message

OTHER = file("other.proto", message("Other", "int32 x"))
MAIN = file(
    "main.proto",
    message("First", "t.Other o", nested=(message("Inner", "int32 y"),)),
    message("Second", "google.protobuf.Timestamp at"),
    imports=("other.proto", "google/protobuf/timestamp.proto"),
)


def test_the_message_is_named_or_the_first_of_what_was_compiled() -> None:
    """`protoc` writes imports before the file that imports them."""
    files = definition(OTHER, MAIN)
    assert message_of_file(files, None).full_name == "t.First"
    assert message_of_file(files, "t.Second").full_name == "t.Second"
    assert index_path(message_of_file(files, "t.First.Inner")) == (0, 0)
    assert index_path(message_of_file(files, "t.Second")) == (1,)


def test_a_registry_gives_files_in_base64() -> None:
    """References under the names by which they are imported."""
    text, other = (base64.b64encode(f.SerializeToString()).decode() for f in (MAIN, OTHER))
    assert message_of_registry(text, {"other.proto": other}, None).full_name == "t.First"
    with pytest.raises(ProtobufSchemaError, match=r"other\.proto is imported and not there"):
        message_of_registry(text, {}, None)


def test_what_is_no_schema_is_told() -> None:
    """With what to do about it."""
    loop = file("loop.proto", message("L", "int32 x"), imports=("loop.proto",))
    for files, name, problem in [
        (b"syntax", None, "protoc --descriptor_set_out"),
        (b"", None, "a descriptor set without files"),
        (definition(MAIN), None, r"other\.proto is imported and not there"),
        (definition(OTHER), "t.Nobody", r"there is no message t\.Nobody"),
        (definition(file("e.proto")), None, r"e\.proto has no message"),
        (definition(loop), None, r"loop\.proto imports itself"),
        (definition(file("x.proto", message("X", "t.Missing m"))), None, "not a whole schema"),
    ]:
        with pytest.raises(ProtobufSchemaError, match=problem):
            message_of_file(files, name)
    for text in ("message X {}", "AAAA", "\x00"):
        with pytest.raises(ProtobufSchemaError, match="no serialized descriptor"):
            message_of_registry(text, {}, None)
