"""Writes tokenizer_corpus_parts.txt, the material that tokenizer_corpus.{hpp,py} mix into 2 MB of text.

    python3 tests/golden/tokenizer_corpus_parts.py

Code point ranges are those assigned in this Python's Unicode (3.11: Unicode 14), without private use: assigned in
utf8proc 2.8 (Unicode 15) as well, so that both sides class them alike.
"""
import pathlib
import sys
import unicodedata

english = """the of and to in a is that for it as was with be by on not he his but at are this have from or had an they which
one you were all her she there would their we him been has when who will no more if out so up said what its about than into them
can only other time new some could these two may first then do any like my now over such our man me even most made after also did
many off before must well back through years much where your way down should because long each just state those people too mister
how little good world make very year still see own work men day get here old life both between being under three never know same
last another while us might great go come since against right came take used himself few house use place during high without again
home around small however found Mrs part school thought went say general once upon war left every don't didn't I'm you're we've
they'll it's can't won't couldn't I'd He'LL DON'T tokenizer throughput scheduling prefix inference hyperparameters Kubernetes
electroencephalography antidisestablishmentarianism internationalisation naïve café résumé Zürich façade coöperate jalapeño
https://example.org/path?query=1&other=two#frag user@example.com README.md v1.2.3-rc4 2031-04-17 12:45:07 $1,299.00 50% C++20 3.14159
(parenthetical) "quoted" 'single' [bracket] {brace} <tag/> e.g. i.e. etc. --flag ... !!! ??? :-) #hashtag @mention 1st 22nd 1000000""".split()

chinese = """的 一 是 在 不 了 有 和 人 这 中 大 为 上 个 国 我 以 要 他 时 来 用 们 生 到 作 地 于 出 就 分 对 成 会 可 主 发 年 动 同 工 也 能 下 过 子 说 产 种 面
而 方 后 多 定 行 学 法 所 民 得 经 十 三 之 进 着 等 部 度 家 电 力 里 如 水 化 高 自 二 理 起 小 物 现 实 加 量 都 两 体 制 机 当 使 点 从 业 本 去 把 性 好 应 开 它 合
还 因 由 其 些 然 前 外 天 政 四 日 那 社 义 事 平 形 相 全 表 间 样 与 关 各 重 新 线 内 数 正 心 反 你 明 看 原 又 么 利 比 或 但 质 气 第 向 道 命 此 变 条 只 没 结 解
订单号 退款 客服 您好 请问 什么时候 发货 人工智能 语言模型 中华人民共和国 北京市海淀区 价格是 ￥1,299.00 元 谢谢 不好意思 没有关系 。 ， ！ ？ 、 ； ： “ ” （ ） 《 》 …… ——
東京 日本語 ひらがな カタカナ です ます 한국어 안녕하세요 감사합니다""".split()

code = [
    "def f(x):\\n    return x + 1\\n", "for (std::size_t i = 0; i < n; ++i) {\\n", "    if (a[i] != b[i])\\n      break;\\n  }\\n",
    "#include <vector>\\n", "int main(int argc, char** argv) { return 0; }\\n", "\\tprintf(\"%d\\\\n\", x);\\n",
    "SELECT id, name FROM users WHERE age >= 21 ORDER BY name;\\n", "const x = await fetch(`/api/${id}`);\\n",
    "}\\n\\n\\n", "// TODO\\n", "/* a comment */ ", "{\"key\": [1, 2.5, null, true], \"k2\": {}}\\n", "<div class=\"row\">&nbsp;</div>\\n",
    "x = {'a': 1, 'b': [1,2,3]}  # dict\\n", "    " * 3 + "self.assertEqual(a, b)\\n", "\\r\\n", "\\t\\t\\t", "0xDEADBEEF ", "1e-9, ",
    "x_y_z->w::v<T>&& ", "fn main() -> Result<(), Box<dyn Error>> {\\n", "i32 u64 f32 ", "let mut v: Vec<_> = vec![];\\n", "|x| x.y() ",
    "==== !== <=> >>= ", "$HOME/.config/*.yaml\\n", "\\\\begin{equation} E = mc^2 \\\\end{equation}\\n", "- item\\n  - sub\\n", "## Title\\n\\n",
]

emoji = ["👍", "👍🏽", "👩‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪", "🇨🇳🇯🇵", "❤️", "1️⃣", "🤦🏿‍♂️", "😀😃😄", "🚀", "✨", "🫠", "🧑‍💻", "☕", "™", "©", "→", "∑∫√", "½²³", "①②③", "ⅣⅫ"]

space = [" ", "  ", "   ", "        ", "\\t", "\\n", "\\n\\n", "\\r", "\\r\\n", "\\u000b", "\\u000c", "\\u0085", "\\u00a0", "\\u1680", "\\u2003", "\\u2028", "\\u2029",
         "\\u202f", "\\u205f", "\\u3000", "\\u200b", "\\u200d", "\\ufeff", "\\u001c", "\\u001f", "\\u180e", " \\n", "\\n ", " \\t \\n  "]

added = ["<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "<|endoftext|>", "<|im_end|", "<think", "</think><think>", "<|", "<<think>>",
         "<|im_start|><|im_start|>user", "<tool_response>", "<|fim_prefix|>", "<|im_ſtart|>"]

# Accents that compose, that do not, that must be reordered, Hangul jamo, Indic vowel parts, singletons, compatibility forms.
marks = ["a\\u0301", "e\\u0301", "A\\u030a", "\\u212b", "q\\u0307\\u0323", "q\\u0323\\u0307", "\\u1100\\u1161", "\\u1100\\u1161\\u11a8", "\\uac00\\u11a8",
         "\\u0344", "\\u0958", "\\u0928\\u093c", "\\u09c7\\u09be", "\\u0f73", "\\ufb01", "\\u2126", "\\u3099", "\\u304b\\u3099", "o\\u0328\\u0304", "\\u01eb\\u0304",
         "\\u1e9b\\u0323", "s\\u0323\\u0307", "\\u0041\\u0301\\u0327\\u0300\\u0323", "\\u05d0\\u05b0\\u05bc", "\\u0f40\\u0f74\\u0f71", "\\u1025\\u102e", "\\u0cc6\\u0cc2\\u0cd5",
         "\\uf900", "\\ufa30", "e\\u0327\\u0301", "\\u0300", "\\u0301\\u0301\\u0301\\u0301", "n\\u0303o", "\\u0438\\u0306", "'\\u017f", "I'\\u017fa"]


def ranges():
    found, start = [], None
    for c in range(0x110000 + 1):
        inside = c < 0x110000 and unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co")
        if inside and start is None:
            start = c
        if not inside and start is not None:
            found.append(f"{start:x} {c - 1:x}")
            start = None
    return found


lines = []
for name, parts in [("english", english), ("chinese", chinese), ("code", code), ("emoji", emoji), ("space", space), ("added", added),
                    ("marks", marks), ("ranges", ranges())]:
    lines.append(f"%% {name}")
    lines += parts
lines.append("%% end")
target = pathlib.Path(__file__).with_name("tokenizer_corpus_parts.txt")
target.write_text("\n".join(lines) + "\n", encoding="utf-8")
print(f"{target.name}: {len(lines)} lines, Unicode {unicodedata.unidata_version}", file=sys.stderr)
