"""`python -m broker.cleaning --socket-fd N`: a cleaning process, started by the broker only.

N is one end of a socket pair; jobs come over it, one after the other.
"""

import argparse

from native.loader import prefer_compiled

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m broker.cleaning", description=__doc__)
    parser.add_argument("--socket-fd", type=int, required=True)
    socket_fd = parser.parse_args().socket_fd
    # Before anything is imported that may be compiled.
    prefer_compiled()
    from broker.cleaning.worker import main

    main(socket_fd)
