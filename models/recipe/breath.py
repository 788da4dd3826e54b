"""Several facts said in one breath, in more words than phrases.py has, about more things, and all that was told said back."""

from chance import C, R
from everyday import LANDS, LANDS_Z, THINGS, THINGS_Z
from phrases import Fact, V, ask, cap, state
from words import CITY, COL, FIRST, digits, han, pair, pairs, pseudo, v_amt, v_date, v_name, v_num, v_time, v_word


def thing(z):
    return C(THINGS_Z if z else THINGS)


COLOURS = COL + pairs(
    "teal 青色, beige 米色, violet 紫罗兰色, turquoise 青绿色, maroon 栗色, khaki 卡其色, cream 奶油色, lime 柠檬绿, coral 珊瑚色, "
    "ivory 象牙色, dark green 墨绿色, light blue 浅蓝色, bronze 古铜色, lavender 淡紫色, scarlet 猩红色, mint 薄荷绿"
)
# what else a stranger may want remembered: English noun, Chinese noun, value maker
OPEN = [
    ("car", "车", thing),
    ("hobby", "爱好", thing),
    ("school", "学校", v_word),
    ("team", "球队", v_word),
    ("teacher's name", "老师的名字", v_name),
    ("son's name", "儿子的名字", v_name),
    ("daughter's name", "女儿的名字", v_name),
    ("best friend's name", "好朋友的名字", v_name),
    ("last name", "姓", lambda z: han(1) if z else pseudo().capitalize()),
    ("username", "用户名", lambda z: pseudo() + digits(R.randint(1, 3))),
    ("favourite book", "最喜欢的书", thing),
    ("favourite film", "最喜欢的电影", thing),
    ("favourite animal", "最喜欢的动物", thing),
    ("favourite song", "最喜欢的歌", v_word),
    ("favorite color", "喜欢的颜色", pair(COLOURS)),
    ("favorite food", "爱吃的东西", thing),
    ("lucky number", "幸运数字", v_num),
    ("flight number", "航班号", lambda z: C("ABCDKLMU") + C("ABCDKLMU") + digits(3)),
    ("seat", "座位", lambda z: digits(2) + C("ABCDEF")),
    ("door code", "门禁密码", lambda z: digits(4)),
    ("pin", "密码锁", lambda z: digits(4)),
    ("wifi password", "无线密码", lambda z: pseudo() + digits(2)),
    ("house number", "门牌号", v_num),
    ("height", "身高", lambda z: digits(3) + ("厘米" if z else " cm")),
    ("weight", "体重", lambda z: digits(2) + ("公斤" if z else " kg")),
    ("wedding date", "婚礼日期", v_date),
    ("meeting time", "会议时间", v_time),
    ("salary", "工资", v_amt),
    ("company", "公司", v_word),
    ("country", "国家", lambda z: C(LANDS_Z if z else LANDS)),
    ("secret word", "暗语", thing),
    ("secret", "秘密", thing),
    ("pet", "宠物", thing),
    ("gift", "礼物", thing),
    (
        "address",
        "地址",
        lambda z: C(CITY)[1] + han(2) + "路" + digits(2) + "号" if z else digits(2) + " " + pseudo().capitalize() + " Street",
    ),
    ("ticket number", "工单号", lambda z: digits(5)),
    ("account number", "账号", lambda z: digits(R.randint(5, 8))),
    ("table", "桌子", v_num),
    ("plan", "计划", thing),
    ("password", "密码", thing),
    ("code word", "暗号", thing),
]
NOBODY = ("the", "the", "", "")  # "the password is ..."


class Wide(Fact):
    """A fact whose key and value may be more unusual than a Fact's."""

    def __init__(self, z, key=None):
        r = R.random()
        if key:
            super().__init__(z, key, ("my", "your", "我", "您"))
        elif r < 0.72:
            super().__init__(z, own=("my", "your", "我", "您") if R.random() < 0.6 else None)
        else:
            super().__init__(z, C(OPEN), ("my", "your", "我", "您"))
            if r > 0.96:
                self.own = NOBODY
                self.id = ("the", self.en)
        self.v = self.unusual(z) or self.v

    def unusual(self, z):
        if R.random() > 0.4:
            return None
        if self.en == "name" and not z:
            return C([pseudo(), C(FIRST).lower(), pseudo().capitalize() + " " + pseudo().capitalize(), pseudo(1).capitalize()])
        if self.en == "name":
            return C(["小" + han(1), "老" + han(1), "阿" + han(1), han(2), han(3)])
        if self.en in ("city", "home town"):
            return C([C(LANDS_Z if z else LANDS), han(2) if z else pseudo().capitalize()])
        if self.en in ("product", "item", "favourite food"):
            return thing(z)
        if "colour" in self.en:
            return C(COLOURS)[int(z)]
        return None

    def me(self, z):
        return (self.zh if z else "the " + self.en) if self.own is NOBODY else super().me(z)

    def you(self, z):
        return (self.zh if z else "the " + self.en) if self.own is NOBODY else super().you(z)


SAY = {
    "name": "my name's {}|I'm called {}|the name is {}|I go by {}|you can call me {}|it's {} here|people call me {}|I'm {}|I am {}|I'm {}",
    "city": "I'm based in {}|I am living in {}|I live over in {}|please send it to {}|ship it to {}|I moved to {}|I'm in {} now",
    "order number": "my order is {}|the order number is {}|my order no. is {}|order #{}|regarding order {}|the order is {}|I have order {}",
    "dog's name": "my dog is called {}|I have a dog named {}|my dog is named {}|my dog's called {}",
    "cat's name": "my cat is called {}|I have a cat named {}|my cat is named {}|my cat's called {}",
    "home town": "I'm from {}|I am from {}|I was born in {}|I grew up in {}",
    "favourite colour": "I like {} best|I love the colour {}|the colour I like most is {}|my favorite colour is {}",
    "favourite food": "I love eating {}|I love {}|my favorite food is {}",
    "product": "I ordered the {}|I bought the {}|I got a {}|I ordered a {}",
    "email": "you can reach me at {}|write to me at {}|my mail is {}",
    "phone number": "call me at {}|my phone is {}|you can call me on {}",
    "age": "I'm {} years old|I just turned {}",
    "job": "I'm a {}|I am a {}|I work as {}",
    "budget": "I have {} to spend|I don't want to spend more than {}",
    "size": "my size is {}|I take size {}|size {} please",
    "colour": "I want the {} one|in {} please|I'd like it in {}",
    "delivery date": "it should arrive on {}|I need it by {}",
    "son's name": "my son is called {}|I have a son named {}",
    "daughter's name": "my daughter is called {}|I have a daughter named {}",
}
SAY_Z = {
    "name": "我的名字叫{}|叫我{}吧|我姓名是{}|我是{}|我叫{}|本人{}",
    "city": "我家在{}|我在{}住|人在{}|寄到{}|送到{}|我搬到{}了",
    "order number": "单号是{}|订单是{}|订单号为{}|我的单号{}|订单编号{}",
    "dog's name": "我的狗叫{}|我有只狗叫{}|我家狗叫{}",
    "cat's name": "我的猫叫{}|我有只猫叫{}|我家猫叫{}",
    "home town": "我是{}人|我老家在{}|我在{}长大",
    "favourite colour": "我最爱{}|我最喜欢{}",
    "favorite color": "我喜欢{}|我喜欢的颜色是{}",
    "product": "我买的是{}|我订了{}|我下单了{}",
    "phone number": "我的手机是{}|打我电话{}|手机号{}",
    "email": "我的邮箱{}|发邮件到{}",
    "size": "尺码{}|我穿{}的",
    "colour": "想要一件{}的|要{}的|颜色选{}",
    "delivery date": "{}送到就行|希望{}送货",
}
ASK = {
    "name": "tell me my name|do you remember who I am|what do you call me|say my name|do you know who I am|my name?|what was my name|and who am I",
    "city": "where am I living|what city do I live in|in which city do I live|do you know where I live|where should you send it|where do i live",
    "order number": "what order number did I give you|my order number?|which order number was it|what was the number|what's the number of my order"
    "|what order did I mention|repeat my order number",
    "dog's name": "what is my dog called|what's my dog called|how is my dog called|do you know my dog's name",
    "cat's name": "what is my cat called|what's my cat called|how is my cat called|do you know my cat's name",
    "home town": "where am I from|where was I born|where did I grow up|do you know where I come from",
    "favourite colour": "what colour do I like|which colour do I like best|what is my favorite colour",
    "favourite food": "what do I like to eat|what food do I love",
    "product": "what did I order|what was it I bought|which product did I order|what have I bought",
    "email": "how can you reach me|what mail did I give you",
    "phone number": "what number can you call me on|my phone number?",
    "age": "do you know how old I am|what age am I",
    "job": "what do I do for a living|what do I work as",
    "budget": "what can I spend|how much money do I have",
    "size": "what size am I|my size?",
    "colour": "what colour was it|which colour did I want|what colour did I ask for",
    "delivery date": "when should it arrive|when do I need it",
}
ASK_Z = {
    "name": "我叫什么|你知道我是谁吗|还记得我是谁吗|我的名字|怎么称呼我|我是谁啊|你记得我叫什么吗",
    "city": "我住哪里|我住哪|我家在哪|我人在哪里|寄到哪里|我住在什么地方",
    "order number": "我的单号是多少|单号是什么|我的单号|刚才的订单号是多少|我说的订单号是什么|订单编号是多少",
    "dog's name": "我的狗叫什么|我家狗叫什么|我的狗叫啥",
    "cat's name": "我的猫叫什么|我家猫叫什么|我的猫叫啥",
    "home town": "我是哪里人|我老家在哪|我在哪长大",
    "favourite colour": "我最爱什么颜色|我最喜欢什么颜色",
    "favorite color": "我喜欢什么颜色|我喜欢的颜色是什么",
    "product": "我买的是什么|我订了什么|我买了啥",
    "phone number": "我的手机号是多少|我电话多少",
    "email": "邮箱是什么",
    "size": "我穿多大的|尺码是多少",
    "colour": "我要什么颜色|要什么颜色的|我选的颜色是什么",
    "delivery date": "哪天送货|希望哪天送",
}


def stated(f, z):
    more = (SAY_Z if z else SAY).get(f.en)
    if more and f.own[0] == "my" and R.random() < 0.5:
        return C(more.split("|")).replace("{}", f.v)
    return state(f, z)


def asked(f, z):
    more = (ASK_Z if z else ASK).get(f.en)
    if more and f.own[0] == "my" and R.random() < 0.45:
        q = C(more.split("|"))
        return q + C(["？", "？", ""]) if z else C([q, cap(q)]) + C(["?", "?", ""])
    if f.own is NOBODY:
        if z:
            return C(["{}是什么？", "{}是多少？", "你还记得{}吗？", "请告诉我{}。", "{}呢？"]).format(f.zh)
        return C(["What is the {}?", "what's the {}", "Do you remember the {}?", "Tell me the {}.", "And the {}?"]).format(f.en)
    return ask(f, z)


START = [
    "",
    "",
    "",
    "",
    "",
    "Hi, ",
    "Hello, ",
    "Hi! ",
    "Hello! ",
    "hey, ",
    "Hey, ",
    "Good morning, ",
    "Remember this: ",
    "Please remember: ",
    "FYI ",
]
START_Z = ["", "", "", "", "", "你好，", "您好，", "你好", "嗨，", "你好！", "请记住：", "记住，", "帮我记一下，", "早上好，"]
JOINTS = [" and ", " and ", ", ", ", ", ". ", ", and ", " and also ", "; ", " but ", " — ", ", oh and "]
JOINTS_Z = ["，", "，", "，", "。", "，还有", "，而且", " ", "；", "，另外"]


def breath(fs, z):
    """One message that states all of fs."""
    said = [stated(f, z) for f in fs]
    joints = [C(JOINTS_Z if z else JOINTS) for _ in said[1:]]
    if not z and len(said) > 2 and R.random() < 0.6:
        joints = [", "] * (len(said) - 2) + [" and "]
    text = C(START_Z if z else START) + said[0]
    for joint, one in zip(joints, said[1:]):
        text += joint + (cap(one) if joint == ". " else one)
    if z:
        return text + C(["。", "。", "", "！"])
    return (cap(text) if R.random() < 0.75 else text) + C([".", ".", "", "!"])


def told(fs, z):
    """All of fs, said back."""
    if z:
        return "，".join(f"{f.you(z)}是{V(f.v)}" for f in fs) + "。"
    each = [f"{f.you(z)} is {V(f.v)}" for f in fs]
    return (", ".join(each[:-1]) + " and " + each[-1] if len(each) > 1 else each[0]) + "."


def thanks_for(fs, z):
    return ("好的，" if z else "Thanks, ") + told(fs, z)


def all_asked(fs, z):
    """-> (user, answer): everything that the user has told."""
    if z:
        q = C(
            [
                "你知道我的哪些信息？",
                "你记得我说过什么？",
                "我告诉过你什么？",
                "你知道我什么",
                "总结一下我的信息。",
                "你都记住了什么？",
            ]
        )
        return q, told(fs, z) if fs else "您还没有告诉我任何信息。"
    q = C(
        [
            "What do you know about me?",
            "What did I tell you?",
            "what do you remember about me",
            "What have I told you so far?",
            "Sum up what I told you.",
        ]
        + ["tell me everything you know about me", "Do you remember what I told you?", "List what I told you."]
    )
    return q, cap(told(fs, z)) if fs else "You have not told me anything about yourself yet."
