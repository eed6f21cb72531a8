"""A session of a real agent through `contexture acp`, against a stand-in for its model.

Usage: session.py CONTEXTURE OPENCODE. Runs OpenCode in a home of its own, with an emptied
environment, and compares what crosses on both sides of the proxy byte for byte.
"""

import http.server
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading

CONTEXTURE, OPENCODE = sys.argv[1:3]
ASKED = []


class Model(http.server.BaseHTTPRequestHandler):
    """Answers each question with the same words, and keeps the question."""

    def log_message(self, *_):
        pass

    def do_POST(self):
        ASKED.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for delta, reason in (({"role": "assistant", "content": "Hello"}, None), ({}, "stop")):
            choice = {"index": 0, "delta": delta, "finish_reason": reason}
            chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
            chunk["choices"] = [choice]
            self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
        self.wfile.write(b"data: [DONE]\n\n")


def lines(stream):
    """Return a function that calls a method over a stream and waits for its result."""
    last = 0

    def call(method, params):
        nonlocal last
        last += 1
        message = {"jsonrpc": "2.0", "id": last, "method": method, "params": params}
        stream.write(json.dumps(message).encode() + b"\n")
        stream.flush()
        while True:
            line = stream.readline()
            assert line, f"{method}: the other side has ended"
            reply = json.loads(line)
            if reply.get("id") == last and "method" not in reply:
                return reply["result"]

    return call


class Kept:
    """Both pipes of a process as one stream, which keeps all bytes."""

    def __init__(self, process):
        self.process, self.sent, self.got = process, b"", b""

    def write(self, data):
        self.sent += data
        self.process.stdin.write(data)

    def flush(self):
        self.process.stdin.flush()

    def readline(self):
        line = self.process.stdout.readline()
        self.got += line
        return line


def insertion(before, after):
    """Return what was inserted into a text, which must be all that changed."""
    start = len(os.path.commonprefix([before, after]))
    end = len(after) - (len(before) - start)
    assert before[:start] + after[start:end] + before[start:] == after, after
    return after[start:end]


def prepare(home, port):
    """Write what the agent reads, and return its environment and its project."""
    project = os.path.join(home, "app")
    for folder in ("app/.git", "run", ".config/opencode"):
        os.makedirs(os.path.join(home, folder))
    url = f"http://127.0.0.1:{port}/v1"
    provider = {"npm": "@ai-sdk/openai-compatible", "models": {"m": {"name": "m"}}}
    provider["options"] = {"baseURL": url, "apiKey": "none"}
    config = {"model": "local/m", "small_model": "local/m", "provider": {"local": provider}}
    with open(os.path.join(home, ".config/opencode/opencode.json"), "w") as file:
        json.dump({**config, "autoupdate": False, "share": "disabled"}, file)
    with open(os.path.join(home, "tee"), "w") as file:
        file.write(f'tee {home}/to-agent | "$@" | tee {home}/from-agent\n')
    env = {"HOME": home, "PATH": os.environ["PATH"], "XDG_RUNTIME_DIR": home + "/run"}
    env.update(OPENCODE_DISABLE_MODELS_FETCH="1", OPENCODE_DISABLE_AUTOUPDATE="1")
    return {**env, "CONTEXTURE_TOKENIZER": "estimate"}, project


def converse(client, mark, project):
    """Hold three turns, with a mark before the first and the third."""
    mark("MARK-ONE")
    client("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
    session = client("session/new", {"cwd": project, "mcpServers": []})["sessionId"]
    for turn, expected in enumerate(((1, 0), (0, 0), (0, 1))):
        if turn == 2:
            mark("MARK-TWO")
        ASKED.clear()
        text = {"type": "text", "text": f"turn {turn}"}
        client("session/prompt", {"sessionId": session, "prompt": [text]})
        asked = [it for it in ASKED if it.get("tools")][-1]
        last = json.dumps(asked["messages"][-1])
        assert (last.count("MARK-ONE"), last.count("MARK-TWO")) == expected, (turn, last)
        tools = [tool["function"]["name"] for tool in asked["tools"]]
        assert "contexture_context" in tools, tools


def compare(home, kept):
    """Compare what crossed on both sides of the proxy."""
    with open(home + "/from-agent", "rb") as file:
        assert file.read() == kept.got, "the client got other bytes"
    with open(home + "/to-agent", "rb") as file:
        pairs = list(zip(kept.sent.splitlines(True), file.read().splitlines(True), strict=True))
    changed = [insertion(before, after) for before, after in pairs if before != after]
    assert len(changed) == 3, changed
    for part, word in zip(changed, (b'"mcp"', b"MARK-ONE", b"MARK-TWO"), strict=True):
        assert word in part, part


def main():
    model = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(prefix="acp", ignore_cleanup_errors=True) as home:
        env, project = prepare(home, model.server_address[1])
        pipes = {"env": env, "cwd": project, "stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        serve = [CONTEXTURE, "serve", "--tcp", "127.0.0.1:0", "--unix", home + "/sock"]
        server = subprocess.Popen(serve, **pipes)
        command = [CONTEXTURE, "acp", "--", "sh", home + "/tee", OPENCODE, "acp"]
        proxy = None
        try:
            server.stdout.readline()
            emacs = socket.socket(socket.AF_UNIX)
            emacs.connect(home + "/sock")
            call = lines(emacs.makefile("rwb"))
            manager = call("open_layers", {"directory": project})["layers"][1]["manager"]
            proxy = subprocess.Popen(command, **pipes)
            kept = Kept(proxy)

            def mark(text):
                call("add_context", {"manager": manager, "content": text})

            converse(lines(kept), mark, project)
            proxy.stdin.close()
            kept.got += proxy.stdout.read()
            assert proxy.wait(30) == 0
            compare(home, kept)
        finally:
            for process in filter(None, (server, proxy)):
                process.kill()


main()
