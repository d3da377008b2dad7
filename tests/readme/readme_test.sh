#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the README's program: killed again and again, every order is paid once.
set -euo pipefail
example=$1
once=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

sqlite3 shop.db "CREATE TABLE account (name TEXT PRIMARY KEY, balance INTEGER NOT NULL);
  CREATE TABLE payment (order_id TEXT NOT NULL);
  INSERT INTO account VALUES ('ann', 1000000), ('bob', 1000000);"
"$once" topic create file:data/orders >/dev/null
for number in $(seq 2000); do
  who=$([ $((number % 2)) = 0 ] && echo ann || echo bob)
  echo "{\"key\":\"$who\",\"body\":\"{\\\"order\\\":\\\"o$number\\\"}\"}"
done >orders.jsonl
# Everything is sent twice, by two producers: two messages, one business id.
"$once" produce file:data/orders --json <orders.jsonl >/dev/null
"$once" produce file:data/orders --json <orders.jsonl >/dev/null
echo '{"key":"nobody","body":"{\"order\":\"lost\"}"}' |
  "$once" produce file:data/orders --json >/dev/null

for delay in 0.002 0.005 0.01 0.02 0.04; do
  "$example" >/dev/null &
  pid=$!
  sleep "$delay"
  kill -9 "$pid" 2>/dev/null || true
  wait "$pid" 2>/dev/null || true
done
"$example"
"$example"

check() {
  answer=$(sqlite3 shop.db "$1")
  [ "$answer" = "$2" ] || { echo "expected $2 but got $answer from: $1" >&2; exit 1; }
}
check "SELECT count(*) FROM payment" 2000
check "SELECT count(DISTINCT order_id) FROM payment" 2000
check "SELECT group_concat(balance, ' ') FROM account" "900000 900000"
check "SELECT count(*) FROM once_outbox" 2000
echo "2000 orders, each sent twice: each paid once"
