"""What users of the demo talk about: values (names, cities, numbers) in English and Chinese, and the keys they belong to.

A value maker takes z (Chinese or not) and draws a fresh value, so that the model learns to copy and not to know.
"""

from chance import C, R


def pairs(text):
    """Splits 'red 红色, New York 纽约' into [('red', '红色'), ('New York', '纽约')]."""
    return [tuple(p.rsplit(" ", 1)) for p in text.split(", ")]


SYL = [
    a + b
    for a in "b c d f g h j k l m n p r s t v w z br ch cl dr fl gr kr pl sh st th tr".split()
    for b in "a e i o u ai ee oa ou an en in on ar er or el".split()
]
FIRST = (
    "Alice Bob Carol David Emma Frank Grace Henry Irene Jack Kate Liam Maria Noah Olivia Peter Quinn Rosa Sam Tina Uma Victor "
    "Wendy Xavier Yara Zoe Anna Ben Chloe Daniel Elena Felix Hannah Ivan Julia Kevin Laura Mark Nina Oscar Paul Rachel Simon "
    "Theo Vera Will Lucy Max Sara Tom Lily Leo Mia Ella Omar Aisha Ravi Priya Kenji Yuki Ingrid Lars Pablo Lucia"
).split()
LAST = (
    "Smith Brown Taylor Wilson Chen Li Wang Garcia Lopez Müller Rossi Tanaka Kim Singh Patel Novak Silva Jones Clark Lewis "
    "Walker Young King Wright Hill Green Adams Baker Nelson Carter"
).split()
SUR = (
    "王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶阎余潘杜戴夏钟汪田任姜"
    "范方石姚谭廖邹熊金陆郝孔白崔康毛邱秦江史顾侯邵孟龙万段雷钱汤尹黎易常武乔贺赖龚文"
)
GIV = (
    "伟芳娜秀英敏静丽强磊军洋勇艳杰娟涛明超兰霞平刚桂华建国志梅玲红玉鹏飞宇轩子涵浩然欣怡雨晨博文思琪佳慧俊豪梓萱诗婷天佑嘉懿"
    "晓东雪松海燕春生立新云龙凤莲琴"
)
CITY = pairs(
    "London 伦敦, Paris 巴黎, Berlin 柏林, Madrid 马德里, Rome 罗马, Tokyo 东京, Osaka 大阪, Seoul 首尔, Beijing 北京, "
    "Shanghai 上海, Shenzhen 深圳, Guangzhou 广州, Hangzhou 杭州, Chengdu 成都, Wuhan 武汉, Xi'an 西安, Nanjing 南京, "
    "Suzhou 苏州, Tianjin 天津, Chongqing 重庆, Xiamen 厦门, Qingdao 青岛, Dalian 大连, Kunming 昆明, Harbin 哈尔滨, "
    "Changsha 长沙, New York 纽约, Boston 波士顿, Chicago 芝加哥, Seattle 西雅图, Toronto 多伦多, Sydney 悉尼, Dublin "
    "都柏林, Vienna 维也纳, Prague 布拉格, Warsaw 华沙, Oslo 奥斯陆, Lisbon 里斯本, Cairo 开罗, Singapore 新加坡, Bangkok "
    "曼谷, Delhi 德里, Lima 利马, Hong Kong 香港, Taipei 台北, Macau 澳门"
)
COL = pairs(
    "red 红色, blue 蓝色, green 绿色, black 黑色, white 白色, yellow 黄色, purple 紫色, orange 橙色, pink 粉色, grey "
    "灰色, brown 棕色, silver 银色, gold 金色, navy 深蓝色"
)
SIZE = pairs("small 小号, medium 中号, large 大号, XL XL, XXL XXL, S S, M M, L L, 38 38码, 40 40码, 42 42码, 44 44码")
MON = "January February March April May June July August September October November December".split()
ITEM = pairs(
    "jacket 外套, phone case 手机壳, backpack 背包, headphones 耳机, keyboard 键盘, coffee machine 咖啡机, desk "
    "lamp 台灯, running shoes 跑鞋, dress 连衣裙, water bottle 水杯, watch 手表, camera 相机, chair 椅子, laptop "
    "笔记本电脑, umbrella 雨伞, scarf 围巾, mouse 鼠标, book 书, tent 帐篷, toaster 烤面包机, bicycle 自行车, printer 打印机, "
    "blanket 毛毯, sofa 沙发, kettle 水壶, hat 帽子"
)
FOOD = pairs(
    "pizza 披萨, sushi 寿司, noodles 面条, dumplings 饺子, salad 沙拉, soup 汤, rice 米饭, cake 蛋糕, tea 茶, coffee "
    "咖啡, apples 苹果, chocolate 巧克力"
)
JOB = pairs("teacher 老师, nurse 护士, engineer 工程师, driver 司机, student 学生, cook 厨师, artist 画家, doctor 医生")
HAN = []  # the 3755 common characters of GB 2312 level 1
for a in range(0xB0, 0xD8):
    for b in range(0xA1, 0xFF):
        try:
            HAN.append(bytes([a, b]).decode("gb2312"))
        except UnicodeDecodeError:
            pass


def pseudo(n=None):
    return "".join(C(SYL) for _ in range(n or R.randint(2, 3)))


def digits(n):
    return str(R.randint(1, 9)) + "".join(C("0123456789") for _ in range(n - 1))


def han(n):
    return "".join(C(HAN) for _ in range(n))


def v_order(z):
    return digits(R.randint(4, 6)) if R.random() < 0.85 else C("ABCDXYZK") + "-" + digits(R.randint(3, 5))


def v_name(z):
    if z and R.random() < 0.8:
        return C(SUR) + "".join(C(GIV) for _ in range(R.randint(1, 2)))
    n = C(FIRST) if R.random() < 0.55 else pseudo().capitalize()
    return n + " " + (C(LAST) if R.random() < 0.6 else pseudo().capitalize()) if R.random() < 0.35 else n


def pair(l):
    return lambda z: C(l)[1 if z else 0]


def v_date(z):
    m, d = R.randint(1, 12), R.randint(1, 28)
    return f"{m}月{d}日" if z else C([f"{MON[m-1]} {d}", f"{MON[m-1]} {d}", f"{d} {MON[m-1]}", f"2026-{m:02d}-{d:02d}"])


def v_amt(z):
    a = C([str(R.randint(5, 999)), f"{R.randint(1, 300)}.{R.randint(0, 99):02d}"])
    return a + "元" if z else "$" + a


def v_phone(z):
    return "1" + digits(10) if z and R.random() < 0.5 else f"555-{digits(4)}"


def v_mail(z):
    return (
        (C(FIRST).lower() if R.random() < 0.5 else pseudo())
        + C(["", str(R.randint(1, 99))])
        + "@"
        + C(["mail.com", "example.com", "post.net", "shop.org"])
    )


def v_word(z):
    return (han(R.randint(2, 4)) if R.random() < 0.6 else pseudo()) if z else pseudo()


def v_num(z):
    return digits(R.randint(1, 4))


def v_time(z):
    return f"{R.randint(1, 12)}:{C(['00', '15', '30', '45'])}" + ("" if z else C([" am", " pm", ""]))


# key: English noun, Chinese noun, value maker; repeated where it should be met more often
KEYS = (
    [("order number", "订单号", v_order)] * 6
    + [("name", "名字", v_name)] * 5
    + [("colour", "颜色", pair(COL))] * 2
    + [("size", "尺码", pair(SIZE))] * 2
    + [("city", "城市", pair(CITY))] * 3
    + [("delivery date", "送货日期", v_date)] * 2
    + [("budget", "预算", v_amt)] * 2
    + [
        ("favourite colour", "最喜欢的颜色", pair(COL)),
        ("phone number", "电话号码", v_phone),
        ("email", "邮箱", v_mail),
        ("birthday", "生日", v_date),
        ("product", "商品", pair(ITEM)),
        ("refund amount", "退款金额", v_amt),
        ("shoe size", "鞋码", pair(SIZE)),
        ("code word", "暗号", v_word),
        ("password", "密码", v_word),
        ("room number", "房间号", v_num),
        ("invoice number", "发票号", v_order),
        ("tracking number", "运单号", v_order),
        ("member number", "会员号", v_order),
        ("cat's name", "猫的名字", v_name),
        ("dog's name", "狗的名字", v_name),
        ("favourite food", "最喜欢的食物", pair(FOOD)),
        ("age", "年龄", v_num),
        ("appointment time", "预约时间", v_time),
        ("locker code", "柜子密码", v_num),
        ("postcode", "邮编", lambda z: digits(5)),
        ("home town", "家乡", pair(CITY)),
        ("job", "工作", pair(JOB)),
        ("bag colour", "包的颜色", pair(COL)),
        ("table number", "桌号", v_num),
        ("nickname", "昵称", v_word),
        ("coupon code", "优惠码", lambda z: C("ABCDEFGH") + digits(3)),
        ("item", "物品", pair(ITEM)),
        ("street", "街道", v_word),
        ("hotel", "酒店", v_word),
    ]
)
# whose: in English by the user and the assistant, in Chinese by the user and the assistant
OWN = [("my", "your", "我", "您")] * 16 + [
    (f"my {e}'s", f"your {e}'s", f"我{z}", f"您{z}")
    for e, z in [
        ("brother", "哥哥"),
        ("sister", "姐姐"),
        ("friend", "朋友"),
        ("mother", "妈妈"),
        ("father", "爸爸"),
        ("boss", "老板"),
        ("wife", "妻子"),
        ("husband", "丈夫"),
    ]
]
