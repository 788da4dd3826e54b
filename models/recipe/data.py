#!/usr/bin/python3
"""Packs generated dialogues into training rows: stage{0,...,4}.npz with ids (uint16), weight class (uint8) and the start of each
token's document within the row (int16), so that attention stays inside documents.

    data.py [--share S] [STAGE ...]    S: the share of the usual number of tokens (1.0)
"""

import argparse
import random
import time
from multiprocessing import Pool

import numpy as np

import chat
import gen
import tok
from work import work_file

SEQ = {0: 128, 1: 256, 2: 512, 3: 512, 4: 1024}
TOKENS = {0: 3_000_000, 1: 11_000_000, 2: 8_000_000, 3: 16_000_000, 4: 8_000_000}
CLS_CONTEXT, CLS_ASSIST, CLS_MASK, CLS_VALUE = 0, 1, 2, 3


def doc(T, d, rng):
    ids, cls = [], []
    for s, k in gen.render(d, rng):
        i, f = T.encode_marked(s)
        ids += i
        cls += [(CLS_VALUE if v else CLS_ASSIST) if k == CLS_ASSIST else k for v in f]
    return ids + [T.eot], cls + [0]


def work(a):
    stage, seed, want = a
    rng = random.Random(seed)
    T = tok.Tok()
    L = SEQ[stage] + 1
    bins, full = [], []
    n = 0
    while n < want:
        ids, cls = doc(T, (gen if stage < 3 else chat).sample(stage, rng), rng)
        if len(ids) > L:
            ids, cls = ids[:L], cls[:L]
        n += len(ids)
        for b in bins:
            if len(b[0]) + len(ids) <= L:
                break
        else:
            b = ([], [], [])
            bins.append(b)
            if len(bins) > 12:
                bins.sort(key=lambda x: -len(x[0]))
                full.append(bins.pop(0))
        b[2].extend([len(b[0])] * len(ids))
        b[0].extend(ids)
        b[1].extend(cls)
    full += bins
    N = len(full)
    I = np.full((N, L), T.eot, np.uint16)
    W = np.full((N, L), CLS_MASK, np.uint8)
    S = np.zeros((N, L), np.int16)
    for j, (i, c, s) in enumerate(full):
        k = len(i)
        I[j, :k] = i
        W[j, :k] = c
        S[j, :k] = s
        S[j, k:] = k
    return I, W, S


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--share", type=float, default=1.0)
    options.add_argument("stages", type=int, nargs="*")
    options = options.parse_args()
    begun = time.time()
    with Pool(2) as pool:
        for stage in options.stages or SEQ:
            want = int(TOKENS[stage] * options.share) // 2
            parts = pool.map(work, [(stage, 1000 * stage + i + 7, want) for i in range(2)])
            I, W, S = (np.concatenate(x) for x in zip(*parts))
            order = np.random.default_rng(stage).permutation(len(I))
            np.savez(work_file(f"stage{stage}.npz"), I=I[order], W=W[order], S=S[order])
            used, assistant, value = (W != CLS_MASK).mean(), (W == CLS_ASSIST).mean(), (W == CLS_VALUE).mean()
            shares = f"used {used:.3f} assistant {assistant:.3f} value {value:.3f}"
            print(f"stage {stage}: {I.shape} {shares} {time.time() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    main()
