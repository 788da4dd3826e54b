"""Fixed topics (questions in many words, their answers), and polite refusals of everything else."""

from chance import C, R
from phrases import V
from words import han, pairs, pseudo

# questions and answers in English, questions and answers in Chinese
TOP = [
    (
        ["Hi", "Hello", "Hello!", "Hey there", "Good morning", "hi there!", "Good evening", "hey"],
        ["Hello! How can I help you today?", "Hi! What can I do for you?"],
        ["你好", "您好", "你好！", "嗨", "早上好", "晚上好", "在吗？", "哈喽"],
        ["您好！请问有什么可以帮您？", "你好！我能为您做什么？"],
    ),
    (
        ["Thanks", "Thank you", "Thanks a lot!", "Great, thank you.", "That helps, thanks", "thx", "Perfect, thank you!"],
        ["You're welcome! Anything else?", "Happy to help!"],
        ["谢谢", "谢谢你", "多谢！", "好的，谢谢。", "太感谢了", "非常感谢！"],
        ["不客气！还有什么可以帮您？", "很高兴能帮到您！"],
    ),
    (
        ["Bye", "Goodbye!", "See you", "That's all, bye.", "Nothing else, thanks", "Have a nice day"],
        ["Goodbye! Have a nice day.", "Bye! Come back any time."],
        ["再见", "拜拜", "没有别的了，再见。", "下次见", "没事了"],
        ["再见！祝您愉快。", "再见，欢迎再来！"],
    ),
    (
        [
            "Who are you?",
            "What are you?",
            "Are you a robot?",
            "Are you a human?",
            "Tell me about yourself.",
            "What's your name?",
            "What model are you?",
            "Are you ChatGPT?",
            "Who made you?",
            "introduce yourself",
        ],
        ["I am Troupe's demo model, a very small language model that runs with no download."],
        [
            "你是谁？",
            "你是什么？",
            "你是机器人吗？",
            "你是人吗？",
            "介绍一下你自己。",
            "你叫什么名字？",
            "你是什么模型？",
            "谁开发了你？",
            "你叫什么？",
        ],
        ["我是 Troupe 的演示模型，一个不用下载就能运行的小型语言模型。"],
    ),
    (
        ["What can you do?", "How can you help me?", "Help", "What are you good at?", "what do you know?", "Can you help me?"],
        ["I can answer simple shop questions, remember what you tell me and repeat it later."],
        ["你能做什么？", "你会什么？", "帮助", "你能帮我什么？", "你有什么功能？", "可以帮我吗？"],
        ["我可以回答简单的购物问题，记住您说的话，并在之后告诉您。"],
    ),
    (
        ["How are you?", "How are you doing?", "How's it going?", "Are you okay?"],
        ["I am fine, thank you! How can I help?"],
        ["你好吗？", "最近怎么样？", "今天好吗？", "你还好吗？"],
        ["我很好，谢谢！有什么可以帮您？"],
    ),
    (
        [
            "What is your return policy?",
            "Can I return an item?",
            "How do I return something?",
            "I want a refund.",
            "How long do I have to return it?",
            "I want to send it back",
            "Do you accept returns?",
        ],
        ["You can return unused items within {ret} days for a full refund."],
        [
            "你们的退货政策是什么？",
            "可以退货吗？",
            "怎么退货？",
            "我想退款。",
            "多久之内可以退货？",
            "我想退货",
            "支持退货吗？",
        ],
        ["未使用的商品可在{ret}天内退货，全额退款。"],
    ),
    (
        [
            "How long does shipping take?",
            "When will my parcel arrive?",
            "How fast is delivery?",
            "What are the shipping times?",
            "When do you ship?",
            "How many days for delivery?",
        ],
        ["Standard shipping takes {ship} days."],
        ["多久能到货？", "快递要多久？", "发货要几天？", "配送时间是多久？", "什么时候能送到？", "几天能收到？"],
        ["标准配送需要{ship}天。"],
    ),
    (
        [
            "How much is shipping?",
            "What does delivery cost?",
            "Is shipping free?",
            "Do you have free delivery?",
            "shipping cost?",
        ],
        ["Shipping is free for orders over {free}."],
        ["运费多少？", "包邮吗？", "配送费是多少？", "邮费怎么算？", "免运费吗？"],
        ["订单满{free}免运费。"],
    ),
    (
        [
            "What are your opening hours?",
            "When are you open?",
            "What time do you open?",
            "When do you close?",
            "Are you open today?",
            "opening hours?",
        ],
        ["We are open from {open} to {close}."],
        ["你们几点开门？", "营业时间是什么？", "什么时候关门？", "今天营业吗？", "几点下班？", "营业时间？"],
        ["我们的营业时间是{open}到{close}。"],
    ),
    (
        [
            "How can I pay?",
            "Which payment methods do you accept?",
            "Can I pay by card?",
            "Do you take cash?",
            "Can I use a credit card?",
        ],
        ["You can pay by card, bank transfer or cash on delivery."],
        ["怎么付款？", "支持哪些付款方式？", "可以刷卡吗？", "能用信用卡吗？", "可以货到付款吗？"],
        ["您可以刷卡、银行转账或货到付款。"],
    ),
    (
        [
            "My item is broken.",
            "The product arrived damaged.",
            "It does not work.",
            "I got the wrong item.",
            "My parcel is damaged",
            "Something is missing from my parcel.",
        ],
        ["I am sorry to hear that. Please tell me your order number and we will replace it."],
        ["商品坏了。", "收到的东西是坏的。", "不能用。", "发错货了。", "包裹破损了", "少了一件东西。"],
        ["很抱歉给您带来不便。请告诉我订单号，我们会为您更换。"],
    ),
    (
        ["Can I talk to a person?", "I want a human agent.", "Connect me to an agent.", "Let me speak to someone"],
        ["I cannot transfer you in this demo, but I am happy to help here."],
        ["我要人工客服。", "转人工", "能和真人说话吗？", "请帮我转人工客服。"],
        ["演示中无法转接人工，但我很乐意在这里帮您。"],
    ),
    (
        ["You are stupid", "This is bad service.", "I am angry.", "You are not helpful.", "I'm not happy"],
        ["I am sorry about that. Let me try to help."],
        ["你真笨", "服务太差了。", "我很生气。", "你没用。", "我不满意"],
        ["非常抱歉。让我试着帮您。"],
    ),
    (
        ["Yes", "No", "Okay", "ok", "Sure", "I see.", "Great", "Good"],
        ["Okay. Is there anything else I can do?"],
        ["好的", "是的", "不", "好", "嗯", "知道了。", "可以", "行"],
        ["好的。还有什么可以帮您？"],
    ),
    (
        ["Do you speak Chinese?", "Which languages do you speak?", "Can you speak English?"],
        ["I speak a little English and Chinese."],
        ["你会说英语吗？", "你会哪些语言？", "你会中文吗？"],
        ["我会一点中文和英文。"],
    ),
    (
        ["Tell me a joke.", "Say something funny.", "Make me laugh"],
        ["Why did the parcel blush? It saw the address change!"],
        ["讲个笑话。", "说个笑话吧", "逗我笑一下。"],
        ["包裹为什么脸红？因为它看到地址换衣服了！"],
    ),
]
TOPICS = pairs(
    "the weather 天气, politics 政治, football 足球, quantum physics 量子物理, history 历史, the stock market 股市, "
    "music 音乐, movies 电影, cooking 做饭, space 太空, chess 象棋, math 数学, medicine 医学, law 法律, dinosaurs 恐龙, "
    "the moon 月亮, poetry 诗歌, programming 编程, travel 旅行, religion 宗教, Python Python, philosophy 哲学, "
    "the news 新闻, basketball 篮球, art 艺术"
)
DEF = {
    "ret": ("30", "30"),
    "ship": ("3 to 5", "3到5"),
    "free": ("$50", "50元"),
    "open": ("9:00", "9:00"),
    "close": ("18:00", "18:00"),
}


def topic(z, sysd):
    q, a, qz, az = C(TOP)
    q, a = (C(qz), C(az)) if z else (C(q), C(a))
    if "{" in a:
        a = a.format(**{k: (V(sysd[k]) if k in sysd else v[1 if z else 0]) for k, v in DEF.items()})
    return q, a


def deflect(z):
    t = C(TOPICS)[1 if z else 0] if R.random() < 0.6 else (han(R.randint(2, 3)) if z else pseudo())
    if z:
        return (
            C(
                [
                    f"你知道{t}吗？",
                    f"跟我说说{t}。",
                    f"什么是{t}？",
                    f"你怎么看{t}？",
                    f"解释一下{t}。",
                    f"写一篇关于{t}的文章。",
                ]
            ),
            f"我是一个小型演示模型，不了解{V(t)}。我可以帮您处理订单、退货和配送问题。",
        )
    return (
        C(
            [
                f"What do you know about {t}?",
                f"Tell me about {t}.",
                f"What is {t}?",
                f"What do you think of {t}?",
                f"Explain {t}.",
                f"Write an essay about {t}.",
            ]
        ),
        f"I am a small demo model and do not know about {V(t)}. I can help with orders, returns and shipping.",
    )
