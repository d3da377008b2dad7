// SPDX-License-Identifier: Apache-2.0
#include "wire/kafka/producer_state.h"

#include <fmt/format.h>

#include <charconv>
#include <vector>

#include "wire/kafka/envelope.h"

namespace once::kafka {

namespace {

constexpr std::string_view version = "once1";

template <class Number>
bool read_whole(std::string_view text, Number& number, int base) {
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number, base);
  return read.ec == std::errc() && read.ptr == end;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t space = text.find(' '); space != text.npos; space = text.find(' ')) {
    words.push_back(text.substr(0, space));
    text.remove_prefix(space + 1);
  }
  words.push_back(text);
  return words;
}

}  // namespace

// once1 PRODUCER/EPOCH/LAST_SEQUENCE LAST_OFFSET [LAST_DIGEST]
std::string ProducerState::metadata() const {
  std::string text =
      fmt::format("{} {} {}", version, encode_stamp({producer, epoch, last_sequence}), last_offset);
  if (last_digest) text += fmt::format(" {:x}", *last_digest);
  return text;
}

std::optional<ProducerState> ProducerState::read(std::int64_t offset, std::string_view metadata) {
  const std::vector<std::string_view> words = words_of(metadata);
  if (offset < 0 || words.size() < 3 || words.size() > 4 || words[0] != version)
    return std::nullopt;
  const auto stamp = decode_stamp(words[1]);
  if (!stamp) return std::nullopt;
  ProducerState state;
  state.producer = stamp->producer;
  state.epoch = stamp->epoch;
  state.next_sequence = static_cast<std::uint64_t>(offset);
  state.last_sequence = stamp->sequence;
  if (!read_whole(words[2], state.last_offset, 10)) return std::nullopt;
  if (words.size() == 4 && !read_whole(words[3], state.last_digest.emplace(), 16))
    return std::nullopt;
  return state;
}

// Messages of others may stand between ours, so only the first one's place is known.
std::int64_t ProducerState::offset_of(std::uint64_t sequence) const {
  return sequence == last_sequence ? last_offset : -1;
}

std::string state_group(std::string_view producer_name) {
  return fmt::format("once-producer-{}", producer_name);
}

}  // namespace once::kafka
