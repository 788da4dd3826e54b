#!/usr/bin/python3
"""Writes the model as a Hugging Face Qwen3 folder (bf16 safetensors), checks it with a numpy forward pass that reads only that
folder, and writes golden.json: prompts with their ids, logits and greedy continuations.

    export.py [CHECKPOINT]    into model/ of the work folder
"""

import json
import os
import struct
import sys

import numpy as np
import torch

import eval as ev
import tok
from model import BF, Cfg, Ref
from work import HERE, work_file

torch.set_num_threads(1)
T = tok.Tok()
c = Cfg
TEMPLATE = open(os.path.join(HERE, "chat_template.jinja"), encoding="utf-8").read()


def wj(name, value):
    with open(work_file("model", name), "w", encoding="utf-8") as out:
        json.dump(value, out, ensure_ascii=False, indent=2)


def export(p):
    ts = {"model.embed_tokens.weight": p["embed"], "model.norm.weight": p["norm"]}
    for l in range(c.layers):
        q, k, v = p[f"{l}.qkv"].split([c.hq * 64, c.hk * 64, c.hk * 64])
        g, u = p[f"{l}.gu"].chunk(2)
        b = f"model.layers.{l}."
        ts.update(
            {
                b + "input_layernorm.weight": p[f"{l}.ln1"],
                b + "post_attention_layernorm.weight": p[f"{l}.ln2"],
                b + "self_attn.q_proj.weight": q,
                b + "self_attn.k_proj.weight": k,
                b + "self_attn.v_proj.weight": v,
                b + "self_attn.o_proj.weight": p[f"{l}.o"],
                b + "self_attn.q_norm.weight": p[f"{l}.qn"],
                b + "self_attn.k_norm.weight": p[f"{l}.kn"],
                b + "mlp.gate_proj.weight": g,
                b + "mlp.up_proj.weight": u,
                b + "mlp.down_proj.weight": p[f"{l}.down"],
            }
        )
    head, blobs, off = {"__metadata__": {"format": "pt"}}, [], 0
    for n in sorted(ts):
        raw = ts[n].detach().contiguous().to(BF).view(torch.int16).numpy().tobytes()
        head[n] = {"dtype": "BF16", "shape": list(ts[n].shape), "data_offsets": [off, off + len(raw)]}
        blobs.append(raw)
        off += len(raw)
    h = json.dumps(head, separators=(",", ":")).encode()
    h += b" " * (-len(h) % 8)
    with open(work_file("model", "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(h)) + h + b"".join(blobs))
    wj(
        "config.json",
        {
            "architectures": ["Qwen3ForCausalLM"],
            "attention_bias": False,
            "attention_dropout": 0.0,
            "bos_token_id": T.eot,
            "eos_token_id": T.end,
            "head_dim": c.hd,
            "hidden_act": "silu",
            "hidden_size": c.dim,
            "initializer_range": 0.02,
            "intermediate_size": c.ffn,
            "max_position_embeddings": 1024,
            "max_window_layers": c.layers,
            "model_type": "qwen3",
            "num_attention_heads": c.hq,
            "num_hidden_layers": c.layers,
            "num_key_value_heads": c.hk,
            "rms_norm_eps": c.eps,
            "rope_scaling": None,
            "rope_theta": c.theta,
            "sliding_window": None,
            "tie_word_embeddings": True,
            "torch_dtype": "bfloat16",
            "transformers_version": "4.51.0",
            "use_cache": True,
            "use_sliding_window": False,
            "vocab_size": c.vocab,
        },
    )
    wj(
        "generation_config.json",
        {
            "bos_token_id": T.eot,
            "do_sample": False,
            "eos_token_id": [T.end, T.eot],
            "pad_token_id": T.eot,
            "transformers_version": "4.51.0",
        },
    )
    wj("tokenizer.json", T.hf_json())
    wj(
        "tokenizer_config.json",
        {
            "add_bos_token": False,
            "add_prefix_space": False,
            "added_tokens_decoder": {
                str(i): {
                    "content": t,
                    "lstrip": False,
                    "normalized": False,
                    "rstrip": False,
                    "single_word": False,
                    "special": t.startswith("<|"),
                }
                for t, i in T.sp.items()
            },
            "additional_special_tokens": ["<|im_start|>", "<|im_end|>"],
            "bos_token": None,
            "chat_template": TEMPLATE,
            "clean_up_tokenization_spaces": False,
            "eos_token": "<|im_end|>",
            "errors": "replace",
            "model_max_length": 1024,
            "pad_token": "<|endoftext|>",
            "split_special_tokens": False,
            "tokenizer_class": "Qwen2Tokenizer",
            "unk_token": None,
        },
    )


class NpModel:
    """Independent numpy fp32 forward pass that reads only the exported folder."""

    def __init__(s):
        raw = open(work_file("model", "model.safetensors"), "rb").read()
        n = struct.unpack("<Q", raw[:8])[0]
        h = json.loads(raw[8 : 8 + n])
        h.pop("__metadata__")
        s.w = {
            k: (
                np.frombuffer(
                    raw, "<u2", (v["data_offsets"][1] - v["data_offsets"][0]) // 2, 8 + n + v["data_offsets"][0]
                ).astype(np.uint32)
                << 16
            )
            .view(np.float32)
            .reshape(v["shape"])
            for k, v in h.items()
        }
        s.c = json.load(open(work_file("model", "config.json")))

    def norm(s, x, w):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + s.c["rms_norm_eps"]) * w

    def last_logits(s, ids):
        w, c = s.w, s.c
        x = w["model.embed_tokens.weight"][ids]
        n = len(ids)
        hd = c["head_dim"]
        ang = np.arange(n, dtype=np.float32)[:, None] / (c["rope_theta"] ** (np.arange(0, hd, 2, dtype=np.float32) / hd))
        co, si = np.cos(ang)[None], np.sin(ang)[None]
        rot = lambda z: np.concatenate(
            [z[..., : hd // 2] * co - z[..., hd // 2 :] * si, z[..., hd // 2 :] * co + z[..., : hd // 2] * si], -1
        )
        for l in range(c["num_hidden_layers"]):
            b = f"model.layers.{l}."
            y = s.norm(x, w[b + "input_layernorm.weight"])
            hs = lambda nm, k: (y @ w[b + f"self_attn.{nm}_proj.weight"].T).reshape(n, k, hd).transpose(1, 0, 2)
            q = rot(s.norm(hs("q", c["num_attention_heads"]), w[b + "self_attn.q_norm.weight"]))
            k = rot(s.norm(hs("k", c["num_key_value_heads"]), w[b + "self_attn.k_norm.weight"]))
            v = hs("v", c["num_key_value_heads"])
            g = c["num_attention_heads"] // c["num_key_value_heads"]
            k, v = np.repeat(k, g, 0), np.repeat(v, g, 0)
            a = q @ k.transpose(0, 2, 1) / np.sqrt(np.float32(hd)) + np.triu(np.full((n, n), -1e30, np.float32), 1)
            a = np.exp(a - a.max(-1, keepdims=True))
            a /= a.sum(-1, keepdims=True)
            x = x + (a @ v).transpose(1, 0, 2).reshape(n, -1) @ w[b + "self_attn.o_proj.weight"].T
            y = s.norm(x, w[b + "post_attention_layernorm.weight"])
            ga = y @ w[b + "mlp.gate_proj.weight"].T
            x = x + (ga / (1 + np.exp(-ga)) * (y @ w[b + "mlp.up_proj.weight"].T)) @ w[b + "mlp.down_proj.weight"].T
        return s.norm(x[-1], w["model.norm.weight"]) @ w["model.embed_tokens.weight"].T


GOLD = [
    ["Hello!"],
    ["你好"],
    ["My name is Alice and my order number is 48213.", "Thanks for telling me. How can I help?", "What is my order number?"],
    ["我叫王伟，我的订单号是70351。", "好的，我记住了。", "我的订单号是多少？"],
    ["What is your return policy?"],
    ["你们几点开门？"],
    ["Who are you?"],
    ["你是谁？"],
    ["Repeat after me: blue kettle 42"],
    ["重复：今天很好"],
    ["What is my name?"],
    ["我叫什么名字？"],
    [
        "My city is Paris.",
        "Got it, I will remember that.",
        "Actually, my city is Rome.",
        "Okay, I have updated it.",
        "Where do I live?",
    ],
    ["我的颜色是红色。", "收到，已经记下。", "不对，我的颜色是蓝色。", "好的，已经更新。", "我的颜色是什么？"],
    ["Tell me about dinosaurs."],
    ["什么是量子物理？"],
    ["Thanks!"],
    ["谢谢"],
    ["I don't know… 3.5kg?  \n\n ok"],
    ["Mixed 中英 text: ñ é 🙂 12,345"],
]


def chat(turns, think=False):
    return ev.prompt([("user" if i % 2 == 0 else "assistant", t) for i, t in enumerate(turns)], think)


def main():
    p = torch.load(sys.argv[1] if len(sys.argv) > 1 else work_file("checkpoint.pt"))
    export(p)
    m = NpModel()
    ref = Ref(p)
    out, worst = [], 0.0
    for i, g in enumerate(GOLD):
        text = chat(g, i % 2 == 1)
        ids = T.encode(text)
        lg = m.last_logits(np.array(ids))
        e = {"prompt": text, "ids": ids, "argmax": int(lg.argmax())}
        r = ref.step(torch.tensor([ids]), torch.arange(len(ids))[None], None, torch.ones(1, len(ids), dtype=torch.bool))[0][
            0, -1
        ].numpy()
        worst = max(worst, float(abs(r - lg).max()))
        if i in (0, 2, 3):
            e["logits_first8"] = [float(x) for x in lg[:8]]
            e["logit_max"] = float(lg.max())
        seq, margin, gap_eos = [], 1e9, None  # greedy, 32 tokens, not stopped at EOS; margins: smallest top1-top2 gap met
        n = len(ids)
        z, cache = ref.step(torch.tensor([ids]), torch.arange(n)[None], None, torch.ones(1, n, dtype=torch.bool))
        for _ in range(32):
            top = z[0, -1].topk(2)
            margin = min(margin, float(top.values[0] - top.values[1]))
            seq.append(int(top.indices[0]))
            n += 1
            if gap_eos is None and seq[-1] in (T.end, T.eot):
                gap_eos = margin
            z, cache = ref.step(torch.tensor([[seq[-1]]]), torch.tensor([[n - 1]]), cache, torch.ones(1, n, dtype=torch.bool))
        e["greedy32"] = seq
        cut = next((j for j, t in enumerate(e["greedy32"]) if t in (T.end, T.eot)), 32)
        e["greedy_text_to_eos"] = T.decode(e["greedy32"][:cut])
        e["min_margin"] = margin
        e["min_margin_to_eos"] = gap_eos
        out.append(e)
        print(repr(g[-1]), "->", e["greedy_text_to_eos"])
    json.dump(
        {"note": "fp32 math on the bf16 weights; greedy32 runs past EOS", "cases": out},
        open(work_file("model", "golden.json"), "w", encoding="utf-8"),
        ensure_ascii=False,
        indent=1,
    )
    print(
        "numpy vs torch reference, max |diff| of last logits:",
        worst,
        "bytes:",
        os.path.getsize(work_file("model", "model.safetensors")),
        "params:",
        sum(v.numel() for v in p.values()),
    )


if __name__ == "__main__":
    main()
