// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/secrets.h"
#include "base/url.h"
#include "config/plan_parts.h"
#include "model/decimal.h"
#include "model/json_text.h"
#include "model/ledger.h"

namespace once {
namespace {

constexpr std::array<std::string_view, 10> emit_keys{
    "to", "id", "key", "body", "tombstone", "headers", "pass_headers", "timestamp", "each", "when"};
constexpr std::array<std::string_view, 3> choice_keys{"value", "choose", "default"};
constexpr std::size_t depth_max = 16;

// { constant = "eu" }
const toml::node* constant_in(const toml::table& table) {
  return table.size() == 1 ? table.get("constant") : nullptr;
}

// A literal, then a value, then a literal, ...
class TemplateMaker {
 public:
  TemplateMaker(TomlFile& file, std::vector<ValueRule>& values) : file_(file), values_(values) {}

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
      ONCE_TRY(add_member(node, depth));
    }
    literal_ += '}';
    return {};
  }

  std::vector<TemplatePiece> take() && {
    pieces_.push_back({std::move(literal_), std::nullopt});
    return std::move(pieces_);
  }

 private:
  // A string is the name of a value, so a text that is meant is written { constant = "text" }.
  Status add_member(const toml::node& node, std::size_t depth) {
    if (const toml::table* inner = node.as_table()) {
      const toml::node* constant = constant_in(*inner);
      return constant == nullptr ? add_object(*inner, depth + 1) : add_constant(*constant);
    }
    if (node.is_number() || node.is_boolean()) return add_constant(node);
    ValueRef ref = ONCE_TRY(ref_of(file_, node, "a member of a body", values_));
    pieces_.push_back({std::exchange(literal_, {}), std::move(ref)});
    return {};
  }

  Status add_constant(const toml::node& node) {
    const auto text = ONCE_TRY(scalar_of(file_, node));
    if (!text || (node.is_floating_point() && !is_decimal(*text)))
      return file_.refuse(place_of(node),
                          "a constant of a body is a string, a finite number or a boolean");
    if (node.is_number() || node.is_boolean())
      literal_ += *text;
    else
      append_json_text(literal_, *text);
    return {};
  }

  TomlFile& file_;
  std::vector<ValueRule>& values_;
  std::vector<TemplatePiece> pieces_;
  std::string literal_;
};

// Reads one [[emit]] into the rules that it stands for.
class EmitReader {
 public:
  EmitReader(const TomlTable& table, Plan& plan) : table_(table), plan_(plan) {}

  Status read() {
    emit_.place = table_.place();
    emit_.each = ONCE_TRY(parse_each(table_));
    emit_.when = ONCE_TRY(parse_when(table_, plan_.values));
    ONCE_TRY(read_id());
    ONCE_TRY(check_element_id());
    emit_.key = ONCE_TRY(read_ref("key"));
    emit_.timestamp = ONCE_TRY(read_ref("timestamp"));
    ONCE_TRY(read_body());
    ONCE_TRY(read_headers());
    if (const toml::table* choice = table_.native()["to"].as_table()) return read_choice(*choice);
    const toml::node* to = table_.native().get("to");
    if (to == nullptr) return table_.refuse("to", "is missing: where the message goes, a URL");
    return add_to(*to, "to", emit_.when);
  }

 private:
  Result<std::optional<ValueRef>> read_ref(std::string_view key) {
    const toml::node* node = table_.native().get(key);
    if (node == nullptr) return std::nullopt;
    return ONCE_TRY(ref_of(table_.file(), *node, key, plan_.values));
  }

  Status read_id() {
    const toml::node* id = table_.native().get("id");
    if (id == nullptr) {
      if (!plan_.options.id)
        return table_.refuse("id",
                             "is missing: without an id rule in [source] there is no id to pass "
                             "on; name a value that is the same however often this runs");
      emit_.id = {{"id", emit_.place}};
      if (emit_.each) emit_.id.push_back({"element_index", emit_.place});
      return {};
    }
    if (!id->is_array()) {
      emit_.id = {ONCE_TRY(ref_of(table_.file(), *id, "id", plan_.values))};
      return {};
    }
    for (const toml::node& part : *id->as_array())
      emit_.id.push_back(ONCE_TRY(ref_of(table_.file(), part, "a part of the id", plan_.values)));
    if (emit_.id.empty()) return table_.refuse("id", "has no parts");
    return {};
  }

  // Messages of one array with one id would be duplicates of each other.
  Status check_element_id() {
    const auto is_elements = [&](const ValueRef& ref) {
      return std::any_of(plan_.values.begin(), plan_.values.end(), [&](const ValueRule& rule) {
        return rule.name == ref.value && is_of_element(rule);
      });
    };
    if (!emit_.each || std::any_of(emit_.id.begin(), emit_.id.end(), is_elements)) return {};
    return table_.refuse("id",
                         "is the same for all elements; add a value of the element, for example "
                         "id = [\"id\", \"element_index\"]");
  }

  Status read_body() {
    const toml::node* body = table_.native().get("body");
    if (const auto tombstone = ONCE_TRY(table_.boolean("tombstone"))) {
      if (!*tombstone) return table_.refuse("tombstone", "is either true or not there");
      if (body != nullptr) return table_.refuse("tombstone", "has no body; drop one of the two");
      emit_.is_tombstone = true;
      return {};
    }
    const toml::table* object = body == nullptr ? nullptr : body->as_table();
    if (body == nullptr) {
      emit_.body = ValueRef{"body", emit_.place};
    } else if (object != nullptr && constant_in(*object) == nullptr) {
      TemplateMaker maker(table_.file(), plan_.values);
      ONCE_TRY(maker.add_object(*object, 1));
      emit_.json_body = std::move(maker).take();
    } else {
      emit_.body = ONCE_TRY(ref_of(table_.file(), *body, "body", plan_.values));
    }
    return {};
  }

  Status read_headers() {
    const toml::node* passed = table_.native().get("pass_headers");
    if (passed != nullptr && passed->is_array()) {
      emit_.passed_headers = ONCE_TRY(table_.texts("pass_headers"));
      emit_.passes_headers = !emit_.passed_headers.empty();
    } else if (const auto all = ONCE_TRY(table_.boolean("pass_headers"))) {
      emit_.passes_headers = *all;
    }
    const toml::table* headers = ONCE_TRY(table_.free_table("headers"));
    if (headers == nullptr) return {};
    for (const auto& [name, node] : *headers) {
      ValueRef ref = ONCE_TRY(ref_of(table_.file(), node, "a header", plan_.values));
      emit_.headers.emplace_back(std::string(name.str()), std::move(ref));
    }
    return {};
  }

  // One rule for each choice, each with the condition that it is the one. A value that chooses
  // none of them goes to the default, or parks its message.
  Status read_choice(const toml::table& native) {
    const TomlTable choice = ONCE_TRY(TomlTable::open(table_.file(), native, "to", choice_keys));
    const toml::node* value = native.get("value");
    if (value == nullptr) return choice.refuse("value", "is missing: the value that chooses");
    const ValueRef ref = ONCE_TRY(ref_of(table_.file(), *value, "to.value", plan_.values));
    const toml::table* urls = ONCE_TRY(choice.free_table("choose"));
    if (urls == nullptr || urls->empty())
      return choice.refuse("choose", "is missing: { eu = \"kafka://…\", us = \"kafka://…\" }");
    WhenRule chosen{.kind = WhenRule::Kind::is, .place = place_of(*value), .ref = ref};
    for (const auto& [word, url] : *urls) {
      chosen.operands.emplace_back(word.str());
      WhenRule one = chosen;
      one.operands = {std::string(word.str())};
      ONCE_TRY(add_to(url, "to.choose", both(std::move(one))));
    }
    WhenRule none{.kind = WhenRule::Kind::negation, .place = chosen.place, .parts = {chosen}};
    if (const toml::node* otherwise = native.get("default"))
      return add_to(*otherwise, "to.default", both(std::move(none)));
    plan_.undirected.push_back({emit_.place, emit_.each, both(std::move(none)), ref});
    return {};
  }

  // What the file says about when, and this.
  WhenRule both(WhenRule more) const {
    if (!emit_.when) return more;
    return {
        .kind = WhenRule::Kind::all, .place = more.place, .parts = {*emit_.when, std::move(more)}};
  }

  Status add_to(const toml::node& node, std::string_view what, std::optional<WhenRule> when) {
    EmitRule made = emit_;
    made.when = std::move(when);
    EmitTarget target = ONCE_TRY(
        parse_target(table_.file(), node, fmt::format("emit.{}", what), plan_.options.scope));
    made.to = std::move(target.to);
    made.destination = std::move(target.destination);
    plan_.emits.push_back(std::move(made));
    return {};
  }

  const TomlTable& table_;
  Plan& plan_;
  EmitRule emit_;
};

bool same_id(const EmitRule& a, const EmitRule& b) {
  if (a.id.size() != b.id.size()) return false;
  for (std::size_t i = 0; i < a.id.size(); ++i)
    if (a.id[i].value != b.id[i].value) return false;
  return true;
}

// A reader of the destination would take the second message for a duplicate of the first.
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

namespace {

// Whether a password or another secret is written out. Of variables only the default is.
bool has_written_secret(std::string_view text) {
  constexpr char variable = '\1';
  std::string literal;
  for (std::size_t begin = text.find("${"); begin != std::string_view::npos;
       begin = text.find("${")) {
    const std::size_t end = std::min(text.find('}', begin), text.size());
    const std::string_view inside = text.substr(begin, end - begin);
    const std::size_t otherwise = inside.find(":-");
    literal += text.substr(0, begin);
    literal += otherwise == std::string_view::npos ? std::string_view(&variable, 1)
                                                   : inside.substr(otherwise + 2);
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  auto url = parse_url(literal.append(text));
  if (!url) return false;  // nor can it be opened
  std::erase(url->password, variable);
  for (auto& [name, value] : url->parameters) std::erase(value, variable);
  return holds_secret(*url);
}

}  // namespace

Result<EmitTarget> parse_target(TomlFile& file, const toml::node& node, std::string_view what,
                                const std::string& scope) {
  const auto* literal = node.as_string();
  if (literal == nullptr || literal->get().empty())
    return file.refuse(place_of(node), fmt::format("{} is a URL, where the message goes", what));
  if (has_written_secret(literal->get()))
    return file.refuse(
        place_of(node),
        fmt::format(
            "{} has a password, and the store keeps the URL as it is written; write "
            "${{VARIABLE}} or ${{file:PATH}} for it, or for Kafka name a file (properties=FILE)",
            what));
  EmitTarget made;
  made.place = place_of(node);
  made.to = ONCE_TRY(file.expanded(literal->get(), place_of(node)));
  // As it is written, so that no secret gets into the outbox; each scope has destinations of its
  // own, so that the relays of two pipelines on one store do not meet.
  made.destination = fmt::format("run/{}/{}", scope, literal->get());
  if (made.destination.size() > name_bytes_max)
    return file.refuse(
        place_of(node),
        fmt::format("{} is too long: scope and URL have together at most {} bytes; put the URL "
                    "into a variable",
                    what, name_bytes_max - 5));
  return made;
}

Status parse_emits(const TomlTable& root, Plan& plan) {
  for (const TomlTable& table : ONCE_TRY(root.tables("emit", emit_keys)))
    ONCE_TRY(EmitReader(table, plan).read());
  return check_ids(root, plan.emits);
}

}  // namespace once
