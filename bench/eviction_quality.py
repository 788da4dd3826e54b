#!/usr/bin/env python3
"""What eviction costs in quality: part of a computed talk's tokens is evicted, by each policy, then it is asked about.

    bench/eviction_quality.py --binary build/release/bench/eviction_quality [--talks 40] [--seed test] [--json FILE]
    bench/eviction_quality.py --binary ... --model SmolLM2-135M-Instruct.Q4_1.gguf --spans [--talks 60]

The first asks the bundled model and judges its answers: accuracy with 95% intervals (Wilson), and ours less each other policy,
question by question, with intervals from resampling talks. --spans is for models that were not trained on these talks: it looks
at what is kept, and at the logits after a question and along its right answer beside those behind the full cache. --talks is for
each kind of talk (bench/eviction_talks.py), --threads for the program. Interrupted, it judges what there is. Needs Python alone.
"""
import argparse
import collections
import json
import math
import os
import random
import subprocess
import sys
import tempfile

import eviction_talks

TINY = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "models", "tiny")
SYSTEM = "You are a helpful assistant. You remember what the user tells you."
OURS, FULL, RING = "ours", "full cache", "ring window"
RATIOS = (1, 0.7, 0.5, 0.25)


def run(binary, model, samples, answer_tokens=40, threads=0, ring=True):
    """-> for each sample what the program says of it (bench/eviction_quality.cpp); fewer when interrupted"""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        for sample in samples:
            wanted = ("talk", "questions") if answer_tokens else ("talk", "questions", "expected")
            file.write(json.dumps({key: sample[key] for key in wanted}) + "\n")
        file.flush()
        with subprocess.Popen([binary, model, file.name, str(answer_tokens), str(threads), str(int(ring))],
                              stdout=subprocess.PIPE, text=True) as program:
            out = []
            try:
                for line in program.stdout:
                    out.append(json.loads(line))
                    if sys.stderr.isatty():
                        print(f"\r{len(out)} of {len(samples)} talks", end="", file=sys.stderr, flush=True)
            except KeyboardInterrupt:
                program.kill()
                return out
    if program.returncode != 0 or len(out) != len(samples):
        sys.exit(f"the program ended with {program.returncode} after {len(out)} of {len(samples)} talks")
    return out


def judged(samples, results):
    """-> {(policy, ratio): [(talk, right, kind, age, chinese)]}, a question each"""
    out = collections.defaultdict(list)
    for talk, (sample, result) in enumerate(zip(samples, results)):
        for variant in result["variants"]:
            for wanted, answer in zip(sample["wanted"], variant["answers"]):
                right = eviction_talks.is_right(wanted, answer, sample["chinese"])
                out[variant["policy"], variant["keep"]].append((talk, right, sample["kind"], sample["age"], sample["chinese"]))
    return with_all_kept(out)


def with_all_kept(cells):
    """Policies that keep everything keep the same: the program moves all tokens once, for ours. A ring doesn't move them."""
    for policy in {policy for policy, _ in cells} - {FULL, OURS}:
        cells[policy, 1] = cells[FULL if policy == RING else OURS, 1]
    return cells


def spans(samples, results):
    """-> {(policy, ratio): [(talk, share of the wanted value's tokens kept, the program's figures)]}, a question each"""
    out = collections.defaultdict(list)
    for talk, (sample, result) in enumerate(zip(samples, results)):
        text = sample["talk"].encode()
        for variant in result["variants"]:
            kept = set(variant["kept"]) if variant["kept"] else set(range(result["tokens"]))
            figures = [variant[key] for key in ("question_errors", "answer_errors", "likelihoods")]
            for wanted, *rest in zip(sample["wanted"], *figures):
                gold = tokens_of(text, wanted.encode(), result["bytes"])
                out[variant["policy"], variant["keep"]].append((talk, len(gold & kept) / len(gold), *rest))
    return with_all_kept(out)


def tokens_of(text, value, sizes):
    """The tokens that have a byte of `value`, wherever it stands in `text`."""
    places, at = [], text.find(value)
    while at >= 0:
        places.append((at, at + len(value)))
        at = text.find(value, at + 1)
    out, begin = set(), 0
    for token, size in enumerate(sizes):
        if any(begin < last and begin + size > first for first, last in places):
            out.add(token)
        begin += size
    assert begin == len(text) and out, "the tokens are not those of the talk"
    return out


def wilson(right, count):
    """95% interval of a share."""
    z, p = 1.96, right / count
    middle, half = p + z * z / (2 * count), z * math.sqrt(p * (1 - p) / count + z * z / (4 * count * count))
    return (middle - half) / (1 + z * z / count), (middle + half) / (1 + z * z / count)


def resampled(pairs, of=lambda a, n: a / n, rounds=2000):
    """95% interval of of(sum of first, sum of second), talks drawn again. pairs: (talk, first, second)"""
    talks = collections.defaultdict(lambda: [0, 0])
    for talk, first, second in pairs:
        talks[talk][0] += first
        talks[talk][1] += second
    talks, dice, out = list(talks.values()), random.Random(1), []
    for _ in range(rounds):
        drawn = dice.choices(talks, k=len(talks))
        out.append(of(sum(t[0] for t in drawn), sum(t[1] for t in drawn)))
    out.sort()
    return out[rounds // 40], out[-rounds // 40 - 1]


def percent(value, interval, digits=1, sign=""):
    low, high = (f"{100 * x:{sign}.0f}" for x in interval)
    return f"{100 * value:{sign}.{digits}f} [{low}, {high}]"


def table(title, columns, rows):
    print(f"\n| {title} | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for name, cells in rows:
        print(f"| {name} | " + " | ".join(cells) + " |")


def policies_of(cells):
    """Ours first, then by what they answer in the middle."""
    names = {policy for policy, _ in cells} - {FULL, OURS}
    return [OURS] + sorted(names, key=lambda p: -sum(x[1] for x in cells[p, 0.5]))


def print_answers(cells):
    known = {key: [x for x in cell if x[2] != "unknown"] for key, cell in cells.items()}
    share = lambda cell: sum(x[1] for x in cell) / len(cell)
    measured = lambda cell: percent(share(cell), wilson(sum(x[1] for x in cell), len(cell)))
    full = known[FULL, 1]
    print(f"full cache: {measured(full)} of {len(full)} questions")
    names = policies_of(known)
    table("accuracy, %", [f"keep {r}" for r in RATIOS],
          [(p, [measured(known[p, r]) for r in RATIOS]) for p in names])
    less = RATIOS[1:]

    def of_full(cell):
        pairs = [(x[0], x[1], y[1]) for x, y in zip(cell, full)]
        return percent(sum(p[1] for p in pairs) / sum(p[2] for p in pairs), resampled(pairs))

    table("share of the full cache's accuracy, %", [f"keep {r}" for r in less],
          [(p, [of_full(known[p, r]) for r in less]) for p in names])

    def ahead(policy, ratio):
        pairs = [(x[0], x[1] - y[1], 1) for x, y in zip(known[OURS, ratio], known[policy, ratio])]
        return percent(sum(p[1] for p in pairs) / len(pairs), resampled(pairs), sign="+")

    table("ours less the other's, points, paired", [f"keep {r}" for r in less],
          [(p, [ahead(p, r) for r in less]) for p in names[1:]])
    kinds = list(dict.fromkeys((x[2], x[3]) for x in cells[FULL, 1]))
    of_kind = lambda key, kind: f"{100 * share([x for x in cells[key] if x[2:4] == kind]):.0f}"
    table("accuracy by kind and age, %", [f"{k}, {a}" if a else k for k, a in kinds],
          [(f"{p}, {r}", [of_kind((p, r), kind) for kind in kinds])
           for p, r in [(FULL, 1)] + [(p, r) for p in (OURS, "sinks and recent") for r in less]])


def print_spans(cells):
    names = policies_of(cells)

    def mean(key, field, less=None):
        pairs = [(x[0], x[field] - (y[field] if less else 0), 1) for x, y in zip(cells[key], cells[less or key])]
        return sum(p[1] for p in pairs) / len(pairs), resampled(pairs)

    for title, field in (("share of the value's tokens kept, %", 1), ("error of the logits after a question, %", 2),
                         ("error of the logits that choose the right answer, %", 3)):
        table(title, [f"keep {r}" for r in RATIOS], [(p, [percent(*mean((p, r), field)) for r in RATIOS]) for p in names])

    def likelier(policy, ratio):
        value, (low, high) = mean((policy, ratio), 4, (FULL, 1))
        return f"{value:+.2f} [{low:+.2f}, {high:+.2f}]"

    table("log-likelihood a token of the right answer, less the full cache's", [f"keep {r}" for r in RATIOS],
          [(p, [likelier(p, r) for r in RATIOS]) for p in names])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--model", default=TINY)
    parser.add_argument("--spans", action="store_true")
    parser.add_argument("--talks", type=int, default=40)
    parser.add_argument("--seed", default="test")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--json", help="writes each question's outcome there")
    options = parser.parse_args()
    if options.spans:
        samples = list(eviction_talks.samples([("several", 0)], options.talks, options.seed, languages=(False,), system=SYSTEM))
        results = run(options.binary, options.model, samples, answer_tokens=0, threads=options.threads, ring=False)
        cells = spans(samples, results)
    else:
        samples = list(eviction_talks.samples(eviction_talks.CELLS, options.talks, options.seed))
        results = run(options.binary, options.model, samples, threads=options.threads)
        cells = judged(samples, results)
    lengths, asked = [r["tokens"] for r in results], sum(len(s["wanted"]) for s, _ in zip(samples, results))
    print(f"{len(results)} talks of {min(lengths)} to {max(lengths)} tokens, {asked} questions")
    (print_spans if options.spans else print_answers)(cells)
    if options.json:
        with open(options.json, "w") as file:
            json.dump([{"policy": p, "keep": r, "questions": c} for (p, r), c in cells.items()], file, ensure_ascii=False)


if __name__ == "__main__":
    main()
