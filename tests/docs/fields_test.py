#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The manual names each number of a run and each kind of event that there is, and no other.

    fields_test.py ONCE REPOSITORY
"""
import json
import os
import re
import subprocess
import sys
import tempfile


def numbers_of_a_run(once):
    """The keys of what `once run -o json` writes at the end, in their order."""
    with tempfile.TemporaryDirectory(prefix="once-docs-") as directory:
        environment = dict(os.environ, AT_END="stop", DIR="points/data")
        for words in (["init", "points"], ["run", "points/points.toml", "--quiet", "-o", "json"]):
            done = subprocess.run([once, *words], cwd=directory, env=environment, check=True,
                                  stdout=subprocess.PIPE, text=True)
    return list(json.loads(done.stdout))


def kinds_of_events(repository):
    with open(os.path.join(repository, "src/runtime/observe.cc"), encoding="utf-8") as code:
        kinds = re.findall(r'case EventKind::\w+: return "(\w+)"', code.read())
    with open(os.path.join(repository, "src/cli/running.cc"), encoding="utf-8") as code:
        return kinds + re.findall(r'"kind", "(\w+)"', code.read())


def page(repository, name):
    with open(os.path.join(repository, "docs", name), encoding="utf-8") as text:
        return text.read()


def named(text, begin, end):
    """The words in backticks between two marks."""
    found = re.search(re.escape(begin) + "(.*?)" + re.escape(end), text, re.DOTALL)
    return re.findall(r"`(\w+)`", found.group(1)) if found else []


def differences(what, told, there):
    return ([f"{what}: {name} is not documented" for name in there if name not in told] +
            [f"{what}: {name} is documented, and is not there" for name in told
             if name not in there])


def main():
    once, repository = os.path.abspath(sys.argv[1]), sys.argv[2]
    told = named(page(repository, "run.md"), "or with `-o json` one object:", "Parked messages do")
    there = numbers_of_a_run(once)
    found = differences("docs/run.md", told, there)
    if not found and told != there:
        found.append(f"docs/run.md: another order than {', '.join(there)}")
    rows = re.findall(r"^\| (`\w+`.*?) \| ", page(repository, "operating.md"), re.MULTILINE)
    told = re.findall(r"`(\w+)`", " ".join(rows))
    found += [f"docs/operating.md: the event {kind} is not documented"
              for kind in dict.fromkeys(kinds_of_events(repository)) if kind not in told]
    for one in found:
        print(one)
    print(f"{len(there)} numbers, {len(found)} failures")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
