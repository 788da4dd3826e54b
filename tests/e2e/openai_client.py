#!/usr/bin/env python3
"""The official OpenAI client, unchanged, against the server: chat, responses, and responses over its WebSocket."""
import asyncio
import json

from support import Checks, limited, server_from_arguments, skip, wait_for

try:
    import openai
except ImportError:
    skip("the openai package is not installed")

limited(240)
server, _ = server_from_arguments(__doc__)
check = Checks()
client = openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0)
model = server.model()
fake = server.is_fake()
hello = [{"role": "user", "content": "hello"}]
long_wish = [{"role": "user", "content": "slow 400" if fake else "Tell me a long story."}]


def running():
    values = server.metrics()
    return values.get("fake_running", values.get("troupe_requests_in_flight", 0))


def chat_plain():
    answer = client.chat.completions.create(model=model, messages=hello, max_tokens=24, temperature=0)
    check(answer.choices[0].message.content or answer.choices[0].message.model_extra, "chat: plain answer has content")
    check.equal(answer.object, "chat.completion", "chat: object")
    check(answer.choices[0].finish_reason in ("stop", "length"), "chat: finish_reason")
    check.equal(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens, "chat: usage adds up")
    check(answer.usage.prompt_tokens_details.cached_tokens is not None, "chat: cached tokens are told")
    again = client.chat.completions.create(model=model, messages=hello, max_tokens=24, temperature=0)
    check.equal(again.choices[0].message.content, answer.choices[0].message.content, "chat: greedy answers are the same")
    return answer.choices[0].message.content


def chat_stream(plain):
    text, finish, usage, roles = "", None, None, []
    for chunk in client.chat.completions.create(model=model, messages=hello, max_tokens=24, temperature=0, stream=True,
                                                stream_options={"include_usage": True}):
        if not chunk.choices:
            usage = chunk.usage
            continue
        delta = chunk.choices[0].delta
        roles += [delta.role] if delta.role else []
        text += delta.content or ""
        finish = chunk.choices[0].finish_reason or finish
    check.equal(text, plain, "chat: stream and plain answer are the same text")
    check.equal(roles, ["assistant"], "chat: the role comes once")
    check(finish in ("stop", "length"), "chat: stream has a finish_reason")
    check(usage and usage.completion_tokens > 0, "chat: stream ends with its usage")


def chat_choices(plain):
    # The fake runtime gives the same answer whatever the seed.
    answer = client.chat.completions.create(model=model, messages=hello, max_tokens=24, temperature=0, n=3)
    check.equal([choice.index for choice in answer.choices], [0, 1, 2], "choices: each has its index")
    check.equal([choice.message.content for choice in answer.choices], [plain] * 3, "choices: greedy ones are all the same")
    one = client.chat.completions.create(model=model, messages=hello, max_tokens=24, temperature=0)
    check.equal(answer.usage.prompt_tokens, one.usage.prompt_tokens, "choices: the prompt counts once")
    check.equal(answer.usage.completion_tokens, 3 * one.usage.completion_tokens, "choices: what they wrote is summed")
    options = {"model": model, "messages": hello, "max_tokens": 24, "temperature": 1.2, "seed": 11}
    single = client.chat.completions.create(**options)
    drawn = client.chat.completions.create(**options, n=4)
    check.equal(drawn.choices[0].message.content, single.choices[0].message.content, "choices: the first is the only one's answer")
    texts, finish = ["", "", "", ""], {}
    for chunk in client.chat.completions.create(**options, n=4, stream=True):
        for choice in chunk.choices:
            texts[choice.index] += choice.delta.content or ""
            if choice.finish_reason:
                finish[choice.index] = choice.finish_reason
    check.equal(texts, [choice.message.content or "" for choice in drawn.choices], "choices: streamed ones are the same texts")
    check.equal(sorted(finish), [0, 1, 2, 3], "choices: every streamed one ends")
    stream = client.chat.completions.create(model=model, messages=long_wish, max_tokens=400, stream=True, n=4)
    for _ in zip(range(8), stream):
        pass
    stream.close()
    check(wait_for(lambda: running() == 0, 10), "choices: a client that leaves has all of them cancelled")


def chat_stop(plain):
    if len(plain) < 3:
        return check(True, "chat: answer too short to stop within")
    stop = plain[len(plain) // 2]
    answer = client.chat.completions.create(model=model, messages=hello, max_tokens=24, temperature=0, stop=[stop])
    check.equal(answer.choices[0].message.content, plain[:plain.index(stop)], "chat: ends before its stop string")
    check.equal(answer.choices[0].finish_reason, "stop", "chat: finish_reason of a stop string")


def chat_logprobs():
    answer = client.chat.completions.create(model=model, messages=hello, max_tokens=4, temperature=0, logprobs=True, top_logprobs=2)
    content = answer.choices[0].logprobs.content
    check(len(content) > 0, "chat: log probabilities are there")
    for entry in content:
        if not (entry.logprob <= 0 and len(entry.top_logprobs) == 2 and isinstance(entry.bytes, list)):
            return check(False, "chat: log probabilities are well formed", entry)
    check(True, "chat: log probabilities are well formed")
    check(content[0].top_logprobs[0].token == content[0].token, "chat: greedy takes the best token")
    text = b"".join(bytes(entry.bytes) for entry in content).decode(errors="replace")
    check(text.startswith(answer.choices[0].message.content[:1]), "chat: the tokens' bytes are the text")


def chat_cancel():
    stream = client.chat.completions.create(model=model, messages=long_wish, max_tokens=2000, temperature=1, stream=True,
                                            extra_body={"ignore_eos": True})
    for count, _ in enumerate(stream):
        if count == 3:
            break
    stream.close()
    check(wait_for(lambda: running() == 0, 5), "chat: closing the stream ends the generation", f"{running()} still run")


def chat_tools():
    tools = [{"type": "function", "function": {"name": "get_weather", "description": "The weather of a city.",
                                               "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}]
    answer = client.chat.completions.create(model=model, messages=[{"role": "user", "content": "tool"}], tools=tools, max_tokens=64)
    if fake:
        call = answer.choices[0].message.tool_calls[0]
        check.equal((call.function.name, json.loads(call.function.arguments)), ("get_weather", {"city": "Paris"}), "chat: a tool call")
        check.equal(answer.choices[0].finish_reason, "tool_calls", "chat: finish_reason of a tool call")
    follow_up = client.chat.completions.create(model=model, max_tokens=8, messages=[
        {"role": "user", "content": "weather?"},
        {"role": "assistant", "content": None,
         "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": "{\"city\":\"Paris\"}"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "12C"}], tools=tools)
    check(follow_up.id.startswith("chatcmpl-"), "chat: a tool's result is taken")


def errors():
    for kind, call in (
            (openai.NotFoundError, lambda: client.chat.completions.create(model="no-such-model", messages=hello)),
            (openai.BadRequestError, lambda: client.chat.completions.create(model=model, messages=hello, temperature=9)),
            (openai.BadRequestError, lambda: client.responses.create(model=model, input="x", previous_response_id="resp_no"))):
        try:
            call()
            check(False, f"errors: {kind.__name__}", "nothing was raised")
        except kind as error:
            check(error.code and error.request_id, f"errors: {kind.__name__} with code and request id", error)
    check(client.models.list().data[0].id == model, "models: list")
    check(client.models.retrieve(model).id == model, "models: retrieve")


def completions():
    answer = client.completions.create(model=model, prompt="count 5" if fake else "Once upon a time", max_tokens=5, temperature=0)
    text = "".join(chunk.choices[0].text for chunk in client.completions.create(
        model=model, prompt="count 5" if fake else "Once upon a time", max_tokens=5, temperature=0, stream=True))
    check.equal(text, answer.choices[0].text, "completions: stream and plain answer are the same text")


def responses_http():
    answer = client.responses.create(model=model, input="say one two", max_output_tokens=24, temperature=0)
    check(answer.status in ("completed", "incomplete"), "responses: plain answer ends", answer.status)
    with client.responses.stream(model=model, input="say one two", max_output_tokens=24, temperature=0) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    check.equal(kinds[:2], ["response.created", "response.in_progress"], "responses: stream begins")
    check(kinds[-1] in ("response.completed", "response.incomplete"), "responses: stream ends", kinds[-1])
    check.equal(final.output_text, answer.output_text, "responses: stream and plain answer are the same text")
    follow = client.responses.create(model=model, input="last" if fake else "And then?", previous_response_id=answer.id,
                                     max_output_tokens=16, temperature=0)
    check.equal(follow.previous_response_id, answer.id, "responses: goes on from a stored response")
    check(follow.usage.input_tokens > answer.usage.input_tokens, "responses: the conversation before is part of the input")
    if fake:
        check.equal(follow.output_text, "one two", "responses: the conversation before arrived")
    check.equal(client.responses.retrieve(answer.id).id, answer.id, "responses: retrieve")
    client.responses.delete(answer.id)
    try:
        client.responses.retrieve(answer.id)
        check(False, "responses: a deleted one is gone")
    except openai.NotFoundError:
        check(True, "responses: a deleted one is gone")


def responses_socket():
    with client.responses.connect() as connection:
        def turn(wish, **more):
            connection.response.create(model=model, input=wish, max_output_tokens=24, temperature=0, **more)
            kinds, text, final = [], "", None
            for event in connection:
                kinds.append(event.type)
                if event.type == "response.output_text.delta":
                    text += event.delta
                if event.type in ("response.completed", "response.incomplete", "response.failed", "error"):
                    final = event
                    break
            return kinds, text, final

        kinds, text, final = turn("say one two", store=False)
        check.equal(kinds[:2], ["response.created", "response.in_progress"], "socket: events begin")
        check(kinds[-1] in ("response.completed", "response.incomplete"), "socket: events end", kinds)
        check.equal(text, "".join(part.text for item in final.response.output if item.type == "message" for part in item.content),
                    "socket: the deltas are the text")
        numbers = final.sequence_number
        check.equal(numbers, len(kinds) - 1, "socket: sequence numbers have no gaps")
        _, text, second = turn("last" if fake else "And then?", previous_response_id=final.response.id)
        check.equal(second.response.previous_response_id, final.response.id, "socket: goes on from a response of its own")
        if fake:
            check.equal(text, "one two", "socket: the conversation before arrived")
        kinds, _, error = turn("x", previous_response_id="resp_no")
        check(kinds == ["error"] and "previous_response_not_found" in str(error), "socket: an error event", error)
        kinds, _, _ = turn("say still here")
        check(kinds[-1] in ("response.completed", "response.incomplete"), "socket: stays open after an error")


async def responses_async_socket():
    async with openai.AsyncOpenAI(base_url=server.url + "/v1", api_key="none").responses.connect() as connection:
        await connection.response.create(model=model, input="say async", max_output_tokens=16, temperature=0)
        kinds = []
        async for event in connection:
            kinds.append(event.type)
            if event.type in ("response.completed", "response.incomplete", "error"):
                break
        check(kinds[-1] in ("response.completed", "response.incomplete"), "socket: the asynchronous client, too", kinds[-1:])


with server:
    plain = chat_plain()
    chat_stream(plain)
    chat_choices(plain)
    chat_stop(plain)
    chat_logprobs()
    chat_cancel()
    chat_tools()
    errors()
    completions()
    responses_http()
    if hasattr(client.responses, "connect"):
        responses_socket()
        asyncio.run(responses_async_socket())
    else:
        print("skip  this openai package has no responses.connect()")
check.done()
