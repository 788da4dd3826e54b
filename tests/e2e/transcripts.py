#!/usr/bin/env python3
"""Replays recorded requests of the official JS SDK, and compares the events' order and required fields with the record."""
import asyncio
import json
import os
from collections import Counter

from support import Checks, limited, server_from_arguments, skip

try:
    import websockets
except ImportError:
    skip("the websockets package is not installed")

limited(200)
root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
folder = os.environ.get("TROUPE_TRANSCRIPTS", os.path.join(root, "..", "shared", "data", "transcripts"))
if not os.path.isdir(folder):
    skip(f"no transcripts at {folder}; set TROUPE_TRANSCRIPTS")
server, _ = server_from_arguments(__doc__)
check = Checks()
model = server.model()

# What the record's server sent and clients do not need.
OPTIONAL = {"system_fingerprint", "cache_write_tokens", "reasoning_content", "strict", "obfuscation"}
# The record's tool calls come in pieces, its texts in other words; reasoning is there or not as the model likes.
REPEATED = {"response.output_text.delta", "response.reasoning_text.delta", "response.function_call_arguments.delta"}


def record(name):
    with open(os.path.join(folder, name)) as lines:
        return [json.loads(line) for line in lines]


def missing_fields(wanted, got, path=""):
    """Members that the record has and we have not."""
    if isinstance(wanted, dict):
        if not isinstance(got, dict):
            return [path]
        return [m for key in wanted if key not in OPTIONAL
                for m in ([f"{path}.{key}"] if key not in got else missing_fields(wanted[key], got[key], f"{path}.{key}"))]
    if isinstance(wanted, list) and wanted and isinstance(got, list) and got:
        return missing_fields(wanted[0], got[0], path + "[0]")
    return []


def shape(kinds):
    """The order of events, repeated deltas taken once and each item's events as a group."""
    return [kind for i, kind in enumerate(kinds) if not (kind in REPEATED and i and kinds[i - 1] == kind)]


# An item of a kind always brings its events in this order, whatever the model said.
ITEM = {
    "message": ["response.output_item.added", "response.content_part.added", "response.output_text.delta", "response.output_text.done",
                "response.content_part.done", "response.output_item.done"],
    "reasoning": ["response.output_item.added", "response.content_part.added", "response.reasoning_text.delta",
                  "response.reasoning_text.done", "response.content_part.done", "response.output_item.done"],
    "function_call": ["response.output_item.added", "response.function_call_arguments.delta", "response.function_call_arguments.done",
                      "response.output_item.done"],
}


def follows_order(events):
    expected = ["response.created", "response.in_progress"]
    for event in events:
        if event["type"] == "response.output_item.added":
            expected += ITEM[event["item"]["type"]]
    expected.append(events[-1]["type"])
    return shape([event["type"] for event in events]) == expected and events[-1]["type"] in (
        "response.completed", "response.incomplete")


def compare_events(recorded, ours, what):
    samples = {}
    for event in recorded:
        samples.setdefault((event["type"], (event.get("item") or event.get("part") or {}).get("type")), event)
    lacking = Counter()
    for event in ours:
        sample = samples.get((event["type"], (event.get("item") or event.get("part") or {}).get("type")))
        if sample:
            lacking.update(f"{event['type']}: {field}" for field in missing_fields(sample, event) if ".output[0]" not in field)
    check(not lacking, f"{what}: every recorded field is there", dict(lacking))
    check(follows_order(recorded), f"{what}: the record itself follows the order")
    check(follows_order(ours), f"{what}: our events follow the order", [event["type"] for event in ours])


def sse(text):
    return [line[6:] for line in text.splitlines() if line.startswith("data: ")]


def requests_of(lines, kind):
    """(request, its answers) of a recorded HTTP exchange."""
    current = None
    for line in lines:
        if line["dir"] == "in" and line["kind"] == "http":
            if current:
                yield current
            current = (line, [])
        elif line["dir"] == "out" and current:
            current[1].append(line)
    if current:
        yield current


def replay_chat():
    for line, answers in requests_of(record("sdk_chat_completions.jsonl"), "http"):
        body = line.get("body") or {}
        if body.get("model") not in ("qwen3-32b",) or "response_format" in body:
            continue
        if body["messages"][-1]["content"] == "long":
            continue  # the record's client leaves
        status, _, text = server.request("POST", "/v1/chat/completions", {**body, "model": model, "max_tokens": 24})
        what = f"chat ({', '.join(key for key in body if key not in ('model', 'messages'))})"
        if not check.equal(status, 200, f"{what}: status"):
            continue
        if not body.get("stream"):
            recorded = next(a["body"] for a in answers if a["kind"] == "http.json")
            check.equal(missing_fields(recorded, json.loads(text)), [], f"{what}: fields")
            continue
        recorded = [a["data"] for a in answers if a["kind"] == "sse.chat"]
        ours = sse(text)
        check.equal((recorded[-1], ours[-1]), ("[DONE]", "[DONE]"), f"{what}: ends with [DONE]")
        ours = [json.loads(data) for data in ours[:-1]]
        recorded = [data for data in recorded[:-1]]
        check.equal(ours[0]["choices"][0]["delta"].get("role"), "assistant", f"{what}: the role comes first")
        check.equal(missing_fields(recorded[0], ours[0]), [], f"{what}: first chunk's fields")
        check.equal(missing_fields(recorded[-1], ours[-1]), [], f"{what}: last chunk's fields")
        check(all("finish_reason" in c["choices"][0] for c in ours if c["choices"]), f"{what}: finish_reason in each chunk")
        if body.get("stream_options", {}).get("include_usage"):
            check(all(c["usage"] is None for c in ours[:-1]) and ours[-1]["choices"] == [], f"{what}: usage last and alone")


def replay_responses():
    lines = record("sdk_responses_sse.jsonl")
    seen = set()
    for line, answers in requests_of(lines, "http"):
        body = line.get("body")
        if not body or "previous_response_id" in body:
            continue
        key = json.dumps(body)
        if key in seen:
            continue
        seen.add(key)
        status, _, text = server.request("POST", "/v1/responses", {**body, "model": model, "max_output_tokens": 24})
        what = f"responses ({', '.join(key for key in body if key not in ('model', 'input'))})"
        if not check.equal(status, 200, f"{what}: status"):
            continue
        if body.get("stream"):
            compare_events([a["data"] for a in answers if a["kind"] == "sse.responses" and isinstance(a["data"], dict)],
                           [json.loads(data) for data in sse(text)], what)
        else:
            recorded = next(a["body"] for a in answers if a["kind"] == "http.json")
            check.equal([f for f in missing_fields(recorded, json.loads(text)) if ".output[0]" not in f], [], f"{what}: fields")


async def replay_socket():
    conversations, current = [], None
    for line in record("sdk_responses_websocket.jsonl"):
        if line["kind"] == "ws.upgrade":
            current = []
            conversations.append(current)
        elif line["kind"] == "ws.responses" and current is not None:
            current.append(line)
    for conversation in conversations:
        sent = [line["data"] for line in conversation if line["dir"] == "in"]
        recorded = [line["data"] for line in conversation if line["dir"] == "out" and "type" in line["data"]]
        if not sent or any(event.get("input") == "long" for event in sent):
            continue
        ids = {}
        async with websockets.connect(f"ws://{server.host}:{server.port}/v1/responses") as socket:
            ours = []
            for number, event in enumerate(sent):
                event = {**event, "model": model, "max_output_tokens": 24}
                if event.get("previous_response_id") in ids:
                    event["previous_response_id"] = ids[event["previous_response_id"]]
                await socket.send(json.dumps(event))
                turn = []
                while not turn or turn[-1]["type"] not in ("response.completed", "response.incomplete", "response.failed", "error"):
                    turn.append(json.loads(await asyncio.wait_for(socket.recv(), 60)))
                theirs = [e["response"]["id"] for e in recorded if e["type"] == "response.created"]
                if turn[0]["type"] == "response.created" and number < len(theirs):
                    ids[theirs[number]] = turn[0]["response"]["id"]
                ours.append(turn)
            what = f"socket ({', '.join(key for key in sent[0] if key not in ('type', 'model', 'input'))})"
            if recorded[0]["type"] == "error":
                check.equal(missing_fields(recorded[0], ours[0][0]), [], f"{what}: the error's fields")
                check.equal(ours[0][0]["error"]["code"], recorded[0]["error"]["code"], f"{what}: the error's code")
            else:
                end = next(i for i, e in enumerate(recorded) if e["type"] == "response.completed") + 1
                for turn in ours:
                    compare_events(recorded[:end], turn, what)


with server:
    replay_chat()
    replay_responses()
    asyncio.run(replay_socket())
check.done()
