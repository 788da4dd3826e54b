"""Conversations with tools: one or several offered, called with one argument where the question asks for it, and their results put
into words."""

import json

from chance import C, R
from everyday import THINGS, THINGS_Z
from gen import TOOL_POST, TOOL_PRE
from outside import outside
from phrases import V
from shop import topic
from typed import untidy
from words import CITY, ITEM, digits, han, pseudo, v_order

CITIES = lambda z: C(CITY)[int(z)] if R.random() < 0.7 else (han(2) if z else pseudo().capitalize())
GOODS = lambda z: C(ITEM)[int(z)] if R.random() < 0.5 else C(THINGS_Z if z else THINGS)
# names, arguments, description, questions in English and Chinese, value maker, results: key, maker, answers
TOOLS = [
    (
        "get_weather current_weather weather_lookup get_current_weather",
        "city location place",
        "Get the weather in a city",
        "What's the weather in {}?|what is the weather like in {}|How is the weather in {} today?|weather in {}|Is it raining in {}?",
        "{}的天气怎么样？|{}天气如何？|今天{}天气怎么样|查一下{}的天气|{}下雨了吗？",
        CITIES,
        "weather condition forecast",
        lambda z: C(("晴 多云 下雨 下雪 有风" if z else "sunny cloudy rainy snowy windy foggy").split()),
        ("The weather in {}: {}.", "{}的天气：{}。"),
    ),
    (
        "get_time local_time time_in get_current_time",
        "city timezone place",
        "Get the local time in a city",
        "What time is it in {}?|what's the time in {}|local time in {}|Can you tell me the time in {}?",
        "{}现在几点？|{}几点了|查一下{}的时间|现在{}是几点",
        CITIES,
        "time now local_time",
        lambda z: f"{R.randint(0, 23)}:{R.randint(0, 59):02d}",
        ("The time in {} is {}.", "{}现在是{}。"),
    ),
    (
        "get_price price_of lookup_price product_price",
        "product item name",
        "Get the price of a product",
        "How much is the {}?|What does the {} cost?|price of {}|What is the price of the {}?",
        "{}多少钱？|{}的价格是多少？|查一下{}的价格",
        GOODS,
        "price amount cost",
        lambda z: digits(R.randint(1, 3)) + C(["", ".50", ".99"]),
        ("The price of {} is {}.", "{}的价格是{}。"),
    ),
    (
        "check_stock stock_of get_stock in_stock",
        "product item name",
        "Check how many of a product are in stock",
        "Do you have the {} in stock?|How many {} are left?|Is the {} available?|check the stock of {}",
        "{}有货吗？|{}还有多少？|查一下{}的库存",
        GOODS,
        "stock count quantity",
        lambda z: digits(R.randint(1, 3)),
        ("In stock for {}: {}.", "{}的库存：{}。"),
    ),
    (
        "get_order_status track_order order_lookup find_order",
        "order_id id order number",
        "Look up an order",
        "Where is order {}?|What is the status of order {}?|Has order {} shipped?|Can you check order {}?|track order {}|status of {}",
        "订单{}到哪了？|帮我查一下订单{}。|订单{}发货了吗？|我想查订单{}的状态。|查订单{}",
        v_order,
        "status state",
        lambda z: C(
            "已发货|已送达|正在打包|正在路上|已取消".split("|")
            if z
            else "shipped|delivered|being packed|on the way|cancelled".split("|")
        ),
        ("Order {} is {}.", "订单{}{}。"),
    ),
]


def signature(name, argument, description):
    properties = {argument: {"type": "string"}}
    if R.random() < 0.3:
        properties[argument]["description"] = C(["The " + argument, argument, "A " + argument])
    function = {
        "name": name,
        "description": description,
        "parameters": {"type": "object", "properties": properties, "required": [argument]},
    }
    return json.dumps({"type": "function", "function": function})


def aside(z):
    return topic(z, {}) if R.random() < 0.7 else outside(z)[:2]


def tools(z):
    offered = R.sample(TOOLS, C([1, 1, 2, 3]))
    named = [(C(t[0].split()), C(t[1].split()), t) for t in offered]
    system = C(["", "", "You are a helpful assistant.\n\n", "You are a support agent.\n\n"])
    out = [("system", system + TOOL_PRE + "".join("\n" + signature(n, a, t[2]) for n, a, t in named) + TOOL_POST)]
    for _ in range(C([1, 1, 1, 2])):
        if R.random() < 0.35:
            out += list(zip(("user", "assistant"), aside(z)))
        name, argument, tool = C(named)
        value, result = tool[5](z), tool[7](z)
        question = C(tool[4 if z else 3].split("|")).format(value)
        call = (
            '<tool_call>\n{"name": "' + V(name) + '", "arguments": {"' + V(argument) + '": "' + V(value) + '"}}\n</tool_call>'
        )
        answer = tool[8][int(z)].format(V(value), V(result))
        response = json.dumps({C(tool[6].split()): result}, ensure_ascii=False) if R.random() < 0.8 else result
        out += [
            ("user", untidy(question, z, [value])),
            ("assistant", call),
            ("user", "<tool_response>\n" + response + "\n</tool_response>"),
            ("assistant", answer),
        ]
    if R.random() < 0.3:
        out += list(zip(("user", "assistant"), aside(z)))
    return out
