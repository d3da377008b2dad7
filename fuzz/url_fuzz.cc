// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "base/secrets.h"
#include "base/url.h"

namespace {

using namespace once;

// A word of the password that stands nowhere else; what is around it is the fuzzer's.
constexpr std::string_view mark = "ZqXwVj";

bool shows(std::string_view text) { return text.find(mark) != std::string_view::npos; }

// Where the fuzzer put an @ behind the word, it is a part of a password, whatever else is there.
void check_secret(const std::string& address) {
  ONCE_ASSERT(!shows(shown_url(address)));
  if (const auto url = parse_url(address); !url) ONCE_ASSERT(!shows(url.error().text));
  Secrets secrets;
  secrets.learn(address);
  ONCE_ASSERT(!shows(secrets.redacted("cannot open \"" + address + "\": no answer")));
}

}  // namespace

// The first line is any text: it is a URL that means the same when it is read again, or an error.
// Then it is made the beginning and the end of addresses with a password, which is never shown.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t line = input.find('\n');
  const std::string_view text = input.substr(0, line);
  const std::string_view more =
      line == std::string_view::npos ? std::string_view() : input.substr(line + 1);
  if (shows(percent_decoded(input))) return 0;

  const auto url = parse_url(text);
  if (url) {
    ONCE_ASSERT(!url->scheme.empty());
    for (const auto& [name, value] : url->parameters) ONCE_ASSERT(url->parameter(name) != nullptr);
    for (const Endpoint& endpoint : endpoints_of(*url, 7))
      ONCE_ASSERT(!endpoint.host.empty() && endpoint.port != 0);
  } else {
    ONCE_ASSERT(url.error().tag == "url" && !url.error().text.empty());
  }
  static_cast<void>(shown_url(text));
  static_cast<void>(without_credentials(input));

  const std::string before(text.substr(0, text.find('@')));
  const std::string after(more.substr(0, more.find('@')));
  check_secret("kafka://me:" + before + std::string(mark) + "@host/" + after);
  check_secret("kafka://me:" + std::string(mark) + before + "@host/" + after);
  check_secret("redis://:" + before + std::string(mark) + after + "@host");
  const std::string value(text.substr(0, text.find_first_of("&#")));
  check_secret("kafka://host/t?sasl.password=" + value + std::string(mark));
  check_secret("host=db password=" + std::string(mark) + before);
  return 0;
}
