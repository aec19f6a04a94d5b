"""Our patterns and those of RE2/J, which Kafka uses: what is one, and which names match it."""

from pathlib import Path
from random import Random

import pytest

from broker.groups.regex.classes import POSIX_CLASSES, UNICODE_CLASSES
from broker.groups.regex.topic_regex import InvalidRegexError, TopicRegex
from tests.differential.kafka_classes import Ask, kafka_program

pytestmark = pytest.mark.interop

MATCH = """
import com.google.re2j.Pattern;
import com.google.re2j.PatternSyntaxException;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Scanner;

public class Match {
    static String text(String hex) {
        return new String(HexFormat.of().parseHex(hex), StandardCharsets.UTF_8);
    }

    public static void main(String[] arguments) {
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            String[] words = lines.nextLine().split(" ");
            StringBuilder answer = new StringBuilder();
            try {
                Pattern pattern = Pattern.compile(text(words[0].substring(1)));
                for (int i = 1; i < words.length; i++) {
                    String name = text(words[i].substring(1));
                    answer.append(pattern.matcher(name).matches() ? "1" : "0");
                }
            } catch (PatternSyntaxException error) {
                answer.append("invalid: ").append(error.getDescription());
            } catch (RuntimeException error) {
                answer.append("broken: ").append(error);
            }
            System.out.println(answer);
        }
    }
}
"""

ATOMS = [
    *(
        "a",
        "b",
        "c",
        "A",
        "k",
        "s",
        "_",
        "-",
        "0",
        "7",
        "ab",
        "x-y",
        "é",
        "\u212a",
        "\u017f",
        "\n",
        "{",
        "}",
        "]",
    ),
    *(".", ".*", ".+", "^", "$", r"\A", r"\z", r"\b", r"\B", "", "()", "(?:)", r"\Qa.b\E", r"\Q*"),
    *(r"\.", r"\-", r"\_", r"\d", r"\D", r"\s", r"\S", r"\w", r"\W", r"\pL", r"\PL", r"\p{Lu}"),
    *(r"\p{Nd}", r"\P{^Nd}", r"\p{Greek}", r"\p{Latin}", r"\x61", r"\x{62}", r"\141", r"\0", r"\t"),
    *("[ab]", "[^ab]", "[a-c]", "[-a]", "[a-]", "[]a]", "[^]a]", r"[\d_]", r"[^\W]", "[[:alpha:]]"),
    *(
        "[[:^digit:]-]",
        r"[\pL.]",
        r"[^\x00-\x{10FFFF}]",
        "[A-z]",
        "[Z-a]",
        r"[\x41-\x5a]",
        "[é-\u017f]",
    ),
    *("[a-c-e]", "[[a]", "[[:word:]", "[.]", "[|]"),
]
WRONG = [
    *(
        "(",
        ")",
        "[",
        "[a",
        "*",
        "+",
        "?",
        r"\1",
        r"\8",
        r"\q",
        r"\Z",
        r"\C",
        r"\x",
        r"\x{",
        r"\x{}",
    ),
    *(
        r"\x4",
        r"\x{110000}",
        r"\p",
        r"\p{",
        r"\p{Klingon}",
        r"\pX",
        "[b-a]",
        "[[:foo:]]",
        "(?",
        "(?P<",
    ),
    *(
        "(?P<>a)",
        "(?P<n-n>a)",
        "(?<é>a)",
        "(?=a)",
        "(?!a)",
        "(?<=a)",
        "(?#a)",
        "(?i-)",
        "(?-)",
        "(?z:a)",
    ),
    *(
        "a**",
        "a*+",
        "a{1}{2}",
        "a{1001}",
        "a{2,1}",
        "a{999999999}",
        "a{,2}*",
        "{*",
        "\\",
        "a|*",
        "(*)",
    ),
    *(
        "(?P<n>a)(?P<n>b)",
        r"[\b]",
        r"[a-\d]",
        "(?i)*",
        "a{1,01}",
        "a{01}",
        "a{1",
        "a{1,",
        "x{2}{",
        "(?i",
    ),
]
REPEATS = ["*", "+", "?", "*?", "+?", "??", "{2}", "{0}", "{0,2}", "{1,}", "{2,3}?", "{0,}", "{,2}"]
FLAGS = ["i", "m", "s", "U", "-i", "i-s", "is", "m-i", ""]
LETTERS = "abcABkKsS_-.07xyz"


def random_pattern(random: Random, depth: int = 0) -> str:
    parts = []
    for _ in range(random.choice([1, 1, 2, 3])):
        kind = random.random()
        if kind < 0.25 and depth < 4:
            start = random.choice(["(", "(?:", "(?P<n%d>", "(?<m%d>", "(?%s:", "(?%s)("])
            if "%d" in start:
                start %= random.randrange(10**6)
            elif "%s" in start:
                start %= random.choice(FLAGS)
            part = start + random_pattern(random, depth + 1) + ")"
        elif kind < 0.32 and depth < 4:
            part = random_pattern(random, depth + 1) + "|" + random_pattern(random, depth + 1)
        elif kind < 0.335:
            part = random.choice(WRONG)
        else:
            part = random.choice(ATOMS)
        if random.random() < 0.3:
            part += random.choice(REPEATS)
        parts.append(part)
    return "".join(parts)


def soup(random: Random) -> str:
    """Characters that mean something, in any order."""
    return "".join(random.choices("ab01(){}[]|*+?.^$\\-,:<>PiQEdpL&é", k=random.randrange(1, 12)))


def random_name(random: Random) -> str:
    return "".join(random.choices(LETTERS, k=random.choice([0, 1, 1, 2, 3, 4, 8])))


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    return kafka_program(tmp_path, "Match", MATCH, timeout_s=120)


def question(pattern: str, names: list[str]) -> str:
    return " ".join("x" + text.encode().hex() for text in (pattern, *names))


def ours(pattern: str, names: list[str]) -> str:
    try:
        regex = TopicRegex.compile(pattern)
    except InvalidRegexError as error:
        return f"invalid: {error}"
    return "".join("1" if regex.matches(name) else "0" for name in names)


def compare(ask: Ask, cases: list[tuple[str, list[str]]]) -> list[str]:
    answers = ask([question(pattern, names) for pattern, names in cases])
    for (pattern, names), kafkas in zip(cases, answers, strict=True):
        words = kafkas.replace("regexp/syntax: internal error", "unexpected )")
        assert ours(pattern, names) == words, (pattern, names)
    return answers


def test_patterns_of_a_grammar(ask: Ask) -> None:
    """Mostly well formed, with mistakes in between."""
    random = Random(1)
    cases = [
        (random_pattern(random), [random_name(random) for _ in range(20)]) for _ in range(20_000)
    ]
    answers = compare(ask, cases)
    invalid = sum(answer.startswith("invalid") for answer in answers)
    assert 1_000 < invalid < 10_000
    assert sum("1" in answer for answer in answers) > 2_000


def test_patterns_of_soup(ask: Ask) -> None:
    """Characters that mean something, in any order: what is wrong, and with which words."""
    random = Random(2)
    cases = [(soup(random), [random_name(random) for _ in range(5)]) for _ in range(20_000)]
    answers = compare(ask, cases)
    assert sum(answer.startswith("invalid") for answer in answers) > 2_000


def test_every_mistake(ask: Ask) -> None:
    """Each by itself, behind a letter, and in a group."""
    cases = [(form % wrong, ["a"]) for wrong in WRONG for form in ("%s", "a%s", "(a%s)", "%sb|c")]
    compare(ask, cases)


def test_every_class_and_character(ask: Ask) -> None:
    """All of ASCII against each named set, also with its other case."""
    names = [chr(code) for code in range(128)]
    classes = [f"\\p{{{name}}}" for name in UNICODE_CLASSES]
    classes += [f"\\P{{{name}}}" for name in UNICODE_CLASSES]
    classes += [rf"\{letter}" for letter in "dDsSwW"]
    for name in POSIX_CLASSES:
        classes += [f"[[:{name}:]]", f"[[:^{name}:]]", f"[^[:{name}:]]"]
    classes += [f"[{chr(code)}]" for code in range(128) if chr(code) not in "]\\^"]
    classes += [
        "[^a]",
        "[A-C]",
        "[^A-C]",
        "[Z-b]",
        "\u212a",
        "\u017f",
        "[\u00e9-\u017f]",
        "[\u2100-\u212a]",
    ]
    # RE2/J never comes back from some ranges that have other cases, as (?i)[\\u0100-\\u3000], and
    # knows the other case of K and S only of (?i)\\p{Ll}: ours is that of all letters.
    cases = [
        (form % name, names)
        for name in classes
        for form in ("%s", "(?i)%s", "(?s)%s")
        if not (form == "(?i)%s" and "{Ll}" in name)
    ]
    compare(ask, cases)
