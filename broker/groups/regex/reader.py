"""Characters of RE2 expressions: escapes, and the sets between brackets.

Reads one element at a place and leaves the place behind it. What is a set is returned as one
(`broker.groups.regex.classes`), with the other case of each letter while `_folds` is set.

Source: RE2/J 1.8, Parser.java (parseEscape, parseClass, parseUnicodeClass).
"""

from broker.groups.regex.classes import (
    ANY_CHARACTER,
    FOLDS_INTO_ASCII,
    PERL_CLASSES,
    POSIX_CLASSES,
    UNICODE_CLASSES,
    fold,
    range_mask,
)

_CODE_POINT_MAX = 0x10FFFF
_ESCAPES = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_CLOSING_BRACKET = "missing closing ]"
_ESCAPE = "invalid escape sequence"
_RANGE = "invalid character class range"


class InvalidRegexError(ValueError):
    """A malformed pattern, or one that is too large; the text is for the client."""


class CharacterReader:
    """A place in a pattern, and what can be read there."""

    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._position = 0
        self._folds = False

    # The rest of the text.

    def _more(self) -> bool:
        return self._position < len(self._text)

    def _peek(self) -> str:
        """The next character; empty at the end."""
        return self._text[self._position : self._position + 1]

    def _pop(self) -> str:
        character = self._text[self._position]
        self._position += 1
        return character

    def _at(self, start: str) -> bool:
        return self._text.startswith(start, self._position)

    # Sets.

    def _folded(self, low: int, high: int) -> int:
        """A range of characters, and while letters fold their other cases."""
        mask = range_mask(low, high)
        if self._folds:
            mask = fold(mask)
            for code, others in FOLDS_INTO_ASCII.items():
                if low <= code <= high:
                    mask |= others
        return mask

    def _group_mask(self, mask: int, *, negated: bool) -> int:
        if self._folds:
            mask = fold(mask)
        return ANY_CHARACTER & ~mask if negated else mask

    def _read_class_escape(self) -> int | None:
        r"""The set of `\d`, `\pL` and their like; None when this is not one."""
        if not self._at("\\"):
            return None
        letter = self._text[self._position + 1 : self._position + 2]
        if letter in ("p", "P"):
            self._position += 2
            return self._read_unicode_class(negated=letter == "P")
        mask = PERL_CLASSES.get(letter.lower())
        if mask is None or letter not in "dDsSwW":
            return None
        self._position += 2
        return self._group_mask(mask, negated=letter.isupper())

    def _read_unicode_class(self, *, negated: bool) -> int:
        if not self._more():
            raise InvalidRegexError(_RANGE)
        name = self._pop()
        if name == "{":
            end = self._text.find("}", self._position)
            if end < 0:
                raise InvalidRegexError(_RANGE)
            name = self._text[self._position : end]
            self._position = end + 1
        if name.startswith("^"):
            negated = not negated
            name = name[1:]
        mask = UNICODE_CLASSES.get(name)
        if mask is None:
            raise InvalidRegexError(_RANGE)
        return self._group_mask(mask, negated=negated)

    def _read_escape(self) -> int:
        """One character behind a backslash."""
        self._pop()
        if not self._more():
            raise InvalidRegexError("trailing backslash at end of expression")
        character = self._pop()
        if not (character.isascii() and character.isalnum()):
            return ord(character)
        if character in _ESCAPES:
            return _ESCAPES[character]
        if character == "x":
            return self._read_hexadecimal()
        if character == "0" or (character in "1234567" and self._at_octal()):
            code = int(character)
            for _ in range(2):
                if not self._at_octal():
                    break
                code = code * 8 + int(self._pop())
            return code
        raise InvalidRegexError(_ESCAPE)

    def _at_octal(self) -> bool:
        return self._more() and "0" <= self._peek() <= "7"

    def _read_hexadecimal(self) -> int:
        if self._at("{"):
            end = self._text.find("}", self._position)
            digits = self._text[self._position + 1 : end] if end >= 0 else ""
            self._position = end + 1
        else:
            digits = self._text[self._position : self._position + 2]
            self._position += 2
            if len(digits) < 2:
                raise InvalidRegexError(_ESCAPE)
        if not digits or not all(digit in "0123456789abcdefABCDEF" for digit in digits):
            raise InvalidRegexError(_ESCAPE)
        code = int(digits, 16)
        if code > _CODE_POINT_MAX:
            raise InvalidRegexError(_ESCAPE)
        return code

    # Classes.

    def _read_class(self) -> int:
        """The set between brackets."""
        self._pop()
        negated = self._at("^")
        if negated:
            self._pop()
        mask = 0
        first = True
        while first or not self._at("]"):
            first = False
            mask |= self._read_class_part()
        self._pop()
        return ANY_CHARACTER & ~mask if negated else mask

    def _read_class_part(self) -> int:
        if self._at("[:"):
            end = self._text.find(":]", self._position)
            if end >= 0:
                name = self._text[self._position + 2 : end]
                self._position = end + 2
                known = POSIX_CLASSES.get(name.removeprefix("^"))
                if known is None:
                    raise InvalidRegexError(_RANGE)
                return self._group_mask(known, negated=name.startswith("^"))
        group = self._read_class_escape()
        if group is not None:
            return group
        low = high = self._read_class_character()
        if self._at("-") and not self._at("-]"):
            self._pop()
            high = self._read_class_character()
            if high < low:
                raise InvalidRegexError(_RANGE)
        return self._folded(low, high)

    def _read_class_character(self) -> int:
        if not self._more():
            raise InvalidRegexError(_CLOSING_BRACKET)
        if self._at("\\"):
            return self._read_escape()
        return ord(self._pop())
