"""The map of aider, on the same commits as ours: for scripts/bench-map.

Usage: aider_map.py CHECKOUT CASES   where CASES is what `measure cases CHECKOUT` printed.
Needs Python with the package aider-chat. Its tokens are estimated, four characters each: the vocabularies
of OpenAI would have to be downloaded. That is more room than exact counts give, since code has more.
"""

import os
import subprocess
import sys
import time

from aider.repomap import RepoMap
from tree_sitter import QueryError

BUDGET = 1024


class Model:
    """What aider asks of a model."""

    def token_count(self, text):
        return len(text) / 4


class Quiet:
    """What aider asks of a terminal."""

    def tool_output(self, *_args, **_named):
        pass

    tool_warning = tool_error = tool_output

    def read_text(self, path, **_named):
        try:
            with open(path, encoding="utf-8") as file:
                return file.read()
        except (OSError, UnicodeDecodeError):
            return None


class Maker(RepoMap):
    """Aider's maker of maps, which ends where a parser refuses its query: here such a file has no tags."""

    def get_tags_raw(self, *arguments):
        try:
            yield from super().get_tags_raw(*arguments)
        except QueryError:
            pass


def git(root, *arguments):
    run = subprocess.run(["git", "-C", root, *arguments], capture_output=True, check=True)
    return run.stdout.decode("utf-8", "replace")


def make(root, budget, hand, message):
    """Return the map and the seconds that it took."""
    files = [os.path.join(root, name) for name in git(root, "ls-files").splitlines()]
    chat = [os.path.join(root, hand)]
    others = [name for name in files if name not in chat and os.path.isfile(name)]
    words = set("".join(c if c.isalnum() or c == "_" else " " for c in message).split())
    mentioned = {name for name in git(root, "ls-files").splitlines()
                 if name in message or os.path.basename(name) in words}
    begun = time.monotonic()
    # Of a map for a chat with a file, aider makes no more than the budget says.
    maker = Maker(map_tokens=budget, root=root, main_model=Model(), io=Quiet(),
                  map_mul_no_files=1, refresh="always")
    text = maker.get_ranked_tags_map(chat, others, budget, mentioned, words) or ""
    return text, time.monotonic() - begun


def main(root, cases):
    head = git(root, "rev-parse", "HEAD").strip()
    with open(cases, encoding="utf-8") as file:
        cases = [case.split("\x1f") for case in file.read().split("\x1d") if case.strip()]
    recall, over, times = 0.0, 0, []
    for commit, hand, files, message in cases:
        git(root, "checkout", "-q", "-f", "--detach", commit.strip() + "~1")
        text, seconds = make(root, BUDGET, hand, message)
        times.append(seconds)
        over += Model().token_count(text) > BUDGET
        named = {line.rstrip(":").strip() for line in text.splitlines()}
        files_wanted = [name for name in files.split("\x1e") if name != hand]
        recall += sum(name in named for name in files_wanted) / len(files_wanted)
    git(root, "checkout", "-q", "-f", "--detach", head)
    times.sort()
    print(f"{root}: {len(cases)} commits, {over} over, aider {recall / len(cases):.3f} at {BUDGET} tokens, "
          f"first {max(times):.1f} s, median {times[len(times) // 2]:.1f} s")


main(*sys.argv[1:])
