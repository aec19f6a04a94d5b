"""A real disk breaks under one log directory of a broker: others lead, and the broker lives on.

A file system of its own on a loop device, which the kernel makes read-only after an error (EROFS)
or shuts down (EIO). Needs the right to mount; as another user, and where a kernel lacks these, the
tests are skipped.
"""

import fcntl
import os
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.cluster.kinds import VarveCluster
from bench.cluster.numbered import compare
from bench.node import NodeError
from tests.harness.etcd import etcd_or_skip
from tests.interop.cluster.writers import ConfluentWriter

TOPIC = "orders"
PARTITIONS = 6
SPREAD = [[1 + index % 3, 1 + (index + 1) % 3, 1 + (index + 2) % 3] for index in range(PARTITIONS)]
VICTIM = 1
SHUTDOWN = 0x8004587D
"""FS_IOC_SHUTDOWN of <linux/fs.h>; 2: without flushing its log."""


class Disk:
    """A file system of 150 MiB."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "disk"
        self._image = directory / "disk.img"
        self.path.mkdir()
        with self._image.open("wb") as file:
            file.truncate(150 << 20)
        made = subprocess.run(["mkfs.ext4", "-q", "-F", self._image], check=False)
        if made.returncode or not self.mount():
            pytest.skip("file systems cannot be made and mounted here")

    def mount(self) -> bool:
        command = ["mount", "-o", "loop,errors=remount-ro", str(self._image), str(self.path)]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    def unmount(self) -> None:
        subprocess.run(["umount", "-l", str(self.path)], check=True)

    def break_(self, how: str) -> None:
        """As the kernel does it to a disk with errors; processes keep their open files."""
        if how == "read-only":
            lines = Path("/proc/mounts").read_text().splitlines()
            (device,) = [line.split()[0] for line in lines if line.split()[1] == str(self.path)]
            trigger = Path("/sys/fs/ext4") / Path(device).name / "trigger_fs_error"
            if not trigger.exists():
                pytest.skip("this kernel makes no file system fail on demand")
            trigger.write_text("1")
        else:
            descriptor = os.open(self.path, os.O_RDONLY)
            fcntl.ioctl(descriptor, SHUTDOWN, struct.pack("I", 2))
            os.close(descriptor)

    def repair(self) -> None:
        """Mount it again, checked; what was not on the disk is lost."""
        self.unmount()
        subprocess.run(["fsck.ext4", "-y", self._image], capture_output=True, check=False)
        assert self.mount()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    if os.geteuid() != 0:
        pytest.skip("only root mounts file systems")
    disk = Disk(tmp_path)
    yield disk
    disk.unmount()


@pytest.fixture
def cluster(tmp_path: Path, disk: Disk) -> Iterator[VarveCluster]:
    """Three brokers; one of the two log directories of the first lies on the disk."""
    etcd_or_skip()
    cluster = VarveCluster(tmp_path)
    victim = cluster.nodes[VICTIM]
    victim.properties["log.dirs"] = f"{tmp_path}/1/data,{disk.path}/data"
    try:
        cluster.start()
        cluster.create_topic(TOPIC, SPREAD)
        yield cluster
        cluster.stop()
    finally:
        cluster.close()


def lying_in(directory: str) -> set[int]:
    return {
        int(path.name.rpartition("-")[2])
        for path in Path(directory).glob(f"{TOPIC}-*")
        if path.name.rpartition("-")[2].isdecimal()
    }


def lying_there(cluster: VarveCluster, disk: Disk) -> set[int]:
    """What lies on the disk, once the victim has made all its logs.

    A partition is in sync as soon as it is created; its followers' directories come a little later.
    """
    directories = cluster.nodes[VICTIM].properties["log.dirs"].split(",")
    cluster.wait_until(
        "all logs of the victim are made",
        lambda: len(set().union(*map(lying_in, directories))) == PARTITIONS,
    )
    return lying_in(f"{disk.path}/data")


def is_led_without(cluster: VarveCluster, lost: set[int]) -> bool:
    """Exactly what lay on the disk has other leaders, and the victim in no ISR."""
    state = cluster.state([TOPIC])
    for index in range(PARTITIONS):
        one = state.partition(TOPIC, index)
        if one is None or one.leader == -1 or (VICTIM in one.isr) == (index in lost):
            raise NodeError(f"{TOPIC}-{index}, of {lost} lost: {one}")
    return True


@pytest.mark.parametrize("how", ["read-only", "failed"])
def test_one_log_directory_breaks_and_the_broker_lives_on(
    cluster: VarveCluster, disk: Disk, how: str
) -> None:
    """Producers go on; with the broken disk it starts again; with a sound one all is in sync."""
    lost = lying_there(cluster, disk)
    assert 0 < len(lost) < PARTITIONS
    writer = ConfluentWriter(cluster.bootstrap, TOPIC, PARTITIONS)
    writer.start()
    writer.wait_for_acks(200)
    disk.break_(how)
    cluster.wait_until("others lead", lambda: is_led_without(cluster, lost), timeout_s=30)
    writer.wait_for_acks(200)
    victim = cluster.nodes[VICTIM]
    victim.check_alive()
    victim.terminate()
    cluster.restart(VICTIM)
    cluster.wait_for_all()
    cluster.wait_until("the rest is in sync", lambda: is_led_without(cluster, lost))
    victim.terminate()
    assert victim.stop() == 0
    disk.repair()
    victim.launch()
    cluster.wait_for_all()
    cluster.wait_until_in_sync([TOPIC])
    writer.wait_for_acks(200)
    writer.finish()
    found = compare(TOPIC, writer.acknowledged, cluster.connected_to_leader)
    assert found.problems == [], found.problems[:10]
