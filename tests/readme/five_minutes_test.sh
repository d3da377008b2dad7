#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Pastes the block of README.md's "Five minutes" into a shell, as it stands there, in a directory
# where `make build` has nothing to do: points are given once, although the run was killed.
#
#   five_minutes_test.sh ONCE REPOSITORY
set -euo pipefail
once=$1
repository=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/build" "$dir/tmp"
ln -s "$once" "$dir/build/once"
echo 'build: ; @true' >"$dir/Makefile"
cd "$dir"

block=$(sed -n '/^## Five minutes$/,/^## /p' "$repository/README.md" |
  sed -n '/^```sh$/,/^```$/p' | sed '1d;$d')
[ -n "$block" ] || { echo "README.md has no sh block in \"Five minutes\"" >&2; exit 1; }
# What the block needs beside the compilers must be among the packages of `make build`.
for program in sqlite3; do
  grep -Eq "^build:.*\\b$program\\b" "$repository/tools/packages.txt" ||
    { echo "the block needs $program, which \`make build\` does not install" >&2; exit 1; }
done

# Like a person who pastes: one shell, line by line, whatever a line ends with.
unset ONCE_STORE ONCE_POINT AT_END DIR
TMPDIR="$dir/tmp" PATH=/usr/local/bin:/usr/bin:/bin \
  bash --norc >out.txt 2>err.txt <<<"$block" || { cat out.txt err.txt >&2; exit 1; }

expect() {
  grep -q -- "$1" out.txt || { echo "expected $1 in:" >&2; cat out.txt err.txt >&2; exit 1; }
}
expect 'effectively once per id (json:/order,/state)'
expect '^order-1|user-1|30$'
expect '^order-2|user-2|50$'
[ "$(grep -c '^order-' out.txt)" = 2 ]
expect 'ledger  applied (calls/0 offset 1)'
grep -q 'Killed' err.txt || { echo "nothing was killed" >&2; cat err.txt >&2; exit 1; }
echo "the block of README.md runs as it stands there"
