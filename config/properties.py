r"""Java's properties format, as `server.properties` is written.

    key = value        also `key: value` and `key value`
    # comment, ! comment
    a long value \
        goes on here
    \t \n \r \f \\ \: \= \# \uXXXX

Keys and values are UTF-8, where Java reads ISO-8859-1; `\u` escapes mean the same in both.

Source: java.util.Properties, method load.
"""

from typing import NamedTuple

_BLANK = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_HEX_DIGITS = frozenset("0123456789abcdefABCDEF")


class Property(NamedTuple):
    """One setting; `line` counts from 1 and is where it begins."""

    key: str
    value: str
    line: int


def parse_properties(text: str) -> list[Property]:
    r"""Read every setting, in order; a key that comes twice is there twice.

    Raises:
        ValueError: A `\u` escape is not four hexadecimal digits; the message names the line.
    """
    found = []
    for number, line in _logical_lines(text):
        end = _key_end(line)
        rest = line[end:].lstrip(_BLANK)
        if rest[:1] in {"=", ":"}:
            rest = rest[1:].lstrip(_BLANK)
        try:
            found.append(Property(_unescape(line[:end]), _unescape(rest), number))
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from error
    return found


def _logical_lines(text: str) -> list[tuple[int, str]]:
    """Lines without comments and blank ones, continuations joined, with their first number."""
    lines: list[tuple[int, str]] = []
    pending: str | None = None
    start = 0
    for number, natural in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1):
        stripped = natural.lstrip(_BLANK)
        if pending is None:
            if not stripped or stripped[0] in "#!":
                continue
            start, pending = number, ""
        trailing = len(stripped) - len(stripped.rstrip("\\"))
        if trailing % 2:
            pending += stripped[:-1]
            continue
        lines.append((start, pending + stripped))
        pending = None
    if pending:
        lines.append((start, pending))
    return lines


def _key_end(line: str) -> int:
    position = 0
    while position < len(line):
        character = line[position]
        if character == "\\":
            position += 2
            continue
        if character in "=:" or character in _BLANK:
            return position
        position += 1
    return len(line)


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character != "\\":
            out.append(character)
            continue
        escaped = text[position : position + 1]
        position += 1
        if escaped == "u":
            digits = text[position : position + 4]
            if len(digits) != 4 or not _HEX_DIGITS.issuperset(digits):
                raise ValueError("\\u is not followed by four hexadecimal digits")
            out.append(chr(int(digits, 16)))
            position += 4
        else:
            out.append(_ESCAPES.get(escaped, escaped))
    # Java's characters are UTF-16: two escapes may make one character between them.
    return "".join(out).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
