#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the README's program and its file: killed again and again, every order is paid once.
set -euo pipefail
example=$1
once=$2
readme=$3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

make_shop() {
  sqlite3 shop.db "CREATE TABLE account (name TEXT PRIMARY KEY, balance INTEGER NOT NULL);
    CREATE TABLE payment (order_id TEXT NOT NULL);
    INSERT INTO account VALUES ('ann', 1000000), ('bob', 1000000);"
}
make_shop
"$once" topic create file:data/orders >/dev/null
"$once" topic create file:data/paid >/dev/null
for number in $(seq 2000); do
  who=$([ $((number % 2)) = 0 ] && echo ann || echo bob)
  echo "{\"key\":\"$who\",\"body\":\"{\\\"order\\\":\\\"o$number\\\"}\"}"
done >orders.jsonl
# Everything is sent twice, by two producers: two messages, one business id.
"$once" produce file:data/orders --json <orders.jsonl >/dev/null
"$once" produce file:data/orders --json <orders.jsonl >/dev/null
echo '{"key":"nobody","body":"{\"order\":\"lost\"}"}' |
  "$once" produce file:data/orders --json >/dev/null

# Killed after some moments, then run to the end twice.
with_kills() {
  for delay in 0.002 0.005 0.01 0.02 0.04; do
    "$@" >/dev/null 2>&1 &
    pid=$!
    sleep "$delay"
    kill -9 "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
  "$@"
  "$@"
}

check() {
  answer=$(sqlite3 shop.db "$1")
  [ "$answer" = "$2" ] || { echo "expected $2 but got $answer from: $1" >&2; exit 1; }
}
check_paid_once() {
  check "SELECT count(*) FROM payment" 2000
  check "SELECT count(DISTINCT order_id) FROM payment" 2000
  check "SELECT group_concat(balance, ' ') FROM account" "900000 900000"
}

check_sent_once() {
  "$once" consume file:data/paid -o jsonl >sent.jsonl
  [ "$(wc -l <sent.jsonl)" = 2000 ] &&
    [ "$(grep -o '"id":"o[0-9]*"' sent.jsonl | sort -u | wc -l)" = 2000 ] ||
    { echo "expected 2000 messages in file:data/paid but got $(wc -l <sent.jsonl)" >&2; exit 1; }
  check "SELECT count(*) FROM once_outbox" 0
}

with_kills "$example"
check_paid_once
check_sent_once

# The file, on a database of its own, to the end of the topic.
rm -f shop.db*
make_shop
"$once" topic delete file:data/paid >/dev/null
"$once" topic create file:data/paid >/dev/null
sed -n '/^```toml$/,/^```$/p' "$readme" | sed '1d;$d; s#file:data/orders#&?end=stop#' >shop.toml
with_kills "$once" run shop.toml
check_paid_once
check_sent_once
echo "2000 orders, each sent twice: each paid once, by the program and by the file"
