"""What an error of the operating system says of a disk."""

import errno
import gc
import weakref

import pytest

from storage.errors import DiskError, LogDirectoryOfflineError, SyncFailedError


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        (errno.ENOSPC, "is_full"),
        (errno.EDQUOT, "is_full"),
        (errno.EMFILE, "is_descriptor_limit"),
        (errno.ENFILE, "is_descriptor_limit"),
        (errno.EIO, "is_disk_failure"),
        (errno.EROFS, "is_disk_failure"),
        (errno.ENOENT, "is_disk_failure"),
        (None, "is_disk_failure"),
    ],
)
def test_each_error_is_of_one_kind(code: int | None, verdict: str) -> None:
    error = DiskError("cannot write", "/d/t-0/00000000000000000000.log", code)
    questions = ("is_full", "is_descriptor_limit", "is_disk_failure")
    assert [name for name in questions if getattr(error, name)] == [verdict]


def test_a_failed_sync_is_a_failure_also_when_the_disk_is_full() -> None:
    """Delayed allocation: the write was accepted, and what it wrote may be lost by now."""
    error = SyncFailedError("cannot sync", "/d/t-0", errno.ENOSPC)
    assert error.is_disk_failure
    assert not error.is_full


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EMFILE, errno.EIO])
def test_an_offline_directory_stays_offline_whatever_took_it_there(code: int) -> None:
    error = LogDirectoryOfflineError("log is offline", "/d/t-0", code)
    assert error.is_disk_failure
    assert not error.is_full
    assert not error.is_descriptor_limit


@pytest.mark.parametrize("kind", [DiskError, SyncFailedError, LogDirectoryOfflineError])
def test_an_error_that_is_kept_holds_nothing_open(kind: type[DiskError]) -> None:
    """What it came through has files open: their blocks would not be free once deleted."""

    class Held:
        pass

    def reads() -> None:
        held = Held()
        gone.append(weakref.ref(held))
        raise kind("cannot write", "/d/t-0", errno.ENOSPC)

    gone: list[weakref.ref[Held]] = []
    with pytest.raises(DiskError) as caught:
        reads()
    kept = caught.value.to_keep()
    assert (type(kept), str(kept), kept.path) == (kind, str(caught.value), "/d/t-0")
    assert (kept.errno, kept.is_full) == (errno.ENOSPC, caught.value.is_full)
    del caught
    gc.collect()
    assert gone[0]() is None
