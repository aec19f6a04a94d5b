"""Both tiers of a partition as a drawing."""

from typing import Any

from cli.tier.tier_picture import picture


def remote(start: int, end: int, state: str = "COPY_SEGMENT_FINISHED") -> dict[str, Any]:
    return {"start": start, "end": end, "state": state}


def local(start: int, end: int, *, active: bool = False) -> dict[str, Any]:
    return {"start": start, "end": end, "active": active}


def row(**changes: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        "topic": "t",
        "partition": 3,
        "ready": True,
        "logStart": 0,
        "localLogStart": 50,
        "highWatermark": 100,
        "logEnd": 100,
        "highestRemote": 74,
        "remoteBytes": 1 << 20,
        "remoteSegments": 3,
        "unfinishedSegments": 0,
        "localBytes": 512,
        "remote": [remote(0, 25), remote(25, 50), remote(50, 75)],
        "local": [local(50, 75), local(75, 100, active=True)],
    }
    return found | changes


def drawn(width: int = 49, **changes: Any) -> list[str]:
    """The lines; 40 columns for the offsets."""
    return picture(row(**changes), width=width).splitlines()


def test_segments_stand_where_their_offsets_are() -> None:
    """Under marks for the log's own offsets, over how far copying is."""
    assert drawn() == [
        "t-3   1.0 MiB remote in 3 segments, 512 B local in 2",
        "        log start 0",
        "        |                   local log start 50",
        "        |                 high watermark, end 100",
        " remote [========][========][========]",
        "  local                     [========][========>",
        "                                      ^ copied up to 75",
    ]


def test_what_is_missing_and_what_is_corrupt_is_said() -> None:
    gaps = [[at, at + 5] for at in range(0, 70, 10)]
    title = drawn(gaps=gaps, corruptSegment={"start": 75, "path": "p", "problem": "bad"})[0]
    assert "not copied from 75 on: bad" in title
    assert "offsets 0..4, 10..14, 20..24, 30..34, 40..44 and 2 more are in neither tier" in title
    assert "nobody" not in drawn(gaps=[])[0]


def test_unfinished_and_overlapping_segments_can_be_told() -> None:
    """By their filling; by a line of their own."""
    lines = drawn(
        remote=[remote(0, 50), remote(25, 75), remote(75, 100, "COPY_SEGMENT_STARTED")],
        unfinishedSegments=1,
        copyPaused=True,
    )
    assert lines[0].endswith("(copying is paused, 1 segment unfinished)")
    assert lines[4:6] == [
        " remote [==================]          [~~~~~~~~]",
        "                  [==================]",
    ]


def test_what_is_too_narrow_becomes_one() -> None:
    """With the number of segments in it; none is left out."""
    lines = drawn(remote=[remote(n, n + 1) for n in range(100)])
    (line,) = [line for line in lines if line.startswith(" remote")]
    numbers = [int(word.strip("=")) for word in line[8:].strip("[]").split("][")]
    assert sum(numbers) == 100
    assert len(line) == 48


def test_empty_tiers_are_said_to_be_empty() -> None:
    """A new topic has neither."""
    lines = drawn(remote=[], local=[], logEnd=0, highWatermark=0, localLogStart=0, highestRemote=-1)
    assert lines[1] == "        log start, local log start, high watermark, end 0"
    assert lines[2:] == [" remote (nothing)", "  local (nothing)"]


def test_metadata_that_is_being_read_is_no_emptiness() -> None:
    """Nothing is claimed of the remote part."""
    assert drawn(ready=False)[0] == "t-3   what is remote is still being read"


def test_a_narrow_terminal_is_drawn_for_all_the_same() -> None:
    """Lines may be cut off, but nothing fails."""
    assert len(drawn(width=1)) == len(drawn(width=200)) == 7
