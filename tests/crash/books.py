# SPDX-License-Identifier: Apache-2.0
"""Runs crash_worker and looks at the books it leaves, id by id."""
import os
import shutil
import sqlite3
import subprocess
import tempfile
from collections import Counter

ORDERS = [f"order-{i}" for i in range(12)]
POISON = "order-7"
SEMANTICS = ["effectively_once", "at_least_once", "at_most_once"]
KILLED = -9


class Scratch:
    """A directory in memory where there is one: these tests kill processes, not machines."""

    def __enter__(self):
        base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.path = tempfile.mkdtemp(prefix="once-crash-", dir=base)
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


def run(command, point=None):
    """Exit code and error text of one run; `point` is NAME:N."""
    environment = dict(os.environ)
    environment.pop("ONCE_POINT", None)
    if point:
        environment["ONCE_POINT"] = point
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False,
                          timeout=60)
    return done.returncode, done.stderr.strip()


def effects(directory, table):
    database = sqlite3.connect(os.path.join(directory, "shop.db"))
    try:
        return [row[0] for row in database.execute(f"SELECT id FROM {table} ORDER BY n")]
    finally:
        database.close()


def payments(directory, bank):
    """The orders that a bank was paid for, in order; none if it was never asked."""
    path = os.path.join(directory, f"bank_{bank}.txt")
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [line.split()[1] for line in file]


def books(directory, semantics):
    """What must have had one effect each: (name, effects in their order, expected in order)."""
    healthy = [order for order in ORDERS if order != POISON]
    yield "order_effects", effects(directory, "order_effects"), healthy
    yield ("point_effects", effects(directory, "point_effects"),
           ["points-" + order for order in healthy])
    for bank in ["keyed", "asked"] if semantics == "effectively_once" else ["opaque"]:
        yield "bank_" + bank, payments(directory, bank), ORDERS


def problems(directory, semantics, killed):
    """What is wrong with the books; nothing, if the promise was kept."""
    found = []
    for table, got, expected in books(directory, semantics):
        counts = Counter(got)
        for name in sorted(set(counts) - set(expected)):
            found.append(f"{table}: {name} must have no effect")
        for name in expected:
            count = counts[name]
            if semantics == "effectively_once" or not killed:
                wrong = count != 1
            elif semantics == "at_least_once":
                wrong = count < 1
            else:
                wrong = count > 1
            if wrong:
                found.append(f"{table}: {name} has {count} effects ({semantics})")
        first_seen = list(dict.fromkeys(got))
        in_order = [name for name in expected if name in counts]
        if first_seen != in_order:
            found.append(f"{table}: out of order: {got}")
    return found
