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
FILES = {"pipeline": 10, "log": 2, "growth": 4}  # how many comparisons each has at least


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
        answer = subprocess.run(
            [os.path.join(HERE, "run"), "--quick", "--build", build, "--results", scratch,
             "--dir", os.path.join(scratch, "data"), *FILES],
            capture_output=True, text=True, check=False)
        assert answer.returncode == 0, answer.stdout + answer.stderr
        for name, least in FILES.items():
            with open(os.path.join(scratch, name + ".json"), encoding="utf-8") as file:
                result = json.load(file)
            assert result["settings"]["quick"] is True, result["settings"]
            assert len(result["comparisons"]) >= least, result["comparisons"]
            for comparison in result["comparisons"]:
                check(comparison)
                assert comparison["name"] in answer.stdout, "not in the table: " + str(comparison)
    print("bench: all results have their fields")


if __name__ == "__main__":
    main()
