"""Kinds of values with parts: addresses, pairs, lists of them.

Each is a kind as in `config.kinds`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from config.kinds import WireType, refusal, split_list
from config.listeners import (
    SECURITY_PROTOCOLS,
    Endpoint,
    Listener,
    parse_endpoint,
    parse_listener,
)

_THROTTLED_REPLICA = re.compile(r"[0-9]+:[0-9]+")


@dataclass(frozen=True, slots=True)
class ThrottledReplicas:
    """Replicas under a replication quota: `*`, or partition:broker pairs (KIP-73)."""

    @property
    def wire_type(self) -> WireType:
        """LIST."""
        return WireType.LIST

    @property
    def description(self) -> str:
        """The two forms."""
        return "`*`, or a comma-separated list of partition:broker, may be empty"

    def parse(self, name: str, text: str) -> tuple[str, ...]:
        """Read the pairs."""
        words = split_list(name, text)
        if words != ("*",) and not all(_THROTTLED_REPLICA.fullmatch(word) for word in words):
            shown = "[" + ", ".join(words) + "]"
            problem = (
                f"{name} must be the literal '*' or a list of replicas in the following format: "
                "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
            )
            raise ValueError(refusal(name, shown, problem))
        return words

    def format(self, value: object) -> str:
        """Join with commas."""
        assert isinstance(value, tuple)
        return ",".join(value)


@dataclass(frozen=True, slots=True)
class Listeners:
    """Named addresses."""

    @property
    def wire_type(self) -> WireType:
        """LIST."""
        return WireType.LIST

    @property
    def description(self) -> str:
        """The form."""
        return "comma-separated list of NAME://host:port"

    def parse(self, name: str, text: str) -> tuple[Listener, ...]:
        """Read the addresses; names and ports may not repeat (port 0 may)."""
        words = split_list(name, text, may_be_empty=False)
        try:
            listeners = tuple(parse_listener(word) for word in words)
        except ValueError as error:
            raise ValueError(refusal(name, text.strip(), str(error))) from error
        names = [listener.name for listener in listeners]
        if len(set(names)) != len(names):
            raise ValueError(
                refusal(name, text.strip(), "Each listener must have a different name")
            )
        return listeners

    def format(self, value: object) -> str:
        """Join with commas."""
        assert isinstance(value, tuple)
        return ",".join(str(listener) for listener in value)


@dataclass(frozen=True, slots=True)
class HostPort:
    """One address."""

    @property
    def wire_type(self) -> WireType:
        """STRING."""
        return WireType.STRING

    @property
    def description(self) -> str:
        """The form."""
        return "host:port, port 0 = any free one"

    def parse(self, name: str, text: str) -> Endpoint:
        """Read the address."""
        try:
            return parse_endpoint(text)
        except ValueError as error:
            raise ValueError(refusal(name, text.strip(), str(error))) from error

    def format(self, value: object) -> str:
        """Give `host:port`."""
        return str(value)


@dataclass(frozen=True, slots=True)
class ProtocolMap:
    """Listener name to security protocol: `NAME:PROTOCOL,...`."""

    @property
    def wire_type(self) -> WireType:
        """STRING."""
        return WireType.STRING

    @property
    def description(self) -> str:
        """The form."""
        return f"comma-separated list of NAME:PROTOCOL, protocols {', '.join(SECURITY_PROTOCOLS)}"

    def parse(self, name: str, text: str) -> Mapping[str, str]:
        """Read the pairs; names become upper case."""
        protocols: dict[str, str] = {}
        for word in split_list(name, text):
            listener, colon, protocol = word.rpartition(":")
            if not colon or not listener or protocol.strip().upper() not in SECURITY_PROTOCOLS:
                problem = f"`{word}` is not NAME:PROTOCOL"
                raise ValueError(refusal(name, text.strip(), problem))
            protocols[listener.strip().upper()] = protocol.strip().upper()
        return protocols

    def format(self, value: object) -> str:
        """Join with commas."""
        assert isinstance(value, Mapping)
        return ",".join(f"{listener}:{protocol}" for listener, protocol in value.items())


@dataclass(frozen=True, slots=True)
class CountByHost:
    """Host to count: `host:count,...`; an IPv6 host may stand in brackets."""

    @property
    def wire_type(self) -> WireType:
        """STRING."""
        return WireType.STRING

    @property
    def description(self) -> str:
        """The form."""
        return "comma-separated list of host:count, may be empty"

    def parse(self, name: str, text: str) -> Mapping[str, int]:
        """Read the pairs; a count is at least 0."""
        counts: dict[str, int] = {}
        for word in split_list(name, text):
            host, colon, count = word.rpartition(":")
            host = host.strip().removeprefix("[").removesuffix("]")
            if not colon or not host or not re.fullmatch(r"[0-9]{1,9}", count.strip()):
                raise ValueError(refusal(name, text.strip(), f"`{word}` is not host:count"))
            counts[host] = int(count)
        return counts

    def format(self, value: object) -> str:
        """Join with commas."""
        assert isinstance(value, Mapping)
        return ",".join(
            f"[{host}]:{count}" if ":" in host else f"{host}:{count}"
            for host, count in value.items()
        )
