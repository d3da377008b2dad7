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

STATES = ["created", "driver_assigned", "departed", "arrived", "picked_up", "done"]
LANE_POINTS = ["lane_after_admit", "lane_after_handler", "lane_before_commit", "lane_after_commit",
               "lane_after_ack"]
RELAY_POINTS = ["relay_after_assign", "relay_after_append", "relay_after_sent"]
KILLS_AT_ANY_INSTANT = 5


def shuffled(messages, seed):
    """Every message twice, anywhere; the same after a restart."""
    doubled = messages + messages
    random.Random(seed).shuffle(doubled)
    return doubled


def first_time(messages, key):
    """The order in which things come for the first time."""
    return list(dict.fromkeys(key(message) for message in messages))


# --- transfer: everybody stays above zero, so that nothing is refused

def transfer_messages():
    names = ["ann", "bob", "cleo", "dan"]
    return shuffled([{"transfer": f"T{n}", "from": names[n % 4], "to": names[(n + 1) % 4],
                      "amount": 10} for n in range(24)], "transfer")


def transfer_books(directory, messages):
    flow = []
    for name in first_time(messages, lambda m: m["transfer"]):
        message = next(m for m in messages if m["transfer"] == name)
        flow += [(name, message["from"], "out", 10), (name, message["to"], "in", 10)]
    found = compare("flow", rows(directory, "bank.db", "SELECT * FROM flow ORDER BY rowid"), flow)
    return found + compare("balances", rows(directory, "bank.db", "SELECT balance FROM account"),
                           [1000] * 4)


# --- points: calls about orders that are not paid say nothing

def points_messages():
    calls = [{"order": f"order-{n % 30}", "member": f"user-{n % 30 % 4}",
              "state": "paid" if n % 2 == 0 or n >= 30 else "waiting"} for n in range(60)]
    # The provider calls again, and each call has an id of its own.
    return [{"call": n, **call} for n, call in enumerate(shuffled(calls, "points"))]


def points_books(directory, messages):
    paid = [m for m in messages if m["state"] == "paid"]
    orders = first_time(paid, lambda m: m["order"])
    got = rows(directory, "points.db", "SELECT order_id FROM points ORDER BY n")
    members = [(f"user-{k}", 30 * sum(int(order[6:]) % 4 == k for order in orders))
               for k in range(4)]
    return compare("points", got, orders) + compare(
        "members", rows(directory, "points.db", "SELECT * FROM member ORDER BY name"), members)


# --- ride

def ride_messages():
    return shuffled([{"ride": f"ride {n}", "state": state} for n in range(8) for state in STATES],
                    "ride")


def ride_books(directory, _):
    found = []
    for n in range(8):
        history = f"SELECT state FROM history WHERE ride = 'ride {n}' ORDER BY n"
        found += compare(f"ride {n}", rows(directory, "rides.db", history), STATES)
    return found


# --- flash sale: who comes first gets one

def flash_sale_messages():
    return shuffled([{"click": f"k{person}-{click}", "person": f"person {person}", "item": "phone"}
                     for person in range(25) for click in range(3)], "flash sale")


def flash_sale_books(directory, messages):
    winners = first_time(messages, lambda m: m["person"])[:10]
    query = "SELECT person FROM purchase ORDER BY rowid"
    return compare("purchases", rows(directory, "sale.db", query), winners) + compare(
        "stock", rows(directory, "sale.db", "SELECT pieces FROM stock"), [0])


# --- shop and warehouse: credit for seven orders each

def shop_messages():
    customers = ["ann", "bob", "cleo"]
    return shuffled([{"order": {"id": f"order {n}", "item": "book", "price": 20},
                      "customer": customers[n % 3]} for n in range(30)], "shop")


def shop_books(directory, messages):
    paid, credit = [], {"ann": 150, "bob": 150, "cleo": 150}
    for name in first_time(messages, lambda m: m["order"]["id"]):
        customer = next(m["customer"] for m in messages if m["order"]["id"] == name)
        if credit[customer] >= 20:
            credit[customer] -= 20
            paid.append(name)
    found = compare("orders", rows(directory, "shop.db", "SELECT id FROM orders ORDER BY n"), paid)
    found += compare("parcels", rows(directory, "warehouse.db",
                                     "SELECT order_id FROM parcel ORDER BY n"), paid)
    found += compare("credit", rows(directory, "shop.db", "SELECT * FROM customer ORDER BY name"),
                     sorted(credit.items()))
    return found + compare("stock", rows(directory, "shop.db", "SELECT pieces FROM stock"),
                           [100 - len(paid)])


# topics, pipelines with their databases, messages, books, points
STORIES = {
    "transfer": (["transfers"], [("transfer", "bank.db")], transfer_messages, transfer_books,
                 LANE_POINTS),
    "points": (["calls"], [("points", "points.db")], points_messages, points_books, LANE_POINTS),
    "ride": (["news"], [("ride", "rides.db")], ride_messages, ride_books, LANE_POINTS),
    "flash_sale": (["clicks"], [("flash_sale", "sale.db")], flash_sale_messages, flash_sale_books,
                   LANE_POINTS),
    "shop": (["orders", "parcels"], [("shop", "shop.db"), ("warehouse", "warehouse.db")],
             shop_messages, shop_books, LANE_POINTS + RELAY_POINTS),
}


class Stage:
    def __init__(self, once, examples, story, directory):
        self.once, self.examples, self.directory = once, examples, directory
        self.topics, self.pipelines, make, self.books, self.points = STORIES[story]
        self.messages = make()
        for _, database in self.pipelines:
            self.set_up(database)
        for topic in self.topics:
            self.command("topic", "create", self.url(topic))
        lines = "".join(json.dumps(message) + "\n" for message in self.messages)
        self.command("produce", self.url(self.topics[0]), text=lines)

    def set_up(self, database):
        name = next(name for name, known in self.pipelines if known == database)
        connection = sqlite3.connect(os.path.join(self.directory, database))
        with open(os.path.join(self.examples, name + ".sql"), encoding="ascii") as script:
            connection.executescript(script.read())
        connection.close()

    def url(self, topic):
        return f"file:{self.directory}/{topic}"

    def command(self, *words, text=None):
        subprocess.run([self.once, *words], input=text, check=True, text=True,
                       stdout=subprocess.DEVNULL)

    def start(self, name, point=None):
        environment = dict(os.environ, DIR=self.directory, AT_END="stop")
        environment.pop("ONCE_POINT", None)
        if point:
            environment["ONCE_POINT"] = point
        return subprocess.Popen([self.once, "run", os.path.join(self.examples, name + ".toml")],
                                env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True)

    def finish(self):
        """All pipelines to their end; what is wrong then."""
        for name, _ in self.pipelines:
            process = self.start(name)
            out, err = process.communicate(timeout=60)
            if process.returncode != 0:
                return [f"{name}: exit code {process.returncode}: {out}{err}"]
        found = self.books(self.directory, self.messages)
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
        return [] if stage.books(directory, stage.messages) else ["empty books were not noticed"]


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
