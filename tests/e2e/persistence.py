#!/usr/bin/env python3
"""A server that keeps its state, killed with SIGKILL under load, again and again: what was acknowledged is there afterwards,
word for word, conversations go on from pages on disk with the tokens that an undisturbed server gives, and damaged files cost
what they held alone.

persistence.py [--seed N] [--rounds N] --binary troupe serve ...
"""
import argparse
import asyncio
import json
import os
import random
import resource
import shutil
import subprocess
import tempfile
import time
import urllib.error

from support import Checks, Server, limited, skip, wait_for

try:
    import websockets
except ImportError:
    skip("the websockets package is not installed")

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--seed", type=int, default=int(os.environ.get("TROUPE_SEED", time.time_ns() % 10**6)))
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--binary", nargs=argparse.REMAINDER, required=True)
arguments = parser.parse_args()
print(f"seed {arguments.seed}", flush=True)
limited(500)
check = Checks()
draw = random.Random(arguments.seed)
ENDS = ("response.completed", "response.incomplete")
SAYINGS = ["My name is {n} and my order number is {d}.", "What is my order number?", "What is my name?",
           "Hello!", "Where is my parcel?", "I want to return item {d}.", "Thank you, {n}."]


def wish():
    text = draw.choice(SAYINGS).format(n=draw.choice(["Ann", "Bob", "Carol", "Dmitri"]), d=draw.randrange(10**5))
    turn = {"input": text, "max_output_tokens": draw.randrange(4, 40), "temperature": 0}
    if draw.random() < 0.5:
        turn.update(temperature=0.9, seed=draw.randrange(10**6))
    if draw.random() < 0.2:
        turn["instructions"] = "You are a shop's assistant."
    return turn


def start(state=None, more=()):
    command = [*arguments.binary, "--exit-with-parent"]
    if state:
        command += ["--set", "memory.persistence=on", "--set", f"memory.state_dir={state}", "--set", "memory.disk_tier_mib=64"]
    for each in more:
        command += ["--set", each]
    return Server.start(command)


def kill(server):
    server.process.kill()
    server.process.wait()
    server.process.stdout.close()
    server.process.stdin.close()


def stored(server, turn):
    status, text = server.get("/v1/responses/" + turn["id"])
    return (status, json.loads(text))


# ---- load: each worker talks until the server goes, and notes what it was told ----

class Conversation:
    def __init__(self, turns=()):
        self.turns = list(turns)  # acknowledged: {"wish", "id", "response", "previous"}

    def body(self, turn):
        body = dict(turn)
        if self.turns and self.turns[-1]["response"]["usage"]["total_tokens"] < 600:  # the context is 1,024 tokens
            body["previous_response_id"] = self.turns[-1]["id"]
        return body

    def acknowledged(self, turn, response):
        self.turns.append({"wish": turn, "id": response["id"], "response": response, "previous": response["previous_response_id"]})


async def over_http(server, conversation):
    loop = asyncio.get_running_loop()
    while True:
        turn = wish()
        status, response = await loop.run_in_executor(None, server.post, "/v1/responses", conversation.body(turn))
        if status == 200:
            conversation.acknowledged(turn, response)
        else:
            check(False, "a turn over HTTP is answered", response)


async def streamed(server, conversation):
    while True:
        turn = wish()
        body = json.dumps({**conversation.body(turn), "stream": True})
        reader, writer = await asyncio.open_connection(server.host, server.port)
        writer.write(f"POST /v1/responses HTTP/1.1\r\nHost: {server.host}:{server.port}\r\nContent-Length: {len(body)}\r\n"
                     f"Connection: close\r\n\r\n{body}".encode())
        while line := await reader.readline():
            if line.startswith(b"data: ") and (event := json.loads(line[6:]))["type"] in ENDS:
                conversation.acknowledged(turn, event["response"])
        writer.close()


async def over_socket(server, lanes):
    async with websockets.connect(f"ws://{server.host}:{server.port}/v1/responses") as socket:
        asked = {}

        async def ask(name):
            asked[name] = wish()
            await socket.send(json.dumps({"type": "response.create", "stream_id": name, **lanes[name].body(asked[name])}))

        for name in lanes:
            await ask(name)
        while True:
            event = json.loads(await socket.recv())
            if event["type"] in ENDS:
                name = event["stream_id"]
                lanes[name].acknowledged(asked[name], event["response"])
                await ask(name)


async def load(server, conversations, turns):
    """Until so many turns more were acknowledged, and then for a moment that is drawn."""
    plain, streams, lanes = conversations[:3], conversations[3:5], conversations[5:]
    named = {f"lane{i}": each for i, each in enumerate(lanes)}
    work = [over_http(server, each) for each in plain] + [streamed(server, each) for each in streams]
    work += [over_socket(server, dict(list(named.items())[i::2])) for i in range(2)]
    tasks = [asyncio.create_task(each) for each in work]
    wanted = turns + sum(len(each.turns) for each in conversations)
    while sum(len(each.turns) for each in conversations) < wanted:
        await asyncio.sleep(0.005)
    await asyncio.sleep(draw.uniform(0, 0.1))
    kill(server)
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        if not isinstance(outcome, (OSError, EOFError, urllib.error.URLError, websockets.ConnectionClosed, json.JSONDecodeError)):
            if type(outcome).__module__ != "http.client":
                check(False, "a worker ends with its connection", repr(outcome))


def check_stored(server, conversations, what):
    wrong = []
    turns = [turn for each in conversations for turn in each.turns]
    for turn in turns:
        status, found = stored(server, turn)
        if status != 200 or found != turn["response"]:
            wrong.append((turn["id"], status))
    check(not wrong, f"{what}: all {len(turns)} acknowledged turns are there", wrong[:3])


twins = {}  # of a turn's response, on the server that was not disturbed


def differs(server, turn):
    """Whether that server says anything else in this turn."""
    body = dict(turn["wish"])
    if turn["previous"]:
        body["previous_response_id"] = twins[turn["previous"]]
    _, response = server.post("/v1/responses", body)
    twins[turn["id"]] = response["id"]
    wanted, got = ((texts(each), each["usage"]["output_tokens"]) for each in (turn["response"], response))
    if got != wanted:
        print(f"      {body}\n      {wanted!r}\n      {got!r}", flush=True)
    return got != wanted


def replay(server, conversations):
    """Every conversation again, from its beginning."""
    return sum(differs(server, turn) for each in conversations for turn in each.turns)


def replay_last(server, conversations):
    """The last turn alone, of conversations whose others were replayed."""
    return sum(differs(server, each.turns[-1]) for each in conversations)


def texts(response):
    return [(item["type"], item.get("arguments"), [part["text"] for part in item.get("content", [])]) for item in response["output"]]


def damage(state, how):
    """A copy of the state with one kind of damage. A killed process leaves all in the log, one that ended nothing."""
    copy = state + "-" + how.replace(" ", "-")
    shutil.copytree(state, copy)
    records, log = os.path.join(copy, "records.sqlite"), os.path.join(copy, "records.sqlite-wal")
    if how == "garbage":
        with open(records, "wb") as file:
            file.write(draw.randbytes(50_000))
    elif how == "cut":
        os.truncate(records, draw.randrange(100, os.path.getsize(records)))
    elif how == "torn log":
        os.truncate(log, draw.randrange(1, os.path.getsize(log)))
    elif how == "lost log":
        os.remove(log)
    elif how == "flipped bytes":
        for path in filter(os.path.exists, (records, log)):
            with open(path, "r+b") as file:
                for _ in range(12):
                    file.seek(draw.randrange(os.path.getsize(path)))
                    file.write(draw.randbytes(draw.randrange(1, 40)))
    return copy


def check_damage(state, conversations, how):
    copy = damage(state, how)
    server = start(copy)
    found = wrong = 0
    for each in conversations:
        for turn in each.turns:
            status, response = stored(server, turn)
            if status == 200:
                found += 1
                wrong += response != turn["response"]
            else:
                wrong += status != 404
    total = sum(len(each.turns) for each in conversations)
    check(wrong == 0, f"{how}: {found} of {total} turns are there, and none is wrong", wrong)
    status, response = server.post("/v1/responses", {"input": "Hello!"})
    check(status == 200 and server.get("/v1/responses/" + response["id"])[0] == 200, f"{how}: new turns are kept", response)
    kill(server)
    return found


# ---- pages ----

def settled(server):
    """All that is published has been copied down, as far as anybody can see."""
    last, same = None, 0
    def still():
        nonlocal last, same
        now = server.metrics().get("troupe_tier_pages_stored_total")
        same, last = (same + 1, last) if now == last else (0, now)
        return same >= 3
    return wait_for(still, 20, 0.1)


def go_on(server, conversations):
    """One more turn of each; how many prompt tokens were found, of how many."""
    cached = prompt = 0
    for each in conversations:
        turn = wish()
        status, response = server.post("/v1/responses", each.body(turn))
        if status != 200:
            check(False, "a conversation goes on", response)
            continue
        cached += response["usage"]["input_tokens_details"]["cached_tokens"]
        prompt += response["usage"]["input_tokens"]
        each.acknowledged(turn, response)
    return cached, prompt


def damage_pages(state, how):
    copy = state + "-pages-" + how.replace(" ", "-")
    shutil.copytree(state, copy)
    pages, index = os.path.join(copy, "pages.kv"), os.path.join(copy, "pages.sqlite")
    size = os.path.getsize(pages)
    if how == "torn slots":
        with open(pages, "r+b") as file:
            for at in range(4096, size, 4096):
                if draw.random() < 0.2:
                    file.seek(at + draw.randrange(4000))
                    file.write(draw.randbytes(draw.randrange(1, 64)))
    elif how == "cut file":
        os.truncate(pages, draw.randrange(8192, size))
    elif how == "swapped slots":
        slot = os.path.getsize(pages) // 8 // 4096 * 4096
        with open(pages, "r+b") as file:
            file.seek(4096)
            first = file.read(slot)
            file.seek(4096 + slot)
            second = file.read(slot)
            file.seek(4096)
            file.write(second + first)
    elif how == "damaged header":
        with open(pages, "r+b") as file:
            file.seek(40)
            file.write(b"x")
    elif how == "lost file":
        os.remove(pages)
    elif how == "lost index":
        for name in os.listdir(copy):
            if name.startswith("pages.sqlite"):
                os.remove(os.path.join(copy, name))
    elif how == "old index":  # the file went on, the index did not
        os.truncate(index + "-wal", os.path.getsize(index + "-wal") // 2)
    return copy


def check_pages(state, conversations, others):
    server = start(state)
    cached, prompt = go_on(server, conversations)
    check(cached > 0, f"pages on disk: {cached} of {prompt} prompt tokens are found after a kill", (cached, prompt))
    check(settled(server), "pages on disk: copying comes to rest")
    kill(server)
    server = start(state)
    cached, prompt = go_on(server, conversations)
    check(cached > prompt / 2, f"pages on disk: {cached} of {prompt}, where all had been copied", (cached, prompt))
    settled(server)
    kill(server)
    for how in ("torn slots", "cut file", "swapped slots", "damaged header", "lost file", "lost index", "old index"):
        copy = damage_pages(state, how)
        server = start(copy)
        branch = [Conversation(each.turns) for each in conversations]
        cached, prompt = go_on(server, branch)
        loaded = server.metrics()['troupe_tier_pages_loaded_total{tier="disk"}']
        damaged = server.metrics()['troupe_tier_moves_failed_total{reason="damaged"}']
        print(f"      {how}: {cached} of {prompt} prompt tokens found, {damaged:.0f} damaged copies", flush=True)
        if how in ("damaged header", "lost file", "lost index"):
            check.equal((loaded, damaged), (0, 0), f"{how}: the server starts without pages")
        if how in ("torn slots", "swapped slots"):
            check(damaged > 0, f"{how}: damage is told")
        kill(server)
        others.append(branch)


def check_other_types(state, conversations):
    """Pages of other types are not taken for these."""
    copy = state + "-types"
    shutil.copytree(state, copy)
    server = start(copy, ("memory.kv_keys=bf16",))
    go_on(server, [Conversation(each.turns) for each in conversations])
    check.equal(server.metrics()['troupe_tier_pages_loaded_total{tier="disk"}'], 0, "other KV types: the server starts without pages")
    server.stop()


def check_second_process(state):
    server = start(state)
    command = [*arguments.binary, "--set", "memory.persistence=on", "--set", f"memory.state_dir={state}"]
    second = subprocess.run(command, capture_output=True, text=True, timeout=60)
    check(second.returncode == 1 and "another troupe process uses this state folder" in second.stderr,
          "a second process with the same folder is refused", second.stderr)
    check.equal(server.stop(), 0, "the first one ends as ever")


def check_full_disk(state, conversations):
    server = start(state)
    log = os.path.join(state, "records.sqlite-wal")
    size = os.path.getsize(log) if os.path.exists(log) else 0
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    status, refused = server.post("/v1/responses", {"input": "Hello!"})
    check(status == 500 and refused["error"]["code"] == "io_failed", "full disk: a turn that is to be stored fails", refused)
    status, _, stream = server.request("POST", "/v1/responses", {"input": "Hello!", "stream": True})
    check("response.failed" in stream and "response.completed" not in stream, "full disk: so does a streamed one", stream[-300:])
    check.equal(server.post("/v1/responses", {"input": "Hello!", "store": False})[0], 200, "full disk: one that is not works")
    check.equal(server.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hello!"}]})[0], 200, "full disk: chats work")
    check_stored(server, conversations, "full disk")
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    status, response = server.post("/v1/responses", {"input": "Hello!"})
    check.equal(status, 200, "room again: turns are stored again")
    kill(server)
    server = start(state)
    check.equal(server.get("/v1/responses/" + response["id"])[0], 200, "room again: and kept")
    check_stored(server, conversations, "after a full disk")
    server.stop()


def check_delete(state, conversations):
    server = start(state)
    turn = conversations[0].turns.pop()
    check.equal(server.request("DELETE", "/v1/responses/" + turn["id"])[0], 200, "a stored response is deleted")
    kill(server)
    server = start(state)
    check.equal(server.get("/v1/responses/" + turn["id"])[0], 404, "it does not come back")
    kill(server)


with tempfile.TemporaryDirectory(prefix="troupe-persistence-") as folder:
    state = os.path.join(folder, "state")
    conversations = [Conversation() for _ in range(9)]
    for round in range(arguments.rounds):
        server = start(state)
        if round:
            check_stored(server, conversations, f"after kill {round}")
        asyncio.run(load(server, conversations, draw.randrange(30, 60)))
    killed, ended = state + "-killed", state + "-ended"
    shutil.copytree(state, killed)
    shutil.copytree(state, ended)
    start(ended).stop()
    server = start(state)
    check_stored(server, conversations, f"after kill {arguments.rounds}")
    check.equal(os.stat(state).st_mode & 0o777, 0o700, "the folder is its owner's alone")
    kill(server)
    check(min(len(each.turns) for each in conversations) > 1, "every conversation went on")
    for damaged, how in ((killed, "torn log"), (killed, "lost log"), (killed, "flipped bytes"), (ended, "flipped bytes"), (ended, "cut")):
        check_damage(damaged, conversations, how)
    check.equal(check_damage(ended, conversations, "garbage"), 0, "garbage: nothing is taken for a record")
    check(os.path.exists(ended + "-garbage/records.sqlite.damaged"), "garbage: it is set aside")
    check_delete(state, conversations)
    check_second_process(state)
    check_full_disk(state, conversations)
    others = []
    check_pages(state, conversations, others)
    check_other_types(state, conversations)
    with start() as fresh:
        total = sum(len(each.turns) for each in conversations)
        check.equal(replay(fresh, conversations), 0, f"a fresh server gives the same tokens in all {total} turns")
        check.equal(sum(replay_last(fresh, each) for each in others), 0, "and in those that went on from damaged pages")
check.done()
