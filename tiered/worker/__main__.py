"""`python -m tiered.worker --socket-fd N`: the tier process, started by the broker alone.

N is an open Unix stream socket; the settings come over it.
"""

import argparse

from native.loader import prefer_compiled

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tiered.worker", description=__doc__)
    parser.add_argument("--socket-fd", type=int, required=True)
    socket_fd = parser.parse_args().socket_fd
    # Before anything is imported that may be compiled.
    prefer_compiled()
    from tiered.worker.assembly import build_tier
    from tiered.worker.entry import main

    main(socket_fd, build_tier)
