#!/usr/bin/python3
"""What prefix reuse does for chats that take turns: Troupe and llama.cpp's llama-server on the same GGUF file, one after the other.

    compare_prefix_reuse.py --troupe build/release/app/troupe --llama-server PATH MODEL.gguf [--rounds 3] [--threads 2] [--json OUT]

8 chats of 10 turns over /v1/chat/completions, streamed, greedy, 16 tokens an answer. Each turn sends the whole conversation; the
assistant's texts are fixed, not what was generated, so that both servers get the same prompts (their token counts are compared).
Measured is the time to the first text of turns 2 to 10, as the client sees it, in two orders:

    in turn   one request at a time: turn 1 of every chat, then turn 2 of every chat, ...
    at once   turn 1 of all chats side by side, then turn 2 of all chats, ...

and the processor time that the server uses until then, which other work on the machine changes least. --quiet 0.1 waits
before each request (each turn of all chats) until others take less than a tenth of the processor, and leaves out of the means what
they disturbed more than that.

Troupe meets llama-server in each of these settings, all with the same threads and the same KV memory in tokens:

    slots     a slot a chat, each with the whole context; prompts cached, parts of 64 tokens and more reused by shifting
    default   as it starts without further flags: fewer slots than chats, idle ones saved to the prompt cache in RAM
    one slot  as default, with a single slot

Each round starts every server anew, in turn. Prints a row an order and setting: the medians over the rounds of the mean time to the
first token and of the whole answer, and Troupe's share of llama-server's. Exit status 1 where Troupe's mean time to the first token
is more than half of that of llama-server with a slot a chat.
"""
import argparse
import random
import statistics
import sys
from concurrent.futures import ThreadPoolExecutor

from side_by_side import Neighbours, Server, compare, free_port, stream_chat, wait_for_quiet, write_report

BAR = 0.5
CHATS, TURNS, ANSWER_TOKENS = 8, 10, 16
USER_WORDS, ASSISTANT_WORDS = 80, 40
CONTEXT = 2048  # of a chat
SYSTEM = "You are the assistant of a small shop. You answer questions about orders, deliveries and repairs, briefly and politely."
WORDS = """order number parcel delivery refund invoice address customer service blue green small large broken screen battery charger
window garden kitchen table chair lamp paper letter Monday Tuesday Friday morning evening yesterday tomorrow week month price discount
please could would should tell where when which because before after again still never always maybe also without about between
the a of to and in for with from on at by it was is are have had will can my your our their this that these""".split()


def text(dice, words):
    """Sentences of 8 to 14 words."""
    out = []
    while words > 0:
        n = min(words, dice.randint(8, 14))
        out.append(" ".join(dice.choices(WORDS, k=n)).capitalize() + ".")
        words -= n
    return " ".join(out)


class Chat:
    def __init__(self, seed):
        self.dice = random.Random(seed)
        self.messages = [{"role": "system", "content": SYSTEM}]

    def next_turn(self):
        if len(self.messages) > 1:
            self.messages.append({"role": "assistant", "content": text(self.dice, ASSISTANT_WORDS)})
        self.messages.append({"role": "user", "content": text(self.dice, USER_WORDS)})
        return {"messages": list(self.messages), "max_tokens": ANSWER_TOKENS, "temperature": 0, "ignore_eos": True}


def turn(server, chat, number):
    first, used, whole, usage = stream_chat(server, chat.next_turn())
    if usage["completion_tokens"] != ANSWER_TOKENS:
        sys.exit(f"an answer has {usage['completion_tokens']} tokens instead of {ANSWER_TOKENS}")
    return {"turn": number, "first_s": first, "used_s": used, "whole_s": whole, "prompt": usage["prompt_tokens"],
            "cached": (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)}


def measured(server, quiet, run):
    """The turns that run() gives, with the share of the processor that others took meanwhile."""
    if quiet < 1:
        wait_for_quiet(server, quiet)
    neighbours = Neighbours(server)
    turns = run()
    share = neighbours.share()
    return [dict(t, others=share) for t in turns]


def in_turn(server, chats, quiet):
    return [t for n in range(1, TURNS + 1) for chat in chats for t in measured(server, quiet, lambda: [turn(server, chat, n)])]


def at_once(server, chats, quiet):
    with ThreadPoolExecutor(len(chats)) as pool:
        return [t for n in range(1, TURNS + 1)
                for t in measured(server, quiet, lambda: list(pool.map(lambda chat: turn(server, chat, n), chats)))]


ORDERS = {"in turn": in_turn, "at once": at_once}


def troupe(args, port):
    return [args.troupe, "serve", "--model", args.model, "--port", str(port), "--set", f"cpu.threads={args.threads}",
            "--set", f"memory.context_tokens={CONTEXT}", "--set", f"memory.kv_mib={args.kv_mib}",
            *[part for s in args.set for part in ("--set", s)]]


def llama(args, port, more):
    return [args.llama_server, "-m", args.model, "--host", "127.0.0.1", "--port", str(port), "-t", str(args.threads), "-tb",
            str(args.threads), *more]


PEERS = {
    "slots": ["-np", str(CHATS), "-c", str(CHATS * CONTEXT), "--no-kv-unified", "--cache-reuse", "64"],
    "default": ["-c", str(CHATS * CONTEXT)],
    "one slot": ["-np", "1", "-c", str(CONTEXT)],
}


def measure(command, port, args, orders, number):
    """{order: its turns}, on a server started for it alone."""
    found = {}
    with Server(command, port) as server:
        stream_chat(server, {"messages": [{"role": "user", "content": "Hello!"}], "max_tokens": 4, "temperature": 0})
        for order in orders:
            found[order] = ORDERS[order](server, [Chat(f"{order} {number} {i}") for i in range(CHATS)], args.quiet)
    return found


def late(turns, key, quiet=1.0):
    """The mean over turns 2 to 10, of those in peace where there are any."""
    turns = [t for t in turns if t["turn"] > 1]
    return statistics.mean(t[key] for t in [t for t in turns if t["others"] < quiet] or turns)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--troupe", required=True)
    parser.add_argument("--llama-server", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--kv-mib", type=int, default=360, help="of Troupe, for as many tokens as the peer has; 360: SmolLM2-135M, f16")
    parser.add_argument("--peer", action="append", choices=PEERS, help="default: all")
    parser.add_argument("--order", action="append", choices=ORDERS, help="default: both")
    parser.add_argument("--set", action="append", default=[], help="further settings of Troupe, section.key=value")
    parser.add_argument("--quiet", type=float, default=1.0, help="the share of the processor that others may take; 1: any")
    parser.add_argument("--json")
    args = parser.parse_args()
    peers, orders = args.peer or list(PEERS), args.order or list(ORDERS)

    rounds = []
    for n in range(args.rounds):
        found = {}
        for side in ("troupe", *peers):
            port = free_port()
            command = troupe(args, port) if side == "troupe" else llama(args, port, PEERS[side])
            found[side] = measure(command, port, args, orders, n)
            for order, turns in found[side].items():
                ours, theirs = (sorted(t["prompt"] for t in found[of][order]) for of in ("troupe", side))
                if ours != theirs:
                    sys.exit(f"the prompts differ in length: {ours[:3]}... and {theirs[:3]}...")
                peaceful = sum(t["others"] < args.quiet for t in turns)
                print(f"round {n + 1}  {side:8} {order}: first token {late(turns, 'first_s', args.quiet) * 1e3:.0f} ms, others took "
                      f"{100 * late(turns, 'others'):.0f}% of the processor, {peaceful} of {len(turns)} turns in peace", flush=True)
        rounds.append(found)

    report, missed = [], False
    print(f"{'order':8} {'llama-server':12} {'measure':12} {'Troupe ms':>10} {'theirs ms':>10} {'ratio':>6} {'cached %':>9} {'theirs':>6}")
    for order in orders:
        measures = {"first token": "first_s", "its processor": "used_s", "whole answer": "whole_s"}
        for peer in peers:
            share = [100 * statistics.mean(late(r[side][order], "cached") / late(r[side][order], "prompt") for r in rounds)
                     for side in ("troupe", peer)]
            for name, key in measures.items():
                ours, theirs = ([1e3 * late(r[side][order], key, args.quiet) for r in rounds] for side in ("troupe", peer))
                row = compare({"order": order, "llama_server": peer, "measure": name, "cached_percent": share}, ours, theirs)
                missed |= peer == "slots" and key == "first_s" and row["ratio"] > BAR
                report.append(row)
                print(f"{order:8} {peer:12} {name:13} {row['troupe']:9.0f} {row['llama_cpp']:10.0f} {row['ratio']:6.2f} "
                      f"{share[0]:9.1f} {share[1]:6.1f}", flush=True)
    write_report(args.json, {"threads": args.threads, "rounds": rounds, "rows": report, "peer_flags": {p: PEERS[p] for p in peers}})
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
