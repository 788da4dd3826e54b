#!/usr/bin/env python3
"""What a bot host's second turn costs: recorded requests, rendered and tokenised as for Qwen3, through a server of ours.

    bench/turn_two.py --binary build/release/app/troupe --requests FOLDER --tokenizer FOLDER [--layers 28] [--rounds 5]

FOLDER of requests: request_1, request_2 (the next turn), second_session_request_1 (another chat of the same agent),
toolloop_request_1 and _2, each behind any prefix and ending in .json. FOLDER of the tokenizer: Qwen3's tokenizer.json and
tokenizer_config.json. The model is Qwen3-0.6B's shape with random weights and --layers layers: what is measured does not
depend on what the model says. Prints a table; exits with 1 where a bar is missed.

Bars: turn 2 prefills at most 120 tokens; another chat reuses at least 69%; the time to turn 2's first token is at most 1.15
times the time that the device spends on the new tokens (troupe_step_seconds_total).
"""
import argparse
import glob
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

import numpy

NEW_TOKENS_MAX = 120
SHARED_MIN = 0.69
TTFT_RATIO_MAX = 1.15


def random_model(folder, tokenizer, layers, seed=1):
    """A Hugging Face folder: Qwen3-0.6B's widths, bf16, tied embeddings."""
    hidden, ffn, heads, kv_heads, head_dim, vocabulary = 1024, 3072, 16, 8, 128, 151936
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(os.path.join(tokenizer, name), folder)
    config = {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_act": "silu", "hidden_size": hidden,
              "intermediate_size": ffn, "num_attention_heads": heads, "num_key_value_heads": kv_heads, "head_dim": head_dim,
              "num_hidden_layers": layers, "vocab_size": vocabulary, "max_position_embeddings": 40960, "rms_norm_eps": 1e-6,
              "rope_theta": 1000000, "tie_word_embeddings": True, "torch_dtype": "bfloat16", "eos_token_id": 151645}
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config, f)
    shapes = {"model.embed_tokens.weight": (vocabulary, hidden), "model.norm.weight": (hidden,)}
    for i in range(layers):
        at = f"model.layers.{i}."
        shapes.update({
            at + "input_layernorm.weight": (hidden,), at + "post_attention_layernorm.weight": (hidden,),
            at + "self_attn.q_proj.weight": (heads * head_dim, hidden),
            at + "self_attn.k_proj.weight": (kv_heads * head_dim, hidden),
            at + "self_attn.v_proj.weight": (kv_heads * head_dim, hidden),
            at + "self_attn.o_proj.weight": (hidden, heads * head_dim),
            at + "self_attn.q_norm.weight": (head_dim,), at + "self_attn.k_norm.weight": (head_dim,),
            at + "mlp.gate_proj.weight": (ffn, hidden), at + "mlp.up_proj.weight": (ffn, hidden),
            at + "mlp.down_proj.weight": (hidden, ffn)})
    header, end = {}, 0
    for name, shape in shapes.items():
        size = 2 * int(numpy.prod(shape))
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    dice = numpy.random.default_rng(seed)
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        for shape in shapes.values():
            values = numpy.ones(shape, numpy.float32) if len(shape) == 1 else \
                dice.standard_normal(shape, numpy.float32) * numpy.float32(0.03)
            f.write((values.view(numpy.uint32) >> 16).astype(numpy.uint16).tobytes())


class Server:
    def __init__(self, binary, model, arguments):
        port = 18000 + os.getpid() % 10000
        self.url = f"http://127.0.0.1:{port}"
        self.process = subprocess.Popen([binary, "serve", "--model", model, "--set", f"server.port={port}", *arguments],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(1200):
            time.sleep(0.25)
            try:
                with urllib.request.urlopen(self.url + "/health") as answer:
                    if answer.status == 200:
                        return
            except OSError:
                if self.process.poll() is not None:
                    sys.exit("the server ended at its start")
        sys.exit("the server did not start in time")

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def step_seconds(self):
        with urllib.request.urlopen(self.url + "/metrics") as answer:
            for line in answer.read().decode().splitlines():
                if line.startswith("troupe_step_seconds_total "):
                    return float(line.split()[1])

    def ask(self, body):
        """One token: (seconds to it, seconds inside steps, prompt tokens, cached tokens)."""
        known = ("messages", "tools", "tool_choice", "enable_thinking")
        body = {key: body[key] for key in known if key in body}
        body.update(stream=True, max_tokens=1, temperature=0, ignore_eos=True, stream_options={"include_usage": True})
        data = json.dumps(body).encode()
        before = self.step_seconds()
        begin = time.perf_counter()
        request = urllib.request.Request(self.url + "/v1/chat/completions", data, {"content-type": "application/json"})
        first, usage = None, None
        with urllib.request.urlopen(request) as answer:
            for line in answer:
                if not line.startswith(b"data: {"):
                    continue
                first = first or time.perf_counter() - begin
                usage = json.loads(line[6:]).get("usage") or usage
        return first, self.step_seconds() - before, usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--requests", required=True)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--layers", type=int, default=28)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--set", action="append", default=[], help="further settings, section.key=value")
    options = parser.parse_args()

    def recorded(name):
        found = [f for f in glob.glob(os.path.join(options.requests, f"*_{name}.json"))
                 if name != "request_1" or not f.endswith(("session_request_1.json", "toolloop_request_1.json"))]
        found = [f for f in found if name != "request_2" or not f.endswith("toolloop_request_2.json")]
        with open(found[0]) as f:
            return json.load(f)

    missed = []

    def bar(ok, text):
        if not ok:
            missed.append(text)
        return "" if ok else "   <- misses its bar"

    with tempfile.TemporaryDirectory() as folder:
        random_model(folder, options.tokenizer, options.layers)
        settings = ["memory.context_tokens=20480", "memory.kv_shards=1", *options.set]
        server = Server(options.binary, folder, [part for s in settings for part in ("--set", s)])
        try:
            first = recorded("request_1")
            _, device, prompt, cached = server.ask(first)
            print(f"turn 1                 {prompt:6} tokens, {cached:6} cached, {device:7.2f} s in steps", flush=True)
            second = recorded("request_2")
            ratios, times, spent = [], [], []
            for i in range(options.rounds):
                turn = json.loads(json.dumps(second))
                # Another answer each round, so that each round reads all that is new.
                turn["messages"] = [dict(m, content=f"{i} " + m["content"]) if m["role"] == "assistant" else m
                                    for m in turn["messages"]] if i else turn["messages"]
                ttft, device, prompt, cached = server.ask(turn)
                ratios.append(ttft / device), times.append(ttft), spent.append(device)
                if i == 0:
                    mark = bar(prompt - cached <= NEW_TOKENS_MAX, "new tokens of turn 2")
                    print(f"turn 2                 {prompt:6} tokens, {cached:6} cached, {prompt - cached} new{mark}", flush=True)
            ratio = statistics.median(ratios)
            mark = bar(ratio <= TTFT_RATIO_MAX, "time to the first token of turn 2")
            print(f"  first token          {statistics.median(times):.3f} s, new tokens on the device "
                  f"{statistics.median(spent):.3f} s: {ratio:.3f} times{mark}", flush=True)
            ttft, device, prompt, cached = server.ask(second)
            print(f"turn 2 once more       {prompt:6} tokens, {cached:6} cached, first token {ttft:.3f} s", flush=True)
            # The first two requests came from the host's command line, whose system prompt differs from the gateway's early on:
            # these are another chat's turn with a tool loop inside, and then one more chat of that same agent.
            for name in ("toolloop_request_1", "toolloop_request_2"):
                _, _, prompt, cached = server.ask(recorded(name))
                print(f"{name:22} {prompt:6} tokens, {cached:6} cached, {prompt - cached} new", flush=True)
            _, _, prompt, cached = server.ask(recorded("second_session_request_1"))
            mark = bar(cached / prompt >= SHARED_MIN, "reuse by another chat")
            print(f"another chat           {prompt:6} tokens, {cached:6} cached: {100 * cached / prompt:.1f}%{mark}", flush=True)
        finally:
            server.stop()
    sys.exit(1 if missed else 0)


main()
