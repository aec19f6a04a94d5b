"""meta.properties: cluster, node and directory id of a log directory.

File `meta.properties` in every log directory, Java properties, version 1:

    #                                        comments, as Java writes them
    cluster.id=MkU3OEVBNTcwNTJENDM2Qg        the cluster's data must not mix with another's
    directory.id=lFj6qFmvRRSrmZBIBKoFmQ      of this directory (KIP-858); may be missing
    node.id=1                                the broker's
    varve.metadata.store=Zm9vYmFyYmF6cXV4Cg  ours alone: the metadata store that says what is here
    version=1

A directory that names a store is ours, and means nothing without that store. Releases before this
key differ from Kafka in the file's form: Java writes a second comment into it, the date.

Version 0, of brokers with ZooKeeper, says `broker.id` and may lack `cluster.id`. Unknown keys are
kept.

Source: Kafka, MetaProperties.java, PropertiesUtils.java.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final
from uuid import UUID

from storage.environment.filesystem import Filesystem
from storage.errors import CorruptFileError
from storage.types.uuid_text import format_uuid, parse_uuid

META_PROPERTIES: Final = "meta.properties"
STORE_KEY: Final = "varve.metadata.store"
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """Owner of a log directory. None: the file does not say.

    Attributes:
        store_id: Of the metadata store that says what lies in the directory.
        is_ours: Varve has written the file, not Kafka.
        version: Of the file; 0 is that of a Kafka with ZooKeeper.
    """

    cluster_id: str | None
    node_id: int | None
    directory_id: UUID | None = None
    other: Mapping[str, str] = field(default_factory=dict)
    store_id: UUID | None = None
    is_ours: bool = field(default=True, compare=False)
    version: int = field(default=1, compare=False)


def encode_meta_properties(meta: MetaProperties) -> bytes:
    """The file's bytes, version 1."""
    values = dict(meta.other)
    values["version"] = "1"
    if meta.cluster_id is not None:
        values["cluster.id"] = meta.cluster_id
    if meta.node_id is not None:
        values["node.id"] = str(meta.node_id)
    if meta.directory_id is not None:
        values["directory.id"] = format_uuid(meta.directory_id)
    if meta.store_id is not None:
        values[STORE_KEY] = format_uuid(meta.store_id)
    lines = [f"{_escape(key, key=True)}={_escape(values[key])}" for key in sorted(values)]
    return ("#\n" + "\n".join(lines) + "\n").encode("latin-1")


def decode_meta_properties(data: bytes, source: str) -> MetaProperties:
    """The owner in the file, version 0 or 1.

    Args:
        data: The whole file.
        source: Its path, for the error message.

    Raises:
        CorruptFileError: It does not parse, or has another version.
    """
    try:
        values = _parse_properties(data.decode("latin-1"))
        if "version" not in values:
            # Empty, as after a power cut, or another program's.
            raise CorruptFileError(
                f"{source} is empty or damaged, it names no version: give it back from a copy, or "
                "move it away (a node that is alone knows the directory by its partitions then)"
            )
        version = int(values.pop("version"))
        if version not in (0, 1):
            raise ValueError(f"unknown version {version}")
        node = values.pop("node.id" if version else "broker.id", None)
        directory = values.pop("directory.id", None)
        store = values.pop(STORE_KEY, None)
        meta = MetaProperties(
            cluster_id=values.pop("cluster.id", None),
            node_id=None if node is None else int(node),
            directory_id=None if directory is None else parse_uuid(directory),
            other=values,
            store_id=None if store is None else parse_uuid(store),
        )
    except ValueError as error:
        raise CorruptFileError(f"{source} does not parse: {error}") from error
    is_ours = meta.store_id is not None or encode_meta_properties(meta) == data
    return replace(meta, is_ours=is_ours, version=version)


def read_meta_properties(filesystem: Filesystem, path: str) -> MetaProperties | None:
    """The owner of a directory; None when there is no file.

    Raises:
        CorruptFileError: It does not parse.
        DiskError: It cannot be read.
    """
    if not filesystem.exists(path):
        return None
    return decode_meta_properties(filesystem.read_bytes(path), path)


def write_meta_properties(filesystem: Filesystem, path: str, meta: MetaProperties) -> None:
    """Write the file; on disk when this returns."""
    filesystem.replace_bytes(path, encode_meta_properties(meta))


def _escape(text: str, *, key: bool = False) -> str:
    escaped = []
    for index, char in enumerate(text):
        if char in "=:#!\\" or (char == " " and (key or index == 0)):
            escaped.append("\\" + char)
        elif char in "\t\n\r\f":
            escaped.append("\\" + next(name for name, value in _ESCAPES.items() if value == char))
        elif not " " <= char <= "~":
            units = char.encode("utf-16-be")
            escaped.extend(f"\\u{units[i]:02X}{units[i + 1]:02X}" for i in range(0, len(units), 2))
        else:
            escaped.append(char)
    return "".join(escaped)


def _parse_properties(text: str) -> dict[str, str]:
    """As Java: comments, continued lines; `=`, `:` or a blank between key and value."""
    values: dict[str, str] = {}
    lines = iter(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    for line in lines:
        logical = line.lstrip(" \t\f")
        if not logical or logical[0] in "#!":
            continue
        while (len(logical) - len(logical.rstrip("\\"))) % 2:
            logical = logical[:-1] + next(lines, "").lstrip(" \t\f")
        key, value = _split_property(logical)
        values[_unescape(key)] = _unescape(value)
    return values


def _split_property(line: str) -> tuple[str, str]:
    at = 0
    while at < len(line) and line[at] not in "=: \t\f":
        at += 2 if line[at] == "\\" else 1
    value = line[at:].lstrip(" \t\f")
    if value[:1] in ("=", ":"):
        value = value[1:].lstrip(" \t\f")
    return line[:at], value


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    chars: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char == "\\" and at < len(text):
            char = text[at]
            at += 1
            if char == "u":
                chars.append(chr(int(text[at : at + 4], 16)))
                at += 4
                continue
            char = _ESCAPES.get(char, char)
        chars.append(char)
    # Beyond the basic plane Java writes two escapes, a surrogate pair.
    return "".join(chars).encode("utf-16", "surrogatepass").decode("utf-16")
