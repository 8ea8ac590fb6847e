#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/tools/run_command.h"
#include "tools/commands/schedule.h"

namespace weft::tools {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

Outcome run(const std::vector<std::string>& words) {
  return tools::run(scheduleCommand, words);
}

// A file that lives as long as the test.
class TableFile {
 public:
  explicit TableFile(const std::string& text) : path_(::testing::TempDir() + "/weft_schedule_command_test.csv") {
    std::ofstream(path_) << text;
  }
  ~TableFile() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(ScheduleCommandTest, JsonHasTheAgreedFields) {
  Outcome outcome = run({"--kind", "zb_h1", "--stages", "2", "--micro", "2", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(json::parse(outcome.out), json::parse(R"({
      "orders": [["0F0", "0F1", "0I0", "0W0", "0I1", "0W1"], ["1F0", "1I0", "1F1", "1I1", "1W0", "1W1"]],
      "stage_to_rank": [0, 1], "makespan": 7, "lower_bound": 7, "busy": [6, 6],
      "bubble_ratio": 0.14285714285714285, "peak_in_flight": [2, 2], "deadlock_free": true})"));
}

TEST(ScheduleCommandTest, TimesOfStagesAndVirtualStages) {
  Outcome outcome = run({"--kind=1f1b", "--stages=2", "--micro=1", "--times=f=1/2,i=3,w=4,b=5/6,comm=0.5", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(json::parse(outcome.out)["makespan"], 1 + 0.5 + 2 + 6 + 0.5 + 5);
  outcome = run({"--kind", "interleaved", "--stages", "2", "--virtual", "3", "--micro", "5", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(json::parse(outcome.out)["stage_to_rank"], json::parse("[0,1,0,1,0,1]"));
  outcome = run({"--kind", "zb_v", "--stages", "2", "--micro", "3", "--json"});
  EXPECT_EQ(json::parse(outcome.out)["stage_to_rank"], json::parse("[0,1,1,0]"));
}

TEST(ScheduleCommandTest, CsvCanBeReadBack) {
  Outcome csv = run({"--kind", "v_half", "--stages", "3", "--micro", "5", "--csv"});
  ASSERT_EQ(csv.status, 0) << csv.err;
  TableFile file(csv.out);
  Outcome again = run({"--file", file.path(), "--csv"});
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(again.out, csv.out);
  EXPECT_EQ(run({"--file", file.path(), "--json"}).out,
            run({"--kind", "v_half", "--stages", "3", "--micro", "5", "--json"}).out);
}

TEST(ScheduleCommandTest, TextForPeople) {
  Outcome outcome = run({"--kind", "1f1b", "--stages", "2", "--micro", "2"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("peak in flight"), HasSubstr("makespan 9, lower bound 7"),
                                 HasSubstr("33.33% up to the common end"), HasSubstr("no deadlock")));
  outcome = run({"--kind", "1f1b", "--stages", "2", "--micro", "2", "--timeline"});
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("rank 1  ....1F0 1B0----"), HasSubstr("makespan 9")));
  outcome = run({"--kind", "1f1b", "--stages", "2", "--micro", "2", "--transfers"});
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("SEND 0F0 to rank 1"), HasSubstr("RECV 1B0 from rank 1")));
}

TEST(ScheduleCommandTest, StatusTwoForWrongUse) {
  auto wrong = [](std::vector<std::string> words) {
    Outcome outcome = run(std::move(words));
    EXPECT_EQ(outcome.status, 2) << outcome.out;
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  };
  EXPECT_THAT(wrong({}), HasSubstr("flag '--kind' is missing"));
  EXPECT_THAT(wrong({"--kind", "1f1b", "--micro", "2"}), HasSubstr("flag '--stages' is missing"));
  EXPECT_THAT(wrong({"--file", "x.csv", "--micro", "2"}), HasSubstr("--file and --micro exclude each other"));
  EXPECT_THAT(wrong({"--kind", "1f1b", "--stages", "2", "--micro", "2", "--csv", "--json"}), HasSubstr("exclude"));
  EXPECT_THAT(wrong({"--knid", "1f1b"}), HasSubstr("did you mean '--kind'?"));
  EXPECT_EQ(run({"--help"}).status, 0);
}

TEST(ScheduleCommandTest, StatusOneForWrongValues) {
  auto wrong = [](const std::string& kind, const std::string& stages, const std::string& micro,
                  const std::string& times) {
    Outcome outcome = run({"--kind", kind, "--stages", stages, "--micro", micro, "--times", times});
    EXPECT_EQ(outcome.status, 1) << outcome.out;
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  };
  EXPECT_THAT(wrong("zbh1", "2", "2", ""), HasSubstr("unknown kind of schedule 'zbh1'; known: gpipe, 1f1b"));
  EXPECT_THAT(wrong("1f1b", "0", "2", ""), HasSubstr("--stages '0' is not a number >= 1"));
  EXPECT_THAT(wrong("1f1b", "two", "2", ""), HasSubstr("--stages 'two'"));
  EXPECT_THAT(wrong("dualpipe_v", "2", "3", ""), HasSubstr("use at least 4, or zb_v"));
  EXPECT_THAT(wrong("1f1b", "2", "2", "f"), HasSubstr("'f' has no '='"));
  EXPECT_THAT(wrong("1f1b", "2", "2", "g=1"), HasSubstr("unknown time 'g'"));
  EXPECT_THAT(wrong("1f1b", "2", "2", "f=x"), HasSubstr("'x' of f is not a number"));
  EXPECT_THAT(wrong("1f1b", "2", "2", "f=-1"), HasSubstr("time f is -1"));
  EXPECT_THAT(wrong("1f1b", "2", "2", "f=1/2/3"), HasSubstr("times of 3 stages for a table of 2"));
  EXPECT_THAT(wrong("1f1b", "2", "2", "f=1/2,w=1/2/3"), HasSubstr("w has 3 numbers, another time has 2"));
  EXPECT_THAT(wrong("1f1b", "2", "2", "comm=1/2"), HasSubstr("comm is a single number"));
  Outcome outcome = run({"--kind", "1f1b", "--stages", "2", "--micro", "2", "--virtual", "2"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("use virtual 1, or interleaved"));
}

TEST(ScheduleCommandTest, TablesFromFilesAreChecked) {
  auto wrong = [](const std::string& text) {
    TableFile file(text);
    Outcome outcome = run({"--file", file.path(), "--json"});
    EXPECT_EQ(outcome.status, 1) << outcome.out;
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  };
  EXPECT_THAT(wrong("0F0,0B0\n1F0,1X0\n"), HasSubstr("csv: line 2, column 6: found 'X'"));
  EXPECT_THAT(wrong("0F0,0B0\n1F0,1B0,1W0\n"), HasSubstr("a gradient is computed twice"));
  EXPECT_THAT(wrong("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n"), HasSubstr("the table deadlocks"));
  EXPECT_EQ(run({"--file", "/nonexistent/table.csv"}).status, 1);
}

}  // namespace
}  // namespace weft::tools
