#!/usr/bin/env python3
"""Writes weight_types_golden.hpp: blocks of every storage type with what PyPI's `gguf` (gguf.quants, numpy) expands them to, and
rows of floats with the bytes that it packs them into. Run: python3 weight_types_golden.py > weight_types_golden.hpp"""
import numpy as np
from gguf import GGMLQuantizationType as T, quants

NAMES = ["F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K"]
SIZES = {"F16": (1, 2), "BF16": (1, 2), "Q8_0": (32, 34), "Q4_0": (32, 18), "Q4_1": (32, 20), "Q5_0": (32, 22), "Q5_1": (32, 24),
         "Q4_K": (256, 144), "Q5_K": (256, 176), "Q6_K": (256, 210)}
SCALES_AT = {"Q8_0": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208]}
PACKED = ["F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"]


def rows(values, form):
    text = [form(v) for v in values]
    return ",\n  ".join(", ".join(text[i:i + 12]) for i in range(0, len(text), 12))


def bytes_of(array):
    return rows(np.frombuffer(array.tobytes(), np.uint8), lambda v: f"{v}")


def bits_of(array):
    return rows(np.frombuffer(np.ascontiguousarray(array, np.float32).tobytes(), np.uint32), lambda v: f"0x{v:08x}u")


def main():
    random = np.random.default_rng(20240607)
    print("// Made by weight_types_golden.py with PyPI's gguf; do not edit.\n#pragma once\n#include <cstdint>\n#include <vector>\n")
    print("namespace troupe::golden {\n")
    print("struct expanded_blocks {\n  const char* type;\n  std::vector<std::uint8_t> blocks;\n  std::vector<std::uint32_t> floats;\n};")
    print("struct packed_row {\n  const char* type;\n  std::vector<std::uint32_t> floats;\n  std::vector<std::uint8_t> blocks;\n};\n")
    print("inline const std::vector<expanded_blocks> expanded{")
    for name in NAMES:
        weights, size = SIZES[name]
        count = 2 if weights > 1 else 32
        blocks = random.integers(0, 256, (count, size), np.uint8)
        if weights == 1:
            values = (random.standard_normal(count) * 10.0 ** random.integers(-6, 4, count)).astype(np.float32)
            half = values.astype(np.float16).view(np.uint16) if name == "F16" else (values.view(np.uint32) >> 16).astype(np.uint16)
            blocks = half.view(np.uint8).reshape(count, size)
        for at in SCALES_AT.get(name, []):
            scale = (random.standard_normal(count) * [0.02, 1e-6][:count]).astype(np.float16)
            blocks[:, at:at + 2] = scale.view(np.uint8).reshape(count, 2)
        floats = quants.dequantize(blocks.reshape(1, -1), T[name]).reshape(-1)
        print(f'{{"{name}", {{\n  {bytes_of(blocks)}}}, {{\n  {bits_of(floats)}}}}},')
    print("};\n\ninline const std::vector<packed_row> packed{")
    for name in PACKED:
        values = (random.standard_normal(96) * 0.3).astype(np.float32)
        values[32:64] = np.abs(values[32:64]) + 1.0
        values[64:96] = 0.0 if name == "Q8_0" else values[64:96] * 1e-3
        blocks = quants.quantize(values.reshape(1, -1), T[name])
        print(f'{{"{name}", {{\n  {bits_of(values)}}}, {{\n  {bytes_of(np.asarray(blocks))}}}}},')
    print("};\n\n} // namespace troupe::golden")


main()
