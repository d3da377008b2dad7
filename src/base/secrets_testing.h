// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rapidcheck.h>

#include <cstddef>
#include <string>
#include <vector>

namespace once::testing {

// Words that stand nowhere else, joined by what breaks URLs.
struct Password {
  std::vector<std::string> words;
  std::string text;
};

inline Password make_password() {
  static const std::vector<std::string> joints{"/", "?", "@", ":", "#",  "[",   "]",   "%",
                                               "&", "=", " ", "'", "\\", "%2F", "%40", ","};
  static const std::vector<std::string> known{"Zq7k", "Xw9m", "Vj4p", "Qh8t"};
  Password password;
  const auto count = *rc::gen::inRange<std::size_t>(1, known.size() + 1);
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) password.text += *rc::gen::elementOf(joints);
    password.words.push_back(known[i]);
    password.text += known[i];
  }
  return password;
}

inline std::string make_address(const std::string& password) {
  const auto one_of = [](std::vector<std::string> of) { return *rc::gen::elementOf(of); };
  const std::string scheme =
      one_of({"kafka:", "postgresql:", "mysql:", "redis:", "amqp:", "", "POSTGRES:"});
  const std::string host = one_of({"host", "host:9092", "[::1]:1", "[::1", "a:1,b:2", "", "::1"});
  const std::string tail = one_of({"", "/", "/orders", "/orders?x=y", "?x", "/%zz", "/a?b=c&b=d"});
  switch (*rc::gen::inRange(0, 5)) {
    case 0: return scheme + "//me:" + password + "@" + host + tail;
    case 1: return scheme + "//:" + password + "@" + host + tail;
    case 2: return scheme + "//" + host + "/orders?sasl.password=" + password;
    case 3: return "host=" + host + " password=" + password;
    default: break;  // what comes behind it was forgotten
  }
  // Then an @ makes a whole URL of it, and nobody can know that what is behind is not a host.
  RC_PRE(password.find('@') == std::string::npos);
  return scheme + "//me:" + password;
}

}  // namespace once::testing
