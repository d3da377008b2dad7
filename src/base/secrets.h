// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace once {

// What must not be shown, and how to take it out of a text. It knows its secrets by heart instead
// of guessing at the shape of a text: whoever repeats an address, as it was written, decoded or in
// part, repeats something that is known here. Plain values; written before it is read by several
// threads.
class Secrets {
 public:
  // An address as it was given: a URL, one without its scheme, or libpq's `host=db password=x`. Its
  // password and its parameters with the name of a secret are secret, and so is the whole of it.
  void learn(std::string_view address);

  // An address that stands where none is expected, so that nobody knows its parameters: where the
  // whole of it is repeated, it is shown without their values.
  void learn_shape(std::string_view address);

  // A value that is shown as `instead`. Short ones would be found everywhere and are left alone.
  void learn_value(std::string_view value, std::string instead);

  // The text without them, and without the credentials of URLs that nobody has told it about.
  [[nodiscard]] std::string redacted(std::string_view text) const;

 private:
  void learn_parameters(std::string_view text, char separator, std::string_view shown);
  void add(std::string_view raw, std::string_view shown);

  // The longest first: one may be a part of another.
  struct Longer {
    bool operator()(const std::string& a, const std::string& b) const {
      return a.size() != b.size() ? a.size() > b.size() : a < b;
    }
  };
  std::map<std::string, std::string, Longer> instead_of_;
};

// Whether a parameter or property with this name holds a secret: `sasl.password`, `sslpassword`.
bool is_secret_name(std::string_view name);

// Whether a URL has a password, or a value of a parameter with the name of a secret.
struct Url;
bool holds_secret(const Url& url);

// Whether a variable with this name holds a secret: DB_PASSWORD, API_KEY, or what a file of secrets
// holds (`file:/run/secrets/db`).
bool is_secret_variable(std::string_view name);

// A text in which URLs with a password or another secret in them are as `shown_url` shows them, as
// far as a URL in a text can be told: up to the next blank or quote.
[[nodiscard]] std::string without_credentials(std::string_view text);

}  // namespace once
