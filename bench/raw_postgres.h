// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "peer.h"

typedef struct pg_conn PGconn;
typedef struct pg_result PGresult;

namespace once::bench {

class RawPostgres final : public Peer {
 public:
  explicit RawPostgres(const std::string& url);
  RawPostgres(const RawPostgres&) = delete;
  RawPostgres& operator=(const RawPostgres&) = delete;
  ~RawPostgres() override;

  void run(const std::string& statement) override;
  std::int64_t number(const std::string& statement) override;
  void handle(const Message& message) override;
  void handle_all(std::span<const Message> messages, Dedup dedup) override;
  void fill_ledger(IdKind kind, std::uint64_t rows, std::int64_t scope,
                   const std::function<void(std::uint64_t)>& progress) override;

 private:
  void handle_new(std::span<const Message> messages);
  void pay_all(std::span<const Message> messages);
  void prepare();
  std::int64_t execute(const char* name, std::span<const char* const> values);
  std::int64_t done(PGresult* result);

  PGconn* connection_;
  bool prepared_ = false;
};

}  // namespace once::bench
