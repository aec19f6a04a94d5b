"""Histories of a few lines with each anomaly of share groups, and without: for `test_analysis`."""

from tests.checker.anomalies.histories import Script

A = "t-0"


def _share(s: Script, count: int = 1) -> None:
    s.add("m", "sharing", group="g", keys=[A], deliveries_max=5)
    for offset in range(count):
        s.send("p", f"v{offset}", offset)


def _deliver(s: Script, proc: str, offset: int, times: int = 1, *, old: bool = False) -> None:
    """To a member that may have had it in hand for long, or not."""
    since = 0 if old else s.now
    s.add(
        proc,
        "deliver",
        group="g",
        deliveries={A: [(offset, f"v{offset}", times)]},
        since=since,
        previous=since,
    )


def _say(s: Script, proc: str, offset: int, kind: str = "ACCEPT", outcome: str = "ok") -> None:
    s.add(proc, "acknowledge", outcome, group="g", key=A, acks=[(offset, kind)])


def share_lost(s: Script, *, bad: bool) -> None:
    _share(s, 2)
    for offset in range(1 if bad else 2):
        _deliver(s, "m", offset)
        _say(s, "m", offset)
    s.final(t_0=[(0, "v0"), (1, "v1")])


def share_unfinished(s: Script, *, bad: bool) -> None:
    """Released, which is not the end of it; or by a member that is killed."""
    _share(s, 3)
    for offset in range(3):
        _deliver(s, "m", offset)
    _say(s, "m", 0)
    _say(s, "m", 1, "RELEASE")
    if not bad:
        for offset in (1, 2):
            _deliver(s, "n", offset, 2)
            _say(s, "n", offset, outcome="info")
    s.final(t_0=[(offset, f"v{offset}") for offset in range(3)])


def share_unfinished_before_the_limit(s: Script, *, bad: bool) -> None:
    """Near the limit it may have been given up, with deliveries that nobody has noted."""
    _share(s)
    for times in range(1, 3 if bad else 4):
        _deliver(s, "m", 0, times)
        _say(s, "m", 0, "RELEASE")
    s.final(t_0=[(0, "v0")])


def share_redelivered(s: Script, *, bad: bool) -> None:
    """To one that was acquired before - it is late - it may well be."""
    _share(s)
    _deliver(s, "m", 0, 2)
    _say(s, "m", 0)
    _deliver(s, "n", 0, 1, old=not bad)
    s.final(t_0=[(0, "v0")])


def share_redelivered_at_once(s: Script, *, bad: bool) -> None:
    """Somebody has it once more, or somebody who had it before has stood still."""
    _share(s)
    if not bad:
        _deliver(s, "m", 0, 2)
        s.add("k", "acknowledge", "info", group="g", key=A, acks=[(0, "ACCEPT")])
    _deliver(s, "m", 0, 1 if bad else 3)
    _say(s, "m", 0)
    _deliver(s, "n", 0, 2 if bad else 1, old=True)
    s.final(t_0=[(0, "v0")])


def share_redelivered_after_a_kill(s: Script, *, bad: bool) -> None:
    """An answer of before the kill may come in the first poll after it, in no later one."""
    _share(s)
    _deliver(s, "m", 0)
    _say(s, "m", 0)
    s.add("nemesis", "kill", clean=bad)
    since, previous = 0, s.now
    s.add("n", "deliver", group="g", deliveries={A: [(0, "v0", 1)]}, since=since, previous=previous)
    s.final(t_0=[(0, "v0")])


def share_delivery_count(s: Script, *, bad: bool) -> None:
    _share(s)
    for times in range(1, 7 if bad else 6):
        _deliver(s, "m", 0, times)
        _say(s, "m", 0, "RELEASE")
    s.final(t_0=[(0, "v0")])


def share_count_repeated(s: Script, *, bad: bool) -> None:
    _share(s)
    _deliver(s, "m", 0)
    if not bad:
        s.add("nemesis", "kill", clean=True)
    _deliver(s, "n", 0)
    _say(s, "n", 0)
    s.final(t_0=[(0, "v0")])
