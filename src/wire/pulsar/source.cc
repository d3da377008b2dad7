// SPDX-License-Identifier: Apache-2.0
#include <once/open.h>

#include "wire/pulsar/look.h"
#include "wire/pulsar/ordered_source.h"
#include "wire/pulsar/queue_source.h"

namespace once {

Result<std::unique_ptr<Source>> open_pulsar_source(std::string_view url) {
  const pulsar::Address address = ONCE_TRY(pulsar::Address::parse(url, pulsar::Role::source));
  if (address.is_queue()) return pulsar::QueueSource::open(address);
  return pulsar::OrderedSource::open(address);
}

Result<std::unique_ptr<Source>> pulsar::open_source_to_look_at(Address address) {
  address.subscription.clear();
  address.sharing = Sharing::none;
  return OrderedSource::open(address);
}

Result<std::unique_ptr<Source>> pulsar::open_source_to_look(std::string_view url) {
  return open_source_to_look_at(ONCE_TRY(Address::parse(url, Role::source)));
}

}  // namespace once
