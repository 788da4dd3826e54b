#!/usr/bin/python3
"""Trains the model on packed data: AdamW, bf16 matrix products, a schedule and a curriculum by tokens seen.

    train.py MILLIONS [CHECKPOINT [RESUME]]

MILLIONS of tokens: 128-token copies to 10%, 256-token dialogues to 55%, 512-token dialogues to the end. RESUME: a checkpoint to go
on from, with fresh optimizer state and chat.py's conversations: rows of 512 tokens to 65%, of 1,024 to the end. The checkpoint is
written every two minutes; progress goes to train.log.
"""

import json
import math
import os
import sys
import time

import numpy as np
import torch

from model import BF, F_, K, L_, P, Xent, forward_train, init_masters, linear, rope
from work import work_file

PLAN = [(0.10, 0, 128, 32), (0.55, 1, 256, 16), (1.01, 2, 512, 8)]  # until this share of the tokens: stage, length, batch
GO_ON = [(0.65, 3, 512, 8), (1.01, 4, 1024, 4)]
DECAY, BETA1, BETA2 = 0.1, 0.9, 0.98
W_ASSISTANT, W_VALUE, W_CONTEXT, P_CONTEXT = 1.0, 2.0, 0.3, 0.12  # context tokens: drawn at P_CONTEXT, weight W_CONTEXT


class Rows:
    """A stage's packed rows in a random order, again and again."""

    def __init__(self, stage, rng):
        z = np.load(work_file(f"stage{stage}.npz"))
        self.ids, self.classes, self.starts, self.rng = z["I"], z["W"], z["S"], rng
        self.order, self.at, self.epoch = rng.permutation(len(self.ids)), 0, 0

    def next(self, count):
        if self.at + count > len(self.order):
            self.order, self.at, self.epoch = self.rng.permutation(len(self.ids)), 0, self.epoch + 1
        rows = self.order[self.at : self.at + count]
        self.at += count
        return self.ids[rows], self.classes[rows], self.starts[rows]


def save(masters, path):
    torch.save({k: v.detach().clone() for k, v in masters.items()}, path + ".tmp")
    os.replace(path + ".tmp", path)


def token_weights(classes, rng):
    """Indices of the tokens that count, and their weights; filled up to a multiple of 256 with weight 0, as oneDNN compiles per
    shape."""
    w = np.where(classes == 1, W_ASSISTANT, np.where(classes == 3, W_VALUE, 0))
    w[(classes == 0) & (rng.random(classes.shape) < P_CONTEXT)] = W_CONTEXT
    chosen = np.nonzero(w)[0]
    chosen = np.concatenate([chosen, np.full(-len(chosen) % 256, np.nonzero(w == 0)[0][0])])
    return chosen, (w[chosen] / w.sum()).astype(np.float32)


def main():
    if K is None:
        sys.exit("kernels.so is missing: build it first (see reproduce.sh)")
    torch.set_num_threads(2)
    budget = float(sys.argv[1]) * 1e6
    path = sys.argv[2] if len(sys.argv) > 2 else work_file("checkpoint.pt")
    resume = sys.argv[3] if len(sys.argv) > 3 else None
    peak, plan, warm_up = (1.2e-3, GO_ON, 30) if resume else (2e-3, PLAN, 150)
    torch.manual_seed(1)
    rng = np.random.default_rng(1)
    masters = torch.load(resume) if resume else init_masters(1)
    matrices = [k for k, v in masters.items() if v.dim() == 2]
    leaves = {k: masters[k].requires_grad_() for k, v in masters.items() if v.dim() == 1 or k == "embed"}
    halves = {k: masters[k].detach().to(BF).requires_grad_() for k in matrices}
    moments = {k: (torch.zeros_like(v), torch.zeros_like(v)) for k, v in masters.items()}
    log = open(work_file("train.log"), "a")

    def say(line):
        print(line, flush=True)
        log.write(line + "\n")
        log.flush()

    begun = saved = time.time()
    step = seen = 0
    stage, losses = -1, []
    while (share := seen / budget) < 1:
        now_stage, length, batch = next((s, t, b) for until, s, t, b in plan if share < until)
        if now_stage != stage:
            stage = now_stage
            rows = Rows(stage, rng)
            cosine, sine = rope(length)
            say(f"stage {stage}: {len(rows.ids)} rows of {length}, batch {batch}")
        ids, classes, starts = rows.next(batch)
        ids = torch.from_numpy(ids.astype(np.int64))
        starts = torch.from_numpy(starts[:, :-1].astype(np.int32))
        classes = classes[:, 1:].reshape(-1)
        chosen, weights = token_weights(classes, rng)
        index = torch.from_numpy(chosen)

        hidden = forward_train(leaves, halves, ids[:, :-1].contiguous(), starts, cosine, sine)
        logits = linear(hidden.index_select(0, index), halves["embed"])
        loss, each = Xent.apply(logits, ids[:, 1:].reshape(-1)[index].contiguous(), torch.from_numpy(weights))
        loss.backward()
        step += 1
        seen += batch * length

        gradients = [halves[k].grad for k in matrices] + [v.grad for v in leaves.values() if v.grad is not None]
        norm = math.sqrt(sum(float(g.norm()) ** 2 for g in gradients))
        rate = peak * min(1, step / warm_up) * (0.04 + 0.96 * 0.5 * (1 + math.cos(math.pi * min(1, share))))
        for k, p in masters.items():
            m, v = moments[k]
            half = halves[k].grad.contiguous() if k in halves else None
            full = leaves[k].grad.contiguous() if k in leaves else None
            decay = DECAY if k in matrices and k != "embed" else 0.0
            numbers = (
                rate,
                BETA1,
                BETA2,
                1e-8,
                decay,
                1 / (1 - BETA1**step),
                1 / (1 - BETA2**step),
                min(1.0, 1.0 / (norm + 1e-6)),
            )
            K.adamw(P(p), P(halves.get(k)), P(half), P(full), P(m), P(v), L_(p.numel()), *map(F_, numbers))
        for leaf in (*leaves.values(), *halves.values()):
            leaf.grad = None

        n, kinds = each.numpy(), classes[chosen]
        losses.append([n[kinds == kind].mean() if (kinds == kind).any() else 0 for kind in (1, 3, 0)] + [norm])
        if step % 25 == 0 or step == 10:
            assistant, value, context, gradient = np.mean(losses, 0)
            losses, took = [], time.time() - begun
            say(
                f"{took / 60:5.1f} min step {step} tokens {seen / 1e6:.2f}M ({seen / took:.0f}/s) rate {rate:.2e} "
                f"assistant {assistant:.3f} value {value:.3f} context {context:.3f} gradient {gradient:.2f} epoch {rows.epoch}"
            )
        if time.time() - saved > 120:
            saved = time.time()
            save(masters, path)
    save(masters, path)
    took = time.time() - begun
    say("done " + json.dumps({"steps": step, "tokens": seen, "seconds": round(took), "tokens_per_second": round(seen / took)}))


if __name__ == "__main__":
    main()
