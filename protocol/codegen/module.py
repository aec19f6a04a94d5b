"""Puts one API's module together: constants, classes, functions, dispatch."""

import re
from typing import Final

from protocol.codegen.decoder import Decoder, default_expression
from protocol.codegen.encoder import Encoder
from protocol.codegen.schema import Api, Field, Struct
from protocol.codegen.writer import annotation

_HEADER: Final = '''"""{title}, API key {key}, versions {versions}{flexible}.

Written by protocol.codegen; do not edit.
"""

from collections.abc import Callable
from struct import Struct as _Struct
from struct import error as _StructError
from struct import pack, unpack_from
from typing import Final
from uuid import UUID

from protocol.message import (
    EMPTY,
    REQUEST_ELEMENTS_MAX,
    Message,
    broken,
    count_error,
    end_error,
    limit_error,
    null_error,
    version_error,
)
from protocol.primitives import (
    NIL_UUID,
    PACK_INT32,
    SMALL,
    UNPACK_INT32,
    decode_unsigned_varint,
    encode_unsigned_varint,
    skip_fields,
    uuid_from_bytes,
)

API_KEY: Final = {key}
MIN_VERSION: Final = {minimum}
MAX_VERSION: Final = {maximum}
FIRST_FLEXIBLE_VERSION: Final[int | None] = {first_flexible}
'''

_PUBLIC: Final = '''
def decode_{kind}(data: bytes | memoryview, version: int) -> {cls}:
    """Read the body of a {kind}; DecodeError for bad bytes and for versions not listed above."""
    decode = _{kind}_decoders.get(version)
    if decode is None:
        raise version_error("{cls}", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("{cls}", version) from None


def encode_{kind}(message: {cls}, version: int) -> bytes:
    """Write the body of a {kind}; fields that the version lacks are left out."""
    encode = _{kind}_encoders.get(version)
    if encode is None:
        raise ValueError(f"{cls} has no version {{version}} here")
    return encode(message)
'''


class ModuleWriter:
    """Writes the text of `protocol/messages/<api>.py`."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._versions: dict[str, dict[int, Struct]] = {}
        for messages in (api.requests, api.responses):
            for version, message in messages.items():
                for struct in message.walk():
                    self._versions.setdefault(struct.name, {})[version] = struct
        self._union = {name: _union(versions) for name, versions in self._versions.items()}
        self._structs: dict[str, str] = {}

    def write(self) -> str:
        """Give the module's text."""
        api = self._api
        classes = [
            self._class(name, kind, message)
            for kind, message, names in self._ordered()
            for name in names
        ]
        functions = [
            self._functions("request", api.requests),
            self._functions("response", api.responses),
        ]
        first, last = min(api.requests), max(api.requests)
        flexible = api.first_flexible_version
        header = _HEADER.format(
            title=api.requests[last].name.removesuffix("Request"),
            key=api.key,
            versions=f"{first} to {last}" if first != last else f"{first} alone",
            flexible=f", flexible from {flexible}" if flexible is not None else "",
            minimum=first,
            maximum=last,
            first_flexible=flexible,
        )
        structs = "".join(
            f'{name}: Final = _Struct("{layout}").'
            f"{'unpack_from' if name.startswith('_u_') else 'pack'}\n"
            for name, layout in sorted(self._structs.items())
        )
        body = "".join(f"\n\n{part}" for part in (*classes, *functions))
        text = header + "\n" + structs + '_NULL_INT32: Final = b"\\xff\\xff\\xff\\xff"\n' + body
        return _without_unused(text)

    def _ordered(self) -> list[tuple[str, str, list[str]]]:
        """List the classes of request and response, what is used before what uses it."""
        result = []
        seen: set[str] = set()
        for kind, messages in (("request", self._api.requests), ("response", self._api.responses)):
            names: list[str] = []
            for version in sorted(messages, reverse=True):
                for struct in messages[version].walk():
                    if struct.name not in seen:
                        seen.add(struct.name)
                        names.append(struct.name)
            # A structure that only old versions have comes last, but the message must: sort it so.
            top = messages[max(messages)].name
            names.remove(top)
            result.append((kind, top, [*names, top]))
        return result

    def _class(self, name: str, kind: str, message: str) -> str:
        versions = self._versions[name]
        fields = self._union[name]
        if name == message:
            what = f"Body of the {kind}, versions {_ranges(sorted(versions))}."
        else:
            what = f"Part of {message}, versions {_ranges(sorted(versions))}."
        lines = [f"class {name}(Message):", f'    """{what}"""', ""]
        slots = "".join(f'\n        "{field.name}",' for field in fields)
        lines.append(f"    __slots__ = ({slots}\n    )" if fields else "    __slots__ = ()")
        if not fields:
            return "\n".join(lines) + "\n"
        lines += ["", "    def __init__(", "        self,", "        *,"]
        lines += [f"        {self._parameter(field, name)}" for field in fields]
        lines.append("    ) -> None:")
        lines += [f"        {_assignment(field)}" for field in fields]
        return "\n".join(lines) + "\n"

    def _parameter(self, field: Field, owner: str) -> str:
        hint = _annotation(field)
        present = [
            version
            for version, struct in sorted(self._versions[owner].items())
            if any(each.name == field.name for each in struct.fields)
        ]
        default = "EMPTY" if field.default == () else default_expression(field)
        if field.struct is not None and not field.array:
            default = "None"
            hint = hint if hint.endswith("None") else f"{hint} | None"
        note = f"  # versions {_ranges(present)}"
        if present == sorted(self._versions[owner]):
            note = ""
        if field.tag is not None:
            note = f"{note}, tag {field.tag}" if note else f"  # tag {field.tag}"
        return f"{field.name}: {hint} = {default},{note}"

    def _functions(self, kind: str, messages: dict[int, Struct]) -> str:
        """Write decoders and encoders; versions with the same layout share theirs."""
        cls = messages[max(messages)].name
        parts: list[str] = []
        tables: list[str] = []
        for direction, argument, result in (
            ("decode", "view: bytes | memoryview", cls),
            ("encode", f"m: {cls}", "bytes"),
        ):
            names: dict[str, str] = {}
            table: dict[int, str] = {}
            for version, struct in sorted(messages.items()):
                coder: Decoder | Encoder = Encoder(self._union)
                if direction == "decode":
                    coder = Decoder(self._union, limited=kind == "request")
                body = coder.write(struct)
                self._structs |= coder.structs
                if body not in names:
                    names[body] = f"_{direction}_{kind}_v{version}"
                    parts.append(f"def {names[body]}({argument}) -> {result}:\n{body}")
                table[version] = names[body]
            rows = "".join(f"    {version}: {name},\n" for version, name in table.items())
            called = "bytes | memoryview" if direction == "decode" else cls
            tables.append(
                f"_{kind}_{direction}rs: Final[dict[int, Callable[[{called}], {result}]]] = "
                f"{{\n{rows}}}\n"
            )
        return "\n\n".join((*parts, *tables, _PUBLIC.format(kind=kind, cls=cls).lstrip("\n")))


def _union(versions: dict[int, Struct]) -> list[Field]:
    """Merge a structure's versions: newest order first, nullable if any version says so."""
    merged: dict[str, Field] = {}
    for version in sorted(versions, reverse=True):
        for field in versions[version].fields:
            known = merged.setdefault(field.name, field)
            if _annotation(known).removesuffix(" | None") != _annotation(field).removesuffix(
                " | None"
            ):
                raise NotImplementedError(f"{field.name} changes its type")
            if field.nullable and not known.nullable:
                merged[field.name] = field
    return list(merged.values())


def _annotation(field: Field) -> str:
    base = annotation(field, array=field.array)
    optional = field.nullable or (field.struct is not None and field.tag is not None)
    return f"{base} | None" if optional and (field.nullable or not field.array) else base


def _assignment(field: Field) -> str:
    target = f"self.{field.name}: {_annotation(field)}"
    if field.default == ():
        return f"{target} = [] if {field.name} is EMPTY else {field.name}"
    if field.struct is not None and field.tag is None and not field.nullable:
        return f"{target} = {field.struct.name}() if {field.name} is None else {field.name}"
    return f"{target} = {field.name}"


def _ranges(versions: list[int]) -> str:
    """Write versions as ranges: "0-3", or "0-3, 5"."""
    groups: list[list[int]] = []
    for version in versions:
        if groups and groups[-1][-1] == version - 1:
            groups[-1].append(version)
        else:
            groups.append([version])
    return ", ".join(f"{g[0]}-{g[-1]}" if len(g) > 1 else f"{g[0]}" for g in groups)


def _without_unused(text: str) -> str:
    """Drop imported names and constants that the module turned out not to need."""
    lines = text.split("\n")
    for name in (
        *("REQUEST_ELEMENTS_MAX", "limit_error", "PACK_INT32", "SMALL", "UNPACK_INT32"),
        *("EMPTY", "count_error", "end_error", "null_error", "NIL_UUID", "UUID"),
        *("decode_unsigned_varint", "encode_unsigned_varint", "skip_fields", "uuid_from_bytes"),
        *("unpack_from", "pack", "_NULL_INT32"),
    ):
        if sum(_mentions(line, name) for line in lines) <= 1:
            lines = [
                line.replace(f"{name}, ", "").replace(f", {name}", "")
                for line in lines
                if line
                not in (
                    f"    {name},",
                    f"from uuid import {name}",
                    f"from struct import {name}",
                    f'{name}: Final = b"\\xff\\xff\\xff\\xff"',
                )
            ]
    text = "\n".join(lines)
    return text.replace("from protocol.primitives import (\n)\n", "")


def _mentions(line: str, name: str) -> bool:
    return re.search(rf"(?<![\w.]){name}\b", line) is not None
