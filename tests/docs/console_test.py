#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every ```console block of the manual and compares what it prints with what the page says.

    console_test.py [--write] ONCE SERVER_SCRIPT PAGE...

With --write, what differs is written into the pages instead: read it before you keep it.

A block is a list of commands (`$ …`, continued by a backslash at the end of the line), each with
what it prints, stdout and stderr together. The blocks of a page run in their order, in one shell
and one new directory. Comments of the page, which readers do not see, say what else there is to it:

    <!-- console: setup      commands that are run first, and must succeed
    once topic create …
    -->
    <!-- console: server kafka localhost:9092 -->    the block talks to such a server: a new one is
                                                     started, and stands in for this address
    <!-- console: not run: why -->    the next block is not run; it is counted and listed

A command outside of such a block ($ at the beginning of a line) is a failure: nobody would notice
when it becomes wrong.

A line `…` stands for any number of lines. Times, durations, process ids, fences, random ids and
the width of columns are not compared, nor is the order of lines, since stdout is no terminal here.
"""
import difflib
import os
import re
import subprocess
import sys
import tempfile

PLACEHOLDERS = [
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"), "TIME"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "UUID"),
    (re.compile(r'"(\w+_ms)":\d{12,}'), r'"\1":TIME'),
    (re.compile(r'"producer":\d+'), '"producer":ID'),
    (re.compile(r"\b[0-9a-f]{32}\b"), "IDENTITY"),
    (re.compile(r"\b1\d{12}\b"), "FENCE"),
    (re.compile(r"\b[\w.-]+:\d{3,7}\b(?=$|\s)"), "HOST:PID"),
    (re.compile(r"\b\d+\.\d\b(?= s\b|$)"), "SECONDS"),
    (re.compile(r"[ \t]+"), " "),
]
COMMENT = re.compile(r"^<!-- console: (setup|server|not run)\b[:\s]*(.*?)(?:-->|$)")


def normal(text):
    lines = []
    for line in text.splitlines():
        for pattern, name in PLACEHOLDERS:
            line = pattern.sub(name, line)
        lines.append(line.strip())
    while lines and not lines[-1]:
        lines.pop()
    return lines


def matches(expected, actual):
    """Whether the lines are the same, where `…` stands for any number of them. Without a terminal
    stdout is written late: then lines of stderr, and of several threads, come in another order."""
    if "…" not in expected:
        return sorted(expected) == sorted(actual)
    pattern = "".join(r"(?:.*\n)*?" if line == "…" else re.escape(line) + r"\n"
                      for line in expected)
    return re.fullmatch(pattern, "".join(line + "\n" for line in actual)) is not None


class Command:
    def __init__(self, line, text):
        self.line, self.text, self.printed, self.actual = line, text, [], None


class Block:
    def __init__(self, page, line):
        self.page, self.line = page, line
        self.setup, self.server, self.not_run = "", None, None
        self.commands, self.indent = [], ""

    def where(self, line=None):
        return f"{self.page}:{line or self.line}"

    def add(self, number, line):
        last = self.commands[-1] if self.commands else None
        if last and not last.printed and last.text.endswith("\\"):
            last.text += "\n" + line
        elif line.startswith("$ "):
            self.commands.append(Command(number, line[2:]))
        elif last:
            last.printed.append(line)
        else:
            raise SystemExit(f"{self.where(number)}: a console block begins with a command, $ …")


def blocks_of(page):
    """All console blocks, each with the comments before it."""
    blocks, block, waiting, in_setup, indent = [], None, None, False, ""
    with open(page, encoding="utf-8") as text:
        for number, raw in enumerate(text, 1):
            line = raw.rstrip("\n")
            if in_setup:
                in_setup = not line.startswith("-->")
                if in_setup:
                    waiting.setup += line + "\n"
                continue
            comment = COMMENT.match(line.strip())
            if comment:
                waiting = waiting or Block(page, number)
                kind, rest = comment.group(1), comment.group(2).strip()
                if kind == "setup":
                    in_setup = "-->" not in line
                elif kind == "server":
                    waiting.server = rest.split()
                else:
                    waiting.not_run = rest
            elif line.strip() == "```console":
                indent = line[:len(line) - len(line.lstrip())]
                block = waiting or Block(page, number)
                block.line, block.indent, waiting = number, indent, None
            elif block and line.strip() == "```":
                blocks.append(block)
                block = None
            elif block:
                block.add(number, line.removeprefix(indent))
    return blocks


def stray_commands(page):
    """Commands with a prompt that stand in no console block."""
    found, fence = [], None
    with open(page, encoding="utf-8") as text:
        for number, line in enumerate(text, 1):
            if line.strip().startswith("```"):
                fence = line.strip()[3:] if fence is None else None
            elif fence != "console" and re.match(r"\s*\$ ", line):
                found.append(f"{page}:{number}: a command that stands in no console block is not "
                             f"tested: {line.strip()}")
    return found


class Shell:
    """One bash for all blocks of a page, so that variables and the directory stay."""

    def __init__(self, once, directory):
        environment = dict(os.environ, LC_ALL="C.UTF-8", NO_COLOR="1", TERM="dumb",
                           PATH=os.path.dirname(once) + ":" + os.environ["PATH"])
        for name in ("ONCE_STORE", "ONCE_POINT", "AT_END", "DIR"):
            environment.pop(name, None)
        self.directory = os.path.realpath(directory)
        # Not from stdin, which the commands have, too.
        commands, to_commands = os.pipe()
        self.process = subprocess.Popen(["bash", "--norc", f"/dev/fd/{commands}"], cwd=directory,
                                        env=environment, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        pass_fds=[commands])
        os.close(commands)
        self.commands = os.fdopen(to_commands, "w")
        self.count = 0

    def run(self, command):
        """What it printed, and its exit code. `$?` stays what it was for the next command."""
        self.count += 1
        end = f"__end_{self.count}__"
        self.commands.write(f'restore() {{ return ${{code:-0}}; }}; restore\n{command}\n'
                            f'code=$?; printf "\\n{end} %d\\n" $code\n')
        self.commands.flush()
        lines = []
        for line in self.process.stdout:
            if line.startswith(end):
                return "".join(lines)[:-1], int(line.split()[1])
            lines.append(line)
        raise SystemExit(f"the shell ended in: {command}")

    def close(self):
        self.commands.close()
        self.process.wait(timeout=30)


class Server:
    """A server of tools/server.py while a block runs."""

    def __init__(self, script, kind, address, directory):
        self.script, self.directory, self.address = script, directory, address
        done = subprocess.run([sys.executable, script, "start", kind, "--dir", directory],
                              capture_output=True, text=True, check=False)
        self.is_there = done.returncode == 0
        self.why = (done.stdout + done.stderr).strip()
        self.actual = done.stdout.strip().split("://")[-1].rstrip("/")

    def remove(self):
        subprocess.run([sys.executable, self.script, "remove", "--dir", self.directory],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def run_block(shell, block, server):
    """What differs from the page."""
    def translated(text):
        return text.replace(server.address, server.actual) if server else text

    failures = []
    if block.setup:
        printed, code = shell.run(translated(block.setup))
        if code != 0:
            return [f"{block.where()}: the setup ended with {code}:\n{printed}"]
    for command in block.commands:
        printed, _ = shell.run(translated(command.text))
        printed = printed.replace(shell.directory, "/srv")  # where the pages are at home
        if server:
            printed = printed.replace(server.actual, server.address)
        expected, actual = normal("\n".join(command.printed)), normal(printed)
        if not matches(expected, actual):
            command.actual = printed.splitlines()
            difference = "\n".join(difflib.unified_diff(expected, actual, "the page", "the program",
                                                        lineterm=""))
            failures.append(f"{block.where(command.line)}: $ {command.text}\n{difference}\n"
                            f"printed:\n{printed}")
    return failures


def write_page(page, blocks):
    """Puts what was printed in the place of what the page said, from the end on."""
    with open(page, encoding="utf-8") as text:
        lines = text.read().split("\n")
    for block in reversed(blocks):
        for command in reversed(block.commands):
            if command.actual is None:
                continue
            begin = command.line + command.text.count("\n")
            while command.actual and not command.actual[-1].strip():
                command.actual.pop()
            lines[begin:begin + len(command.printed)] = [
                (block.indent + line).rstrip() for line in command.actual]
    with open(page, "w", encoding="utf-8") as text:
        text.write("\n".join(lines))


def run_page(once, script, page, write):
    """Failures, and how many blocks were run; and what was not."""
    failures, run, not_run = stray_commands(page), 0, []
    blocks = blocks_of(page)
    if not blocks:
        return failures, run, not_run
    with tempfile.TemporaryDirectory(prefix="once-docs-") as directory:
        os.chmod(directory, 0o755)  # servers run under accounts of their own
        work = os.path.join(directory, "work")
        os.mkdir(work)
        shell = Shell(once, work)
        for block in blocks:
            server = None
            if block.not_run is not None:
                not_run.append(f"{block.where()}: {block.not_run or 'no reason'}")
                if not block.not_run:
                    failures.append(f"{block.where()}: say why it is not run")
                continue
            if block.server:
                server = Server(script, *block.server, os.path.join(directory, "server"))
                if not server.is_there:
                    not_run.append(f"{block.where()}: no {block.server[0]} here: {server.why}")
                    continue
            try:
                failures += run_block(shell, block, server)
                run += 1
            finally:
                if server:
                    server.remove()
        shell.close()
    if write:
        write_page(page, blocks)
    return failures, run, not_run


def main():
    write = "--write" in sys.argv
    once, script, *pages = [word for word in sys.argv[1:] if word != "--write"]
    failures, run, not_run = [], 0, []
    for page in pages:
        found, count, left = run_page(os.path.abspath(once), script, page, write)
        failures, run, not_run = failures + found, run + count, not_run + left
    for failure in failures:
        print(failure + "\n")
    for one in not_run:
        print(f"not run: {one}")
    print(f"{run} blocks run, {len(not_run)} not run, {len(failures)} failures")
    if run == 0:
        print("no page has a console block")
    sys.exit(1 if failures or run == 0 else 0)


if __name__ == "__main__":
    main()
