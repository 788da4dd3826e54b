"""What the end-to-end tests share: a server to talk to, checks that say what failed, and small HTTP and metrics readers.

Every test is a program: `test.py --url http://127.0.0.1:8000` tests a server that runs, `test.py --binary PROGRAM ...` starts
one on a free port and ends it. It prints a line a check and exits with 1 when one failed, with 77 when it can't run here.
"""
import argparse
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from urllib.parse import urlsplit

SKIP = 77


class Checks:
    """Counts checks; each prints one line."""

    def __init__(self):
        self.passed = 0
        self.failed = 0

    def __call__(self, condition, what, detail=""):
        if condition:
            self.passed += 1
            print(f"ok    {what}", flush=True)
        else:
            self.failed += 1
            print(f"FAIL  {what}  {detail}", flush=True)
        return bool(condition)

    def equal(self, got, wanted, what):
        return self(got == wanted, what, f"got {got!r}, wanted {wanted!r}")

    def done(self):
        print(f"{self.passed} passed, {self.failed} failed", flush=True)
        sys.exit(1 if self.failed else 0)


def skip(reason):
    print(f"skip  {reason}", flush=True)
    sys.exit(SKIP)


def limited(seconds):
    """Ends a test that hangs; its line says so."""
    def stop(*_):
        print(f"FAIL  the test took longer than {seconds} s", flush=True)
        os._exit(1)
    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)


class Server:
    """The server under test: one that runs already, or a process of ours."""

    def __init__(self, url, process=None):
        self.url = url.rstrip("/")
        parts = urlsplit(self.url)
        self.host, self.port = parts.hostname, parts.port or 80
        self.process = process

    @property
    def pid(self):
        return self.process.pid if self.process else None

    @staticmethod
    def start(command, timeout=120):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)
        began = time.monotonic()
        line = process.stdout.readline()
        try:
            ready = json.loads(line)
        except json.JSONDecodeError:
            process.kill()
            raise SystemExit(f"FAIL  no ready line from {command}: {line!r}")
        server = Server(f"http://127.0.0.1:{ready['port']}", process)
        server.command = command
        while time.monotonic() - began < timeout:
            if server.get("/health")[0] == 200:
                return server
            time.sleep(0.1)
        process.kill()
        raise SystemExit("FAIL  the server did not become healthy")

    def stop(self):
        if not self.process:
            return 0
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return "killed"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def request(self, method, path, body=None, headers=None, timeout=60):
        """(status, headers, text)"""
        data = None if body is None else (body if isinstance(body, bytes) else json.dumps(body).encode())
        request = urllib.request.Request(self.url + path, data, dict(headers or {}), method=method)
        if data is not None:
            request.add_header("content-type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return answer.status, dict(answer.headers), answer.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.code, dict(refused.headers), refused.read().decode()

    def get(self, path):
        status, _, text = self.request("GET", path)
        return status, text

    def post(self, path, body):
        status, _, text = self.request("POST", path, body)
        return status, json.loads(text) if text else None

    def model(self):
        return json.loads(self.get("/v1/models")[1])["data"][0]["id"]

    def is_fake(self):
        """The edge in front of the scripted runtime (tests/io/fake_server.cpp), whose answers are known."""
        return self.model() == "fake-model"

    def metrics(self):
        """{name or name{labels}: value}"""
        values = {}
        for line in self.get("/metrics")[1].splitlines():
            if line and not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                values[name] = float(value)
        return values

    # What the kernel says of our process; None for one we did not start.
    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd")) if self.pid else None

    def resident_bytes(self):
        if not self.pid:
            return None
        with open(f"/proc/{self.pid}/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def cpu_seconds(self):
        if not self.pid:
            return None
        with open(f"/proc/{self.pid}/stat") as stat:
            fields = stat.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_for(condition, seconds=10, step=0.05):
    """Polls a condition of another process; true as soon as it holds."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(step)
    return bool(condition())


def server_from_arguments(description, more=None, settings=lambda arguments: []):
    """`settings`: what the test adds to the program's arguments."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--url", help="a server that runs")
    parser.add_argument("--binary", nargs=argparse.REMAINDER, metavar="ARG", help="a program to start, with its arguments; comes last")
    if more:
        more(parser)
    arguments = parser.parse_args()
    if arguments.binary:
        return Server.start(arguments.binary + settings(arguments)), arguments
    if arguments.url:
        return Server(arguments.url), arguments
    parser.error("give --url or --binary")
