#!/usr/bin/env python3
"""Many chats at once, a third of whose clients vanish: afterwards everything is free again."""
import asyncio
import json
import os
import random
import time

from support import Checks, limited, server_from_arguments, wait_for

limited(560)


def more(parser):
    parser.add_argument("--chats", type=int, default=200)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--seed", type=int, default=1)


server, arguments = server_from_arguments(__doc__, more)
check = Checks()
fake = server.is_fake()
dice = random.Random(arguments.seed)
print(f"seed {arguments.seed}", flush=True)


def body_of(number):
    wish = f"slow {dice.randint(5, 60)}" if fake else f"Question {number % 17}: where is order {number}?"
    return json.dumps({"messages": [{"role": "system", "content": "You are a shop's assistant."}, {"role": "user", "content": wish}],
                       "stream": True, "max_tokens": dice.randint(4, 40), "stream_options": {"include_usage": True}})


async def chat(number, counts):
    """One chat over a raw connection. Some clients leave: before the answer, within it, or by closing one half."""
    reader, writer = await asyncio.open_connection(server.host, server.port)
    leaves = dice.choice([None, None, None, None, "at once", "within", "half"])
    body = body_of(number)
    writer.write(f"POST /v1/chat/completions HTTP/1.1\r\nHost: {server.host}:{server.port}\r\nContent-Type: application/json\r\n"
                 f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode())
    await writer.drain()
    try:
        if leaves == "at once":
            writer.transport.abort()
            counts["left"] += 1
            return
        if leaves == "half":
            await reader.read(200)
            writer.write_eof()
            await asyncio.wait_for(reader.read(), 60)
            counts["left"] += 1
            return
        if leaves == "within":
            await reader.read(600)
            writer.transport.abort()
            counts["left"] += 1
            return
        text = (await asyncio.wait_for(reader.read(), 300)).decode()
        counts["refused" if text.startswith(("HTTP/1.1 429", "HTTP/1.1 503")) else "whole" if "data: [DONE]" in text else "broken"] += 1
        if "data: [DONE]" not in text and not text.startswith(("HTTP/1.1 429", "HTTP/1.1 503")):
            print(f"chat {number}: {text[:300]!r}")
    except (ConnectionError, asyncio.IncompleteReadError):
        counts["left" if leaves else "broken"] += 1
    finally:
        writer.close()


async def run(chats):
    counts = dict(whole=0, left=0, refused=0, broken=0)
    gate = asyncio.Semaphore(arguments.concurrency)

    async def one(number):
        async with gate:
            await chat(number, counts)

    await asyncio.gather(*(one(number) for number in range(chats)))
    return counts


def pages(values):
    """(used, all); a page is used when it is neither free nor cached."""
    per_state = {name: value for name, value in values.items() if name.startswith("troupe_kv_pages{")}
    resting = sum(value for name, value in per_state.items() if 'state="free"' in name or 'state="cached"' in name)
    return sum(per_state.values()) - resting, sum(per_state.values())


def in_flight():
    values = server.metrics()
    return values.get("fake_running", 0) + values.get("troupe_requests_in_flight", 0)


with server:
    # The same chats twice: what is allocated once, or kept up to a bound for whoever comes with the same prompt, is there now.
    asyncio.run(run(arguments.chats))
    check(wait_for(lambda: in_flight() == 0, 60), "the first chats have ended")
    dice.seed(arguments.seed)
    descriptors, resident = server.descriptors(), server.resident_bytes()
    began = time.monotonic()
    counts = asyncio.run(run(arguments.chats))
    print(f"      {arguments.chats} chats in {time.monotonic() - began:.1f} s: {counts}", flush=True)
    check.equal(counts["broken"], 0, "every chat whose client stayed is whole, or refused with a reason")
    check(counts["whole"] > 0 and counts["left"] > 0, "some stayed and some left")
    check(wait_for(lambda: in_flight() == 0, 60), "nothing runs any more", f"{in_flight()} still run")
    check(wait_for(lambda: pages(server.metrics())[0] == 0, 10), "all pages are free or cached", pages(server.metrics()))
    check(wait_for(lambda: server.metrics()["troupe_edge_connections"] <= 1, 15), "all connections are closed",
          server.metrics()["troupe_edge_connections"])
    if server.pid:
        check(wait_for(lambda: server.descriptors() <= descriptors + 1, 10), "no descriptor is left open",
              f"{descriptors} before, {server.descriptors()} after")
        grown = server.resident_bytes() - resident
        print(f"      resident memory {resident >> 20} MiB before, {(resident + grown) >> 20} MiB after", flush=True)
        # ThreadSanitizer's notes on each address count as resident memory of ours.
        allowed = 256 << 20 if os.environ.get("TROUPE_SANITIZED") == "thread" else max(16 << 20, resident // 20)
        check(grown < allowed, "memory has not grown", f"by {grown >> 20} MiB")
check.done()
