"""The shape of the project, checked like its behaviour."""

import importlib.util
import re
import subprocess
import tomllib
from collections import Counter
from collections.abc import Mapping
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from config.broker import BROKER_KEYS
from config.topic import TOPIC_KEYS
from tests.source_facts import facts

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES: list[str] = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]

GENERATED = ROOT / "protocol" / "messages"

TESTED_ELSEWHERE = {
    # Modules that a program wrote: one test module looks at all of them.
    "protocol/codegen": "tests/unit/protocol/codegen/test_module.py",
    # The composition root is run whole, as a process.
    "broker/app.py": "tests/system/broker/test_process.py",
    "broker/assembly": "tests/system/broker/test_process.py",
    "broker/supervisor/broker_process.py": "tests/system/machine/test_brokers.py",
    "broker/supervisor/program.py": "tests/system/machine/test_brokers.py",
    "broker/assembly/member.py": "tests/system/cluster/test_control.py",
    "broker/assembly/metrics_page.py": "tests/system/broker/test_metrics.py",
    "broker/lifecycle/apis.py": "tests/unit/broker/test_api_reference.py",
    "broker/lifecycle/membership.py": "tests/system/cluster/test_control.py",
    "broker/lifecycle/live_settings.py": "tests/system/broker/test_dynamic_settings.py",
    "broker/node/node_startup.py": "tests/system/disks/test_metadata_store_place.py",
    "broker/remote/remote_storage.py": "tests/system/remote/test_remote_storage.py",
    # Rules that act through the controller, on a store with other controllers.
    "broker/controller/topics/min_isr_change.py": (
        "tests/unit/broker/controller/active/test_active_controller.py"
    ),
    # Brokers of one cluster that ask each other.
    "broker/controller/forwarded_creation.py": "tests/system/cluster/test_control.py",
    "broker/lifecycle/controlled_shutdown.py": "tests/system/cluster/test_control.py",
    "broker/lifecycle/cluster_control.py": "tests/system/cluster/test_control.py",
    # On a real server, by the contract of every store; its faults in tests/system.
    "broker/controller/store/etcd": "tests/contract/test_metadata_store.py",
    # What a page says is compared with what a client did and what is on disk.
    "broker/metrics": "tests/system/broker/test_metrics.py",
    # Behind the real router, over a log on a disk or in memory.
    "broker/share/delivery": "tests/unit/broker/share/delivery/test_share_handlers.py",
    "broker/share/state/requests.py": "tests/unit/broker/share/state/test_state_handlers.py",
    # Parts of a log that act through others.
    "storage/log/disk_work.py": "tests/unit/storage/log/test_write_behind.py",
    "storage/log/roll.py": "tests/unit/storage/log/test_write_behind.py",
    "storage/log/rollback.py": "tests/unit/storage/log/test_write_behind.py",
    # Parts of the log manager, which needs all of them to do anything.
    "storage/manager": "tests/unit/storage/manager/test_log_manager.py",
    "pipeline/lake/job/quarantine_commit.py": "tests/unit/pipeline/lake/job/test_job.py",
    "pipeline/lake/keyed/state.py": "tests/unit/pipeline/lake/keyed/test_table.py",
    "pipeline/lake/stores/stored_bytes.py": "tests/unit/pipeline/lake/keyed/test_table.py",
    # What a metadata manager promises is tested through it, with both snapshot stores.
    "tiered/metadata/snapshotter.py": "tests/contract/metadata_manager/test_starts.py",
    "tiered/metadata/topic_based_manager.py": "tests/contract/metadata_manager/test_writes.py",
    # One suite for every way to find records, and for the rows made of them.
    "pipeline/read/decode/gather.py": "tests/unit/pipeline/read/decode/test_row_decoder.py",
    # Read over real segments, by the planner that every reader has.
    "pipeline/source/bucket_topics.py": "tests/unit/pipeline/source/test_broker_view.py",
    "pipeline/source/bucket_view.py": "tests/unit/pipeline/source/test_planner.py",
    # With released Spark, on rows that its own connector gives as well.
    "pipeline/source/executor.py": "tests/spark/test_kafka_rows.py",
}
"""Folders and modules that no unit test of their package imports, and what tests them instead."""


def _files(*patterns: str) -> list[Path]:
    """Tracked files, and new ones that Git does not ignore."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return [path for line in listed.stdout.splitlines() if (path := ROOT / line).is_file()]


MODULES = [
    path
    for path in _files("*.py")
    if path.relative_to(ROOT).parts[0] in PACKAGES and path.name != "__init__.py"
]


@pytest.fixture(scope="module")
def distributions() -> Mapping[str, list[str]]:
    """Which distributions bring a package of a name: to ask each of them takes a while."""
    return packages_distributions()


@pytest.mark.parametrize("name", PACKAGES)
def test_import_name_is_ours(name: str, distributions: Mapping[str, list[str]]) -> None:
    """No dependency brings a package with one of our plain names."""
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    assert Path(spec.origin).is_relative_to(ROOT)
    assert set(distributions.get(name, ())) <= {"varve"}


def test_top_level_folders_are_known() -> None:
    """A new one is a decision: it is a package of the wheel, or on this short list."""
    folders = {path.relative_to(ROOT).parts[0] for path in _files() if path.parent != ROOT}
    others = {".ci", "bench", "docker", "docs", "tests"}
    assert folders <= others | set(PACKAGES)


def test_docker_folder_is_not_a_package() -> None:
    """An `__init__.py` there would hide the Docker SDK that test tools import."""
    assert not (ROOT / "docker" / "__init__.py").exists()


def test_every_test_folder_is_a_package() -> None:
    """Otherwise pytest imports `tests/unit/storage` as `storage`, and hides ours."""
    tests = ROOT / "tests"
    folders = {path.parent for path in tests.rglob("test_*.py")}
    missing = [
        folder
        for leaf in folders
        for folder in (leaf, *leaf.parents)
        if folder.is_relative_to(tests) and not (folder / "__init__.py").exists()
    ]
    assert missing == []


def test_every_package_folder_is_a_package() -> None:
    """A folder without `__init__.py` would be left out by some tools and found by others."""
    folders = {path.parent for path in MODULES}
    assert [folder for folder in folders if not (folder / "__init__.py").exists()] == []


MODULES_MAX = 25


def test_no_folder_holds_more_than_can_be_read_at_a_glance() -> None:
    """A listing of more than 25 says nothing; handlers are one for each API, as expected."""
    tests = [path for path in _files("tests/*.py") if path.name != "__init__.py"]
    written = [path for path in MODULES if not path.is_relative_to(GENERATED)]
    sizes = Counter(path.parent for path in written + tests)
    for handlers in ("broker/handlers", "tests/unit/broker/handlers"):
        del sizes[ROOT / handlers]
    crowded = {str(folder.relative_to(ROOT)): n for folder, n in sizes.items() if n > MODULES_MAX}
    assert crowded == {}


CIRCULAR = {"broker/coordinator", "broker/groups/consumer", "tiered/cache"}
"""Folders with modules that still know each other in a circle; none is to be added."""


def _reached(start: str, graph: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    unseen = [start]
    while unseen:
        unseen += graph[unseen.pop()] - seen
        seen.update(unseen)
    return seen


def test_modules_of_a_folder_do_not_know_each_other_in_a_circle() -> None:
    """Imports for type checkers count: who knows whom is what a reader has to follow."""
    circular = set()
    for folder in sorted({path.parent for path in MODULES} - {GENERATED}):
        package = ".".join(folder.relative_to(ROOT).parts)
        paths = {path.stem: path for path in folder.glob("*.py")}
        graph = {
            name: {
                other
                for module, _ in facts(path).imports.members
                for other in paths
                if module == f"{package}.{other}"
            }
            for name, path in paths.items()
        }
        if any(name in _reached(name, graph) for name in graph):
            circular.add(str(folder.relative_to(ROOT)))
    assert circular <= CIRCULAR


UNIT_TESTS = _files("tests/unit/*.py")


def _untested() -> list[Path]:
    """Modules with behaviour that no unit test is about: neither of their own nor of their class.

    A module is tested by a test module of its name, by any unit test of its package that imports
    it, or, where it is a part of one other module of its folder, by what tests that one.
    """
    tests = [str(path.relative_to(ROOT / "tests" / "unit")) for path in UNIT_TESTS]
    imported_by_tests = {
        (path.relative_to(ROOT / "tests" / "unit").parts[0], name)
        for path in UNIT_TESTS
        for name in facts(path).imports.names
    }
    users: dict[str, set[Path]] = {}
    written = [path for path in MODULES if not path.is_relative_to(GENERATED)]
    for path in written:
        for name in facts(path).imports.names:
            users.setdefault(name, set()).add(path.relative_to(ROOT))

    def is_tested(module: Path) -> bool:
        dotted = ".".join(module.with_suffix("").parts)
        name = module.stem.strip("_")
        pattern = re.compile(rf"{re.escape(f'{module.parent}/test_{name}')}(_\w+)?\.py")
        if (module.parts[0], dotted) in imported_by_tests or any(map(pattern.fullmatch, tests)):
            return True
        if len(users.get(dotted, ())) != 1:
            return False
        (user,) = users[dotted]
        is_part = user.parent == module.parent
        return is_part and (str(user) in TESTED_ELSEWHERE or is_tested(user))

    modules = [path.relative_to(ROOT) for path in written if facts(path).has_behaviour]
    return [module for module in modules if not is_tested(module)]


def test_every_module_is_tested() -> None:
    """The folder says where: storage/log/log.py has tests/unit/storage/log/test_log.py.

    A class that others help has one test module with them. A module of mere declarations needs
    none. What is tested in another way is in the table, and no more than that.
    """
    elsewhere, untested = TESTED_ELSEWHERE, _untested()
    missing = [
        str(module)
        for module in untested
        if str(module) not in elsewhere and str(module.parent) not in elsewhere
    ]
    assert missing == []
    assert [test for test in elsewhere.values() if not (ROOT / test).exists()] == []
    needed = {name for module in untested for name in (str(module), str(module.parent))}
    assert elsewhere.keys() - needed == set(), "tested where the folder says"


def _sources() -> list[Path]:
    return [path for path in _files("*.py") if not path.is_relative_to(GENERATED)]


def test_packages_are_not_imported_whole() -> None:
    """`import config` would clash with every variable of that name: import names instead."""
    whole = [
        (path.name, name)
        for path in _sources()
        for name in facts(path).imports.whole
        if name in PACKAGES
    ]
    assert whole == []


def test_no_setting_is_silently_without_effect() -> None:
    """Each is read somewhere, is a topic's default, or its documentation says that it is not."""
    readers = {"storage", "tiered", "broker"}
    parts = [path for path in MODULES if path.relative_to(ROOT).parts[0] in readers]
    # What follows from several settings of remote storage.
    parts.append(ROOT / "config/tier.py")
    words = {word for path in parts for word in re.findall(r"\w+", path.read_text("utf-8"))}
    inherited = {synonym.key for row in TOPIC_KEYS.values() for synonym in row.synonyms}
    rows = [row for name, row in BROKER_KEYS.items() if name not in inherited]
    silent = [
        row.name
        for row in (*rows, *TOPIC_KEYS.values())
        if row.field_name not in words
        and not row.difference.startswith(("No effect", "Accepted"))
        and not row.internal
    ]
    # Read by `BrokerConfig.protocol_of`, when the settings are checked.
    otherwise = {"listener.security.protocol.map"}
    # Read by name, for each group: `broker.controller.configs.resource_configs`.
    otherwise |= {
        f"group.consumer.{bound}{key}"
        for bound in ("", "min.", "max.")
        for key in ("session.timeout.ms", "heartbeat.interval.ms")
    }
    otherwise |= {
        f"group.share.{bound}{key}"
        for bound in ("", "min.", "max.")
        for key in ("session.timeout.ms", "heartbeat.interval.ms", "record.lock.duration.ms")
    }
    assert set(silent) <= otherwise


def test_names_say_what_is_inside() -> None:
    """`utils`, `helpers`, `common` and `misc` are where things are put that nobody finds again."""
    vague = {"util", "utils", "helper", "helpers", "common", "misc", "shared"}
    parts = {
        part for path in _files("*.py") for part in path.relative_to(ROOT).with_suffix("").parts
    }
    assert parts & vague == set()


SEAMS = {
    "storage/environment/quick_clock.py": {"time"},
    "storage/environment/quick_reads.py": {"os"},
    "storage/environment/clock.py": {"time"},
    "storage/environment/descriptors.py": {"resource"},
    "storage/environment/local_filesystem.py": {"os"},
    "storage/environment/memory.py": {"resource", "os"},
    "storage/environment/randomness.py": {"random", "uuid4"},
}
"""Where clock, disk, chance and limits are asked for; everywhere else they are passed in."""

IMPURE = {
    ("time", "time"),
    ("time", "time_ns"),
    ("time", "monotonic"),
    ("time", "monotonic_ns"),
    ("time", "sleep"),
    ("random", "random"),
    ("random", "randrange"),
    ("random", "randint"),
    ("random", "choice"),
    ("uuid", "uuid4"),
    ("uuid", "uuid1"),
    ("os", "urandom"),
    ("resource", "getrlimit"),
    ("resource", "setrlimit"),
    ("datetime", "now"),
    ("datetime", "utcnow"),
}


@pytest.mark.parametrize(
    "module",
    [
        path.relative_to(ROOT)
        for path in MODULES
        if path.relative_to(ROOT).parts[0] in {"config", "protocol", "storage"}
    ],
    ids=str,
)
def test_time_and_chance_are_passed_in(module: Path) -> None:
    """A simulation moves the clock by hand and repeats a run from its seed."""
    if str(module) in SEAMS:
        return
    assert facts(ROOT / module).called & IMPURE == set()


ASKS_AS_LEADER = ("broker/handlers", "broker/groups", "broker/transactions", "broker/share")
"""What clients ask of a partition's leader is answered in these folders."""

ANY_REPLICA_IS_MEANT = {
    # Every replica knows the producers of its log (KIP-664).
    "broker/handlers/describe_producers.py",
    # Those that ask as the debugging replica may ask a follower.
    "broker/handlers/list_offsets.py",
}
"""Modules in them that answer for a partition in whatever role: they say so here."""


def test_who_answers_clients_answers_as_leader() -> None:
    """An open log is no leadership: `leader_of`, not what is open, decides who may answer."""
    asked = {
        str(path.relative_to(ROOT))
        for path in MODULES
        if str(path.relative_to(ROOT)).startswith(ASKS_AS_LEADER)
        and facts(path).attributes & {"replica_of", "log_of"}
    }
    assert asked == ANY_REPLICA_IS_MEANT


def test_every_suppression_gives_its_reason() -> None:
    """Whoever meets it later can tell whether it still holds."""
    mute = re.compile(r"#\s*(noqa(:\s*[A-Z0-9, ]+)?|type:\s*ignore(\[[\w, -]+\])?)\s*$")
    silent = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in _sources()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if mute.search(line)
    ]
    assert silent == []


def test_locks_hold_hashes_and_no_address() -> None:
    """They say what is installed, not from where."""
    for path in _files("*.lock"):
        text = path.read_text(encoding="utf-8")
        assert "://" not in text
        assert "index-url" not in text
        pinned = re.findall(r"^[a-z0-9._-]+==", text, flags=re.MULTILINE)
        assert pinned
        assert len(re.findall(r"^[a-z0-9._-]+==[^\n]*\\\n    --hash=", text, re.MULTILINE)) == len(
            pinned
        )


def _pinned(name: str) -> set[str]:
    text = (ROOT / name).read_text(encoding="utf-8")
    return set(re.findall(r"^[a-z0-9._-]+==[^ \\;]+", text, re.MULTILINE))


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-build.lock"])
def test_the_development_lock_holds_the_others(name: str) -> None:
    """In the same versions: one environment serves all, and what is tested is what is shipped."""
    assert _pinned(name) <= _pinned("requirements-dev.lock")


def test_files_name_no_machine() -> None:
    """A path or host of whoever wrote it means nothing to whoever reads it."""
    homes = re.compile(r"/(?:home|Users|root)/[a-z]|/work/[a-z]")
    named = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in _files()
        if path.suffix in {".py", ".md", ".toml", ".yaml", ".lock", ""} and path != Path(__file__)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if homes.search(line)
    ]
    assert named == []


def test_binary_and_large_files_stay_out() -> None:
    """Golden bytes are small; anything else belongs into a build."""
    large = [str(path.relative_to(ROOT)) for path in _files() if path.stat().st_size > 512 * 1024]
    assert large == []


def test_the_map_names_what_is_there() -> None:
    """Whoever follows a path of the architecture page finds the file or folder."""
    text = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    packages = "|".join((*PACKAGES, "bench", "tests"))
    named = set(re.findall(rf"`((?:{packages})/[\w/]*(?:\.py|/))`", text))
    assert len(named) > 50
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


def test_the_map_has_every_package() -> None:
    """A folder with modules is named in the file map, whole or beside a folder next to it."""
    text = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text[text.index("## File map") : text.index("## Glossary")]
    folders = {path.parent.relative_to(ROOT) for path in MODULES} - {GENERATED.relative_to(ROOT)}
    unnamed = [
        str(folder)
        for folder in sorted(folders)
        if f"`{folder}/" not in table and f"`{folder.name}/`" not in table
    ]
    assert unnamed == []


def test_the_map_names_files_beside_each_other() -> None:
    """A bare name stands for a file in the folder of a path before it in the same row."""
    text = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text[text.index("## File map") : text.index("## Glossary")]
    gone = []
    for row in table.splitlines():
        folders: list[Path] = []
        for name in re.findall(r"`([\w/.]+\.py|[\w/]+/)`", row.split("|")[1] if "|" in row else ""):
            found = [path for base in (ROOT, *folders) if (path := base / name).exists()]
            if not found:
                gone.append(name)
            folders += [path.parent for path in found] + [path.parent.parent for path in found]
    assert gone == []
