"""Pages of Prometheus' text format of several brokers, put together as one.

labelled   every sample of every broker, with a label `broker`: sums are the reader's
summed     counters and histograms of all brokers added up, without that label; gauges are left out:
           a largest lag or an age has no sum

A family is named once, with the help and the type that its first broker gives.
"""

from collections.abc import Mapping
from typing import Final

LABEL: Final = b"broker"

_SUMMED: Final = (b"counter", b"histogram")


class _Family:
    __slots__ = ("head", "kind", "samples")

    def __init__(self, head: list[bytes]) -> None:
        self.head = head
        self.kind = b""
        self.samples: list[tuple[str, bytes]] = []


def labelled(pages: Mapping[str, bytes]) -> bytes:
    """One page; the keys are the label's values. Blocks: for a thread."""
    lines: list[bytes] = []
    for family in _families(pages):
        lines += family.head
        lines += [_with_label(sample, broker.encode()) for broker, sample in family.samples]
    return b"".join(line + b"\n" for line in lines)


def summed(pages: Mapping[str, bytes]) -> bytes:
    """The sums. Blocks: for a thread."""
    lines: list[bytes] = []
    for family in _families(pages):
        if family.kind not in _SUMMED:
            continue
        sums: dict[bytes, float] = {}
        for _, sample in family.samples:
            name, _, value = sample.rpartition(b" ")
            sums[name] = sums.get(name, 0.0) + float(value)
        lines += family.head
        lines += [name + b" " + repr(value).encode() for name, value in sums.items()]
    return b"".join(line + b"\n" for line in lines)


def _families(pages: Mapping[str, bytes]) -> list[_Family]:
    """In the order in which they are first seen; samples keep their broker's order."""
    found: dict[bytes, _Family] = {}
    for broker, page in pages.items():
        family: _Family | None = None
        for line in page.splitlines():
            if line.startswith(b"# HELP "):
                name = line.split(b" ", 3)[2]
                family = found.get(name)
                if family is None:
                    family = found[name] = _Family([line])
            elif line.startswith(b"# TYPE "):
                if family is not None and not family.kind:
                    family.head.append(line)
                    family.kind = line.rpartition(b" ")[2]
            elif line and not line.startswith(b"#") and family is not None:
                family.samples.append((broker, line))
    return list(found.values())


def _with_label(sample: bytes, broker: bytes) -> bytes:
    """The sample with one label more, in front of its others."""
    label = LABEL + b'="' + broker + b'"'
    brace, space = sample.find(b"{"), sample.find(b" ")
    if 0 <= brace < space:
        return sample[: brace + 1] + label + b"," + sample[brace + 1 :]
    return sample[:space] + b"{" + label + b"}" + sample[space:]
