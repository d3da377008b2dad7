#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The commands that errors name are written so that they can be pasted.

Of all texts in the sources below the command line: a command of `once` stands in backticks, names a
command that there is, and has no word that the reader would have to replace. Commands with words of
the moment are made by `hint` (model/hint.h), which quotes them; tests/cli/hints_test.cc runs those.

    hints_test.py ONCE REPOSITORY
"""
import glob
import os
import re
import subprocess
import sys

NAMED = re.compile(r"(`?)once ((?:position|horizon|park|ledger|claims|later|trace|outbox|scope|"
                   r"status|topic)(?: [a-z]+)?)([^`\"]*)(`?)")
PLACEHOLDER = re.compile(r"\b(SCOPE|TEXT|URL|WHICH|NAME|TOPIC|NUMBER)\b|\{\}")


def texts_of(path):
    """All string literals of a source, each whole, with the line where it begins."""
    with open(path, encoding="utf-8") as source:
        code = re.sub(r"//[^\n]*", "", source.read())
    for found in re.finditer(r'"((?:[^"\\\n]|\\.)*)"(?:\s*"((?:[^"\\\n]|\\.)*)")*', code):
        whole = "".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', found.group(0)))
        yield code.count("\n", 0, found.start()) + 1, whole


def is_there(once, words):
    return subprocess.run([once, *words, "--help"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, check=False).returncode == 0


def problems_of(once, where, text):
    for before, words, rest, after in NAMED.findall(text):
        command = f"once {words}{rest}"
        if not before or not after:
            yield f"{where}: not in backticks: {command[:60]}"
        elif PLACEHOLDER.search(rest):
            yield f"{where}: has a word to be replaced, use hint(): {command[:60]}"
        elif not is_there(once, words.split()):
            yield f"{where}: there is no such command: {command[:60]}"


def main():
    once, repository = os.path.abspath(sys.argv[1]), sys.argv[2]
    found, count = [], 0
    for path in sorted(glob.glob(os.path.join(repository, "src/**/*.cc"), recursive=True)):
        name = os.path.relpath(path, repository)
        if name.startswith("src/cli/") or name.endswith("_test.cc"):
            continue
        for line, text in texts_of(path):
            count += len(NAMED.findall(text))
            found += problems_of(once, f"{name}:{line}", text)
    for one in found:
        print(one)
    print(f"{count} commands in texts, {len(found)} failures")
    sys.exit(1 if found or count == 0 else 0)


if __name__ == "__main__":
    main()
