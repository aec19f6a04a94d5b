"""Settings in YAML: Kafka's names as keys, flat or nested.

    listeners: PLAINTEXT://:9092
    log:
      dirs: [/disk1, /disk2]        # log.dirs=/disk1,/disk2
      retention.hours: 24           # log.retention.hours=24

A value is taken as it is written: YAML's own ideas of numbers, dates and `yes` do not apply.
"""

from collections.abc import Iterator

import yaml

from config.properties import Property

DEPTH_MAX = 16
"""Levels of nesting; no key has more parts, and an anchor that contains itself ends here."""

SETTINGS_MAX = 10_000
"""Settings in one file; anchors may multiply a small file into a large one."""


def parse_yaml(text: str) -> list[Property]:
    """Read every setting, in order.

    Raises:
        ValueError: Not YAML, or not a mapping of texts; the message names the line.
    """
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark is not None else ""
        raise ValueError(f"{where}{getattr(error, 'problem', None) or 'not YAML'}") from error
    if root is None:
        return []
    found = []
    for setting in _walk(root, "", 0):
        found.append(setting)
        if len(found) > SETTINGS_MAX:
            raise ValueError(f"more than {SETTINGS_MAX} settings")
    return found


def _walk(node: yaml.Node, prefix: str, depth: int) -> Iterator[Property]:
    line = node.start_mark.line + 1
    if depth > DEPTH_MAX:
        raise ValueError(f"line {line}: nested more than {DEPTH_MAX} levels deep")
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise ValueError(f"line {key.start_mark.line + 1}: a key must be a text")
            yield from _walk(value, f"{prefix}.{key.value}" if prefix else key.value, depth + 1)
    elif not prefix:
        raise ValueError(f"line {line}: a mapping of names to values is expected")
    elif isinstance(node, yaml.SequenceNode):
        if not all(isinstance(item, yaml.ScalarNode) for item in node.value):
            raise ValueError(f"line {line}: {prefix} is a list of something else than texts")
        yield Property(prefix, ",".join(item.value for item in node.value), line)
    else:
        null = node.tag == "tag:yaml.org,2002:null"
        yield Property(prefix, "" if null else node.value, line)
