// SPDX-License-Identifier: Apache-2.0
#include <once/identity.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "model/ledger.h"

// The first line is a rule, the rest a body: whatever they are, the rule finds a usable id or says
// that there is none, and says the same when it is asked again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace once;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto line = input.find('\n');
  const auto rule = IdRule::parse(input.substr(0, line));
  if (!rule) return 0;
  ONCE_ASSERT(IdRule::parse(rule->text()).value() == *rule);

  const std::string_view body =
      line == std::string_view::npos ? std::string_view() : input.substr(line + 1);
  const std::vector<HeaderView> headers{{"ce-id", body},
                                        {"ce-source", body.substr(body.size() / 2)}};
  Delivery delivery;
  delivery.partition = "p0";
  delivery.body = body;
  delivery.key = body.substr(0, body.size() / 3);
  if (size % 2 == 0) delivery.headers = headers;
  const auto id = rule->id_of(delivery);
  ONCE_ASSERT(rule->id_of(delivery) == id);
  if (id) {
    ONCE_ASSERT(!id->empty() && id->size() <= id_bytes_max);
  } else {
    ONCE_ASSERT(id.error().remedy == Remedy::park);
    ONCE_ASSERT(id.error().text.find(rule->text()) != std::string::npos);
  }
  static_cast<void>(born_ms_of(BornRule::uuid7, delivery, body));
  static_cast<void>(born_ms_of(BornRule::snowflake, delivery, body));
  ONCE_ASSERT(fingerprint_of(delivery) == fingerprint_of(delivery));
  return 0;
}
