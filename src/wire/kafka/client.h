// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <librdkafka/rdkafka.h>
#include <once/result.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wire/kafka/address.h"
#include "wire/kafka/error.h"

namespace once::kafka {

// For how long a broker may think about a question.
inline constexpr int answer_ms = 10'000;

// Objects of librdkafka that free themselves.
template <auto free_object>
struct Free {
  template <class T>
  void operator()(T* object) const {
    free_object(object);
  }
};
using Conf = std::unique_ptr<rd_kafka_conf_t, Free<rd_kafka_conf_destroy>>;
using Failure = std::unique_ptr<rd_kafka_error_t, Free<rd_kafka_error_destroy>>;
using Event = std::unique_ptr<rd_kafka_event_t, Free<rd_kafka_event_destroy>>;
using Queue = std::unique_ptr<rd_kafka_queue_t, Free<rd_kafka_queue_destroy>>;
using Metadata = std::unique_ptr<const rd_kafka_metadata_t, Free<rd_kafka_metadata_destroy>>;
using PartitionList =
    std::unique_ptr<rd_kafka_topic_partition_list_t, Free<rd_kafka_topic_partition_list_destroy>>;

using Settings = std::vector<std::pair<std::string, std::string>>;

// A client of a cluster. What the brokers complain about is kept for the next error text, instead
// of being printed.
class Client {
 public:
  // `ours` wins over the properties of the address. `prepare` sets callbacks; their opaque is
  // `opaque`.
  using Prepare = std::function<void(rd_kafka_conf_t&)>;
  static Result<std::shared_ptr<Client>> make(rd_kafka_type_t type, const Address& address,
                                              const Settings& ours, const Prepare& prepare = {},
                                              void* opaque = nullptr);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client();

  rd_kafka_t* get() const { return handle_; }
  void* opaque() const { return opaque_; }
  static Client& of(void* conf_opaque) { return *static_cast<Client*>(conf_opaque); }

  // The error with what the brokers said last, which is often the reason.
  Error error(rd_kafka_resp_err_t code, std::string_view what, std::string_view native = {}) const;
  Error error(const Failure& failure, std::string_view what) const;

  // Finds out whether the cluster can be talked to at all.
  Status reach();
  // Makes a request of the administration and waits for its answer; `what` is for the error. The
  // request may be made several times.
  using Request = std::function<void(rd_kafka_queue_t*)>;
  Result<Event> ask(std::string_view what, const Request& request, int wait_ms = answer_ms);

  // All topics of the cluster.
  Result<Metadata> topics();
  // How many partitions a topic has; one that does not exist is an error.
  Result<std::uint32_t> partition_count(const std::string& topic, int wait_ms = answer_ms);
  // How often a connection to a broker has ended. Whatever arrives over the next connection is
  // counted after its loss was.
  std::uint64_t losses() const { return losses_; }
  // The identity of the cluster; empty before it has answered, and where it has none.
  std::string cluster_id() const;

 private:
  Client(const Address& address, void* opaque);
  // Of one topic, of all, or of none.
  Result<Metadata> metadata(rd_kafka_topic_t* one, bool all, std::string_view what,
                            int wait_ms = answer_ms);
  // The answer to one request; empty when there is none in time.
  Event answer_to(const Request& request, std::chrono::steady_clock::time_point deadline);
  // What the brokers have complained about since `forget_complaints`.
  struct Complaint {
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;
    std::string text = {};
    bool all_down = false;  // no broker can be connected to
    // Since when every connection has ended as if the two sides spoke different protocols.
    std::optional<std::chrono::steady_clock::time_point> mismatch_since = {};

    bool is_root_cause() const;
    bool is_protocol_mismatch() const;
  };
  Complaint complaint();
  void forget_complaints();
  static void on_error(rd_kafka_t* handle, int code, const char* reason, void* opaque);
  static rd_kafka_resp_err_t on_new(rd_kafka_t* handle, const rd_kafka_conf_t* conf, void* opaque,
                                    char* text, std::size_t text_size);
  static rd_kafka_resp_err_t on_broker_state(rd_kafka_t* handle, std::int32_t broker,
                                             const char* protocol, const char* name, int port,
                                             const char* state, void* opaque);

  const std::string where_;
  const bool scram_broken_;  // the broker may refuse the right password
  void* const opaque_;
  rd_kafka_t* handle_ = nullptr;
  std::atomic<std::uint64_t> losses_{0};
  std::set<std::string> connected_;  // brokers; guarded by mutex_
  mutable std::mutex mutex_;         // taken with no other lock
  Complaint complaint_;
};

}  // namespace once::kafka
