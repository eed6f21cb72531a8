import json
import os
import socket
import subprocess
from collections.abc import Callable
from typing import Any, Generic, Literal, NotRequired, TypedDict, TypeVar, Union, cast

Entry = TypeVar("Entry")
# An entry of a list, from which `fields` and `brief` may leave out any member.
Part = dict[str, Any]


class Page(TypedDict, Generic[Entry]):
    """A part of a list. `next` is the cursor of the next page, and `left` counts what is there."""

    items: list[Entry]
    truncated: bool
    next: str | None
    left: int
    version: NotRequired[int]


class ContextureError(Exception):
    """An error of a call: its code, its kind (see `Kind`), and its data."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.code: int = error["code"]
        self.data: dict[str, Any] = error.get("data") or {}
        self.kind: str | None = self.data.get("kind")


class Call:
    """A call that was sent. `result` waits for its answer."""

    def __init__(self, client: "Connection", id: int, progress: Callable[..., object] | None) -> None:
        self.client, self.id, self.progress = client, id, progress
        self.answer: dict[str, Any] | None = None

    def result(self) -> Any:
        while self.answer is None:
            self.client.read()
        if "error" in self.answer:
            raise ContextureError(self.answer["error"])
        return self.answer["result"]


class Connection:
    """A connection to a server, in JSON. What comes is read while a call waits, on one thread;
    progress and notifications may make calls in their turn."""

    def __init__(self, reader: Any, writer: Any, close: Callable[[], object]) -> None:
        self._reader, self._writer, self._close = reader, writer, close
        self._calls: dict[int, Call] = {}
        self._last = 0
        self._handlers: dict[str, Callable[[Any], object]] = {}

    @classmethod
    def start(cls, *command: str, **options: Any) -> Any:
        """Starts a server, such as `contexture serve --stdio`, that ends with the connection."""
        pipe = subprocess.PIPE
        server = subprocess.Popen(command, stdin=pipe, stdout=pipe, encoding="utf-8", **options)

        def close() -> None:
            assert server.stdin and server.stdout
            server.stdin.close()
            server.wait()
            server.stdout.close()

        return cls(server.stdout, server.stdin, close)

    @classmethod
    def connect(cls, address: str | tuple[str, int]) -> Any:
        """Connects to the Unix socket with this path, or to a host and port."""
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        peer = socket.socket(family)
        peer.connect(os.fspath(address) if isinstance(address, str) else address)
        stream = peer.makefile("rw", encoding="utf-8", newline="\n")

        def close() -> None:
            peer.shutdown(socket.SHUT_RDWR)
            stream.close()
            peer.close()

        return cls(stream, stream, close)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._close()

    def send(
        self, method: str, params: dict[str, Any], progress: Any = None, optional: Any = None
    ) -> Call:
        """Sends a call and does not wait. Optional parameters that are None are left out."""
        self._last += 1
        more = {name: of for name, of in (optional or {}).items() if of is not None}
        given = {**params, **more}
        message = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": given}
        self._writer.write(json.dumps(message) + "\n")
        self._writer.flush()
        call = self._calls[self._last] = Call(self, self._last, progress)
        return call

    def handle(self, topic: str, handler: Callable[[Any], object]) -> None:
        """Calls `handler` with the parameters of each notification of a topic."""
        self._handlers[topic] = handler

    def read(self) -> None:
        """Waits for the next message and passes it on."""
        line = self._reader.readline()
        if not line:
            raise ConnectionError("the server has closed the connection")
        message = json.loads(line)
        topic, params = message.get("method"), message.get("params")
        if topic is None:
            call = self._calls.pop(message["id"], None)
            if call is not None:
                call.answer = message
        elif topic == "progress":
            call = self._calls.get(params["id"])
            if call is not None and call.progress is not None:
                call.progress(params)
        elif topic in self._handlers:
            self._handlers[topic](params)
