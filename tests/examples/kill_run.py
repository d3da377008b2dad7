#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the files of examples/run with every message sent twice, kills `once run` at failpoints and
at any instant, starts it again, and reads the books.

    kill_run.py ONCE EXAMPLES_RUN STORY
"""
import json
import os
import random
import sqlite3
import subprocess
import sys
import time

from example_books import compare, rows
from kill_example import KILLED, Scratch
from run_stories import STORIES

KILLS_AT_ANY_INSTANT = 5


class Stage:
    def __init__(self, once, examples, story, directory):
        self.once, self.examples, self.directory = once, examples, directory
        self.topics, self.pipelines, make, self.books, self.points = STORIES[story]
        self.messages = make()
        for _, database in self.pipelines:
            self.set_up(database)
        for topic in self.topics:
            self.command("topic", "create", self.url(topic))
        # A message that is nothing is a tombstone.
        lines = "".join(json.dumps({"body": message and json.dumps(message)}) + "\n"
                        for message in self.messages)
        self.command("produce", self.url(self.topics[0]), "--json", text=lines)

    def set_up(self, database):
        name = next(name for name, known in self.pipelines if known == database)
        script = os.path.join(self.examples, name + ".sql")
        if not os.path.exists(script):
            return  # it has no tables of its own
        connection = sqlite3.connect(os.path.join(self.directory, database))
        with open(script, encoding="ascii") as statements:
            connection.executescript(statements.read())
        connection.close()

    def url(self, topic):
        return f"file:{self.directory}/{topic}"

    def command(self, *words, text=None):
        subprocess.run([self.once, *words], input=text, check=True, text=True,
                       stdout=subprocess.DEVNULL)

    def read(self, topic):
        """(id, key, body) of each message in a topic."""
        done = subprocess.run([self.once, "consume", self.url(topic), "-o", "json"], check=True,
                              text=True, stdout=subprocess.PIPE)
        messages = [json.loads(line) for line in done.stdout.splitlines()]
        return [(m["id"], m["key"], json.loads(m["body"])) for m in messages]

    def start(self, name, point=None):
        environment = dict(os.environ, DIR=self.directory, AT_END="stop", LATER="20ms")
        environment.pop("ONCE_POINT", None)
        if point:
            environment["ONCE_POINT"] = point
        return subprocess.Popen([self.once, "run", os.path.join(self.examples, name + ".toml")],
                                env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True)

    def finish(self):
        """All pipelines to their end; what is wrong then."""
        for name, database in self.pipelines:
            waits = True
            while waits:
                process = self.start(name)
                out, err = process.communicate(timeout=60)
                if process.returncode != 0:
                    return [f"{name}: exit code {process.returncode}: {out}{err}"]
                waits = rows(self.directory, database, "SELECT number FROM once_deferred")
        found = self.books(self, self.messages)
        for _, database in self.pipelines:
            found += compare("parked in " + database, rows(
                self.directory, database, "SELECT reason FROM once_parked"), [])
        return found


def at_points(make):
    found, kills = [], 0
    with Scratch() as directory:
        points = make(directory).points
    for point in points:
        with Scratch() as directory:
            stage = make(directory)
            process = stage.start(stage.pipelines[0][0], point)
            process.communicate(timeout=60)
            kills += process.returncode == KILLED
            if process.returncode != KILLED:
                found.append(f"ONCE_POINT={point}: exit code {process.returncode}, not a kill")
            found += [f"ONCE_POINT={point}: {problem}" for problem in stage.finish()]
    return found, kills


def at_any_instant(make, story):
    found, kills, chance = [], 0, random.Random(story)
    with Scratch() as directory:
        stage = make(directory)
        for _ in range(KILLS_AT_ANY_INSTANT):
            for name, _ in stage.pipelines:
                process = stage.start(name)
                time.sleep(chance.uniform(0, 0.06))
                process.kill()
                process.communicate()
                kills += process.returncode == KILLED
        found += [f"random kills: {problem}" for problem in stage.finish()]
    return found, kills


def canary(make):
    """An effect that is missing must be seen."""
    with Scratch() as directory:
        stage = make(directory)
        return [] if stage.books(stage, stage.messages) else ["empty books were not noticed"]


def main():
    once, examples, story = sys.argv[1:4]

    def make(directory):
        return Stage(once, examples, story, directory)

    found = canary(make)
    failures, kills = at_points(make)
    found += failures
    failures, more = at_any_instant(make, story)
    found += failures
    if more == 0:
        found.append("no random kill met the running program")
    for problem in found:
        print(problem)
    print(f"{story}: {kills} kills at points, {more} at any instant, {len(found)} failures")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
