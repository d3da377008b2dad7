#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs ctest in a build directory and sums up: per label, and by name whatever was skipped.

    tools/run_tests.py build -j 2 -L 'unit|conformance'

Everything after the directory goes to ctest.
"""
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import defaultdict


def labels_of(build, selection):
    """Test name -> its label."""
    listed = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"] + selection,
                            capture_output=True, text=True, check=True).stdout
    labels = {}
    for test in json.loads(listed)["tests"]:
        for item in test.get("properties", []):
            if item["name"] == "LABELS":
                labels[test["name"]] = item["value"][0]
    return labels


def run_ctest(build, selection, report):
    """Shows one line per test, at its end, and the output of what fails."""
    command = ["ctest", "--test-dir", build, "--output-on-failure", "--no-tests=error",
               "--output-junit", report] + selection
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace") as ctest:
        for line in ctest.stdout:
            if not re.match(r"\s+Start\s+\d+:", line):
                print(re.sub(r" \.{4,}", " ...", line), end="", flush=True)
    return ctest.returncode


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    build = os.path.abspath(sys.argv[1])
    selection = sys.argv[2:]
    report = os.path.join(build, "test_report.xml")
    if os.path.exists(report):
        os.remove(report)
    answer = run_ctest(build, selection, report)
    if not os.path.exists(report):
        sys.exit(answer or 1)

    labels = labels_of(build, selection)
    table = defaultdict(lambda: {"passed": 0, "failed": 0, "skipped": 0, "seconds": 0.0})
    skipped, failed = [], []
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        name = case.get("name")
        row = table[labels.get(name, "none")]
        row["seconds"] += float(case.get("time") or 0)
        if case.get("status") == "run":
            row["passed"] += 1
        elif case.find("skipped") is not None or case.get("status") == "disabled":
            row["skipped"] += 1
            reason = case.find("skipped")
            message = reason.get("message") if reason is not None else "disabled"
            skipped.append(f"{name} ({message})")
        else:
            row["failed"] += 1
            failed.append(name)

    print(f"\n{'label':<14}{'passed':>8}{'failed':>8}{'skipped':>8}{'seconds':>10}")
    for label, row in sorted(table.items()):
        print(f"{label:<14}{row['passed']:>8}{row['failed']:>8}{row['skipped']:>8}"
              f"{row['seconds']:>10.1f}")
    for name in failed:
        print(f"failed: {name}")
    for name in skipped:
        print(f"skipped: {name}")
    if not skipped:
        print("skipped: nothing")
    sys.exit(answer)


if __name__ == "__main__":
    main()
