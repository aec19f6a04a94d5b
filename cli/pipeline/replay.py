"""`varve pipeline replay-quarantine`: quarantined records are converted again."""

import argparse

from cli.connection import CommandError
from cli.pipeline.job_file import load_job
from cli.table import format_json


def replay_quarantine(args: argparse.Namespace) -> int:
    """Commit the quarantined records that fit now, and print what still does not."""
    from pipeline.lake.app.assembly import open_job
    from pipeline.lake.job.quarantine import Replay

    config = load_job(args.job)
    if config.errors.quarantine == "fail":
        raise CommandError(f"{config.job_name} has no quarantine: errors.quarantine is fail")
    with open_job(config) as opened:
        assert opened.quarantine is not None
        replay = Replay(
            opened.sink, opened.quarantine, opened.columns, opened.targets, opened.keyed
        )
        replayed = replay.run()
    if args.json:
        print(format_json(replayed._asdict()))
        return 0
    print(
        f"{config.job_name}: {replayed.rows} rows committed to the table, {replayed.left} still "
        "do not fit"
    )
    for reason, count in replayed.reasons.items():
        print(f"{count:>10}  {reason}")
    return 0
