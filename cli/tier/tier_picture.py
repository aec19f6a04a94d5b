"""Both tiers of a partition, drawn over its offsets.

    orders-3   1.2 GiB remote in 4 segments, 96.0 MiB local in 2
            log start 0
            |                           local log start 9,800
            |                           |                  high watermark, end 12,340
     remote [=======][=======][=======][=======]
      local                             [======][===========>
                                                ^ copied up to 11,000

A segment is as wide as its share of the offsets. Where they are too narrow to be seen, those next
to each other become one with their number in it. One that is not finished is drawn with `~`; one
that overlaps others has a line of its own.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from cli.table import counted, format_size

WIDTH: Final = 100
"""Columns when the terminal does not say."""

LABEL: Final = 8
"""Columns of the names in front of the bars."""

WIDTH_MIN: Final = 40

GAPS_SHOWN: Final = 5


class Bar(NamedTuple):
    """A segment, or some next to each other: offsets [start, end)."""

    start: int
    end: int
    segments: int = 1
    finished: bool = True
    active: bool = False


def picture(row: Mapping[str, Any], *, width: int = WIDTH) -> str:
    """The drawing of one row of `/tier?topic=...`."""
    remote = [
        Bar(one["start"], one["end"], finished=one["state"] == "COPY_SEGMENT_FINISHED")
        for one in row.get("remote", ())
    ]
    local = [
        Bar(one["start"], one["end"], active=bool(one["active"])) for one in row.get("local", ())
    ]
    first = min([row.get("logStart", 0), *(bar.start for bar in remote)])
    end = max([row.get("logEnd", 0), *(bar.end for bar in remote), first + 1])
    scale = _Scale(first, end, max(width, WIDTH_MIN) - LABEL - 1)
    lines = [_title(row)]
    marks = _marks(row)
    lines += [_mark_line(marks, number, scale) for number in range(len(marks))]
    for name, bars in (("remote", remote), ("local", local)):
        drawn = _bar_lines(bars, scale) or ["(nothing)"]
        for number, line in enumerate(drawn):
            lines.append(f"{(name if number == 0 else ''):>{LABEL - 1}} {line}".rstrip())
    highest = row.get("highestRemote", -1)
    if highest >= 0:
        column = scale.column(highest + 1)
        lines.append(" " * (LABEL + column) + f"^ copied up to {highest + 1:,}")
    return "\n".join(lines)


def _title(row: Mapping[str, Any]) -> str:
    name = f"{row['topic']}-{row['partition']}"
    if not row.get("ready", True):
        return f"{name}   what is remote is still being read"
    text = (
        f"{name}   {format_size(row.get('remoteBytes', 0))} remote in "
        f"{counted(row.get('remoteSegments', 0), 'segment')}"
    )
    if "localBytes" in row:
        text += f", {format_size(row['localBytes'])} local in {len(row.get('local', ()))}"
    notes = [word for key, word in _NOTES.items() if row.get(key)]
    if row.get("corruptSegment"):
        corrupt = row["corruptSegment"]
        notes.append(f"not copied from {corrupt['start']} on: {corrupt['problem']}")
    gaps = row.get("gaps", ())
    if gaps:
        shown = ", ".join(f"{start}..{end - 1}" for start, end in gaps[:GAPS_SHOWN])
        more = f" and {len(gaps) - GAPS_SHOWN} more" if len(gaps) > GAPS_SHOWN else ""
        notes.append(f"offsets {shown}{more} are in neither tier")
    if row.get("heldBack"):
        notes.append(row["heldBack"])
    if row.get("unknownCopies"):
        notes.append(f"complete segments unknown to the metadata: {row['unknownCopies']}")
    if row.get("unfinishedSegments"):
        notes.append(f"{counted(row['unfinishedSegments'], 'segment')} unfinished")
    return f"{text}   ({', '.join(notes)})" if notes else text


_NOTES: Final = {"copyPaused": "copying is paused", "fetchPaused": "reading is paused"}


class _Scale:
    """Offsets to columns."""

    def __init__(self, first: int, end: int, columns: int) -> None:
        self.first, self.end, self.columns = first, end, columns

    def column(self, offset: int) -> int:
        """0 .. columns; out of range is at the edge."""
        offset = min(max(offset, self.first), self.end)
        return (offset - self.first) * self.columns // (self.end - self.first)


def _marks(row: Mapping[str, Any]) -> list[tuple[int, str]]:
    """What is pointed at, from left to right; what is at the same offset is named together."""
    named = [
        ("logStart", "log start"),
        ("localLogStart", "local log start"),
        ("highWatermark", "high watermark"),
        ("logEnd", "end"),
    ]
    by_offset: dict[int, list[str]] = {}
    for key, name in named:
        if key in row:
            by_offset.setdefault(row[key], []).append(name)
    return [
        (offset, f"{', '.join(names)} {offset:,}") for offset, names in sorted(by_offset.items())
    ]


def _mark_line(marks: Sequence[tuple[int, str]], number: int, scale: _Scale) -> str:
    """The line of one mark, with strokes to those before it."""
    line = [" "] * (scale.columns + 1)
    for offset, _ in marks[:number]:
        line[scale.column(offset)] = "|"
    offset, text = marks[number]
    column = scale.column(offset)
    # Where it would not fit to the right it ends at its place, over the strokes there.
    fits = column + len(text) <= scale.columns
    begin = column if fits else max(column - len(text) + 1, 0)
    line[begin : begin + len(text)] = list(text)
    return (" " * LABEL + "".join(line)).rstrip()


def _bar_lines(bars: Sequence[Bar], scale: _Scale) -> list[str]:
    """Bars in as few lines as overlaps allow."""
    rows: list[list[Bar]] = []
    for bar in sorted(bars):
        for line in rows:
            if line[-1].end <= bar.start:
                line.append(bar)
                break
        else:
            rows.append([bar])
    return ["".join(_draw(_joined(line, scale), scale)).rstrip() for line in rows]


def _joined(bars: Sequence[Bar], scale: _Scale) -> list[Bar]:
    """Bars too narrow to be seen become one with their neighbours."""
    joined: list[Bar] = []
    for bar in bars:
        last = joined[-1] if joined else None
        if (
            last is not None
            and last.end == bar.start
            and last.finished == bar.finished
            and not bar.active
            and _columns(last, scale) + _columns(bar, scale) <= 2 * len(f"[{last.segments + 1}]")
            and min(_columns(last, scale), _columns(bar, scale)) < 2
        ):
            joined[-1] = Bar(last.start, bar.end, last.segments + bar.segments, bar.finished)
        else:
            joined.append(bar)
    return joined


def _columns(bar: Bar, scale: _Scale) -> int:
    return scale.column(bar.end) - scale.column(bar.start)


def _draw(bars: Sequence[Bar], scale: _Scale) -> list[str]:
    line = [" "] * (scale.columns + 1)
    for bar in bars:
        begin, end = scale.column(bar.start), scale.column(bar.end)
        inside = max(end - begin - 2, 0)
        body = ("=" if bar.finished else "~") * inside
        if bar.segments > 1 and inside >= len(str(bar.segments)):
            body = str(bar.segments).center(inside, "=")
        text = f"[{body}{'>' if bar.active else ']'}" if end - begin >= 2 else "|"
        if end == begin and bar.active:
            text = ">"
        line[begin : begin + len(text)] = list(text)
    return line
