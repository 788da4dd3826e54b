"""Makes a user's text look typed by hand: greetings before it, lower case, missing punctuation, short forms, slips of the finger."""

from chance import C, R

GREETINGS = "Hi, |Hello, |Hey, |Hi! |Hello! |Hey! |hi |hello |hey |Hi there, |Hi there! |Good morning, |Good evening! |Excuse me, ".split(
    "|"
)
LEADS = "I have a question: |quick question, |Sorry, |Please, |Can you tell me: |so |um, |ok |well, |Hello, I have a question. |Hi, I need help. ".split(
    "|"
)
GREETINGS_Z = "你好，|您好，|嗨，|你好！|您好！|你好 |哈喽，|早上好，|晚上好，|在吗，|嗨！".split("|")
LEADS_Z = "请问|请问一下，|我想问一下，|想问下|麻烦问一下，|那个，|不好意思，|你好，请问|您好，我想问".split("|")
SHORT = [
    ("what is", "whats"),
    ("What is", "Whats"),
    ("what's", "whats"),
    ("I'm", "im"),
    ("I am", "im"),
    ("you", "u"),
    ("are ", "r "),
    ("please", "pls"),
    ("Please", "Pls"),
    ("don't", "dont"),
    ("can't", "cant"),
    ("colour", "color"),
    ("favourite", "favorite"),
    ("doesn't", "doesnt"),
    ("isn't", "isnt"),
    ("thanks", "thx"),
    ("because", "cuz"),
    ("tomorrow", "tmrw"),
]
FILLERS = "so ok just guys really actually like now maybe well again then also exactly um even kindly anyway hey still".split()
FILLERS_Z = "那 那么 请问 到底 都 就 嗯 哎 其实 现在 我想问 麻烦 不好意思 那个".split()
ENDINGS = ["!!", "??", "...", " :)", " please", " pls", " thanks", "?!", "!", " thank you"]
ENDINGS_Z = ["！！", "？？", "。。。", "呢", "呀", "啊", "谢谢", "~", "!", "?"]


def slip(word):
    """One letter lost, doubled or swapped with the next."""
    i = R.randint(1, len(word) - 2)
    return C([word[:i] + word[i + 1 :], word[:i] + word[i] + word[i:], word[:i] + word[i + 1] + word[i] + word[i + 2 :]])


def untidy(text, z, values=()):
    """text with some of the marks of haste; the values in it stay as they are."""
    r = R.random()
    if z:
        if r < 0.45:
            return text
        text = text.rstrip("。？！")
        if R.random() < 0.12:
            text = C(FILLERS_Z) + text
        if r < 0.6:
            text = text.replace("，", C([" ", ",", "，"]))
        return text + (C(ENDINGS_Z) if r > 0.85 else "")
    if r < 0.35:
        return text
    if r < 0.9 and not any(v != v.lower() for v in values):
        text = text.lower()
    if R.random() < 0.6:
        text = text.rstrip(".?!")
    if R.random() < 0.3:
        for long, short in SHORT:
            if long in text and R.random() < 0.6 and not any(long in v for v in values):
                text = text.replace(long, short)
    if not values and R.random() < 0.2:
        words = text.split(" ")
        words.insert(R.randint(0, len(words)), C(FILLERS))
        text = " ".join(words)
    if R.random() < 0.12:
        words = text.split(" ")
        i = R.randrange(len(words))
        if len(words[i]) > 3 and words[i].isalpha() and not any(words[i] in v for v in values):
            words[i] = slip(words[i])
            text = " ".join(words)
    if R.random() < 0.12 and not (values and text.endswith(values[-1])):
        text = text.rstrip(".?!") + C(ENDINGS)
    return text


def greeted(text, z):
    """The same after a greeting or a hesitation."""
    if z:
        return C(GREETINGS_Z if R.random() < 0.6 else LEADS_Z) + text
    start = C(GREETINGS if R.random() < 0.7 else LEADS)
    if start.strip()[-1] in ",:" or start == start.lower():
        first = text.split(" ")[0]
        if first not in ("I", "I'm") and first[1:].islower():
            text = text[:1].lower() + text[1:]
    return start + text
