#!/usr/bin/env python3
"""A hundred open WebSockets with nothing to do cost less than half a percent of a core."""
import asyncio
import time

from support import Checks, limited, server_from_arguments, skip

try:
    import websockets
except ImportError:
    skip("the websockets package is not installed")

limited(180)


def more(parser):
    parser.add_argument("--sockets", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=30)


server, arguments = server_from_arguments(__doc__, more)
check = Checks()
if not server.pid:
    skip("needs --binary: the processor time of the server is read")


async def measure():
    address = f"ws://{server.host}:{server.port}/v1/responses"
    sockets = [await websockets.connect(address, ping_interval=None) for _ in range(arguments.sockets)]
    await asyncio.sleep(2)
    check.equal(int(server.metrics()["troupe_edge_websockets"]), arguments.sockets, f"{arguments.sockets} sockets are open")
    before, began = server.cpu_seconds(), time.monotonic()
    await asyncio.sleep(arguments.seconds)
    share = (server.cpu_seconds() - before) / (time.monotonic() - began)
    print(f"      {100 * share:.3f}% of a core over {arguments.seconds:.0f} s", flush=True)
    check(share < 0.005, "idle sockets cost less than 0.5% of a core", f"{100 * share:.3f}%")
    check(all(socket.open for socket in sockets), "all sockets are open still")
    await asyncio.gather(*(socket.close() for socket in sockets))


with server:
    asyncio.run(measure())
check.done()
