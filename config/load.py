"""Loading of one checked configuration from file, environment and command line.

Sources, each stronger than the one before:

    defaults < --config FILE (server.properties or YAML) < KAFKA_* environment < --set KEY=VALUE

Every mistake is found before any is reported: an operator who starts a broker on a remote machine
wants to correct them in one go.
"""

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from config.broker import BROKER_KEYS, BrokerConfig
from config.broker_rules import conflicts
from config.definition import SECRET_SHOWN, ConfigKey
from config.environment import settings_of
from config.errors import ConfigLoadError, InvalidConfigError, Mistake
from config.foreign import is_passed_over, is_refused
from config.properties import Property, parse_properties
from config.remote_names import moves
from config.topic import TOPIC_KEYS

FILE_SIZE_MAX = 1024 * 1024
"""Largest settings file, in bytes."""

_YAML_SUFFIXES = frozenset({".yaml", ".yml"})


class Source(enum.Enum):
    """Sources of a setting's value, weakest first."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"
    COMMAND_LINE = "command line"


@dataclass(frozen=True, slots=True)
class Given:
    """One setting as it was written.

    Attributes:
        key: Kafka's name.
        text: The value's text.
        source: Which kind of place.
        origin: Which place, for people: `server.properties:12`.
    """

    key: str
    text: str
    source: Source
    origin: str


@dataclass(frozen=True, slots=True)
class EffectiveSetting:
    """One setting as it counts, for showing: secrets are masked in `shown`."""

    row: ConfigKey
    value: object
    shown: str | None
    source: Source
    origin: str


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """A checked configuration that knows where its values came from.

    Attributes:
        broker: The settings.
        settings: Every setting with its source, in the order of the documentation.
        warnings: Sentences for the log at the start.
        config_file: Path of the file read, None without one.
    """

    broker: BrokerConfig
    settings: tuple[EffectiveSetting, ...]
    warnings: tuple[str, ...]
    config_file: str | None = None


def load(
    *,
    config_file: str | None = None,
    environment: Mapping[str, str] | None = None,
    assignments: Sequence[str] = (),
    read_file: Callable[[str], bytes] = lambda path: Path(path).read_bytes(),
) -> LoadedConfig:
    """Join the sources and check the result.

    Args:
        config_file: Path of a properties file, or of a YAML file when it ends in .yaml or .yml.
        environment: The process's variables; None means none.
        assignments: `KEY=VALUE` texts of the command line.
        read_file: Gives a file's bytes or raises OSError.

    Raises:
        ConfigLoadError: With every mistake.
    """
    mistakes: list[Mistake] = []
    given: dict[str, Given] = {}
    if config_file is not None:
        given.update(_from_file(config_file, read_file, mistakes))
    for variable in settings_of(environment or {}):
        origin = f"environment {variable.name}"
        given[variable.key] = Given(variable.key, variable.value, Source.ENVIRONMENT, origin)
    given.update(_from_command_line(assignments, mistakes))
    _move_to_fixed_names(given)

    known, passed_over = _classify(given, mistakes)
    _leave_out_controller_listeners(known, given)
    values: dict[str, object] = {}
    for setting in known.values():
        row = BROKER_KEYS[setting.key]
        if not setting.text.strip() and _may_be_unset(row):
            values[row.field_name] = None
            continue
        try:
            values[row.field_name] = row.parse(setting.text)
        except InvalidConfigError as error:
            problem = str(error).removeprefix(f"Invalid value {setting.text.strip()} ")
            problem = problem.removeprefix(f"for configuration {row.name}: ")
            mistakes.append(_mistake(setting, row, problem, row.kind.description))
    # Settings that parse are checked against each other even when others do not: a mistake in one
    # place must not hide one in another. What does not parse stands at its default meanwhile.
    broker = BrokerConfig(**values)  # type: ignore[arg-type]  # each value is of its own field's type
    refused = {mistake.key for mistake in mistakes}
    for conflict in conflicts(broker):
        if conflict.key not in refused:
            setting = known.get(conflict.key) or _default(conflict.key, broker)
            row = BROKER_KEYS[conflict.key]
            mistakes.append(_mistake(setting, row, conflict.problem, conflict.expected))
    if mistakes:
        raise ConfigLoadError(tuple(mistakes))
    return LoadedConfig(
        broker=broker,
        settings=tuple(_effective(row, broker, known) for row in BROKER_KEYS.values()),
        warnings=_warnings(passed_over),
        config_file=config_file,
    )


def _from_file(
    path: str, read_file: Callable[[str], bytes], mistakes: list[Mistake]
) -> dict[str, Given]:
    name = Path(path).name
    try:
        data = read_file(path)
        if len(data) > FILE_SIZE_MAX:
            raise ValueError(f"is larger than {FILE_SIZE_MAX} bytes")
        text = data.decode("utf-8-sig")
        parse: Callable[[str], list[Property]] = parse_properties
        if Path(path).suffix.lower() in _YAML_SUFFIXES:
            # Imported here for the sake of every start that needs no YAML.
            from config.yaml_file import parse_yaml

            parse = parse_yaml
        settings = parse(text)
    except OSError as error:
        mistakes.append(Mistake("--config", path, f"cannot be read: {error.strerror}", "", path))
        return {}
    except UnicodeDecodeError as error:
        problem = f"is not UTF-8 at byte {error.start}"
        mistakes.append(Mistake("--config", path, problem, "", path))
        return {}
    except ValueError as error:
        mistakes.append(Mistake("--config", path, str(error), "", path))
        return {}
    return {key: Given(key, value, Source.FILE, f"{name}:{line}") for key, value, line in settings}


def _from_command_line(assignments: Sequence[str], mistakes: list[Mistake]) -> dict[str, Given]:
    given = {}
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not equals or not key.strip():
            mistakes.append(Mistake(assignment, None, "is not KEY=VALUE", "", "--set"))
            continue
        given[key.strip()] = Given(key.strip(), text, Source.COMMAND_LINE, "--set")
    return given


def _move_to_fixed_names(given: dict[str, Given]) -> None:
    for old, new, text in moves({key: setting.text for key, setting in given.items()}):
        setting = given.pop(old)
        given[new] = Given(new, text, setting.source, setting.origin)


def _classify(
    given: Mapping[str, Given], mistakes: list[Mistake]
) -> tuple[dict[str, Given], list[Given]]:
    """Our settings, and those of Kafka that are passed over; the rest are mistakes."""
    known: dict[str, Given] = {}
    passed_over: list[Given] = []
    for setting in given.values():
        if setting.key in BROKER_KEYS:
            known[setting.key] = setting
        elif is_passed_over(setting.key, setting.text):
            passed_over.append(setting)
        elif is_refused(setting.key):
            # The value may be a password: it is not repeated.
            problem = "Kafka has this setting, Varve does not support it yet"
            mistakes.append(Mistake(setting.key, None, problem, "", setting.origin))
        else:
            mistakes.append(Mistake(setting.key, None, _unknown(setting.key), "", setting.origin))
    return known, passed_over


def _unknown(key: str) -> str:
    row = TOPIC_KEYS.get(key)
    if row is not None:
        names = " or ".join(synonym.key for synonym in row.synonyms)
        hint = f"; its default for all topics is {names}" if names else ""
        return f"is a setting of topics{hint}"
    import difflib  # needed by mistakes only

    close = difflib.get_close_matches(key, BROKER_KEYS, n=1, cutoff=0.8)
    return f"unknown setting, did you mean {close[0]}?" if close else "unknown setting"


def _leave_out_controller_listeners(known: dict[str, Given], given: Mapping[str, Given]) -> None:
    """Drop the addresses that a KRaft configuration keeps for its controllers."""
    controllers = given.get("controller.listener.names")
    if controllers is None:
        return
    names = tuple(
        f"{name.strip().upper()}:" for name in controllers.text.split(",") if name.strip()
    )
    for key in ("listeners", "advertised.listeners"):
        setting = known.get(key)
        if setting is None or not names:
            continue
        kept = [one for one in setting.text.split(",") if not one.strip().upper().startswith(names)]
        known[key] = Given(key, ",".join(kept), setting.source, setting.origin)


def _may_be_unset(row: ConfigKey) -> bool:
    return row.default is None or row.name == "admin.listener"


def _mistake(setting: Given, row: ConfigKey, problem: str, expected: str) -> Mistake:
    text = SECRET_SHOWN if row.secret else setting.text
    return Mistake(setting.key, text, problem, expected, setting.origin)


def _default(key: str, broker: BrokerConfig) -> Given:
    row = BROKER_KEYS[key]
    text = row.format(getattr(broker, row.field_name)) or ""
    return Given(key, text, Source.DEFAULT, "default")


def _effective(
    row: ConfigKey, broker: BrokerConfig, known: Mapping[str, Given]
) -> EffectiveSetting:
    value = getattr(broker, row.field_name)
    setting = known.get(row.name) or _carried_over(row.name, broker, known)
    if setting is None:
        return EffectiveSetting(row, value, row.shown(value), Source.DEFAULT, "default")
    return EffectiveSetting(row, value, row.shown(value), setting.source, setting.origin)


def _carried_over(name: str, broker: BrokerConfig, known: Mapping[str, Given]) -> Given | None:
    if name == "node.id" and broker.broker_id != -1:
        return known.get("broker.id")
    return known.get("log.dir") if name == "log.dirs" else None


def _warnings(passed_over: Sequence[Given]) -> tuple[str, ...]:
    if not passed_over:
        return ()
    names = ", ".join(sorted(setting.key for setting in passed_over))
    return (f"settings of Kafka that have no meaning here are ignored: {names}",)
