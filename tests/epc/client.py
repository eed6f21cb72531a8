"""Runs script.sexp with python-epc.  Usage: client.py PORT SCRIPT DIR"""

import sys
import time

import sexpdata
from epc.client import EPCClient

LARGE = "0123456λ\n" * 110_000
sys.setrecursionlimit(10_000)


def filled(value, folder):
    """VALUE with the names of the script replaced."""
    if isinstance(value, str) and not isinstance(value, sexpdata.Symbol):
        return value.replace("$DIR", folder).replace("$LARGE", LARGE)
    if isinstance(value, (list, tuple)):
        return [filled(one, folder) for one in value]
    return value


def texts(value):
    """VALUE as text, its strings as they are."""
    if isinstance(value, (list, tuple)):
        return " ".join(texts(one) for one in value)
    return value.value() if isinstance(value, sexpdata.Symbol) else str(value)


def check(client, method, arguments, expected):
    """Call METHOD and complain unless what comes is as EXPECTED."""
    kind, wanted = expected[0].value(), expected[1]
    try:
        result = client.call_sync(method.value(), arguments, timeout=30)
    except Exception as error:  # What fails is an exception of the library's own.
        said = str(error)
        assert kind == "error" and wanted in said, f"{method}: {said}"
        return
    if kind == "is":
        assert result == wanted, f"{method}: {result!r}"
    else:
        assert kind == "has" and wanted in texts(result), f"{method}: {texts(result)[:200]}"


def main(port, script, folder):
    client = EPCClient(("127.0.0.1", int(port)))
    rows = [row[0].value() for row in client.methods_sync(timeout=30)]
    assert "add-context" in rows and "ping" in rows, rows
    with open(script, encoding="utf-8") as text:
        calls = sexpdata.loads("(" + text.read() + "\n)")
    for call in calls:
        check(client, *filled(call, folder))
    answers = []
    for number in range(200):
        row = [sexpdata.Symbol(":content"), str(number), sexpdata.Symbol(":manager"), "many"]
        client.call("add-context", row, callback=answers.append, errback=answers.append)
    deadline = time.monotonic() + 30
    while len(answers) < 200 and time.monotonic() < deadline:
        time.sleep(0.01)
    failed = [one for one in answers if not isinstance(one, list)]
    assert len(answers) == 200 and not failed, (len(answers), failed)
    client.close()
    print(f"EPC: {len(calls)} calls")


main(*sys.argv[1:])
