#!/usr/bin/python3
"""Writes tests/golden/sampler.json: for each setting of the sampler, the tokens it must choose at positions 0 to 47, the tokens
that may be chosen at all (where few), and the log-probabilities, from numpy in float64 with a full sort.

Logits come from a formula that both sides compute exactly: word(i) = mix64(mix64(seed) + i), its upper 24 bits / 2^20 - 8.
"""
import json
import os

import numpy as np

MASK = (1 << 64) - 1
POSITIONS = 48


def mix64(x):
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def uniform_at(key, counter):
    """Uniform in [0, 1), keyed; as base/random.hpp promises."""
    return (mix64(mix64(key) ^ mix64((counter * 0xD6E8FEB86659FD93 + 0x632BE59BD9B4E019) & MASK)) >> 11) * 2.0**-53


def logits_of(seed, count, levels):
    key = mix64(seed)
    x = np.array([(mix64((key + i) & MASK) >> 40) / 2**20 - 8 for i in range(count)])
    return np.floor(x) if levels else x


def distribution(case):
    """(log-probabilities before temperature, probabilities at the end), by token."""
    p = case["params"]
    x = logits_of(case["seed"], case["vocabulary"], case["levels"])[:case["usable"]]
    for token, bias in p.get("logit_bias", []):
        x[token] += bias
    for token, in_prompt, in_answer in case.get("counts", []):
        r = p.get("repetition_penalty", 1.0)
        x[token] = x[token] / r if x[token] > 0 else x[token] * r
        x[token] -= p.get("presence_penalty", 0.0) * (in_answer > 0) + p.get("frequency_penalty", 0.0) * in_answer
    logprobs = x - x.max() - np.log(np.exp(x - x.max()).sum())
    if p["temperature"] == 0:
        return logprobs, np.eye(1, len(x), int(x.argmax()))[0]
    weight = np.exp((x - x.max()) / p["temperature"])
    order = np.argsort(-x, kind="stable")  # best first, lower id first among equals
    keep = np.ones(len(x), bool)
    if p.get("top_k", 0) > 0:
        keep[order[p["top_k"]:]] = False
    keep &= weight >= p.get("min_p", 0.0)
    if p.get("top_p", 1.0) < 1:
        kept = [t for t in order if keep[t]]
        reached = np.cumsum(weight[kept]) / weight[kept].sum()
        keep[kept[int(np.searchsorted(reached, p["top_p"])) + 1:]] = False
    weight[~keep] = 0
    return logprobs, weight / weight.sum()


def finish(case):
    logprobs, probabilities = distribution(case)
    reached = np.cumsum(probabilities)
    seed = case["params"].get("seed", 0)
    case["tokens"] = [int(np.searchsorted(reached, uniform_at(seed, i) * reached[-1], side="right")) for i in range(POSITIONS)]
    kept = np.nonzero(probabilities > 0)[0]
    if len(kept) <= 40:
        case["kept"] = [int(t) for t in kept]
    case["logprob"] = float(f"{logprobs[case['tokens'][0]]:.7g}")
    case["top"] = [[int(t), float(f"{logprobs[t]:.7g}")] for t in np.argsort(-logprobs, kind="stable")[:5]]
    return case


def main():
    counts = [[0, 3, 0], [2, 1, 2], [5, 0, 1], [9, 0, 4], [11, 2, 0], [17, 1, 1], [30, 0, 7]]
    settings = {
        "greedy": dict(temperature=0),
        "temperature": dict(temperature=0.7),
        "hot": dict(temperature=3.0),
        "top-k": dict(temperature=1.5, top_k=5),
        "top-k of one": dict(temperature=1.5, top_k=1),
        "min-p": dict(temperature=1.5, min_p=0.1),
        "top-p": dict(temperature=1.5, top_p=0.8),
        "all three": dict(temperature=2.0, top_k=12, min_p=0.05, top_p=0.7),
        "repetition": dict(temperature=1.0, repetition_penalty=1.5),
        "presence": dict(temperature=1.0, presence_penalty=1.25),
        "frequency": dict(temperature=1.0, frequency_penalty=0.5),
        "all penalties": dict(temperature=0.8, repetition_penalty=1.2, presence_penalty=-0.5, frequency_penalty=0.75, top_p=0.95),
        "bias forces": dict(temperature=1.0, logit_bias=[[4, 100.0]]),
        "bias forbids": dict(temperature=1.0, logit_bias=[[0, -100.0], [1, -100.0], [2, -100.0]], top_k=10),
        "bias before penalties": dict(temperature=1.0, repetition_penalty=2.0, logit_bias=[[t, 9.0] for t in (0, 2, 5, 9)]),
    }
    cases = []
    for i, (name, params) in enumerate(settings.items()):
        for vocabulary, usable, levels in ((40, 37, False), (40, 40, True), (1000, 969, False)):
            case = {"name": f"{name}, {usable} of {vocabulary}" + (", ties" if levels else ""), "seed": 10 + i, "vocabulary": vocabulary,
                    "usable": usable, "levels": levels, "params": dict(params, seed=1000 + i)}
            if "penalt" in name or name in ("repetition", "presence", "frequency"):
                case["counts"] = counts
            cases.append(finish(case))
    for name, params in (("Qwen3 thinking", dict(temperature=0.6, top_k=20, top_p=0.95)),
                         ("Qwen3 plain", dict(temperature=0.7, top_k=20, top_p=0.8)), ("top-p alone", dict(temperature=0.25, top_p=0.9))):
        cases.append(finish({"name": name + ", 151669 of 151936", "seed": 99, "vocabulary": 151936, "usable": 151669, "levels": False,
                             "params": dict(params, seed=7)}))
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sampler.json")
    with open(path, "w") as out:
        out.write('{"note": "written by sampler_make.py", "cases": [\n' + ",\n".join(json.dumps(c) for c in cases) + "\n]}\n")


if __name__ == "__main__":
    main()
