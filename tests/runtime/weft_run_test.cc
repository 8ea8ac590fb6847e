// The program weft-run on a plan written by hand, with the built-in kernels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <limits>

#include "kernels/describe/describe.h"
#include "nlohmann/json.hpp"
#include "runtime/io/safetensors.h"
#include "runtime/plan/plan_file.h"
#include "tests/runtime/hostile/hostile_plan.h"
#include "tests/runtime/plan_builder.h"
#include "tests/support/process.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string temporary(const std::string& name) {
  return ::testing::TempDir() + "/weft_run_" + name;
}

struct Finished {
  int status = -1;
  std::string text;  // stdout and stderr
};

Finished runProgram(const std::string& arguments) {
  Finished finished;
  std::FILE* pipe = popen((std::string(WEFT_RUN) + " " + arguments + " 2>&1").c_str(), "r");
  std::array<char, 4096> part;
  while (const size_t count = std::fread(part.data(), 1, part.size(), pipe)) {
    finished.text.append(part.data(), count);
  }
  const int status = pclose(pipe);
  finished.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return finished;
}

// w += x on two ranks; total = w of the first row as a scalar output.
std::string writtenPlan() {
  PlanBuilder b(2, 1);
  const uint32_t x = b.buffer(plan::INPUT, DType::kF32, {2});
  const uint32_t w = b.buffer(plan::PARAMETER, DType::kF32, {2});
  const uint32_t one = b.buffer(plan::OUTPUT, DType::kF32, {});
  b.named("x", plan::TENSOR_INPUT, x, {4}, 0);
  b.named("w", plan::TENSOR_PARAMETER, w, {4}, 0);
  b.named("one", plan::TENSOR_OUTPUT, one, {}, -1);
  const uint32_t constant = b.buffer(plan::CONSTANT, DType::kF32, {});
  const float half = 0.5;
  b.raw().mutable_buffers(static_cast<int>(constant))->set_data(&half, sizeof(half));
  b.kernel(1, "add", {w, x}, {w});
  b.kernel(1, "add", {constant, constant}, {one});
  const std::string path = temporary("a.plan");
  EXPECT_TRUE(writePlan(b.build(), path).ok());
  return path;
}

std::vector<char> bytesOf(const std::vector<float>& values) {
  const char* data = reinterpret_cast<const char*>(values.data());
  return std::vector<char>(data, data + values.size() * sizeof(float));
}

TEST(WeftRun, RunsStepsFromFiles) {
  const std::string plan = writtenPlan();
  const std::string data = temporary("data.safetensors");
  const std::string init = temporary("init.safetensors");
  const std::string saved = temporary("saved.safetensors");
  ASSERT_TRUE(writeSafetensors(data, {{"0.x", DType::kF32, {4}, bytesOf({1, 2, 3, 4})},
                                      {"1.x", DType::kF32, {4}, bytesOf({10, 20, 30, 40})}})
                  .ok());
  ASSERT_TRUE(writeSafetensors(init, {{"w", DType::kF32, {4}, bytesOf({100, 200, 300, 400})}}).ok());
  const std::string files = plan + " --data " + data + " --init " + init;
  const Finished finished =
      runProgram(files + " --save " + saved + " --print w,one --json --memory --trace " + temporary("trace.json"));
  ASSERT_EQ(finished.status, 0) << finished.text;
  const nlohmann::json result = nlohmann::json::parse(finished.text, nullptr, false);
  ASSERT_TRUE(result.is_object()) << finished.text;
  ASSERT_EQ(result["steps"].size(), 2u);
  EXPECT_EQ(result["steps"][1]["w"], (nlohmann::json{111, 222, 333, 444}));
  EXPECT_EQ(result["steps"][1]["one"], 1.0);
  EXPECT_EQ(result["memory"]["planned"], 2 * result["memory"]["planned_per_rank"].get<int64_t>());
  EXPECT_EQ(SafetensorsFile::open(saved)->read("w").value(), bytesOf({111, 222, 333, 444}));
  EXPECT_TRUE(std::ifstream(temporary("trace.json")).good());

  const Finished people = runProgram(files + " --steps 1");
  EXPECT_EQ(people.status, 0);
  EXPECT_NE(people.text.find("one 1.0"), std::string::npos) << people.text;
  const Finished more = runProgram(files + " --steps 3");
  EXPECT_EQ(more.status, 1);
  EXPECT_NE(more.text.find("2.x"), std::string::npos) << more.text;
}

// Rank 1 multiplies matrices while rank 0 waits for it.
TEST(WeftRun, GivesUpWaitingAndSaysWhereAllAre) {
  PlanBuilder b(2, 1);
  const uint32_t x = b.buffer(plan::INPUT, DType::kF32, {512, 512});
  const uint32_t y = b.buffer(plan::TRANSIENT, DType::kF32, {512, 512});
  const uint32_t sum = b.buffer(plan::OUTPUT, DType::kF32, {});
  b.collective(1, plan::ALL_REDUCE, {sum}, {sum})->set_group_set(b.allRanks());
  plan::Function* slow = b.raw().add_functions();
  slow->set_name("slow");
  for (int i = 0; i < 10; ++i) {
    plan::Instruction* product = b.kernel(2, "matmul", {x, x}, {y});
    product->set_label("h0.product");
  }
  plan::RankSchedule* late = b.raw().mutable_schedules(1);
  late->add_step()->set_function(2);
  late->mutable_step()->SwapElements(0, 1);
  const std::string path = temporary("slow.plan");
  ASSERT_TRUE(writePlan(b.build(describe({"matmul",
                                          {{DType::kF32, {512, 512}}, {DType::kF32, {512, 512}}},
                                          {{DType::kF32, {512, 512}}},
                                          {},
                                          0},
                                         Target::kCpu)
                                    .workspaceBytes),
                        path)
                  .ok());
  EXPECT_EQ(runProgram(path).status, 0);
  const Finished finished = runProgram(path + " --timeout 0.001");
  EXPECT_EQ(finished.status, 1) << finished.text;
  for (const char* part : {"rank 0, operator collective.label (model.cc:42), kernel ALL_REDUCE", "not there: rank 1",
                           "rank 1 is at operator h0.product (model.cc:42), kernel matmul"}) {
    EXPECT_NE(finished.text.find(part), std::string::npos) << part << " is not in " << finished.text;
  }
  EXPECT_NE(runProgram("--help").text.find("default: 600"), std::string::npos);
}

// Plans of two submeshes that say something else outside than inside.
TEST(WeftRun, SavesOrRefusesPlansOfSeveralSubmeshes) {
  const std::string path = temporary("submeshes.plan");
  const std::string saved = temporary("submeshes.safetensors");
  ASSERT_TRUE(writePlan(hostile::boxedPlan(), path).ok());
  const Finished right = runProgram(path + " --save " + saved + " --print w,loss --steps 2");
  EXPECT_EQ(right.status, 0) << right.text;
  EXPECT_EQ(SafetensorsFile::open(saved)->read("w")->size(), 32u);
  const std::vector<hostile::Case> cases = hostile::channelCases();
  for (size_t i = 0; i < cases.size(); i += 4) {
    if (cases[i].mayRun) {
      continue;
    }
    ASSERT_TRUE(writePlan(cases[i].plan, path).ok());
    const Finished finished = runProgram(path + " --save " + saved + " --init " + saved + " --timeout 20");
    EXPECT_EQ(finished.status, 1) << cases[i].name << "\n" << finished.text;
    EXPECT_NE(finished.text.find("weft-run: "), std::string::npos) << cases[i].name << "\n" << finished.text;
  }
}

TEST(WeftRun, RefusesMoreMemoryThanThereIs) {
  PlanBuilder b(1, 1);
  const std::string path = temporary("large.plan");
  ASSERT_TRUE(writePlan(b.build(int64_t{1} << 48), path).ok());
  const Finished finished = runProgram(path);
  EXPECT_EQ(finished.status, 1);
  EXPECT_NE(finished.text.find("region WORKSPACE: no 281474976710656 bytes"), std::string::npos) << finished.text;
}

TEST(WeftRun, ExplainsWrongCalls) {
  const std::string plan = writtenPlan();
  EXPECT_EQ(runProgram("").status, 2);
  EXPECT_EQ(runProgram("--help").status, 0);
  EXPECT_EQ(runProgram(plan + " --stepz 2").status, 2);
  EXPECT_EQ(runProgram(plan + " --steps many").status, 1);
  for (const char* wrong : {"soon", "-1", "nan", "inf", "1e300"}) {
    EXPECT_EQ(runProgram(plan + " --timeout " + wrong).status, 1) << wrong;
  }
  EXPECT_EQ(runProgram(plan + " --timeout 0").status, 0);
  EXPECT_NE(runProgram("/dev/zero").text.find("not a plan file"), std::string::npos);
  EXPECT_EQ(runProgram(plan + " --print nothing").status, 1);
  EXPECT_EQ(runProgram("/no/such/file.plan").status, 1);
}

// w += x; the loss is x: what the data say.
std::string planWithLoss() {
  PlanBuilder b(1, 1);
  const uint32_t x = b.buffer(plan::INPUT, DType::kF32, {});
  const uint32_t w = b.buffer(plan::PARAMETER, DType::kF32, {});
  const uint32_t loss = b.buffer(plan::OUTPUT, DType::kF32, {});
  const uint32_t zero = b.buffer(plan::TRANSIENT, DType::kF32, {});
  b.named("x", plan::TENSOR_INPUT, x, {}, -1);
  b.named("w", plan::TENSOR_PARAMETER, w, {}, -1);
  b.named("loss", plan::TENSOR_OUTPUT, loss, {}, -1);
  b.kernel(1, "add", {w, x}, {w});
  b.kernel(1, "add", {x, zero}, {loss});
  const std::string path = temporary("loss.plan");
  EXPECT_TRUE(writePlan(b.build(), path).ok());
  return path;
}

TEST(WeftRun, EndsAtALossThatIsNotFinite) {
  const std::string plan = planWithLoss();
  const std::string data = temporary("nan.safetensors");
  const std::string saved = temporary("diverged.safetensors");
  std::remove(saved.c_str());
  ASSERT_TRUE(writeSafetensors(data, {{"0.x", DType::kF32, {}, bytesOf({1})},
                                      {"1.x", DType::kF32, {}, bytesOf({-std::numeric_limits<float>::quiet_NaN()})},
                                      {"2.x", DType::kF32, {}, bytesOf({1})}})
                  .ok());
  const Finished finished = runProgram(plan + " --data " + data + " --save " + saved);
  EXPECT_EQ(finished.status, 1);
  EXPECT_THAT(finished.text, AllOf(HasSubstr("loss nan"), HasSubstr("the loss of step 1 is not finite (nan)")));
  EXPECT_FALSE(std::ifstream(saved).good());
  const Finished named = runProgram(plan + " --check-finite --data " + data);
  EXPECT_EQ(named.status, 1);
  EXPECT_THAT(named.text, HasSubstr("rank 0, operator add.label (model.cc:42), kernel add: output 0"));
  const std::string init = temporary("nan_init.safetensors");
  ASSERT_TRUE(writeSafetensors(init, {{"w", DType::kF32, {}, bytesOf({std::numeric_limits<float>::infinity()})}}).ok());
  const Finished refused = runProgram(plan + " --init " + init + " --save " + saved);
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.text, HasSubstr("'w': 1 of 1 values, the first is inf"));
  EXPECT_EQ(runProgram(plan + " --save-nonfinite --init " + init + " --save " + saved).status, 0);
  EXPECT_TRUE(SafetensorsFile::open(saved).ok());
}

TEST(WeftRun, SavesWhenASignalStopsIt) {
  const std::string plan = planWithLoss();
  const std::string saved = temporary("stopped.safetensors");
  testing::Process process(WEFT_RUN, {plan, "--steps", "1000000000", "--save", saved}, {.output = temporary("log")});
  ASSERT_TRUE(process.waitFor("step 10 "));
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait(), 128 + SIGTERM);
  EXPECT_TRUE(process.exited());
  EXPECT_THAT(process.output(), HasSubstr(" of 1000000000; parameters saved to " + saved));
  EXPECT_TRUE(SafetensorsFile::open(saved).ok());
}

TEST(WeftRun, RefusesPathsBeforeTheFirstStep) {
  const std::string plan = planWithLoss();
  for (const std::string flag : {" --save ", " --trace "}) {
    const Finished refused = runProgram(plan + flag + plan + "/x");
    EXPECT_EQ(refused.status, 1);
    EXPECT_THAT(refused.text,
                AllOf(HasSubstr("cannot write '" + plan + "/x': Not a directory"), Not(HasSubstr("step"))));
  }
  EXPECT_EQ(runProgram(plan + " >/dev/full").status, 1);
}

TEST(WeftRun, RefusesStepsThatDoNotExist) {
  const std::string plan = writtenPlan();
  const std::string data = temporary("steps.safetensors");
  for (const std::string step : {"9223372036854775807", "-1", "1099511627776"}) {
    ASSERT_TRUE(writeSafetensors(data, {{step + ".x", DType::kF32, {4}, bytesOf({1, 2, 3, 4})}}).ok());
    const Finished finished = runProgram(plan + " --data " + data);
    EXPECT_EQ(finished.status, 1);
    EXPECT_NE(finished.text.find("'" + step + ".x' is of step " + step), std::string::npos) << finished.text;
  }
}

}  // namespace
}  // namespace weft
