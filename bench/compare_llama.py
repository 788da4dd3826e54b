#!/usr/bin/python3
"""Runs Troupe's bench_decode and llama.cpp's llama-bench in turn on the same GGUF files, so that both meet the same machine.

    compare_llama.py --bench-decode build/bench/bench_decode --llama-bench PATH [--rounds 3] [--threads 2] [--json OUT] MODEL...

Prints a row a model and measure: both medians over the rounds and their ratio. tg128xN rows need --batched-bench
(llama-batched-bench). Exit status 1 where a ratio lies below its bar (prefill 0.7, decode 0.9).
"""
import argparse
import json
import re
import subprocess
import sys

from side_by_side import compare, write_report

BARS = {"pp512": 0.7, "tg128": 0.9}


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return done.stdout


def ours(args, model, names):
    text = run([args.bench_decode, model, str(args.threads), "1", *names])
    return {m[1]: float(m[2]) for m in re.finditer(r"^(\S+)\s+([\d.]+) tokens/s$", text, re.M)}


def theirs(args, model, names):
    rows = json.loads(run([args.llama_bench, "-m", model, "-p", "512", "-n", "128", "-t", str(args.threads), "-r", "1", "-o", "json"]))
    found = {("pp512" if r["n_prompt"] else "tg128"): r["avg_ts"] for r in rows}
    if args.batched_bench and any("x" in n for n in names):
        text = run([args.batched_bench, "-m", model, "-c", "4096", "-npp", "1", "-ntg", "128", "-npl", "4,8", "-t", str(args.threads),
                    "-tb", str(args.threads), "--output-format", "jsonl"])
        for line in text.splitlines():
            if line.startswith("{"):
                row = json.loads(line)
                found[f"tg128x{row['pl']}"] = row["speed_tg"]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--bench-decode", required=True)
    parser.add_argument("--llama-bench", required=True)
    parser.add_argument("--batched-bench")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json")
    args = parser.parse_args()
    names = ["pp512", "tg128"] + (["tg128x4", "tg128x8"] if args.batched_bench else [])

    report, missed = [], False
    print(f"{'model':40} {'measure':8} {'Troupe':>9} {'llama.cpp':>9} {'ratio':>6}")
    for model in args.models:
        measured = {n: ([], []) for n in names}
        for _ in range(args.rounds):
            for side, found in enumerate((ours(args, model, names), theirs(args, model, names))):
                for n in names:
                    measured[n][side].append(found[n])
        for n, (a, b) in measured.items():
            row = compare({"model": model, "measure": n}, a, b)
            missed |= row["ratio"] < BARS.get(n, 0)
            report.append(row)
            print(f"{model.rsplit('/', 1)[-1]:40} {n:8} {row['troupe']:9.2f} {row['llama_cpp']:9.2f} {row['ratio']:6.2f}", flush=True)
    write_report(args.json, {"threads": args.threads, "rounds": args.rounds, "rows": report})
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
