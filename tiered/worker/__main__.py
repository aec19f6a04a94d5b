"""`python -m tiered.worker --socket-fd N`: the tier process, started by the broker alone.

N is an open Unix stream socket; the settings come over it.
"""

import argparse

from tiered.worker.assembly import build_tier
from tiered.worker.entry import main

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tiered.worker", description=__doc__)
    parser.add_argument("--socket-fd", type=int, required=True)
    main(parser.parse_args().socket_fd, build_tier)
