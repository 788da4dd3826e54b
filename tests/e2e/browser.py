#!/usr/bin/env python3
"""Drives the chat page in headless Chromium through the DevTools protocol: type, stream, stop, new chat, phone, dark."""
import asyncio
import base64
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import urllib.request

from support import Checks, limited, server_from_arguments, skip, wait_for

try:
    import websockets
except ImportError:
    skip("the websockets package is not installed")

limited(240)


def more(parser):
    parser.add_argument("--screenshots", help="a folder to save pictures in")


chromium = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)
if not chromium:
    skip("chromium is not installed")
server, arguments = server_from_arguments(__doc__, more)
check = Checks()
fake = server.is_fake()
long_wish = "slow 2000" if fake else "Tell me everything about returns, payment and delivery."


class Page:
    """One tab, spoken to over its DevTools socket."""

    def __init__(self, socket):
        self.socket = socket
        self.numbers = itertools.count(1)
        self.problems = []  # exceptions, refused resources, errors on the console

    async def call(self, method, **params):
        number = next(self.numbers)
        await self.socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            message = json.loads(await asyncio.wait_for(self.socket.recv(), 30))
            if message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self.note(message)

    def note(self, message):
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.problems.append(params["exceptionDetails"].get("exception", {}).get("description", str(params)))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.problems.append(params["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] == "error":
            self.problems.append(str(params["args"]))

    async def js(self, expression):
        result = await self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    async def until(self, expression, seconds=60):
        for _ in range(int(seconds / 0.1)):
            if await self.js(expression):
                return True
            await asyncio.sleep(0.1)
        return False

    async def type(self, text):
        await self.js("document.getElementById('input').focus()")
        await self.call("Input.insertText", text=text)

    async def press(self, key, code, number, **more):
        text = {"text": "\r"} if key == "Enter" else {}
        await self.call("Input.dispatchKeyEvent", type="keyDown", key=key, code=code, windowsVirtualKeyCode=number, **text, **more)
        await self.call("Input.dispatchKeyEvent", type="keyUp", key=key, code=code, windowsVirtualKeyCode=number, **more)

    async def click(self, identity):
        where = await self.js(f"(() => {{ const r = document.getElementById('{identity}').getBoundingClientRect();"
                              " return [r.x + r.width / 2, r.y + r.height / 2]; })()")
        for kind in ("mousePressed", "mouseReleased"):
            await self.call("Input.dispatchMouseEvent", type=kind, x=where[0], y=where[1], button="left", clickCount=1)

    async def picture(self, name):
        if arguments.screenshots:
            os.makedirs(arguments.screenshots, exist_ok=True)
            data = await self.call("Page.captureScreenshot", format="png")
            with open(os.path.join(arguments.screenshots, name + ".png"), "wb") as out:
                out.write(base64.b64decode(data["data"]))


LAST = "document.querySelector('.message.assistant:last-child .text')?.textContent ?? ''"
FOOT = "document.querySelector('.message.assistant:last-child .foot')?.textContent ?? ''"
IDLE = "document.body.dataset.state === 'idle'"


async def drive(page):
    for domain in ("Page", "Runtime", "Log"):
        await page.call(domain + ".enable")
    await page.call("Emulation.setDeviceMetricsOverride", width=1100, height=760, deviceScaleFactor=1, mobile=False)
    await page.call("Page.navigate", url=server.url + "/")
    if not fake:  # a small model may not know where to end
        await page.until("location.protocol === 'http:'")
        await page.js("localStorage.setItem('troupe-settings', JSON.stringify({maxTokens: '250'}))")
        await page.call("Page.reload")
    check(await page.until(f"document.getElementById('model')?.textContent.startsWith({json.dumps(server.model())})"), "the model's name is shown")
    await page.picture("1-welcome")

    await page.type("think The parcel is on its way." if fake else "My name is Alice and my order number is 48213.")
    await page.press("Enter", "Enter", 13, modifiers=8)
    check((await page.js("document.getElementById('input').value")).endswith("\n"), "Shift+Enter makes a new line")
    await page.press("Backspace", "Backspace", 8)
    await page.press("Enter", "Enter", 13)
    check(await page.until("document.querySelectorAll('.message').length === 2"), "Enter sends")
    check(await page.until(IDLE), "the answer comes to its end")
    answer = await page.js(LAST)
    check(len(answer) > 0, "the answer is shown")
    foot = await page.js(FOOT)
    check("token" in foot and "cached" in foot, "tokens and cached tokens are told", foot)
    if fake:
        check.equal(answer, "The parcel is on its way.", "the answer is the model's")
        check.equal(await page.js("document.querySelector('.thinking div').textContent"), "Let me think.", "thinking is shown apart")
        check(not await page.js("document.querySelector('.thinking').open"), "thinking is folded once the answer begins")
    if not fake:
        await page.type("What is my order number?")
        await page.press("Enter", "Enter", 13)
        check(await page.until("document.querySelectorAll('.message').length === 4"), "a second turn is sent")
        check(await page.until(IDLE), "the second answer comes to its end")
        answer = await page.js(LAST)
        check("48213" in answer, "the model recalls what it was told", answer)
    await page.picture("2-answer")

    if not fake:
        await page.click("new-chat")
    await page.type(long_wish)
    await page.press("Enter", "Enter", 13)
    check(await page.until(LAST + f".length > {20 if fake else 0}"), "the answer streams")
    first = len(await page.js(LAST))
    if fake:
        check(await page.until(LAST + f".length > {first}", 5), "and goes on")
        check("tokens/s" in await page.js(FOOT), "tokens a second are told while it streams")
    await page.picture("3-streaming")
    stopped = not await page.js(IDLE)
    if stopped:
        await page.click("stop")
    check(await page.until(IDLE, 5), "Stop ends it")
    if stopped:
        check("stopped" in await page.js(FOOT), "it is marked as stopped", await page.js(FOOT))
    running = "fake_running" if fake else "troupe_requests_in_flight"
    check(wait_for(lambda: server.metrics()[running] == 0, 5), "the server has stopped, too")

    await page.type("<img src=x onerror=alert(1)><b>bold</b>" if not fake else "say <b>bold</b> <img/src=x/onerror=alert(1)>")
    await page.press("Enter", "Enter", 13)
    check(await page.until(IDLE), "an answer with markup ends")
    check.equal(await page.js("document.querySelectorAll('.message b, .message img').length"), 0, "markup stays text")

    if fake:
        await page.click("new-chat")
        await page.type("break")
        await page.press("Enter", "Enter", 13)
        check(await page.until("document.querySelector('.error')?.textContent.includes('The device failed.')", 10), "a failure within is shown")
        await page.click("new-chat")
        await page.type("fail")
        await page.press("Enter", "Enter", 13)
        check(await page.until("document.querySelector('.error')?.textContent.includes('more tokens')", 10), "a refusal is shown")
        page.problems = [p for p in page.problems if "400" not in p]  # Chromium logs each refused request
        await page.picture("4-error")

    await page.click("new-chat")
    check.equal(await page.js("document.querySelectorAll('.message').length"), 0, "a new chat is empty")
    await page.call("Emulation.setDeviceMetricsOverride", width=390, height=780, deviceScaleFactor=2, mobile=True)
    await page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    await page.type("say It fits on a phone, in the dark, too." if fake else "Which payment methods do you take?")
    await page.press("Enter", "Enter", 13)
    check(await page.until(IDLE), "the phone's answer ends")
    check(await page.js("document.documentElement.scrollWidth <= 390 && innerWidth <= 390"), "nothing is wider than a phone",
          await page.js("innerWidth"))
    gap = await page.js("innerHeight - document.getElementById('composer').getBoundingClientRect().bottom")
    check(0 <= gap < 60, "the composer stands at the bottom", gap)
    await page.picture("5-phone-dark")
    await page.click("open-settings")
    check(await page.js("document.getElementById('settings').open"), "the settings open")
    await page.picture("6-settings")
    check.equal(page.problems, [], "no error on the console, nothing refused by the policy")


async def main():
    # The browser's own children may still write for a moment after it ended.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen([chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
                                    "--disable-dev-shm-usage", "--remote-debugging-port=0", "--remote-allow-origins=*",
                                    f"--user-data-dir={profile}", "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            port_file = os.path.join(profile, "DevToolsActivePort")
            if not wait_for(lambda: os.path.exists(port_file) and os.path.getsize(port_file) > 0, 60):
                skip("chromium did not start")
            port = open(port_file).read().split()[0]
            tabs = json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/json"))
            address = next(tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page")
            async with websockets.connect(address, max_size=None, ping_interval=None) as socket:
                await drive(Page(socket))
        finally:
            process.terminate()
            process.wait(10)


with server:
    asyncio.run(main())
check.done()
