#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills crash_worker at every failpoint, in every semantics, and starts it again.

    crash_matrix.py CRASH_WORKER SEMANTICS
"""
import sys

from books import KILLED, SEMANTICS, Scratch, problems, run

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
    "lane_after_claim": SEMANTICS,
    "lane_after_effect": SEMANTICS,
    "lane_after_settle": SEMANTICS,
    "relay_after_assign": SEMANTICS,
    "relay_after_append": SEMANTICS,
    "relay_after_sent": SEMANTICS,
    "store_before_forget": [EFFECTIVELY],
    "store_after_horizon": [EFFECTIVELY],
}
# The weaker promises are weaker: a kill here repeats or loses an effect. If that is not seen, the
# checks are blind.
CANARIES = {LEAST: "lane_after_work", MOST: "lane_after_position"}
PASSES = [1, 2, 3, 5]  # die at the first, second, ... time; a run may not pass it as often


def check(worker, point, semantics, second=None):
    """Kill at `point`, restart (and kill at `second`), restart: (was killed, problems)."""
    with Scratch() as directory:
        command = [worker, directory, semantics]
        code, text = run(command, point)
        if code == 0:
            return False, []
        if code != KILLED:
            return False, [f"exit code {code}, not a kill: {text}"]
        if second:
            code, text = run(command, second)
            if code not in (0, KILLED):
                return True, [f"second run: exit code {code}: {text}"]
        code, text = run(command)
        if code != 0:
            return True, [f"after the kill: exit code {code}: {text}"]
        return True, problems(directory, semantics, True)


def canary(worker, semantics):
    """Whether the strong promise is seen to be broken where only a weak one was given."""
    with Scratch() as directory:
        run([worker, directory, semantics], CANARIES[semantics] + ":1")
        run([worker, directory, semantics])
        return bool(problems(directory, EFFECTIVELY, True))


def main():
    worker, semantics = sys.argv[1:3]
    failures, kills = [], 0
    with Scratch() as directory:
        code, text = run([worker, directory, semantics])
        found = [f"exit code {code}: {text}"]
        if code == 0:
            found = problems(directory, semantics, False)
        failures += [f"without a kill: {problem}" for problem in found]
    if semantics in CANARIES and not canary(worker, semantics):
        failures.append("canary: a repeated or lost effect was not seen")
    for point, where in POINTS.items():
        for count in PASSES:
            name = f"{point}:{count}"
            # The second death is at the same place: most likely inside the recovery of the first.
            killed, found = check(worker, name, semantics, name if count == 1 else None)
            kills += killed
            failures += [f"{name}: {problem}" for problem in found]
            if count == 1 and killed != (semantics in where):
                failures.append(f"{name}: " + ("is passed, but the table says it is not" if killed
                                               else "is not passed, the table is wrong"))
            if not killed:
                break
    for failure in failures:
        print(f"ONCE_POINT={failure.split(':')[0]} {semantics}: {failure}")
    print(f"{semantics}: {len(POINTS)} points, {kills} kills, {len(failures)} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
