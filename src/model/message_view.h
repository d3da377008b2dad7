// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/message.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace once {

// Between messages, which own their bytes, and deliveries, which are views. A part that is absent
// stays absent, one that is empty stays empty.

// No part: a view without data.
inline std::string_view view_of(const std::optional<std::string>& part) {
  return part ? std::string_view(*part) : std::string_view();
}

inline std::optional<std::string> copy_of(std::string_view part) {
  if (part.data() == nullptr) return std::nullopt;
  return std::string(part);
}

// Everything that a message says; where it was delivered is not part of it.
Message message_of(const Delivery& delivery);

// A message as a source would deliver it. Refers to the message.
class DeliveryView {
 public:
  explicit DeliveryView(const Message& message);
  DeliveryView(const DeliveryView&) = delete;
  DeliveryView& operator=(const DeliveryView&) = delete;

  const Delivery& delivery() const { return delivery_; }

 private:
  std::vector<HeaderView> headers_;
  Delivery delivery_;
};

std::vector<HeaderView> header_views(const Message& message);

}  // namespace once
