#!/usr/bin/env python3
"""Writes tests/golden/smollm2.json: greedy continuations of five prompts by SmolLM2-135M-Instruct (Q4_1 GGUF), from a numpy
forward pass that shares no code with Troupe.

The file is read and dequantised by PyPI's `gguf`, prompts are tokenised by PyPI's `tokenizers`. The converter's row permutation
of q and k is undone, so that RoPE runs in Hugging Face's form (rotate_half). Activations are float32. At each position the
margin (best logit less second best) is kept: where it is tiny, another correct implementation may choose the other token.

    pip install gguf tokenizers numpy
    smollm2_make.py SmolLM2-135M-Instruct.Q4_1.gguf
"""
import json
import os
import sys

import gguf
import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

COUNT = 64
SYSTEM = "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
CHAT = SYSTEM + "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
PROMPTS = [CHAT.format("How do I bake a simple loaf of bread at home?"),
           CHAT.format("Write a short story about a fox who learns to swim."),
           CHAT.format("List three things to check before a long journey by car, and say why each matters."),
           "def fibonacci(n):\n",
           "In 1969, two astronauts walked on the Moon for the first time. The"]


class Model:
    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        field = lambda name: reader.fields[name].contents()
        self.w = {t.name: np.asarray(gguf.dequantize(t.data, t.tensor_type), np.float32) for t in reader.tensors}
        self.layers, self.heads = field("llama.block_count"), field("llama.attention.head_count")
        self.kv_heads, self.hidden = field("llama.attention.head_count_kv"), field("llama.embedding_length")
        self.d = self.hidden // self.heads
        self.epsilon = field("llama.attention.layer_norm_rms_epsilon")
        base = field("llama.rope.freq_base")
        self.frequencies = base ** (-np.arange(0, self.d, 2) / self.d)
        for layer in range(self.layers):
            for name, heads in (("attn_q", self.heads), ("attn_k", self.kv_heads)):
                key = f"blk.{layer}.{name}.weight"
                self.w[key] = self.w[key].reshape(heads, self.d // 2, 2, -1).swapaxes(1, 2).reshape(self.w[key].shape)
        self.tokenizer = Tokenizer(models.BPE(
            vocab={t: i for i, t in enumerate(field("tokenizer.ggml.tokens"))},
            merges=[tuple(m.split(" ")) for m in field("tokenizer.ggml.merges")]))
        self.tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
        self.tokenizer.decoder = decoders.ByteLevel()
        kinds = field("tokenizer.ggml.token_type")
        self.tokenizer.add_special_tokens([t for t, k in zip(field("tokenizer.ggml.tokens"), kinds) if k == 3])
        self.ends = {field("tokenizer.ggml.eos_token_id")}

    def norm(self, x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.epsilon) * self.w[name]

    def turn(self, x, positions):
        angle = positions[:, None] * self.frequencies[None]
        cosine = np.cos(np.concatenate([angle, angle], -1))[:, None].astype(np.float32)
        sine = np.sin(np.concatenate([angle, angle], -1))[:, None].astype(np.float32)
        half = self.d // 2
        return x * cosine + np.concatenate([-x[..., half:], x[..., :half]], -1) * sine

    def feed(self, tokens, cache):
        """Logits after the last token; cache: a list of (k, v) a layer, replaced in place."""
        done = 0 if cache[0] is None else len(cache[0][0])
        positions = np.arange(done, done + len(tokens))
        x = self.w["token_embd.weight"][tokens]
        mask = np.where(np.arange(done + len(tokens))[None] <= positions[:, None], 0, -np.inf).astype(np.float32)
        for layer in range(self.layers):
            w = lambda name: self.w[f"blk.{layer}.{name}.weight"].T
            y = self.norm(x, f"blk.{layer}.attn_norm.weight")
            q = self.turn((y @ w("attn_q")).reshape(len(tokens), self.heads, self.d), positions)
            k = self.turn((y @ w("attn_k")).reshape(len(tokens), self.kv_heads, self.d), positions)
            v = (y @ w("attn_v")).reshape(len(tokens), self.kv_heads, self.d)
            if cache[layer] is not None:
                k, v = np.concatenate([cache[layer][0], k]), np.concatenate([cache[layer][1], v])
            cache[layer] = (k, v)
            k, v = (np.repeat(z, self.heads // self.kv_heads, axis=1) for z in (k, v))
            scores = np.einsum("thd,shd->hts", q, k) / np.float32(np.sqrt(self.d)) + mask
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            mixed = np.einsum("hts,shd->thd", scores / scores.sum(-1, keepdims=True), v)
            x = x + mixed.reshape(len(tokens), -1) @ w("attn_output")
            y = self.norm(x, f"blk.{layer}.ffn_norm.weight")
            gate = y @ w("ffn_gate")
            x = x + (gate / (1 + np.exp(-gate)) * (y @ w("ffn_up"))) @ w("ffn_down")
        output = self.w.get("output.weight", self.w["token_embd.weight"])
        return self.norm(x[-1], "output_norm.weight") @ output.T


def main():
    model = Model(sys.argv[1])
    cases = []
    for prompt in PROMPTS:
        ids = model.tokenizer.encode(prompt).ids
        cache = [None] * model.layers
        logits = first = model.feed(ids, cache)
        continuation, margins = [], []
        while True:
            second, best = np.argsort(logits, kind="stable")[-2:]
            continuation.append(int(logits.argmax()))
            margins.append(float(f"{logits[best] - logits[second]:.4g}"))
            if len(continuation) == COUNT:
                break
            logits = model.feed(continuation[-1:], cache)
        text = model.tokenizer.decode(continuation, skip_special_tokens=False)
        cases.append({"prompt": prompt, "ids": ids, "continuation": continuation, "text": text, "margins": margins,
                      "first_logits": [float(f"{x:.7g}") for x in first[:16]], "highest_logit": float(f"{first.max():.7g}")})
        ended = next((i for i, t in enumerate(continuation) if t in model.ends), None)
        print(len(ids), "ids; smallest margin", min(margins), "at", int(np.argmin(margins)), "; end token at", ended, repr(text))
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "smollm2.json")
    with open(path, "w", encoding="utf-8") as out:
        out.write('{"note": "written by smollm2_make.py; greedy, run past the end token; margins: best logit less second best",\n"cases": [\n')
        out.write(",\n".join(json.dumps(c, ensure_ascii=False) for c in cases) + "\n]}\n")


if __name__ == "__main__":
    main()
