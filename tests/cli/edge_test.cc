// SPDX-License-Identifier: Apache-2.0
// The edges of the binary: what it must not show, what it must not obey, and what it does when the
// system gives it nothing more.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "program.h"
#include "run_bank.h"
#include "testing/scratch.h"

namespace once {
namespace {

using testing::Answer;
using testing::Json;
using testing::Program;
using testing::run_once;
using testing::RunBank;
using testing::Scratch;

// --- Secrets

// Words that stand nowhere else. The last characters are those that break URLs.
const std::vector<std::string> secret_words{"Zq7k", "Xw9m"};

void expect_no_secret(const Answer& answer, const std::string& address) {
  EXPECT_NE(answer.exit_code, 0) << address;
  for (const std::string& word : secret_words) {
    EXPECT_EQ(answer.err.find(word), std::string::npos) << address << "\n" << answer.err;
    EXPECT_EQ(answer.out.find(word), std::string::npos) << address << "\n" << answer.out;
  }
}

// None of them can be opened, and all are refused or fail before anybody waits for an answer.
std::vector<std::string> addresses_with_secrets() {
  std::vector<std::string> made;
  for (const std::string joint : {"", "/", "?", "@", "%", "%2F"}) {
    const std::string password = "Zq7k" + joint + "Xw9m";
    for (const std::string scheme : {"postgresql", "mysql", "redis", "kafka", "sqlte", "file"}) {
      made.push_back(scheme + "://me:" + password + "@[::1/db");
      made.push_back(scheme + "://me:" + password + "@localhost:1/db?nonsense=1");
    }
    for (const std::string scheme : {"postgresql", "mysql", "redis"})
      made.push_back(scheme + "://me:" + password + "@[::1]:1/0");
    made.push_back("//me:" + password + "@localhost/db");
    made.push_back("me:" + password + "@localhost/db");
    made.push_back("postgresql://localhost:1/db?nonsense=1&password=" + password);
    made.push_back("kafka://localhost:1/t?nonsense=1&ssl.key.password=" + password);
    made.push_back("host=localhost port=1 password='" + password + "'");
  }
  return made;
}

TEST(Edge, no_password_is_shown_in_any_error) {
  for (const std::string& address : addresses_with_secrets()) {
    expect_no_secret(run_once({"ledger", "ls", "--store", address, "-o", "json"}), address);
    // Not where the parser expects one.
    expect_no_secret(run_once({"demo", address, "--nonsense=" + address}), address);
  }
}

TEST(Edge, no_password_of_a_topic_is_shown_in_any_error) {
  for (const std::string& address : addresses_with_secrets())
    if (address.find("/0") == std::string::npos)
      expect_no_secret(run_once({"topic", "delete", address, "-o", "json"}), address);
}

TEST(Edge, no_password_of_a_file_or_of_the_environment_is_shown) {
  const Scratch scratch;
  const std::string file = scratch.path("p.toml");
  ::setenv("EDGE_STORE", "mysql://me:Zq7k/Xw9m@[::1]:1/db", 1);
  for (const std::string url : {"${EDGE_STORE}", "mysql://me:Zq7k?Xw9m@[::1]:1/db",
                                "host=db password=Zq7k Xw9m", "postgresql://me:Zq7kXw9m@[::1/db"}) {
    std::ofstream(file) << "scope = \"s\"\n[source]\nurl = \"file:" << scratch.path("t")
                        << "\"\nid = \"key\"\n[store]\nurl = \"" << url
                        << "\"\n[[do]]\nsql = \"SELECT 1\"\n";
    expect_no_secret(run_once({"run", file, "-o", "json"}), url);
  }
  ::unsetenv("EDGE_STORE");
}

// A URL where a file, a command or a story is expected, with a parameter that nobody knows.
TEST(Edge, no_misspelled_secret_of_a_misplaced_url_is_shown) {
  for (const std::string name : {"passwort", "pasword", "pw", "parola", "x"}) {
    const std::string url = "postgresql://me@localhost:1/db?" + name + "=Zq7kXw9m&sslmode=no";
    for (const std::vector<std::string>& words : {std::vector<std::string>{"run", url},
                                                  {"help", url},
                                                  {"init", url},
                                                  {url},
                                                  {"topic", url},
                                                  {"ledger", "ls", "--store", url}})
      expect_no_secret(run_once(words), url);
  }
}

// --- The terminal

// What a terminal sees of a command; a terminal of the kernel's makes "\r\n" of each newline.
std::string seen_on_a_terminal(std::vector<std::string> arguments) {
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) {
    std::string name = "once";
    std::vector<char*> words{name.data()};
    for (std::string& argument : arguments) words.push_back(argument.data());
    words.push_back(nullptr);
    ::setenv("TERM", "dumb", 1);
    ::execv(ONCE_BINARY, words.data());
    ::_exit(127);
  }
  std::string seen;
  std::array<char, 4096> buffer;
  for (ssize_t got = 0; (got = ::read(terminal, buffer.data(), buffer.size())) > 0;)
    seen.append(buffer.data(), static_cast<std::size_t>(got));
  ::waitpid(child, nullptr, 0);
  ::close(terminal);
  return seen;
}

// Escape, C1 in both spellings, an override of direction, and a space without width.
const std::vector<std::string> steering{"\x1b", "\xc2\x9b", "\xe2\x80\xae", "\xe2\x80\x8b"};

void expect_harmless(const std::string& text) {
  for (const std::string& one : steering) EXPECT_EQ(text.find(one), std::string::npos) << text;
}

class EdgeTerminal : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(run_once({"topic", "create", url_}).exit_code, 0);
    Json line = {{"id", "i" + evil_}, {"key", "k" + evil_}, {"body", "b" + evil_}};
    line["headers"] = {{"h" + evil_, "v" + evil_}};
    ASSERT_EQ(run_once({"produce", url_, "--json"}, line.dump() + "\n").exit_code, 0);
  }

  const std::string evil_ = "\x1b[31m\xc2\x9b\x33m\xe2\x80\xaetxt\xe2\x80\x8b";
  Scratch scratch_;
  const std::string url_ = "file:" + scratch_.path("orders");
};

TEST_F(EdgeTerminal, messages_are_shown_and_not_obeyed) {
  for (const std::string format : {"table", "json", "jsonl"}) {
    const Answer answer = run_once({"consume", url_, "-o", format});
    EXPECT_EQ(answer.exit_code, 0);
    expect_harmless(answer.out);
  }
  const Json message = run_once({"consume", url_, "-o", "json"}).json();
  EXPECT_EQ(message["id"], "i" + evil_) << "JSON loses nothing";
  EXPECT_EQ(message["body"], "b" + evil_);
  EXPECT_EQ(message["headers"][0]["name"], "h" + evil_);
}

TEST_F(EdgeTerminal, bodies_are_exact_in_a_pipe_and_harmless_on_a_terminal) {
  EXPECT_EQ(run_once({"consume", url_}).out, "b" + evil_ + "\n");
  const std::string seen = seen_on_a_terminal({"consume", url_});
  expect_harmless(seen);
  EXPECT_NE(seen.find("b\\x1b[31m"), std::string::npos) << seen;
  EXPECT_NE(seen.find("\\u{202e}txt\\u{200b}"), std::string::npos) << seen;
}

TEST_F(EdgeTerminal, names_of_files_and_scopes_are_shown_and_not_obeyed) {
  const std::string file = scratch_.path("p" + evil_ + ".toml");
  expect_harmless(run_once({"run", file, "-o", "json"}).err);
  const std::string store = "sqlite:" + scratch_.path("s" + evil_ + ".db");
  const auto write = [&](const std::string& scope) {
    std::ofstream(file) << "scope = \"" << scope << "\"\n[source]\nurl = \"" << url_
                        << "?end=stop\"\nid = \"carried\"\n[store]\nurl = \"sqlite:"
                        << scratch_.path("s.db") << "\"\n[[do]]\nsql = \"SELECT 1\"\n";
  };
  write("s\\u001b\\u009b\\u202e\\u200b");  // no command could name it
  const Answer refused = run_once({"run", file});
  EXPECT_EQ(refused.exit_code, 3) << refused.err;
  write("s\\u202e\\u200b");
  const Answer check = run_once({"run", file, "--check"});
  EXPECT_EQ(check.exit_code, 0) << check.err;
  const Answer ran = run_once({"run", file});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  const Answer listed = run_once({"ledger", "ls", "--store", "sqlite:" + scratch_.path("s.db")});
  EXPECT_EQ(listed.exit_code, 0) << listed.err;
  const Answer traced =
      run_once({"trace", "i" + evil_, "--store", "sqlite:" + scratch_.path("s.db")});
  EXPECT_EQ(traced.exit_code, 0) << traced.err;
  for (const Answer& answer :
       {refused, check, ran, listed, traced, run_once({"trace", evil_, "--store", store}),
        run_once({"nonsense" + evil_}), run_once({"topic", "show", store})}) {
    expect_harmless(answer.out);
    expect_harmless(answer.err);
  }
}

// --- Files that are none

class EdgeFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(::mkfifo(fifo_.c_str(), 0600), 0);
    std::ofstream(large_) << "scope = \"s\"\n";
    std::filesystem::resize_file(large_, std::uintmax_t{2} << 30);
  }

  void expect_refused(const std::vector<std::string>& arguments, const std::string& why) {
    const Answer answer = run_once(arguments);
    EXPECT_TRUE(answer.exit_code == 2 || answer.exit_code == 3) << answer.exit_code << answer.err;
    EXPECT_NE(answer.err.find(why), std::string::npos) << answer.err;
  }

  Scratch scratch_;
  const std::string fifo_ = scratch_.path("fifo");
  const std::string large_ = scratch_.path("large");
};

TEST_F(EdgeFiles, fifo_in_place_of_a_file_is_refused_and_not_waited_for) {
  expect_refused({"run", fifo_}, "is a FIFO");
  expect_refused({"produce", "file:" + scratch_.path("t"), "--file", fifo_}, "is a FIFO");
  expect_refused({"consume", "kafka://localhost:1/t?properties=" + fifo_}, "is a FIFO");
  expect_refused({"ledger", "ls", "--store", "sqlite:" + fifo_}, "is a FIFO");
  expect_refused({"run", scratch_.path("")}, "is a directory");
}

TEST_F(EdgeFiles, sparse_file_of_two_gigabytes_is_refused_before_it_is_read) {
  expect_refused({"run", large_}, "at most 1048576 are read");
  expect_refused({"consume", "kafka://localhost:1/t?properties=" + large_},
                 "at most 1048576 are read");
}

TEST_F(EdgeFiles, store_and_its_lock_are_for_their_owner_only) {
  const mode_t old = ::umask(0022);
  const std::string path = scratch_.path("shop.db");
  const std::string url = "file:" + scratch_.path("orders");
  ASSERT_EQ(run_once({"topic", "create", url}).exit_code, 0);
  const Answer bridged = run_once({"bridge", url, url + "2", "--state", "sqlite:" + path});
  ::umask(old);
  for (const std::string& made : {path, path + "-lock"}) {
    struct stat status {};
    ASSERT_EQ(::stat(made.c_str(), &status), 0) << made << bridged.err;
    EXPECT_EQ(status.st_mode & 0777, 0600u) << made;
  }
}

// --- Nothing more to be had

class EdgeLimits : public RunBank {
 protected:
  void SetUp() override {
    RunBank::SetUp();
    ids_ = send_twice(0, 1000);
  }
  std::string plan(const std::string& lanes) const {
    const std::string path = scratch_.path("plan.toml");
    std::ofstream(path) << head("at_end = \"stop\"\nbatch = 10\nlanes = " + lanes)
                        << "[retry]\nbackoff = \"1ms..20ms\"\n"
                        << deposit();
    return path;
  }
  static Answer run_limited(const std::string& plan, int resource, rlim_t value) {
    Program program({"run", plan, "--stats-every", "1"}, "", {{resource, value}});
    return program.wait();
  }
  // Nothing is lost and nothing is doubled when it is run again without the limit.
  void expect_whole_after_another_run() {
    const Answer again = run_once({"run", plan("2"), "-o", "json"});
    EXPECT_EQ(again.exit_code, 0) << again.err;
    expect_books(ids_);
  }

  Lines ids_;
};

TEST_F(EdgeLimits, threads_that_cannot_be_had_are_an_error_and_no_crash) {
  // Each thread asks for a stack of some megabytes.
  const Answer answer = run_limited(plan("256"), RLIMIT_AS, rlim_t{1} << 30);
  EXPECT_EQ(answer.exit_code, 4) << answer.err;
  EXPECT_NE(answer.err.find("error[exhausted]: no thread"), std::string::npos) << answer.err;
  expect_whole_after_another_run();
}

// With enough for the first messages it waits for memory, and says so until it is stopped.
TEST_F(EdgeLimits, memory_that_cannot_be_had_is_an_error_and_no_crash) {
  constexpr auto patience = std::chrono::seconds(10);
  int failed = 0;
  for (rlim_t mib = 40; mib < 1000; mib += 4) {
    Program program({"run", plan("2"), "--stats-every", "1"}, "", {{RLIMIT_AS, mib << 20}});
    std::promise<void> has_ended;
    std::atomic<bool> was_stopped = false;
    std::thread stopper([&, ended = has_ended.get_future()] {
      if (ended.wait_for(patience) == std::future_status::ready) return;
      was_stopped = true;
      ::kill(program.pid(), SIGTERM);
    });
    const Answer answer = program.wait();
    has_ended.set_value();
    stopper.join();
    if (was_stopped) {
      EXPECT_TRUE(answer.exit_code < 127 || answer.exit_code == 128 + SIGTERM) << answer.err;
      EXPECT_NE(answer.err.find("memory"), std::string::npos)
          << "it waited with " << mib << " MiB: " << answer.err;
      ++failed;
      continue;
    }
    if (answer.exit_code == 127) continue;  // too little to start any program
    EXPECT_LT(answer.exit_code, 127)
        << "it died by a signal with " << mib << " MiB: " << answer.err;
    if (answer.exit_code == 0) break;
    ++failed;
  }
  EXPECT_GT(failed, 0);
  expect_whole_after_another_run();
}

TEST_F(EdgeLimits, disk_that_is_full_after_some_batches_is_told) {
  const Answer answer = run_limited(plan("1"), RLIMIT_FSIZE, 160'000);
  EXPECT_NE(answer.exit_code, 0);
  EXPECT_LT(answer.exit_code, 127) << answer.err;
  EXPECT_NE(answer.err.find("error["), std::string::npos) << answer.err;
  EXPECT_NE(sql("SELECT count(*) FROM flow"), Lines{"0"}) << "it was not full from the start";
  expect_whole_after_another_run();
}

// Each transaction opens the lock of the store.
// Nothing that this process waits for gives handles back to it.
TEST_F(EdgeLimits, handles_that_are_too_few_to_start_are_told_and_not_waited_for) {
  for (rlim_t handles = 6; handles <= 9; ++handles) {
    const Answer answer = run_limited(plan("1"), RLIMIT_NOFILE, handles);
    EXPECT_EQ(answer.exit_code, 4) << handles << ": " << answer.err;
    EXPECT_NE(answer.err.find("error[exhausted]"), std::string::npos) << answer.err;
  }
}

// Enough to read, too few to work or to send: it ends, waits or works, but never without a word.
TEST_F(EdgeLimits, handles_that_are_too_few_to_work_or_to_send_are_told) {
  const std::string done = "file:" + scratch_.path("done");
  ASSERT_EQ(run_once({"topic", "create", done}).exit_code, 0);
  const std::string path = scratch_.path("sending.toml");
  std::ofstream(path) << head("at_end = \"stop\"") << deposit() << "[[emit]]\nto = \"" << done
                      << "\"\n";
  for (rlim_t handles = 10; handles <= 14; handles += 2) {
    Program program({"run", path}, "", {{RLIMIT_NOFILE, handles}});
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    ::kill(program.pid(), SIGTERM);
    const Answer answer = program.wait();
    const bool is_told = answer.err.find("Too many open files") != std::string::npos;
    EXPECT_TRUE(is_told || answer.exit_code == 0) << handles << ": " << answer.err;
  }
  const Answer whole = run_once({"run", path});
  EXPECT_EQ(whole.exit_code, 0) << whole.err;
  expect_books(ids_);
  EXPECT_EQ(run_once({"consume", done}).lines().size(), ids_.size());
}

TEST_F(EdgeLimits, handles_that_run_out_while_it_runs_are_told_and_waited_for) {
  const std::string path = scratch_.path("waiting.toml");
  std::ofstream(path) << head("at_end = \"wait\"") << deposit();
  Program program({"run", path});
  wait_for([&] { return sql("SELECT count(*) FROM flow") == Lines{"1000"}; });
  const rlimit few{3, 3};
  ASSERT_EQ(::prlimit(program.pid(), RLIMIT_NOFILE, &few, nullptr), 0);
  const Lines more = send_twice(1000, 10);
  ids_.insert(ids_.end(), more.begin(), more.end());
  std::this_thread::sleep_for(std::chrono::seconds(4));
  ::kill(program.pid(), SIGTERM);
  const Answer answer = program.wait();
  EXPECT_LT(answer.exit_code, 127) << answer.err;
  EXPECT_NE(answer.err.find("Too many open files"), std::string::npos) << answer.err;
  EXPECT_EQ(sql("SELECT count(*) FROM flow"), Lines{"1000"}) << "nothing of it was done";
  expect_whole_after_another_run();
}

}  // namespace
}  // namespace once
