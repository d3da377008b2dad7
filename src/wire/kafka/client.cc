// SPDX-License-Identifier: Apache-2.0
#include "wire/kafka/client.h"

#include <fmt/format.h>

#include <array>

namespace once::kafka {
namespace {

void say_nothing(const rd_kafka_t*, int, const char*, const char*) {}

Status set(rd_kafka_conf_t& conf, const std::string& name, const std::string& value,
           std::string_view where) {
  std::array<char, 512> text{};
  if (rd_kafka_conf_set(&conf, name.c_str(), value.c_str(), text.data(), text.size()) ==
      RD_KAFKA_CONF_OK)
    return {};
  return fail(Remedy::stop, "url", fmt::format("{}: {}", where, text.data()));
}

// Complaints that explain why nothing works, as opposed to one broker of many being away.
bool is_reason(rd_kafka_resp_err_t code) {
  return code == RD_KAFKA_RESP_ERR__AUTHENTICATION || code == RD_KAFKA_RESP_ERR__SSL;
}

}  // namespace

Result<std::shared_ptr<Client>> Client::make(rd_kafka_type_t type, const Address& address,
                                             const Settings& ours, const Prepare& prepare,
                                             void* opaque) {
  Conf conf(rd_kafka_conf_new());
  const std::string where = address.where();
  ONCE_TRY(set(*conf, "client.id", "once", where));
  ONCE_TRY(set(*conf, "bootstrap.servers", address.hosts, where));
  for (const auto& [name, value] : address.properties) ONCE_TRY(set(*conf, name, value, where));
  for (const auto& [name, value] : ours) ONCE_TRY(set(*conf, name, value, where));
  std::shared_ptr<Client> client(new Client(where, address.topic, opaque));
  rd_kafka_conf_set_opaque(conf.get(), client.get());
  rd_kafka_conf_set_error_cb(conf.get(), heard);
  std::array<char, 16> debug{};
  std::size_t debug_size = debug.size();
  if (rd_kafka_conf_get(conf.get(), "debug", debug.data(), &debug_size) != RD_KAFKA_CONF_OK ||
      debug[0] == '\0')
    rd_kafka_conf_set_log_cb(conf.get(), say_nothing);
  if (prepare) prepare(*conf);
  std::array<char, 512> text{};
  client->handle_ = rd_kafka_new(type, conf.get(), text.data(), text.size());
  if (client->handle_ == nullptr)
    return fail(Remedy::stop, "url", fmt::format("{}: {}", where, text.data()));
  (void)conf.release();  // now the client's
  return client;
}

Client::~Client() {
  if (handle_ != nullptr) rd_kafka_destroy(handle_);
}

void Client::heard(rd_kafka_t*, int code, const char* reason, void* opaque) {
  Client& client = of(opaque);
  const std::lock_guard lock(client.mutex_);
  const auto heard_code = static_cast<rd_kafka_resp_err_t>(code);
  if (is_reason(client.complaint_code_) && !is_reason(heard_code)) return;
  client.complaint_ = reason;
  client.complaint_code_ = heard_code;
}

Error Client::error(rd_kafka_resp_err_t code, std::string_view what,
                    std::string_view native) const {
  const std::lock_guard lock(mutex_);
  const bool away = error_from_kafka(code, {}, {}).tag == "away";
  if (!away || complaint_.empty()) return error_from_kafka(code, where_, what, native);
  return error_from_kafka(is_reason(complaint_code_) ? complaint_code_ : code, where_, what,
                          complaint_);
}

Error Client::error(const Failure& failure, std::string_view what) const {
  return error(rd_kafka_error_code(failure.get()), what, rd_kafka_error_string(failure.get()));
}

Result<std::uint32_t> Client::partition_count(std::int64_t wait_ms) {
  rd_kafka_topic_t* topic = rd_kafka_topic_new(handle_, topic_.c_str(), nullptr);
  if (topic == nullptr) return fail(error(rd_kafka_last_error(), "name the topic"));
  const rd_kafka_metadata_t* metadata = nullptr;
  const rd_kafka_resp_err_t code =
      rd_kafka_metadata(handle_, 0, topic, &metadata, static_cast<int>(wait_ms));
  rd_kafka_topic_destroy(topic);
  rd_kafka_poll(handle_, 0);  // hear complaints
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return fail(error(code, "look up the topic"));
  const std::unique_ptr<const rd_kafka_metadata_t, Free<rd_kafka_metadata_destroy>> owned(metadata);
  for (int i = 0; i < metadata->topic_cnt; ++i) {
    const rd_kafka_metadata_topic_t& found = metadata->topics[i];
    if (topic_ != found.topic) continue;
    if (found.err != RD_KAFKA_RESP_ERR_NO_ERROR) return fail(error(found.err, "look up the topic"));
    return static_cast<std::uint32_t>(found.partition_cnt);
  }
  return fail(error(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, "look up the topic"));
}

}  // namespace once::kafka
