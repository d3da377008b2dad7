// SPDX-License-Identifier: Apache-2.0
#include "store/redis/error.h"

#include <fmt/format.h>

#include <array>

namespace once {
namespace {

struct Meaning {
  std::string_view word;
  Remedy remedy;
  std::string_view tag;
  std::string_view advice;
};

// A server that answers with one of these has not run the command. That holds for scripts, too:
// ours read everything that can fail before they write, and what the server can refuse it refuses
// at the first write.
constexpr std::array meanings = std::to_array<Meaning>({
    {"NOAUTH", Remedy::stop, "denied", "give user and password in the URL"},
    {"WRONGPASS", Remedy::stop, "denied", "check user and password"},
    {"NOPERM", Remedy::stop, "denied", "docs/stores/redis.md lists the rights that are needed"},
    {"READONLY", Remedy::retry, "replica", "is this a replica? Connect to the primary"},
    {"MASTERDOWN", Remedy::retry, "replica", "is this a replica? Connect to the primary"},
    {"OOM", Remedy::retry, "full", "the server has reached maxmemory: give it more, or forget"},
    {"MISCONF", Remedy::retry, "full", "the server cannot write to its disk: look into its log"},
    {"NOREPLICAS", Remedy::retry, "away", "fewer replicas than min-replicas-to-write are there"},
    {"LOADING", Remedy::retry, "away", "the server is loading its data; wait"},
    {"BUSY", Remedy::retry, "busy", "another script is running; wait"},
    {"CLUSTERDOWN", Remedy::retry, "away", "the cluster does not cover all slots; wait"},
    {"TRYAGAIN", Remedy::retry, "busy", "a slot is being moved; wait"},
    {"MOVED", Remedy::retry, "busy", "the cluster is being changed; wait"},
    {"ASK", Remedy::retry, "busy", "the cluster is being changed; wait"},
    {"UNKILLABLE", Remedy::retry, "busy", "another script is running; wait"},
    {"EXECABORT", Remedy::retry, "conflict", "the server gave the transaction up; try again"},
    {"WRONGTYPE", Remedy::park, "constraint", "the key holds something that is no string"},
    {"CROSSSLOT", Remedy::stop, "config", "keys of one store must be in one slot"},
    {"NOPROTO", Remedy::stop, "protocol", "the server speaks another protocol"},
});

Error made_of(const Meaning& meaning, std::string_view where, std::string_view what,
              std::string_view native) {
  return {meaning.remedy, std::string(meaning.tag),
          fmt::format("{}: cannot {}: {}; {}", where, what, native, meaning.advice), std::nullopt};
}

}  // namespace

std::string_view word_of(std::string_view native) {
  // Before Redis 7 an error inside a script is wrapped: "ERR Error running script (...): -OOM ...".
  if (native.starts_with("ERR Error running script"))
    if (const std::size_t at = native.rfind(": -"); at != std::string_view::npos)
      native = native.substr(at + 3);
  return native.substr(0, native.find(' '));
}

Error error_from_redis(std::string_view native, RedisStage stage, std::string_view where,
                       std::string_view what) {
  const std::string_view word = word_of(native);
  for (const Meaning& meaning : meanings)
    if (meaning.word == word) return made_of(meaning, where, what, native);
  if (native.find("max number of clients") != std::string_view::npos)
    return made_of({word, Remedy::retry, "exhausted", "the server takes no more clients"}, where,
                   what, native);
  if (stage == RedisStage::open && native.find("DB index") != std::string_view::npos)
    return made_of({word, Remedy::stop, "missing", "choose another database"}, where, what, native);
  return made_of({word, Remedy::stop, "command", "is this a Redis server of version 6.2 or newer?"},
                 where, what, native);
}

Error lost_connection(RedisStage stage, std::string_view where, std::string_view what,
                      std::string_view native) {
  if (stage == RedisStage::write)
    return made_of(
        {{}, Remedy::recheck, "lost", "the answer to the write was lost; look up what is there"},
        where, what, native);
  return made_of({{}, Remedy::retry, "away", "is the server up and reachable?"}, where, what,
                 native);
}

}  // namespace once
