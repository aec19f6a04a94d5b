"""Protobuf messages for tests, described in Python: there is no compiler here."""

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

FIELD = descriptor_pb2.FieldDescriptorProto

KINDS = {
    "double": FIELD.TYPE_DOUBLE,
    "float": FIELD.TYPE_FLOAT,
    "int32": FIELD.TYPE_INT32,
    "sint64": FIELD.TYPE_SINT64,
    "int64": FIELD.TYPE_INT64,
    "uint32": FIELD.TYPE_UINT32,
    "uint64": FIELD.TYPE_UINT64,
    "bool": FIELD.TYPE_BOOL,
    "string": FIELD.TYPE_STRING,
    "bytes": FIELD.TYPE_BYTES,
}


def message(name: str, *fields: str, nested: tuple[Any, ...] = ()) -> Any:
    """A message's description.

    Each field is `[repeated|optional] kind name`, numbered from 1; the kind is a scalar,
    `enum:full.Name`, or a message's full name. `oneof kind name` puts it into one `choice`.
    """
    found = descriptor_pb2.DescriptorProto(name=name)
    optional = []
    for number, text in enumerate(fields, start=1):
        label, _, rest = text.rpartition(" ")[0].rpartition(" ")
        kind, called = rest, text.rpartition(" ")[2]
        field = found.field.add(name=called, number=number, label=FIELD.LABEL_OPTIONAL)
        if kind in KINDS:
            field.type = KINDS[kind]
        elif kind.startswith("enum:"):
            field.type, field.type_name = FIELD.TYPE_ENUM, f".{kind.removeprefix('enum:')}"
        else:
            field.type, field.type_name = FIELD.TYPE_MESSAGE, f".{kind}"
        if label == "repeated":
            field.label = FIELD.LABEL_REPEATED
        elif label == "oneof":
            if not found.oneof_decl:
                found.oneof_decl.add(name="choice")
            field.oneof_index = 0
        elif label == "optional":
            field.proto3_optional = True
            optional.append(field)
    for field in optional:
        field.oneof_index = len(found.oneof_decl)
        found.oneof_decl.add(name=f"_{field.name}")
    found.nested_type.extend(nested)
    return found


def map_entry(name: str, key: str, value: str) -> Any:
    """What `map<key, value>` is: a nested message; its field is a repeated one of it."""
    entry = message(name, f"{key} key", f"{value} value")
    entry.options.map_entry = True
    return entry


def file(name: str, *messages: Any, imports: tuple[str, ...] = (), enums: Any = ()) -> Any:
    """A file of package `t`."""
    described = descriptor_pb2.FileDescriptorProto(
        name=name, package="t", syntax="proto3", dependency=imports, message_type=messages
    )
    for enum, values in dict(enums).items():
        made = described.enum_type.add(name=enum)
        for number, value in values.items():
            made.value.add(name=value, number=number)
    return described


def definition(*files: Any) -> bytes:
    """A descriptor set, as `protoc` writes it."""
    return bytes(descriptor_pb2.FileDescriptorSet(file=files).SerializeToString())


def classes(*files: Any) -> dict[str, Any]:
    """Message classes by full name, from a pool of their own."""
    pool = descriptor_pool.DescriptorPool()
    for module in ("timestamp", "wrappers", "struct", "duration", "any"):
        known = __import__(f"google.protobuf.{module}_pb2", fromlist=["DESCRIPTOR"])
        pool.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
    for described in files:
        pool.Add(described)
    found = [
        described
        for name in (f.name for f in files)
        for outer in pool.FindFileByName(name).message_types_by_name.values()
        for described in (outer, *outer.nested_types)
    ]
    return {d.full_name: message_factory.GetMessageClass(d) for d in found}
