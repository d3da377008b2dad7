#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills an example at failpoints and at any instant, starts it again, and reads its books.

    kill_example.py PROGRAM NAME
"""
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time

from example_books import EXAMPLES

KILLED = -9
PASSES = [1, 3, 6]       # die at the first, third, ... time; a run may not pass it as often
RANDOM_SERIES = 4        # directories on which the program is killed again and again
KILLS_PER_SERIES = 6


class Scratch:
    """A directory in memory where there is one: these tests kill processes, not machines."""

    def __enter__(self):
        base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.path = tempfile.mkdtemp(prefix="once-example-", dir=base)
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


def start(program, directory, rounds, point=None):
    environment = dict(os.environ)
    environment.pop("ONCE_POINT", None)
    if point:
        environment["ONCE_POINT"] = point
    return subprocess.Popen([program, directory, "--rounds", str(rounds)], env=environment,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(program, directory, rounds=2, point=None):
    process = start(program, directory, rounds, point)
    out, err = process.communicate(timeout=60)
    return process.returncode, (out + err).strip()


def ends_well(program, directory, problems, rounds=2):
    """What is wrong after a run without a kill: its exit code, its last line, its books."""
    code, text = run(program, directory, rounds)
    if code != 0:
        return [f"exit code {code}: {text}"]
    if not text.startswith("the books balance: "):
        return [f"its last line is: {text}"]
    return problems(directory)


def without_kills(program, problems):
    """Two rounds, then two more: everything is sent again, and nothing changes."""
    with Scratch() as directory:
        found = ends_well(program, directory, problems)
        return found + ends_well(program, directory, problems, rounds=4)


def double_an_effect(book, change):
    if book.endswith(".txt"):
        with open(book, "a", encoding="ascii") as lines:
            lines.write(change)
        return
    connection = sqlite3.connect(book)
    with connection:
        connection.execute(change)
    connection.close()


def canary(program, problems, book, change):
    """A doubled effect must be seen, by us and by the example."""
    with Scratch() as directory:
        run(program, directory)
        double_an_effect(os.path.join(directory, book), change)
        found = []
        if not problems(directory):
            found.append("canary: a doubled effect was not seen from outside")
        if run(program, directory)[0] != 1:
            found.append("canary: the example did not see a doubled effect")
        return found


def at_points(program, problems, points):
    """Killed at each point; during the restart once more at the first one; then run to the end."""
    found, kills = [], 0
    for point in points:
        for count in PASSES:
            name = f"{point}:{count}"
            with Scratch() as directory:
                code, text = run(program, directory, point=name)
                if code == 0 and count > 1:
                    break
                if code != KILLED:
                    found.append(f"ONCE_POINT={name}: exit code {code}, not a kill: {text}")
                    break
                kills += 1
                if count == 1:
                    kills += run(program, directory, point=name)[0] == KILLED
                found += [f"ONCE_POINT={name}: {problem}"
                          for problem in ends_well(program, directory, problems)]
    return found, kills


def at_any_instant(program, problems, name):
    """Killed after random times, again and again on the same directory."""
    found, kills = [], 0
    chance = random.Random(name)
    with Scratch() as directory:
        began = time.monotonic()
        run(program, directory)
        whole_s = time.monotonic() - began
    for series in range(RANDOM_SERIES):
        with Scratch() as directory:
            for _ in range(KILLS_PER_SERIES):
                process = start(program, directory, 2)
                time.sleep(chance.uniform(0, whole_s))
                process.kill()
                process.communicate()
                kills += process.returncode == KILLED
            found += [f"random kills, series {series}: {problem}"
                      for problem in ends_well(program, directory, problems, rounds=3)]
    return found, kills


def main():
    program, name = sys.argv[1:3]
    problems, points, book, change = EXAMPLES[name]
    found = without_kills(program, problems)
    found += canary(program, problems, book, change)
    failures, kills = at_points(program, problems, points)
    found += failures
    failures, more = at_any_instant(program, problems, name)
    found += failures
    if more == 0:
        found.append("no random kill met the running program")
    for problem in found:
        print(problem)
    print(f"{name}: {kills} kills at points, {more} at any instant, {len(found)} failures")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
