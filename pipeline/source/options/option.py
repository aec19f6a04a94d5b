"""An option of the data source: its name, default and meaning, and how its text is read.

The names are those of Spark's Kafka source where it has the option. Spark compares names without
regard to case, and hands them over in lower case (`dict(options)`), so options here are looked up
in lower case and named in errors as it is meant.
"""

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Option(Generic[T]):
    """One row of the table of options.

    Attributes:
        name: As it is written in documentation and errors.
        default: As the table shows it; "-" where there is none.
        meaning: Its row in the table, a phrase or some sentences in Markdown.
        parse: Reads the text, raising ValueError with what is wrong as the rest of a sentence that
            begins with the option's name.
        secret: Its value is in no error, warning or repr.
    """

    name: str
    default: str
    meaning: str
    parse: Callable[[str], T]
    secret: bool = False


class GivenOptions:
    """A user's options, parsed by the table's rows; mistakes are gathered."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self.given: Mapping[str, str] = {name.lower(): text for name, text in given.items()}
        self.mistakes: list[str] = []

    def names(self) -> Iterable[str]:
        """Names that were given, in lower case, in the order they were given."""
        return self.given.keys()

    def has(self, option: Option[T]) -> bool:
        """Whether a value was given, right or wrong."""
        return option.name.lower() in self.given

    def read(self, option: Option[T]) -> T | None:
        """The value, None where there is none or it does not parse (then a mistake more)."""
        text = self.given.get(option.name.lower())
        if text is None:
            return None
        try:
            return option.parse(text)
        except ValueError as error:
            problem = "cannot be read" if option.secret else str(error)
            self.mistakes.append(f"{option.name} {problem}")
            return None

    def read_or(self, option: Option[T], default: T) -> T:
        """The value, or the default where there is none or it does not parse."""
        value = self.read(option)
        return default if value is None else value


def unknown_option(name: str, known: Iterable[str]) -> str:
    """The sentence about a name that is no option of ours, with the name that may be meant."""
    spelt = {option.lower(): option for option in known}
    near = difflib.get_close_matches(name.lower(), spelt, n=1, cutoff=0.6)
    meant = f"; is {spelt[near[0]]} meant?" if near else ""
    return f"{name} is no option of varve{meant}"
