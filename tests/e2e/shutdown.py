#!/usr/bin/env python3
"""SIGTERM under load: the process ends in time, and every client is told."""
import asyncio
import json
import signal
import time

from support import Checks, limited, server_from_arguments, skip

try:
    import websockets
except ImportError:
    skip("the websockets package is not installed")

limited(120)
server, _ = server_from_arguments(__doc__)
check = Checks()
if not server.pid:
    skip("needs --binary: the server is ended")
fake = server.is_fake()
long_wish = "slow 20000" if fake else "Tell me a very long story."


async def streaming():
    reader, writer = await asyncio.open_connection(server.host, server.port)
    body = json.dumps({"messages": [{"role": "user", "content": long_wish}], "stream": True, "ignore_eos": True, "max_tokens": 4000})
    writer.write(f"POST /v1/chat/completions HTTP/1.1\r\nHost: {server.host}:{server.port}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    try:
        rest = await reader.read()
    except ConnectionError:
        return head, b"reset"
    writer.close()
    return head, rest


async def socket_until_close(wish):
    socket = await websockets.connect(f"ws://{server.host}:{server.port}/v1/responses", ping_interval=None)
    if wish:
        await socket.send(json.dumps({"type": "response.create", "input": wish, "max_output_tokens": 4000, "ignore_eos": True}))
    last = None
    try:
        while True:
            last = json.loads(await socket.recv())
    except websockets.ConnectionClosed as closed:
        return closed.code, last


async def run():
    # So many that a fast machine can't have served them to the end of their contexts before the deadline.
    streams = [asyncio.create_task(streaming()) for _ in range(48)]
    sockets = [asyncio.create_task(socket_until_close(long_wish)) for _ in range(4)]
    idle = asyncio.create_task(socket_until_close(None))
    await asyncio.sleep(2)
    began = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    code = await asyncio.get_running_loop().run_in_executor(None, lambda: server.process.wait(15))
    took = time.monotonic() - began
    check(took < 6, "the process ends in time", f"{took:.2f} s")
    print(f"      {took:.2f} s from SIGTERM to the end", flush=True)
    check.equal(code, 0, "the process ends with 0")
    for head, rest in await asyncio.gather(*streams):
        if not (head.startswith((b"HTTP/1.1 200", b"HTTP/1.1 503", b"HTTP/1.1 429")) and b"[DONE]" not in rest[-64:]):
            check(False, "a stream that was cut is not taken for whole", rest[-200:])
            break
    else:
        check(True, "a stream that was cut is not taken for whole")
    check.equal((await idle)[0], 1001, "an idle socket is closed with 1001")
    codes = {code for code, _ in await asyncio.gather(*sockets)}
    check.equal(codes, {1001}, "busy sockets are closed with 1001, too")


asyncio.run(run())
check.done()
