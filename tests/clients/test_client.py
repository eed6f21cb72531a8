"""Holds the recorded conversations, and a chat, with the generated client.

Usage: test_client.py FOLDER-OF-THE-CLIENT STEPS SOCKET PROGRAM ARGUMENT…
"""

import json
import sys

sys.path.insert(0, sys.argv[1])
from contexture_client import Client, ContextureError  # noqa: E402


def said(client, step):
    """Makes a call by its method of the client, or as it is if the client has none like it."""
    method, params = step["method"], step["params"]
    try:
        if step["typed"]:
            return {"result": getattr(client, method.replace("-", "_"))(**params)}
        return {"result": client.send(method, params).result()}
    except ContextureError as error:
        return {"error": {"code": error.code, "message": str(error), "data": error.data}}


def replay(name, steps, command):
    with Client.start(*command) as client:
        heard = []
        for topic in ("context-changed", "session-changed"):
            client.handle(topic, heard.append)
        for step in steps:
            answer = said(client, step)
            assert answer == step["answer"], (name, step, answer)


def chat(socket):
    client = Client.connect(socket)
    changed = []
    client.on_session_changed(changed.append)
    client.subscribe(topics=["session-changed"])
    client.open_session(name="s", manager="m", project=sys.argv[5])
    asked, pieces = [], []

    def progress(event):
        if event["kind"] == "approval":
            asked.append(event["tool"])
            client.approve(approval=event["approval"], decision="once")
        elif event["kind"] == "text":
            pieces.append(event["text"])

    reply = client.chat(content="use tools", tools=True, progress=progress)
    assert asked == ["add_text"] and "".join(pieces) == reply["content"] == "fine", (asked, reply)
    assert [call["outcome"] for call in reply["tool_calls"]] == ["done"], reply
    assert changed and changed[-1]["session"] == "s", changed

    def stop(event):
        if event["kind"] == "text":
            client.cancel(id=call.id)

    call = client.send("chat", {"content": "hang"}, stop)
    try:
        raise AssertionError(call.result())
    except ContextureError as error:
        assert error.kind == "cancelled" and error.data["question"] == "msg-5", error.data
    first = client.add_item(content="x", request_key="once")
    client.close()
    with Client.connect(socket) as again:
        assert again.add_item(content="x", request_key="once") == first
        roles = [message["role"] for message in again.get_messages(session="s")]
        assert roles == ["user", "assistant", "tool", "assistant", "user", "assistant"], roles


with open(sys.argv[2], encoding="utf-8") as file:
    for name, steps in json.load(file).items():
        replay(name, steps, sys.argv[6:])
chat(sys.argv[3])
print("all is as it should be")
