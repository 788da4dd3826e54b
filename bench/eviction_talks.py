"""Talks whose cache is to be evicted, and the questions that come afterwards, from the generators of the bundled model's dialogues
(models/recipe): English and Chinese, what is asked was said 1 to 10 turns before. Seeded; needs Python alone."""
import os
import random
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "models", "recipe"))
import gen
import phrases
import topics
from breath import Wide, asked, breath, thanks_for
from chance import C, R, set_rng

TURNS = 11
FACTS = 5  # of a talk all of which are asked
TOLD_LATER = ("x", "x")  # in a set of facts to avoid: there are several
# What is asked, and how many turns before: a fact, one of several said in one breath, a fact that was corrected, five facts of
# the same evicted cache, and something that was never said.
CELLS = [("recall", age) for age in (1, 2, 4, 6, 8, 10)] + [
    ("breath", 2), ("breath", 6), ("latest", 2), ("latest", 6), ("several", 0), ("unknown", 0)]


def told(fact, chinese):
    return [("user", phrases.say([fact], chinese)), ("assistant", phrases.ack([fact], chinese))]


def filler(chinese, turns, avoid):
    """So many turns that never touch the facts in `avoid`."""
    out, other = [], []
    only = next(iter(avoid))[1] if len(avoid) == 1 else None
    while turns > 0:
        chance = R.random()
        if chance < 0.4:
            fact = phrases.Fact(chinese)
            if fact.id in avoid or fact.en == only:
                continue
            avoid.add(fact.id)
            other.append(fact)
            out += told(fact, chinese)
        elif chance < 0.5 and other:
            out += [("user", phrases.ask(other[-1], chinese)), ("assistant", phrases.tell(other[-1], chinese))]
        elif chance < 0.8:
            out += zip(("user", "assistant"), topics.topic(chinese, {}))
        elif chance < 0.9:
            out += zip(("user", "assistant"), topics.deflect(chinese))
        else:
            out += zip(("user", "assistant"), gen.echo(chinese))
        turns -= 1
    return out


def facts_apart(make, count, key):
    facts = {}
    while len(facts) < count:
        fact = make()
        facts.setdefault(key(fact), fact)
    return list(facts.values())


def several(chinese, dice):
    facts = facts_apart(lambda: phrases.Fact(chinese), FACTS, lambda f: f.en)
    avoid = {f.id for f in facts} | {TOLD_LATER}
    turns = [told(f, chinese) for f in facts] + [filler(chinese, 1, set(avoid)) for _ in range(TURNS - FACTS)]
    dice.shuffle(turns)
    return sum(turns, []), [(phrases.ask(f, chinese), f.v, phrases.tell(f, chinese)) for f in facts]


def in_one_breath(age, chinese, dice):
    facts = facts_apart(lambda: Wide(chinese), dice.randint(2, 4), lambda f: f.id)
    avoid = {f.id for f in facts} | {TOLD_LATER}
    messages = filler(chinese, TURNS - age, avoid)
    messages += [("user", breath(facts, chinese)), ("assistant", C([thanks_for, phrases.ack])(facts, chinese))]
    messages += filler(chinese, age - 1, avoid)
    fact = C(facts)
    return messages, [(asked(fact, chinese), fact.v, phrases.tell(fact, chinese))]


def talk(kind, age, chinese, dice):
    """-> messages, the last one the assistant's; [(question, the value wanted or None, an answer)]"""
    set_rng(dice)
    if kind == "several":
        return several(chinese, dice)
    if kind == "breath":
        return in_one_breath(age, chinese, dice)
    fact = phrases.Fact(chinese)
    question = phrases.ask(fact, chinese)
    avoid = {fact.id}
    if kind == "unknown":
        return filler(chinese, TURNS, avoid), [(question, None, phrases.abstain(fact, chinese))]
    if kind == "recall":
        messages = filler(chinese, TURNS - age, avoid) + told(fact, chinese)
    else:  # latest
        between = dice.randint(0, 2)
        messages = filler(chinese, max(0, TURNS - age - between - 1), avoid) + told(fact, chinese)
        messages += filler(chinese, between, avoid)
        messages += zip(("user", "assistant"), phrases.correct(fact, chinese))
    return messages + filler(chinese, age - 1, avoid), [(question, fact.v, phrases.tell(fact, chinese))]


def is_right(wanted, answer, chinese):
    """models/recipe/eval.py's check: the value stands in the answer, and not as a part of a longer number."""
    if wanted is None:
        said = ("还没有告诉我", "还不知道") if chinese else ("have not told me", "don't know")
        return any(s in answer for s in said)
    digits = lambda a, b: a.isdigit() and b.isdigit()
    for at in range(len(answer)):
        end = at + len(wanted)
        if answer.startswith(wanted, at) and not (at > 0 and digits(answer[at - 1], wanted[0])) \
                and not (end < len(answer) and digits(answer[end], wanted[-1])):
            return True
    return False


def rendered(messages, system=""):
    """ChatML."""
    text = f"<|im_start|>system\n{system}<|im_end|>\n" if system else ""
    text += "".join(f"<|im_start|>{role}\n{words}<|im_end|>\n" for role, words in messages)
    return unmarked(text)


def unmarked(text):
    """Without the generators' marks around values."""
    return text.replace("\x01", "").replace("\x02", "")


def rendered_question(question, empty_thought):
    thought = "<think>\n\n</think>\n\n" if empty_thought else ""
    return f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n" + thought


def samples(cells, talks, seed, languages=(False, True), system=""):
    """So many talks of each cell, languages in turn: dicts of kind, age, chinese, talk, questions, wanted,
    expected."""
    for i in range(talks):
        for kind, age in cells:
            chinese = languages[i % len(languages)]
            dice = random.Random(f"{seed}{kind}{age}{i}")
            messages, asked_for = talk(kind, age, chinese, dice)
            yield {"kind": kind, "age": age, "chinese": chinese, "talk": rendered(messages, system),
                   "questions": [rendered_question(q, (i // 2 + j) % 2) for j, (q, *_) in enumerate(asked_for)],
                   "wanted": [value for _, value, _ in asked_for],
                   "expected": [unmarked(answer) + "<|im_end|>" for *_, answer in asked_for]}
