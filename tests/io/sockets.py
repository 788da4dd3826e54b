#!/usr/bin/env python3
"""The edge's sockets, spoken to byte by byte: framing, limits, deadlines, clients that vanish or do not read.

sockets.py FAKE_SERVER: the program is tests/io/fake_server.cpp, whose answers are known.
"""
import concurrent.futures
import json
import os
import resource
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
from support import Checks, Server, limited, wait_for  # noqa: E402

limited(280)
program = sys.argv[1]
check = Checks()


class Wire:
    """A raw connection."""

    def __init__(self, server, timeout=20):
        self.host = f"127.0.0.1:{server.port}"
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout)
        self.rest = b""

    def send(self, data):
        self.socket.sendall(data if isinstance(data, bytes) else data.encode())
        return self

    def request(self, method, path, body=None, *headers):
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self.host}", *headers]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        return self.send("\r\n".join(lines) + "\r\n\r\n" + (body or ""))

    def chat(self, wish, stream=True, **more):
        return self.request("POST", "/v1/chat/completions",
                            json.dumps({"messages": [{"role": "user", "content": wish}], "stream": stream, **more}))

    def until(self, mark):
        while mark not in self.rest:
            data = self.socket.recv(65536)
            if not data:
                raise EOFError(self.rest)
            self.rest += data
        end = self.rest.index(mark) + len(mark)
        out, self.rest = self.rest[:end], self.rest[end:]
        return out

    def answer(self):
        """(status, head, body) of an answer with Content-Length."""
        head = self.until(b"\r\n\r\n").decode()
        length = next((int(line.split(":")[1]) for line in head.lower().splitlines() if line.startswith("content-length:")), 0)
        while len(self.rest) < length:
            data = self.socket.recv(65536)
            if not data:
                raise EOFError
            self.rest += data
        body, self.rest = self.rest[:length].decode(), self.rest[length:]
        return int(head.split()[1]), head, body

    def to_end(self):
        out = self.rest
        try:
            while data := self.socket.recv(65536):
                out += data
        except ConnectionError:
            return out + b"<reset>"
        return out

    def reset(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def close(self):
        self.socket.close()


def idle(server):
    return wait_for(lambda: server.metrics()["fake_running"] == 0, 2, 0.02)


def framing(server):
    w = Wire(server)
    for _ in range(3):
        status, head, body = w.request("GET", "/health").answer()
        check(status == 200 and json.loads(body)["status"] == "ok", "a connection serves one request after another")
    w.send(f"GET /health HTTP/1.1\r\nHost: {w.host}\r\n\r\nGET /v1/models HTTP/1.1\r\nHost: {w.host}\r\n\r\n")
    check(w.answer()[2].startswith('{"status"') and "fake-model" in w.answer()[2], "pipelined requests are answered in order")
    check.equal(w.request("HEAD", "/health").until(b"\r\n\r\n").split()[1], b"200", "HEAD has a head")
    status, _, body = w.request("GET", "/v1/models").answer()
    check("fake-model" in body, "and no body")
    w.chat("say one two")
    stream = w.until(b"0\r\n\r\n")
    check(b"data: [DONE]" in stream, "a stream ends with its last chunk")
    check.equal(w.request("GET", "/health").answer()[0], 200, "and the connection goes on after it")
    w.close()
    out = Wire(server).send("GET /health HTTP/1.0\r\n\r\n").to_end()
    check(out.startswith(b"HTTP/1.0 200") and b"connection: close" in out, "HTTP/1.0 is answered and closed", out)
    w = Wire(server)
    body = json.dumps({"messages": [{"role": "user", "content": "say chunked"}]})
    w.send(f"POST /v1/chat/completions HTTP/1.1\r\nHost: {w.host}\r\nTransfer-Encoding: chunked\r\n\r\n")
    for i in range(0, len(body), 7):
        part = body[i:i + 7]
        w.send(f"{len(part):x}\r\n{part}\r\n")
    check("chunked" in w.send("0\r\n\r\n").answer()[2], "a chunked body is read")
    for byte in f"GET /health HTTP/1.1\r\nHost: {w.host}\r\n\r\n":
        w.send(byte)
    check.equal(w.answer()[0], 200, "a request may come byte by byte")
    w.send(f"POST /v1/chat/completions HTTP/1.1\r\nHost: {w.host}\r\nExpect: 100-continue\r\nContent-Length: {len(body)}\r\n\r\n")
    check.equal(w.until(b"\r\n\r\n"), b"HTTP/1.1 100 Continue\r\n\r\n", "100-continue is answered")
    check.equal(w.send(body).answer()[0], 200, "and the body then taken")
    out = Wire(server).send(f"GET /health HTTP/1.1\r\nHost: {w.host}\r\n\r\n")
    out.socket.shutdown(socket.SHUT_WR)
    check(b'"status":"ok"' in out.to_end(), "a client that closed its half still gets what was complete")


def refusals(server):
    def first(data):
        return Wire(server).send(data).answer()

    host = f"Host: 127.0.0.1:{server.port}\r\n"
    check.equal(first("nonsense\r\n\r\n")[0], 400, "no HTTP at all is 400")
    check.equal(first(f"GET / HTTP/1.1\r\n{host}X: " + "a" * 17000 + "\r\n\r\n")[0], 431, "a header over its limit is 431")
    status, head, body = first(f"POST /v1/chat/completions HTTP/1.1\r\n{host}Content-Length: 99999999\r\n\r\n")
    check(status == 413 and "connection: close" in head and json.loads(body)["error"]["code"] == "request_too_large",
          "a body over its limit is refused unread")
    w = Wire(server)
    w.send(f"POST /v1/chat/completions HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\n")
    try:
        for _ in range(18):
            w.send(b"100000\r\n" + b"x" * 0x100000 + b"\r\n")
    except ConnectionError:
        pass
    check(b" 413 " in w.to_end()[:40], "so is a chunked one that grows over it")
    check.equal(first("GET /health HTTP/1.1\r\n\r\n")[0], 400, "no Host is 400")
    check.equal(first("GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n")[0], 403, "another machine's name as Host is 403")
    check.equal(first(f"GET /health HTTP/1.1\r\n{host}Origin: http://evil.example\r\n\r\n")[0], 403, "another site's Origin is 403")
    check.equal(first(f"GET /v1/responses HTTP/1.1\r\n{host}Origin: http://evil.example\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n")[0], 403,
                "another site's page opens no socket")
    check.equal(first(f"GET /nope HTTP/1.1\r\n{host}\r\n")[0], 404, "an unknown path is 404")
    status, head, _ = first(f"DELETE /v1/models HTTP/1.1\r\n{host}\r\n")
    check(status == 405 and "allow: GET, HEAD" in head, "a wrong method is 405 with Allow")
    for wish, status, retry in (("refuse full", 429, True), ("refuse down", 503, True), ("refuse dead", 503, True), ("fail", 400, False)):
        for stream in (False, True):
            got, head, body = Wire(server).chat(wish, stream).answer()
            check(got == status and ("retry-after:" in head) == retry and "error" in json.loads(body), f"'{wish}' is {status}", (got, head))
    body = json.loads(Wire(server).request("POST", "/v1/chat/completions", '{"messages":5}').answer()[2])
    check.equal(body["error"]["param"], "messages", "a wrong field is named")


def smuggled_memory(server):
    """What a client can say without saying anything stays small."""
    chunked = f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nTransfer-Encoding: chunked\r\n\r\n"
    for what, data in (("a chunk extension", "1;x=" + "a" * 100_000), ("a trailer", "0\r\nx: " + "a" * 100_000)):
        out = Wire(server).send(chunked + data).to_end()
        check(b" 431 " in out[:40], f"{what} without end is refused", out[:80])
    for method in ("GET", "HEAD"):
        out = Wire(server).request(method, "/health", "body").to_end()
        check(b" 400 " in out[:40], f"a {method} with a body is refused", out[:80])
    host = f"Host: 127.0.0.1:{server.port}\r\n"
    for head, status in (("Transfer-Encoding: gzip, chunked\r\n", 501), ("Transfer-Encoding: identity\r\nContent-Length: 2\r\n", 501),
                         (host, 400)):
        out = Wire(server).send(f"POST /v1/chat/completions HTTP/1.1\r\n{host}{head}Connection: close\r\n\r\n").to_end()
        check(f" {status} ".encode() in out[:40], f"{head.strip()!r} is {status}", out[:80])
    out = Wire(server).send(f"GET http://127.0.0.1:{server.port}/health HTTP/1.1\r\n{host}Connection: close\r\n\r\n").to_end()
    check(b" 200 " in out[:40], "a target in absolute form is understood", out[:80])
    check(idle(server), "and all of them are gone")


def clients_that_leave(server):
    for wish in ("wait", "hold", "slow 100000"):
        for how in ("close", "reset", "half"):
            for stream in (True, False):
                w = Wire(server).chat(wish, stream)
                check(wait_for(lambda: server.metrics()["fake_running"] == 1, 2, 0.01), f"{wish}: runs")
                began = time.monotonic()
                if how == "half":
                    w.socket.shutdown(socket.SHUT_WR)
                else:
                    getattr(w, how)()
                ended = idle(server)
                check(ended, f"'{wish}', {'stream' if stream else 'plain'}: a client that leaves by {how} is cancelled",
                      f"{time.monotonic() - began:.2f} s")
    w = Wire(server).chat("slow 100000")
    w.until(b"data: ")
    w.send("x" * 70000)
    check(idle(server), "one that sends on and on while it is answered is cut")


def clients_that_do_not_read(server):
    w = Wire(server)
    w.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    before = server.metrics()["troupe_edge_overflows_total"]
    w.chat("flood 60000")
    check(wait_for(lambda: server.metrics()["troupe_edge_overflows_total"] > before, 10), "a stream nobody reads is dropped at its limit")
    check(idle(server), "and its request cancelled")
    check(w.to_end().endswith(b"<reset>"), "and its connection reset, so that it is not taken for whole")
    big = Wire(server).chat("flood 2000", False).answer()
    check.equal(len(json.loads(big[2])["choices"][0]["message"]["content"]), 2000 * 1024, "a large answer that is read comes whole")


def deadlines(server):
    """Ten seconds and more: all at once."""
    def pings():
        w = Wire(server, 30).chat("hold")
        w.until(b": ping\n\n")
        w.close()
        return True

    def slow_header():
        w = Wire(server, 30)
        w.send("GET /health HTTP/1.1\r\nHo")
        return b" 408 " in w.to_end()[:30]

    def no_request():
        return Wire(server, 30).to_end() == b""

    def web_socket_idle():
        w = Wire(server, 40)
        w.request("GET", "/v1/responses", None, "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
                  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")
        w.until(b"\r\n\r\n")
        return w.until(b"\x89\x00") == b"\x89\x00"

    with concurrent.futures.ThreadPoolExecutor() as pool:
        jobs = [(pool.submit(job), what) for job, what in (
            (pings, "a stream that waits is kept alive by comments"), (slow_header, "a header that does not end gets 408"),
            (no_request, "a connection without a request is closed"), (web_socket_idle, "a silent WebSocket is pinged"))]
        for job, what in jobs:
            try:
                check(job.result(60), what)
            except Exception as error:  # noqa: BLE001
                check(False, what, repr(error))


def caps():
    with Server.start([program, "connections=5"]) as server:
        held = [Wire(server) for _ in range(5)]
        for w in held:
            check.equal(w.request("GET", "/health").answer()[0], 200, "connections up to the cap are served")
        status, head, body = Wire(server).request("GET", "/health").answer()
        check(status == 429 and "retry-after: 1" in head and "connection: close" in head, "the next one is told so", (status, head))
        held.pop().close()
        check(wait_for(lambda: Wire(server).request("GET", "/health").answer()[0] == 200, 5), "and served when another has gone")


def out_of_descriptors():
    with Server.start([program]) as server:
        used = server.descriptors()
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (used + 10, used + 10))
        held = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(40)]
        time.sleep(0.5)
        before = server.cpu_seconds()
        time.sleep(3)
        spent = server.cpu_seconds() - before
        check(spent < 0.15, "a server out of descriptors does not spin", f"{spent:.2f} s of processor time in 3 s")
        for each in held:
            each.close()
        check(wait_for(lambda: alive(server), 8), "and serves again when there are some")


def alive(server):
    try:
        return server.get("/health")[0] == 200
    except OSError:
        return False


def keys():
    with Server.start([program, "key=sesame"]) as server:
        check.equal(server.request("GET", "/v1/models")[0], 401, "without the key: 401")
        check.equal(server.request("GET", "/v1/models", headers={"Authorization": "Bearer nope"})[0], 401, "with a wrong key: 401")
        check.equal(server.request("GET", "/v1/models", headers={"Authorization": "Bearer sesame"})[0], 200, "with the key: 200")
        check.equal(server.request("GET", "/health")[0], 200, "health needs none")
        upgrade = ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")
        check.equal(Wire(server).request("GET", "/v1/responses", None, *upgrade).answer()[0], 401, "a socket without the key: 401")
        w = Wire(server).request("GET", "/v1/responses", None, *upgrade, "Sec-WebSocket-Protocol: responses, openai-insecure-api-key.sesame")
        head = w.until(b"\r\n\r\n").decode().lower()
        check("101 " in head and "sec-websocket-protocol: responses" in head and "sesame" not in head,
              "a browser's socket brings the key as a subprotocol, which is not echoed", head)
    refused = subprocess.run([program, "host=0.0.0.0"], capture_output=True, text=True, timeout=20)
    check(refused.returncode == 1 and "key" in refused.stderr, "an open host without a key is refused at the start", refused.stderr)


def many_threads():
    with Server.start([program, "threads=3"]) as server:
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            texts = list(pool.map(lambda i: Wire(server).chat(f"count {i}").until(b"0\r\n\r\n"), range(64)))
        check(all(b"[DONE]" in text for text in texts), "several edge threads serve side by side")
        check(wait_for(lambda: server.metrics()["troupe_edge_connections"] <= 1, 5), "and let go of every connection")


with Server.start([program]) as server:
    before = server.descriptors()
    framing(server)
    refusals(server)
    smuggled_memory(server)
    clients_that_leave(server)
    clients_that_do_not_read(server)
    deadlines(server)
    check(wait_for(lambda: server.descriptors() <= before + 1, 15), "no descriptor is left open", f"{before} before, {server.descriptors()} after")
caps()
out_of_descriptors()
keys()
many_threads()
check.done()
