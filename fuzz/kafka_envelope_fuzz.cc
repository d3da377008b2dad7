// SPDX-License-Identifier: Apache-2.0
#include "wire/kafka/envelope.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "model/message_view.h"

namespace {

using namespace once;

// Lines of the input, one after another.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}
  bool any() const { return !rest_.empty(); }
  std::string take() {
    const std::string line(rest_.substr(0, rest_.find('\n')));
    rest_.remove_prefix(std::min(rest_.size(), line.size() + 1));
    return line;
  }

 private:
  std::string_view rest_;
};

bool has_zero(std::string_view text) { return text.find('\0') != std::string_view::npos; }

}  // namespace

// A stamp is read as it is written and as nothing else. The headers of a message are those that
// were put around it, with its id and its stamp; headers of these names that come from others do no
// harm.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto stamp = kafka::decode_stamp(input.substr(0, input.find('\n')));
  if (stamp) ONCE_ASSERT(kafka::decode_stamp(kafka::encode_stamp(*stamp)) == *stamp);

  Lines lines(input);
  lines.take();
  Message message;
  message.id = lines.take();
  while (lines.any()) {
    std::string name = lines.take();
    // Kafka's names are texts: librdkafka cuts them at a zero.
    if (has_zero(name)) return 0;
    message.headers.push_back({std::move(name), lines.take()});
  }
  rd_kafka_headers_t* const headers = kafka::headers_for(message, stamp.value_or(Stamp()));
  std::vector<HeaderView> read;
  Delivery delivery;
  kafka::take_headers(headers, delivery, read);
  if (!message.id.empty()) ONCE_ASSERT(delivery.id == message.id);
  std::vector<HeaderView> expected;
  for (const Header& header : message.headers) {
    const bool is_id = header.name == id_header && message.id.empty();
    const bool is_stamp = header.name == kafka::stamp_header &&
                          kafka::decode_stamp(view_of(header.value)).has_value();
    if (!is_id && !is_stamp) expected.push_back({header.name, view_of(header.value)});
  }
  // A first id from another is taken for the id of the message if it has none; others stay headers.
  if (message.id.empty()) {
    ONCE_ASSERT(read.size() >= expected.size());
  } else {
    ONCE_ASSERT(read.size() == expected.size());
    for (std::size_t i = 0; i < read.size(); ++i)
      ONCE_ASSERT(read[i].name == expected[i].name && read[i].value == expected[i].value);
  }
  rd_kafka_headers_destroy(headers);
  return 0;
}
