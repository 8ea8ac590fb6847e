// Times read from traces whose times are known.

#include "tools/analysis/plan_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "tests/support/staged_plan.h"

namespace weft::tools {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Times in the file are decimal microseconds; what is read back differs by rounding of doubles.
constexpr double kRounding = 1e-12;

class TraceFile {
 public:
  ~TraceFile() { std::remove(path().c_str()); }

  void step(double begin, double end) { event(2, "step", "step", begin, end, ""); }
  void action(int rank, const std::string& function, double begin, double end) {
    event(rank, function, "action", begin, end, function);
  }
  void instruction(int rank, double begin, double end) { event(rank, "label", "kernel", begin, end, "f"); }

  std::string path() const { return ::testing::TempDir() + "/weft_plan_profile_test.json"; }
  absl::StatusOr<PlanProfile> read(const plan::Plan& plan) const {
    std::ofstream(path()) << "{\"traceEvents\":[" << text_ << "]}";
    return readProfile(plan, path());
  }

 private:
  void event(int row, const std::string& name, const std::string& category, double begin, double end,
             const std::string& function) {
    absl::StrAppend(&text_, text_.empty() ? "" : ",", "{\"name\":\"", name, "\",\"cat\":\"", category,
                    "\",\"ph\":\"X\",\"pid\":0,\"tid\":", row, ",\"ts\":", begin, ",\"dur\":", end - begin,
                    ",\"args\":{\"function\":\"", function, "\"}}");
  }

  std::string text_;
};

// The step of SimulatePlanTest.WakingAndTheHostTakeTime, with 500 us of waking where someone waits: microseconds.
void addStep(TraceFile& trace, double at) {
  trace.step(at, at + 28500);
  const auto call = [&](int rank, const char* function, std::vector<double> marks) {
    trace.action(rank, function, at + marks.front(), at + marks.back());
    for (size_t i = 0; i + 1 < marks.size(); ++i) {
      trace.instruction(rank, at + marks[i], at + marks[i + 1]);
    }
  };
  call(0, "FORWARD", {2000, 6000, 7000});
  call(0, "BACKWARD", {7000, 19000, 25000});  // waits for 17500, wakes 500 later, copies for 1000
  call(0, "UPDATE", {25000, 25500});
  call(1, "FORWARD", {2000, 8500, 13500});  // waits for 7000
  call(1, "BACKWARD", {13500, 16500, 17500, 21500});
  call(1, "UPDATE", {21500, 23500, 24500});
}

TEST(PlanProfileTest, WaitsAreToldFromWork) {
  const plan::Plan plan = weft::testing::stagedPlan({{0, 1, 2}, {0, 1, 2}});
  TraceFile trace;
  addStep(trace, 0);
  addStep(trace, 30000);
  const absl::StatusOr<PlanProfile> profile = trace.read(plan);
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->steps, 1);
  EXPECT_NEAR(profile->stepSeconds, 0.0285, kRounding);
  EXPECT_NEAR(profile->hostSeconds, 0.0015, kRounding);
  const auto& times = profile->times;
  EXPECT_NEAR(times.start, 0.002, kRounding);
  EXPECT_NEAR(times.finish, 0.003, kRounding);
  // Nobody ever received without waiting on these channels: what is left of a wait is waking and copy together.
  EXPECT_NEAR(times.wake, 0.0015, kRounding);
  EXPECT_THAT(times.instructions[0][0], ElementsAre(DoubleNear(0.004, kRounding), DoubleNear(0.001, kRounding)));
  EXPECT_THAT(times.instructions[0][1], ElementsAre(0, DoubleNear(0.006, kRounding)));
  EXPECT_THAT(times.instructions[0][2], ElementsAre(DoubleNear(0.0005, kRounding)));
  EXPECT_THAT(times.instructions[1][1],
              ElementsAre(DoubleNear(0.003, kRounding), DoubleNear(0.001, kRounding), DoubleNear(0.004, kRounding)));
  // Both ways of simulating give the executed step back.
  EXPECT_NEAR(profile->replayedSeconds, 0.0285, kRounding);
  EXPECT_NEAR(schedule::simulatePlan(plan, times)->seconds, 0.0285, kRounding);
}

TEST(PlanProfileTest, Refusals) {
  const plan::Plan plan = weft::testing::stagedPlan({{0, 1, 2}, {0, 1, 2}});
  TraceFile once;
  addStep(once, 0);
  EXPECT_THAT(std::string(once.read(plan).status().message()), HasSubstr("less than two whole steps"));
  addStep(once, 30000);
  const plan::Plan other = weft::testing::stagedPlan({{0, 1, 2}, {0, 2, 1}});
  EXPECT_THAT(std::string(once.read(other).status().message()),
              HasSubstr("a call of BACKWARD with 3 instructions where the plan calls UPDATE with 2"));
  EXPECT_THAT(std::string(once.read(plan.submeshes(0)).status().message()), HasSubstr("it has a rank 1"));
  std::ofstream(once.path()) << "{\"traceEvents\":[{\"ph\":\"X\"}]}";
  EXPECT_THAT(std::string(readProfile(plan, once.path()).status().message()), HasSubstr("is no trace of a plan"));
  const auto errorOf = [&](const std::string& events) {
    std::ofstream(once.path()) << "{\"traceEvents\":[" << events << "]}";
    return std::string(readProfile(plan, once.path()).status().message());
  };
  const auto event = [](const std::string& changed, const std::string& args = R"({"function":"f"})") {
    return R"({"ph":"X","ts":1,"dur":1,"cat":"action","name":"f","tid":0,)" + changed + R"("args":)" + args + "}";
  };
  EXPECT_THAT(errorOf("7"), HasSubstr("traceEvents[0]: found 7, expected an object"));
  EXPECT_THAT(errorOf(R"({"ph":"X","ts":1e300,"dur":1})"), HasSubstr("traceEvents[0].ts: found 1e+300"));
  EXPECT_THAT(errorOf(R"({"ph":"X","ts":1,"dur":-1})"), HasSubstr("traceEvents[0].dur: found -1"));
  EXPECT_THAT(errorOf(R"({"ph":"X","ts":1,"dur":1,"cat":"kernel","name":"n","tid":-1})"),
              HasSubstr("traceEvents[0].tid: found -1, expected an integer of at least 0"));
  EXPECT_THAT(errorOf(event("", "[]")), HasSubstr("traceEvents[0].args: found [], expected an object"));
  EXPECT_THAT(errorOf(event("", R"({"function":"f","micro_batch":1.5})")),
              HasSubstr("traceEvents[0].args.micro_batch: found 1.5"));
  EXPECT_THAT(errorOf(event(R"("tid":1,)")), HasSubstr("an object names 'tid' twice"));
  EXPECT_THAT(errorOf(std::string(100'000, '[')), HasSubstr("no JSON"));
  EXPECT_THAT(errorOf(std::string(100'000, '[') + std::string(100'000, ']')), HasSubstr("nested more than 32 deep"));
  EXPECT_THAT(
      errorOf(event("") + R"(,{"ph":"X","ts":0,"dur":1,"cat":"action","name":"f","tid":0,"args":{"function":"g"}})"),
      HasSubstr("rank 0 calls g at 0 s, but stands behind a call at 1e-06 s"));
  EXPECT_THAT(std::string(readProfile(plan, "/nowhere.json").status().message()), HasSubstr("/nowhere.json"));
}

}  // namespace
}  // namespace weft::tools
