// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/transaction.h>

#include <optional>
#include <string>
#include <string_view>

namespace once {

// A transaction of a store that keeps values under keys. It sees its own writes.
class KeyValueTransaction : public Transaction {
 public:
  [[nodiscard]] virtual Result<std::optional<std::string>> get(std::string_view key) = 0;
  [[nodiscard]] virtual Status put(std::string_view key, std::string_view value) = 0;
  [[nodiscard]] virtual Status erase(std::string_view key) = 0;

  KeyValueTransaction* key_value() final { return this; }
};

}  // namespace once
