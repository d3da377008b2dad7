// SPDX-License-Identifier: Apache-2.0
#include "wire/kafka/client.h"

#include <fmt/format.h>

#include <algorithm>
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

// Who speaks another protocol hangs up in the middle of the first sentence, and so does a broker
// that dies just then: only librdkafka's text tells that it was so early, and only time that it is
// always so.
bool is_misunderstanding(std::string_view complaint) {
  constexpr std::array<std::string_view, 3> texts{
      "incorrect security.protocol", "PLAINTEXT broker listener", "unexpected eof while reading"};
  return std::any_of(texts.begin(), texts.end(), [&](std::string_view text) {
    return complaint.find(text) != std::string_view::npos;
  });
}
constexpr int suspicion_ms = 1000;

// Complaints that explain why nothing works, as opposed to one broker of many being away.
bool is_reason(rd_kafka_resp_err_t code, std::string_view complaint) {
  return code == RD_KAFKA_RESP_ERR__AUTHENTICATION ||
         (code == RD_KAFKA_RESP_ERR__SSL && !is_misunderstanding(complaint));
}

// Before this version, what librdkafka says in SCRAM is not what brokers of Kafka 4 want to hear.
constexpr int scram_version = 0x02060100;
constexpr std::string_view scram_advice =
    "; or it is right: before 2.6.1 librdkafka's SCRAM does not work with Kafka 4, so use a newer "
    "one or sasl.mechanism=PLAIN over TLS";

bool has_broken_scram(const Address& address) {
  std::string mechanism;
  for (const auto& [name, value] : address.properties)
    if (name == "sasl.mechanism" || name == "sasl.mechanisms") mechanism = value;
  return mechanism.starts_with("SCRAM") && rd_kafka_version() < scram_version;
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
  std::shared_ptr<Client> client(new Client(address, opaque));
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

Client::Client(const Address& address, void* opaque)
    : where_(address.where()),
      topic_(address.topic),
      scram_broken_(has_broken_scram(address)),
      opaque_(opaque) {}

Client::~Client() {
  if (handle_ != nullptr) rd_kafka_destroy(handle_);
}

void Client::heard(rd_kafka_t*, int code, const char* reason, void* opaque) {
  Client& client = of(opaque);
  const std::lock_guard lock(client.mutex_);
  auto heard_code = static_cast<rd_kafka_resp_err_t>(code);
  // librdkafka calls it a matter of transport when it finds out early enough.
  if (std::string_view(reason).find("certificate verify failed") != std::string_view::npos)
    heard_code = RD_KAFKA_RESP_ERR__SSL;
  if (is_reason(client.complaint_code_, client.complaint_) && !is_reason(heard_code, reason))
    return;
  // That says nothing but that there were complaints.
  if (heard_code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN && !client.complaint_.empty()) return;
  client.complaint_ = reason;
  client.complaint_code_ = heard_code;
}

Error Client::error(rd_kafka_resp_err_t code, std::string_view what,
                    std::string_view native) const {
  const std::lock_guard lock(mutex_);
  const bool away = error_from_kafka(code, {}, {}).tag == "away";
  if (!away || complaint_.empty()) return error_from_kafka(code, where_, what, native);
  const bool is_known = is_reason(complaint_code_, complaint_);
  Error error = error_from_kafka(is_known ? complaint_code_ : code, where_, what, complaint_);
  if (complaint_code_ == RD_KAFKA_RESP_ERR__AUTHENTICATION && scram_broken_)
    error.text += scram_advice;
  return error;
}

Error Client::error(const Failure& failure, std::string_view what) const {
  return error(rd_kafka_error_code(failure.get()), what, rd_kafka_error_string(failure.get()));
}

std::pair<rd_kafka_resp_err_t, std::string> Client::complaint() {
  rd_kafka_poll(handle_, 0);
  const std::lock_guard lock(mutex_);
  return {complaint_code_, complaint_};
}

// What was said before a question explains nothing about its answer.
void Client::forget_complaints() {
  const std::lock_guard lock(mutex_);
  complaint_.clear();
  complaint_code_ = RD_KAFKA_RESP_ERR_NO_ERROR;
}

Result<Event> Client::ask(std::string_view what, const Request& request, int wait_ms) {
  constexpr int step_ms = 100;
  forget_complaints();
  const Queue answers(rd_kafka_queue_new(handle_));
  request(answers.get());
  Event event;
  for (int waited_ms = 0; !event && waited_ms < wait_ms; waited_ms += step_ms) {
    event.reset(rd_kafka_queue_poll(answers.get(), step_ms));
    const auto [reason, text] = complaint();
    if (!event && is_reason(reason, text)) break;
  }
  if (!event) return fail(error(RD_KAFKA_RESP_ERR__TIMED_OUT, what));
  const rd_kafka_resp_err_t code = rd_kafka_event_error(event.get());
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
    return fail(error(code, what, rd_kafka_event_error_string(event.get())));
  return event;
}

// Asked again with more and more patience: a call that waits hears no complaints.
Result<Metadata> Client::metadata(rd_kafka_topic_t* one, bool all, std::string_view what) {
  forget_complaints();
  const rd_kafka_metadata_t* found = nullptr;
  rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR__TIMED_OUT;
  for (int step_ms = 250; step_ms < answer_ms; step_ms *= 2) {
    code = rd_kafka_metadata(handle_, all ? 1 : 0, one, &found, step_ms);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return Metadata(found);
    const auto [reason, text] = complaint();
    if (is_reason(reason, text) || error_from_kafka(code, {}, {}).tag != "away") break;
    if (step_ms >= suspicion_ms && is_misunderstanding(text))
      return fail(error(RD_KAFKA_RESP_ERR__SSL, what, text));
  }
  return fail(error(code, what));
}

Status Client::reach() {
  ONCE_TRY(metadata(nullptr, false, "connect"));
  return {};
}

Result<Metadata> Client::topics() { return metadata(nullptr, true, "list the topics"); }

Result<std::uint32_t> Client::partition_count() {
  constexpr std::string_view what = "look up the topic";
  const std::unique_ptr<rd_kafka_topic_t, Free<rd_kafka_topic_destroy>> topic(
      rd_kafka_topic_new(handle_, topic_.c_str(), nullptr));
  if (!topic) return fail(error(rd_kafka_last_error(), "name the topic"));
  const Metadata found = ONCE_TRY(metadata(topic.get(), false, what));
  for (int i = 0; i < found->topic_cnt; ++i) {
    const rd_kafka_metadata_topic_t& one = found->topics[i];
    if (topic_ != one.topic) continue;
    if (one.err != RD_KAFKA_RESP_ERR_NO_ERROR) return fail(error(one.err, what));
    return static_cast<std::uint32_t>(one.partition_cnt);
  }
  return fail(error(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, what));
}

}  // namespace once::kafka
