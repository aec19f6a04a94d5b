"""Reading ranges from an S3 server: our client beside others, on one server that runs here.

    python -m bench.s3_reading                     versitygw, 4 MiB ranges, 1, 4 and 8 in flight
    python -m bench.s3_reading --server minio --loop asyncio

Clients:

    store        S3ObjectStore.get_range as Varve uses it (`tiered.object_store.s3.ranged_get`)
    library      the same, with fast reads off: aiobotocore, copied into the caller's memory
    aiobotocore  get_object and body.read(), nothing else
    threads      http.client in one thread per read in flight, addresses signed in advance: what the
                 server gives a plain parallel reader
    obstore      if it can be imported

The server shares the machine's cores with the client, so compare the columns, not machines. CPU is
the client's process, user and system.
"""

import argparse
import asyncio
import http.client
import resource
import statistics
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import uvloop

from bench.s3_server import ACCESS_KEY_ID, REGION, SECRET_ACCESS_KEY, SERVERS, s3_server
from config.object_store import StoreSettings
from storage.environment.clock import SystemClock
from storage.environment.randomness import SeededRandomness
from tiered.object_store.s3.credentials import FixedCredentials
from tiered.object_store.s3.store import S3ObjectStore

MIB = 1024 * 1024

KEY = "bench/object.log"

Read = Callable[[int, int, memoryview], Awaitable[None]]
"""(position, length, into) of the one object."""


def cpu_s() -> float:
    """CPU of this process so far, with its threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def settings_for(url: str, bucket: str = "bench") -> StoreSettings:
    return StoreSettings(
        backend="s3",
        bucket=bucket,
        region=REGION,
        endpoint_url=url,
        path_style=True,
        access_key_id=ACCESS_KEY_ID,
        secret_access_key=SECRET_ACCESS_KEY,
    )


def new_store(url: str, *, fast_reads: bool = True, bucket: str = "bench") -> S3ObjectStore:
    return S3ObjectStore(
        settings_for(url, bucket),
        SystemClock(),
        SeededRandomness(1),
        credentials=FixedCredentials(ACCESS_KEY_ID, SECRET_ACCESS_KEY),
        fast_reads=fast_reads,
    )


async def run_reads(read: Read, size: int, length: int, in_flight: int, total: int) -> list[str]:
    """Read `total` bytes in ranges; (MiB/s, CPU s/GiB, p50 and p99 ms, worst loop lag ms)."""
    buffers = [memoryview(bytearray(length)) for _ in range(in_flight)]
    positions = [at % size for at in range(0, total, length)]
    latencies: list[float] = []
    worst_lag = 0.0
    running = True

    async def watch() -> None:
        nonlocal worst_lag
        while running:
            before = time.perf_counter()
            await asyncio.sleep(0.005)
            worst_lag = max(worst_lag, time.perf_counter() - before - 0.005)

    async def work(buffer: memoryview) -> None:
        while positions:
            before = time.perf_counter()
            await read(positions.pop(), length, buffer)
            latencies.append(time.perf_counter() - before)

    watcher = asyncio.create_task(watch())
    begin, begin_cpu = time.perf_counter(), cpu_s()
    await asyncio.gather(*(work(buffer) for buffer in buffers))
    wall, cpu = time.perf_counter() - begin, cpu_s() - begin_cpu
    running = False
    await watcher
    cut = statistics.quantiles(latencies, n=100) if len(latencies) > 1 else latencies * 99
    return [
        f"{total / MIB / wall:.0f}",
        f"{cpu / (total / 1024 / MIB):.2f}",
        f"{cut[49] * 1000:.1f}",
        f"{cut[98] * 1000:.1f}",
        f"{worst_lag * 1000:.0f}",
    ]


class Clients:
    """Makes the read functions; what they hold open is closed at the end."""

    def __init__(self, url: str, in_flight: int) -> None:
        self.url = url
        self.in_flight = in_flight
        self.stores: list[S3ObjectStore] = []
        self.executor: ThreadPoolExecutor | None = None

    async def _store(self, *, fast_reads: bool) -> Read:
        store = new_store(self.url, fast_reads=fast_reads)
        self.stores.append(store)
        return lambda position, length, into: store.get_range(KEY, position, length, into)

    async def store(self) -> Read:
        """As Varve reads."""
        return await self._store(fast_reads=True)

    async def library(self) -> Read:
        """With fast reads off."""
        return await self._store(fast_reads=False)

    async def _client(self) -> Any:
        store = new_store(self.url)
        self.stores.append(store)
        await store.head(KEY)
        return store._calls._client

    async def aiobotocore(self) -> Read:
        """The library alone."""
        client = await self._client()

        async def read(position: int, length: int, into: memoryview) -> None:
            answer = await client.get_object(
                Bucket="bench", Key=KEY, Range=f"bytes={position}-{position + length - 1}"
            )
            async with answer["Body"] as body:
                assert len(await body.read()) == length

        return read

    async def threads(self) -> Read:
        """A plain parallel reader."""
        client = await self._client()
        url = urlsplit(
            await client.generate_presigned_url("get_object", {"Bucket": "bench", "Key": KEY})
        )
        target = f"{url.path}?{url.query}"
        self.executor = ThreadPoolExecutor(self.in_flight)
        idle = [http.client.HTTPConnection(str(url.hostname), url.port) for _ in range(64)]

        def fetch(position: int, length: int, into: memoryview) -> None:
            connection = idle.pop()
            connection.request(
                "GET", target, headers={"Range": f"bytes={position}-{position + length - 1}"}
            )
            answer = connection.getresponse()
            filled = 0
            while filled < length:
                count = answer.readinto(into[filled:])
                assert count, answer.status
                filled += count
            answer.read()
            idle.append(connection)

        async def read(position: int, length: int, into: memoryview) -> None:
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self.executor, fetch, position, length, into)

        return read

    async def obstore(self) -> Read:
        """ImportError where it is not installed."""
        # Not a dependency: it is measured where it is on the path.
        from obstore.store import (  # type: ignore[import-not-found,unused-ignore]  # see above
            S3Store,
        )

        store = S3Store(
            "bench",
            endpoint=self.url,
            region=REGION,
            access_key_id=ACCESS_KEY_ID,
            secret_access_key=SECRET_ACCESS_KEY,
            virtual_hosted_style_request=False,
            client_options={"allow_http": True},
        )

        async def read(position: int, length: int, into: memoryview) -> None:
            into[:] = await store.get_range_async(KEY, start=position, length=length)

        return read

    async def close(self) -> None:
        """Give back connections and threads."""
        for store in self.stores:
            await store.close()
        if self.executor is not None:
            self.executor.shutdown()


async def prepare(url: str, size: int) -> None:
    """The bucket and the object."""
    store = new_store(url)
    with_client = store._calls.with_client
    await with_client("create_bucket", "", lambda client: client.create_bucket(Bucket="bench"))

    async def parts() -> Any:
        part = bytes(range(256)) * (4 * MIB // 256)
        for _ in range(size // len(part)):
            yield part

    await store.put_stream(KEY, parts(), size)
    await store.close()


async def measure(url: str, name: str, in_flight: int, length: int, size: int, total: int) -> None:
    clients = Clients(url, in_flight)
    try:
        read: Read = await getattr(clients, name)()
    except ImportError:
        print(f"| {name} | {in_flight} | not installed |", flush=True)
        await clients.close()
        return
    await run_reads(read, size, length, in_flight, total // 8)
    row = await run_reads(read, size, length, in_flight, total)
    print("| " + " | ".join([name, str(in_flight), *row]) + " |", flush=True)
    await clients.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--server", choices=SERVERS, default="versitygw")
    parser.add_argument("--loop", choices=("uvloop", "asyncio"), default="uvloop")
    parser.add_argument("--range-kib", type=int, default=4096)
    parser.add_argument("--total-mib", type=int, default=1024)
    parser.add_argument(
        "--clients", nargs="+", default=["store", "library", "aiobotocore", "threads", "obstore"]
    )
    parser.add_argument("--in-flight", type=int, nargs="+", default=[1, 4, 8])
    asked = parser.parse_args()
    run = uvloop.run if asked.loop == "uvloop" else asyncio.run
    size = 256 * MIB
    with s3_server(asked.server) as url:
        run(prepare(url, size))
        print(f"{asked.server}, {asked.loop}, {asked.range_kib} KiB ranges\n")
        print("| client | in flight | MiB/s | CPU s/GiB | p50 ms | p99 ms | worst loop lag ms |")
        print("|---|--:|--:|--:|--:|--:|--:|")
        for in_flight in asked.in_flight:
            for name in asked.clients:
                run(
                    measure(
                        url,
                        name,
                        in_flight,
                        asked.range_kib * 1024,
                        size,
                        asked.total_mib * MIB,
                    )
                )


if __name__ == "__main__":
    main()
