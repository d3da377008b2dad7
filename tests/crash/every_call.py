#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills crash_worker before every call that changes a file, one after the other.

    every_call.py KILL_AT_CALL CRASH_WORKER SEMANTICS SHARD SHARDS

Exit code 77 (skipped) where a process may not be traced.
"""
import subprocess
import sys

from books import new_case, problems, run
from stores import Sqlite

EXIT_SKIPPED = 77


def count_calls(killer, worker, semantics):
    with new_case(worker, semantics, Sqlite()) as case:
        done = subprocess.run([killer, "0"] + case.command, capture_output=True, text=True,
                              check=False, timeout=60)
        if done.returncode == EXIT_SKIPPED:
            print("SKIPPED: this machine does not permit ptrace")
            sys.exit(EXIT_SKIPPED)
        if done.returncode != 0:
            sys.exit(f"the run without a kill failed: {done.stderr}")
        return int(done.stdout.split()[-1])


def main():
    killer, worker, semantics = sys.argv[1:4]
    shard, shards = int(sys.argv[4]), int(sys.argv[5])
    total = count_calls(killer, worker, semantics)
    failures, kills = [], 0
    # Threads do not always interleave the same way: go a little beyond the counted end.
    for call in range(1 + shard, total + 10, shards):
        with new_case(worker, semantics, Sqlite()) as case:
            code, text = run([killer, str(call)] + case.command)
            if code not in (0, 137):
                failures.append(f"call {call}: exit code {code}: {text}")
                continue
            kills += code == 137
            code, text = run(case.command)
            if code != 0:
                failures.append(f"after a kill at call {call}: exit code {code}: {text}")
                continue
            failures += [f"after a kill at call {call}: {problem}"
                         for problem in problems(case, semantics, True)]
    for failure in failures[:20]:
        print(failure)
    print(f"{semantics}: {total} calls, {kills} kills in shard {shard + 1} of {shards}, "
          f"{len(failures)} failures")
    if kills < total // shards - 10:
        sys.exit(f"only {kills} runs were killed")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
