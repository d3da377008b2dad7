// SPDX-License-Identifier: Apache-2.0
#include "wire/kafka/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <thread>
#include <vector>

namespace once::kafka {
namespace {

void discard_log(const rd_kafka_t*, int, const char*, const char*) {}

Status set(rd_kafka_conf_t& conf, const std::string& name, const std::string& value,
           std::string_view where) {
  std::array<char, 512> text{};
  if (rd_kafka_conf_set(&conf, name.c_str(), value.c_str(), text.data(), text.size()) ==
      RD_KAFKA_CONF_OK)
    return {};
  return fail(Remedy::stop, "url", fmt::format("{}: {}", where, text.data()));
}

using std::chrono::steady_clock;

// A TLS and a plaintext side that meet look like a connection that ends early; so does a broker, or
// a proxy before it, that is just starting or stopping. Only librdkafka's text tells that the end
// was so early, and only time that it is always so.
bool looks_like_mismatch(std::string_view reason) {
  constexpr std::array<std::string_view, 3> texts{
      "incorrect security.protocol", "PLAINTEXT broker listener", "unexpected eof while reading"};
  return std::any_of(texts.begin(), texts.end(), [&](std::string_view text) {
    return reason.find(text) != std::string_view::npos;
  });
}
constexpr std::chrono::milliseconds mismatch_confirm(3'500);

// A complaint that explains why nothing works, as opposed to one broker of many being away.
bool is_root_cause(rd_kafka_resp_err_t code, std::string_view reason) {
  return code == RD_KAFKA_RESP_ERR__AUTHENTICATION ||
         (code == RD_KAFKA_RESP_ERR__SSL && !looks_like_mismatch(reason));
}

bool is_starting(rd_kafka_resp_err_t code) {
  return code == RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS ||
         code == RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE ||
         code == RD_KAFKA_RESP_ERR_NOT_COORDINATOR;
}

// How long a cluster of which no broker can be connected to is tried.
constexpr std::chrono::milliseconds all_down_patience(3'000);

// Before this version, what librdkafka says in SCRAM is not what brokers of Kafka 4 want to hear.
constexpr int scram_version = 0x02060100;
constexpr std::string_view scram_advice =
    "; or it is right: before 2.6.1 librdkafka's SCRAM does not work with Kafka 4, so use a newer "
    "one or sasl.mechanism=PLAIN over TLS";

// A broker that comes back is found soon.
constexpr const char* reconnect_ms_max = "1000";

bool has_broken_scram(const Address& address) {
  std::string mechanism;
  for (const auto& [name, value] : address.properties)
    if (name == "sasl.mechanism" || name == "sasl.mechanisms") mechanism = value;
  return mechanism.starts_with("SCRAM") && rd_kafka_version() < scram_version;
}

// Settings that did not make a client should stay ours, but librdkafka (seen with 2.0.2) has freed
// some of their values by then: destroying them is a crash. So they are kept; there are few, since
// nobody tries the same ones again.
void give_up(rd_kafka_conf_t* settings) {
  static std::mutex mutex;
  static auto& given_up = *new std::vector<rd_kafka_conf_t*>;  // to the end of the process
  const std::lock_guard lock(mutex);
  given_up.push_back(settings);
}

}  // namespace

Result<std::shared_ptr<Client>> Client::make(rd_kafka_type_t type, const Address& address,
                                             const Settings& ours, const Prepare& prepare,
                                             void* opaque) {
  Conf conf(rd_kafka_conf_new());
  const std::string where = address.where();
  ONCE_TRY(set(*conf, "client.id", "once", where));
  ONCE_TRY(set(*conf, "reconnect.backoff.max.ms", reconnect_ms_max, where));
  ONCE_TRY(set(*conf, "bootstrap.servers", address.hosts, where));
  for (const auto& [name, value] : address.properties) ONCE_TRY(set(*conf, name, value, where));
  for (const auto& [name, value] : ours) ONCE_TRY(set(*conf, name, value, where));
  std::shared_ptr<Client> client(new Client(address, opaque));
  rd_kafka_conf_set_opaque(conf.get(), client.get());
  rd_kafka_conf_set_error_cb(conf.get(), on_error);
  rd_kafka_conf_interceptor_add_on_new(conf.get(), "once", on_new, client.get());
  std::array<char, 16> debug{};
  std::size_t debug_size = debug.size();
  if (rd_kafka_conf_get(conf.get(), "debug", debug.data(), &debug_size) != RD_KAFKA_CONF_OK ||
      debug[0] == '\0')
    rd_kafka_conf_set_log_cb(conf.get(), discard_log);
  if (prepare) prepare(*conf);
  std::array<char, 512> text{};
  rd_kafka_conf_t* const settings = conf.release();
  client->handle_ = rd_kafka_new(type, settings, text.data(), text.size());
  if (client->handle_ != nullptr) return client;  // the settings are the client's now
  give_up(settings);
  std::string reason = text.data();
  while (reason.ends_with('\n')) reason.pop_back();
  return fail(Remedy::stop, "url", fmt::format("{}: {}", where, reason));
}

Client::Client(const Address& address, void* opaque)
    : where_(address.where()), scram_broken_(has_broken_scram(address)), opaque_(opaque) {}

Client::~Client() {
  if (handle_ != nullptr) rd_kafka_destroy(handle_);
}

bool Client::Complaint::is_root_cause() const { return kafka::is_root_cause(code, text); }

bool Client::Complaint::is_protocol_mismatch() const {
  return mismatch_since && steady_clock::now() - *mismatch_since >= mismatch_confirm;
}

void Client::on_error(rd_kafka_t*, int number, const char* reason, void* opaque) {
  Client& client = of(opaque);
  const std::lock_guard lock(client.mutex_);
  Complaint& last = client.complaint_;
  auto code = static_cast<rd_kafka_resp_err_t>(number);
  if (code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) {
    last.all_down = true;
    if (!last.text.empty()) return;  // that says nothing but that there were complaints
  } else if (!looks_like_mismatch(reason)) {
    last.mismatch_since.reset();
  } else if (!last.mismatch_since) {
    last.mismatch_since = steady_clock::now();
  }
  // librdkafka calls it a matter of transport when it finds out early enough.
  if (std::string_view(reason).find("certificate verify failed") != std::string_view::npos)
    code = RD_KAFKA_RESP_ERR__SSL;
  if (last.is_root_cause() && !kafka::is_root_cause(code, reason)) return;
  last.text = reason;
  last.code = code;
}

rd_kafka_resp_err_t Client::on_new(rd_kafka_t* handle, const rd_kafka_conf_t*, void* opaque, char*,
                                   std::size_t) {
  return rd_kafka_interceptor_add_on_broker_state_change(handle, "once", on_broker_state, opaque);
}

// Called by the broker's thread before it connects again. Error events are no substitute: they are
// left out when the same one was told within the last half minute.
rd_kafka_resp_err_t Client::on_broker_state(rd_kafka_t*, std::int32_t, const char*,
                                            const char* name, int port, const char* state,
                                            void* opaque) {
  Client& client = of(opaque);
  const std::string_view now = state;
  if (now != "UP" && now != "DOWN") return RD_KAFKA_RESP_ERR_NO_ERROR;
  const std::string broker = fmt::format("{}:{}", name, port);
  const std::lock_guard lock(client.mutex_);
  if (now == "UP")
    client.connected_.insert(broker);
  else if (client.connected_.erase(broker) > 0)  // others did not connect at all
    ++client.losses_;
  return RD_KAFKA_RESP_ERR_NO_ERROR;
}

Error Client::error(rd_kafka_resp_err_t code, std::string_view what,
                    std::string_view native) const {
  const std::lock_guard lock(mutex_);
  const bool away = error_from_kafka(code, {}, {}).tag == "away";
  if (!away || complaint_.text.empty()) return error_from_kafka(code, where_, what, native);
  const rd_kafka_resp_err_t cause = complaint_.is_root_cause() ? complaint_.code : code;
  Error error = error_from_kafka(cause, where_, what, complaint_.text);
  if (complaint_.code == RD_KAFKA_RESP_ERR__AUTHENTICATION && scram_broken_)
    error.text += scram_advice;
  return error;
}

Error Client::error(const Failure& failure, std::string_view what) const {
  return error(rd_kafka_error_code(failure.get()), what, rd_kafka_error_string(failure.get()));
}

Client::Complaint Client::complaint() {
  rd_kafka_poll(handle_, 0);
  const std::lock_guard lock(mutex_);
  return complaint_;
}

// What was said before a question explains nothing about its answer.
void Client::forget_complaints() {
  const std::lock_guard lock(mutex_);
  complaint_ = {};
}

// Asked again while the coordinator of a group is still starting: librdkafka does not do so itself.
Result<Event> Client::ask(std::string_view what, const Request& request, int wait_ms) {
  constexpr std::chrono::milliseconds pause(100);
  forget_complaints();
  const auto deadline = steady_clock::now() + std::chrono::milliseconds(wait_ms);
  Event event = answer_to(request, deadline);
  while (event && is_starting(rd_kafka_event_error(event.get())) &&
         steady_clock::now() + pause < deadline) {
    std::this_thread::sleep_for(pause);
    event = answer_to(request, deadline);
  }
  if (!event) return fail(error(RD_KAFKA_RESP_ERR__TIMED_OUT, what));
  const rd_kafka_resp_err_t code = rd_kafka_event_error(event.get());
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
    return fail(error(code, what, rd_kafka_event_error_string(event.get())));
  return event;
}

Event Client::answer_to(const Request& request, steady_clock::time_point deadline) {
  constexpr int step_ms = 100;
  const Queue answers(rd_kafka_queue_new(handle_));
  request(answers.get());
  Event event;
  while (!event && steady_clock::now() < deadline) {
    event.reset(rd_kafka_queue_poll(answers.get(), step_ms));
    if (!event && complaint().is_root_cause()) break;
  }
  return event;
}

// Asked again with more and more patience: a call that waits hears no complaints.
Result<Metadata> Client::metadata(rd_kafka_topic_t* one, bool all, std::string_view what,
                                  int wait_ms) {
  forget_complaints();
  const auto began = steady_clock::now();
  const auto deadline = began + std::chrono::milliseconds(wait_ms);
  const rd_kafka_metadata_t* found = nullptr;
  rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR__TIMED_OUT;
  for (int step_ms = 250; steady_clock::now() < deadline; step_ms *= 2) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - steady_clock::now());
    code = rd_kafka_metadata(handle_, all ? 1 : 0, one, &found,
                             std::min(step_ms, static_cast<int>(left.count()) + 1));
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return Metadata(found);
    const Complaint heard = complaint();
    if (heard.is_root_cause() || error_from_kafka(code, {}, {}).tag != "away") break;
    if (heard.is_protocol_mismatch()) return fail(error(RD_KAFKA_RESP_ERR__SSL, what, heard.text));
    const bool gave_up = heard.all_down && !heard.mismatch_since;
    if (gave_up && steady_clock::now() - began >= all_down_patience) break;
  }
  return fail(error(code, what));
}

Status Client::reach() {
  ONCE_TRY(metadata(nullptr, false, "connect"));
  return {};
}

Result<Metadata> Client::topics() { return metadata(nullptr, true, "list the topics"); }

Result<std::uint32_t> Client::partition_count(const std::string& topic, int wait_ms) {
  constexpr std::string_view what = "look up the topic";
  const std::unique_ptr<rd_kafka_topic_t, Free<rd_kafka_topic_destroy>> handle(
      rd_kafka_topic_new(handle_, topic.c_str(), nullptr));
  if (!handle) return fail(error(rd_kafka_last_error(), "name the topic"));
  const Metadata found = ONCE_TRY(metadata(handle.get(), false, what, wait_ms));
  for (int i = 0; i < found->topic_cnt; ++i) {
    const rd_kafka_metadata_topic_t& one = found->topics[i];
    if (topic != one.topic) continue;
    if (one.err != RD_KAFKA_RESP_ERR_NO_ERROR) return fail(error(one.err, what));
    return static_cast<std::uint32_t>(one.partition_cnt);
  }
  return fail(error(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, what));
}

std::string Client::cluster_id() const {
  const std::unique_ptr<char, void (*)(char*)> id(
      rd_kafka_clusterid(handle_, 0), [](char* text) { rd_kafka_mem_free(nullptr, text); });
  return id ? id.get() : "";
}

}  // namespace once::kafka
