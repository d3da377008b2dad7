// SPDX-License-Identifier: Apache-2.0
#include "wire/pulsar/command.h"

#include <gtest/gtest.h>

#include "base/crc32c.h"
#include "wire/pulsar/protobuf.h"

namespace once::pulsar {
namespace {

// As a broker would send it.
std::string framed(Type type, const ProtoWriter& inner, const std::string& rest = {}) {
  const auto number = static_cast<std::uint32_t>(type);
  ProtoWriter base;
  base.number(1, number).message(number, inner);
  std::string frame(3, '\0');
  frame += static_cast<char>(base.text().size());
  return frame + base.text() + rest;
}

std::string with_checksum(const std::string& metadata, const std::string& payload) {
  std::string sized(3, '\0');
  sized += static_cast<char>(metadata.size());
  const std::uint32_t crc = crc32c(sized + metadata + payload);
  std::string text = "\x0e\x01";
  for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(crc >> shift & 0xff);
  return text + sized + metadata + payload;
}

ProtoWriter place(std::uint64_t ledger, std::uint64_t entry) {
  return ProtoWriter().number(1, ledger).number(2, entry);
}

Command read(const std::string& frame) {
  const auto command = read_command(frame);
  EXPECT_TRUE(command) << command.error().text;
  EXPECT_TRUE(command->has_value());
  return **command;
}

TEST(PulsarCommand, a_message_comes_with_its_place_and_its_bytes) {
  const std::string frame = framed(
      Type::message, ProtoWriter().number(1, 7).message(2, place(17, 4)).number(3, 2).number(4, 5),
      with_checksum("meta", "body"));
  const Command command = read(frame);
  EXPECT_EQ(command.type, Type::message);
  EXPECT_EQ(command.consumer, 7u);
  EXPECT_EQ(command.place, (Place{17, 4, 0}));
  EXPECT_EQ(command.redeliveries, 2u);
  EXPECT_EQ(command.left, std::vector<std::uint64_t>{5});
  EXPECT_EQ(command.metadata, "meta");
  EXPECT_EQ(command.payload, "body");
}

TEST(PulsarCommand, a_message_that_was_damaged_is_an_error) {
  const ProtoWriter command = ProtoWriter().number(1, 7).message(2, place(17, 4));
  for (std::size_t i = 0; i < 18; ++i) {
    std::string rest = with_checksum("meta", "body");
    ASSERT_EQ(rest.size(), 18u);
    rest[i] = static_cast<char>(rest[i] ^ 0x40);
    // Without its mark a checksum is taken for the size of the metadata.
    const auto read = read_command(framed(Type::message, command, rest));
    EXPECT_FALSE(read) << i;
  }
}

TEST(PulsarCommand, the_receipt_of_a_duplicate_has_the_place_minus_one) {
  const std::uint64_t none = ~std::uint64_t{0};
  const Command receipt = read(framed(
      Type::send_receipt, ProtoWriter().number(1, 3).number(2, 42).message(3, place(none, none))));
  EXPECT_EQ(receipt.sequence, 42u);
  EXPECT_EQ(receipt.place, (Place{-1, -1, 0}));
}

TEST(PulsarCommand, what_a_producer_has_sent_may_be_nothing) {
  EXPECT_EQ(
      read(framed(Type::producer_success, ProtoWriter().number(1, 9).bytes(2, "p"))).last_sequence,
      -1);
  EXPECT_EQ(
      read(framed(Type::producer_success, ProtoWriter().number(1, 9).number(3, ~std::uint64_t{0})))
          .last_sequence,
      -1);
  EXPECT_EQ(
      read(framed(Type::producer_success, ProtoWriter().number(1, 9).number(3, 41))).last_sequence,
      41);
}

TEST(PulsarCommand, commands_that_are_not_known_are_left_out) {
  const auto unknown = read_command(framed(static_cast<Type>(66), ProtoWriter().number(1, 1)));
  ASSERT_TRUE(unknown);
  EXPECT_FALSE(unknown->has_value());
}

TEST(PulsarCommand, every_part_of_a_frame_is_an_error_or_a_command_and_nothing_else) {
  const std::string frame =
      framed(Type::message, ProtoWriter().number(1, 7).message(2, place(17, 4)),
             with_checksum("meta", "body"));
  for (std::size_t size = 0; size < frame.size(); ++size)
    EXPECT_FALSE(read_command(std::string_view(frame).substr(0, size))) << size;
}

TEST(PulsarFrames, are_cut_wherever_the_network_cuts_them) {
  const std::string one = ping_frame();
  const std::string two = lookup_frame(7, "persistent://public/default/orders", true, "outside");
  const std::string bytes = one + two + one;
  for (std::size_t piece = 1; piece < bytes.size(); ++piece) {
    FrameCutter cutter(1000);
    std::vector<std::string> frames;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      cutter.feed(std::string_view(bytes).substr(at, piece));
      while (auto frame = cutter.next().value()) frames.push_back(*frame);
    }
    ASSERT_EQ(frames.size(), 3u) << piece;
    EXPECT_EQ(frames[1], two.substr(4));
  }
}

TEST(PulsarFrames, one_that_is_too_large_is_refused_by_its_length) {
  FrameCutter cutter(1000);
  cutter.feed(std::string("\x7f\xff\xff\xff", 4));
  EXPECT_FALSE(cutter.next());
  FrameCutter http(1000);
  http.feed("HTTP/1.1 400 Bad Request\r\n");
  const auto frame = http.next();
  ASSERT_FALSE(frame);
  EXPECT_NE(frame.error().text.find("binary protocol"), std::string::npos);
}

// A broker compares the command while it lives, and the metadata after a crash.
TEST(PulsarCommand, a_send_has_the_same_sequence_wherever_it_is_written) {
  const std::string frame = send_frame({3, 42, "meta", "body"});
  ProtoReader base(std::string_view(frame).substr(8, static_cast<unsigned char>(frame[7])));
  std::string_view inner;
  while (const auto field = base.next())
    if (field->is_bytes) inner = field->bytes;
  std::uint64_t sequence = 0;
  std::uint64_t highest = 0;
  ProtoReader send(inner);
  while (const auto field = send.next()) {
    if (field->number == 2) sequence = field->value;
    if (field->number == 6) highest = field->value;
  }
  EXPECT_EQ(sequence, 42u);
  EXPECT_EQ(highest, 42u);
}

}  // namespace
}  // namespace once::pulsar
