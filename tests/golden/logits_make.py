#!/usr/bin/python3
"""Writes tests/golden/logits.json: expected logits of random 2-layer models, from an implementation that shares no code with Troupe.

For each of the three architectures and every weight type, the weights are built from seeded raw block bytes (the formula of
tests/support/random_model.hpp, here in numpy), expanded by the block layout table of the GGUF format, and run through a float64
forward pass. Rope scalings, ties, pairings and head sizes are dealt out over the cases.

    logits_make.py [--check-gguf]    with --check-gguf, every expanded tensor is also compared with PyPI's `gguf` package
"""
import json
import math
import os
import sys

import numpy as np

ARCHITECTURES = ["qwen3", "qwen2", "llama"]
TYPES = ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K"]
BLOCKS = {"F32": (1, 4), "F16": (1, 2), "BF16": (1, 2), "Q8_0": (32, 34), "Q4_0": (32, 18), "Q4_1": (32, 20), "Q5_0": (32, 22),
          "Q5_1": (32, 24), "Q4_K": (256, 144), "Q5_K": (256, 176), "Q6_K": (256, 210)}  # weights, bytes
PROMPT = 24
ROWS = [(1, 32), (12, 32), (24, 320)]  # tokens fed, logits written
EPSILON = 1e-6
CHECK_GGUF = "--check-gguf" in sys.argv

# ---- the formula -------------------------------------------------------------------------------------------------------------
U = np.uint64


def mix64(x):
    """SplitMix64's step and finaliser on uint64 arrays."""
    with np.errstate(over="ignore"):
        x = np.asarray(x, U) + U(0x9E3779B97F4A7C15)
        x = (x ^ (x >> U(30))) * U(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> U(27))) * U(0x94D049BB133111EB)
        return x ^ (x >> U(31))


def words(key, numbers):
    with np.errstate(over="ignore"):
        return mix64(U(key) + np.asarray(numbers, U))


def tensor_key(seed, number):
    return int(mix64(seed * 4096 + number))


def half(sign, exponent, mantissa):
    return ((np.asarray(sign, U) << U(15)) | (np.asarray(exponent, U) << U(10)) | mantissa).astype("<u2")


def raw_matrix(kind, key, rows, columns):
    """The tensor's bytes as uint8 [rows * blocks a row, bytes a block]."""
    per_block, size = BLOCKS[kind]
    count = rows * columns // per_block
    if per_block == 1:
        w = words(key, np.arange(count))
        sign, exponent = w >> U(63), U(120) + ((w >> U(61)) & U(3))
        if kind == "F32":
            bits = ((sign << U(31)) | (exponent << U(23)) | (w & U(0x7FFFFF))).astype("<u4")
        elif kind == "F16":
            bits = half(sign, exponent - U(112), w & U(0x3FF))
        else:
            bits = ((sign << U(15)) | (exponent << U(7)) | (w & U(0x7F))).astype("<u2")
        return bits.view(np.uint8).reshape(count, size)
    per = -(-size // 8)
    numbers = np.arange(count, dtype=U)[:, None] * U(64) + U(1) + np.arange(per, dtype=U)[None]
    raw = words(key, numbers).astype("<u8").view(np.uint8).reshape(count, per * 8)[:, :size].copy()
    w = words(key, np.arange(count, dtype=U) * U(64))
    first, second, sign, zero = w & U(0x3FF), (w >> U(10)) & U(0x3FF), w >> U(63), np.zeros(count, U)

    def put(at, value):
        raw[:, at:at + 2] = value.view(np.uint8).reshape(count, 2)

    if kind == "Q8_0":
        put(0, half(sign, 4, first))
    elif kind == "Q4_0":
        put(0, half(sign, 8, first))
    elif kind == "Q5_0":
        put(0, half(sign, 7, first))
    elif kind in ("Q4_1", "Q5_1"):
        put(0, half(sign, 8 if kind == "Q4_1" else 7, first))
        put(2, half(sign ^ U(1), 11, second))
    elif kind in ("Q4_K", "Q5_K"):
        put(0, half(zero, 3 if kind == "Q4_K" else 2, first))
        put(2, half(zero, 6, second))
    else:
        put(208, half(sign, (w >> U(62)) & U(1), first))
    return raw


def vector(key, count, low):
    return low + (words(key, np.arange(count)) >> U(41)).astype(np.float64) / 2.0**23


# ---- block layouts -----------------------------------------------------------------------------------------------------------
def f16(raw, at):
    return raw[:, at:at + 2].copy().view("<f2").astype(np.float64)


def nibbles(qs):
    return np.concatenate([qs & 15, qs >> 4], axis=1).astype(np.float64)


def fifth_bits(raw, at):
    bits = raw[:, at:at + 4].copy().view("<u4")
    return ((bits >> np.arange(32, dtype=np.uint32)[None]) & 1).astype(np.float64) * 16


def six_bit_pairs(s):
    """Scales and minima of the 8 sub-blocks of Q4_K and Q5_K, from 12 bytes. [blocks, 8] each"""
    s = s.astype(np.int64)
    scale = np.concatenate([s[:, 0:4] & 63, (s[:, 8:12] & 15) | ((s[:, 0:4] >> 6) << 4)], axis=1)
    minimum = np.concatenate([s[:, 4:8] & 63, (s[:, 8:12] >> 4) | ((s[:, 4:8] >> 6) << 4)], axis=1)
    return scale.astype(np.float64), minimum.astype(np.float64)


def expand(kind, raw):
    """[blocks, bytes] -> float64 [blocks, weights a block]"""
    n = len(raw)
    if kind == "F32":
        return raw.copy().view("<f4").astype(np.float64)
    if kind == "F16":
        return raw.copy().view("<f2").astype(np.float64)
    if kind == "BF16":
        return (raw.copy().view("<u2").astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    if kind == "Q8_0":
        return raw[:, 2:].view(np.int8) * f16(raw, 0)
    if kind == "Q4_0":
        return (nibbles(raw[:, 2:]) - 8) * f16(raw, 0)
    if kind == "Q4_1":
        return nibbles(raw[:, 4:]) * f16(raw, 0) + f16(raw, 2)
    if kind == "Q5_0":
        return (nibbles(raw[:, 6:]) + fifth_bits(raw, 2) - 16) * f16(raw, 0)
    if kind == "Q5_1":
        return (nibbles(raw[:, 8:]) + fifth_bits(raw, 4)) * f16(raw, 0) + f16(raw, 2)
    if kind in ("Q4_K", "Q5_K"):
        scale, minimum = six_bit_pairs(raw[:, 4:16])
        qs = raw[:, 16 if kind == "Q4_K" else 48:].reshape(n, 4, 1, 32)
        q = np.concatenate([qs & 15, qs >> 4], axis=2).reshape(n, 8, 32).astype(np.float64)
        if kind == "Q5_K":
            q += ((raw[:, None, 16:48] >> np.arange(8, dtype=np.uint8)[None, :, None]) & 1) * 16.0
        return (f16(raw, 0)[:, :, None] * scale[:, :, None] * q - f16(raw, 2)[:, :, None] * minimum[:, :, None]).reshape(n, 256)
    out = np.empty((n, 2, 4, 32))  # Q6_K: two halves of 128, each four runs of 32
    for h in range(2):
        low, high = raw[:, 64 * h:64 * h + 64].astype(np.int64), raw[:, 128 + 32 * h:160 + 32 * h].astype(np.int64)
        scale = raw[:, 192 + 8 * h:200 + 8 * h].view(np.int8).astype(np.float64)
        for run in range(4):
            nibble = low[:, 32 * (run % 2):32 * (run % 2) + 32] >> (4 if run >= 2 else 0) & 15
            q = (nibble | ((high >> (2 * run)) & 3) << 4) - 32
            out[:, h, run] = q * np.repeat(scale[:, 2 * run:2 * run + 2], 16, axis=1)
    return out.reshape(n, 256) * f16(raw, 208)


def matrix(kind, key, rows, columns):
    raw = raw_matrix(kind, key, rows, columns)
    values = expand(kind, raw).reshape(rows, columns)
    if CHECK_GGUF:
        import gguf
        theirs = gguf.dequantize(raw.reshape(rows, -1), gguf.GGMLQuantizationType[kind])
        assert theirs.shape == values.shape and np.abs(theirs - values).max() <= 1e-6 * np.abs(values).max(), kind
    return values


# ---- the model ---------------------------------------------------------------------------------------------------------------
def frequencies(rope, d):
    base, f = rope["base"], rope["base"] ** (-np.arange(0, d, 2) / d)
    factor, original = rope.get("factor", 1.0), rope.get("original_context", 0)
    if "divisors" in rope:
        f = f / np.array(rope["divisors"])
    if rope["scaling"] == "linear":
        return f / factor, 1.0
    if rope["scaling"] == "yarn":
        dim = lambda turns: d * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(base))
        low, high = max(math.floor(dim(32)), 0), min(math.ceil(dim(1)), d - 1)
        keep = 1 - np.clip((np.arange(d // 2) - low) / (high - low), 0, 1)
        return f / factor * (1 - keep) + f * keep, rope.get("attention_factor") or 0.1 * math.log(factor) + 1
    if rope["scaling"] == "llama3":
        low, high = rope["low_frequency_factor"], rope["high_frequency_factor"]
        wavelength = 2 * math.pi / f
        blend = (original / wavelength - low) / (high - low)
        middle = (1 - blend) * f / factor + blend * f
        return np.where(wavelength > original / low, f / factor, np.where(wavelength < original / high, f, middle)), 1.0
    return f, 1.0


def norm(x, weight):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + EPSILON) * weight


def forward(case):
    """float64 logits [PROMPT, vocabulary]"""
    c, seed, kind = case, case["seed"], case["type"]
    hidden, heads, kv, d, vocabulary = c["hidden"], c["heads"], c["kv_heads"], c["head_dim"], c["vocabulary"]
    mat = lambda number, rows, columns: matrix(kind, tensor_key(seed, number), rows, columns)
    vec = lambda number, count, low=0.5: vector(tensor_key(seed, number), count, low)
    f, magnitude = frequencies(c["rope"], d)
    angle = np.arange(PROMPT)[:, None] * f[None]
    cosine, sine = np.cos(angle)[:, None] * magnitude, np.sin(angle)[:, None] * magnitude

    def turn(x):  # [T, heads, d]
        if c["rope"]["adjacent_pairs"]:
            a, b = x[..., 0::2], x[..., 1::2]
            return np.stack([a * cosine - b * sine, a * sine + b * cosine], -1).reshape(x.shape)
        a, b = x[..., :d // 2], x[..., d // 2:]
        return np.concatenate([a * cosine - b * sine, a * sine + b * cosine], -1)

    embedding = mat(0, vocabulary, hidden)
    x = embedding[np.array(c["tokens"])]
    future = np.triu(np.full((PROMPT, PROMPT), -np.inf), 1)
    for layer in range(c["layers"]):
        n = 3 + 16 * layer
        y = norm(x, vec(n, hidden))
        q, k, v = y @ mat(n + 1, heads * d, hidden).T, y @ mat(n + 2, kv * d, hidden).T, y @ mat(n + 3, kv * d, hidden).T
        if c["arch"] == "qwen2":
            q, k, v = q + vec(n + 4, heads * d, -0.5), k + vec(n + 5, kv * d, -0.5), v + vec(n + 6, kv * d, -0.5)
        q, k, v = (z.reshape(PROMPT, -1, d) for z in (q, k, v))
        if c["arch"] == "qwen3":
            q, k = norm(q, vec(n + 7, d)), norm(k, vec(n + 8, d))
        q, k = turn(q), turn(k)
        k, v = (np.repeat(z, heads // kv, axis=1) for z in (k, v))
        scores = np.einsum("thd,shd->hts", q, k) / math.sqrt(d) + future
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = np.einsum("hts,shd->thd", scores / scores.sum(-1, keepdims=True), v).reshape(PROMPT, heads * d)
        x = x + mixed @ mat(n + 9, hidden, heads * d).T
        y = norm(x, vec(n + 10, hidden))
        gate, up = y @ mat(n + 11, c["ffn"], hidden).T, y @ mat(n + 12, c["ffn"], hidden).T
        x = x + (gate / (1 + np.exp(-gate)) * up) @ mat(n + 13, hidden, c["ffn"]).T
    output = embedding if c["tied_output"] else mat(2, vocabulary, hidden)
    return norm(x, vec(1, hidden)) @ output.T


def rope_of(arch, t, head_dim):
    rope = {"base": 10000.0, "adjacent_pairs": arch == "llama" and t % 2 == 0}
    rope["scaling"] = ["none", "linear", "yarn", "llama3"][(ARCHITECTURES.index(arch) + t) % 4]
    if rope["scaling"] == "linear":
        rope["factor"] = 2.5
    if rope["scaling"] == "yarn":
        rope.update(factor=4.0, original_context=256)
        if arch == "qwen2":
            rope["attention_factor"] = 1.25
    if rope["scaling"] == "llama3":
        rope.update(factor=8.0, original_context=256, low_frequency_factor=1.0, high_frequency_factor=4.0)
    if rope["scaling"] == "none" and arch == "llama" and t > 2:
        rope["divisors"] = [1 + i / 4 for i in range(head_dim // 2)]
    return rope


def main():
    sizes = {"qwen3": dict(heads=4, kv_heads=2, head_dim=128), "qwen2": dict(heads=4, kv_heads=1, head_dim=64),
             "llama": dict(heads=8, kv_heads=2, head_dim=32)}
    cases = []
    for a, arch in enumerate(ARCHITECTURES):
        for t, kind in enumerate(TYPES):
            seed = 100 * (a + 1) + t
            case = {"arch": arch, "type": kind, "seed": seed, "layers": 2, "hidden": 256, **sizes[arch], "ffn": 512, "vocabulary": 320,
                    "tied_output": t % 2 == 1, "rope": rope_of(arch, t, sizes[arch]["head_dim"]),
                    "tokens": [int(w % U(320)) for w in words(tensor_key(seed, 4095), np.arange(PROMPT))]}
            logits = forward(case)
            case["rows"] = [{"after": n, "logits": [float(f"{x:.7g}") for x in logits[n - 1][:count]]} for n, count in ROWS]
            cases.append(case)
            print(arch, kind, "spread of the last row:", round(float(logits[-1].std()), 3), file=sys.stderr)
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "logits.json")
    with open(path, "w") as out:
        out.write('{"note": "written by logits_make.py; float64 logits after `after` tokens, the first so many of the vocabulary",\n"cases": [\n')
        out.write(",\n".join(json.dumps(c) for c in cases) + "\n]}\n")


if __name__ == "__main__":
    main()
