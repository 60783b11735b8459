"""Chromium without a window, driven over its own protocol through a pair of pipes."""

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chrome"))), None)
TIMEOUT = 90.0  # seconds: machines are slow, and shared with others


class Browser:
    """One page of a browser that reaches this machine and nothing else."""

    def __init__(self, folder: Path) -> None:
        to_child, self.write_end = os.pipe()
        self.read_end, from_child = os.pipe()

        def take_pipes() -> None:  # Chromium reads from 3 and writes to 4
            spare = os.dup(from_child)
            os.dup2(to_child, 3)
            os.dup2(spare, 4)

        self.process = subprocess.Popen(
            [
                CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
                "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
                # nobody looks at this window: without these its timers may be put off
                "--disable-background-timer-throttling", "--disable-renderer-backgrounding",
                "--disable-backgrounding-occluded-windows",
                f"--user-data-dir={folder / 'profile'}", "--window-size=1280,1000",
                "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "about:blank",
            ],
            preexec_fn=take_pipes,
            pass_fds=(3, 4),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_child)
        os.close(from_child)
        self.number, self.buffer, self.events = 0, b"", []
        self.session: str | None = None
        targets = self.call("Target.getTargets")["targetInfos"]
        (target,) = [each for each in targets if each["type"] == "page"]
        attached = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log", "DOM"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send one command and wait for its answer; what else arrives are events."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session is not None:
            message["sessionId"] = self.session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            assert answer.get("method") != "Inspector.targetCrashed", "the page has crashed"
            self.events.append(answer)

    def receive(self) -> dict[str, Any]:
        """The next message."""
        deadline = time.monotonic() + TIMEOUT
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.read_end], [], [], deadline - time.monotonic())
            assert ready, "the browser does not answer"
            piece = os.read(self.read_end, 1 << 20)
            assert piece, "the browser has ended"
            self.buffer += piece
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def evaluate(self, script: str) -> Any:
        """The value of a JavaScript expression."""
        found = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, f"{script}: {found['exceptionDetails']}"
        return found["result"].get("value")

    def wait_for(self, script: str) -> Any:
        """Wait until an expression is true; its value."""
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline:
            with contextlib.suppress(AssertionError):  # what is not there yet
                value = self.evaluate(script)
                if value:
                    return value
            time.sleep(0.05)
        raise AssertionError(f"never true: {script}; the page shows: {self.text()}")

    def wait_for_element(self, selector: str) -> None:
        """Wait until the page has an element."""
        self.wait_for(f"document.querySelector({json.dumps(selector)}) !== null")

    def text(self) -> str:
        """All that one can read."""
        return self.evaluate("document.body.innerText")

    def click(self, selector: str) -> None:
        """Click in the middle of an element with the mouse."""
        x, y = self.centre(selector)
        self.mouse("mousePressed", x, y)
        self.mouse("mouseReleased", x, y)

    def centre(self, selector: str) -> tuple[float, float]:
        """Where the middle of an element is on the screen."""
        self.wait_for_element(selector)
        box = self.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect();"
            "return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        return box[0], box[1]

    def mouse(self, kind: str, x: float, y: float) -> None:
        """One event of the left button."""
        self.call(
            "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1
        )

    def type_into(self, selector: str, text: str) -> None:
        """Replace what a field holds, as a keyboard would."""
        self.click(selector)
        self.evaluate(f"document.querySelector({json.dumps(selector)}).select()")
        self.call("Input.insertText", text=text)

    def upload(self, selector: str, path: Path) -> None:
        """Choose a file."""
        self.wait_for_element(selector)
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", nodeId=node, files=[str(path)])

    def requested(self) -> list[str]:
        """The addresses of all requests so far."""
        self.evaluate("0")  # so that what is under way has arrived
        return [each["request"]["url"] for each in self.reported("Network.requestWillBeSent")]

    def console_errors(self) -> list[str]:
        """Errors that the browser's console shows."""
        entries = [each["entry"] for each in self.reported("Log.entryAdded")]
        thrown = self.reported("Runtime.exceptionThrown")
        return [entry["text"] for entry in entries if entry["level"] == "error"] + [
            str(each["exceptionDetails"]) for each in thrown
        ]

    def reported(self, method: str) -> list[dict[str, Any]]:
        """What all events of a kind have reported so far."""
        return [each["params"] for each in self.events if each.get("method") == method]

    def photograph(self, path: Path) -> None:
        """A screenshot of the whole page."""
        taken = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(taken["data"]))

    def close(self) -> None:
        """End the browser."""
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.write_end)
        os.close(self.read_end)
