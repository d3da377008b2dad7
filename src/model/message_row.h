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

// Names and values of headers as one tuple: it can be read by people and gives every
// byte back.
std::string encode_headers(std::span<const HeaderView> headers);
std::string encode_headers(std::span<const Header> headers);
[[nodiscard]] Result<std::vector<Header>> decode_headers(std::string_view encoded);

// Version and digest of a fingerprint as the ledger keeps them.
using FingerprintBytes = std::array<char, 17>;
FingerprintBytes bytes_of(const Fingerprint& fingerprint);
Fingerprint fingerprint_from(std::string_view bytes);

}  // namespace once
