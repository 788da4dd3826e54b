#!/usr/bin/python3
"""Byte-level BPE with the Qwen2 pre-tokenizer: training on generated text, encoding, Hugging Face tokenizer.json output.

tok.py [DOCUMENTS]    learns the merges from so many generated documents (15000) and writes merges.json
"""

import collections
import heapq
import json
import os
import random
import sys

import regex

import gen
from words import GIV, SUR
from work import SHIPPED, work_file

PAT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
SPECIAL = [
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
]
VOCAB = 3072
NOPAIR = set(SUR + GIV + "是为我您叫的在请要你和选穿买来住今年最应其把改不吗码号名元月日岁")


def b2u():
    bs = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    cs = bs[:]
    n = 0
    for b in range(256):
        if b not in bs:
            bs.append(b)
            cs.append(256 + n)
            n += 1
    return {b: chr(c) for b, c in zip(bs, cs)}


B2U = b2u()
U2B = {u: b for b, u in B2U.items()}


def train(texts, n_vocab):
    """Merges by frequency. Han: single characters, or two that are no connective, name character or punctuation, so that a
    value is tokenised alike wherever it is copied from; ASCII up to 14 bytes."""
    rx = regex.compile(PAT)
    sp = regex.compile("|".join(regex.escape(s) for s in SPECIAL))
    cnt = collections.Counter()
    for t in texts:
        for part in sp.split(t):
            for w in rx.findall(part):
                cnt[w] += 1
    words = [[tuple(bytes([b]) for b in w.encode()), c] for w, c in cnt.items()]
    pairs = collections.Counter()
    where = collections.defaultdict(set)
    for i, (w, c) in enumerate(words):
        for p in zip(w, w[1:]):
            pairs[p] += c
            where[p].add(i)

    def ok(p):
        t = p[0] + p[1]
        n = len(t)
        if t.isascii():
            return n <= 14
        if n == 2:
            return t[0] >= 0xC2 or t[0] < 0xC0 and t[0] >= 0x80 and t[1] >= 0x80 and t[1] < 0xC0
        try:
            u = t.decode()
        except UnicodeDecodeError:
            return False
        if n == 3:
            return len(u) == 1
        return n == 6 and len(u) == 2 and all("\u4e00" <= c <= "\u9fff" and c not in NOPAIR for c in u)

    heap = [(-c, p) for p, c in pairs.items() if ok(p)]
    heapq.heapify(heap)
    merges = []
    seen = {bytes([b]) for b in range(256)}
    while len(merges) < n_vocab - 256 - len(SPECIAL) and heap:
        c, p = heapq.heappop(heap)
        if pairs.get(p, 0) != -c:
            if pairs.get(p, 0) > 0:
                heapq.heappush(heap, (-pairs[p], p))
            continue
        m = p[0] + p[1]
        if m in seen:
            pairs[p] = 0
            continue  # the same string by another path would give a duplicate id
        seen.add(m)
        merges.append(p)
        touched = set()
        for i in list(where[p]):
            w, k = words[i]
            out = []
            j = 0
            while j < len(w):
                if j + 1 < len(w) and w[j] == p[0] and w[j + 1] == p[1]:
                    out.append(m)
                    j += 2
                else:
                    out.append(w[j])
                    j += 1
            if len(out) == len(w):
                continue
            for q in zip(w, w[1:]):
                pairs[q] -= k
            for q in zip(out, out[1:]):
                pairs[q] += k
                where[q].add(i)
                touched.add(q)
            words[i][0] = tuple(out)
        for q in touched:
            if ok(q) and pairs[q] > 0:
                heapq.heappush(heap, (-pairs[q], q))
    return merges


def load_merges():
    """The merges that tok.py learned, or those of the shipped model where it hasn't run."""
    if os.path.exists(work_file("merges.json")):
        return json.load(open(work_file("merges.json")))
    tokenizer = json.load(open(os.path.join(SHIPPED, "tokenizer.json"), encoding="utf-8"))
    return [m.split(" ") if isinstance(m, str) else m for m in tokenizer["model"]["merges"]]


class Tok:
    def __init__(s):
        m = [tuple(bytes(U2B[c] for c in x) for x in p) for p in load_merges()]
        s.merges = m
        s.rank = {p: i for i, p in enumerate(m)}
        toks = [bytes([b]) for b in sorted(range(256), key=lambda b: ord(B2U[b]))] + [a + b for a, b in m]
        s.id = {t: i for i, t in enumerate(toks)}
        assert len(s.id) == len(toks)
        s.sp = {t: len(toks) + i for i, t in enumerate(SPECIAL)}
        s.bytes = toks
        s.n = len(toks) + len(SPECIAL)
        s.rx = regex.compile(PAT)
        s.rs = regex.compile("(" + "|".join(regex.escape(x) for x in SPECIAL) + ")")
        s.cache = {}
        s.eot, s.start, s.end = s.sp["<|endoftext|>"], s.sp["<|im_start|>"], s.sp["<|im_end|>"]

    def word(s, w):
        r = s.cache.get(w)
        if r is None:
            p = [bytes([b]) for b in w.encode()]
            while len(p) > 1:
                k, i = min((s.rank.get((p[i], p[i + 1]), 1 << 30), i) for i in range(len(p) - 1))
                if k == 1 << 30:
                    break
                p[i : i + 2] = [p[i] + p[i + 1]]
            r = s.cache[w] = tuple(s.id[x] for x in p)
            if len(s.cache) > 400000:
                s.cache.clear()
        return r

    def encode(s, text):
        out = []
        for part in s.rs.split(text):
            if part in s.sp:
                out.append(s.sp[part])
            elif part:
                for w in s.rx.findall(part):
                    out.extend(s.word(w))
        return out

    def decode(s, ids):
        inv = {v: k.encode() for k, v in s.sp.items()}
        return b"".join(s.bytes[i] if i < len(s.bytes) else inv[i] for i in ids).decode("utf-8", "replace")

    def encode_marked(s, text):
        """Text with \\x01..\\x02 marks -> ids, flags (1 where the token overlaps a marked value)."""
        if "\x01" not in text:
            i = s.encode(text)
            return i, [0] * len(i)
        clean, spans, off = [], [], 0
        for j, part in enumerate(regex.split("[\x01\x02]", text)):
            n = len(part.encode())
            if j % 2:
                spans.append((off, off + n))
            off += n
            clean.append(part)
        ids = s.encode("".join(clean))
        fl = []
        o = 0
        for i in ids:
            n = len(s.bytes[i]) if i < len(s.bytes) else len(SPECIAL[i - len(s.bytes)])
            fl.append(int(any(a < o + n and o < b for a, b in spans)))
            o += n
        return ids, fl

    def hf_json(s):
        u = lambda b: "".join(B2U[x] for x in b)
        return {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [
                {
                    "id": i,
                    "content": t,
                    "single_word": False,
                    "lstrip": False,
                    "rstrip": False,
                    "normalized": False,
                    "special": t.startswith("<|"),
                }
                for t, i in s.sp.items()
            ],
            "normalizer": {"type": "NFC"},
            "pre_tokenizer": {
                "type": "Sequence",
                "pretokenizers": [
                    {"type": "Split", "pattern": {"Regex": PAT}, "behavior": "Isolated", "invert": False},
                    {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False},
                ],
            },
            "post_processor": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False},
            "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False},
            "model": {
                "type": "BPE",
                "dropout": None,
                "unk_token": None,
                "continuing_subword_prefix": "",
                "end_of_word_suffix": "",
                "fuse_unk": False,
                "byte_fallback": False,
                "ignore_merges": False,
                "vocab": {u(t): i for t, i in s.id.items()},
                "merges": [u(a) + " " + u(b) for a, b in s.merges],
            },
        }


def main():
    documents = int(sys.argv[1]) if len(sys.argv) > 1 else 15000
    rng = random.Random(77)
    texts = []
    for i in range(documents):
        texts.append("".join(t for t, _ in gen.render(gen.sample(i % 3, rng), rng)).replace("\x01", "").replace("\x02", ""))
    m = train(texts, VOCAB)
    with open(work_file("merges.json"), "w") as out:
        json.dump([["".join(B2U[x] for x in a) for a in p] for p in m], out)
    t = Tok()
    print("vocabulary", t.n, "last merges", [(a + b).decode("utf-8", "replace") for a, b in m[-30:]])
    few = texts[:2000]
    n = sum(len(t.encode(x)) for x in few)
    print("tokens a document", n / len(few), "characters a token", sum(map(len, few)) / n)
    for x in texts[:300]:
        assert t.decode(t.encode(x)) == x


if __name__ == "__main__":
    main()
