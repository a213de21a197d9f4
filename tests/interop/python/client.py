"""aiohttp (HTTP/1.1) and httpx over hyper-h2 (HTTP/2) before a proxy: see tests/tests/peers/clients.rs for what each line says.

python client.py PORT HOST http1|h2c BYTES
"""

import asyncio
import sys

PORT, HOST, PROTOCOL, SIZE = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
BASE = f"http://127.0.0.1:{PORT}"
PIECE = 64 * 1024
# The n-th byte of every body: no piece of it looks like another.
PATTERN = bytes((at ^ (at >> 8)) & 0xFF for at in range(PIECE))


async def pieces(size):
    for at in range(0, size, PIECE):
        yield PATTERN[: min(PIECE, size - at)]


class Same:
    """Compares what comes back."""

    def __init__(self):
        self.at = 0

    def take(self, piece):
        begin = self.at % PIECE
        expected = (PATTERN * (len(piece) // PIECE + 2))[begin : begin + len(piece)]
        assert piece == expected, f"byte {self.at} or one behind it is another"
        self.at += len(piece)


async def http1():
    import aiohttp

    async with aiohttp.ClientSession(headers={"Host": HOST}, timeout=aiohttp.ClientTimeout(total=None)) as session:
        same = Same()
        async with session.post(f"{BASE}/stream", data=pieces(SIZE)) as response:
            async for piece in response.content.iter_any():
                same.take(piece)
        assert same.at == SIZE, f"{same.at} bytes came back"
        print("body")

        turn = asyncio.Queue()

        async def slow():
            while (piece := await turn.get()) is not None:
                yield piece

        await turn.put(PATTERN[:100])
        async with session.post(f"{BASE}/stream", data=slow()) as response:
            for _ in range(20):
                assert await response.content.readexactly(100) == PATTERN[:100]
                await turn.put(PATTERN[:100])
            await turn.put(None)
            await response.read()
        print("duplex")

        response = await session.post(f"{BASE}/stream", data=pieces(PIECE * 1000))
        await response.content.readany()
        await until_as_many("2", lambda: in_flight_over_aiohttp(session))
        response.close()
        await until_as_many("1", lambda: in_flight_over_aiohttp(session))
        print("cancel")


async def in_flight_over_aiohttp(session):
    async with session.post(f"{BASE}/", data=b"hello") as response:
        assert await response.read() == b"hello"
        return response.headers["x-in-flight"]


async def h2c():
    import httpx

    options = {"http1": False, "http2": True, "timeout": None, "headers": {"Host": HOST}}
    async with httpx.AsyncClient(**options) as client:
        same = Same()
        # It reads nothing before it has sent everything, so the app answers then.
        async with client.stream("POST", f"{BASE}/", content=pieces(SIZE)) as response:
            async for piece in response.aiter_raw():
                same.take(piece)
        assert response.http_version == "HTTP/2" and same.at == SIZE, f"{same.at} bytes came back"
        print("body")

        async def in_flight():
            response = await client.post(f"{BASE}/", content=b"hello")
            assert response.content == b"hello"
            return response.headers["x-in-flight"]

        # It tells no server that a stream is of no use any more, so its connection goes.
        async with httpx.AsyncClient(**options) as leaving:
            async with leaving.stream("GET", f"{BASE}/events?stream=httpx&first=hello") as response:
                async for piece in response.aiter_raw():
                    break
                await until_as_many("2", in_flight)
        await until_as_many("1", in_flight)
        print("cancel")


async def until_as_many(number, in_flight):
    """The next one is served, and sooner or later one of so many."""
    while await in_flight() != number:
        await asyncio.sleep(0.01)


asyncio.run(http1() if PROTOCOL == "http1" else h2c())
