"""Where a raw client's requests go: to the one broker, or to whoever of several serves them.

one address            every request goes there
several, by commas     partitions to their leader, groups and transactional ids to their
coordinator, all else to any; looked up anew after every failure
"""

import asyncio
from typing import Any, Final

from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.headers import decode_response_header, encode_request_header
from protocol.messages import module_of
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

GROUP, TRANSACTION = 0, 1

Place = tuple[str, int]
"""Host and port."""

Address = Place | str
"""One place, or `host:port,host:port,...`."""

Target = tuple[str, int] | tuple[int, str]
"""A topic's partition, or a kind of coordinator and its key."""

METADATA_VERSION: Final = 9
FIND_COORDINATOR_VERSION: Final = 4


def places_of(address: Address) -> list[Place]:
    """All places of an address."""
    if not isinstance(address, str):
        return [address]
    found = []
    for one in address.split(","):
        host, _, port = one.rpartition(":")
        found.append((host, int(port)))
    return found


class Connection:
    """One connection, one request at a time; made when it is needed."""

    def __init__(self, place: Place, client_id: str) -> None:
        self._place = place
        self._client_id = client_id
        self._correlation_id = 0
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    def drop(self) -> None:
        """Close it; the next call makes another."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    async def call(self, request: Any, api: ApiKey, version: int, timeout_s: float) -> Any:
        """Send a request and wait for its answer.

        Raises:
            OSError, TimeoutError: There was none; the connection is given up.
        """
        try:
            async with asyncio.timeout(timeout_s):
                return await self._call(request, api, version)
        except asyncio.IncompleteReadError as error:
            self.drop()
            raise ConnectionResetError("closed by the broker") from error
        except (OSError, TimeoutError, asyncio.CancelledError):
            self.drop()
            raise

    async def _call(self, request: Any, api: ApiKey, version: int) -> Any:
        if self._streams is None:
            self._streams = await asyncio.open_connection(*self._place, limit=1 << 20)
        reader, writer = self._streams
        self._correlation_id += 1
        module = module_of(api)
        body = module.encode_request(request, version)
        head = encode_request_header(api, version, self._correlation_id, self._client_id)
        writer.write((len(head) + len(body)).to_bytes(4, "big") + head + body)
        size = int.from_bytes(await reader.readexactly(4), "big")
        data = memoryview(await reader.readexactly(size))
        correlation_id, position = decode_response_header(data, api, version)
        if correlation_id != self._correlation_id:
            raise ConnectionAbortedError("answer to another request")
        return module.decode_response(data[position:], version)


def target_of(request: Any, api: ApiKey) -> Target | None:
    """What a request is about, by its first partition; None: any broker may answer it."""
    if api is ApiKey.PRODUCE:
        topic = request.topic_data[0]
        return topic.name, topic.partition_data[0].index
    if api is ApiKey.FETCH:
        return request.topics[0].topic, request.topics[0].partitions[0].partition
    if api is ApiKey.LIST_OFFSETS:
        return request.topics[0].name, request.topics[0].partitions[0].partition_index
    if api is ApiKey.ADD_PARTITIONS_TO_TXN:
        return TRANSACTION, request.v3_and_below_transactional_id
    if api in (ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN):
        return TRANSACTION, request.transactional_id
    if api in (ApiKey.TXN_OFFSET_COMMIT, ApiKey.OFFSET_COMMIT):
        return GROUP, request.group_id
    if api is ApiKey.OFFSET_FETCH:
        return GROUP, request.groups[0].group_id
    return None


class Routes:
    """See the module; a connection for each broker."""

    def __init__(self, address: Address, client_id: str, answer_s: float) -> None:
        self._places = places_of(address)
        self._client_id = client_id
        self._answer_s = answer_s
        self._connections: dict[Place, Connection] = {}
        self._found: dict[Target, Place] = {}
        self._any = 0

    @property
    def is_needed(self) -> bool:
        """Whether there are several brokers."""
        return len(self._places) > 1

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections.values():
            connection.drop()

    async def connection_for(self, request: Any, api: ApiKey) -> Connection:
        """The connection to the broker that serves a request.

        Raises:
            OSError, TimeoutError: It cannot be found out.
        """
        target = target_of(request, api) if self.is_needed else None
        if target is None:
            return self._to(self._places[self._any % len(self._places)])
        place = self._found.get(target)
        if place is None:
            place = self._found[target] = await self._look_up(target)
        return self._to(place)

    def forget(self, request: Any, api: ApiKey) -> None:
        """Look it up anew, at another broker: the request has failed."""
        self._any += 1
        target = target_of(request, api) if self.is_needed else None
        if target is not None:
            self._found.pop(target, None)

    def _to(self, place: Place) -> Connection:
        connection = self._connections.get(place)
        if connection is None:
            connection = self._connections[place] = Connection(place, self._client_id)
        return connection

    async def _look_up(self, target: Target) -> Place:
        asked = self._to(self._places[self._any % len(self._places)])
        if isinstance(target[0], int):
            find = FindCoordinatorRequest(key_type=target[0], coordinator_keys=[str(target[1])])
            answer = await asked.call(
                find, ApiKey.FIND_COORDINATOR, FIND_COORDINATOR_VERSION, self._answer_s
            )
            (found,) = answer.coordinators
            if found.error_code != ErrorCode.NONE:
                raise ConnectionError(f"no coordinator: {ErrorCode(found.error_code).name}")
            return found.host, found.port
        name, index = target
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
        )
        answer = await asked.call(request, ApiKey.METADATA, METADATA_VERSION, self._answer_s)
        brokers = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
        for partition in answer.topics[0].partitions:
            if partition.partition_index == index and partition.leader_id in brokers:
                place: Place = brokers[partition.leader_id]
                return place
        raise ConnectionError(f"no leader of {name}-{index}")
