"""A headless Chromium that a script drives over a pipe, by the protocol of its developer tools."""

import base64
import json
import os
import subprocess
import tempfile
import threading
import time

# Longest time to wait for anything, in seconds.
PATIENCE = 60


class Chrome:
    """A browser with a profile of its own."""

    def __init__(self, width=1280, height=860):
        self.folder = tempfile.TemporaryDirectory()
        to_read, self.to_write = os.pipe()
        self.to_hear, to_say = os.pipe()
        command = ["chromium", "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu",
                   "--no-first-run", "--disable-background-networking", "--disable-component-update",
                   "--disable-sync", "--disable-extensions", "--host-resolver-rules=MAP *.test 127.0.0.1",
                   f"--window-size={width},{height}", f"--user-data-dir={self.folder.name}", "about:blank"]

        def numbered():
            os.dup2(to_read, 3)
            os.dup2(to_say, 4)

        # A shell would close the descriptors; the numbers 3 and 4 are those that Chromium uses.
        self.process = subprocess.Popen(command, preexec_fn=numbered, pass_fds=(3, 4, to_read, to_say),
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        env={**os.environ, "HOME": self.folder.name})
        os.close(to_read)
        os.close(to_say)
        self.last, self.replies, self.events = 0, {}, []
        self.changed, self.writing = threading.Condition(), threading.Lock()
        threading.Thread(target=self._hear, daemon=True).start()

    def _hear(self):
        rest = b""
        while piece := os.read(self.to_hear, 1 << 16):
            *messages, rest = (rest + piece).split(b"\0")
            with self.changed:
                for message in map(json.loads, messages):
                    if "id" in message:
                        self.replies[message["id"]] = message
                    else:
                        self.events.append(message)
                self.changed.notify_all()

    def send(self, method, session=None, **params):
        """Sends a command and returns its result."""
        with self.changed:
            self.last += 1
            number = self.last
        message = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        rest = json.dumps(message).encode() + b"\0"
        with self.writing:
            while rest:
                rest = rest[os.write(self.to_write, rest):]
        with self.changed:
            if not self.changed.wait_for(lambda: number in self.replies, PATIENCE):
                raise TimeoutError(method)
            reply = self.replies.pop(number)
        if "error" in reply:
            raise RuntimeError(f"{method}: {reply['error']}")
        return reply["result"]

    def page(self, width=1280, height=860, dark=False):
        """Opens a tab."""
        target = self.send("Target.createTarget", url="about:blank", background=False)["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        return Page(self, target, session, width, height, dark)

    def close(self):
        """Ends the browser."""
        try:
            self.send("Browser.close")
        except (OSError, RuntimeError, TimeoutError):
            self.process.kill()
        self.process.wait(PATIENCE)
        self.folder.cleanup()


class Page:
    """A tab of the browser."""

    def __init__(self, chrome, target, session, width, height, dark):
        self.chrome, self.target, self.session = chrome, target, session
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.look(width, height, dark)

    def send(self, method, **params):
        """Sends a command for this tab."""
        return self.chrome.send(method, self.session, **params)

    def front(self):
        """Shows this tab, and hides the others."""
        self.send("Page.bringToFront")

    def look(self, width, height, dark=False):
        """Sets the size and the colours."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, url):
        """Goes to an address."""
        self.send("Page.navigate", url=url)

    def run(self, script):
        """Runs a script, an expression that may be a promise, and returns its value."""
        result = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{script[:300]}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def until(self, script, what=None):
        """Waits until a script returns something true, and returns it."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                if value := self.run(script):
                    return value
            except RuntimeError:
                pass  # The page is on its way to another one.
            time.sleep(0.03)
        raise TimeoutError(f"{what or script}; the page shows: {self.run('document.body.innerText')!r}")

    def complaints(self):
        """Returns what the page complained of: exceptions, and errors of the console."""
        found = []
        for event in list(self.chrome.events):
            if event.get("sessionId") == self.session:
                if event["method"] == "Runtime.exceptionThrown":
                    details = event["params"]["exceptionDetails"]
                    found.append(details.get("exception", {}).get("description") or details["text"])
                if event["method"] == "Log.entryAdded" and event["params"]["entry"]["level"] == "error":
                    found.append(event["params"]["entry"]["text"] + " " + event["params"]["entry"].get("url", ""))
        return found

    def picture(self, file):
        """Takes a picture of what is in sight."""
        kind = str(file).rsplit(".", 1)[1]
        more = {} if kind == "png" else {"quality": 85}
        data = self.send("Page.captureScreenshot", format=kind, **more)["data"]
        with open(file, "wb") as out:
            out.write(base64.b64decode(data))

    def close(self):
        """Closes the tab."""
        self.chrome.send("Target.closeTarget", targetId=self.target)
