"""Writes docs/configuration.md from the rows: `python -m config.reference [--check]`."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from config.broker import SECTIONS
from config.definition import ConfigKey, Settings
from config.kinds import DOUBLE_MAX, INT_MAX, LONG_MAX, Double
from config.topic import TOPIC_KEYS

PATH = Path(__file__).resolve().parent.parent / "docs" / "configuration.md"

_INTRODUCTION = """\
# Configuration

<!-- Written by `make docs` from the rows in config/; change those, not this file. -->

Varve takes Kafka's settings under Kafka's names, and a few of its own. Where a meaning or a default
differs from Kafka 4.2 the key says so under *Differs*.

## Where settings come from

Each source is stronger than the one above it:

1. the defaults on this page,
2. `varve serve --config FILE`: a `server.properties` file in Java's properties syntax, or YAML when
   the name ends in `.yaml` or `.yml` (flat or nested names, lists instead of commas),
3. the environment: `KAFKA_` and the name in capitals, with `.` as `_`, `_` as `__` and `-` as
   `___`, as in Kafka's container image: `KAFKA_LOG_DIRS` is `log.dirs`. Variables for Java and its
   logging (`KAFKA_HEAP_OPTS`, `KAFKA_OPTS`, `KAFKA_LOG4J_...`) and those that Kubernetes sets for a
   service called `kafka` are no settings,
4. `varve serve --set KEY=VALUE`.

`varve config --effective` prints what they come to, and where each value is from.

Every mistake is reported at once and the broker does not start (exit status 2). Unknown names are
mistakes. Settings of Kafka that cannot matter here are accepted with one warning: those of KRaft
(`process.roles`, `controller.*`, ...; listeners named in `controller.listener.names` are left
out), of the Java machinery, and tuning of features that are not there yet. Settings that ask for
something Varve would silently not do, such as TLS, SASL, authorizers and object stores other than
S3 and directories, are refused.

A setting marked *dynamic* may be changed while the broker runs (AlterConfigs), and counts at once,
or from the next time it is needed: those of the cleaner from the next log it takes, threads for
recovery from the next start. A listener that is added serves at once, one that is taken away loses
its connections; an address that cannot be bound is an alert (`/readyz`, `varve_alerts`).

## Large numbers

| shown as | is |
|---|--:|
| the largest integer | 2147483647 |
| the largest long | 9223372036854775807 |
| the largest number | 1.7976931348623157E308 |
"""

_LARGEST = {
    str(INT_MAX): "the largest integer",
    str(LONG_MAX): "the largest long",
}


def reference() -> str:
    """The whole document."""
    parts = [_INTRODUCTION, "\n## Broker settings\n"]
    for section in SECTIONS:
        parts.append(f"\n### {_heading(section)}\n")
        parts.extend(_entries(section.rows()))
    parts.append("\n## Topic settings\n")
    parts.append(
        "\nA topic's value is its own, else that of the first broker setting under *Default for all"
        "\ntopics* that is set, else the default.\n"
    )
    parts.extend(_entries(TOPIC_KEYS))
    return "".join(parts)


def _heading(section: type[Settings]) -> str:
    return (section.__doc__ or "").splitlines()[0].rstrip(".")


def _entries(rows: Mapping[str, ConfigKey]) -> Iterator[str]:
    for row in sorted(rows.values(), key=lambda row: row.name):
        if not row.internal:
            yield from _entry(row)


def _entry(row: ConfigKey) -> Iterator[str]:
    yield f"\n#### `{row.name}`\n\n{row.text}\n\n"
    yield f"- Value: {row.kind.description}{', dynamic' if row.dynamic else ''}"
    yield f"{', secret' if row.secret else ''}\n"
    yield f"- Default: {_default(row)}\n"
    if row.synonyms:
        names = [
            f"`{synonym.key}`" + (f" (times {synonym.factor})" if synonym.factor != 1 else "")
            for synonym in row.synonyms
        ]
        yield f"- Default for all topics: {', else '.join(names)}\n"
    if row.difference:
        yield f"- Differs: {row.difference}\n"
    yield f"- Source: {row.source}\n"


def _default(row: ConfigKey) -> str:
    if row.default is None:
        return "not set"
    if isinstance(row.kind, Double) and row.default == DOUBLE_MAX:
        return "the largest number"
    text = row.format(row.default)
    assert text is not None
    return _LARGEST.get(text, f"`{text}`" if text else "empty")


def main() -> int:
    """Write the document, or with `--check` say whether it is fresh."""
    if "--check" in sys.argv[1:]:
        fresh = PATH.is_file() and PATH.read_text(encoding="utf-8") == reference()
        if not fresh:
            sys.stderr.write(f"{PATH.name} is stale: run `make docs`\n")
        return 0 if fresh else 1
    PATH.parent.mkdir(exist_ok=True)
    PATH.write_text(reference(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
