// SPDX-License-Identifier: Apache-2.0
#include "config/action.h"

namespace once {
namespace {

// A command of Redis. Its words are texts with values in them.
class RedisAction final : public Action {
 public:
  struct Piece {
    std::string literal;
    std::optional<std::size_t> value;
  };
  using Word = std::vector<Piece>;

  RedisAction(std::vector<Word> words, ExpectReply expect)
      : words_(std::move(words)), expect_(std::move(expect)) {}

  Result<std::optional<Outcome>> run(MessageValues& values,
                                     Transaction& transaction) const override {
    std::vector<std::string> words;
    for (const Word& word : words_) {
      std::string& made = words.emplace_back();
      for (const Piece& piece : word) {
        made += piece.literal;
        if (piece.value) made += ONCE_TRY(values.present_text(*piece.value));
      }
    }
    ONCE_TRY(transaction.key_value()->command(words, expect_));
    return std::nullopt;
  }

  std::vector<std::string> command() const override {
    std::vector<std::string> words;
    for (const Word& word : words_) {
      std::string& made = words.emplace_back();
      for (const Piece& piece : word) made += piece.literal;
    }
    return words;
  }

 private:
  const std::vector<Word> words_;
  const ExpectReply expect_;
};

}  // namespace

Result<std::unique_ptr<Action>> make_action(const RedisStep& step, const Resolve& resolve,
                                            SqlDialect) {
  std::vector<RedisAction::Word> words;
  for (const auto& pieces : step.words) {
    RedisAction::Word& word = words.emplace_back();
    for (const TemplatePiece& piece : pieces) {
      std::optional<std::size_t> value;
      if (piece.use) value = ONCE_TRY(resolve(*piece.use));
      word.push_back({piece.literal, value});
    }
  }
  ExpectReply expect;
  expect.is = step.reply_is;
  expect.at_least = step.reply_min;
  expect.otherwise = step.otherwise;
  return std::make_unique<RedisAction>(std::move(words), std::move(expect));
}

}  // namespace once
