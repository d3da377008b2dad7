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


def problems(directory, semantics, killed):
    """What is wrong with the books; nothing, if the promise was kept."""
    found = []
    for table, prefix in (("order_effects", ""), ("point_effects", "points-")):
        got = effects(directory, table)
        counts = Counter(got)
        expected = [prefix + order for order in ORDERS if order != POISON]
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
