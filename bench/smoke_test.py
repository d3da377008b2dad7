#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The benchmarks run and write what they promise; how fast they are is not asked.

    bench/smoke_test.py BUILD
"""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
# How many comparisons each has at least.
FILES = {"pipeline": 10, "log": 2, "growth": 4}
ON_SERVERS = {"servers": 7, "servers_growth": 2, "claims": 2, "kafka": 7}


def check(comparison):
    for field in ("name", "ours", "peer", "ratio", "aim"):
        assert field in comparison, f"no {field} in {comparison}"
    assert comparison["name"].rstrip(")").split(",")[-1].strip(), comparison["name"]
    for field in ("ours", "peer", "ratio"):
        assert comparison[field] > 0, comparison
    assert comparison["better"] in ("higher", "lower"), comparison


def main():
    build = sys.argv[1]
    with tempfile.TemporaryDirectory(dir=build) as scratch:
        os.chmod(scratch, 0o755)  # servers run as another user
        answer = subprocess.run(
            [os.path.join(HERE, "run"), "--quick", "--build", build, "--results", scratch,
             "--dir", os.path.join(scratch, "data"), *FILES, *ON_SERVERS],
            capture_output=True, text=True, check=False)
        assert answer.returncode == 0, answer.stdout + answer.stderr
        for name, least in (FILES | ON_SERVERS).items():
            path = os.path.join(scratch, name + ".json")
            if name in ON_SERVERS and not os.path.exists(path):
                assert "skipped: " in answer.stdout, answer.stdout + answer.stderr
                print(f"skipped: {name}, there is no server for it")
                continue
            with open(path, encoding="utf-8") as file:
                result = json.load(file)
            assert result["settings"]["quick"] is True, result["settings"]
            assert len(result["comparisons"]) >= least, result["comparisons"]
            for comparison in result["comparisons"]:
                check(comparison)
                assert comparison["name"] in answer.stdout, "not in the table: " + str(comparison)
    print("bench: all results have their fields")


if __name__ == "__main__":
    main()
