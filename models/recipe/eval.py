#!/usr/bin/python3
"""Held-out evaluation of greedy answers: dialogues with fresh values in the training's own templates, and the hand-written messages
of newcomer.py.

    eval.py [CHECKPOINT [N]]    N cases a cell (100); prints a table, writes eval.json with every failure

Prompts end with "<|im_start|>assistant\\n", half of them with the empty think block that enable_thinking=false gives.
"""

import json
import os
import random
import re
import sys
import time

import torch

import gen
import phrases
import tok
import topics
import trials
from chance import R, set_rng
from model import Ref
from work import work_file

torch.set_num_threads(int(os.environ.get("EVAL_THREADS", "2")))
NOTHINK = "<think>\n\n</think>\n\n"


def prompt(d, think):
    return (
        "".join(f"<|im_start|>{r}\n{t}<|im_end|>\n" for r, t in d).replace("\x01", "").replace("\x02", "")
        + "<|im_start|>assistant\n"
        + (NOTHINK if think else "")
    )


def filler(z, n, avoid, rng):
    """n exchanges that never touch the fact in question: other facts, fixed topics, deflections, other questions."""
    out, other = [], []
    while n > 0:
        r = R.random()
        if r < 0.4:
            f = phrases.Fact(z)
            if f.id in avoid or f.en == avoid_noun(avoid):
                continue
            avoid.add(f.id)
            other.append(f)
            out += [("user", phrases.say([f], z)), ("assistant", phrases.ack([f], z))]
        elif r < 0.5 and other:
            f = other[-1]
            out += [("user", phrases.ask(f, z)), ("assistant", phrases.tell(f, z))]
        elif r < 0.8:
            out += list(zip(("user", "assistant"), topics.topic(z, {})))
        elif r < 0.9:
            out += list(zip(("user", "assistant"), topics.deflect(z)))
        else:
            out += list(zip(("user", "assistant"), gen.echo(z)))
        n -= 1
    return out


def avoid_noun(a):
    return next(iter(a))[1] if len(a) == 1 else None


def case(kind, z, dist, rng):
    """-> (dialogue ending with a user turn, expected value or None, value that must not appear or None)"""
    set_rng(rng)
    if kind in [k for k, _ in trials.KINDS]:
        return trials.case(kind, z, dist)
    f = phrases.Fact(z)
    while f.en in ("age",) and kind == "unknown":
        f = phrases.Fact(z)
    av = {f.id}
    d = []
    if kind == "recall":
        d += [("user", phrases.say([f], z)), ("assistant", phrases.ack([f], z))] + filler(z, dist - 1, av, rng)
        return d + [("user", phrases.ask(f, z))], f.v, None
    if kind == "latest":
        d += [("user", phrases.say([f], z)), ("assistant", phrases.ack([f], z))] + filler(z, rng.randint(0, 2), av, rng)
        u, a = phrases.correct(f, z)
        d += [("user", u), ("assistant", a)] + filler(z, dist - 1, av, rng)
        return d + [("user", phrases.ask(f, z))], f.v, f.old
    if kind == "unknown":
        return filler(z, dist, av, rng) + [("user", phrases.ask(f, z))], None, None
    if kind == "echo":
        u, a = gen.echo(z, 6)
        return d + [("user", u)], a.strip("\x01\x02"), "="
    if kind == "tool":
        t = gen.tool_dialogue(z)
        i = next(i for i, x in enumerate(t) if "<tool_call>" in x[1] and x[0] == "assistant")
        return t[:i], t[i][1].replace("\x01", "").replace("\x02", ""), "="
    if kind == "toolans":
        t = gen.tool_dialogue(z)
        i = next(i for i, x in enumerate(t) if "<tool_response>" in x[1])
        return t[: i + 1], re.findall("\x01(.*?)\x02", t[i + 1][1])[1], None


def good(kind, ans, want, bad, z):
    if bad == "=":
        return ans.strip() == want.strip()
    if kind == "unknown":
        return ("还没有告诉我" in ans or "还不知道" in ans) if z else ("have not told me" in ans or "don't know" in ans)
    b = lambda v, a: any(
        (i == 0 or not (a[i - 1].isdigit() and v[0].isdigit()))
        and (i + len(v) == len(a) or not (a[i + len(v)].isdigit() and v[-1].isdigit()))
        for i in range(len(a))
        if a.startswith(v, i)
    )
    return b(want, ans)


SUITE = [
    ("recall", 1),
    ("recall", 3),
    ("recall", 6),
    ("recall", 10),
    ("recall", 20),
    ("latest", 1),
    ("latest", 3),
    ("unknown", 1),
    ("unknown", 3),
    ("echo", 0),
    ("tool", 0),
    ("toolans", 0),
] + trials.KINDS
NEWCOMER = ["newcomer subject", "newcomer outside", "newcomer copy", "newcomer talk"]


LIMIT = 60  # tokens of an answer


def answers(ref, T, dialogues, limit=LIMIT):
    """-> (answer, whether it ended by itself) of each; half of the prompts have the empty think block."""
    out = []
    for i in range(0, len(dialogues), 25):
        prompts = [T.encode(prompt(d, (i + j) % 2)) for j, d in enumerate(dialogues[i : i + 25])]
        out += [(T.decode(o), len(o) < limit) for o in ref.generate(prompts, limit, {T.end, T.eot})]
    return out


def run(ref, T, n, seed=9090, dump=None):
    res = {}
    for kind, dist in SUITE:
        for z in (False, True):
            rng = random.Random(f"{seed}{kind}{dist}{z}")
            cs = [case(kind, z, dist, rng) for _ in range(n)]
            ok = 0
            for c, (a, _) in zip(cs, answers(ref, T, [c[0] for c in cs], 100 if kind == "rare" else LIMIT)):
                g = good(kind, a, c[1], c[2], z)
                ok += g
                if dump is not None and not g:
                    dump.append({"kind": kind, "dist": dist, "zh": z, "user": c[0][-1][1], "want": c[1], "got": a})
            res[f"{kind}@{dist} {'zh' if z else 'en'}"] = ok / n
    more, failures = trials.newcomers(lambda dialogues: answers(ref, T, dialogues))
    res.update(more)
    if dump is not None:
        dump += failures
    return res


def table(res):
    rows = ["| test | EN | ZH |", "| --- | --- | --- |"]
    for name in [f"{k}@{d}" for k, d in SUITE] + NEWCOMER:
        rows.append(f"| {name} | {res[name + ' en']:.0%} | {res[name + ' zh']:.0%} |")
    return "\n".join(rows)


def main():
    checkpoint = sys.argv[1] if len(sys.argv) > 1 else work_file("checkpoint.pt")
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    begun = time.time()
    failures = []
    results = run(Ref(torch.load(checkpoint)), tok.Tok(), n, dump=failures)
    print(table(results))
    print(f"n = {n} a cell, {time.time() - begun:.0f} s")
    with open(work_file("eval.json"), "w", encoding="utf-8") as out:
        json.dump({"results": results, "n": n, "failures": failures}, out, ensure_ascii=False, indent=0)


if __name__ == "__main__":
    main()
