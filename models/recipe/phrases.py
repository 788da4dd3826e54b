"""What users and the assistant say about a fact: stating, asking, telling, correcting, not knowing."""

from chance import C, R
from words import KEYS, OWN, han, pseudo, v_num, v_order, v_word


def cap(s):
    return s[:1].upper() + s[1:]


V = lambda s: "\x01" + s + "\x02"


class Fact:
    def __init__(s, z, key=None, own=None):
        s.en, s.zh, s.mk = key or C(KEYS)
        if key is None and R.random() < 0.04:
            s.en, s.zh, s.mk = pseudo(), han(2), C([v_word, v_num, v_order])
        s.own = own or C(OWN)
        s.id = (s.own[0], s.en)
        s.z = z
        s.v = s.mk(z)
        s.old = None

    def me(s, z):
        return (s.own[2] + "的" + s.zh) if z else f"{s.own[0]} {s.en}"

    def you(s, z):
        return (s.own[3] + "的" + s.zh) if z else f"{s.own[1]} {s.en}"


def state(f, z):
    m, v, mine = f.me(z), f.v, f.own[0] == "my"
    if z:
        o = [f"{m}是{v}", f"{m}是{v}", f"{m}：{v}", f"{m}为{v}"]
        if mine:
            o += {
                "name": [f"我叫{v}", f"我是{v}", f"请叫我{v}"],
                "city": [f"我住在{v}", f"我在{v}"],
                "colour": [f"我想要{v}的", f"我选{v}"],
                "size": [f"我穿{v}", f"我要{v}的"],
                "order number": [f"订单号{v}", f"我想问订单{v}", f"我的订单是{v}"],
                "product": [f"我买了{v}", f"我想买{v}"],
                "age": [f"我今年{v}岁"],
                "budget": [f"我最多花{v}"],
                "delivery date": [f"请在{v}送货"],
                "favourite food": [f"我最喜欢吃{v}"],
                "home town": [f"我来自{v}"],
                "job": [f"我是一名{v}"],
            }.get(f.en, [])
        return C(o)
    o = [f"{m} is {v}", f"{m} is {v}", f"{m}: {v}", f"{m} is {v}"]
    if mine:
        o += {
            "name": [f"I'm {v}", f"I am {v}", f"this is {v}", f"call me {v}"],
            "city": [f"I live in {v}", f"I'm in {v}"],
            "colour": [f"I want it in {v}", f"I would like {v}", f"I chose {v}"],
            "size": [f"I wear {v}", f"I need size {v}"],
            "order number": [f"order {v}", f"it's about order {v}", f"I placed order {v}", f"order number {v}"],
            "product": [f"I bought a {v}", f"I ordered a {v}"],
            "age": [f"I am {v} years old"],
            "budget": [f"I can spend {v}"],
            "delivery date": [f"please deliver on {v}"],
            "favourite food": [f"I like {v} most"],
            "home town": [f"I come from {v}"],
            "job": [f"I work as a {v}"],
        }.get(f.en, [])
    return C(o)


def ask(f, z):
    m, mine = f.me(z), f.own[0] == "my"
    if z:
        o = [
            f"{m}是什么？",
            f"{m}是多少？",
            f"你还记得{m}吗？",
            f"{m}是什么来着？",
            f"请告诉我{m}。",
            f"请问{m}是什么？",
            f"再说一遍{m}。",
            f"我之前说的{f.zh}是什么？" if mine else f"{m}是什么？",
        ]
        if mine:
            o += {
                "name": ["我叫什么名字？", "我是谁？", "我叫什么？", "你知道我叫什么吗？"] * 2,
                "city": ["我住在哪里？", "我在哪个城市？"],
                "colour": ["我要的是什么颜色？", "我选了什么颜色？"],
                "size": ["我穿多大码？", "我要什么尺码？"],
                "order number": ["订单号是多少？", "我的订单号？", "我的订单号是多少？"],
                "product": ["我买了什么？"],
                "age": ["我多大了？", "我今年几岁？"],
                "budget": ["我最多花多少？"],
                "delivery date": ["什么时候送货？"],
                "favourite food": ["我最喜欢吃什么？"],
                "home town": ["我来自哪里？"],
                "job": ["我做什么工作？"],
            }.get(f.en, [])
        return C(o)
    o = [
        f"What is {m}?",
        f"What is {m}?",
        f"What's {m}?",
        f"what's {m} again?",
        f"Do you remember {m}?",
        f"Can you tell me {m}?",
        f"Please tell me {m}.",
        f"Remind me: what is {m}?",
        f"Could you repeat {m}?",
        f"what is {m}",
        f"And {m}?",
        f"Which {f.en} did I give you?" if mine else f"What is {m}?",
    ]
    if mine:
        o += {
            "name": ["Who am I?", "What's my name?", "Do you know my name?", "What am I called?"],
            "city": ["Where do I live?", "Which city am I in?"],
            "colour": ["Which colour did I choose?", "What colour do I want?"],
            "size": ["What size do I wear?", "Which size do I need?"],
            "order number": ["Which order is it about?", "What was my order number?", "What is the order number?"],
            "product": ["What did I order?", "What did I buy?"],
            "age": ["How old am I?"],
            "budget": ["How much can I spend?"],
            "delivery date": ["When should you deliver?"],
            "favourite food": ["What do I like most?"],
            "home town": ["Where do I come from?"],
            "job": ["What is my job?"],
        }.get(f.en, [])
    return C(o)


def tell(f, z):
    y, v = f.you(z), V(f.v)
    return (
        C([f"{y}是{v}。"] * 4 + [f"您告诉过我，{y}是{v}。"])
        if z
        else C([f"{cap(y)} is {v}."] * 4 + [f"You told me that {y} is {v}."])
    )


def abstain(f, z):
    y = f.you(z)
    return (
        C([f"您还没有告诉我{y}。"] * 3 + [f"我还不知道{y}，您可以告诉我。"])
        if z
        else C([f"You have not told me {y} yet."] * 3 + [f"I don't know {y} yet. You can tell me."])
    )


def ack(fs, z):
    r = R.random()
    f = fs[-1]
    if r < 0.45:
        if z:
            return (
                C(["好的，", "明白，", "收到，", ""])
                + "，".join(f"{g.you(z)}是{V(g.v)}" for g in fs)
                + "。"
                + C(["", "", "还有什么可以帮您？"])
            )
        return (
            C(["Thanks, ", "Got it: ", "Noted: ", "Okay, "])
            + " and ".join(f"{g.you(z)} is {V(g.v)}" for g in fs)
            + "."
            + C(["", "", " How can I help?", " Anything else?"])
        )
    if r < 0.6 and f.en == "name" and len(fs) == 1:
        return (
            C([f"您好，{V(f.v)}！", f"{V(f.v)}，很高兴认识您！"])
            if z
            else C([f"Hello {V(f.v)}!", f"Nice to meet you, {V(f.v)}!"])
        )
    if z:
        return C(["好的，我记住了。", "收到，已经记下。", "明白了，谢谢您告诉我。", "好的，还有什么可以帮您？"])
    return C(
        [
            "Got it, I will remember that.",
            "Thank you, I have noted it.",
            "Okay, noted. Anything else?",
            "Thanks for telling me. How can I help?",
        ]
    )


PRE_E = [
    "",
    "",
    "",
    "",
    "Hi, ",
    "Hello, ",
    "Hi! ",
    "Well, ",
    "Okay, ",
    "By the way, ",
    "Also, ",
    "Please note: ",
    "Please remember that ",
]
PRE_Z = ["", "", "", "", "你好，", "您好，", "嗨，", "对了，", "另外，", "请记住，", "顺便说一下，"]


def say(fs, z):
    if z:
        return C(PRE_Z) + C(["，", "，", "。"]).join(state(f, z) for f in fs) + C(["。", "。", ""])
    j = C([" and ", ", ", ". "])
    s = [state(f, z) for f in fs]
    if j == ". ":
        s = s[:1] + [cap(x) for x in s[1:]]
    t = C(PRE_E) + j.join(s) + C([".", ".", ".", ""])
    return cap(t) if R.random() < 0.8 else t


def correct(f, z):
    """Changes the value; returns (user, assistant). The latest value wins."""
    f.old = f.v
    for _ in range(9):
        f.v = f.mk(z)
        if f.v != f.old:
            break
    m, y, v, w = f.me(z), f.you(z), f.v, f.old
    if R.random() < 0.25:
        return say([f], z), ack([f], z)  # plain restatement
    if z:
        return (
            C(
                [
                    f"不对，{m}是{v}。",
                    f"我说错了，{m}应该是{v}。",
                    f"更正一下，{m}是{v}，不是{w}。",
                    f"抱歉，{m}改成{v}。",
                    f"请把{m}改为{v}。",
                    f"其实{m}是{v}。",
                    f"{m}现在是{v}。",
                ]
            ),
            C([f"好的，已更新，{y}是{V(v)}。", f"明白了，{y}现在是{V(v)}。", "好的，已经更新。"]),
        )
    return (
        C(
            [
                f"Actually, {m} is {v}.",
                f"Sorry, I made a mistake: {m} is {v}.",
                f"Correction: {m} is {v}, not {w}.",
                f"No, {m} is {v}.",
                f"Please change {m} to {v}.",
                f"Wait, {m} should be {v}.",
                f"{cap(m)} is now {v}.",
                f"I meant {v}, not {w}. {cap(m)} is {v}.",
            ]
        ),
        C([f"Updated: {y} is {V(v)}.", f"Okay, {y} is now {V(v)}.", "Okay, I have updated it."]),
    )
