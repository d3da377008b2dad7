// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "base/url.h"
#include "log/address.h"
#include "store/mysql/address.h"
#include "store/redis/address.h"
#include "wire/kafka/address.h"

namespace {

using namespace once;

constexpr std::string_view mark = "ZqXwVj";

bool shows(std::string_view text) { return text.find(mark) != std::string_view::npos; }

// An address of an adapter or an error of the kind that ends with a word about URLs; neither shows
// the password.
template <class Parsed>
void check(const Parsed& parsed) {
  if (parsed)
    ONCE_ASSERT(!shows(parsed->where()));
  else
    ONCE_ASSERT(parsed.error().tag == "url" && !shows(parsed.error().text));
}

}  // namespace

// The first line is what follows the credentials of a URL, the rest a file with properties.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t line = input.find('\n');
  const std::string_view text = input.substr(0, line);
  // The fuzzer has no files to give to properties=FILE.
  if (shows(percent_decoded(input)) ||
      percent_decoded(text).find("properties") != std::string::npos)
    return 0;
  const std::string rest = std::string("//me:") + std::string(mark) + "@" + std::string(text);
  check(MysqlAddress::parse("mysql:" + rest));
  check(RedisAddress::parse("redis:" + rest));
  for (const auto role : {kafka::Role::source, kafka::Role::sink, kafka::Role::cluster})
    check(kafka::Address::parse("kafka:" + rest, role));
  if (const auto url = parse_url("file:" + std::string(text)))
    if (const auto address = log_address_of(*url))
      ONCE_ASSERT(!address->directory.empty() && !address->topic.empty());

  if (line == std::string_view::npos) return 0;
  kafka::Address address;
  const Status added = address.add_properties(input.substr(line + 1), "f");
  for (const auto& [name, value] : address.properties)
    ONCE_ASSERT(name != "acks" && name != "enable.idempotence" && name != "isolation.level" &&
                name.find('\n') == std::string::npos && value.find('\n') == std::string::npos);
  if (!added) ONCE_ASSERT(added.error().tag == "url" && !added.error().text.empty());
  return 0;
}
