// SPDX-License-Identifier: Apache-2.0
#include "model/canonical_json.h"

#include <algorithm>
#include <vector>

#include "model/json_parser.h"
#include "model/json_text.h"

namespace once {
namespace {

namespace ondemand = simdjson::ondemand;

constexpr std::size_t depth_max = 64;

// Writes values behind each other into one text.
class Writer {
 public:
  Writer(std::string& out, NumberSpelling numbers) : out_(out), numbers_(numbers) {}

  simdjson::error_code value(ondemand::value of, std::size_t depth) {
    if (depth > depth_max) return simdjson::DEPTH_ERROR;
    ondemand::json_type type;
    if (const auto error = of.type().get(type)) return error;
    switch (type) {
      case ondemand::json_type::object: {
        ondemand::object members;
        if (const auto error = of.get_object().get(members)) return error;
        return object(members, depth);
      }
      case ondemand::json_type::array: {
        ondemand::array elements;
        if (const auto error = of.get_array().get(elements)) return error;
        return array(elements, depth);
      }
      case ondemand::json_type::number: return number(of);
      case ondemand::json_type::string: {
        std::string_view text;
        if (const auto error = of.get_string().get(text)) return error;
        append_json_text(out_, text);
        return simdjson::SUCCESS;
      }
      case ondemand::json_type::boolean: {
        bool truth = false;
        if (const auto error = of.get_bool().get(truth)) return error;
        out_ += truth ? "true" : "false";
        return simdjson::SUCCESS;
      }
      case ondemand::json_type::null: break;
    }
    bool is_null = false;
    if (const auto error = of.is_null().get(is_null)) return error;
    if (!is_null) return simdjson::INCORRECT_TYPE;
    out_ += "null";
    return simdjson::SUCCESS;
  }

  simdjson::error_code object(ondemand::object& of, std::size_t depth) {
    std::vector<Member> members;
    out_.push_back('{');
    for (auto field : of) {
      std::string_view name;
      ondemand::value member;
      if (const auto error = field.unescaped_key().get(name)) return error;
      Member written{out_.size(), 0, 0};
      append_json_text(out_, name);
      written.name_end = out_.size();
      out_.push_back(':');
      if (const auto error = field.value().get(member)) return error;
      if (const auto error = value(member, depth + 1)) return error;
      out_.push_back(',');
      written.end = out_.size();
      members.push_back(written);
    }
    if (!sort(members)) return doubled_member;
    if (!members.empty()) out_.pop_back();
    out_.push_back('}');
    return simdjson::SUCCESS;
  }

  simdjson::error_code array(ondemand::array& of, std::size_t depth) {
    out_.push_back('[');
    bool first = true;
    for (auto item : of) {
      ondemand::value element;
      if (const auto error = item.get(element)) return error;
      if (!first) out_.push_back(',');
      first = false;
      if (const auto error = value(element, depth + 1)) return error;
    }
    out_.push_back(']');
    return simdjson::SUCCESS;
  }

 private:
  // Where a member is in the text, with the comma behind it.
  struct Member {
    std::size_t begin, name_end, end;
  };

  simdjson::error_code number(ondemand::value& of) {
    const std::string_view token = without_blanks(of.raw_json_token());
    if (!is_decimal(token)) return simdjson::NUMBER_ERROR;
    return append_decimal(out_, token, numbers_) ? simdjson::SUCCESS : huge_exponent;
  }

  // False: two members have the same name. Most producers write members in the same order, and some
  // in the right one: then nothing moves.
  bool sort(std::vector<Member>& members) {
    const auto name = [this](const Member& member) {
      return std::string_view(out_).substr(member.begin, member.name_end - member.begin);
    };
    const auto before = [&](const Member& a, const Member& b) { return name(a) < name(b); };
    const auto doubled = [&] {
      return std::adjacent_find(members.begin(), members.end(),
                                [&](const Member& a, const Member& b) {
                                  return name(a) == name(b);
                                }) != members.end();
    };
    if (std::is_sorted(members.begin(), members.end(), before)) return !doubled();
    const std::size_t begin = members.front().begin;
    std::sort(members.begin(), members.end(), before);
    if (doubled()) return false;
    std::string sorted;
    sorted.reserve(out_.size() - begin);
    for (const Member& member : members)
      sorted.append(out_, member.begin, member.end - member.begin);
    out_.replace(begin, std::string::npos, sorted);
    return true;
  }

  std::string& out_;
  const NumberSpelling numbers_;
};

simdjson::error_code append_document(std::string& out, ondemand::document& document) {
  ondemand::json_type type;
  if (const auto error = document.type().get(type)) return error;
  Writer writer(out, NumberSpelling::scientific);
  if (type == ondemand::json_type::object) {
    ondemand::object members;
    if (const auto error = document.get_object().get(members)) return error;
    if (const auto error = writer.object(members, 0)) return error;
  } else if (type == ondemand::json_type::array) {
    ondemand::array elements;
    if (const auto error = document.get_array().get(elements)) return error;
    if (const auto error = writer.array(elements, 0)) return error;
  } else {
    return simdjson::INCORRECT_TYPE;
  }
  return check_end(document);
}

}  // namespace

simdjson::error_code append_canonical(std::string& out, ondemand::value value,
                                      NumberSpelling numbers) {
  return Writer(out, numbers).value(value, 0);
}

bool may_be_json(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
}

bool append_canonical_text(std::string& out, std::string_view text) {
  if (!may_be_json(text)) return false;
  thread_local JsonParser parser;
  if (parser.find_tokens(text)) return false;
  const std::size_t before = out.size();
  if (append_document(out, parser.document) == simdjson::SUCCESS) return true;
  out.resize(before);
  return false;
}

}  // namespace once
