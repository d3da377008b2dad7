// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace once {

// Names this process among those of all machines: "HOST:PID", and behind a blank what tells its
// machine, boot, container and start. The same for as long as the process lives.
std::string process_identity();

// Whether the process with this identity ran on this machine, since its last boot and in the same
// container, and has ended. What runs elsewhere or cannot be judged is not gone.
bool process_is_gone(std::string_view identity);

}  // namespace once
