"""The shop's topics in many more words than topics.py has, further topics, and orders whose number is or isn't known."""

from chance import C, R
from phrases import V
from topics import DEF, TOP


def split(text):
    return [t for line in text.splitlines() for t in line.split("|")]


# more ways to ask for the topics of topics.py, in its order
MORE = [
    (
        """hello there|hiya|heya|hi!!|hello hello|helloo|hii|hey hey|greetings|good afternoon|good day|howdy|sup|hey you|hi bot|hello bot
hi, anyone there?|is anyone here?|are you there?|hello?|hi again|hello again|good evening to you|nice to meet you|what's up|hey!""",
        "你好呀|您好啊|嘿|哈喽啊|喂|喂喂|有人吗|有人在吗|你在吗|下午好|晚上好呀|早|早安|大家好|hi|hello|你好你好|在不在|您好！|又见面了|嗨嗨",
    ),
    (
        """thank you very much|many thanks|thanks a bunch|ty|tysm|cheers|thank you, that's great|thanks for your help|okay thanks
ok thank you|great thanks|cool, thanks|thank you for the help|awesome, thank you|thanks!!|thank u|I appreciate it|much appreciated""",
        "谢了|谢谢你的帮助|多谢你|谢谢您|感谢|非常谢谢|好的谢谢|ok谢谢|谢谢！|谢谢你！|辛苦了|太好了，谢谢|麻烦你了|十分感谢|谢谢哦",
    ),
    (
        """bye!|good bye|see you later|see ya|talk to you later|good night|I have to go|gotta go|that's all|that is all for now
I'm done, bye|cya|take care|bye for now|thanks, bye|no more questions|that will be all, thank you|ok bye""",
        "拜|再见了|我走了|晚安|先这样吧|没问题了|就这些|下次再聊|回头见|拜拜啦|没有了，谢谢|好了，再见|那我先走了",
    ),
    (
        """who is this|what are you exactly|who am I speaking with|who am I chatting with|are you real|are you a person|are you a bot
are you human or robot|are you artificial intelligence|are you an assistant|what is this|what is this chat|what is this page
what are you called|do you have a name|your name?|which model is this|are you GPT|are you Siri|are you Qwen|are you a language model
how big are you|how many parameters do you have|how old are you|where are you from|where do you live|who built you|who created you
who trained you|what company made you|say something about yourself|tell me who you are|so who are you|are you alive|are you smart
what kind of model are you|is this a real person|am I talking to a robot|what is Troupe|what's Troupe?""",
        """你是真人吗|你是机器人还是人|你到底是谁|你是哪位|请介绍自己|自我介绍一下|你是人工智能吗|你是什么东西|你叫啥|你的名字是什么|你有名字吗
你是GPT吗|你是千问吗|你是大模型吗|你多大|你有多少参数|谁做的你|谁创造了你|谁训练了你|你是哪家公司的|你是客服吗|你是活的吗|这是什么|这是什么网站|我在跟谁说话|什么是Troupe""",
    ),
    (
        """what can you do for me|what can I do here|what can I ask|what do you do|what else can you do|what are you able to do
how do I use you|how does it work|how do you work|what are your abilities|what are your features|show me what you can do|help me
I need help|I need some help|can you help|could you help me please|please help|what topics do you know|what questions can I ask
what is your purpose|what are you for|what should I ask you|give me some examples|what do you know how to do|is there anything you can do
what services do you offer|how can you be of help|menu|commands|instructions|I have a question|can I ask you something""",
        """你都会什么|你能干什么|你可以做什么|我能问你什么|我可以问什么|你有哪些功能|你有什么用|怎么用你|怎么使用|你能帮到我什么|你能帮忙吗|帮帮我|我需要帮助|请帮帮我
能帮个忙吗|你擅长什么|有什么服务|举几个例子|你还会什么|你还能做什么|你知道什么|我有个问题|我可以问个问题吗|能问你点事吗|菜单""",
    ),
    (
        """how are you today|how are things|how have you been|how do you do|how you doing|are you doing well|hi how are you
hello, how are you?|hey how's it going|how was your day|how is your day|you okay?|everything good?|how are you feeling""",
        "你怎么样|过得怎么样|你今天怎么样|你最近好吗|一切都好吗|身体好吗|你今天好吗|你过得好吗|心情怎么样|你好，最近怎么样",
    ),
    (
        """what's the return policy|tell me about returns|how do returns work|I want to return something|I'd like to return my order
can I send it back|can I get my money back|how can I get a refund|I don't like it, can I return it|it does not fit, can I return it
it's too small, I want to return it|I changed my mind|how many days do I have to return|is there a return window|return policy?
can I return these shoes|refund please|I'd like a refund|can I give it back|returns?|what if I want to return it|it doesn't suit me
how long can I return it|I need to return an item|do you do refunds|am I able to return this|is it possible to return things""",
        """退货政策|能退货吗|可不可以退货|怎么退款|我要退款|我要退货|几天内可以退货|退货期限是多久|不喜欢可以退吗|不合适能退吗|尺码不对，可以退吗|太小了，想退货|怎么把东西退回去
能退钱吗|可以退款吗|退货流程是什么|如何退货|退换货政策|买了后悔了能退吗|我不想要了，怎么退|支持七天无理由吗|退货怎么弄""",
    ),
    (
        """how long is delivery|how long does delivery take|when does it arrive|how long will it take to arrive|delivery time?
how soon can I get it|how quickly do you deliver|how many days does shipping take|what is the delivery time|how long to ship
how long do I have to wait|if I order now when will it come|if I order today, when do I get it|shipping time|is shipping fast
how long is the shipping|when would I receive it|how long does it take to get here|how many days until it arrives|do you ship quickly""",
        """要多久|要多久才能到|几天能到|几天到货|多长时间送到|快递几天|配送要几天|大概几天能收到|发货快吗|现在下单什么时候到|今天买几天能到|送货要多久|多少天能到|配送时间
物流要多久|收货要几天|什么时候可以收到货""",
    ),
    (
        """how much does shipping cost|what's the shipping fee|do I have to pay for shipping|is there a delivery fee|free shipping?
do you offer free shipping|how much do you charge for delivery|what is the cost of delivery|when is shipping free|delivery fee?
how much for shipping|is delivery free of charge|do you ship for free|what do I pay for delivery|postage?|is postage free""",
        """运费是多少|运费怎么算|要运费吗|需要付运费吗|有没有运费|邮费多少钱|快递费多少|配送费多少|满多少包邮|满多少免运费|免费配送吗|送货要钱吗|邮费|运费|能包邮吗|免邮吗""",
    ),
    (
        """when do you open|what time do you close|until when are you open|how late are you open|are you open now|are you open tomorrow
are you open on Monday|are you open at the weekend|business hours?|what are your hours|your hours?|what are the store hours
when can I come|what time does the shop open|when does the store close|are you closed today|is the shop open|opening times""",
        """几点开门|几点关门|几点营业|你们几点下班|几点上班|开门时间|周末营业吗|周一开门吗|明天开门吗|现在开门吗|今天开门吗|营业到几点|开到几点|店几点开门|上班时间是什么|什么时候开门|你们什么时候营业""",
    ),
    (
        """how do I pay|what payment options are there|payment methods?|how can I pay for it|do you accept cards|can I pay cash
do you take credit cards|do you take visa|can I pay by bank transfer|can I pay on delivery|is cash okay|do you accept apple pay
can I use my debit card|can I pay later|what cards do you accept|can I pay online|ways to pay|how to pay""",
        """如何付款|怎么支付|怎么给钱|付款方式|支付方式有哪些|有哪些付款方式|可以用支付宝吗|支持微信吗|能刷卡吗|收现金吗|可以付现金吗|能货到付款吗|可以银行转账吗|信用卡可以吗|能先用后付吗""",
    ),
    (
        """it arrived broken|it's broken|it is damaged|the box was damaged|it stopped working|it doesn't work|it's not working
the screen is cracked|I received the wrong thing|you sent me the wrong size|this is not what I ordered|an item is missing
part of my order is missing|my order is incomplete|the product is defective|it has a hole in it|it broke after one day
I got a broken item|the colour is wrong|wrong item|there is a problem with my product|I have a problem with my order""",
        """坏了|东西坏了|我收到的是坏的|收到的商品破了|屏幕碎了|用不了|不能用了|质量有问题|商品有问题|发错了|你们发错货了|尺码发错了|颜色不对|少发了一件|缺了东西|漏发了|盒子压坏了|用了一天就坏了|收到的不是我买的""",
    ),
    (
        """I want to talk to a human|can I speak to a human|real person please|give me a human|is there a real person|customer service
I need to speak with someone|transfer me to an agent|let me talk to your manager|I want to speak to the manager|human please
agent|can someone call me|can I call you|operator""",
        """我要找人工|人工|人工客服|找真人|我要和真人说话|有没有真人|叫你们经理来|我要找经理|能给我打电话吗|客服电话多少|转接人工|能不能转人工""",
    ),
    (
        """this is terrible|you're useless|you are dumb|I hate this|I'm very angry|this sucks|worst service ever|I'm disappointed
I want to complain|I have a complaint|you are wrong|that's wrong|that is not right|not what I asked|you don't understand
you're not listening|stupid bot|shut up|this is ridiculous|I am not happy with this""",
        """你太笨了|太差了|你没有用|真没用|我要投诉|投诉|我很失望|气死我了|你错了|不对|说错了吧|答非所问|你听不懂吗|你根本没懂|闭嘴|什么破服务|太慢了|你傻吗""",
    ),
    (
        "yep|yeah|nope|no thanks|not really|alright|all right|fine|got it|okay then|ok cool|cool|nice|right|sounds good|I understand|perfect|yes please",
        "好吧|行吧|嗯嗯|对|没有|不用了|不用|是|可以的|没问题|了解|明白|懂了|好哒|ok|好的好的|不需要|收到",
    ),
    (
        """what languages do you know|do you know Chinese|do you understand English|can you speak Chinese|can we speak Chinese
speak English please|do you speak other languages|do you speak Spanish|do you understand French|English?""",
        "你会说中文吗|你会说什么语言|你懂英文吗|能说中文吗|可以说英文吗|你会说日语吗|你会法语吗|你懂几种语言|请说中文|会英语吗",
    ),
    (
        """tell me another joke|tell me something funny|do you know a joke|know any jokes|can you tell a joke|a joke please|joke
say a joke|make a joke|I want to hear a joke|got any jokes?|can you be funny|give me a joke|one more joke|cheer me up""",
        "讲个笑话|说笑话|再讲一个笑话|你会讲笑话吗|来个笑话|来一个笑话吧|我想听笑话|有笑话吗|说个好笑的|逗逗我|讲个好笑的|笑话",
    ),
]
NO_PRODUCTS = "This is a demo shop with no real products. I can help with orders, returns and shipping."
NO_PRODUCTS_Z = "这是演示商店，没有真实的商品。我可以帮您处理订单、退货和配送问题。"
# further topics: questions and the answer, in English and Chinese
FURTHER = [
    (
        """what do you sell|what products do you have|what can I buy here|show me your products|do you have shoes|do you sell phones
is it in stock|do you have it in blue|how much is it|what does it cost|I want to buy something|I'd like to buy a gift|any discounts?
do you have a sale|what are your prices|show me the catalogue|do you have this in size 40|can you recommend a product|what's new
which one is better|is this available|I want to order something|I'd like to place an order|how do I order|can I order here""",
        NO_PRODUCTS,
        """你们卖什么|有什么商品|有什么可以买的|这里能买什么|有货吗|还有货吗|有蓝色的吗|多少钱|这个多少钱|价格是多少|我想买东西|我想买礼物|有折扣吗|有优惠吗|打折吗|有活动吗
有新品吗|推荐个商品|有大号的吗|怎么下单|我想下单|可以在这里买东西吗|哪个好""",
        NO_PRODUCTS_Z,
    ),
    (
        """where is your store|where are you located|what is your address|where is your shop|do you have a store in London|your address?
how can I contact you|what's your phone number|what is your email|do you have a website|where can I find you|where is the shop""",
        "I am only a demo, so there is no real store to visit. I can help with orders, returns and shipping here.",
        """你们店在哪里|店铺地址在哪|你们在哪里|怎么联系你们|你们的电话是多少|你们的邮箱是什么|有实体店吗|有网站吗|地址是什么|你们公司在哪""",
        "我只是演示，没有真实的店铺。我可以在这里帮您处理订单、退货和配送问题。",
    ),
    (
        """you're great|you are very helpful|good bot|well done|good job|I love you|you're smart|you are funny|nice work|that was helpful
you are awesome|you're the best|I like you|that's great|amazing|excellent|brilliant""",
        "Thank you, that is kind! Is there anything else I can do?",
        "你真棒|你好厉害|真聪明|你真聪明|做得好|干得漂亮|我喜欢你|我爱你|你很有用|太棒了|好厉害|真不错|你真好|厉害",
        "谢谢夸奖！还有什么可以帮您？",
    ),
    (
        """what do you remember|can you remember things|do you have a memory|will you remember this|can you remember my name
do you remember me|do you save my data|is this chat private|will you remember me tomorrow|how long do you remember""",
        "I remember what you tell me in this chat, and nothing after it.",
        "你能记住吗|你有记忆吗|你会记住我吗|你能记住我说的话吗|你还记得我吗|你会保存我的信息吗|聊天是保密的吗|你能记多久",
        "我只记得这次对话里您说的话。",
    ),
]
WHERE = """where is my order?|where's my order|where is my parcel|where is my package?|my order has not arrived|my order hasn't come yet
my package is late|when will my order arrive?|track my order|track my parcel please|I want to track my package|what's the status of my order
order status|what is happening with my order|check my order|can you check my order?|I'm waiting for my order|I am still waiting for my parcel
has my order been shipped?|did you ship my order|is my order on the way?|I never got my order|I haven't received my order|I did not get my package
my delivery is late|my delivery hasn't arrived|find my order|look up my order|where are my things|where's my delivery|my stuff has not arrived
I ordered last week and it is not here|I ordered something and it never came|it has been ten days and no parcel|I have a question about my order
I want to ask about my order|help with my order|problem with my delivery|my order is delayed|why is my order late|still no package
I want to know where my order is|could you tell me where my parcel is|I'm calling about my order|it's about my order|any news about my order?"""
WHERE_Z = """我的订单在哪|我的订单到哪了|我的包裹在哪里|我的快递到哪了|我的快递在哪里|订单还没到|快递还没到|包裹还没收到|我还没收到货|我买的东西还没到|什么时候能收到我的订单|查一下我的订单
帮我查订单|查订单|查快递|查物流|我想查订单|我想查一下快递|我的货到哪里了|我的东西呢|订单状态|我的订单发货了吗|我的订单怎么样了|我的订单什么时候到|物流信息|怎么还没发货|怎么还不到|快递太慢了，还没到
上周买的还没到|十天了还没收到|想问一下我的订单|我有订单问题|关于我的订单|帮我看看我的快递|帮我看一下订单|能帮我查一下包裹吗|东西到哪里了|我的订单延误了|我一直在等快递"""
CHANGE = """cancel my order|I want to cancel my order|can you cancel it|please cancel the order|I need to change my order|change my address
I want to change the delivery address|can I change my order|I ordered by mistake|can I add something to my order|I want to exchange it
can I exchange it for another size|I want another colour|where is my refund?|when do I get my refund|I have not received my refund
I need an invoice|send me the receipt|I was charged twice|my payment failed|my discount code does not work|exchange my order"""
CHANGE_Z = """取消订单|我想取消订单|帮我取消订单|我要改订单|我要改地址|修改收货地址|能改地址吗|下错单了|可以加一件吗|我要换货|能换货吗|可以换一个尺码吗|我想换颜色|我的退款呢|退款什么时候到|还没收到退款
我要发票|给我开发票|扣了两次钱|付款失败了|优惠码用不了|换货"""
WHERE, WHERE_Z, CHANGE, CHANGE_Z = map(split, (WHERE, WHERE_Z, CHANGE, CHANGE_Z))
MORE = [tuple(map(split, pair)) for pair in MORE]
FURTHER = [(split(q), a, split(qz), az) for q, a, qz, az in FURTHER]
assert len(MORE) == len(TOP)


def topic(z, known):
    """-> (user, answer); known: what the system prompt says of the shop."""
    i = R.randrange(len(TOP) + len(FURTHER))
    if i >= len(TOP):
        q, a, qz, az = FURTHER[i - len(TOP)]
        return (C(qz), az) if z else (C(q), a)
    q, a, qz, az = TOP[i]
    q, qz = q + 2 * MORE[i][0], qz + 2 * MORE[i][1]
    q, a = (C(qz), C(az)) if z else (C(q), C(a))
    if "{" in a:
        a = a.format(**{k: (V(known[k]) if k in known else v[int(z)]) for k, v in DEF.items()})
    return q, a


def end(text, z):
    if text[-1] in "?？.。!！":
        return text
    asks = text.split(" ")[0].lower().split("'")[0] in (
        "what who how when where why which is are do does did can could will would has have am may".split()
    )
    if z:
        return text + C(["。", "？", "", ""])
    return text + (C(["?", "?", ""]) if asks else C([".", "!", ""]))


def ask_number(z):
    return (
        "请告诉我您的订单号。演示中无法查询实时状态，但我会记住它。"
        if z
        else ("Please tell me your order number. I cannot see live orders in this demo, but I will remember it.")
    )


def noted(v, z):
    return (
        f"我已记下订单{V(v)}，但演示中无法查询实时状态。"
        if z
        else (f"I have noted order {V(v)}, but I cannot see live orders in this demo.")
    )


def where(z):
    return end(C(WHERE_Z if z else WHERE), z)


def change(z):
    """-> (user, answer) about changing an order."""
    return end(C(CHANGE_Z if z else CHANGE), z), (
        "演示中无法更改订单，但请告诉我您的订单号，我会记下来。"
        if z
        else "I cannot change orders in this demo, but please tell me your order number and I will note it."
    )


def give_number(v, z):
    """The user's answer to ask_number()."""
    if z:
        return C(
            [
                "{}",
                "{}",
                "{}。",
                "是{}",
                "订单号是{}",
                "订单号{}",
                "好的，{}",
                "单号是{}。",
                "我的订单号是{}。",
                "就是{}",
                "号码是{}",
            ]
        ).format(v)
    return C(
        """{}|{}|{}|{}.|it's {}|It is {}.|order {}|the number is {}|My order number is {}.|sure, {}|Sure, it's {}|ok, {}|here it is: {}|#{}
number {}|that would be {}|my order is {}|order number {}|yes, it's {}.|I think it's {}|the order number is {}""".replace(
            "\n", "|"
        ).split(
            "|"
        )
    ).format(v)


def no_number(z):
    """The user hasn't got it. -> (user, answer)"""
    if z:
        return (
            C("我没有订单号|我不知道订单号|我忘了|找不到订单号|不记得了|不想说|没有订单号".split("|")),
            "没关系。您可以在确认邮件里找到订单号。",
        )
    return (
        C(
            "I don't have it|I don't know it|I don't know my order number|I forgot it|I can't find it|no idea|I lost it|I don't remember|why do you need it".split(
                "|"
            )
        ),
        "No problem. You can find the order number in your confirmation email.",
    )
