"""Uses the dashboard in Chromium as people do, and as hostile sessions and pages would like to.

Usage: dashboard.py PROGRAM [AXE]   prints figures, and at the end "dashboard: all seen"
AXE is the file axe.min.js of axe-core; without it, it is looked for where scripts/mcp-clients puts it.
"""

import http.server
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from chrome import PATIENCE, Chrome  # noqa: E402

PROGRAM = sys.argv[1]
# The figures of a release are smaller; these bounds hold for a build with checks on a busy machine.
SLOW = 20
HOSTILE = [
    "<img src=x onerror=window.pwned=1>",
    "</script><script>window.pwned=1</script>",
    "javascript:window.pwned=1",
    "\"><svg onload=window.pwned=1>",
    "${window.pwned=1}{{constructor.constructor('window.pwned=1')()}}",
    "\u202egnp.exe\u2066 \u200b\u0007",
    "' onfocus=window.pwned=1 autofocus='",
]
SESSIONS = "document.querySelector('#sessions')"
SESSION = "document.querySelector('#session')"
WINDOW = f"{SESSION}.window"


def inside(element, selector):
    """Returns a script for a node inside of an element."""
    return f"{element}.shadowRoot.querySelector({json.dumps(selector)})"


class Client:
    """A client of the server, in the dialect JSON."""

    def __init__(self, home):
        self.process = home.start("serve", "--stdio", stdin=subprocess.PIPE)
        self.last = 0

    def ok(self, method, **params):
        """Calls a method and returns its result."""
        self.last += 1
        call = {"id": self.last, "method": method, "params": params}
        self.process.stdin.write(json.dumps(call) + "\n")
        self.process.stdin.flush()
        while True:
            reply = json.loads(self.process.stdout.readline())
            if reply.get("id") == self.last:
                assert "error" not in reply, (method, reply)
                return reply["result"]

    def end(self):
        """Ends the server, if this client has it."""
        self.process.stdin.close()
        self.process.wait(PATIENCE)


class Home:
    """Folders of a user."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="ctx")
        self.path = pathlib.Path(self.folder.name)
        self.started = []

    def start(self, *args, **more):
        """Starts the program."""
        env = {"HOME": self.folder.name, "PATH": os.environ["PATH"], "CONTEXTURE_TOKENIZER": "estimate",
               "XDG_RUNTIME_DIR": self.folder.name}
        process = subprocess.Popen([PROGRAM, *args], env=env, stdout=subprocess.PIPE, text=True,
                                   **{"stdin": subprocess.DEVNULL, **more})
        self.started.append(process)
        return process

    def dashboard(self, *args):
        """Starts a dashboard; returns it and its address."""
        process = self.start("dashboard", "--no-open", *args)
        return process, process.stdout.readline().strip()

    def close(self):
        """Ends all processes."""
        for process in self.started:
            process.kill()
            process.wait()
        self.folder.cleanup()


def talk(client, name, turns, words=40, **more):
    """Makes a session with calls of tools; the file of every third turn is read again."""
    row = client.ok("open_session", name=name, **more)
    client.ok("add_message", session=row["id"], role="system", content="You are careful.")
    for turn in range(turns):
        call = {"id": f"c{turn}", "name": ["Read", "Grep", "Bash"][turn % 3],
                "arguments": json.dumps({"path": f"src/part_{turn % 3}.rs"})}
        client.ok("add_message", session=row["id"], messages=[
            {"role": "user", "content": f"Question {turn}: why does `part_{turn % 3}` fail?"},
            {"role": "assistant", "content": "Let me look.", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{turn}", "content": f"fn part_{turn}() {{ }}\n" * words},
            {"role": "assistant", "content": f"It fails because of `line_{turn}`. " * 4},
        ])
    return row


def shows(page, element, text):
    """Waits until an element shows a text."""
    page.until(f"{element}.shadowRoot.textContent.includes({json.dumps(text)})", f"{text!r} in {element}")


def click(page, element, selector):
    """Clicks a node inside of an element."""
    node = inside(element, selector)
    page.until(f"{node} && !{node}.disabled", f"{selector} in {element}")
    page.run(f"{node}.click()")


def agrees(page):
    """Waits until the header, the bar, the tree and the list have the figures of the window, and of all messages."""
    built = f"{WINDOW}.built"
    page.until(f"""(() => {{
      const number = (value) => value.toLocaleString('en');
      const {{ sent, shortened }} = {built}.report.messages;
      const out = {WINDOW}.log.length - sent;
      const size = `${{number({built}.tokens)}} of ${{number({built}.max_tokens)}} tokens`;
      const said = `${{number(sent)}} of ${{number({WINDOW}.log.length)}} messages${{shortened ? `, ${{shortened}} of them shortened` : ''}}, ${{out}} left out; ${{size}}`;
      const all = {WINDOW}.log.reduce((sum, it) => sum + it.tokens, 0);
      const gone = {WINDOW}.leftOut().filter((it) => it.fate === 'dropped').reduce((sum, it) => sum + it.ids.length, 0);
      return {SESSION}.head.textContent.includes(said) && {SESSION}.head.textContent.includes(`, ${{number(all)}} tokens`)
        && {WINDOW}.bar.textContent.includes(size) && {WINDOW}.choice.textContent.includes(`Left out (${{out}} message`) && gone === out
        // The list rounds up once, and the messages each.
        && {WINDOW}.log.some((_, over) => {SESSIONS}.shadowRoot.querySelector('[aria-selected=true]').textContent
          .includes(` · ${{(all - over).toLocaleString('en', {{notation: 'compact'}})}} tokens`));
    }})()""", "one figure in the header, the bar, the tree and the list")


def narrow(page, element):
    """Checks that nothing is lost in a narrow window: no word of a table is broken, no cell of a row is hidden."""
    page.look(420, 900)
    page.until(f"{element}.getBoundingClientRect().width < 420")
    wrong = page.run(f"""(() => {{
      const found = [];
      for (const cell of {element}.shadowRoot.querySelectorAll('th, td, [role=gridcell]:not(:empty)')) {{
        if (!cell.getClientRects().length) found.push(['hidden', cell.textContent]);
        if (cell.matches('[role]')) continue;
        const text = cell.firstChild;
        for (const {{ 0: word, index }} of text?.data?.matchAll(/\\S+/g) ?? []) {{
          const range = document.createRange();
          range.setStart(text, index);
          range.setEnd(text, index + word.length);
          if (range.getClientRects().length !== 1) found.push(['broken', word]);
        }}
      }}
      const panel = {element}.panel;
      if (panel?.scrollWidth > panel?.clientWidth + 1) found.push(['wider than the window', panel.innerText]);
      return found;
    }})()""")
    page.look(1280, 860)
    assert not wrong, wrong


def axe_of(page, axe, state):
    """Checks what is shown with axe-core, in both colours."""
    if not axe:
        return 0
    found = []
    for dark in (False, True):
        page.look(1280, 860, dark)
        if not page.run("'axe' in window"):
            page.run(f"{axe}\n;true")
        result = page.run("axe.run({resultTypes: ['violations']}).then((it) => it.violations.map("
                          "(v) => [v.id, v.nodes.length, v.nodes[0].html.slice(0, 200), v.nodes[0].failureSummary]))")
        found += [(state, "dark" if dark else "light", *it) for it in result]
    assert not found, found
    return 2


def percentile(values, share):
    """Returns the value below which this share of the values lies."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def used(page):
    """Returns the memory of the tab's script and its nodes in bytes, without what is garbage."""
    page.send("HeapProfiler.collectGarbage")
    usage = page.send("Runtime.getHeapUsage")
    return usage["usedSize"] + usage.get("embedderHeapUsedSize", 0) + usage.get("backingStorageSize", 0)


def serve_page(text):
    """Serves a page to the names of tests; returns the port."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(text().encode())

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


class Tunnel:
    """Carries connections to a port, and can stall: what it then carries is neither read nor closed."""

    def __init__(self, port=0):
        self.to, self.flows = port, threading.Event()
        self.flows.set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            near, _ = self.listener.accept()
            far = socket.create_connection(("127.0.0.1", self.to))
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=(source, sink, self.flows), daemon=True).start()

    @staticmethod
    def _carry(source, sink, flows):
        try:
            while piece := source.recv(1 << 16):
                flows.wait()
                sink.sendall(piece)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def stall(self):
        """Stalls all connections for good, and lets new ones through."""
        self.flows.clear()
        self.flows = threading.Event()
        self.flows.set()


def main():
    """Runs all steps."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    clients = pathlib.Path(os.environ.get("CONTEXTURE_MCP_CLIENTS") or cache / "contexture/mcp-clients")
    file = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else clients / "node_modules/axe-core/axe.min.js"
    axe = file.read_text() if file.exists() else None
    home, chrome = Home(), Chrome()
    try:
        run(home, chrome, axe)
    finally:
        chrome.close()
        home.close()
    print("dashboard: all seen")


def run(home, chrome, axe):
    """Runs all steps in a browser."""
    checked = 0
    client = Client(home)
    dashboard, url = home.dashboard()
    page = chrome.page()
    page.base = url.split("?")[0]
    page.open(url)
    shows(page, SESSION, "No session")
    checked += axe_of(page, axe, "no session")
    talk(client, "Fix the parser", 12, project=str(home.path))
    shows(page, SESSIONS, "Fix the parser")
    shows(page, SESSION, "49 of 49 messages, 0 left out; ")
    assert "token" not in page.run("location.href"), "the token stays in no address"
    checked += axe_of(page, axe, "a session")

    # A live session is followed.
    client.ok("add_message", session="Fix the parser", content="One more?")
    shows(page, SESSION, "50 of 50 messages, 0 left out; ")
    agrees(page)
    shows(page, WINDOW, "a window has at most 96,000 of the model's 100,000, which are assumed")

    for _ in range(2):
        client.ok("build_window", session="Fix the parser", brief=True)
    # After a summary, what is sent is said, and not what would be sent without room.
    client.ok("summarize_session", session="Fix the parser")
    page.until(f"/Last shortening[0-9]+ messages in a summary, all of them still sent since there is room; /.test({SESSION}.head.textContent)")
    agrees(page)
    client.ok("undo", session="Fix the parser")
    page.until(f"!{SESSION}.head.textContent.includes('Last shortening')")
    shows(page, SESSIONS, "50 messages")

    # A shortening says what it will do, does it, and is undone.
    click(page, SESSION, "[data-key=shorten]")
    shows(page, SESSION, " messages in a summary; ")
    checked += axe_of(page, axe, "a dialog")
    page.run(f"{SESSION}.shadowRoot.querySelectorAll('dialog input[type=radio]')[1].click()")
    shows(page, SESSION, " left out; ")
    before = client.ok("session_report", session="Fix the parser")
    assert before["pruned"] == 0, "looking changes nothing"
    click(page, SESSION, "dialog .main")
    shows(page, SESSION, "Shortened:")
    assert client.ok("session_report", session="Fix the parser")["pruned"] > 0
    # It is told what it left out, and why: in the header, in the list and in the timeline with one size.
    done = client.ok("list_operations", session="Fix the parser")[0]
    size = f"{done['count']} messages left out"
    why = "least important by age, author, errors and edits"
    change = f"{done['tokens_before']:,} → {done['tokens_after']:,} tokens, "
    shows(page, SESSION, f"Last shortening{size}: {why}; {change}")
    agrees(page)
    click(page, SESSION, "[data-key=timeline]")
    shows(page, SESSION, f"{done['operation']} leaving messages out {size}; {change}")
    click(page, SESSION, "[data-key=left]")
    shows(page, WINDOW, f"{why} ({done['count']} messages)")
    checked += axe_of(page, axe, "what was left out")
    narrow(page, WINDOW)
    row = "[role=row] button"
    click(page, WINDOW, row)
    shows(page, WINDOW, "comes back whole")
    click(page, WINDOW, "dialog .main")
    shows(page, WINDOW, "Restore: done.")
    assert client.ok("session_report", session="Fix the parser")["pinned"] >= 1
    for tab in ("timeline", "turns", "waste"):
        click(page, SESSION, f"[data-key={tab}]")
        checked += axe_of(page, axe, tab)
        narrow(page, SESSION)
    shows(page, SESSION, "asked for again in")
    click(page, SESSION, "[data-key=look]")
    shows(page, SESSION, "Results that nobody used")
    click(page, SESSION, "[data-key=timeline]")
    shows(page, SESSION, "leaving messages out")
    click(page, SESSION, "[data-key=undo]")
    shows(page, SESSION, " back in view (msg-")
    shows(page, SESSION, "The prompt cache ends before ")
    plan = page.run(f"{inside(SESSION, 'dialog')}.textContent")
    first, anew = (int(it.replace(",", "")) for it in re.search(r"before msg-(\d+): about ([\d,]+) tokens", plan).groups())
    page.run(f"{SESSION}.constructor.told = 1000")
    click(page, SESSION, "dialog .main")
    shows(page, SESSION, "Undo the last change: ")
    told = page.run(f"{inside(SESSION, '.told')}.textContent.match(/Sent now: (.*)[.]/)[1]")
    shows(page, SESSION, f"Sent now{told}; ")
    # The chart has a scale, and each change with its number: what leaves messages out, and what brings them back, as an undo does.
    done = [it for it in client.ok("list_operations", session="Fix the parser") if it["method"] != "checkpoint"]
    drawn = {str(it["operation"]): "fold" if it["tokens_after"] < it["tokens_before"] else "back" for it in reversed(done) if it["tokens_after"] != it["tokens_before"]}
    assert done[0]["method"] == "undo" and drawn[str(done[0]["operation"])] == "back" and "fold" in drawn.values(), done
    page.until(f"""(() => {{
      const marks = [...{SESSION}.shadowRoot.querySelectorAll('.mark')].map((it) => [it.textContent, it.className.split(' ')[1]]);
      return JSON.stringify(Object.fromEntries(marks.filter(([number, way]) => number && way))) === {json.dumps(json.dumps(drawn, separators=(",", ":")))};
    }})()""", "the changes in the chart")
    assert page.run(f"[...{SESSION}.shadowRoot.querySelectorAll('.scale span')].map((it) => it.textContent).at(-1)") == "0"
    assert page.run(f"{inside(SESSION, '.told')}.textContent.includes('Undo…')") is False, "an undo is not undone by Redo"
    page.until(f"!{inside(SESSION, '.told')}", "the message to leave")
    assert client.ok("session_report", session="Fix the parser")["pruned"] == 0
    agrees(page)
    later = page.run(f"{WINDOW}.parts.filter((it) => it.ids.some((id) => id.slice(4) >= {first})).reduce((sum, it) => sum + it.tokens, 0)")
    assert abs(later - anew) <= 0.05 * later, (later, anew)

    checked += turns(home, page, client, axe)
    checked += parts(home, page, client, axe)
    checked += tunnel(home, chrome, client, axe)

    # By the keyboard alone.
    click(page, SESSION, "[data-key=window]")
    click(page, WINDOW, "[data-key=section]")
    page.run(f"{WINDOW}.rows.go(0)")
    for key in ("ArrowDown", "ArrowLeft", "ArrowRight", "End"):
        for kind in ("keyDown", "keyUp"):
            page.send("Input.dispatchKeyEvent", type=kind, key=key, code=key)
    assert page.run(f"{WINDOW}.shadowRoot.activeElement.getAttribute('role')") == "row"

    # Names and contents are texts, whatever they say.
    for number, text in enumerate(HOSTILE):
        made = client.ok("open_session", name=f"{number} {text}", project=f"/home/{text}")
        client.ok("add_message", session=made["id"], messages=[
            {"content": text}, {"role": "assistant", "content": text, "tool_calls": [
                {"id": text, "name": text, "arguments": json.dumps({text: text})}]},
            {"role": "tool", "tool_call_id": text, "content": text}])
        client.ok("add_item", manager=made["manager"], content=text, type="text", metadata={"filename": f"/x/{text}"})
        client.ok("checkpoint", session=made["id"], message=text)
        shows(page, SESSIONS, f"{number} ")
        page.run(f"{SESSIONS}.choose({json.dumps(made['id'])})")
        shows(page, SESSION, f"{number} ")
        # What was done in another conversation, with its undo, is not offered here.
        for element in (SESSION, WINDOW):
            assert not page.run(f"!!{inside(element, '.told')}")
        for tab in ("timeline", "turns", "waste", "window"):
            click(page, SESSION, f"[data-key={tab}]")
        # The rows of the session before stay until the window has those of this one.
        page.until(f"{WINDOW}.of === {json.dumps(made['id'])} && {WINDOW}.rows.items.length > 2")
        page.run(f"{WINDOW}.read({{ids: ['msg-2'], what: 'msg-2'}})")
        shows(page, WINDOW, "msg-2 assistant")
        page.run(f"{inside(WINDOW, 'dialog')}.close()")
    hidden = "\u202e\u2066\u200b"
    whole = page.run(f"{SESSIONS}.shadowRoot.textContent + {SESSION}.shadowRoot.textContent")
    assert not set(hidden) & set(whole), "hidden characters are written out"
    assert page.run("window.pwned") is None
    links = f"[...{SESSION}.shadowRoot.querySelectorAll('a, img, script, iframe, svg [onload]')].length"
    assert page.run(links) == 0
    assert page.run("(() => { try { document.body.innerHTML = '<b>x'; return false } catch { return true } })()")

    # A second tab sees the same, and a hidden one has no stream.
    second = chrome.page()
    second.open(url.split("?")[0])
    shows(second, SESSIONS, "Fix the parser")
    # Both are in sight, in windows of their own; each tab believes that only one is.
    visible = ("Object.defineProperty(document, 'hidden', {value: HIDDEN, configurable: true});"
               "document.dispatchEvent(new Event('visibilitychange'))")
    for tab in (page, second):
        tab.run(visible.replace("HIDDEN", "false"))
    client.ok("open_session", name="For both tabs")
    for tab in (page, second):
        shows(tab, SESSIONS, "For both tabs")
    second.run(visible.replace("HIDDEN", "true"))
    assert second.run(f"{SESSIONS}.link.reading === undefined")
    client.ok("open_session", name="While hidden")
    shows(page, SESSIONS, "While hidden")
    assert not second.run(f"{SESSIONS}.shadowRoot.textContent.includes('While hidden')")
    second.run(visible.replace("HIDDEN", "false"))
    shows(second, SESSIONS, "While hidden")
    second.close()
    page.front()
    page.run("delete document.hidden")

    # A network that is gone for a while, and a machine that slept.
    offline = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    page.send("Network.emulateNetworkConditions", offline=True, **offline)
    page.run(f"{SESSIONS}.link.reading.abort(); {SESSIONS}.link.reading = undefined; {SESSIONS}.link.wake()")
    page.until("document.querySelector('#link').textContent.includes('No connection')")
    checked += axe_of(page, axe, "without a connection")
    client.ok("open_session", name="While offline")
    page.send("Network.emulateNetworkConditions", offline=False, **offline)
    shows(page, SESSIONS, "While offline")
    os.kill(dashboard.pid, 19)
    for number in range(50):
        client.ok("open_session", name=f"While asleep {number}")
    os.kill(dashboard.pid, 18)
    shows(page, SESSIONS, "While asleep 49")

    # The server ends, and another one takes its place.
    client.end()
    client = Client(home)
    client.ok("open_session", name="After the restart")
    shows(page, SESSIONS, "After the restart")
    page.until("document.querySelector('#link').textContent.includes('Connected')")

    # The tab is hidden while others are looked at, and has all when it is seen again.
    checked += foreign_pages(home, chrome, client, axe)
    figures(page, client, url.split("?")[0])
    offences = [it for it in page.complaints() if "ERR_INTERNET_DISCONNECTED" not in it and "502" not in it]
    offences = [it for it in offences if "ERR_INCOMPLETE_CHUNKED_ENCODING" not in it and "favicon" not in it]
    offences = [it for it in offences if "TrustedHTML" not in it]
    assert not offences, offences
    print(f"axe-core: {checked} states, 0 violations" if axe else "axe-core: not installed")


def turns(home, page, client, axe):
    """Turns of two models, of which one waits to be allowed a tool. Each message is counted once, each model apart."""
    for name, model, more in (("near", "m-1", {}), ("far", "m-2", {"price_input": 2.0, "price_output": 10.0})):
        script = home.path / f"{name}.toml"
        script.write_text("""[[answer]]
calls = [{ name = "add_text", arguments = '{"content": "a note of the model"}' }]
usage = { input = 1000, output = 100, cached = 800 }
[[answer]]
text = "Noted."
usage = { input = 2000, output = 50, cached = 1500 }
""")
        client.ok("configure_provider", name=name, kind="scripted", model=model, script=str(script), **more)
    asking, replies, pressed = Client(home), [], None
    row = asking.ok("open_session", name="With tools", project=str(home.path))
    page.run(f"{SESSIONS}.choose({row['id']!r})")
    for provider in ("near", "far"):
        chat = {"session": row["id"], "content": "Note it.", "tools": True, "provider": provider, "request_key": provider}
        thread = threading.Thread(target=lambda given=chat: replies.append(asking.ok("chat", **given)))
        thread.start()
        shows(page, SESSIONS, "waits for you")
        shows(page, SESSIONS, "1 waiting for you")
        shows(page, SESSION, "waits for you: ")
        checked = axe_of(page, axe, "an agent that waits")
        # It is the session that is shown first, though others are newer.
        client.ok("add_message", session="Fix the parser", content="A newer one.")
        client.ok("open_session", name="Fix the parser")
        page.open("about:blank")
        page.open(page.base)
        page.until(f"{SESSION}?.session === {row['id']!r}", "the session that waits")
        # What is shown may still be the question before.
        pressed = page.until(f"((it) => it && (it.click(), it.dataset.key))([...{SESSION}.shadowRoot.querySelectorAll('.banner button')]"
                             f".find((it) => it.textContent === 'Allow once' && it.dataset.key !== {json.dumps(pressed)}))")
        thread.join(PATIENCE)
        assert asking.ok("chat", **chat) == replies[-1], "the same request is answered once"
    asking.end()
    click(page, SESSION, "[data-key=turns]")
    shows(page, SESSION, "far: m-2")
    table = f"[...{SESSION}.shadowRoot.querySelectorAll('table')].map((it) => [...it.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.textContent)))"
    page.until(f"{table}[1].length === 4", "each request has one row")
    models, _ = page.run(table)
    assert [it[:5] for it in models] == [["far: m-2", "2", "3,000", "77 %", "150"], ["near: m-1", "2", "3,000", "77 %", "150"]], models
    assert [it[5] for it in models] == ["$0.0075 at list price", "–"], models
    # A turn is all requests since the question.
    shows(page, SESSION, "cost $0.0075 at list price; 3,000 tokens in (77 % cached), 150 out")
    # The reports of the provider have changed what messages count, and all figures with it.
    assert client.ok("session_report", session=row["id"], windows=0)["factor"] > 1
    agrees(page)
    page.run(f"{SESSIONS}.choose('ses-1')")
    return checked


def recorded(home, name, agent=None):
    """Writes a session as Claude Code records it, or what a subagent of it did; returns its file."""
    folder = home.path / ".claude/projects/-srv-shop"
    file = folder / (f"{name}/subagents/agent-{agent}.jsonl" if agent else f"{name}.jsonl")
    about = {"sessionId": name, "cwd": "/srv/shop", "version": "2.1.0", "timestamp": "2026-11-01T10:00:00.000Z"}
    about |= {"isSidechain": True, "agentId": agent} if agent else {}
    said = [("user", "Look at the basket."), ("assistant", [{"type": "text", "text": f"Seen by {agent or name}."}])]
    lines = [{"type": role, "uuid": f"{agent}-{role}", "message": {"role": role, "content": content}, **about} for role, content in said]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(file)


def parts(home, page, client, axe):
    """What is said of parts of a window: whose they are, what cannot go, what is too much, and what did not help."""
    # A subagent has a row of its own, and its tokens are in no sum with those of others.
    name = "aaaa1111-0000-4000-8000-000000000001"
    client.ok("import_sessions", paths=[recorded(home, name), recorded(home, name, "a1b2")])
    rows = client.ok("list_sessions")
    part = next(it for it in rows if it.get("part_of"))
    page.run(f"{SESSIONS}.choose({part['part_of']!r})")
    page.until(f"{WINDOW}.of === {part['part_of']!r}")
    click(page, WINDOW, "[data-key=agent]")
    shows(page, WINDOW, "in a window of its own")
    checked = axe_of(page, axe, "by agent")
    rows_of = f"[...{WINDOW}.shadowRoot.querySelectorAll('.row')].map((it) => [...it.children].map((cell) => cell.textContent))"
    shares = {reason: share for _, reason, _, share, _ in page.run(rows_of)}
    assert shares.pop(f"{part['agent']}, in a window of its own") == "" and "100 %" in shares.values(), shares
    page.run(f"[...{WINDOW}.shadowRoot.querySelectorAll('.row')].find((it) => it.textContent.includes('window of its own')).click()")
    page.until(f"{SESSION}.session === {part['id']!r}")
    # Of the last turn, 75 % came from the cache: all that came early in the window.
    page.run(f"{SESSIONS}.choose({next(it['id'] for it in rows if it['session'] == 'With tools')!r})")
    click(page, WINDOW, "[data-key=tool]")
    shows(page, WINDOW, "% cacheable")
    # What cannot be left out has a lock, which says why.
    click(page, WINDOW, "[data-key=section]")
    page.until(f"({WINDOW}.rows.items.filter((it) => it.isOpen === false).forEach((it) => {WINDOW}.toggle(it)), "
               f"[...{WINDOW}.shadowRoot.querySelectorAll('.lock')].some((it) => it.title))", "a lock that says why")
    # A shortening after which the window was larger is no success.
    script = home.path / "larger.toml"
    script.write_text('[[answer]]\ntext = "a"\n[[answer]]\ntext = "b"\n')
    client.ok("configure_provider", name="larger", kind="scripted", model="m", script=str(script))
    row = talk(client, "Larger", 6)
    client.ok("chat", session=row["id"], content="One?", provider="larger")
    time.sleep(1.1)  # Times have whole seconds, and the shortening is to lie between two windows.
    client.ok("prune_session", session=row["id"], keep_tokens=800)
    client.ok("add_message", session=row["id"], content="many words " * 6000)
    time.sleep(1.1)
    client.ok("chat", session=row["id"], content="Two?", provider="larger")
    page.run(f"{SESSIONS}.choose({row['id']!r})")
    click(page, SESSION, "[data-key=timeline]")
    shows(page, SESSION, "It did not shorten the window.")
    click(page, SESSION, "[data-key=window]")
    # More than all is said, and the limit is that of the model.
    client.ok("add_message", session=row["id"], content="many words " * 6000)
    client.ok("configure_provider", name="small", kind="scripted", model="gpt-4", script=str(script))
    client.ok("configure_session", session=row["id"], model="small")
    page.until(f"Number({SESSION}.shadowRoot.textContent.match(/\\((\\d+) % of the model's limit/)?.[1]) > 100", "more than all")
    page.run(f"{SESSIONS}.choose('ses-1')")
    return checked


def tunnel(home, chrome, client, axe):
    """The same over an address that was declared, and over a connection that dies without a word."""
    way = Tunnel()
    process, url = home.dashboard("--public-url", f"http://box.test:{way.port}")
    assert url.startswith(f"http://box.test:{way.port}/"), url
    listening = subprocess.run(["ss", "-tlnpH"], capture_output=True, text=True, check=True).stdout
    way.to = int(re.search(rf":(\d+) .*pid={process.pid},", listening)[1])
    page = chrome.page()
    page.open(url)
    shows(page, SESSIONS, "Fix the parser")
    page.until("document.querySelector('#link').textContent.includes('Connected')")
    # The page finds out by itself, in a shorter time than usual.
    page.run(f"{SESSIONS}.link.constructor.silence = 1500")
    way.stall()
    # A call that waits for its answer must not keep the page from reading again.
    page.run(f"void {SESSIONS}.refresh(); void {SESSION}.refresh()")
    client.ok("open_session", name="While stalled")
    shows(page, SESSIONS, "While stalled")
    page.until(f"{SESSIONS}.trouble.hidden && {SESSION}.trouble.hidden", "nothing is left of the trouble")
    checked = axe_of(page, axe, "over a tunnel")
    page.close()
    return checked


def foreign_pages(home, chrome, client, axe):
    """Pages of others: one that embeds elements, and one that is not asked for."""
    text = {}
    port = serve_page(lambda: text["page"])
    origin = f"http://wiki.test:{port}"
    _, url = home.dashboard("--embed-origin", origin)
    base = url.split("/?")[0]
    token = (home.path / ".local/state/contexture/dashboard-token").read_text().strip()
    full = talk(client, "Nearly full", 10, words=2400)
    assert client.ok("session_report", session=full["id"])["needs_pruning"]
    attributes = f'src="{base}" token="{token}" session="{full["id"]}"'
    text["page"] = (f'<!doctype html><html lang="en"><title>Wiki</title><main><h1>Wiki</h1><h2>Status</h2>'
                    f"<contexture-status {attributes}></contexture-status>"
                    f"<context-manager-widget {attributes}></context-manager-widget></main>"
                    f'<script type="module" src="{base}/page.js?token={token}"></script>')
    page = chrome.page()
    page.open(origin + "/")
    page.until("document.querySelector('contexture-status')?.shadowRoot?.textContent.includes('warning')")
    widget = "document.querySelector('context-manager-widget')"
    shows(page, widget, "Context exceeds 80% capacity")
    status = page.run(f"{widget}.getStatus()")
    assert status["state"] == "warning" and status["message"] == "Needs pruning", status
    assert set(status) == {"state", "primaryMetric", "secondaryMetric", "lastActivity", "message"}
    assert page.run(f"{widget}.shadowRoot.querySelector('button')") is None, "a reader has no button"
    refused = page.run(f"{widget}.call('undo', {{session: {full['id']!r}}}).catch((error) => error.message)")
    assert "only reads" in refused, refused
    checked = axe_of(page, axe, "a page of others")
    page.close()
    # In a frame, and from an origin that was not named.
    frame = chrome.page()
    text["page"] = f'<title>x</title><iframe src="{base}/"></iframe><iframe src="{url}"></iframe>'
    frame.open(f"http://evil.test:{port}/")
    frame.until("document.querySelectorAll('iframe').length == 2 && document.readyState == 'complete'")
    asked = (f"fetch('{base}/call', {{method: 'POST', credentials: 'include', headers: {{'content-type': "
             "'application/json'}, body: '{\"method\":\"list-sessions\"}'}).then((it) => it.text(), () => 'refused')")
    assert frame.run(asked) == "refused"
    opaque = f"fetch('{base}/events', {{mode: 'no-cors', credentials: 'include'}}).then((it) => it.status, () => 'refused')"
    assert frame.run(opaque) in (0, "refused")
    frame.close()
    # The token of the frame's address was not used up by the frame.
    own = chrome.page()
    own.open(url)
    shows(own, SESSIONS, "Nearly full")
    # On the dashboard's own page the widget has its button, which says what it does first.
    own.run(f"document.querySelector('main').append(Object.assign(document.createElement('context-manager-widget'), {{id: 'widget'}}));"
            f"document.querySelector('#widget').setAttribute('session', {full['id']!r})")
    click(own, "document.querySelector('#widget')", "[data-key=prune]")
    shows(own, "document.querySelector('#widget')", " left out; ")
    click(own, "document.querySelector('#widget')", "dialog .main")
    shows(own, "document.querySelector('#widget')", "Shortened:")
    assert client.ok("session_report", session=full["id"])["pruned"] > 0
    own.close()
    return checked


def figures(page, client, url):
    """Measures the aims of the dashboard."""
    page.front()
    page.open(url)
    paint = page.until("performance.getEntriesByName('first-contentful-paint')[0]?.startTime")
    size = page.until("performance.getEntriesByType('resource').length >= 2 && performance.getEntriesByType('resource')"
                      ".filter((it) => /page\\.(css|js)/.test(it.name)).reduce((all, it) => all + it.decodedBodySize, "
                      "performance.getEntriesByType('navigation')[0].decodedBodySize)")
    assert size <= 60 << 10, size
    # One hundred commits a second: when is each on the screen?
    made = client.ok("open_session", name="Fast")
    shows(page, SESSIONS, "Fast")
    page.run(f"""(() => {{
      window.seen = {{}};
      const look = () => {{
        const row = [...{SESSIONS}.shadowRoot.querySelectorAll('.row')].find((it) => it.textContent.includes('Fast'));
        const count = row?.textContent.match(/([\\d,]+) messages?/)?.[1];
        if (count) window.seen[count] ??= Date.now();
        requestAnimationFrame(look);
      }};
      look();
    }})()""")
    stored = []
    for _ in range(300):
        begun = time.time()
        client.ok("add_message", session=made["id"], content="x")
        stored.append(time.time() * 1000)
        time.sleep(max(0, 0.01 - (time.time() - begun)))
    page.until("window.seen['300']")
    seen = sorted((int(count.replace(",", "")), at) for count, at in page.run("window.seen").items())
    # A commit is on the screen once its number, or a later one, is.
    late = [next(at for count, at in seen if count >= number) - at_store for number, at_store in enumerate(stored, 1)]
    rate = 299 / ((stored[-1] - stored[0]) / 1000)
    # A session of 10,000 messages.
    large = client.ok("open_session", name="Large")
    many = [{"role": ["user", "assistant"][number % 2], "content": f"message {number} of many " * 12} for number in range(10_000)]
    client.ok("add_message", session=large["id"], messages=many)
    shows(page, SESSIONS, "Large")
    page.run(f"{SESSIONS}.choose({large['id']!r})")
    page.until(f"{WINDOW}.log?.length === 10000")
    nodes = page.run(f"{WINDOW}.shadowRoot.querySelectorAll('*').length")
    assert nodes < 2000, f"{nodes} nodes for 10,000 messages"
    memory = used(page)
    # 5,000 sessions.
    for number in range(0, 5000, 1000):
        client.ok("batch", calls=[{"method": "open_session", "params": {"name": f"Session {number + it}", "current": False}}
                                  for it in range(1000)])
    page.open("about:blank")
    page.open(url)
    page.until(f"{SESSIONS}?.known?.size > 5000")
    frames = page.run(f"""new Promise((done) => {{
      const rows = {SESSIONS}.rows.node, times = [];
      let last = performance.now();
      const step = () => {{
        const now = performance.now();
        times.push(now - last);
        last = now;
        rows.scrollTop += 997;
        if (times.length < 200) requestAnimationFrame(step); else done(times);
      }};
      requestAnimationFrame(step);
    }})""")
    print(f"first paint: {paint:.0f} ms (aim 200)")
    print(f"page, stylesheet and script: {size} bytes (aim 61440)")
    print(f"event on screen after its commit, {rate:.0f} a second: median {percentile(late, 0.5):.0f} ms, "
          f"95 % {percentile(late, 0.95):.0f} ms (aim 50)")
    print(f"memory with 10,000 messages: {memory / (1 << 20):.1f} MiB (aim 60), {nodes} nodes")
    print(f"scrolling 5,000 sessions: frames of {percentile(frames, 0.5):.0f} ms, 95 % {percentile(frames, 0.95):.0f} ms")
    assert paint <= 200 * SLOW and percentile(late, 0.95) <= 50 * SLOW and memory <= 60 << 20


if __name__ == "__main__":
    main()
