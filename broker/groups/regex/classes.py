"""Sets of ASCII characters by the names that RE2 expressions have for them.

A set is a number: bit n stands for the character of code n.

Source: RE2 syntax (google/re2, doc/syntax.txt); RE2/J 1.8, CharGroup.java, UnicodeTables.java.
"""

import unicodedata
from typing import Final

ANY_CHARACTER: Final = (1 << 128) - 1


def _mask(*ranges: str) -> int:
    mask = 0
    for pair in ranges:
        mask |= range_mask(ord(pair[0]), ord(pair[-1]))
    return mask


def range_mask(low: int, high: int) -> int:
    """Characters from `low` to `high`, both included, as far as they are ASCII."""
    if low > 127:
        return 0
    return (1 << min(high, 127) + 1) - (1 << low)


_DIGIT = _mask("09")
_UPPER = _mask("AZ")
_LOWER = _mask("az")
_ALPHA = _UPPER | _LOWER
_WORD = _DIGIT | _ALPHA | _mask("_")

PERL_CLASSES = {"d": _DIGIT, "s": _mask("\t\n", "\f\r", " "), "w": _WORD}

POSIX_CLASSES = {
    "alnum": _DIGIT | _ALPHA,
    "alpha": _ALPHA,
    "ascii": ANY_CHARACTER,
    "blank": _mask("\t", " "),
    "cntrl": _mask("\0\x1f", "\x7f"),
    "digit": _DIGIT,
    "graph": _mask("!~"),
    "lower": _LOWER,
    "print": _mask(" ~"),
    "punct": _mask("!/", ":@", "[`", "{~"),
    "space": _mask("\t\r", " "),
    "upper": _UPPER,
    "word": _WORD,
    "xdigit": _DIGIT | _mask("AF", "af"),
}

_CATEGORIES = """
    C Cc Cf Co Cs L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm
    So Z Zl Zp Zs
"""

# Scripts that RE2/J knows. Latin and Common have ASCII characters, the others have none.
_OTHER_SCRIPTS = """
    Arabic Armenian Avestan Balinese Bamum Batak Bengali Bopomofo Brahmi Braille Buginese
    Buhid Canadian_Aboriginal Carian Cham Cherokee Coptic Cuneiform Cypriot Cyrillic Deseret
    Devanagari Egyptian_Hieroglyphs Ethiopic Georgian Glagolitic Gothic Greek Gujarati
    Gurmukhi Han Hangul Hanunoo Hebrew Hiragana Imperial_Aramaic Inherited
    Inscriptional_Pahlavi Inscriptional_Parthian Javanese Kaithi Kannada Katakana Kayah_Li
    Kharoshthi Khmer Lao Lepcha Limbu Linear_B Lisu Lycian Lydian Malayalam Mandaic
    Meetei_Mayek Mongolian Myanmar New_Tai_Lue Nko Ogham Ol_Chiki Old_Italic Old_Persian
    Old_South_Arabian Old_Turkic Oriya Osmanya Phags_Pa Phoenician Rejang Runic Samaritan
    Saurashtra Shavian Sinhala Sundanese Syloti_Nagri Syriac Tagalog Tagbanwa Tai_Le
    Tai_Tham Tai_Viet Tamil Telugu Thaana Thai Tibetan Tifinagh Ugaritic Unknown Vai Yi
"""


def _category_mask(category: str) -> int:
    return sum(
        1 << code for code in range(128) if unicodedata.category(chr(code)).startswith(category)
    )


UNICODE_CLASSES = {
    "Any": ANY_CHARACTER,
    **{category: _category_mask(category) for category in _CATEGORIES.split()},
    **dict.fromkeys(_OTHER_SCRIPTS.split(), 0),
    "Latin": _ALPHA,
    "Common": ANY_CHARACTER & ~_ALPHA,
}

# Letters outside ASCII whose other case is inside: long s, and the sign for kelvin.
FOLDS_INTO_ASCII = {0x17F: _mask("S", "s"), 0x212A: _mask("K", "k")}


def fold(mask: int) -> int:
    """A set with the other case of each of its letters."""
    return mask | (mask & _UPPER) << 32 | (mask & _LOWER) >> 32
