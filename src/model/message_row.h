// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/message.h>
#include <once/result.h>
#include <once/transaction.h>

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace once {

// Names and values of headers as one tuple: it can be read by people and gives every byte back.
// Stores keep key and body in columns of their own, and here what those cannot say: an additional
// first part, which makes the number of parts odd, lists what is not as it looks. `k`: the key is
// empty and not absent; `b`: the body is absent and not empty; `,N`: the value of header N is
// absent.
std::string encode_headers(const Delivery& delivery);
std::string encode_headers(const Message& message);
// Sets the headers, and which parts of the message are absent. Its key and body are as their
// columns say.
[[nodiscard]] Status decode_headers(std::string_view encoded, Message& message);

// Version and digest of a fingerprint as the ledger keeps them.
using FingerprintBytes = std::array<char, 17>;
FingerprintBytes bytes_of(const Fingerprint& fingerprint);
Fingerprint fingerprint_from(std::string_view bytes);

}  // namespace once
