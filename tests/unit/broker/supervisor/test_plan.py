"""What the brokers of a machine have in common, and what each has for itself."""

import pytest

from broker.runtime.startup_errors import StartupError
from broker.supervisor.plan import BROKERS_MAX, BrokerPlan, plan_brokers
from config.load import load

ETCD = "etcd://10.0.0.1:2379"


def plans(count: int, *given: str, store: str = "unix:/s") -> list[BrokerPlan]:
    loaded = load(assignments=["log.dirs=/a,/b", *given])
    return plan_brokers(loaded, count, store_address=store, machine_name="m1")


def of(all_plans: list[BrokerPlan], key: str) -> list[str | None]:
    return [plan.settings.get(key) for plan in all_plans]


def test_node_ids_ports_and_folders_are_consecutive() -> None:
    made = plans(3, "node.id=5", "listeners=A://:9000,B://[::1]:0", ALL)
    assert [plan.node_id for plan in made] == [5, 6, 7]
    assert of(made, "node.id") == ["5", "6", "7"]
    assert of(made, "listeners") == [f"A://:{port},B://[::1]:0" for port in (9000, 9001, 9002)]
    assert of(made, "log.dirs") == [f"/a/broker-{n},/b/broker-{n}" for n in (5, 6, 7)]
    assert of(made, "advertised.listeners") == [None] * 3
    assert of(made, "broker.id") == [None] * 3


ALL = "listener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT,PLAINTEXT:PLAINTEXT"


def test_advertised_ports_move_along() -> None:
    made = plans(2, "listeners=PLAINTEXT://:9092", "advertised.listeners=PLAINTEXT://h:19092")
    assert of(made, "advertised.listeners") == ["PLAINTEXT://h:19092", "PLAINTEXT://h:19093"]


def test_the_old_name_of_the_node_id_agrees() -> None:
    assert of(plans(2, "broker.id=3"), "broker.id") == ["3", "4"]
    assert of(plans(2, "broker.id=3"), "node.id") == ["3", "4"]


def test_all_of_a_machine_are_in_one_rack() -> None:
    assert of(plans(2), "broker.rack") == ["m1", "m1"]
    assert of(plans(2, "broker.rack=r"), "broker.rack") == ["r", "r"]


def test_caches_with_a_path_are_not_shared() -> None:
    key = "rsm.config.fetch.chunk.cache.path"
    made = plans(2, f"{key}=/cache")
    assert of(made, key) == ["/cache/broker-1", "/cache/broker-2"]


def test_remote_storage_in_a_directory_is_one_for_all() -> None:
    key = "rsm.config.storage.root"
    assert of(plans(2), key) == ["/a/varve-objects"] * 2
    assert of(plans(2, f"{key}=/o"), key) == [None] * 2
    s3 = "io.aiven.kafka.tieredstorage.storage.s3.S3Storage"
    given = [f"rsm.config.storage.backend.class={s3}", "rsm.config.storage.s3.bucket.name=b"]
    assert of(plans(2, *given), key) == [None] * 2


def test_brokers_of_several_machines_get_no_directory_of_one() -> None:
    made = plans(2, f"metadata.store={ETCD}", store=ETCD)
    assert of(made, "metadata.store") == [ETCD] * 2
    assert of(made, "rsm.config.storage.root") == [None] * 2
    key = "rlmm.config.remote.log.metadata.topic.replication.factor"
    assert of(made, key) == [None] * 2
    assert of(plans(2), key) == ["1"] * 2
    assert of(plans(2, f"{key}=2"), key) == [None] * 2


def test_the_admin_port_is_the_supervisors() -> None:
    assert of(plans(2), "admin.listener") == ["127.0.0.1:0"] * 2
    assert of(plans(2, "admin.listener="), "admin.listener") == [""] * 2


def test_a_broker_takes_what_its_plan_says() -> None:
    """Its own settings come last on the command line, so they count."""
    (plan,) = plans(1, "metadata.log.dir=/m")
    words = plan.words
    assert words[::2] == ["--set"] * len(plan.settings)
    loaded = load(assignments=["log.dirs=/a,/b", "metadata.log.dir=/m", *words[1::2]])
    assert loaded.broker.log_dirs == ("/a/broker-1", "/b/broker-1")
    assert loaded.broker.metadata_log_dir is None
    assert str(loaded.broker.metadata_store) == "unix:/s"


@pytest.mark.parametrize(
    ("count", "given", "said"),
    [
        (BROKERS_MAX + 1, (), "are the most"),
        (3, ("listeners=A://:9000,B://:9002", ALL), "port 9002 is needed twice"),
        (3, ("admin.listener=127.0.0.1:9094",), "port 9094 is needed twice"),
        (2, ("listeners=PLAINTEXT://:65535",), "ports up to 65536"),
    ],
)
def test_what_cannot_be_is_refused(count: int, given: tuple[str, ...], said: str) -> None:
    with pytest.raises(StartupError, match=said):
        plans(count, *given)
