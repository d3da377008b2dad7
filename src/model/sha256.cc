// SPDX-License-Identifier: Apache-2.0
#include "model/sha256.h"

#include <openssl/evp.h>

#include <algorithm>
#include <memory>

#include "base/assert.h"
#include "base/hex.h"

namespace once {
namespace {

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

// Looking the algorithm up costs more than hashing a short message, so it is done once.
const EVP_MD* algorithm() {
  static const EVP_MD* const found = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  ONCE_ASSERT(found != nullptr);
  return found;
}

EVP_MD_CTX* context() {
  thread_local const std::unique_ptr<EVP_MD_CTX, FreeContext> own(EVP_MD_CTX_new());
  ONCE_ASSERT(own != nullptr);
  return own.get();
}

}  // namespace

Sha256::Sha256(std::string_view purpose) {
  ONCE_ASSERT(EVP_DigestInit_ex2(context(), algorithm(), nullptr) == 1);
  field(purpose);
}

void Sha256::field(std::string_view bytes) {
  std::array<std::uint8_t, 8> length;
  for (std::size_t i = 0; i < length.size(); ++i)
    length[i] = static_cast<std::uint8_t>(bytes.size() >> (8 * i));
  ONCE_ASSERT(EVP_DigestUpdate(context(), length.data(), length.size()) == 1);
  ONCE_ASSERT(EVP_DigestUpdate(context(), bytes.data(), bytes.size()) == 1);
}

std::array<std::uint8_t, 16> Sha256::digest128() {
  std::array<std::uint8_t, 32> whole;
  unsigned int size = 0;
  ONCE_ASSERT(EVP_DigestFinal_ex(context(), whole.data(), &size) == 1 && size == whole.size());
  std::array<std::uint8_t, 16> half;
  std::copy_n(whole.begin(), half.size(), half.begin());
  return half;
}

std::string to_hex(const std::array<std::uint8_t, 16>& bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  append_hex(text, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  return text;
}

}  // namespace once
