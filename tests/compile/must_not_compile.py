#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program that must not compile, and must compile when the one wrong thing is put right.

    must_not_compile.py COMPILER INCLUDE_DIRECTORY FILE

The first line of FILE that begins with `// expect: ` says what the compiler has to complain about,
with | between the words of different compilers; with -DRIGHT the wrong thing is right.
"""
import subprocess
import sys


def compile_it(compiler, include, path, *options):
    command = [compiler, "-std=gnu++20", "-fsyntax-only", "-I", include, *options, path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode == 0, done.stderr


def main():
    compiler, include, path = sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        expected = next(line[len("// expect: "):].strip() for line in file
                        if line.startswith("// expect: "))
    good, text = compile_it(compiler, include, path, "-DRIGHT")
    if not good:
        sys.exit(f"{path}: it does not even compile when it is right:\n{text}")
    good, text = compile_it(compiler, include, path)
    if good:
        sys.exit(f"{path}: it compiles")
    if not any(part in text for part in expected.split("|")):
        sys.exit(f"{path}: the compiler does not say \"{expected}\":\n{text}")
    print(f"{path}: refused with \"{expected}\"")


main()
