// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/observe.h>
#include <once/result.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/secrets.h"
#include "cli/table.h"
#include "operate/json.h"

namespace once::cli {

using operate::Json;

enum class Format : std::uint8_t {
  automatic,  // nothing was asked for: each command's own default
  table,
  json,
  jsonl,  // one JSON value per line; the same as json where there is one value
};

enum class LogFormat : std::uint8_t { text, json };

// A line of the log of a command that runs until it is stopped.
struct LogLine {
  std::int64_t at_ms = 0;
  Severity severity = Severity::info;
  std::string text;  // for people
  Json fields;       // for programs; `time` and `level` are added
};

// One line of JSON. Bytes that are not UTF-8 are replaced, since JSON cannot hold them; characters
// that steer a terminal are escaped.
std::string line_of(const Json& json);

// JSON without secrets. What belongs to a message keeps every byte: its id, key, headers and body.
Json redacted(Json json, const Secrets& secrets);

// Where a command writes, and the only place where text leaves: data to stdout, talk to stderr.
// What people read loses known secrets and what could steer their terminal here, JSON loses known
// secrets; bodies that go to a program keep every byte. Belongs to `main`; used by one thread.
class Output {
 public:
  Output();  // looks at the terminal and the environment (NO_COLOR, TERM)

  Format format = Format::automatic;
  bool quiet = false;                      // no talk, and only errors in the log
  LogFormat log_format = LogFormat::text;  // json: every line of stderr is an object
  Severity log_level = Severity::info;     // less is not logged

  bool json() const { return format == Format::json || format == Format::jsonl; }
  bool color() const { return color_; }            // on stdout
  bool talk_color() const { return talk_color_; }  // on stderr
  bool talk_terminal() const { return talk_terminal_; }

  // What is never shown; learn addresses before anything can fail because of them.
  Secrets secrets;

  // Text as people may see it: without secrets, on one line of a terminal.
  std::string shown(std::string_view text) const;

  // Data. What cannot be written is told by `flush`.
  void write_line(std::string_view text);
  void write_table(const Table& table);
  void write_json(Json json);
  // Several lines of our own words.
  void write_lines(std::string_view text) { write(text); }
  // Bytes of a message as they are written: on a terminal as it can show them.
  std::string body_text(std::string_view bytes) const;
  // A body and a newline: byte for byte, but on a terminal as it can be shown there.
  void write_body(std::string_view body);
  [[nodiscard]] Status flush();

  // A line with time and level, or a JSON object.
  void log(const LogLine& line);
  // A line of which nothing but a kind and the text is known, now.
  void log(Severity severity, std::string_view kind, std::string_view text);

  // A sentence for people.
  void talk(std::string_view sentence);
  // Several lines of our own words.
  void talk_lines(std::string_view text);

  // `once: error[tag]: text`, and after it a JSON object if JSON was asked for.
  void complain(const Error& error);

 private:
  void write(std::string_view text);

  bool data_terminal_ = false;
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
