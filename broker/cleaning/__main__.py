"""`python -m broker.cleaning --socket-fd N`: a cleaning process, started by the broker only.

N is one end of a socket pair; jobs come over it, one after the other.
"""

import argparse

from broker.cleaning.worker import main

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m broker.cleaning", description=__doc__)
    parser.add_argument("--socket-fd", type=int, required=True)
    main(parser.parse_args().socket_fd)
