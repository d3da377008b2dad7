// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <fmt/format.h>
#include <once/clock.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/file.h"
#include "cli/exit_code.h"
#include "cli/terminal.h"
#include "operate/record_json.h"

namespace once::cli {
namespace {

constexpr std::int64_t redraw_ns = 80'000'000;

bool wants_color() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  if (no_color != nullptr && *no_color != '\0') return false;
  return terminal != nullptr && std::string_view(terminal) != "dumb";
}

std::size_t terminal_columns() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

// The member of an object that is a part of a message, as it is or in base64.
bool belongs_to_message(std::string_view name) {
  constexpr std::array<std::string_view, 7> parts{"id",      "id_base64", "key", "key_base64",
                                                  "headers", "body",      "ids"};
  return std::find(parts.begin(), parts.end(), name) != parts.end();
}

}  // namespace

std::string line_of(const Json& json) {
  return printable_json(json.dump(-1, ' ', false, Json::error_handler_t::replace)) + "\n";
}

Json redacted(Json json, const Secrets& secrets) {
  if (json.is_string()) return secrets.redacted(json.get_ref<const std::string&>());
  if (!json.is_structured()) return json;
  for (auto item = json.begin(); item != json.end(); ++item)
    if (!json.is_object() || !belongs_to_message(item.key()))
      *item = redacted(std::move(*item), secrets);
  return json;
}

Output::Output()
    : data_terminal_(::isatty(STDOUT_FILENO) == 1),
      color_(::isatty(STDOUT_FILENO) == 1 && wants_color()),
      talk_color_(::isatty(STDERR_FILENO) == 1 && wants_color()),
      talk_terminal_(::isatty(STDERR_FILENO) == 1) {}

std::string Output::shown(std::string_view text) const { return printable(secrets.redacted(text)); }

void Output::write(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

void Output::write_line(std::string_view text) { write(shown(text) + "\n"); }

void Output::write_table(const Table& table) {
  write(table.text(color_, [this](std::string_view cell) { return shown(cell); }));
}

void Output::write_json(Json json) { write(line_of(redacted(std::move(json), secrets))); }

std::string Output::body_text(std::string_view bytes) const {
  return data_terminal_ ? printable(bytes) : std::string(bytes);
}

void Output::write_body(std::string_view body) {
  write(body_text(body));
  write("\n");
}

Status Output::flush() {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return {};
  return fail(error_from_errno(errno != 0 ? errno : EIO, "write", "the standard output"));
}

void Output::log(const LogLine& line) {
  if (line.severity < (quiet ? Severity::error : log_level)) return;
  const std::string time = operate::time_text(line.at_ms);
  std::string text;
  if (log_format == LogFormat::json) {
    Json object{{"time", time}, {"level", name_of(line.severity)}};
    object.update(redacted(line.fields, secrets));
    text = line_of(object);
  } else {
    const bool is_error = line.severity == Severity::error && line.fields.contains("tag");
    const std::string tag =
        is_error ? fmt::format("[{}]", line.fields["tag"].get_ref<const std::string&>()) : "";
    text = fmt::format("{} {}{}: {}\n", time, name_of(line.severity), tag, shown(line.text));
  }
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void Output::log(Severity severity, std::string_view kind, std::string_view text) {
  log({system_clock().now_ms(), severity, std::string(text), {{"kind", kind}, {"text", text}}});
}

void Output::talk(std::string_view sentence) {
  if (quiet) return;
  if (log_format == LogFormat::json) return log(Severity::info, "note", sentence);
  const std::string line = shown(sentence) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void Output::talk_lines(std::string_view text) {
  while (true) {
    const std::string_view line = text.substr(0, text.find('\n'));
    talk(line);
    if (line.size() == text.size()) return;
    text.remove_prefix(line.size() + 1);
  }
}

void Output::complain(const Error& error) {
  if (log_format == LogFormat::json) {
    const Json object = {{"time", operate::time_text(system_clock().now_ms())},
                         {"level", name_of(Severity::error)},
                         {"kind", "error"},
                         {"text", error.text},
                         {"tag", error.tag},
                         {"remedy", name_of(error.remedy)},
                         {"exit_code", exit_code_of(error)}};
    const std::string line = line_of(redacted(object, secrets));
    std::fwrite(line.data(), 1, line.size(), stderr);
    return;
  }
  const std::string line = fmt::format("{}once: error[{}]:{} {}\n", talk_color_ ? "\033[31m" : "",
                                       error.tag, talk_color_ ? "\033[0m" : "", shown(error.text));
  std::fwrite(line.data(), 1, line.size(), stderr);
  if (!json()) return;
  const Json object = {{"error",
                        {{"tag", error.tag},
                         {"remedy", name_of(error.remedy)},
                         {"text", secrets.redacted(error.text)},
                         {"exit_code", exit_code_of(error)}}}};
  const std::string machine = line_of(object);
  std::fwrite(machine.data(), 1, machine.size(), stderr);
}

void Progress::show(std::string_view line, std::int64_t ticks_ns) {
  if (!output_.talk_terminal() || output_.quiet) return;
  if (drawn_ && ticks_ns - drawn_ns_ < redraw_ns) return;
  drawn_ns_ = ticks_ns;
  drawn_ = true;
  std::string shown = output_.shown(line);
  const std::size_t columns = terminal_columns() - 1;
  while (width_of(shown) > columns) shown.pop_back();
  std::fprintf(stderr, "\r\033[K%s", shown.c_str());
  std::fflush(stderr);
}

void Progress::clear() {
  if (!drawn_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace once::cli
