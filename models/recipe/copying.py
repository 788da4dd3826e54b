"""Phrases to repeat that no list of the shop's has: everyday and made-up words, capitals, punctuation, codes, accents, smileys."""

from chance import C, R
from everyday import DEEDS, DEEDS_Z, LANDS, LANDS_Z, QUALITIES, SUBJECTS, THINGS, THINGS_Z
from outside import question, remark
from phrases import V
from words import FIRST, digits, han, pseudo, v_mail, v_order

ACCENTS = "café naïve déjà über señor jalapeño São Zoë crème fiancé Dvořák Ångström façade résumé piñata Kraków Tromsø".split()
SMILEYS = "🙂😀😂😍🤔👍❤🎉🔥😢🐱🍕✨🚀🍀🌍🐶⭐🎂🏠💡📦🌸🍎"
SAYINGS = "hello world|good luck|see you soon|happy birthday|I love you|time flies|no way|once upon a time|to be continued|have fun".split(
    "|"
)
SAYINGS_Z = "你好世界|生日快乐|一路平安|祝你好运|我爱你|从前有座山|明天见|好久不见|恭喜发财|身体健康".split("|")


def letters(n):
    return "".join(C("abcdefghijklmnopqrstuvwxyz") for _ in range(n))


def code():
    return C(
        [
            v_order(0),
            v_mail(0),
            letters(3) + C("_-./") + letters(3),
            letters(2).upper() + digits(3),
            digits(1) + "." + digits(3),
            "@" + letters(5),
            "#" + pseudo(),
            digits(2) + "%",
            "$" + digits(3),
            pseudo().capitalize() + pseudo().capitalize(),
            "(" + pseudo() + ")",
        ]
    )


def word():
    w = C(
        [
            lambda: C(THINGS),
            lambda: C(THINGS),
            lambda: C(QUALITIES),
            lambda: C(SUBJECTS),
            lambda: C(DEEDS).split(" ")[0],
            pseudo,
            lambda: pseudo(R.randint(3, 6)),
            lambda: letters(R.randint(1, 9)),
            lambda: C(FIRST),
            lambda: C(LANDS),
            lambda: digits(R.randint(1, 6)),
            code,
            lambda: C(ACCENTS),
            lambda: C("the a of and to in is it my you not with for on at".split()),
        ]
    )()
    r = R.random()
    return w.upper() if r < 0.06 else w.capitalize() if r < 0.16 else w


def phrase(z, most):
    r = R.random()
    n = R.randint(1, most)
    if r < 0.22:
        p = question(z) if R.random() < 0.6 else remark(z)
        return p + C("。！？" if z else ".!?") if R.random() < 0.5 else p
    if z:
        if r < 0.3:
            return C(SAYINGS_Z) + C(["", "！", "。"])
        parts = [lambda: han(R.randint(1, 4)), lambda: C(THINGS_Z), lambda: C(DEEDS_Z), lambda: C(LANDS_Z), lambda: han(1)]
        if r > 0.8:
            parts += [word, lambda: " " + word() + " ", lambda: C(SMILEYS), lambda: digits(3)]
        return "".join(C(parts)() + C(["", "", "", "", "，", "、"]) for _ in range(max(1, n // 2))).strip("，、 ")
    if r < 0.28:
        return C(SAYINGS) + C(["", "!", "."])
    if r < 0.36:
        return C([" ", ", ", "-"]).join(C("abcdefghijklmnopqrstuvwxyz") for _ in range(R.randint(2, 9)))
    if r < 0.42:
        return letters(R.randint(4, 20))
    text = ""
    for i in range(n):
        text += word()
        if i < n - 1:
            text += C([", ", ". ", " - ", ": ", "; "]) if R.random() < 0.1 else " "
    if R.random() < 0.3:
        text = text[:1].upper() + text[1:] + C([".", "!", "?", "..."])
    if R.random() < 0.12:
        text += C(["", " "]) + "".join(C(SMILEYS) for _ in range(R.randint(1, 3)))
    return text


FRAMES = """Repeat after me: |Repeat: |Please repeat: |Say: |say |Say |Echo: |echo |repeat this: |Repeat this: |Please say: |repeat after me |repeat
Repeat the following: |repeat the words: |Copy this: |copy: |Say this: |Now say: |Can you repeat this: |Say exactly: """
FRAMES_Z = "重复：|请重复：|跟我说：|请重复这句话：|跟我念：|请说：|说：|复述：|重复一遍：|重复 |照着说：|跟着我说：|重复这句："
FRAMES = [f for line in FRAMES.splitlines() for f in line.split("|")]
FRAMES = [f if f.endswith(" ") else f + " " for f in FRAMES]
FRAMES_Z = FRAMES_Z.split("|")


def copy(z, most=12):
    """-> (user, answer)"""
    p = phrase(z, most)
    if R.random() < 0.2 and not set(p) & set('"“”'):
        u = (
            C(["请说“{}”", "重复“{}”", "请重复“{}”", "说“{}”"])
            if z
            else C(['Please say "{}"', 'Say "{}"', 'Can you say "{}"?', 'repeat "{}"', "Say '{}'"])
        )
        return u.replace("{}", p), V(p)
    return C(FRAMES_Z if z else FRAMES) + p, V(p)
