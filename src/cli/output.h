// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "cli/table.h"

namespace once::cli {

using Json = nlohmann::ordered_json;

enum class Format : std::uint8_t {
  automatic,  // nothing was asked for: each command's own default
  table,
  json,
  jsonl,  // one JSON value per line; the same as json where there is one value
};

// One line of JSON. Bytes that are not UTF-8 are replaced, since JSON cannot hold them.
std::string line_of(const Json& json);

// Where a command writes: data to stdout, talk to stderr. Belongs to `main`; used by one thread.
class Output {
 public:
  Output();  // looks at the terminal and the environment (NO_COLOR, TERM)

  Format format = Format::automatic;
  bool quiet = false;  // no talk

  bool json() const { return format == Format::json || format == Format::jsonl; }
  bool color() const { return color_; }            // on stdout
  bool talk_color() const { return talk_color_; }  // on stderr
  bool talk_terminal() const { return talk_terminal_; }

  // Data. What cannot be written is told by `flush`.
  void write(std::string_view text);
  void write_table(const Table& table) { write(table.text(color_)); }
  void write_json(const Json& json) { write(line_of(json)); }
  [[nodiscard]] Status flush();

  // A sentence for people.
  void talk(std::string_view sentence);

  // `once: error[tag]: text`, and after it a JSON object if JSON was asked for.
  void complain(const Error& error);

 private:
  bool color_ = false;
  bool talk_color_ = false;
  bool talk_terminal_ = false;
};

// One line on a terminal that is drawn over and over; nothing where there is no terminal.
class Progress {
 public:
  explicit Progress(Output& output) : output_(output) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { clear(); }

  // Draws the line; a call soon after the last one does nothing.
  void show(std::string_view line, std::int64_t ticks_ns);
  void clear();

 private:
  Output& output_;
  std::int64_t drawn_ns_ = 0;
  bool drawn_ = false;
};

}  // namespace once::cli
