// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "config/plan_parts.h"
#include "model/json_text.h"
#include "model/ledger.h"

namespace once {
namespace {

constexpr std::array<std::string_view, 7> emit_keys{"to",      "id",   "key", "body",
                                                    "headers", "each", "when"};
constexpr std::size_t depth_max = 16;

// A literal, then a value, then a literal, ...
class TemplateMaker {
 public:
  explicit TemplateMaker(TomlFile& file) : file_(file) {}

  Status add_object(const toml::table& table, std::size_t depth) {
    if (depth > depth_max)
      return file_.refuse(place_of(table), fmt::format("a body is at most {} deep", depth_max));
    literal_ += '{';
    bool first = true;
    for (const auto& [key, node] : table) {
      if (!first) literal_ += ',';
      first = false;
      append_json_text(literal_, key.str());
      literal_ += ':';
      if (const toml::table* inner = node.as_table()) {
        ONCE_TRY(add_object(*inner, depth + 1));
      } else {
        const ValueRef use = ONCE_TRY(ref_of(file_, node, "a member of a body"));
        pieces_.push_back({std::exchange(literal_, {}), use});
      }
    }
    literal_ += '}';
    return {};
  }

  std::vector<TemplatePiece> take() && {
    pieces_.push_back({std::move(literal_), std::nullopt});
    return std::move(pieces_);
  }

 private:
  TomlFile& file_;
  std::vector<TemplatePiece> pieces_;
  std::string literal_;
};

Status parse_id(const TomlTable& table, bool has_id, EmitRule& emit) {
  const toml::node* id = table.native().get("id");
  if (id == nullptr) {
    if (!has_id)
      return table.refuse("id",
                          "is missing: without an id rule in [source] there is no id to pass "
                          "on; name a value that is the same however often this runs");
    emit.id = {{"id", emit.place}};
    if (emit.each) emit.id.push_back({"element_index", emit.place});
    return {};
  }
  if (!id->is_array()) {
    emit.id = {ONCE_TRY(ref_of(table.file(), *id, "id"))};
    return {};
  }
  for (const toml::node& part : *id->as_array())
    emit.id.push_back(ONCE_TRY(ref_of(table.file(), part, "a part of the id")));
  if (emit.id.empty()) return table.refuse("id", "has no parts");
  return {};
}

// Messages of one array with one id would be duplicates of each other.
Status check_element_id(const TomlTable& table, const EmitRule& emit,
                        const std::vector<ValueRule>& values) {
  const auto is_elements = [&](const ValueRef& ref) {
    return std::any_of(values.begin(), values.end(), [&](const ValueRule& rule) {
      return rule.name == ref.value && is_of_element(rule);
    });
  };
  if (!emit.each || std::any_of(emit.id.begin(), emit.id.end(), is_elements)) return {};
  return table.refuse("id",
                      "is the same for all elements; add a value of the element, for example "
                      "id = [\"id\", \"element_index\"]");
}

Status parse_body(const TomlTable& table, EmitRule& emit) {
  const toml::node* body = table.native().get("body");
  if (body == nullptr) {
    emit.body = ValueRef{"body", emit.place};
  } else if (const toml::table* object = body->as_table()) {
    TemplateMaker maker(table.file());
    ONCE_TRY(maker.add_object(*object, 1));
    emit.json_body = std::move(maker).take();
  } else {
    emit.body = ONCE_TRY(ref_of(table.file(), *body, "body"));
  }
  return {};
}

Result<EmitRule> parse_emit(const TomlTable& table, const std::string& scope, bool has_id,
                            std::vector<ValueRule>& values) {
  EmitRule emit;
  emit.place = table.place();
  emit.to = ONCE_TRY(table.required_text("to", "where the message goes, a URL"));
  // As it is written, so that no secret gets into the outbox; each scope has destinations of its
  // own, so that the relays of two pipelines on one store do not meet.
  emit.destination = fmt::format("run/{}/{}", scope, *ONCE_TRY(table.literal_text("to")));
  if (emit.destination.size() > name_bytes_max)
    return table.refuse("to", fmt::format("is too long: scope and URL have together at most {} "
                                          "bytes; put the URL into a variable",
                                          name_bytes_max - 5));
  emit.each = ONCE_TRY(parse_each(table));
  emit.when = ONCE_TRY(parse_when(table, values));
  ONCE_TRY(parse_id(table, has_id, emit));
  ONCE_TRY(check_element_id(table, emit, values));
  if (table.has("key"))
    emit.key = ONCE_TRY(ref_of(table.file(), *table.native().get("key"), "key"));
  ONCE_TRY(parse_body(table, emit));
  if (const toml::table* headers = ONCE_TRY(table.free_table("headers")))
    for (const auto& [name, node] : *headers)
      emit.headers.emplace_back(std::string(name.str()),
                                ONCE_TRY(ref_of(table.file(), node, "a header")));
  return emit;
}

bool same_id(const EmitRule& a, const EmitRule& b) {
  if (a.id.size() != b.id.size()) return false;
  for (std::size_t i = 0; i < a.id.size(); ++i)
    if (a.id[i].value != b.id[i].value) return false;
  return true;
}

// Whoever reads the destination would take the second message for a duplicate of the first.
Status check_ids(const TomlTable& root, const std::vector<EmitRule>& emits) {
  for (std::size_t i = 0; i < emits.size(); ++i)
    for (std::size_t j = i + 1; j < emits.size(); ++j) {
      const bool exclusive = emits[i].when && emits[j].when;
      if (emits[i].to != emits[j].to || exclusive || !same_id(emits[i], emits[j])) continue;
      return root.file().refuse(
          emits[j].place,
          fmt::format("this and the message of line {} go to the same place with the same id, so "
                      "that one is a duplicate of the other; give one another id, for example "
                      "id = [\"id\", \"kind\"]",
                      emits[i].place.line));
    }
  return {};
}

}  // namespace

Result<std::vector<EmitRule>> parse_emits(const TomlTable& root, const std::string& scope,
                                          bool has_id, std::vector<ValueRule>& values) {
  std::vector<EmitRule> emits;
  for (const TomlTable& table : ONCE_TRY(root.tables("emit", emit_keys)))
    emits.push_back(ONCE_TRY(parse_emit(table, scope, has_id, values)));
  ONCE_TRY(check_ids(root, emits));
  return emits;
}

}  // namespace once
