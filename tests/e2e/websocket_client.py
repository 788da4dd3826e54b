#!/usr/bin/env python3
"""The Responses socket through the websockets package: lanes, order, cancel, limits, errors, a vanished client."""
import asyncio
import json

from support import Checks, limited, server_from_arguments, skip, wait_for

try:
    import websockets
except ImportError:
    skip("the websockets package is not installed")

limited(120)
server, _ = server_from_arguments(__doc__)
check = Checks()
fake = server.is_fake()
address = f"ws://{server.host}:{server.port}/v1/responses"
long_wish = "slow 2000" if fake else "Tell me a long story."
ends = ("response.completed", "response.incomplete", "response.failed", "error")


def create(text, **more):
    return json.dumps({"type": "response.create", "input": text, "max_output_tokens": 40, **more})


async def until_end(socket, lane=None):
    """The events up to the end of the lane's response."""
    events = []
    while True:
        event = json.loads(await asyncio.wait_for(socket.recv(), 60))
        if event.get("stream_id") == lane:
            events.append(event)
            if event["type"] in ends:
                return events


async def turns():
    async with websockets.connect(address) as socket:
        await socket.send(create("say one two"))
        events = await until_end(socket)
        check.equal([e["sequence_number"] for e in events], list(range(len(events))), "sequence numbers count from 0")
        check(not any("stream_id" in e for e in events), "the default lane's events name no lane")
        opened = [e["output_index"] for e in events if e["type"] == "response.output_item.added"]
        check.equal(opened, list(range(len(opened))), "output_index is dense")
        check(len({e["response"]["id"] for e in events if "response" in e}) == 1, "one id in all events")
        await socket.send(create("last", previous_response_id=events[-1]["response"]["id"]))
        more = await until_end(socket)
        check(more[-1]["type"] in ends[:2], "a second turn goes on from the first", more[-1])


async def lanes():
    async with websockets.connect(address) as socket:
        for lane, text in (("a", "slow 20" if fake else "Count to five."), ("b", "say bee"), ("a", "say after")):
            await socket.send(create(text, stream_id=lane))
        order, finished = [], 0
        while finished < 3:
            event = json.loads(await asyncio.wait_for(socket.recv(), 120))
            order.append((event["stream_id"], event["type"]))
            finished += event["type"] in ends
        a = [kind for lane, kind in order if lane == "a"]
        first_end = next(i for i, kind in enumerate(a) if kind in ends)
        check.equal(a[first_end + 1], "response.created", "a lane's second response begins when its first has ended")
        check.equal(sum(kind == "response.created" for kind in a), 2, "both of the lane's responses ran")
        if fake:
            b_end = order.index(("b", "response.completed"))
            check(b_end < order.index(("a", "response.completed")), "a short lane is not held up by a long one")


async def cancels():
    async with websockets.connect(address) as socket:
        await socket.send(create(long_wish, max_output_tokens=2000, ignore_eos=True))
        created = json.loads(await socket.recv())
        check.equal(created["type"], "response.created", "cancel: the response began")
        await socket.send(json.dumps({"type": "response.cancel", "response_id": created["response"]["id"]}))
        events = await until_end(socket)
        check.equal((events[-1]["type"], events[-1]["response"]["status"]), ("response.incomplete", "cancelled"), "cancel: its end")
        await socket.send(json.dumps({"type": "response.cancel"}))
        check.equal(json.loads(await socket.recv())["status"], 404, "cancel: nothing runs any more")


async def warm_up():
    async with websockets.connect(address) as socket:
        await socket.send(create([], generate=False, instructions="You are a shop's assistant."))
        events = await until_end(socket)
        check.equal([e["type"] for e in events], ["response.created", "response.in_progress", "response.completed"], "generate:false")
        await socket.send(create("hello", previous_response_id=events[-1]["response"]["id"]))
        check((await until_end(socket))[-1]["type"] in ends[:2], "generate:false: its id can be gone on from")


async def errors():
    async with websockets.connect(address) as socket:
        for message in ("nonsense", "{}", json.dumps({"type": "nope"}), create("x", model="no-such-model"), create("x", temperature=9)):
            await socket.send(message)
            event = json.loads(await socket.recv())
            check(event["type"] == "error" and event["status"] >= 400 and event["error"]["message"], f"error event for {message[:40]}", event)
        await socket.send(json.dumps({"type": "response.steer", "previous_response_id": "r", "input": "x"}))
        check.equal(json.loads(await socket.recv())["type"], "response.steer.failed", "steering is declined")
        await socket.send(create("say fine"))
        check((await until_end(socket))[-1]["type"] in ends[:2], "the socket stays open after errors")
        await socket.send(b"binary")
        try:
            await asyncio.wait_for(socket.recv(), 10)
            check(False, "binary messages close the socket")
        except websockets.ConnectionClosed as closed:
            check.equal(closed.code, 1003, "binary messages close the socket with 1003")


async def too_large():
    async with websockets.connect(address, max_size=None) as socket:
        try:
            await socket.send("x" * (16 * 1024 * 1024 + 1))
            await asyncio.wait_for(socket.recv(), 20)
            check(False, "a message over the limit closes the socket")
        except websockets.ConnectionClosed as closed:
            check.equal(closed.code, 1009, "a message over the limit closes the socket with 1009")


async def extensions():
    async with websockets.connect(address, compression="deflate") as socket:
        check.equal(socket.extensions, [], "compression is declined")


async def vanishes():
    socket = await websockets.connect(address)
    await socket.send(create(long_wish, max_output_tokens=2000, ignore_eos=True))
    await socket.recv()
    socket.transport.abort()
    await asyncio.sleep(0.1)  # the loop closes it
    running = "fake_running" if fake else "troupe_requests_in_flight"
    check(wait_for(lambda: server.metrics()[running] == 0, 5), "a client that vanishes has its response cancelled")


async def pings():
    async with websockets.connect(address, ping_interval=None) as socket:
        await asyncio.wait_for(await socket.ping(b"hello"), 5)
        check(True, "pings are answered")


with server:
    for test in (turns, lanes, cancels, warm_up, errors, too_large, extensions, vanishes, pings):
        asyncio.run(test())
check.done()
