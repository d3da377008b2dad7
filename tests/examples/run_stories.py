# SPDX-License-Identifier: Apache-2.0
"""The stories of examples/run: their messages, and their books, read from outside."""
import random

from example_books import compare, rows

STATES = ["created", "driver_assigned", "departed", "arrived", "picked_up", "done"]
LANE_POINTS = ["lane_after_admit", "lane_after_handler", "lane_before_commit", "lane_after_commit",
               "lane_after_ack"]
RELAY_POINTS = ["relay_after_assign", "relay_after_append", "relay_after_sent"]


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


def transfer_books(stage, messages):
    directory = stage.directory
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


def points_books(stage, messages):
    directory = stage.directory
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


def ride_books(stage, _):
    directory = stage.directory
    found = []
    for n in range(8):
        history = f"SELECT state FROM history WHERE ride = 'ride {n}' ORDER BY n"
        found += compare(f"ride {n}", rows(directory, "rides.db", history), STATES)
    return found


# --- flash sale: who comes first gets one

def flash_sale_messages():
    return shuffled([{"click": f"k{person}-{click}", "person": f"person {person}", "item": "phone"}
                     for person in range(25) for click in range(3)], "flash sale")


def flash_sale_books(stage, messages):
    directory = stage.directory
    winners = first_time(messages, lambda m: m["person"])[:10]
    query = "SELECT person FROM purchase ORDER BY rowid"
    return compare("purchases", rows(directory, "sale.db", query), winners) + compare(
        "stock", rows(directory, "sale.db", "SELECT pieces FROM stock"), [0])


# --- shop and warehouse: credit for seven orders each

def shop_messages():
    customers = ["ann", "bob", "cleo"]
    return shuffled([{"order": {"id": f"order {n}", "item": "book", "price": 20},
                      "customer": customers[n % 3]} for n in range(30)], "shop")


def shop_books(stage, messages):
    directory = stage.directory
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


# --- payments: Cleo runs out of money

def payments_messages():
    names = ["ann", "bob", "cleo"]
    return shuffled([{"payment": f"P{n}", "account": names[n % 3], "cents": 300 + n,
                      "at": f"2026-11-16T09:{n:02}:00.5+01:00"} for n in range(30)], "payments")


def payments_books(stage, messages):
    directory = stage.directory
    left, paid, receipts = {"ann": 10000, "bob": 10000, "cleo": 2000}, [], []
    for name in first_time(messages, lambda m: m["payment"]):
        message = next(m for m in messages if m["payment"] == name)
        account, cents = message["account"], message["cents"]
        if left[account] < cents:
            continue
        left[account] -= cents
        paid.append((name, account, cents, 1794816000500 + int(name[1:]) * 60000))
        receipts.append((name, account, str({"currency": "EUR", "left": left[account],
                                             "paid": cents, "payment": name})))
    query = "SELECT id, account, cents, at FROM payment ORDER BY n"
    found = compare("payments", rows(directory, "payments.db", query), paid)
    found += compare("balances", rows(directory, "payments.db",
                                      "SELECT * FROM account ORDER BY name"), sorted(left.items()))
    return found + compare("receipts", [(name, key, str(body))
                                        for name, key, body in stage.read("receipts")], receipts)


# --- inventory: orders whose lines can all be had

def inventory_messages():
    skus = ["book", "pen", "lamp"]
    return shuffled([{"order": f"order {n}",
                      "lines": [{"sku": skus[(n + k) % 3], "count": 1 + (n + k) % 2}
                                for k in range(1 + n % 3)]} for n in range(24)], "inventory")


def inventory_books(stage, messages):
    directory, stock = stage.directory, {"book": 40, "pen": 30, "lamp": 5}
    reserved, picks = [], []
    for name in first_time(messages, lambda m: m["order"]):
        lines = next(m["lines"] for m in messages if m["order"] == name)
        after = dict(stock)
        for line in lines:
            after[line["sku"]] -= line["count"]
        if min(after.values()) < 0:
            continue
        stock = after
        reserved += [(name, n, line["sku"], line["count"]) for n, line in enumerate(lines)]
        picks += [(line["sku"], str({"count": line["count"], "order": name, "sku": line["sku"]}))
                  for line in lines]
    query = "SELECT order_id, line, sku, pieces FROM reserved ORDER BY n"
    found = compare("reserved", rows(directory, "inventory.db", query), reserved)
    found += compare("stock", rows(directory, "inventory.db", "SELECT * FROM stock ORDER BY sku"),
                     sorted(stock.items()))
    return found + compare("picks", [(key, str(body)) for _, key, body in stage.read("picks")],
                           picks)


# --- clean: what is in the clean topic, in the order of its first appearance

def clean_messages():
    events = [{"event": f"e{n}", "type": "order.paid", "order": f"order {n % 7}"}
              for n in range(40)]
    noise = [None, {"type": "heartbeat"}, {"event": "t1", "type": "order.paid", "test": True},
             {"event": "c1", "type": "cart.made"}] * 5
    return shuffled(events + noise, "clean")


def clean_books(stage, messages):
    wanted = [m for m in messages if m and m["type"] == "order.paid" and not m.get("test")]
    events = first_time(wanted, lambda m: m["event"])
    expected = [(name, f"order {int(name[1:]) % 7}") for name in events]
    return compare("clean", [(name, key) for name, key, _ in stage.read("clean")], expected)


# --- sensors: the youngest reading of each, although older ones come later

def sensors_messages():
    return shuffled([{"sensor": f"s{n % 5}", "at": f"2026-11-16T09:30:00.{n:03}Z",
                      "celsius": n / 4} for n in range(60)], "sensors")


def sensors_books(stage, messages):
    directory, began = stage.directory, 1794821400000
    seen = first_time(messages, lambda m: (m["sensor"], began + int(m["celsius"] * 4)))
    found = compare("history", rows(directory, "sensors.db",
                                    "SELECT sensor, at FROM history ORDER BY n"), seen)
    latest = [(f"s{k}", began + 55 + k, (55 + k) / 4) for k in range(5)]
    return found + compare("latest", rows(directory, "sensors.db",
                                          "SELECT * FROM latest ORDER BY sensor"), latest)


# --- debezium: a snapshot, changes in their order, deletes with tombstones; a part is sent again

def debezium_messages():
    def change(op, lsn, before, after, table="customer"):
        return {"op": op, "before": before, "after": after,
                "source": {"table": table, "lsn": lsn}}

    def row(k, version):
        return {"id": k, "name": f"customer {k}", "credit": f"{k}.{version:02}"}

    messages = [change("r", 100, None, row(k, 0)) for k in range(10)]
    lsn = 100
    for version in range(1, 5):
        for k in range(10):
            lsn += 1
            if k == 7 and version == 3:
                messages += [change("d", lsn, row(k, version - 1), None), None]
            elif k == 7 and version == 4:
                messages.append(change("c", lsn, None, row(k, version)))
            else:
                messages.append(change("u", lsn, row(k, version - 1), row(k, version)))
        messages.append(change("u", lsn, None, {"id": 99}, table="other"))
    messages += [change("d", lsn + 1, row(3, 4), None), None]
    return messages[:30] + messages[20:]  # the connector has died, and begins a little earlier


def debezium_books(stage, _):
    expected = [(k, f"customer {k}", f"{k}.04", 131 + k) for k in range(10) if k != 3]
    return compare("copy", rows(stage.directory, "copy.db", "SELECT * FROM customer ORDER BY id"),
                   expected)


# --- deposits: some come before their account is opened

def deposits_messages():
    names = [f"account {n}" for n in range(6)]
    opened = [{"event": f"open {name}", "kind": "opened", "account": name, "cents": 100}
              for name in names]
    deposits = [{"event": f"E{n}", "kind": "deposit", "account": names[n % 6], "cents": n}
                for n in range(30)]
    return deposits[:12] + shuffled(opened + deposits, "deposits")


def deposits_books(stage, messages):
    events = {m["event"]: (m["event"], m["account"], m["cents"]) for m in messages}
    query = "SELECT id, account, cents FROM entry ORDER BY id"
    found = compare("entries", rows(stage.directory, "deposits.db", query),
                    sorted(events.values()))
    balances = {}
    for _, account, cents in events.values():
        balances[account] = balances.get(account, 0) + cents
    return found + compare("balances", rows(stage.directory, "deposits.db",
                                            "SELECT * FROM account ORDER BY name"),
                           sorted(balances.items()))


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
    "payments": (["payments", "receipts"], [("payments", "payments.db")], payments_messages,
                 payments_books, LANE_POINTS + RELAY_POINTS),
    "deposits": (["events", "dead"], [("deposits", "deposits.db")], deposits_messages,
                 deposits_books, LANE_POINTS + ["lane_after_defer"]),
    "inventory": (["orders", "picks"], [("inventory", "inventory.db")], inventory_messages,
                  inventory_books, LANE_POINTS + RELAY_POINTS),
    "clean": (["dirty", "clean"], [("clean", "clean.db")], clean_messages, clean_books,
              LANE_POINTS + RELAY_POINTS),
    "sensors": (["readings"], [("sensors", "sensors.db")], sensors_messages, sensors_books,
                LANE_POINTS),
    "debezium": (["changes"], [("debezium", "copy.db")], debezium_messages, debezium_books,
                 LANE_POINTS),
}
