#!/usr/bin/env python3
"""What a turn of a chat costs when there are more chats than the KV pool holds: without tiers, with a file, and with prefetching.

    bench/tier_turns.py --binary build/release/app/troupe --model SmolLM2-135M-Instruct.Q4_1.gguf [--sessions 8] [--rounds 5]

The chats take turns; each round adds a question to each. The pool holds a quarter of them (--kv-mib). Every server plays the same
chats; the table has the median time to the first token of the rounds after the second, the prompt tokens computed a turn, the hit
rate, and what copies cost, from /metrics. Answers must be the same in all.
"""
import argparse
import json
import statistics
import subprocess
import time
import urllib.request


def start(binary, model, sets):
    command = [binary, "serve", "--model", model, "--port", "0", "--exit-with-parent"]
    for key, value in sets.items():
        command += ["--set", f"{key}={value}"]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    ready = json.loads(server.stdout.readline())
    return server, f"http://127.0.0.1:{ready['port']}"


def metrics(url):
    text = urllib.request.urlopen(url + "/metrics").read().decode()
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if not line.startswith("#")}


def turn(url, messages, tokens):
    body = json.dumps({"messages": messages, "stream": True, "max_tokens": tokens, "temperature": 0,
                       "stream_options": {"include_usage": True}}).encode()
    begin = time.monotonic()
    first, text, usage = None, "", None
    with urllib.request.urlopen(urllib.request.Request(url + "/v1/chat/completions", body)) as answer:
        for line in answer:
            if not line.startswith(b"data: {"):
                continue
            event = json.loads(line[6:])
            usage = event.get("usage") or usage
            for choice in event["choices"]:
                piece = choice["delta"].get("content") or ""
                if piece and first is None:
                    first = time.monotonic() - begin
                text += piece
    return first, text, usage


def play(options, sets):
    server, url = start(options.binary, options.model, sets)
    try:
        words = "the order with the red pot and the blue cup came late and one of the two was broken so I ask for help".split()
        chats = [[{"role": "user", "content": f"I am customer {i * 7919}. " +
                   " ".join(words[(i * 5 + j) % len(words)] for j in range(options.words))}] for i in range(options.sessions)]
        times, computed, texts, before = [], [], [], {}
        for round_number in range(options.rounds):
            if round_number == 2:
                before = metrics(url)
            for i, chat in enumerate(chats):
                first, text, usage = turn(url, chat, options.tokens)
                chat += [{"role": "assistant", "content": text},
                         {"role": "user", "content": f"And what of {round_number * 100 + i}?"}]
                texts.append(text)
                if round_number >= 2:
                    times.append(first)
                    computed.append(usage["prompt_tokens"] - usage["prompt_tokens_details"]["cached_tokens"])
        after = metrics(url)
        return times, computed, texts, {name: after[name] - before[name] for name in after if name in before}
    finally:
        server.stdin.close()
        server.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--sessions", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--words", type=int, default=600)
    parser.add_argument("--tokens", type=int, default=24)
    parser.add_argument("--kv-mib", type=int, default=40)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    base = {"memory.kv_mib": options.kv_mib, "memory.kv_shards": 1}
    ways = {"no tiers": {}, "file, no prefetch": {"memory.disk_tier_mib": 2048, "memory.prefetch_ahead": 0},
            "file, prefetch": {"memory.disk_tier_mib": 2048, "memory.prefetch_ahead": 1}}
    rows = {way: [] for way in ways}
    expected = None
    for _ in range(options.repeat):
        for way, sets in ways.items():
            times, computed, texts, spent = play(options, base | sets)
            expected = expected or texts
            assert texts == expected, f"{way}: the answers differ"
            rows[way].append((statistics.median(times), statistics.median(computed), spent))
    print("| | first token, ms | computed a turn | hit rate | copied MiB | copying s | hidden | beside steps |")
    print("|---|---|---|---|---|---|---|---|")
    for way, runs in rows.items():
        runs.sort(key=lambda run: run[0])
        first, computed, spent = runs[len(runs) // 2]
        copying = spent["troupe_tier_copy_seconds_total"]
        lookups = spent["troupe_tier_lookups_total"]
        share = lambda value, whole: f"{value / whole:.2f}" if whole else "-"
        moved = sum(value for name, value in spent.items() if name.startswith("troupe_tier_bytes_moved_total"))
        print(f"| {way} | {1000 * first:.0f} ({1000 * runs[0][0]:.0f} to {1000 * runs[-1][0]:.0f}) | {computed:.0f} | "
              f"{share(lookups - spent['troupe_tier_misses_total'], lookups)} | {moved / 2**20:.0f} | {copying:.2f} | "
              f"{share(spent['troupe_tier_copy_hidden_seconds_total'], copying)} | "
              f"{share(spent['troupe_tier_copy_beside_steps_seconds_total'], copying)} |")


if __name__ == "__main__":
    main()
