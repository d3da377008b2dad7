# SPDX-License-Identifier: Apache-2.0
"""Runs crash_worker and looks at the books it leaves, id by id."""
import os
import subprocess
from collections import Counter
from contextlib import contextmanager

from stores import Scratch

ORDERS = [f"order-{i}" for i in range(12)]
POISON = "order-7"
CUSTOMERS = 3
SEMANTICS = ["effectively_once", "at_least_once", "at_most_once"]
KILLED = -9


class Case:
    """What one worker and its restarts work on."""

    def __init__(self, worker, semantics, store, directory):
        self.semantics, self.store, self.directory = semantics, store, directory
        self.command = [worker, directory, semantics, store.make(directory)]


@contextmanager
def new_case(worker, semantics, store):
    with Scratch() as directory:
        yield Case(worker, semantics, store, directory)


def run(command, point=None):
    """Exit code and error text of one run; `point` is NAME:N."""
    environment = dict(os.environ)
    environment.pop("ONCE_POINT", None)
    if point:
        environment["ONCE_POINT"] = point
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False,
                          timeout=60)
    return done.returncode, done.stderr.strip()


def payments(directory, bank):
    """The orders that a bank was paid for, in order; none if it was never asked."""
    path = os.path.join(directory, f"bank_{bank}.txt")
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [line.split()[1] for line in file]


def shipped(case):
    """Orders that waited in the store: those of each customer in their order."""
    got = case.store.ids(case.directory, "ship_effects")
    for customer in range(CUSTOMERS):
        ours = ORDERS[customer::CUSTOMERS]
        yield f"ship_effects of customer {customer}", [id for id in got if id in ours], ours


def books(case):
    """What must have had one effect each: (name, effects in their order, expected in order)."""
    healthy = [order for order in ORDERS if order != POISON]
    yield "order_effects", case.store.ids(case.directory, "order_effects"), healthy
    yield ("point_effects", case.store.ids(case.directory, "point_effects"),
           ["points-" + order for order in healthy])
    if case.semantics == "effectively_once":
        yield from shipped(case)
    for bank in ["keyed", "asked"] if case.semantics == "effectively_once" else ["opaque"]:
        yield "bank_" + bank, payments(case.directory, bank), ORDERS


def problems(case, promised, killed):
    """What is wrong with the books; nothing, if what was promised was kept."""
    found = []
    for table, got, expected in books(case):
        counts = Counter(got)
        for name in sorted(set(counts) - set(expected)):
            found.append(f"{table}: {name} must have no effect")
        for name in expected:
            count = counts[name]
            if promised == "effectively_once" or not killed:
                wrong = count != 1
            elif promised == "at_least_once":
                wrong = count < 1
            else:
                wrong = count > 1
            if wrong:
                found.append(f"{table}: {name} has {count} effects ({promised})")
        first_seen = list(dict.fromkeys(got))
        in_order = [name for name in expected if name in counts]
        if first_seen != in_order:
            found.append(f"{table}: out of order: {got}")
    return found
