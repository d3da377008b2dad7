// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "model/message_view.h"
#include "operate/message_json.h"

// Whatever a line says, it is a message or an error of the input; a message that is written as JSON
// and read again is the same, and nothing in that JSON can steer a terminal.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace once;
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  const auto message = operate::message_of(line);
  if (!message) {
    ONCE_ASSERT(message.error().tag == "input" && !message.error().text.empty());
    return 0;
  }
  const DeliveryView view(*message);
  Delivery delivery = view.delivery();
  delivery.partition = "topic/0";

  const std::string text = cli::line_of(operate::json_of(delivery));
  ONCE_ASSERT(text.ends_with('\n'));
  const std::string_view shown = std::string_view(text).substr(0, text.size() - 1);
  ONCE_ASSERT(cli::printable(shown) == shown);
  const auto again = operate::message_of(shown);
  ONCE_ASSERT(again.has_value() && *again == *message);
  return 0;
}
