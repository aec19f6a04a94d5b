"""Writes encoders: one flat function per layout.

As in the decoders, values of constant size are collected in runs that one compiled struct packs; an
empty tag section is a pad byte within a run. The bytes grow in one bytearray. A value that does not
fit its type raises what Python raises: that is a mistake of ours, not of a peer.
"""

from dataclasses import replace

from protocol.codegen.schema import Field, Struct
from protocol.codegen.writer import CODES, Writer, default_text, struct_format, struct_name


class Encoder:
    """Writes the encoder of one message in one version.

    Args:
        union: All fields that each structure has in any version: says whether the attribute may be
            None although this version has no null.
    """

    def __init__(self, union: dict[str, list[Field]]) -> None:
        self._optional = {
            (struct, field.name)
            for struct, fields in union.items()
            for field in fields
            if field.nullable
        }
        self._writer = Writer()
        self._run: list[tuple[str, str]] = []
        self._out = "out"
        self.structs: dict[str, str] = {}

    def write(self, struct: Struct) -> str:
        """Give the body of the function; `m`, the message, is its only argument."""
        writer = self._writer
        writer.line("out = bytearray()")
        self._struct(struct, "m")
        self._flush()
        writer.line("return bytes(out)")
        return writer.text()

    def _struct(self, struct: Struct, source: str) -> None:
        for field in struct.plain:
            value = f"{source}.{field.name}"
            if (struct.name, field.name) in self._optional and not field.nullable:
                value = self._required(field, value)
            self._field(field, value, struct.flexible)
        if not struct.flexible:
            return
        if struct.tagged:
            self._tags(struct, source)
        else:
            self._run.append(("x", ""))

    def _field(self, field: Field, source: str, flexible: bool) -> None:
        if field.array:
            self._array(field, source, flexible)
        elif field.struct is not None:
            self._nested(field, field.struct, source)
        elif field.type in CODES:
            self._run.append(
                (CODES[field.type], f"{source}.bytes" if field.type == "uuid" else source)
            )
        else:
            self._text(field, source, flexible)

    def _required(self, field: Field, source: str) -> str:
        """Refuse None where only later versions have a null."""
        value = self._writer.fresh("v")
        self._writer.line(f"{value} = {source}")
        self._writer.line(f"if {value} is None:")
        self._writer.line(f'    raise ValueError("{field.name} cannot be null in this version")')
        return value

    def _nested(self, field: Field, struct: Struct, source: str) -> None:
        writer = self._writer
        variable = writer.fresh("s")
        writer.line(f"{variable} = {source}")
        if not field.nullable:
            self._struct(struct, variable)
            return
        self._flush()
        writer.line(f"if {variable} is None:")
        writer.line(f'    {self._out} += b"\\xff"')
        writer.line("else:")
        writer.indent()
        writer.line(f'{self._out} += b"\\x01"')
        self._struct(struct, variable)
        self._flush()
        writer.dedent()

    def _text(self, field: Field, source: str, flexible: bool) -> None:
        writer = self._writer
        code = "h" if field.type == "string" else "i"
        value, raw = writer.fresh("v"), writer.fresh("b")
        content = f"{value}.encode()" if field.type == "string" else value
        if not field.nullable:
            content = f"{source}.encode()" if field.type == "string" else source
            writer.line(f"{raw} = {content}")
            self._prefix(f"len({raw})", code, flexible)
            self._flush()
            writer.line(f"{self._out} += {raw}")
            return
        self._flush()
        writer.line(f"{value} = {source}")
        writer.line(f"if {value} is None:")
        null = 'b"\\x00"' if flexible else 'b"\\xff\\xff"' if code == "h" else "_NULL_INT32"
        writer.line(f"    {self._out} += {null}")
        writer.line("else:")
        writer.indent()
        if field.type == "string":
            writer.line(f"{raw} = {content}")
            value = raw
        self._prefix(f"len({value})", code, flexible)
        self._flush()
        writer.line(f"{self._out} += {value}")
        writer.dedent()

    def _prefix(self, length: str, code: str, flexible: bool) -> None:
        """Write a length or count; the compact form is one more than that."""
        if not flexible:
            self._run.append((code, length))
            return
        self._flush()
        writer = self._writer
        writer.line(f"n = {length} + 1")
        writer.line("if n < 128:")
        writer.line(f"    {self._out}.append(n)")
        writer.line("else:")
        writer.line(f"    {self._out} += encode_unsigned_varint(n)")

    def _array(self, field: Field, source: str, flexible: bool) -> None:
        writer = self._writer
        items = writer.fresh("items")
        writer.line(f"{items} = {source}")
        if field.nullable:
            self._flush()
            writer.line(f"if {items} is None:")
            writer.line(f"    {self._out} += " + ('b"\\x00"' if flexible else "_NULL_INT32"))
            writer.line("else:")
            writer.indent()
        self._prefix(f"len({items})", "i", flexible)
        self._flush()
        code = CODES.get(field.type)
        if code is not None and field.type != "uuid":
            writer.line(f"n = len({items})")
            packed = f'pack(f">{{n}}{code}", *{items})'
            if code == "i":
                packed = f"PACK_INT32[n](*{items}) if n < SMALL else {packed}"
            writer.line(f"{self._out} += {packed}")
        else:
            item = writer.fresh("item")
            writer.line(f"for {item} in {items}:")
            writer.indent()
            if field.struct is not None:
                self._struct(field.struct, item)
            else:
                element = Field(item, field.type, None, False, False, None, None)
                self._field(element, item, flexible)
            self._flush()
            writer.dedent()
        if field.nullable:
            writer.dedent()

    def _tags(self, struct: Struct, source: str) -> None:
        """Write a tag section: the fields that differ from their defaults, in order of tags."""
        writer = self._writer
        self._flush()
        outer = self._out
        count, section = writer.fresh("count"), writer.fresh("section")
        writer.line(f"{count} = 0")
        writer.line(f"{section} = bytearray()")
        for field in struct.tagged:
            value = writer.fresh("t")
            writer.line(f"{value} = {source}.{field.name}")
            writer.line(f"if {self._differs(field, value)}:")
            writer.indent()
            writer.line(f"{count} += 1")
            content = writer.fresh("content")
            writer.line(f"{content} = bytearray()")
            self._out = content
            if field.struct is not None and not field.array:
                self._struct(field.struct, value)
            else:
                # Where null is the default it is never written: the condition above excludes it.
                present = replace(field, nullable=field.nullable and field.default is not None)
                self._field(present, value, flexible=True)
            self._flush()
            self._out = outer
            writer.line(f"{section} += encode_unsigned_varint({field.tag})")
            writer.line(f"{section} += encode_unsigned_varint(len({content}))")
            writer.line(f"{section} += {content}")
            writer.dedent()
        writer.line(f"{outer} += encode_unsigned_varint({count})")
        writer.line(f"{outer} += {section}")

    def _differs(self, field: Field, value: str) -> str:
        """Write the condition under which a tagged field is sent."""
        if field.array:
            return f"{value} is not None" if field.default is None else value
        if field.struct is not None:
            inner = " or ".join(
                self._differs(each, f"{value}.{each.name}") for each in field.struct.fields
            )
            return f"{value} is not None and ({inner})"
        if field.type == "uuid":
            return f"{value}.int"
        if field.type == "bool":
            return f"not {value}" if field.default else value
        if field.default is None:
            return f"{value} is not None"
        return f"{value} != {default_text(field.default)}"

    def _flush(self) -> None:
        """Write the statement that packs the open run."""
        if not self._run:
            return
        formats = [code for code, _ in self._run]
        values = [value for code, value in self._run if code != "x"]
        if not values:
            self._writer.line(f'{self._out} += b"{"".join(chr(92) + "x00" for _ in formats)}"')
        else:
            name = struct_name("_p_", formats)
            self.structs[name] = struct_format(formats)
            self._writer.line(f"{self._out} += {name}({', '.join(values)})")
        self._run.clear()
