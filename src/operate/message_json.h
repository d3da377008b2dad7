// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/message.h>
#include <once/result.h>

#include <string>
#include <string_view>

#include "operate/json.h"

namespace once::operate {

// A message as JSON, in both directions: what `once consume -o json` writes, `once produce --json`
// takes. Text is text; a body that is not UTF-8 is base64 and `encoding` says so; an id, key or
// header value that is not UTF-8 is in `id_base64`, `key_base64`, `value_base64` instead. A key,
// body or header value that is absent is null.
Json json_of(const Delivery& delivery);
// The same without what only a log knows.
Json json_of(const Message& message);

// Reads one object with id, key, headers, body, encoding and timestamp_ms, all optional. A body
// that is an object or an array is taken as its own text, byte for byte. The fields that only a
// log can know (partition, offset, stamp) are skipped; any other is an error (tag "input"), and so
// is one that stands twice in an object. Nobody looks into a body that is an object or an array.
Result<Message> message_of(std::string_view line);

// The part of a partition's name that tells it from the others of its topic: "orders/3" is 3.
std::string_view partition_number(std::string_view partition);
// Its topic; empty if the source has none.
std::string_view partition_topic(std::string_view partition);

// Puts bytes into a JSON object under this name, or in base64 under NAME_base64.
void put_bytes(Json& json, const std::string& name, std::string_view bytes);

// The same for what may be absent: that is null.
void put_part(Json& json, const std::string& name, std::string_view part);

// Bytes as text: what is not UTF-8 is in base64, what is absent is (null).
std::string text_or_base64(std::string_view bytes);

bool is_utf8(std::string_view bytes);

}  // namespace once::operate
