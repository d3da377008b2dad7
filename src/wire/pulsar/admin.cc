// SPDX-License-Identifier: Apache-2.0
#include "wire/pulsar/admin.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "net/stream.h"

namespace once::pulsar {
namespace {

constexpr std::int64_t web_answer_ms = 30'000;
constexpr std::size_t answer_bytes_max = 1u << 20;

struct WebAnswer {
  int status = 0;
  std::string text;
};

std::string path_escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                       c == '-' || c == '_' || c == '.' || c == '/';
    if (plain)
      escaped += c;
    else
      escaped += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return escaped;
}

std::string topic_path(const Address& address) {
  return fmt::format("/admin/v2/persistent/{}/{}", path_escaped(address.name_space),
                     path_escaped(address.topic));
}

Result<WebAnswer> ask_web(const Address& address, std::string_view method, const std::string& path,
                          const std::string& body) {
  if (!address.web)
    return fail(Remedy::stop, "config",
                fmt::format("{}: topics are made and removed by the admin API: add web=PORT, the "
                            "broker's webServicePort",
                            address.where()));
  // Pulsar's brokers know no certificate that is not that of the binary protocol, too.
  const auto tls = address.web_encrypts ? address.tls.value_or(net::TlsOptions{})
                                        : std::optional<net::TlsOptions>();
  const net::Deadline deadline = net::in_ms(web_answer_ms);
  auto stream = ONCE_TRY(net::Stream::connect(*address.web, tls, deadline));
  // Of HTTP 1.0, so that the answer ends with the connection.
  std::string request = fmt::format(
      "{} {} HTTP/1.0\r\nHost: {}\r\nAccept: */*\r\nContent-Type: application/json\r\n"
      "Content-Length: {}\r\n",
      method, path, shown_endpoint(*address.web), body.size());
  if (!address.token.empty()) request += fmt::format("Authorization: Bearer {}\r\n", address.token);
  ONCE_TRY(stream->write(request + "\r\n" + body, deadline));
  WebAnswer answer;
  std::array<char, 4096> bytes;
  while (answer.text.size() < answer_bytes_max) {
    const auto count = stream->read(bytes.data(), bytes.size(), deadline);
    if (!count || *count == 0) break;
    answer.text.append(bytes.data(), *count);
  }
  answer.status = http_status(answer.text);
  if (answer.status == 0)
    return fail(
        Remedy::retry, "away",
        fmt::format("{}: no answer of HTTP; is web= the broker's webServicePort?", stream->name()));
  return answer;
}

tl::unexpected<Error> refused(const Address& address, std::string_view what,
                              const WebAnswer& answer) {
  const bool denied = answer.status == 401 || answer.status == 403;
  const auto body = answer.text.find("\r\n\r\n");
  const std::string_view text =
      body == std::string::npos ? "" : std::string_view(answer.text).substr(body + 4, 300);
  return fail(answer.status >= 500 ? Remedy::retry : Remedy::stop,
              denied                 ? "denied"
              : answer.status == 404 ? "missing"
                                     : "pulsar",
              fmt::format("{}: cannot {}: HTTP {} {}{}", address.where(), what, answer.status, text,
                          denied ? "; check the token and its rights" : ""));
}

}  // namespace

int http_status(std::string_view answer) {
  if (!answer.starts_with("HTTP/1.") || answer.size() < 12) return 0;
  int status = 0;
  const char* begin = answer.data() + 9;
  return std::from_chars(begin, begin + 3, status).ec == std::errc() ? status : 0;
}

Result<bool> create_topic(const Address& address, std::uint32_t partitions) {
  const std::string path = topic_path(address) + (partitions > 0 ? "/partitions" : "");
  const WebAnswer answer =
      ONCE_TRY(ask_web(address, "PUT", path, partitions > 0 ? fmt::format("{}", partitions) : ""));
  if (answer.status == 409) return false;
  if (answer.status / 100 != 2) return refused(address, "create the topic", answer);
  return true;
}

Result<bool> delete_topic(const Address& address, bool is_partitioned) {
  const std::string path =
      topic_path(address) + (is_partitioned ? "/partitions" : "") + "?force=true";
  const WebAnswer answer = ONCE_TRY(ask_web(address, "DELETE", path, ""));
  if (answer.status == 404) return false;
  if (answer.status / 100 != 2) return refused(address, "delete the topic", answer);
  return true;
}

}  // namespace once::pulsar
