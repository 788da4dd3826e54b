"""Held-out trials of what chat.py teaches: cases with fresh values, and newcomer.py's hand-written messages."""

import newcomer
import outside as beyond
from breath import Wide, asked, breath, thanks_for
from chance import C, R
from copying import phrase
from phrases import Fact, ack, ask, say
from shop import ask_number, topic, where
from typed import greeted, untidy

KINDS = [("breath", 2), ("breath", 4), ("hasty", 1), ("greeted", 0), ("order", 0), ("outside", 0), ("rare", 0)]


def case(kind, z, count):
    """-> (dialogue ending with a user turn, what the answer must have in it or be, "=" where it must be that)."""
    if kind == "breath":  # the first of several facts said in one message
        facts = {}
        while len(facts) < count:
            f = Wide(z)
            facts.setdefault(f.id, f)
        facts = list(facts.values())
        d = [("user", breath(facts, z)), ("assistant", C([thanks_for, ack])(facts, z))]
        return d + [("user", asked(facts[0], z))], facts[0].v, None
    if kind == "hasty":
        f = Fact(z)
        f.v = f.v.lower()
        d = [("user", untidy(say([f], z), z, [f.v])), ("assistant", ack([f], z))]
        return d + [("user", untidy(ask(f, z), z, [f.en]))], f.v, None
    if kind == "greeted":
        user, answer = topic(z, {})
        while len(user) < (5 if z else 14):
            user, answer = topic(z, {})
        return [("user", greeted(untidy(user, z), z))], answer.replace("\x01", "").replace("\x02", ""), "="
    if kind == "order":
        return [("user", greeted(untidy(where(z), z), z))], ask_number(z), "="
    if kind == "outside":
        return [("user", untidy(beyond.question(z), z))], "小型演示模型" if z else "small demo model", None
    if kind == "rare":
        p = phrase(z, 8)
        return (
            [
                (
                    "user",
                    (C(["重复：", "跟我说：", "请重复："]) if z else C(["Repeat after me: ", "Say: ", "Please repeat: "])) + p,
                )
            ],
            p,
            "=",
        )
    raise ValueError(kind)


def chinese(text):
    return any("\u4e00" <= c <= "\u9fff" for c in text)


def newcomers(answer):
    """answer: a function from a list of dialogues to (answer, whether it ended). -> {cell: share}, failures"""
    results, failures = {}, []

    def score(name, users, dialogues, wanted):
        for z in (False, True):
            mine = [i for i, u in enumerate(users) if chinese(u) == z]
            right = 0
            for i, (text, ended) in zip(mine, answer([dialogues[i] for i in mine])):
                fine = ended and wanted(i, text)
                right += fine
                if not fine:
                    failures.append({"kind": name, "zh": z, "user": users[i], "got": text})
            results[f"{name} {'zh' if z else 'en'}"] = right / len(mine)

    one = lambda users: [[("user", u)] for u in users]
    users = [u for u, _ in newcomer.SUBJECT]
    score("newcomer subject", users, one(users), lambda i, a: any(w in a for w in newcomer.SUBJECT[i][1]))
    sane = newcomer.DEMO + ["I speak a little English and Chinese"]
    score("newcomer outside", newcomer.OUTSIDE, one(newcomer.OUTSIDE), lambda i, a: any(w in a for w in sane))
    users = [u + t + ("”" if u.endswith("“") else "") for u, t in newcomer.COPIES]
    score("newcomer copy", users, one(users), lambda i, a: a.strip() == newcomer.COPIES[i][1])
    talks = [[] for _ in newcomer.TALKS]
    for turn in range(max(len(t) for t, _ in newcomer.TALKS) - 1):
        going = [i for i, (t, _) in enumerate(newcomer.TALKS) if turn < len(t) - 1]
        for i in going:
            talks[i].append(("user", newcomer.TALKS[i][0][turn]))
        for i, (text, _) in zip(going, answer([talks[i] for i in going])):
            talks[i].append(("assistant", text))
    for d, (t, _) in zip(talks, newcomer.TALKS):
        d.append(("user", t[-1]))
    users = [" / ".join(t) for t, _ in newcomer.TALKS]
    score("newcomer talk", users, talks, lambda i, a: any(w in a for w in newcomer.TALKS[i][1]))
    return results, failures
