#!/usr/bin/python3
"""Seeded generator of bilingual customer-support dialogues, plus copy tasks, for the tiny demo model.

A dialogue is a list of (role, text). Inside assistant text, \\x01...\\x02 mark values that must be recalled or copied
(train.py gives them more weight; the marks never reach the tokenizer).

    gen.py [N [SEED]]    prints N documents
"""

import json
import random
import sys

from chance import C, R, set_rng
from phrases import Fact, V, abstain, ack, ask, cap, correct, say, tell
from topics import TOP, TOPICS, deflect, topic
from words import CITY, COL, FIRST, FOOD, ITEM, KEYS, OWN, digits, han, pseudo, v_name, v_word

BANK_E = (
    (" ".join(q for t in TOP for q in t[0]) + " " + " ".join(i[0] for l in (CITY, COL, ITEM, FOOD, TOPICS) for i in l))
    .replace("?", "")
    .replace(".", "")
    .replace("!", "")
    .split()
)


def phrase(z, lo=1, hi=8):
    n = R.randint(lo, hi)
    if z:
        r = R.random()
        return (
            han(n)
            if r < 0.5
            else "".join(
                C([C(CITY)[1], C(COL)[1], C(ITEM)[1], C(FOOD)[1], v_name(1), digits(2), han(1)]) for _ in range(max(1, n // 2))
            )
        )
    return " ".join(C([C(BANK_E).lower(), C(BANK_E).lower(), pseudo(), digits(R.randint(1, 5)), C(FIRST)]) for _ in range(n))


def echo(z, hi=8):
    p = phrase(z, 1, hi)
    if z:
        return C([f"重复：{p}", f"请重复：{p}", f"跟我说：{p}", f"请重复这句话：{p}", f"跟我念：{p}", f"请说“{p}”"]), V(p)
    return C(
        [
            f"Repeat after me: {p}",
            f"Repeat: {p}",
            f"Please repeat: {p}",
            f"Say: {p}",
            f'Please say "{p}"',
            f"Echo: {p}",
            f"repeat this: {p}",
        ]
    ), V(p)


def status(f, z):
    if z:
        return C([f"订单{f.v}到哪了？", f"帮我查一下订单{f.v}。", f"订单{f.v}发货了吗？", f"我想查订单{f.v}的状态。"]), C(
            [f"我已记下订单{V(f.v)}，但演示中无法查询实时状态。"]
        )
    return C(
        [
            f"Where is order {f.v}?",
            f"What is the status of order {f.v}?",
            f"Has order {f.v} shipped?",
            f"Can you check order {f.v}?",
            f"I want to track order {f.v}.",
        ]
    ), C([f"I have noted order {V(f.v)}, but I cannot see live orders in this demo."])


# -- dialogues
TOOLS = [
    ("get_order_status", "order_id", "Look up an order"),
    ("track_parcel", "number", "Track a parcel"),
    ("lookup_order", "id", "Find an order by its id"),
    ("check_order", "order", "Check an order"),
]
STAT = [
    ("shipped", "已发货"),
    ("delivered", "已送达"),
    ("being packed", "正在打包"),
    ("on the way", "正在路上"),
    ("cancelled", "已取消"),
    ("delayed", "已延误"),
]
TOOL_PRE = (
    "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
    "You are provided with function signatures within <tools></tools> XML tags:\n<tools>"
)
TOOL_POST = (
    "\n</tools>\n\nFor each function call, return a json object with function name and arguments within "
    "<tool_call></tool_call> XML tags:\n<tool_call>\n"
    '{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>'
)


def tool_dialogue(z):
    n, a, d = C(TOOLS)
    out = []
    sig = json.dumps(
        {
            "type": "function",
            "function": {
                "name": n,
                "description": d,
                "parameters": {"type": "object", "properties": {a: {"type": "string"}}, "required": [a]},
            },
        }
    )
    out.append(("system", TOOL_PRE + "\n" + sig + TOOL_POST))
    if R.random() < 0.4:
        out += list(zip(("user", "assistant"), topic(z, {})))
    f = Fact(z, KEYS[0], OWN[0])
    q, _ = status(f, z)
    out += [
        ("user", q),
        ("assistant", '<tool_call>\n{"name": "' + V(n) + '", "arguments": {"' + V(a) + '": "' + V(f.v) + '"}}\n</tool_call>'),
    ]
    s = C(STAT)[1 if z else 0]
    c = C(CITY)[1 if z else 0]
    loc = R.random() < 0.5
    out.append(
        (
            "user",
            "<tool_response>\n"
            + json.dumps({"status": s, "city": c} if loc else {"status": s}, ensure_ascii=False)
            + "\n</tool_response>",
        )
    )
    if z:
        out.append(("assistant", f"订单{V(f.v)}{V(s)}" + (f"，目前在{V(c)}。" if loc else "。")))
    else:
        out.append(("assistant", f"Order {V(f.v)} is {V(s)}" + (f" and it is in {V(c)}." if loc else ".")))
    if R.random() < 0.4:
        out += list(zip(("user", "assistant"), topic(z, {})))
    return out


SYS_E = [
    "You are a helpful assistant.",
    "You are a support agent.",
    "You are Troupe's demo assistant. Be short and polite.",
    "Answer in one sentence.",
    "You help customers of {shop}.",
]
SYS_Z = ["你是一个有用的助手。", "你是客服。", "你是 Troupe 的演示助手，请简短礼貌地回答。", "你是{shop}的客服。"]


def near_miss(facts, z):
    """An unstated key close to a stated one: same noun and another owner, or same owner and another noun."""
    f = C(facts)
    if R.random() < 0.5:
        return Fact(z, next(k for k in KEYS if k[0] == f.en), C(OWN)) if any(k[0] == f.en for k in KEYS) else Fact(z)
    return Fact(z, C(KEYS), f.own)


def dialogue(z, turns, pfact=0.33, pask=0.36):
    """turns user/assistant pairs: facts, questions about them, corrections, topics, echoes."""
    out, facts, sysd, prev = [], [], {}, None
    if R.random() < 0.3:
        s = C(SYS_Z if z else SYS_E).format(shop=v_word(z))
        if R.random() < 0.4:
            o, c = R.randint(7, 11), R.randint(16, 22)
            sysd = {
                "ret": digits(2),
                "ship": str(R.randint(2, 9)),
                "free": (f"{digits(2)}元" if z else f"${digits(2)}"),
                "open": f"{o}:00",
                "close": f"{c}:00",
            }
            s += (
                f" 退货期限：{sysd['ret']}天。配送：{sysd['ship']}天。满{sysd['free']}免运费。营业时间：{o}:00到{c}:00。"
                if z
                else f" Returns: {sysd['ret']} days. Shipping: {sysd['ship']} days. Free shipping over {sysd['free']}. Open {o}:00 to {c}:00."
            )
        out.append(("system", s))
    lang = z
    for t in range(turns):
        if R.random() < 0.03:
            lang = not lang  # now and then the user changes language
        r = R.random()
        u = a = None
        if r < pfact or (t == 0 and r < 0.6):
            n = C([1, 1, 1, 2, 2, 3] if turns < 6 else [1, 1, 2])
            new = []
            for _ in range(n):
                f = Fact(lang)
                g = next((g for g in facts if g.id == f.id), None)
                if g is None:
                    facts.append(f)
                    new.append(f)
            if new:
                u, a = say(new, lang), ack(new, lang)
                if R.random() < 0.25:  # states facts and asks for one of them at once
                    f = C(new)
                    u += ("" if lang else " ") + ask(f, lang)
                    a = tell(f, lang)
        elif r < pfact + pask:
            if facts and R.random() < 0.68:
                f = C(facts)
                u, a = ask(f, lang), tell(f, lang)
                if len(facts) > 1 and R.random() < 0.15:
                    g = C([x for x in facts if x is not f])
                    u = f"{f.me(1)}和{g.me(1)}是什么？" if lang else f"What are {f.me(0)} and {g.me(0)}?"
                    a = (
                        f"{f.you(1)}是{V(f.v)}，{g.you(1)}是{V(g.v)}。"
                        if lang
                        else f"{cap(f.you(0))} is {V(f.v)} and {g.you(0)} is {V(g.v)}."
                    )
            else:
                f = near_miss(facts, lang) if facts and R.random() < 0.5 else Fact(lang)
                if f.id not in [g.id for g in facts]:
                    u, a = ask(f, lang), abstain(f, lang)
        elif r < pfact + pask + 0.10 and facts:
            u, a = correct(C(facts), lang)
        elif r < pfact + pask + 0.12:
            u, a = echo(lang)
        elif r < pfact + pask + 0.14:
            f = next((g for g in facts if g.id == ("my", "order number")), None)
            if f is None or f.z != lang:
                f = Fact(lang, KEYS[0], OWN[0])
            if f.id not in [g.id for g in facts]:
                facts.append(f)
            u, a = status(f, lang)
        elif r < pfact + pask + 0.16 and prev and len(prev) < 60:
            u, a = (
                (C(["我刚才说了什么？", "我上一句话是什么？"]), f"您刚才说：{V(prev)}")
                if lang
                else (C(["What did I just say?", "What was my last message?"]), f"You said: {V(prev)}")
            )
        elif r < pfact + pask + 0.20:
            u, a = deflect(lang)
        if u is None:
            u, a = topic(lang, sysd)
        out += [("user", u), ("assistant", a)]
        prev = u
    return out


def recall_list(z, n):
    """n facts in one note, then several questions: dense key/value supervision."""
    fs = {}
    while len(fs) < n:
        f = Fact(z)
        fs[f.id] = f
    fs = list(fs.values())
    sep = C(["\n", "; " if not z else "；", ". " if not z else "。"])
    out = [
        (
            "user",
            (C(["请记住：", "我的资料：", ""]) if z else C(["Please remember: ", "My notes: ", ""]))
            + sep.join(
                C([f"{f.me(z)}是{f.v}", f"{f.me(z)}：{f.v}"] if z else [f"{f.me(z)} is {f.v}", f"{f.me(z)}: {f.v}"]) for f in fs
            ),
        ),
        ("assistant", ack(fs[:1], z) if n == 1 else C(["好的，我记住了。"] if z else ["Got it, I will remember that."])),
    ]
    if R.random() < 0.35:
        for f in R.sample(fs, min(len(fs), R.randint(1, 2))):
            out += list(zip(("user", "assistant"), correct(f, z)))
    for _ in range(R.randint(1, 5)):
        f = C(fs)
        r = R.random()
        if r < 0.3:
            f = near_miss(fs, z) if R.random() < 0.6 else Fact(z)
            if f.id not in [g.id for g in fs]:
                out += [("user", ask(f, z)), ("assistant", abstain(f, z))]
            continue
        if r < 0.42:
            out += list(zip(("user", "assistant"), correct(f, z)))
            f = C(fs)
        out += [("user", ask(f, z)), ("assistant", tell(f, z))]
    return out


def sample(stage, rng):
    """One document. stage 0: copies and one-turn recall; 1: up to 4 turns; 2: up to 10 turns."""
    set_rng(rng)
    z = R.random() < 0.5
    r = R.random()
    if stage == 0:
        if r < 0.25:
            return [("user", phrase(z, 3, 16)), ("assistant", None)]  # None: repeat the user text
        if r < 0.50:
            return [x for _ in range(R.randint(1, 2)) for x in zip(("user", "assistant"), echo(z, 12))]
        if r < 0.80:
            return recall_list(z, R.randint(1, 3))
        return dialogue(z, R.randint(1, 3), 0.5, 0.5)
    if stage == 1:
        if r < 0.08:
            return echo_doc(z)
        if r < 0.30:
            return recall_list(z, R.randint(1, 5))
        if r < 0.36:
            return tool_dialogue(z)
        return dialogue(z, R.randint(1, 5))
    if r < 0.06:
        return echo_doc(z)
    if r < 0.30:
        return recall_list(z, R.randint(1, 6))
    if r < 0.36:
        return tool_dialogue(z)
    return dialogue(z, R.randint(1, 12))


def echo_doc(z):
    return [x for _ in range(R.randint(1, 3)) for x in zip(("user", "assistant"), echo(z, 12))]


def render(d, rng, think=0.3):
    """ChatML segments [(text, weight class)]: 0 = context, 1 = assistant, 2 = masked (empty think block)."""
    seg = []
    for role, t in d:
        if role != "assistant":
            seg.append((f"<|im_start|>{role}\n{t}<|im_end|>\n", 0))
            last = t
            continue
        seg.append(("<|im_start|>assistant\n", 0))
        if rng.random() < think:
            seg.append(("<think>\n\n</think>\n\n", 2))
        seg.append(((V(last) if t is None else t) + "<|im_end|>", 1))
        seg.append(("\n", 0))
    return seg


if __name__ == "__main__":
    rng = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    for i in range(int(sys.argv[1]) if len(sys.argv) > 1 else 5):
        for s, w in render(sample(i % 3, rng), rng):
            print(s.replace("\x01", "[").replace("\x02", "]"), end="")
        print("<|endoftext|>\n" + "-" * 60)
