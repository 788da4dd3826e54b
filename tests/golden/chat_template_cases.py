"""Renders conversations with models' own Jinja templates, for chat_template_test.cpp to compare with.

    python3 tests/golden/chat_template_cases.py --template qwen3=FILE ... [--requests FOLDER --tokenizer TOKENIZER_JSON]

Writes chat_template_cases.json: small conversations with their rendered text, one set for each template that was given; and,
with --requests, chat_template_requests.txt: digests of recorded requests rendered with the qwen3 template and tokenised by
PyPI's `tokenizers`. FILE is Jinja text or a tokenizer_config.json. Needs jinja2; --requests needs `tokenizers`.
"""
import argparse
import json
import pathlib

import jinja2
import jinja2.sandbox

HERE = pathlib.Path(__file__).parent


def environment():
    e = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    e.filters["tojson"] = lambda x, **_: json.dumps(x, ensure_ascii=False)
    return e


def read_template(path):
    text = pathlib.Path(path).read_text(encoding="utf-8")
    return json.loads(text)["chat_template"] if path.endswith(".json") else text


def call(name, arguments):
    return {"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}}


def message(role, content="", reasoning=None, calls=None):
    m = {"role": role, "content": content}
    if reasoning is not None:
        m["reasoning_content"] = reasoning
    if calls:
        m["tool_calls"] = calls
    return m


TOOLS = [
    '{"type":"function","function":{"name":"get_order","description":"Look up \\u00e9 \\"order\\"\\n\\/ now","parameters":'
    '{"type":"object","properties":{"id":{"type":"string"},"n":{"type":"integer","minimum":-1,"enum":[1,2.5,true,null]}},"required":["id"]}}}',
    ' { "type" : "function" , "function" : { "name" : "空\\ud83d\\ude00\\u0001\\t" , "parameters" : { } , "x" : [ ] , "y" : [ [ ] , { "a" : 1 } ] } } ',
]

SYSTEM = message("system", "You are helpful.")
USER = message("user", "hi")

PLAIN = {
    "one user message": [USER],
    "system and user": [SYSTEM, USER],
    "three turns": [SYSTEM, USER, message("assistant", "hello"), message("user", "bye\n"), message("assistant", " ok "), message("user", "\n你好 👍")],
    "bodies with newlines and spaces at their ends": [message("user", "\n\nhi \n"), message("assistant", "  yes\n"), message("user", "\t")],
    "a later system message": [USER, message("system", "Now be brief."), message("user", "go")],
    "an empty body": [message("user", ""), message("assistant", ""), message("user", "x")],
}
TOOLED = {
    "tools without system": [USER],
    "tools with system": [SYSTEM, USER],
    "calls and results": [
        SYSTEM, message("user", "orders 7 and 8?"),
        message("assistant", "", "need tool", [call("get_order", '{"id": "7"}'), call("get_order", '{"id": "8"}')]),
        message("tool", '{"s":1}'), message("tool", '{"s":2}')],
    "a call after words": [message("user", "q"), message("assistant", "let me see", None, [call("f", '{"a": 1}')]), message("tool", "r"), message("assistant", "done"), message("user", "thanks")],
    "a result first": [message("tool", "r"), message("user", "q")],
    "a call in the last message": [message("user", "q"), message("assistant", "", None, [call("f", '{"a": 1}')])],
}
THINKING = {
    "thoughts of earlier turns are dropped": [SYSTEM, USER, message("assistant", "<think>\nx\n</think>\n\nhello"), message("user", "bye")],
    "a final answer without thoughts gets an empty block": [message("user", "q"), message("assistant", "a")],
    "a final answer with thoughts in the field": [message("user", "q"), message("assistant", "\n\na", "\nbecause\n\n")],
    "a final answer with thoughts in the text": [message("user", "q"), message("assistant", "<think>\n\nbecause\n</think>\n\na")],
    "a closing tag alone": [message("user", "q"), message("assistant", "a</think>b"), message("user", "r")],
    "several think blocks": [message("user", "q"), message("assistant", "<think>a</think>b<think>c</think>d")],
    "an opening tag within thoughts": [message("user", "q"), message("assistant", "<think>a<think>b\n</think>\nc</think>\n\nd")],
    "an opening tag alone": [message("user", "q"), message("assistant", "<think>a")],
    "tags in a user's text": [message("user", "say </think> and <think>"), message("assistant", "no"), message("user", "q")],
    "no user at all": [message("assistant", "<think>\nx\n</think>\n\nhello")],
    "string arguments, no thoughts, then a result": [message("user", "q"), message("assistant", "", None, [call("f", '{"a": 1}')]), message("tool", "r")],
    "thoughts kept since the last query": [message("user", "q"), message("assistant", "", "first", [call("f", "{}")]), message("tool", "r"), message("assistant", "", "second", [call("g", "{}")]), message("tool", "s")],
}
PLAIN_ONLY, WITH_TOOLS = ("chatml", "smollm2", "qwen2", "llama3"), ("qwen2.5", "qwen3", "qwen3-thinking")


def as_objects(messages):
    """Qwen2.5's template wants arguments as objects, as transformers' users pass them."""
    copy = json.loads(json.dumps(messages))
    for m in copy:
        for c in m.get("tool_calls", []):
            c["function"]["arguments"] = json.loads(c["function"]["arguments"])
    return copy


def conversations(name):
    yield from ((title, messages, []) for title, messages in PLAIN.items())
    if name in WITH_TOOLS:
        yield from ((title, messages, TOOLS) for title, messages in TOOLED.items())
    if name.startswith("qwen3"):
        yield from ((title, messages, []) for title, messages in THINKING.items())


def small_cases(name, template):
    cases = []
    for title, messages, tools in conversations(name):
        for generate in (True, False):
            for thinking in (None, True, False) if name == "qwen3" and generate else (None,):
                extra = {} if thinking is None else {"enable_thinking": thinking}
                text = template.render(messages=as_objects(messages) if name == "qwen2.5" else messages, tools=[json.loads(t) for t in tools] or None,
                                       add_generation_prompt=generate, bos_token="<|begin_of_text|>", eos_token="", **extra)
                cases.append({"template": name, "title": title, "messages": messages, "tools": tools, "generate": generate, "thinking": thinking, "text": text})
    return cases


def fnv1a(data):
    h = 0xCBF29CE484222325
    for b in data:
        h = ((h ^ b) * 0x100000001B3) & ((1 << 64) - 1)
    return h


def plain_content(content):
    return content if isinstance(content, str) else "".join(p.get("text", "") for p in content or [])


def request_lines(folder, template, tokenizer_json):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(tokenizer_json)
    for path in sorted(pathlib.Path(folder).glob("*request_*.json")):
        body = json.loads(path.read_text(encoding="utf-8"))
        messages = [{**m, "role": "system" if m["role"] == "developer" else m["role"], "content": plain_content(m.get("content"))} for m in body["messages"]]
        for thinking in (True, False):
            text = template.render(messages=messages, tools=body.get("tools"), add_generation_prompt=True, enable_thinking=thinking)
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            digest = fnv1a(b"".join(i.to_bytes(4, "little") for i in ids))
            yield f"{path.name} {int(thinking)} {len(text.encode())} {fnv1a(text.encode()):016x} {len(ids)} {digest:016x}"


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--template", action="append", default=[], metavar="NAME=FILE")
    arguments.add_argument("--requests")
    arguments.add_argument("--tokenizer")
    given = arguments.parse_args()
    templates = {}
    for item in given.template:
        name, path = item.split("=", 1)
        templates[name] = environment().from_string(read_template(path))
    cases = [c for name, template in templates.items() for c in small_cases(name, template)]
    (HERE / "chat_template_cases.json").write_text(json.dumps(cases, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
    if given.requests:
        lines = request_lines(given.requests, templates["qwen3"], given.tokenizer)
        (HERE / "chat_template_requests.txt").write_text("\n".join(lines) + "\n")
