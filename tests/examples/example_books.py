# SPDX-License-Identifier: Apache-2.0
"""The books of each example, read from outside: what is there, and what should be, id by id."""
import os
import sqlite3
from collections import Counter

PEOPLE = [f"person {n}" for n in range(25)]
ORDERS = 30
STATES = ["created", "driver_assigned", "departed", "arrived", "picked_up", "done"]


def rows(directory, database, query):
    connection = sqlite3.connect(os.path.join(directory, database))
    try:
        return [row if len(row) > 1 else row[0] for row in connection.execute(query)]
    finally:
        connection.close()


def compare(what, got, expected):
    """Lost, doubled and stray ones by name, then the order."""
    found = []
    counts, wanted = Counter(got), Counter(expected)
    for name in sorted(set(counts) | set(wanted), key=str):
        if counts[name] != wanted[name]:
            found.append(f"{what}: {name} is there {counts[name]} times, not {wanted[name]}")
    if not found and list(got) != list(expected):
        found.append(f"{what}: out of order: {got}")
    return found


def transfer(directory):
    names = ["ann", "bob", "cleo", "dan"]
    flow, balances = [], Counter({name: 1000 for name in names})
    for n in range(24):
        giver, taker = names[n % 4], names[(n + 1 + n // 4 % 3) % 4]
        flow += [(f"T{n}", giver, -100), (f"T{n}", taker, 100)]
        balances[giver] -= 100
        balances[taker] += 100
    found = compare("flow", rows(directory, "bank.db", "SELECT * FROM flow ORDER BY rowid"), flow)
    return found + compare("balance", rows(directory, "bank.db",
                                           "SELECT * FROM account ORDER BY name"),
                           sorted(balances.items()))


def shop_order(directory):
    paid = [f"order {n}" for n in range(ORDERS) if n // 3 < 7]
    found = []
    for database, query in (("shop.db", "SELECT id FROM orders ORDER BY n"),
                            ("shop.db", "SELECT order_id FROM payment ORDER BY n"),
                            ("warehouse.db", "SELECT order_id FROM parcel ORDER BY n")):
        found += compare(query, rows(directory, database, query), paid)
    found += compare("stock", rows(directory, "shop.db", "SELECT pieces FROM stock"),
                     [100 - len(paid)])
    return found + compare("credit", rows(directory, "shop.db", "SELECT credit FROM customer"),
                           [150 - 7 * 20] * 3)


def points(directory):
    orders = [f"order-{n}" for n in range(ORDERS)]
    members = Counter({f"user-{n}": 0 for n in range(4)})
    for n in range(ORDERS):
        members[f"user-{n % 4}"] += 30
    found = []
    for database, query in (("shop.db", "SELECT id FROM orders WHERE state = 'paid' ORDER BY n"),
                            ("points.db", "SELECT order_id FROM points ORDER BY n")):
        found += compare(query, rows(directory, database, query), orders)
    return found + compare("members", rows(directory, "points.db",
                                           "SELECT * FROM member ORDER BY user"),
                           sorted(members.items()))


def ride(directory):
    found = []
    for n in range(12):
        name = f"ride {n}"
        history = f"SELECT state FROM history WHERE ride = '{name}' ORDER BY n"
        found += compare(name, rows(directory, "rides.db", history), STATES)
        found += compare(name + " now", rows(
            directory, "rides.db", f"SELECT state FROM ride WHERE id = '{name}'"), ["done"])
    return found + compare("rides", rows(directory, "rides.db", "SELECT COUNT(*) FROM history"),
                           [12 * len(STATES)])


def flash_sale(directory):
    votes = [(name, "no" if n % 3 == 0 else "yes") for n, name in enumerate(PEOPLE)]
    tally = Counter(choice for _, choice in votes)
    found = []
    for query, expected in (("SELECT person FROM purchase ORDER BY n", PEOPLE[:10]),
                            ("SELECT person, choice FROM vote ORDER BY rowid", votes),
                            ("SELECT * FROM tally ORDER BY choice", sorted(tally.items())),
                            ("SELECT pieces FROM sale", [0]),
                            # A refusal leaves nothing behind: no token is used without a phone.
                            ("SELECT COUNT(*) FROM token WHERE used_ms > 0", [10])):
        found += compare(query, rows(directory, "shop.db", query), expected)
    return found


def http_charge(directory):
    with open(os.path.join(directory, "bank.txt"), encoding="ascii") as book:
        charged = [line.strip().split(" ", 1) for line in book]
    found = compare("bank", [order for _, order in charged],
                    [f"order {n}" for n in range(24) if n % 10 != 7])
    found += compare("references", [count for count in
                                    Counter(reference for reference, _ in charged).values()],
                     [1] * 22)
    # done is 3, rejected is 4 (ClaimState in once/claims.h); nothing is left running or in doubt.
    return found + compare("claims", rows(directory, "shop.db",
                                          "SELECT state, COUNT(*) FROM once_claim"
                                          " GROUP BY state ORDER BY state"), [(3, 22), (4, 2)])


LOG = ["log_before_write", "log_after_write", "log_after_sync"]
LANE = ["lane_after_begin", "lane_after_advance", "lane_after_admit", "lane_after_handler",
        "lane_before_commit", "lane_after_commit", "lane_after_ack"]
RELAY = ["relay_after_assign", "relay_after_append", "relay_after_sent"]
CLAIM = ["lane_after_claim", "lane_after_effect", "lane_after_settle"]

# Of each example: how to find problems, the failpoints it passes, and a change to its books (a
# statement, or a line of text) that must be noticed: one effect done once more.
EXAMPLES = {
    "01_transfer": (transfer, LOG + LANE, "bank.db",
                    "UPDATE account SET balance = balance + 100 WHERE name = 'ann'"),
    "02_shop_order": (shop_order, LOG + LANE + RELAY, "warehouse.db",
                      "INSERT INTO parcel (order_id) VALUES ('order 3')"),
    "03_points": (points, LOG + LANE + RELAY, "points.db",
                  "INSERT INTO points (order_id, user, points) VALUES ('order-3', 'user-3', 30)"),
    "04_ride": (ride, LOG + LANE, "rides.db",
                "INSERT INTO history (ride, state) VALUES ('ride 3', 'done')"),
    "05_flash_sale": (flash_sale, LOG + LANE, "shop.db",
                      "INSERT INTO purchase (person) VALUES ('person 3')"),
    "06_http_charge": (http_charge, LOG + LANE + CLAIM, "bank.txt", "again order 3\n"),
}
