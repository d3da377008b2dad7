// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "peer.h"

typedef struct st_mysql MYSQL;
typedef struct st_mysql_stmt MYSQL_STMT;

namespace once::bench {

class RawMysql final : public Peer {
 public:
  explicit RawMysql(const std::string& url);
  RawMysql(const RawMysql&) = delete;
  RawMysql& operator=(const RawMysql&) = delete;
  ~RawMysql() override;

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
  MYSQL_STMT* prepare(const std::string& statement);
  void execute(MYSQL_STMT* statement);

  MYSQL* connection_;
  MYSQL_STMT* begin_ = nullptr;
  MYSQL_STMT* insert_ = nullptr;
  MYSQL_STMT* update_ = nullptr;
  MYSQL_STMT* commit_ = nullptr;
};

}  // namespace once::bench
