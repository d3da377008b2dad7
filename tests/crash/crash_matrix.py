#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills crash_worker at every failpoint, in every semantics, and starts it again.

    crash_matrix.py CRASH_WORKER STORE SEMANTICS ...

Exit code 77 (skipped) where this machine does not have the server of the store.
"""
import sys

from books import KILLED, SEMANTICS, new_case, problems, run
from stores import STORES
from servers.server import MISSING, Missing

# Each failpoint (src/base/failpoint.h) and the semantics in which a run passes it.
EFFECTIVELY, LEAST, MOST = SEMANTICS
POINTS = {
    "log_before_write": SEMANTICS,
    "log_after_write": SEMANTICS,
    "log_after_sync": SEMANTICS,
    "log_before_roll": SEMANTICS,
    "log_after_roll": SEMANTICS,
    "lane_after_begin": SEMANTICS,
    "lane_after_advance": SEMANTICS,
    "lane_after_admit": SEMANTICS,
    "lane_after_handler": SEMANTICS,
    "lane_before_commit": SEMANTICS,
    "lane_after_commit": SEMANTICS,
    "lane_after_ack": SEMANTICS,
    "lane_after_position": [MOST],
    "lane_after_work": [LEAST],
    "lane_before_park": SEMANTICS,
    "lane_after_defer": [EFFECTIVELY],
    "feed_after_poll": [EFFECTIVELY],
    "lane_after_claim": SEMANTICS,
    "lane_after_effect": SEMANTICS,
    "lane_after_settle": SEMANTICS,
    "relay_after_enter": SEMANTICS,
    "relay_after_assign": SEMANTICS,
    "relay_after_append": SEMANTICS,
    "relay_after_sent": SEMANTICS,
    "store_before_forget": [EFFECTIVELY],
    "store_after_horizon": [EFFECTIVELY],
}
# Those that only a store on a server passes. It leaves out the points of the log, which is the
# same under every store.
SERVER_POINTS = {
    "store_before_commit": SEMANTICS,
    "store_after_commit_sent": SEMANTICS,
}
# The weaker promises are weaker: a kill here repeats or loses an effect. If that is not seen, the
# checks are blind.
CANARIES = {LEAST: "lane_after_work", MOST: "lane_after_position"}
PASSES = [1, 2, 3, 5]  # die at the first, second, ... time; a run may not pass it as often


def points_of(store):
    if not store.is_server:
        return POINTS
    of_store = {point: where for point, where in POINTS.items() if not point.startswith("log_")}
    return {**of_store, **SERVER_POINTS}


def passes_of(store, point, semantics):
    """Of the strongest promise most commits are worth a death; otherwise a few are."""
    if point in SERVER_POINTS and semantics == EFFECTIVELY:
        return [*range(1, 20), *range(20, 1000, 3)]
    return PASSES[:2] if store.is_server else PASSES


def check(worker, store, point, semantics, second=None):
    """Kill at `point`, restart (and kill at `second`), restart: (was killed, problems)."""
    with new_case(worker, semantics, store) as case:
        code, text = run(case.command, point)
        if code == 0:
            return False, []
        if code != KILLED:
            return False, [f"exit code {code}, not a kill: {text}"]
        if second:
            code, text = run(case.command, second)
            if code not in (0, KILLED):
                return True, [f"second run: exit code {code}: {text}"]
        code, text = run(case.command)
        if code != 0:
            return True, [f"after the kill: exit code {code}: {text}"]
        return True, problems(case, semantics, True)


def check_unharmed(worker, store, semantics):
    with new_case(worker, semantics, store) as case:
        code, text = run(case.command)
        found = problems(case, semantics, False) if code == 0 else [f"exit code {code}: {text}"]
        return [f"without a kill: {problem}" for problem in found]


def canary(worker, store, semantics):
    """Whether the strong promise is seen to be broken where only a weak one was given."""
    with new_case(worker, semantics, store) as case:
        run(case.command, CANARIES[semantics] + ":1")
        run(case.command)
        return bool(problems(case, EFFECTIVELY, True))


def check_all(worker, store, semantics):
    """(kills, failures) of one semantics."""
    failures, kills = check_unharmed(worker, store, semantics), 0
    if semantics in CANARIES and not canary(worker, store, semantics):
        failures.append("canary: a repeated or lost effect was not seen")
    for point, where in points_of(store).items():
        for count in passes_of(store, point, semantics):
            name = f"{point}:{count}"
            # The second death is at the same place: most likely inside the recovery of the first.
            killed, found = check(worker, store, name, semantics, name if count == 1 else None)
            kills += killed
            failures += [f"{name}: {problem}" for problem in found]
            if count == 1 and killed != (semantics in where):
                failures.append(f"{name}: " + ("is passed, but the table says it is not" if killed
                                               else "is not passed, the table is wrong"))
            if not killed:
                break
    return kills, failures


def main():
    worker, store_name = sys.argv[1:3]
    failed = False
    try:
        with STORES[store_name]() as store:
            for semantics in sys.argv[3:]:
                kills, failures = check_all(worker, store, semantics)
                for failure in failures:
                    print(f"ONCE_POINT={failure.split(':')[0]} {semantics}: {failure}")
                print(f"{store_name}, {semantics}: {len(points_of(store))} points, {kills} kills, "
                      f"{len(failures)} failures", flush=True)
                failed = failed or bool(failures)
    except Missing as missing:
        print(f"skipped: {missing}")
        sys.exit(MISSING)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
