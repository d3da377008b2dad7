// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/claims.h>
#include <once/clock.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace once {

struct RoleOptions {
  std::string scope;       // of the claim
  std::string id;          // what one process at a time does
  std::string owner = {};  // unique; empty: host, process and a number
  std::int64_t lease_ms = 5'000;
};

// Something that one process at a time should do, while others stand by: a claim with a lease in
// the store, renewed for as long as it is held. The store's clock judges the lease. Whoever holds
// the role must still be kept from writing by a fence when it has lost it without knowing.
//
// A holder that ends gives the role back. Of one that died, those on its machine know at once; for
// all others the lease runs out, or is not renewed for long (the store's clock may have been set
// back). Owns no thread: `hold` is called again and again, by one thread.
class Role {
 public:
  Role(ClaimStore& claims, RoleOptions options, Clock& clock);
  Role(const Role&) = delete;
  Role& operator=(const Role&) = delete;
  ~Role() { release(); }

  // Whether the role is ours now. Asks the store only when that is due. An error means that the
  // store could not be asked, and that nobody may count on the role.
  [[nodiscard]] Result<bool> hold();

  // Something says that we may have lost it: the next `hold` asks the store.
  void doubt() { ask_at_ns_ = 0; }

  // Gives it back at once, so that another can have it. The reason stays in the claim.
  void release(std::string_view reason = "released");

  // Grows when the role may have been another's in between: what was known then is out of date.
  std::uint64_t tenure() const { return tenure_; }
  // Who has it, as far as is known; empty: not known.
  const std::string& holder() const { return holder_; }

 private:
  Result<bool> renew();
  Result<bool> claim();
  Status bury(const ClaimRecord& record);
  bool is_dead(const ClaimRecord& record);

  ClaimStore& claims_;
  const RoleOptions options_;
  Clock& clock_;
  bool held_ = false;
  std::uint64_t fence_ = 0;
  std::uint64_t tenure_ = 0;
  std::int64_t held_since_ns_ = 0;  // as the store has confirmed it
  std::int64_t ask_at_ns_ = 0;
  std::string holder_;
  // What was seen of another's lease, and since when: one that is not renewed is not held.
  std::uint64_t seen_fence_ = 0;
  std::int64_t seen_until_ms_ = 0;
  std::int64_t seen_since_ns_ = 0;
};

}  // namespace once
