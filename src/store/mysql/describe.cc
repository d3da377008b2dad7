// SPDX-License-Identifier: Apache-2.0
// What the server says of a statement that it has prepared.
#include <memory>

#include "store/mysql/connection.h"

namespace once {
namespace {

constexpr unsigned not_preparable = 1295;

struct Close {
  void operator()(MYSQL_STMT* statement) const { mysql_stmt_close(statement); }
};

}  // namespace

// The server does not say of which type a parameter has to be: values are converted when they are
// written.
Result<StatementShape> MysqlConnection::describe(std::string_view statement) {
  StatementShape shape;
  const Pieces pieces = ONCE_TRY(pieces_of(statement));
  if (pieces->is_call()) {
    shape.unchecked = "the server looks at a procedure when it is called";
    return shape;
  }
  const std::unique_ptr<MYSQL_STMT, Close> prepared(mysql_stmt_init(&handle_));
  if (prepared == nullptr) return fail(error(SqlStage::statement, statement));
  const std::string text = pieces->prepared();
  if (mysql_stmt_prepare(prepared.get(), text.data(), text.size()) != 0) {
    const unsigned code = mysql_stmt_errno(prepared.get());
    if (code != not_preparable)
      return fail(
          error(SqlStage::statement, statement,
                {code, mysql_stmt_sqlstate(prepared.get()), mysql_stmt_error(prepared.get())}));
    shape.unchecked = "the server does not prepare statements of this kind";
    return shape;
  }
  shape.parameters.resize(mysql_stmt_param_count(prepared.get()));
  shape.columns.resize(mysql_stmt_field_count(prepared.get()));
  return shape;
}

}  // namespace once
