// SPDX-License-Identifier: Apache-2.0
#include <once/once.h>

#include <cstdio>

int main() {
  auto store = once::open_memory_store().value();
  auto transaction = store->begin("shop/orders").value();
  const once::Entry entries[] = {{"order 100", {}, 0, "0", 0}, {"order 100", {}, 0, "0", 1}};
  const auto verdicts = transaction->admit(entries).value();
  const bool ok = transaction->commit() && verdicts[0].kind == once::Verdict::Kind::fresh &&
                  verdicts[1].kind == once::Verdict::Kind::duplicate;
  std::puts(ok ? "fresh duplicate" : "wrong");
  return ok ? 0 : 1;
}
