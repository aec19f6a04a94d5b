"""Objects as files: what a power cut leaves, what damage and foreigners do."""

import errno
from itertools import islice
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.environment.local_filesystem import LocalFilesystem
from storage.errors import DiskError
from tests.effort import examples
from tests.fakes.clock import ManualClock
from tests.fakes.filesystem import KEEP_ALL, FakeFilesystem, PowerCut
from tiered.errors import (
    ObjectNotFoundError,
    RemoteStorageError,
    StoreDeniedError,
    StoreTimeoutError,
    StoreUnavailableError,
)
from tiered.object_store.directory_tree import (
    NAME_BYTES_MAX,
    SPLIT,
    SPLIT_CHARACTERS,
    UNFINISHED_EXTRA_BYTES,
    WRITE_BYTES,
    DirectoryTree,
    storage_error,
)
from tiered.object_store.keys import UnusableKeyError

ID = "0123456789abcdef" * 2

KEY = "topic-id/0/00000000000000000000-x.log"


def make() -> tuple[FakeFilesystem, DirectoryTree]:
    filesystem = FakeFilesystem(ManualClock())
    tree = DirectoryTree(filesystem, "/data/objects/")
    tree.prepare()
    return filesystem, tree


def put(tree: DirectoryTree, key: str, data: bytes = b"data", upload_id: str = ID) -> None:
    unfinished = tree.begin(key, upload_id)
    unfinished.write(data[:2])
    unfinished.write(memoryview(data)[2:])
    tree.commit(unfinished)


def keys(tree: DirectoryTree, prefix: str = "") -> list[str]:
    return [key for key, _ in tree.walk(prefix)]


def test_a_committed_object_survives_a_power_cut() -> None:
    """With its folders, made just now."""
    filesystem, tree = make()
    put(tree, KEY)
    after = DirectoryTree(filesystem.after_crash(), "/data/objects")
    assert after.read(KEY, 10) == b"data"


def test_an_object_survives_though_another_call_has_made_its_folder() -> None:
    """The other has not yet synced the folder's name; who commits first does it for both."""
    filesystem, tree = make()
    other = tree.begin("topic-id/0/other", ID)
    put(tree, KEY)
    after = DirectoryTree(filesystem.after_crash(), "/data/objects")
    assert keys(after) == [KEY]
    tree.discard(other)
    assert keys(tree) == [KEY]


def test_a_root_made_by_prepare_survives_a_power_cut() -> None:
    filesystem, _ = make()
    assert filesystem.after_crash().exists("/data/objects")


@pytest.mark.parametrize("seed", range(40))
def test_a_power_cut_at_any_step_leaves_a_whole_object_or_none(seed: int) -> None:
    """And what it leaves unfinished is told and can be removed."""
    random = Random(seed)
    filesystem, tree = make()
    put(tree, "topic-id/0/older", b"older")
    begin = filesystem.changes
    put(tree, KEY, upload_id="f" * 32)
    steps = filesystem.changes - begin

    filesystem, tree = make()
    put(tree, "topic-id/0/older", b"older")
    filesystem.stop_after = filesystem.changes + random.randrange(steps + 1)
    committed = True
    try:
        put(tree, KEY, upload_id="f" * 32)
    except PowerCut:
        committed = False
    filesystem.crash(random.choice([None, random, KEEP_ALL]))

    found = keys(tree)
    assert "topic-id/0/older" in found
    if committed:
        assert KEY in found
    if KEY in found:
        assert tree.read(KEY, 10) == b"data"
    for upload in list(tree.unfinished("")):
        assert (upload.key, upload.upload_id) == (KEY, "f" * 32)
        tree.abort(upload.key, upload.upload_id)
    assert list(tree.unfinished("")) == []
    assert [entry.name for entry in filesystem.list_directory("/data/objects/topic-id/0")] == [
        key.rpartition("/")[2] for key in reversed(found)
    ] or set(found) == {"topic-id/0/older"}


def test_what_was_removed_does_not_come_back() -> None:
    """Not even if the folder's removal is lost."""
    filesystem, tree = make()
    put(tree, KEY)
    tree.remove([KEY, "topic-id/0/none"])
    assert not filesystem.exists("/data/objects/topic-id")
    assert filesystem.exists("/data/objects")
    after = DirectoryTree(filesystem.after_crash(), "/data/objects")
    assert keys(after) == []


def test_a_folder_removed_under_a_put_is_made_again() -> None:
    """A delete removes the folder between its making and the file's."""
    filesystem, tree = make()
    removed = 0

    def interfere(event: object) -> None:
        nonlocal removed
        if getattr(event, "kind", "") == "mkdir" and removed < 5:
            removed += 1
            filesystem.rmtree("/data/objects/topic-id")

    filesystem.observer = interfere
    put(tree, KEY)
    assert removed == 5
    assert tree.read(KEY, 10) == b"data"


def test_a_put_gives_up_when_its_folder_never_stays() -> None:
    filesystem, tree = make()

    def interfere(event: object) -> None:
        if getattr(event, "kind", "") == "mkdir":
            filesystem.rmtree("/data/objects/topic-id")

    filesystem.observer = interfere
    with pytest.raises(DiskError):
        put(tree, KEY)


def test_discarding_removes_file_and_folders() -> None:
    filesystem, tree = make()
    unfinished = tree.begin(KEY, ID)
    unfinished.write(b"data")
    assert keys(tree) == []
    tree.discard(unfinished)
    assert list(tree.unfinished("")) == []
    assert not filesystem.exists("/data/objects/topic-id")
    assert filesystem.descriptors == 0


def test_a_disk_that_refuses_the_discard_leaves_an_upload_to_be_found() -> None:
    filesystem, tree = make()
    unfinished = tree.begin(KEY, ID)
    filesystem.fail("unlink")
    tree.discard(unfinished)
    assert [upload.key for upload in tree.unfinished("topic")] == [KEY]


def test_nothing_is_written_or_listed_where_the_root_has_gone() -> None:
    """A disk that is not mounted is not an empty store, and its mount point no place to write."""
    filesystem, tree = make()
    filesystem.rmtree("/data/objects")
    with pytest.raises(DiskError) as caught:
        put(tree, KEY)
    assert caught.value.errno == errno.ENODEV
    with pytest.raises(DiskError):
        keys(tree)
    assert not filesystem.exists("/data/objects")


def test_files_that_cannot_be_objects_are_passed_over() -> None:
    filesystem, tree = make()
    put(tree, KEY)
    filesystem.poke("/data/objects/a\nb", b"")
    filesystem.poke("/data/objects/\udcff", b"")
    filesystem.poke("/data/objects/x." + ID + ".unfinished", b"")
    assert keys(tree) == [KEY]
    assert [upload.key for upload in tree.unfinished("")] == ["x"]


def test_unfinished_objects_have_the_time_of_their_last_write() -> None:
    clock = ManualClock()
    tree = DirectoryTree(FakeFilesystem(clock), "/objects")
    tree.prepare()
    unfinished = tree.begin(KEY, ID)
    clock.advance(5000)
    unfinished.write(b"x")
    assert [upload.started_ms for upload in tree.unfinished("")] == [clock.now_ms()]
    tree.discard(unfinished)


@pytest.mark.parametrize(
    "key",
    [
        "x" * (SPLIT_CHARACTERS + NAME_BYTES_MAX - UNFINISHED_EXTRA_BYTES + 1),
        "é" * 120,
        "é" * 128 + "/a",
        "é" * 200,
        "x" * (SPLIT_CHARACTERS + NAME_BYTES_MAX + 1) + "/a",
        f"x.{ID}.unfinished",
        "x" * SPLIT_CHARACTERS + f"/x.{ID}.unfinished",
        "../x",
        f"x{SPLIT}/a",
    ],
)
def test_names_the_disk_cannot_hold_are_refused(key: str) -> None:
    _, tree = make()
    for call in (tree.path, tree.info, lambda key: tree.remove([key])):
        with pytest.raises(UnusableKeyError):
            call(key)


@pytest.mark.parametrize("length", [199, 200, 201, 254, 255, 256, 249 + 23])
def test_topics_with_the_longest_names_have_a_place(tmp_path: Path, length: int) -> None:
    """On a real disk, which allows names of 255 bytes."""
    tree = DirectoryTree(LocalFilesystem(), str(tmp_path))
    topic = "t" * length
    key = f"{topic}/0/00000000000000000000-x.log"
    put(tree, key)
    assert tree.read(key, 10) == b"data"
    unfinished = tree.begin(key, "f" * 32)
    assert keys(tree, topic[:150]) == keys(tree, topic + "/0") == [key]
    assert [upload.key for upload in tree.unfinished(topic)] == [key]
    tree.abort(key, "f" * 32)
    unfinished.file.close()
    tree.remove([key])
    assert list(tmp_path.iterdir()) == []


def test_the_longest_names_fit_with_their_unfinished_ending() -> None:
    _, tree = make()
    rest = "x" * (NAME_BYTES_MAX - UNFINISHED_EXTRA_BYTES)
    key = "y" * SPLIT_CHARACTERS + "z" * NAME_BYTES_MAX + "/" + "x" * SPLIT_CHARACTERS + rest
    unfinished = tree.begin(key, ID)
    assert len(unfinished.path.rpartition("/")[2]) == NAME_BYTES_MAX
    tree.commit(unfinished)
    assert keys(tree) == [key]


LONG = "n" * (SPLIT_CHARACTERS - 1)


@examples(150)
@given(
    parts=st.lists(
        st.lists(
            st.sampled_from(
                [
                    "a",
                    "a-",
                    "a.",
                    "a0",
                    "b",
                    LONG,
                    LONG + "n",
                    LONG + "n-",
                    LONG + "n.x",
                    LONG + "nn",
                ]
            ),
            min_size=1,
            max_size=3,
        ),
        max_size=12,
    ),
    cut=st.integers(0, 400),
    page=st.integers(1, 4),
)
def test_walking_is_in_key_order_from_anywhere(parts: list[list[str]], cut: int, page: int) -> None:
    """Compared with sorting all keys; no key may be a folder of another here."""
    _, tree = make()
    stored = sorted({"/".join((*part, "file")) for part in parts})
    for key in stored:
        put(tree, key, key.encode())
    assert keys(tree) == stored
    prefix = stored[len(stored) // 2][:cut] if stored else ""
    expected = [key for key in stored if key.startswith(prefix)]
    paged: list[str] = []
    while True:
        found = list(islice(tree.walk(prefix, paged[-1] if paged else ""), page))
        assert all(size == len(key) for key, size in found)
        paged += [key for key, _ in found]
        if len(found) < page:
            break
    assert paged == expected
    tree.remove(stored)
    assert keys(tree) == []


def test_a_disk_error_while_reading_is_told() -> None:
    filesystem, tree = make()
    put(tree, KEY)
    for call in (
        lambda: tree.read(KEY, 10),
        lambda: tree.read_into(KEY, 0, memoryview(bytearray(4))),
        lambda: tree.info(KEY),
    ):
        filesystem.fail("read")
        with pytest.raises(DiskError):
            call()
    filesystem.fail("list")
    with pytest.raises(DiskError):
        keys(tree)
    filesystem.fail("unlink")
    with pytest.raises(DiskError):
        tree.remove([KEY])
    assert filesystem.descriptors == 0


def test_open_files_are_readable_after_their_object_is_replaced_and_removed() -> None:
    _, tree = make()
    put(tree, KEY, b"first")
    file = tree.open(KEY)
    put(tree, KEY, b"second")
    tree.remove([KEY])
    assert file.read_at(10, 0) == b"first"
    with pytest.raises(ObjectNotFoundError):
        tree.open(KEY)
    file.close()


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (errno.EIO, StoreUnavailableError),
        (errno.ENOSPC, StoreUnavailableError),
        (errno.ESTALE, StoreUnavailableError),
        (None, StoreUnavailableError),
        (errno.ETIMEDOUT, StoreTimeoutError),
        (errno.EACCES, StoreDeniedError),
        (errno.EROFS, StoreDeniedError),
        (errno.EISDIR, RemoteStorageError),
        (errno.ENAMETOOLONG, RemoteStorageError),
    ],
)
def test_disk_errors_as_callers_see_them(code: int | None, kind: type[RemoteStorageError]) -> None:
    assert type(storage_error(DiskError("cannot", "/x", code))) is kind


def test_an_upload_id_that_leads_elsewhere_removes_nothing() -> None:
    filesystem, tree = make()
    put(tree, KEY)
    for upload_id in ("../x.log", "", "x", f"{ID}.unfinished/../../0"):
        tree.abort(KEY, upload_id)
    assert keys(tree) == [KEY]
    assert filesystem.exists("/data/objects/topic-id/0")


def test_a_long_write_is_many_short_ones() -> None:
    """A system call may keep its CPU until it ends, and the broker may want that CPU."""
    filesystem, tree = make()
    data = Random(1).randbytes(3 * WRITE_BYTES + 1)
    unfinished = tree.begin(KEY, ID)
    filesystem.events.clear()
    unfinished.write(data[:1])
    unfinished.write(memoryview(data)[1:])
    assert [event.kind for event in filesystem.events] == ["write"] * 4
    assert unfinished.size == len(data)
    tree.commit(unfinished)
    assert tree.read(KEY, len(data)) == data


class _FolderTakenAway(LocalFilesystem):
    """A disk where another call removes a folder between `mkdir` and what follows it."""

    __slots__ = ("codes", "made")

    def __init__(self, *codes: int) -> None:
        super().__init__()
        self.codes = list(codes)
        self.made = 0

    def mkdir(self, path: str) -> None:
        self.made += 1
        if self.codes:
            raise DiskError("cannot create folder", path, self.codes.pop(0))
        super().mkdir(path)


@pytest.mark.parametrize("code", [errno.EEXIST, errno.ENOENT])
def test_a_folder_that_a_delete_removes_meanwhile_is_made_again(code: int, tmp_path: Path) -> None:
    """`makedirs` says EEXIST if the folder it met was gone when it looked what it is."""
    filesystem = _FolderTakenAway(code, code)
    put(DirectoryTree(filesystem, str(tmp_path)), KEY)
    assert (tmp_path / KEY).read_bytes() == b"data"
    assert filesystem.made == 3


def test_a_file_in_the_place_of_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "topic-id").mkdir()
    (tmp_path / "topic-id" / "0").write_bytes(b"")
    with pytest.raises(DiskError) as raised:
        put(DirectoryTree(LocalFilesystem(), str(tmp_path)), KEY)
    assert raised.value.errno in (errno.EEXIST, errno.ENOTDIR)
