"""What the comparisons share: servers that are started and asked as any client would, and rows of two sides with their ratio."""
import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import time
import urllib.request


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """A process that serves HTTP on `port` until stop(); `command` names the port itself."""

    def __init__(self, command, port, ready_s=300):
        self.port, self.url = port, f"http://127.0.0.1:{port}"
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + ready_s
        while time.monotonic() < until:
            try:
                with urllib.request.urlopen(self.url + "/health") as answer:
                    if answer.status == 200:
                        return
            except OSError:
                if self.process.poll() is not None:
                    sys.exit(f"the server ended at its start: {' '.join(command)}")
            time.sleep(0.1)
        self.stop()
        sys.exit(f"the server did not start in time: {' '.join(command)}")

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def processor_seconds(pid):
    """What all threads of a process have used."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as stat:
                total += int(stat.read().split()[0])
        except OSError:
            pass  # the thread has ended
    return total * 1e-9


class Neighbours:
    """What part of the machine's processor time others take: neither the server nor this program."""

    def __init__(self, server):
        self.pid = server.process.pid
        self.begin = self._read()

    def _read(self):
        with open("/proc/stat", encoding="ascii") as stat:
            ticks = [int(t) / os.sysconf("SC_CLK_TCK") for t in stat.readline().split()[1:9]]
        return sum(ticks), sum(ticks) - ticks[3] - ticks[4] - processor_seconds(self.pid) - sum(os.times()[:2])

    def share(self):
        end = self._read()
        return max(0.0, (end[1] - self.begin[1]) / max(0.01, end[0] - self.begin[0]))


def wait_for_quiet(server, share, seconds=120):
    """Until others take less than `share` of the processor for half a second, or the time is up."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        neighbours = Neighbours(server)
        time.sleep(0.5)
        if neighbours.share() < share:
            return


def stream_chat(server, body):
    """One chat completion on a connection of its own: seconds to the first text, the server's processor seconds until then, seconds
    in all, usage."""
    data = json.dumps(dict(body, stream=True, stream_options={"include_usage": True}))
    used, began = processor_seconds(server.process.pid), time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    connection.request("POST", "/v1/chat/completions", data, {"content-type": "application/json"})
    answer = connection.getresponse()
    if answer.status != 200:
        sys.exit(f"refused with {answer.status}: {answer.read()[:500]}")
    first, usage = None, None
    for line in answer:
        if not line.startswith(b"data: {"):
            continue
        if first is None and any(c["delta"].get("content") for c in json.loads(line[6:])["choices"]):
            first = time.perf_counter() - began
            used = processor_seconds(server.process.pid) - used
        elif b'"usage"' in line:
            usage = json.loads(line[6:]).get("usage") or usage
    connection.close()
    return first, used, time.perf_counter() - began, usage


def compare(names, ours, theirs, middle=statistics.median):
    """A row of the report: both sides' middle over their rounds and the ratio ours / theirs."""
    row = dict(names, troupe=middle(ours), llama_cpp=middle(theirs), troupe_rounds=ours, llama_cpp_rounds=theirs)
    row["ratio"] = row["troupe"] / row["llama_cpp"]
    return row


def write_report(path, report):
    if path:
        with open(path, "w", encoding="utf-8") as out:
            json.dump(report, out, indent=1)
