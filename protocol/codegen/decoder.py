"""Writes decoders: one flat function per layout.

Values of constant size are collected in a run, together with the length, count or marker that
follows them, and one compiled struct unpacks the run. What comes after depends on that last value,
so a run ends there.

How a written function is safe although it checks little by itself:

- `p` only grows. A slice beyond the end is merely short, and the next read or the comparison of `p`
  with `end` in the function's last lines notices. Indexing and `unpack_from` raise beyond the end;
  `decode_request` and `decode_response` turn that into DecodeError.
- An array's count is compared with the bytes that are left before anything is made of it.
- Varints are at most 5 bytes.
- A request may have so many list elements and unknown tagged fields in all (`left`), because each
  takes a byte or two on the wire but many in memory, and time. Responses come from brokers that a
  client chose to trust, and have no such limit.
"""

from protocol.codegen.schema import Field, Struct
from protocol.codegen.writer import (
    CODES,
    SIZES,
    Writer,
    annotation,
    default_text,
    struct_format,
    struct_name,
)


class Decoder:
    """Writes the decoder of one message in one version.

    Args:
        union: All fields that each structure has in any version: those that this version lacks
            are set to their defaults.
        limited: Whether the number of elements is limited.
    """

    def __init__(self, union: dict[str, list[Field]], *, limited: bool) -> None:
        self._limited = limited
        self._union = union
        self._writer = Writer()
        self._run: list[tuple[str, str]] = []
        self._uuids: list[tuple[str, str]] = []
        self.structs: dict[str, str] = {}
        self._views = False

    def write(self, struct: Struct) -> str:
        """Give the body of the function; `data` is its only argument."""
        writer = self._writer
        self._views = has_records(struct)
        if not self._views:
            writer.line("data = bytes(view)")
        else:
            writer.line("data = memoryview(view)")
        writer.line("end = len(data)")
        writer.line("p = 0")
        if self._limited and (
            struct.flexible or any(f.array for s in struct.walk() for f in s.fields)
        ):
            writer.line("left = REQUEST_ELEMENTS_MAX")
        self._struct(struct, "m")
        self._flush()
        writer.line("if p > end:")
        writer.line(f'    raise end_error("{struct.name}")')
        writer.line("return m")
        return writer.text()

    def _struct(self, struct: Struct, target: str) -> None:
        """Write what reads one structure into a new variable; may leave a run open."""
        writer = self._writer
        writer.line(f"{target} = {struct.name}.__new__({struct.name})")
        present = {field.name for field in struct.fields}
        for field in self._union[struct.name]:
            if field.name not in present or field.tag is not None:
                writer.line(f"{target}.{field.name} = {default_expression(field)}")
        for field in struct.plain:
            self._field(field, f"{target}.{field.name}", struct.flexible)
        if struct.flexible:
            self._tags(struct, target)

    def _field(self, field: Field, target: str, flexible: bool) -> None:
        if field.array:
            self._array(field, target, flexible)
        elif field.struct is not None:
            self._nested(field, field.struct, target)
        elif field.type in CODES:
            self._fixed(field, target)
        else:
            self._text(field, target, flexible)

    def _fixed(self, field: Field, target: str) -> None:
        if field.type == "uuid":
            raw = self._writer.fresh("u")
            self._run.append(("16s", raw))
            self._uuids.append((target, raw))
        else:
            self._run.append((CODES[field.type], target))

    def _nested(self, field: Field, struct: Struct, target: str) -> None:
        """A structure that is not in a list; KIP-893 puts a marker before one that may be null."""
        writer = self._writer
        variable = writer.fresh("s")
        if not field.nullable:
            self._struct(struct, variable)
            writer.line(f"{target} = {variable}")
            return
        self._run.append(("b", "n"))
        self._flush()
        writer.line("if n < 0:")
        writer.line(f"    {target} = None")
        writer.line("else:")
        writer.indent()
        self._struct(struct, variable)
        self._flush()
        writer.line(f"{target} = {variable}")
        writer.dedent()

    def _text(self, field: Field, target: str, flexible: bool) -> None:
        """A string, bytes or records."""
        writer = self._writer
        self._length("h" if field.type == "string" else "i", flexible)
        null = "n == 0" if flexible else "n < 0"
        self._null(field, target, null)
        writer.line("e = p + n - 1" if flexible else "e = p + n")
        writer.line(f"{target} = {self._slice(field.type)}")
        writer.line("p = e")
        if field.nullable:
            writer.dedent()

    def _slice(self, wire_type: str) -> str:
        if wire_type == "string":
            # As Java does: what is not UTF-8 becomes U+FFFD, and the request is answered.
            whole = "str(data[p:e], " if self._views else "data[p:e].decode("
            return f'{whole}"utf-8", "replace")'
        if wire_type == "bytes" and self._views:
            return "bytes(data[p:e])"
        return "data[p:e]"

    def _null(self, field: Field, target: str, condition: str) -> None:
        """Write the case of null, and open the other one's block where null is allowed."""
        writer = self._writer
        writer.line(f"if {condition}:")
        if field.nullable:
            writer.line(f"    {target} = None")
            writer.line("else:")
            writer.indent()
        else:
            writer.line(f'    raise null_error("{field.name}")')

    def _length(self, code: str, flexible: bool) -> None:
        """Read a length or count into `n`; in flexible versions it is one more than that."""
        self._run.append(("B" if flexible else code, "n"))
        self._flush()
        if flexible:
            self._writer.line("if n > 127:")
            self._writer.line("    n, p = decode_unsigned_varint(data, p - 1)")

    def _array(self, field: Field, target: str, flexible: bool) -> None:
        writer = self._writer
        self._length("i", flexible)
        self._null(field, target, "n == 0" if flexible else "n < 0")
        if flexible:
            writer.line("n -= 1")
        size = element_size(field, flexible)
        writer.line("if n > end - p:" if size == 1 else f"if n * {size} > end - p:")
        writer.line(f'    raise count_error("{field.name}", n)')
        self._limit(field.name)
        code = CODES.get(field.type)
        if code is not None and field.type != "uuid":
            unpacked = f'list(unpack_from(f">{{n}}{code}", data, p))'
            if code == "i":
                unpacked = f"list(UNPACK_INT32[n](data, p)) if n < SMALL else {unpacked}"
            writer.line(f"{target} = {unpacked}")
            writer.line(f"p += n * {size}" if size > 1 else "p += n")
        else:
            items, item = writer.fresh("items"), writer.fresh("item")
            element_type = annotation(field, array=False)
            writer.line(f"{items}: list[{element_type}] = []")
            writer.line(f"{target} = {items}")
            writer.line("for _ in range(n):")
            writer.indent()
            if field.struct is not None:
                self._struct(field.struct, item)
            else:
                element = Field(item, field.type, None, False, False, None, None)
                self._field(element, item, flexible)
            self._flush()
            writer.line(f"{items}.append({item})")
            writer.dedent()
        if field.nullable:
            writer.dedent()

    def _limit(self, name: str) -> None:
        """Count the `n` elements that follow."""
        if self._limited:
            self._writer.line("left -= n")
            self._writer.line("if left < 0:")
            self._writer.line(f'    raise limit_error("{name}")')

    def _tags(self, struct: Struct, target: str) -> None:
        """Write what reads a tag section: known fields are decoded, others are stepped over."""
        writer = self._writer
        self._run.append(("B", "n"))
        self._flush()
        writer.line("if n:")
        writer.indent()
        writer.line("if n > 127:")
        writer.line("    n, p = decode_unsigned_varint(data, p - 1)")
        if not struct.tagged:
            self._limit(struct.name)
            writer.line("p = skip_fields(data, p, n)")
            writer.dedent()
            return
        self._limit(struct.name)
        limit = writer.fresh("limit")
        writer.line("for _ in range(n):")
        writer.indent()
        writer.line("tag, p = decode_unsigned_varint(data, p)")
        writer.line(f"{limit}, p = decode_unsigned_varint(data, p)")
        writer.line(f"{limit} += p")
        for position, field in enumerate(struct.tagged):
            writer.line(f"{'el' if position else ''}if tag == {field.tag}:")
            writer.indent()
            if field.array or field.struct is None:
                self._field(field, f"{target}.{field.name}", flexible=True)
            else:
                self._nested(field, field.struct, f"{target}.{field.name}")
            self._flush()
            writer.line(f"if p > {limit}:")
            writer.line(f'    raise end_error("{field.name}")')
            writer.dedent()
        writer.line(f"if {limit} > end:")
        writer.line(f'    raise end_error("{struct.name}")')
        writer.line(f"p = {limit}")
        writer.dedent()
        writer.dedent()

    def _flush(self) -> None:
        """Write the statement that unpacks the open run."""
        if not self._run:
            return
        writer = self._writer
        formats = [code for code, _ in self._run]
        targets = [target for _, target in self._run]
        if formats == ["B"]:
            writer.line(f"{targets[0]} = data[p]")
            writer.line("p += 1")
        else:
            name = struct_name("_u_", formats)
            self.structs[name] = struct_format(formats)
            comma = "," if len(targets) == 1 else ""
            writer.line(f"{', '.join(targets)}{comma} = {name}(data, p)")
            writer.line(f"p += {sum(SIZES[code] for code in formats)}")
        for target, raw in self._uuids:
            writer.line(f"{target} = uuid_from_bytes({raw})")
        self._uuids.clear()
        self._run.clear()


def has_records(struct: Struct) -> bool:
    """Say whether a message carries record data, which is never copied when decoded."""
    return any(field.type == "records" for inner in struct.walk() for field in inner.fields)


def default_expression(field: Field) -> str:
    """Write what a field is set to where the bytes do not say."""
    if field.default == ():
        return "[]"
    if field.type == "uuid":
        return "NIL_UUID"
    if field.struct is not None and field.tag is None and not field.nullable:
        return f"{field.struct.name}()"
    return default_text(field.default)


def element_size(field: Field, flexible: bool) -> int:
    """Give the fewest bytes that one element of a list takes."""
    if field.struct is not None:
        size = sum(_field_size(inner, flexible) for inner in field.struct.plain) + flexible
    else:
        size = _scalar_size(field.type, flexible)
    if size == 0:
        raise NotImplementedError(f"elements of {field.name} may be empty")
    return size


def _field_size(field: Field, flexible: bool) -> int:
    if field.array:
        return 1 if flexible else 4
    if field.struct is not None:
        inner = sum(_field_size(each, flexible) for each in field.struct.plain) + flexible
        return 1 if field.nullable else inner
    return _scalar_size(field.type, flexible)


def _scalar_size(wire_type: str, flexible: bool) -> int:
    if wire_type in CODES:
        return SIZES[CODES[wire_type]]
    if flexible:
        return 1
    return 2 if wire_type == "string" else 4
