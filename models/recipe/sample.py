#!/usr/bin/python3
"""Prints conversations: user turns are fixed and written by hand (not by the generator), every answer is generated greedily.

sample.py [CHECKPOINT]
"""

import sys

import torch

import tok
from gen import TOOL_POST, TOOL_PRE
from model import Ref
from work import work_file

EN = [
    [
        "Hi there",
        "I'm Daniel and my order number is 73920.",
        "How long does shipping take?",
        "What was my order number?",
        "and who am I?",
        "Thanks!",
    ],
    [
        "My sister's name is Clara. I live in Boston.",
        "Do you have free delivery?",
        "Sorry, I moved: my city is Chicago now.",
        "Tell me about volcanoes.",
        "Which city am I in?",
        "What is my sister's name?",
    ],
    ["Who are you?", "What's my phone number?", "My phone number is 555-8102", "What's my phone number?", "What is my email?"],
    [
        "Repeat after me: green tea 77",
        "Hello, I bought a camera. It is broken.",
        "Order number 5521",
        "What did I buy?",
        "which order is it about?",
    ],
    ["Hello, where is my order?", "its 73920", "whats my order number", "how do i bake bread?", "tell me a joke", "ok bye"],
    [
        "hi im sarah, i live in denver and i ordered a lamp",
        "what can u do",
        "whats my name",
        "what did i order",
        "Repeat after me: My hovercraft is full of eels.",
        "what do you know about me?",
    ],
    [
        "My budget is $250 and my colour is navy.",
        "Actually, my budget is $300.",
        "What are your opening hours?",
        "What is my budget?",
        "What is my colour?",
        "Bye",
    ],
]
ZH = [
    ["你好", "我叫李雷，订单号是58213。", "多久能到货？", "我的订单号是多少？", "我叫什么名字？", "谢谢"],
    ["我住在杭州，我想要蓝色的。", "包邮吗？", "不对，我的颜色是绿色。", "我要的是什么颜色？", "我住在哪里？"],
    ["你是谁？", "我的电话号码是多少？", "我的电话号码是13812345678。", "我的电话号码是多少？", "我的邮箱是什么？"],
    ["你好，我的快递到哪了", "单号是88231", "我的单号是多少", "怎么修自行车", "讲个笑话吧", "好的拜拜"],
    ["重复：春天的雨", "我妈妈的生日是5月6日", "可以退货吗？", "我妈妈的生日是什么？", "我的生日是什么？"],
    ["我的预算是500元", "你们几点开门？", "我的预算改成800元", "什么是黑洞？", "我的预算是多少？", "再见"],
]
TOOL = (
    '{"type": "function", "function": {"name": "get_order_status", "description": "Look up an order", "parameters": '
    '{"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]}}}'
)


def main():
    T = tok.Tok()
    ref = Ref(torch.load(sys.argv[1] if len(sys.argv) > 1 else work_file("checkpoint.pt")))

    def answer(text):
        return T.decode(ref.generate([T.encode(text)], 60, {T.end, T.eot})[0])

    for language, dialogues in (("EN", EN), ("ZH", ZH)):
        for i, dialogue in enumerate(dialogues):
            text = ""
            print(f"\n### {language} {i + 1}")
            for user in dialogue:
                text += f"<|im_start|>user\n{user}<|im_end|>\n<|im_start|>assistant\n"
                said = answer(text + ("<think>\n\n</think>\n\n" if i % 2 else ""))
                text += said + "<|im_end|>\n"
                print(f"U: {user}\nA: {said}")
    text = f"<|im_start|>system\n{TOOL_PRE}\n{TOOL}{TOOL_POST}<|im_end|>\n"
    text += "<|im_start|>user\nWhere is order 48213?<|im_end|>\n<|im_start|>assistant\n"
    call = answer(text)
    print("\n### tool call, for 'Where is order 48213?'\n" + call)
    text += call + "<|im_end|>\n<|im_start|>user\n<tool_response>\n"
    text += '{"status": "shipped", "city": "Lisbon"}\n</tool_response><|im_end|>\n<|im_start|>assistant\n'
    print("-> " + answer(text))


if __name__ == "__main__":
    main()
