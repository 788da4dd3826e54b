"""The corpus of tokenizer_corpus.{hpp,cpp}, and the ids that PyPI's `tokenizers` gives for it.

    python3 tests/golden/tokenizer_corpus.py TOKENIZER_JSON            writes tokenizer_corpus_digest.txt
    python3 tests/golden/tokenizer_corpus.py TOKENIZER_JSON --ids 7    prints block 7's ids, to compare one by one

A digest line: block, bytes, FNV-1a of the text, then count and FNV-1a of the ids (four little-endian bytes each) without
added tokens, and the same with added tokens matched. Needs the package `tokenizers`.
"""
import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).parent
MASK = (1 << 64) - 1
BLOCKS = 32
BLOCK_BYTES = 65536


def mix64(x):
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def unescape(line):
    simple = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\"}
    return re.sub(r"\\(u[0-9a-f]{4}|.)", lambda m: chr(int(m[1][1:], 16)) if len(m[1]) == 5 else simple[m[1]], line)


def read_parts():
    parts, name = {}, None
    for line in (HERE / "tokenizer_corpus_parts.txt").read_text(encoding="utf-8").split("\n")[:-1]:
        if line.startswith("%% "):
            name = line[3:]
            parts[name] = []
        else:
            parts[name].append(unescape(line))
    parts["ranges"] = [tuple(int(x, 16) for x in r.split()) for r in parts["ranges"]]
    return parts


def block_text(parts, block):
    state = block << 32

    def pick(n):
        nonlocal state
        value = mix64(state) % n
        state += 1
        return value

    def one_of(items):
        return items[pick(len(items))]

    def several(items, least, spread):
        return "".join(one_of(items) for _ in range(least + pick(spread)))

    out, size = [], 0
    while size < BLOCK_BYTES:
        kind = pick(100)
        if kind < 30:
            text = " ".join([one_of(parts["english"]) for _ in range(4 + pick(16))]) + one_of([". ", ", ", "\n", "! ", "? "])
        elif kind < 50:
            text = several(parts["chinese"], 3, 20)
        elif kind < 65:
            text = several(parts["code"], 1, 6)
        elif kind < 72:
            text = several(parts["emoji"], 1, 5)
        elif kind < 80:
            text = several(parts["space"], 1, 6)
        elif kind < 84:
            text = several(parts["added"], 1, 3)
        elif kind < 90:
            text = several(parts["marks"], 1, 6)
        elif kind < 96:
            text = ""
            for _ in range(1 + pick(12)):
                first, last = one_of(parts["ranges"])
                text += chr(first + pick(last - first + 1))
        elif kind < 98:
            text = chr(97 + pick(26))
            for _ in range(1 + pick(5)):
                text += chr(0x300 + pick(0x70))
        else:
            text = one_of(["a", "A", "0", " ", "\n", "-", "=", "你"])
            text *= 1 + pick(200)
        if pick(4) == 0:
            text += " "
        out.append(text)
        size += len(text.encode())
    return "".join(out)


def fnv1a(data):
    h = 0xCBF29CE484222325
    for b in data:
        h = ((h ^ b) * 0x100000001B3) & MASK
    return h


def id_bytes(ids):
    return b"".join(i.to_bytes(4, "little") for i in ids)


def main():
    from tokenizers import Tokenizer, __version__

    description = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
    with_added = Tokenizer.from_str(description)
    plain = json.loads(description)
    plain["added_tokens"] = []
    without_added = Tokenizer.from_str(json.dumps(plain))
    parts = read_parts()
    if "--ids" in sys.argv:
        text = block_text(parts, int(sys.argv[sys.argv.index("--ids") + 1]))
        print(*without_added.encode(text, add_special_tokens=False).ids)
        return
    lines = []
    for block in range(BLOCKS):
        text = block_text(parts, block)
        data = text.encode()
        row = [block, len(data), f"{fnv1a(data):016x}"]
        for tokenizer in (without_added, with_added):
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            row += [len(ids), f"{fnv1a(id_bytes(ids)):016x}"]
        lines.append(" ".join(map(str, row)))
    (HERE / "tokenizer_corpus_digest.txt").write_text("\n".join(lines) + "\n")
    print(f"tokenizers {__version__}: {len(lines)} blocks", file=sys.stderr)


if __name__ == "__main__":
    main()
