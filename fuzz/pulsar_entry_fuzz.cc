// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "model/message_view.h"
#include "wire/pulsar/envelope.h"

// The first byte says where the metadata end. What is read are messages, or an error that says
// where; what we write ourselves comes back as it was.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace once;
  if (size == 0) return 0;
  std::string frame(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = std::min<std::size_t>(data[0], size - 1);
  const std::string_view whole = frame;
  const std::string_view metadata = whole.substr(1, cut);
  const std::string_view payload = whole.substr(1 + cut);
  Message message;
  message.id = metadata;
  message.key = std::string(payload);
  message.body = std::string(metadata);
  message.headers = {{"bytes", std::string(payload)}};
  const auto entry = pulsar::Entry::read(std::move(frame), metadata, payload, 1u << 16, "here");
  if (entry) {
    ONCE_ASSERT((*entry)->size() >= 1);
    for (std::size_t i = 0; i < (*entry)->size(); ++i) (void)message_of((*entry)->delivery(i));
  } else {
    ONCE_ASSERT(entry.error().text.starts_with("here: "));
  }

  const std::string written = pulsar::encode_metadata(message, {1, 2, 3}, "p", 4, 5);
  std::string both = written + *message.body;
  const std::string_view again = both;
  const auto own = pulsar::Entry::read(std::move(both), again.substr(0, written.size()),
                                       again.substr(written.size()), 1u << 16, "here");
  ONCE_ASSERT(own.has_value());
  Message found = message_of((*own)->delivery(0));
  found.timestamp_ms = 0;
  ONCE_ASSERT(found == message);
  return 0;
}
