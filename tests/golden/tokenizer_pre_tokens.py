"""Writes tokenizer_pre_tokens_digest.txt: where PyPI's `tokenizers` cuts the corpus of tokenizer_corpus.py, for each pre-tokeniser.

    python3 tests/golden/tokenizer_pre_tokens.py

A line: pre-tokeniser, block, pre-tokens, FNV-1a of their ends (byte offsets, four little-endian bytes each).
"""
import pathlib

from tokenizers import Regex, pre_tokenizers

import tokenizer_corpus as corpus

MODERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
KINDS = {
    "qwen2": pre_tokenizers.Split(Regex(MODERN % ""), "isolated"),
    "llama_bpe": pre_tokenizers.Split(Regex(MODERN % "{1,3}"), "isolated"),
    "gpt2": pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
    "smollm": pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)]
    ),
}


def byte_ends(text, pre_tokenizer):
    offsets = [0]
    for c in text:
        offsets.append(offsets[-1] + len(c.encode()))
    return [offsets[end] for _, (_, end) in pre_tokenizer.pre_tokenize_str(text)]


if __name__ == "__main__":
    parts = corpus.read_parts()
    lines = []
    for block in range(corpus.BLOCKS):
        text = corpus.block_text(parts, block)
        for kind, pre_tokenizer in KINDS.items():
            ends = byte_ends(text, pre_tokenizer)
            lines.append(f"{kind} {block} {len(ends)} {corpus.fnv1a(corpus.id_bytes(ends)):016x}")
    (pathlib.Path(__file__).parent / "tokenizer_pre_tokens_digest.txt").write_text("\n".join(lines) + "\n")
