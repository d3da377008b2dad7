// SPDX-License-Identifier: Apache-2.0
// once init: the stories of examples/run, ready to be run.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "program.h"
#include "testing/scratch.h"

namespace once {
namespace {

using testing::Answer;
using testing::Json;
using testing::run_once;

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Init : public ::testing::Test {
 protected:
  void TearDown() override {
    ::unsetenv("DIR");
    ::unsetenv("AT_END");
  }
  std::string place(const std::string& story) const { return scratch_.path(story); }
  Answer init(const std::string& story) {
    return run_once({"init", story, "--dir", place(story), "-o", "json"});
  }

  void expect_runs(const std::string& story, const std::string& pipeline) {
    const std::string file = place(story) + "/" + pipeline + ".toml";
    const Answer checked = run_once({"run", file, "--check"});
    EXPECT_EQ(checked.exit_code, 0) << checked.err;
    const Answer ran = run_once({"run", file, "-o", "json", "--quiet"});
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_GT(ran.json()["applied"], 0) << ran.out;
  }

  testing::Scratch scratch_;
};

// Also those that come with another one.
TEST_F(Init, every_example_is_a_story_or_comes_with_one) {
  std::set<std::string> examples, made;
  for (const auto& entry : std::filesystem::directory_iterator(ONCE_EXAMPLES))
    if (entry.path().extension() == ".toml") examples.insert(entry.path().filename());
  for (const Json& story : run_once({"init", "-o", "json"}).json()) {
    const std::string name = story["story"];
    EXPECT_EQ(init(name).exit_code, 0) << name;
    for (const auto& entry : std::filesystem::directory_iterator(place(name)))
      if (entry.path().extension() == ".toml") made.insert(entry.path().filename());
  }
  EXPECT_EQ(made, examples);
}

TEST_F(Init, every_story_is_the_file_of_the_examples_and_can_be_run) {
  const Json stories = run_once({"init", "-o", "json"}).json();
  ASSERT_GE(stories.size(), 10u);
  for (const Json& story : stories) {
    const std::string name = story["story"];
    SCOPED_TRACE(name);
    EXPECT_NE(story["about"], "");
    const Answer made = init(name);
    ASSERT_EQ(made.exit_code, 0) << made.err;
    const std::filesystem::path examples(ONCE_EXAMPLES);
    EXPECT_EQ(content_of(place(name) + "/" + name + ".toml"),
              content_of(examples / (name + ".toml")));
    if (name == "counters") continue;  // needs servers
    ::setenv("DIR", (place(name) + "/data").c_str(), 1);
    ::setenv("AT_END", "stop", 1);
    expect_runs(name, name);
    if (name == "shop") expect_runs(name, "warehouse");  // reads what the shop has emitted
  }
}

TEST_F(Init, a_story_comes_with_the_other_pipelines_that_it_names) {
  ASSERT_EQ(init("shop").exit_code, 0);
  EXPECT_TRUE(std::filesystem::exists(place("shop") + "/warehouse.toml"));
  EXPECT_TRUE(std::filesystem::exists(place("shop") + "/data/warehouse.db"));
}

TEST_F(Init, nothing_that_is_there_is_written_over) {
  ASSERT_EQ(init("points").exit_code, 0);
  const std::string file = place("points") + "/points.toml";
  std::ofstream(file) << "mine";
  const Answer again = init("points");
  EXPECT_EQ(again.exit_code, 3);
  EXPECT_EQ(again.error()["tag"], "exists");
  EXPECT_EQ(content_of(file), "mine");
  std::filesystem::create_directory(place("ride"));
  EXPECT_EQ(init("ride").exit_code, 0) << "an empty directory is as good as none";
}

TEST_F(Init, an_unknown_story_is_told_with_those_there_are) {
  const Answer answer = init("pints");
  EXPECT_EQ(answer.exit_code, 2);
  EXPECT_NE(answer.err.find("there is no story \"pints\"; known: clean, counters"),
            std::string::npos)
      << answer.err;
  EXPECT_FALSE(std::filesystem::exists(place("pints")));
}

}  // namespace
}  // namespace once
