"""Scripts about settings: what is shown, what may be changed at run time, and what that brings."""

import time

from bench.node import Node, RunningNode, free_ports
from protocol.error_codes import ErrorCode
from protocol.messages.alter_configs import AlterableConfig as OldConfig
from protocol.messages.alter_configs import AlterConfigsRequest
from protocol.messages.alter_configs import AlterConfigsResource as OldResource
from protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.metadata import MetadataRequest
from tests.interop.raw.dialogue import Dialogue
from tests.interop.raw.script import script

TOPIC, BROKER = 2, 4
SHOWN_LATER_S = 0.3
SET, DELETE, APPEND, SUBTRACT = range(4)
BROKER_ID = "1"


def show(
    d: Dialogue, what: str, *keys: str, kind: int = BROKER, name: str = BROKER_ID
) -> dict[str, str | None]:
    """Note value, read-only and where it comes from; returns the values."""
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=list(keys)
    )
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    (result,) = d.ask_quietly(request).results
    d.note(what, [(c.name, c.value, c.read_only, c.config_source) for c in result.configs])
    return {config.name: config.value for config in result.configs}


def alter(
    d: Dialogue,
    what: str,
    *changes: tuple[str, int, str | None],
    kind: int = BROKER,
    name: str = BROKER_ID,
    validate_only: bool = False,
) -> ErrorCode:
    """IncrementalAlterConfigs of one resource; notes the error."""
    resource = AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in changes
        ],
    )
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
    (result,) = d.ask_quietly(request).responses
    code = ErrorCode(result.error_code)
    d.note(what, code.name)
    if code is ErrorCode.NONE and not validate_only:
        # Kafka's broker shows a change a moment after its answer.
        time.sleep(SHOWN_LATER_S)
    return code


@script
def cleanup_policy_keeps_its_order(d: Dialogue) -> None:
    """What somebody sets is what somebody sees: tools compare the two."""
    topic = CreatableTopic(
        name=d.name,
        num_partitions=1,
        replication_factor=1,
        configs=[CreatableTopicConfig(name="cleanup.policy", value="delete,compact")],
    )
    d.ask_quietly(CreateTopicsRequest(topics=[topic]), 7)
    d.wait(lambda: bool(_described(d, d.name)), f"settings of {d.name}")
    show(d, "as created", "cleanup.policy", kind=TOPIC, name=d.name)
    for number, (operation, text) in enumerate(
        (
            (SET, "compact,delete"),
            (SET, "delete,compact,delete"),
            (SET, " delete , compact"),
            (SET, ""),
            (APPEND, "delete"),
            (APPEND, "compact"),
            (SUBTRACT, "delete"),
            (APPEND, "delete"),
            (SUBTRACT, "delete,"),
            (APPEND, "delete,,"),
            (APPEND, ","),
            (APPEND, ",delete"),
        )
    ):
        alter(d, f"{number}", ("cleanup.policy", operation, text), kind=TOPIC, name=d.name)
        show(d, f"{number} shown", "cleanup.policy", kind=TOPIC, name=d.name)


def _described(d: Dialogue, topic: str) -> list[object]:
    resource = DescribeConfigsResource(
        resource_type=TOPIC, resource_name=topic, configuration_keys=["cleanup.policy"]
    )
    (result,) = d.ask_quietly(DescribeConfigsRequest(resources=[resource])).results
    return list(result.configs)


@script
def settings_replaced(d: Dialogue) -> None:
    """AlterConfigs: all of a resource or none of it; refused for what is wrong with it first."""
    topic = d.create_topic(configs={"segment.ms": 5_000})
    retention = {"retention.ms": "5000"}
    cases: list[tuple[str, int, str, dict[str, str | None]]] = [
        ("set", TOPIC, topic, {**retention}),
        ("no value", TOPIC, topic, {"retention.ms": None}),
        ("no number", TOPIC, topic, {"retention.ms": "x"}),
        ("unknown", TOPIC, topic, {"nothing": "1"}),
        ("no such topic", TOPIC, f"{topic}-none", {**retention}),
        ("nothing of no such topic", TOPIC, f"{topic}-none", {}),
        ("a topic without a name", TOPIC, "", {**retention}),
        ("a topic of no legal name", TOPIC, "a b", {**retention}),
        ("of a group", 32, d.name, {"consumer.session.timeout.ms": "46000"}),
        ("nothing of a group", 32, d.name, {}),
        ("of a group, out of bounds", 32, d.name, {"consumer.session.timeout.ms": "1"}),
        ("of metrics", 16, d.name, {"interval.ms": "100"}),
        ("of metrics, no number", 16, d.name, {"interval.ms": "x"}),
        ("nothing", TOPIC, topic, {}),
    ]
    for kind in (0, 1, 3, 8, 64, -1):
        cases += [(f"kind {kind}", kind, name, {**retention}) for name in (topic, BROKER_ID, "")]
    for name in (BROKER_ID, "", "9", "x"):
        cases += [
            (f"fixed, of {name!r}", BROKER, name, {"log.dirs": "/x"}),
            (f"no number, of {name!r}", BROKER, name, {"log.retention.ms": "x"}),
            (f"no value, of {name!r}", BROKER, name, {"log.retention.ms": None}),
        ]
    for version in (0, 1, 2):
        for tries in (True, False):
            for what, kind, name, settings in cases:
                configs = [OldConfig(name=key, value=value) for key, value in settings.items()]
                resource = OldResource(resource_type=kind, resource_name=name, configs=configs)
                request = AlterConfigsRequest(resources=[resource], validate_only=tries)
                d.ask(f"v{version} {what}, tried {tries}", request, version)
        time.sleep(SHOWN_LATER_S)
        show(d, f"v{version} shown", "retention.ms", "segment.ms", kind=TOPIC, name=topic)


@script
def min_insync_replicas_of_the_cluster(d: Dialogue) -> None:
    """Set on all brokers from the first start on; neither taken away nor set on one (KIP-966)."""
    key = "min.insync.replicas"
    show(d, "of the broker", key)
    show(d, "of all", key, name="")
    topic = d.create_topic()
    show(d, "of a topic", key, kind=TOPIC, name=topic)
    alter(d, "one broker", (key, SET, "1"))
    alter(d, "all brokers, taken away", (key, DELETE, None), name="")
    alter(d, "all brokers, none", (key, SET, "0"), name="")
    alter(d, "all brokers", (key, SET, "1"), name="")
    others = [OldConfig(name="message.max.bytes", value="1048588")]
    for what, name in (("legacy, all brokers", ""), ("legacy, one broker", BROKER_ID)):
        request = AlterConfigsRequest(
            resources=[OldResource(resource_type=BROKER, resource_name=name, configs=others)]
        )
        d.ask(what, request)
    alter(d, "back", ("message.max.bytes", DELETE, None))


@script
def who_the_broker_is(d: Dialogue) -> None:
    """The old name shows the same number as the new one."""
    show(d, "id", "broker.id")
    alter(d, "changed", ("broker.id", SET, "2"))
    alter(d, "changed on all", ("broker.id", SET, "2"), name="")


@script
def listeners_at_run_time(d: Dialogue) -> None:
    """They come and go at once, what is advertised stays; the ones there are stay usable."""
    values = _values(d, "listeners", "listener.security.protocol.map")
    listeners = values["listeners"]
    protocols = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"
    alter(d, "advertised", ("advertised.listeners", SET, "PLAINTEXT://127.0.0.1:5"))
    alter(d, "advertised on all", ("advertised.listeners", SET, "PLAINTEXT://h:5"), name="")
    alter(d, "tried", ("advertised.listeners", SET, "PLAINTEXT://127.0.0.1:5"), validate_only=True)
    alter(d, "not advertised", ("advertised.listeners", DELETE, None))
    first, second = free_ports(2)
    new = f"{listeners},NEW://127.0.0.1:{first}"
    alter(d, "unknown protocol", ("listeners", SET, new))
    alter(d, "on all", ("listeners", SET, new), name="")
    alter(d, "protocols on all", ("listener.security.protocol.map", SET, protocols), name="")
    alter(
        d,
        "one more",
        ("listener.security.protocol.map", SET, f"{protocols},NEW:PLAINTEXT"),
        ("listeners", SET, new),
    )
    d.wait(lambda: _answers(first), "the new listener")
    d.note("one more listens", _answers(first))
    alter(d, "same port twice", ("listeners", SET, f"{listeners},NEW://127.0.0.1:{d.port}"))
    alter(d, "the one advertised is taken away", ("listeners", SET, f"NEW://127.0.0.1:{first}"))
    alter(d, "none", ("listeners", SET, ""))
    alter(d, "no address", ("listeners", SET, "foo"))
    alter(d, "no protocol left", ("listener.security.protocol.map", SET, "NEW:PLAINTEXT"))
    alter(
        d,
        "another protocol",
        ("listener.security.protocol.map", SET, "PLAINTEXT:SSL,CONTROLLER:PLAINTEXT,NEW:PLAINTEXT"),
    )
    alter(d, "under another name", ("listeners", SET, f"{listeners},NEWER://127.0.0.1:{second}"))
    alter(
        d,
        "back",
        ("listeners", DELETE, None),
        ("listener.security.protocol.map", DELETE, None),
    )
    d.wait(lambda: not _answers(first), "the end of the new listener")
    d.note("gone", not _answers(first))
    d.note("as before", _values(d, "listeners", "listener.security.protocol.map") == values)


def _values(d: Dialogue, *keys: str) -> dict[str, str | None]:
    resource = DescribeConfigsResource(
        resource_type=BROKER, resource_name=BROKER_ID, configuration_keys=list(keys)
    )
    (result,) = d.ask_quietly(DescribeConfigsRequest(resources=[resource])).results
    return {config.name: config.value for config in result.configs}


def _answers(port: int) -> bool:
    """Whether somebody speaks the protocol there."""
    node: Node = RunningNode("listener", f"127.0.0.1:{port}", 0)
    try:
        other = Dialogue(node, "listener")
    except OSError:
        return False
    try:
        return other.ask_quietly(MetadataRequest(topics=[])) is not None
    except OSError:
        return False
    finally:
        other.close()


@script
def quotas_and_credentials_of_nobody(d: Dialogue) -> None:
    """None were set; and filters that cannot be."""
    filters = {
        "all": [],
        "user": [ComponentData(entity_type="user", match_type=0, match=d.name)],
        "default": [ComponentData(entity_type="client-id", match_type=1, match=None)],
        "any": [ComponentData(entity_type="ip", match_type=2, match=None)],
        "empty": [ComponentData(entity_type="", match_type=2, match=None)],
        "twice": 2 * [ComponentData(entity_type="user", match_type=2, match=None)],
        "unknown": [ComponentData(entity_type="group", match_type=2, match=None)],
        "no name": [ComponentData(entity_type="user", match_type=0, match=None)],
        "default name": [ComponentData(entity_type="user", match_type=1, match="a")],
        "any name": [ComponentData(entity_type="user", match_type=2, match="a")],
        "match": [ComponentData(entity_type="user", match_type=3, match=None)],
        "with ip": [
            ComponentData(entity_type=kind, match_type=2, match=None) for kind in ("user", "ip")
        ],
    }
    for version in (0, 1):
        for what, components in filters.items():
            request = DescribeClientQuotasRequest(components=components, strict=version == 1)
            answer = d.ask_quietly(request, version)
            code = ErrorCode(answer.error_code).name
            d.note(f"quotas {what}", (code, answer.error_message, answer.entries))
    for names in (None, [], [d.name], [d.name, d.name]):
        users = None if names is None else [UserName(name=name) for name in names]
        answer = d.ask_quietly(DescribeUserScramCredentialsRequest(users=users))
        shown = [
            (ErrorCode(one.error_code).name, one.error_message, one.credential_infos)
            for one in answer.results
        ]
        d.note(
            f"credentials {names and len(names)}", (answer.error_code, answer.error_message, shown)
        )
