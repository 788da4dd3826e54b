#!/usr/bin/python3
"""Reads the shipped weights back into a checkpoint, to evaluate them or to train on from them.

shipped.py [CHECKPOINT]    into shipped.pt of the work folder
"""

import json
import os
import struct
import sys

import torch

from model import BF, Cfg
from work import SHIPPED, work_file


def shipped():
    raw = open(os.path.join(SHIPPED, "model.safetensors"), "rb").read()
    begin = 8 + struct.unpack("<Q", raw[:8])[0]
    w = {
        name: torch.frombuffer(bytearray(raw[begin + t["data_offsets"][0] : begin + t["data_offsets"][1]]), dtype=BF)
        .reshape(t["shape"])
        .float()
        for name, t in json.loads(raw[8:begin]).items()
        if name != "__metadata__"
    }
    p = {"embed": w["model.embed_tokens.weight"], "norm": w["model.norm.weight"]}
    for l in range(Cfg.layers):
        b = f"model.layers.{l}."
        p[f"{l}.qkv"] = torch.cat([w[b + f"self_attn.{x}_proj.weight"] for x in "qkv"])
        p[f"{l}.o"] = w[b + "self_attn.o_proj.weight"]
        p[f"{l}.gu"] = torch.cat([w[b + "mlp.gate_proj.weight"], w[b + "mlp.up_proj.weight"]])
        p[f"{l}.down"] = w[b + "mlp.down_proj.weight"]
        p[f"{l}.ln1"], p[f"{l}.ln2"] = w[b + "input_layernorm.weight"], w[b + "post_attention_layernorm.weight"]
        p[f"{l}.qn"], p[f"{l}.kn"] = w[b + "self_attn.q_norm.weight"], w[b + "self_attn.k_norm.weight"]
    return p


if __name__ == "__main__":
    torch.save(shipped(), sys.argv[1] if len(sys.argv) > 1 else work_file("shipped.pt"))
