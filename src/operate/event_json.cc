// SPDX-License-Identifier: Apache-2.0
#include "operate/event_json.h"

#include <fmt/format.h>

namespace once::operate {

Json json_of(const Event& event) {
  Json made{
      {"level", name_of(event.severity)}, {"kind", name_of(event.kind)}, {"text", event.text}};
  if (!event.subject.empty()) made["subject"] = event.subject;
  if (!event.tag.empty()) made["tag"] = event.tag;
  made["count"] = event.count;
  if (event.duration_ms >= 0) made["duration_ms"] = event.duration_ms;
  return made;
}

std::string text_of(const Event& event) {
  if (event.count <= 1) return event.text;
  return fmt::format("{} ({} like this since it was last told)", event.text, event.count);
}

}  // namespace once::operate
