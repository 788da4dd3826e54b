#!/usr/bin/python3
"""Conversations as strangers have them: the second half of the training. Facts in one breath, hasty typing, greetings, questions
outside of the subject, orders with and without a number, unusual copies, tools, up to 1,024 tokens.

chat.py [N [SEED]]    prints N documents
"""

import random
import sys

import gen
from breath import Wide, all_asked, asked, breath, thanks_for
from chance import C, R, set_rng
from copying import copy
from everyday import THINGS, THINGS_Z
from outside import outside, unknown_topic
from phrases import V, abstain, ack, correct, say, tell
from shop import ask_number, change, give_number, no_number, noted, topic, where
from tools import tools
from topics import deflect
from typed import greeted, untidy
from words import KEYS, OWN

MINE = OWN[0]
NAME = next(k for k in KEYS if k[0] == "name")
NUMBER = ("my", "order number")
SYSTEMS = gen.SYS_E + [
    "You are a helpful, respectful and honest assistant.",
    "Be brief.",
    "You are a friendly chatbot.",
    "You are a shop's assistant.",
]
SYSTEMS_Z = gen.SYS_Z + ["你是一个友好的聊天机器人。", "请用中文简短回答。", "你是商店的助手。"]


class Conversation:
    def __init__(self, z, hasty):
        self.z, self.hasty = z, hasty  # hasty: the share of messages that are typed in haste
        self.facts, self.out, self.known = [], [], {}
        self.previous = None

    def add(self, user, answer, values=(), tidy=False, greet=0.0):
        if not tidy and R.random() < self.hasty:
            user = untidy(user, self.z, values)
        if R.random() < greet:
            user = greeted(user, self.z)
        self.out += [("user", user), ("assistant", answer)]
        self.previous = user

    def new_facts(self, count):
        fresh = []
        named = count > 1 and R.random() < 0.4  # people begin with their name
        for i in range(count):
            f = Wide(self.z, key=NAME if named and i == 0 else None)
            if f.id not in [g.id for g in self.facts]:
                self.facts.append(f)
                fresh.append(f)
        if fresh and R.random() < 0.25 * self.hasty:
            for f in fresh:
                f.v = f.v.lower()
        return fresh

    def order(self):
        return next((f for f in self.facts if f.id == NUMBER), None)

    def tell_facts(self):
        fresh = self.new_facts(C([1, 1, 1, 2, 2, 2, 3, 3, 4] if len(self.facts) < 8 else [1, 2]))
        if not fresh:
            return self.topic()
        z = self.z
        user = say(fresh, z) if R.random() < 0.2 and all(f.own[0] != "the" for f in fresh) else breath(fresh, z)
        answer = thanks_for(fresh, z) if R.random() < (0.6 if len(fresh) > 1 else 0.3) else ack(fresh, z)
        if R.random() < 0.1:
            f = C(fresh)
            user += ("" if z else ("" if user[-1] in ".!?" else ".") + " ") + asked(f, z)
            answer = tell(f, z)
        self.add(user, answer, [f.v for f in fresh])
        if len(fresh) > 1 and R.random() < 0.55:  # soon asked for what was said in one breath
            for f in R.sample(fresh, R.randint(1, len(fresh))):
                if R.random() < 0.25:
                    self.other()
                self.add(asked(f, z), tell(f, z), [f.en], greet=0.03)

    def ask(self):
        z = self.z
        if self.facts and R.random() < 0.72:
            if R.random() < 0.05 and len(self.facts) < 5 and all(f.z == z for f in self.facts):
                return self.add(*all_asked(self.facts, z))
            f = C(self.facts)
            return self.add(asked(f, z), tell(f, z), [f.en], greet=0.08)
        if not self.facts and R.random() < 0.06:
            return self.add(*all_asked([], z))
        f = gen.near_miss(self.facts, z) if self.facts and R.random() < 0.4 else Wide(z)
        if f.id in [g.id for g in self.facts]:
            return self.topic()
        self.add(asked(f, z), abstain(f, z), [f.en], greet=0.08)

    def correct(self):
        if not self.facts:
            return self.tell_facts()
        f = C(self.facts)
        user, answer = correct(f, self.z)
        self.add(user, answer, [f.v, f.old])

    def topic(self):
        user, answer = topic(self.z, self.known)
        self.add(user, answer, greet=0.12 if len(user) > 12 or self.z and len(user) > 4 else 0)

    def outside(self):
        if R.random() < 0.2:
            user, answer = C([deflect, unknown_topic])(self.z)
            return self.add(user, answer, greet=0.12)
        user, answer, untidiable = outside(self.z)
        self.add(user, answer, tidy=not untidiable, greet=0.12 if untidiable else 0)

    def other(self):
        C([self.topic, self.outside, self.topic])()

    def orders(self):
        z, known = self.z, self.order()
        r = R.random()
        if r < 0.2:  # a number in the question itself
            f = known if known and R.random() < 0.5 and known.z == z else Wide.__new__(Wide)
            if f is not known:
                gen.Fact.__init__(f, z, KEYS[0], MINE)
                if known:
                    self.facts.remove(known)
                self.facts.append(f)
            return self.add(*gen.status(f, z), [f.v], greet=0.2)
        if r < 0.35:
            user, answer = change(z)
            if known:
                answer = (
                    f"演示中无法更改订单，但我已记下订单{V(known.v)}。"
                    if z
                    else (f"I cannot change orders in this demo, but I have noted order {V(known.v)}.")
                )
            self.add(user, answer, greet=0.2)
        elif known:
            return self.add(where(z), noted(known.v, z), greet=0.25)
        else:
            self.add(where(z), ask_number(z), greet=0.3)
        if not known:
            r = R.random()
            if r < 0.6:
                self.number_given()
            elif r < 0.72:
                self.add(*no_number(z))

    def number_given(self):
        f = Wide.__new__(Wide)
        gen.Fact.__init__(f, self.z, KEYS[0], MINE)
        self.facts = [g for g in self.facts if g.id != NUMBER] + [f]
        self.add(give_number(f.v, self.z), noted(f.v, self.z), [f.v])

    def copy(self):
        self.add(*copy(self.z), tidy=True)

    def said(self):
        if not self.previous or len(self.previous) > 60:
            return self.topic()
        z = self.z
        self.add(
            *(
                (C(["我刚才说了什么？", "我上一句话是什么？"]), f"您刚才说：{V(self.previous)}")
                if z
                else (C(["What did I just say?", "What was my last message?"]), f"You said: {V(self.previous)}")
            )
        )


TURNS = [  # what happens in a turn, and how often
    (Conversation.tell_facts, 20),
    (Conversation.ask, 26),
    (Conversation.correct, 6),
    (Conversation.topic, 18),
    (Conversation.outside, 17),
    (Conversation.orders, 9),
    (Conversation.copy, 5),
    (Conversation.said, 1),
]


def conversation(z, turns):
    talk = Conversation(z, C([0.0, 0.5, 0.9]))
    if R.random() < 0.25:
        someone = C(THINGS_Z if z else THINGS)
        system = (
            C(SYSTEMS_Z if z else SYSTEMS)
            if R.random() < 0.7
            else C(["你是{}。", "你扮演{}。"] if z else ["You are a {}.", "Act like a {}."])
        )
        talk.out.append(("system", system.replace("{}", someone).format(shop=someone)))
    if turns < 3 and R.random() < 0.1:  # a number out of nowhere
        talk.number_given()
    while len(talk.out) < 2 * turns:
        if R.random() < 0.02:
            talk.z = not talk.z
        R.choices([t for t, _ in TURNS], [w for _, w in TURNS])[0](talk)
    return talk.out


def sample(stage, rng):
    """One document. stage 3: up to 512 tokens; 4: up to 1,024."""
    set_rng(rng)
    z = R.random() < 0.5
    r = R.random()
    if r < 0.14:
        return gen.sample(2, rng)
    if r < 0.20:
        return gen.recall_list(z, R.randint(1, 6 if stage == 3 else 14))
    if r < 0.26:
        return [x for _ in range(R.randint(1, 4)) for x in zip(("user", "assistant"), copy(z, C([4, 8, 16, 24])))]
    if r < 0.30:
        return tools(z)
    if r < 0.54:
        return conversation(z, R.randint(1, 2))
    return conversation(z, R.randint(2, 12) if stage == 3 else R.randint(6, 30))


if __name__ == "__main__":
    rng = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 5):
        for text, _ in gen.render(sample(3, rng), rng):
            print(text.replace("\x01", "[").replace("\x02", "]"), end="")
        print("<|endoftext|>\n" + "-" * 60)
