"""grpcio before a proxy: see tests/tests/peers/clients.rs for what each line says.

python grpc_client.py PORT HOST h2c BYTES
"""

import asyncio
import sys

import grpc

PORT, HOST, _, SIZE = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
PIECE = 64 * 1024
# The n-th byte of every body: no piece of it looks like another.
PATTERN = bytes((at ^ (at >> 8)) & 0xFF for at in range(PIECE))


async def pieces(size):
    for at in range(0, size, PIECE):
        yield PATTERN[: min(PIECE, size - at)]


async def body(stream):
    # A client of gRPC sends no trailers. What it asks for in this header, the app says in its own.
    call = stream(pieces(SIZE), metadata=(("x-sent", "7"),))
    at = 0
    async for piece in call:
        assert piece == PATTERN[: min(PIECE, SIZE - at)], f"byte {at} or one behind it is another"
        at += len(piece)
    assert at == SIZE and await call.code() == grpc.StatusCode.OK, f"{at} bytes came back"
    print("body")
    # It is a mapping whose items are asked for by name, and iterated in pairs.
    trailers = list(await call.trailing_metadata())
    assert ("x-echoed", "7") in trailers, trailers
    print("trailers")


async def duplex(stream):
    call = stream()
    for turn in range(20):
        await call.write(PATTERN[turn : turn + 100])
        assert await call.read() == PATTERN[turn : turn + 100]
    await call.done_writing()
    assert await call.read() is grpc.aio.EOF
    print("duplex")


async def cancel(stream):
    call = stream()
    await call.write(PATTERN)
    assert await call.read() == PATTERN
    await until_in_flight(stream, "2")
    call.cancel()
    # The next one is served, and sooner or later alone.
    await until_in_flight(stream, "1")
    print("cancel")


async def until_in_flight(stream, number):
    while await in_flight(stream) != number:
        await asyncio.sleep(0.01)


async def in_flight(stream):
    call = stream(pieces(5))
    assert [piece async for piece in call] == [PATTERN[:5]]
    return (await call.initial_metadata())["x-in-flight"]


async def main():
    options = [("grpc.default_authority", HOST)]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{PORT}", options=options) as channel:
        # Without serializers messages are bytes.
        stream = channel.stream_stream("/stream")
        await body(stream)
        await duplex(stream)
        await cancel(stream)


asyncio.run(main())
