"""Passes bytes on between a port and a server; a process, so that its death cuts all of it.

python -m tests.fakes.network.tcp_proxy PORT HOST:PORT
"""

import asyncio
import contextlib
import sys


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError, RuntimeError):
        writer.write_eof()


async def serve(port: int, host: str, behind: int) -> None:
    """Until it is killed."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(host, behind)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_pass(reader, far_writer), _pass(far_reader, writer))
        for one in (far_writer, writer):
            one.close()

    server = await asyncio.start_server(connected, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    server_host, _, server_port = sys.argv[2].rpartition(":")
    asyncio.run(serve(int(sys.argv[1]), server_host, int(server_port)))
