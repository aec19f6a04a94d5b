"""Histories of a few lines with each kind of cycle, and without it: for `test_analysis`."""

from tests.checker.anomalies.histories import Script

A, B = "t-0", "t-1"


def int_send_skip(s: Script, *, bad: bool) -> None:
    """Both are under way at the same time."""
    s.add("p", "txn", sends=[(A, "a", 0), (A, "b", 2 if bad else 1)])
    s.at_once()
    s.send("q", "c", 1 if bad else 2)


def g0(s: Script, *, bad: bool) -> None:
    s.add("p", "txn", sends=[(A, "a", 0), (B, "b", 1 if bad else 0)])
    s.at_once()
    s.add("q", "txn", sends=[(A, "c", 1), (B, "d", 0 if bad else 1)])


def g0_process(s: Script, *, bad: bool) -> None:
    """Process p's second follows on q's only transaction, and that on p's first."""
    s.add("p", "txn", "info", sends=[(A, "a", 1 if bad else 0)])
    s.add("p", "txn", "info", sends=[(B, "b", 0)])
    s.add("q", "txn", "info", sends=[(B, "c", 1), (A, "d", 0 if bad else 1)])
    s.final(t_0=[(0, "d"), (1, "a")] if bad else [(0, "a"), (1, "d")], t_1=[(0, "b"), (1, "c")])


def g0_realtime(s: Script, *, bad: bool) -> None:
    """As before, with two processes: q begins when p has ended."""
    s.add("r", "txn", "info", sends=[(B, "c", 1), (A, "d", 0 if bad else 1)])
    s.add("p", "txn", sends=[(A, "a", 1 if bad else 0)])
    s.add("q", "txn", sends=[(B, "b", 0)])
    s.final(t_0=[(0, "d"), (1, "a")] if bad else [(0, "a"), (1, "d")], t_1=[(0, "b"), (1, "c")])


def g1c(s: Script, *, bad: bool) -> None:
    s.add("p", "txn", sends=[(A, "a", 0)], polls={B: [(0, "b")]} if bad else {})
    s.at_once()
    s.add("q", "txn", sends=[(B, "b", 0)], polls={A: [(0, "a")]})


def g1c_process(s: Script, *, bad: bool) -> None:
    """Process p's first read what q sent, which had read what p's second was to send."""
    s.add("p", "txn", sends=[(A, "a", 0)], polls={B: [(0, "b")]} if bad else {})
    s.add("p", "txn", sends=[("t-2", "c", 0)])
    s.at_once(3)
    s.add("q", "txn", sends=[(B, "b", 0)], polls={"t-2": [(0, "c")]})


def g1c_realtime(s: Script, *, bad: bool) -> None:
    """Process r has read of p, and has ended; only then q sends what p reads."""
    s.add("p", "txn", "info", sends=[(A, "a", 0)], polls={B: [(0, "b")]} if bad else {})
    s.poll("r", (0, "a"))
    s.add("q", "txn", sends=[(B, "b", 0)])


def g1c_ww(s: Script, *, bad: bool) -> None:
    """First p writes A, then q does; q wrote B, and p has read that."""
    s.add("p", "txn", sends=[(A, "a", 0)], polls={B: [(0, "b")]} if bad else {})
    s.at_once()
    s.add("q", "txn", sends=[(A, "c", 1), (B, "b", 0)])


def g1c_ww_process(s: Script, *, bad: bool) -> None:
    """Process p has read of q, and what it sends then stands before what q sent."""
    _read_then_overtaken(s, "p", bad=bad)


def g1c_ww_realtime(s: Script, *, bad: bool) -> None:
    _read_then_overtaken(s, "z", bad=bad)


def _read_then_overtaken(s: Script, sender: str, *, bad: bool) -> None:
    s.add("q", "txn", "info", sends=[(A, "b", 0), (B, "y", None)])
    s.poll("p", (0, "b"))
    s.add(sender, "send", "info", sends=[(B, "x", None)])
    s.add("r", "poll", polls={B: list(enumerate("xy" if bad else "yx"))})


def g_single(s: Script, *, bad: bool) -> None:
    """Process r has a part of what p sent."""
    s.add("p", "txn", "info", sends=[(A, "a", 0), (B, "b", 1)])
    s.send("q", "x", None, "info")
    s.add("s", "send", sends=[(B, "y", 0)])
    s.add("r", "poll", polls={A: [(0, "a")], B: [(0, "y"), *([] if bad else [(1, "b")])]})
    s.final(t_0=[(0, "a")], t_1=[(0, "y"), (1, "b")])


def g_single_process(s: Script, *, bad: bool) -> None:
    """Process p polls too little, after it has sent what stands there."""
    s.send("q", "x", 0)
    s.send("p", "a", 1)
    if bad:
        s.poll("p", (0, "x"))


def g_single_realtime(s: Script, *, bad: bool) -> None:
    s.send("q", "x", 0)
    s.send("p", "a", 1)
    if bad:
        s.poll("r", (0, "x"))


def g2(s: Script, *, bad: bool) -> None:
    """Each has not seen the other: write skew."""
    s.send("u", "x", 0)
    s.add("v", "send", sends=[(B, "y", 0)])
    s.add("p", "txn", sends=[(A, "a", 1)], polls={B: [(0, "y")]} if bad else {})
    s.at_once()
    s.add("q", "txn", sends=[(B, "b", 1)], polls={A: [(0, "x")]})


def g2_process(s: Script, *, bad: bool) -> None:
    """Readers see two sends in different orders; one of them is a sender."""
    _long_fork(s, "p", bad=bad)


def g2_realtime(s: Script, *, bad: bool) -> None:
    _long_fork(s, "k", bad=bad)


def _long_fork(s: Script, reader: str, *, bad: bool) -> None:
    s.send("u", "x", 0)
    s.add("v", "send", sends=[(B, "y", 0)])
    lasting = s.add("q", "send", sends=[(B, "b", 1)])
    other = s.add("m", "poll", polls={A: [(0, "x")], B: [(0, "y"), (1, "b")]})
    s.send("p", "a", 1)
    if bad:
        s.add(reader, "poll", polls={B: [(0, "y")]})
    lasting.completed_ns = other.completed_ns = s.now
