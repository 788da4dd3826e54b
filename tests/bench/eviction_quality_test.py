#!/usr/bin/env python3
"""A chat whose cache was evicted still answers: bench/eviction_quality's program end to end, with the bundled model and a dozen
talks. The bar that our scores must pass is one that random ones fail.

    eviction_quality_test.py PROGRAM
"""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench"))
import eviction_quality
import eviction_talks
from eviction_quality import FULL, OURS

SEED = "test in small"
NEARLY_ALL = 0.9

samples = list(eviction_talks.samples(eviction_talks.CELLS[::2], 2, SEED))
results = eviction_quality.run(sys.argv[1], eviction_quality.TINY, samples, threads=2, ring=False)
cells = eviction_quality.judged(samples, results)
known = {key: [right for _, right, *_ in cell] for key, cell in cells.items()}
right = {key: sum(cell) for key, cell in known.items()}
asked = len(known[FULL, 1])
failures = []


def check(what, ok):
    print("ok   " if ok else "FAIL ", what)
    if not ok:
        failures.append(what)


print(f"seed {SEED!r}, {asked} questions; right of them:")
for (policy, ratio), count in right.items():
    print(f"  {policy:18} {ratio:<5} {count}")
check("the full cache answers most questions", right[FULL, 1] >= 0.8 * asked)
check("keeping everything answers as the full cache does", all(known[p, 1] == known[FULL, 1] for p, r in known if r == 1))
for ratio in (0.7, 0.5):
    bar = NEARLY_ALL * right[FULL, 1]
    check(f"with {ratio} kept, nearly all of them are still answered", right[OURS, ratio] >= bar)
    check("random scores would not do", right["random", ratio] < bar)
    check("nor would the last tokens", right["sinks and recent", ratio] < bar)
evicted = [(v["kept"], v["keep"] * r["tokens"]) for r in results for v in r["variants"] if v["policy"] != FULL]
check("as many are kept as were to be, in order", all(abs(len(k) - n) <= 0.5 and k == sorted(set(k)) for k, n in evicted))
sys.exit(1 if failures else 0)
