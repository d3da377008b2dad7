// SPDX-License-Identifier: Apache-2.0
#include "runtime/dead_letter.h"

#include <fmt/format.h>

#include "model/message_view.h"
#include "model/random.h"

namespace once {
namespace {

// Where a session counts its deliveries anew, the offset names another message in the next one.
std::string made_id(const Delivery& delivery, std::string_view source) {
  const std::string place =
      delivery.session == 0 ? fmt::format("{}", delivery.offset) : random_identity();
  return fmt::format("{}/{}/{}", source, delivery.partition, place);
}

std::string header_named(std::string_view name) {
  return fmt::format("{}{}", parked_header_prefix, name);
}

}  // namespace

Message dead_letter_of(const Delivery& delivery, const ParkedFacts& facts) {
  Message copy = message_of(delivery);
  if (copy.id.empty()) copy.id = made_id(delivery, facts.source);
  std::erase_if(copy.headers,
                [](const Header& header) { return header.name.starts_with(parked_header_prefix); });
  const auto add = [&](std::string_view name, std::string value) {
    copy.headers.push_back({header_named(name), std::move(value)});
  };
  add("reason", std::string(facts.reason));
  add("tag", std::string(facts.tag));
  add("scope", std::string(facts.scope));
  add("source", std::string(facts.source));
  add("partition", std::string(delivery.partition));
  add("offset", fmt::format("{}", delivery.offset));
  add("attempts", fmt::format("{}", delivery.attempt));
  return copy;
}

bool is_dead_letter_of(const Delivery& delivery, std::string_view scope) {
  const std::string_view* from = delivery.header(header_named("scope"));
  return from != nullptr && *from == scope;
}

}  // namespace once
