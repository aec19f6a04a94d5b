"""Runs in a network of its own, as a container's first process would: see test_container.py.

    unshare --net python -m tests.interop.tools.container_network ENTRYPOINT HEALTHCHECK

Starts the entry point with the image's environment and no settings, waits until it is ready, uses
it as a client of the host would, stops it, and writes what happened as JSON.
"""

import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import time

from kafka import KafkaConsumer, KafkaProducer

READY_TIMEOUT_S = 30.0
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1


def bring_loopback_up() -> None:
    """A new network has a loopback interface that is switched off."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sH14s", b"lo", 0, b"")
        _, flags, _ = struct.unpack("16sH14s", fcntl.ioctl(control, _SIOCGIFFLAGS, request))
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH14s", b"lo", flags | _IFF_UP, b""))


def main() -> int:
    """Start, use, stop."""
    entrypoint, healthcheck = sys.argv[1:]
    bring_loopback_up()
    with subprocess.Popen([entrypoint], stdout=subprocess.PIPE, text=True) as broker:
        try:
            report = _use(healthcheck)
        finally:
            broker.terminate()
        output, _ = broker.communicate(timeout=60)
    report["exit_status"] = broker.returncode
    report["banner"] = output
    report["data"] = sorted(os.listdir("data"))
    sys.stdout.write(json.dumps(report))
    return 0


def _use(healthcheck: str) -> dict[str, object]:
    until = time.monotonic() + READY_TIMEOUT_S
    while not _answers(healthcheck, "/readyz"):
        if time.monotonic() > until:
            raise TimeoutError("the broker did not become ready")
        time.sleep(0.05)
    producer = KafkaProducer(bootstrap_servers="localhost:9092")
    for number in range(10):
        producer.send("first", str(number).encode(), partition=0)
    producer.close()
    consumer = KafkaConsumer(
        "first",
        bootstrap_servers="localhost:9092",
        auto_offset_reset="earliest",
        consumer_timeout_ms=10_000,
    )
    values = [next(consumer).value.decode() for _ in range(10)]
    consumer.close()
    return {"healthy": _answers(healthcheck, "/healthz"), "values": values}


def _answers(healthcheck: str, path: str) -> bool:
    asked = subprocess.run([healthcheck, path], check=False, stdout=subprocess.DEVNULL)
    return asked.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
