// `weft compile`: what a module asks for is read once, with types, and checked; what has no effect is said.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "tests/tools/run_command.h"
#include "tools/commands/advise.h"
#include "tools/commands/compile.h"

namespace weft::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kMesh[] = "dist.mesh = #dist.mesh<\"dp=2\">";
constexpr char kSgd[] = "nn.optimizer = {kind = \"sgd\", lr = 0.1 : f64}";

std::string path(const std::string& name) {
  return ::testing::TempDir() + "/weft_compile_command_test_" + name;
}

// A linear model of this width whose module has these attributes.
std::string modelWith(const std::string& attributes, int width = 2) {
  const std::string file = path("model.mlir");
  const std::string n = std::to_string(width);
  std::ofstream(file) << "module attributes {" << attributes << R"(} {
  func.func @step(%x: tensor<4x3xf32> {nn.kind = "input", nn.name = "x"},
                  %w: tensor<3x)"
                      << n << R"(xf32> {nn.kind = "parameter", nn.name = "weight",
                                       nn.init = {distribution = "normal", a = 0.0 : f64, b = 1.0 : f64}})
      -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"}) {
    %y = nn.matmul %x, %w {nn.name = "product"} : (tensor<4x3xf32>, tensor<3x)"
                      << n << R"(xf32>) -> tensor<4x)" << n << R"(xf32>
    %z = nn.tanh %y : (tensor<4x)"
                      << n << R"(xf32>) -> tensor<4x)" << n << R"(xf32>
    %loss = nn.sum %z {dims = array<i64: 0, 1>, keep_dims = false} : (tensor<4x)"
                      << n << R"(xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
})";
  return file;
}

Outcome compile(const std::string& attributes, std::vector<std::string> flags = {}) {
  std::vector<std::string> words = {modelWith(attributes), "-o", path("model.plan")};
  words.insert(words.end(), flags.begin(), flags.end());
  return run(compileCommand, words);
}

std::string bytes(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

struct Refused {
  const char* name;
  std::string attributes;
  std::vector<std::string> says;
};

class CompileRefusesTest : public testing::TestWithParam<Refused> {};

TEST_P(CompileRefusesTest, NamesTheEntry) {
  const Outcome outcome = compile(GetParam().attributes);
  EXPECT_EQ(outcome.status, 1);
  for (const std::string& part : GetParam().says) {
    EXPECT_THAT(outcome.err, HasSubstr(part));
  }
}

Refused entry(const char* name, const std::string& option, std::vector<std::string> says) {
  return {name, std::string(kMesh) + ", " + kSgd + ", nn.options = {" + option + "}", std::move(says)};
}

Refused optimizer(const char* name, const std::string& settings, std::vector<std::string> says) {
  return {name, std::string(kMesh) + ", nn.optimizer = {" + settings + "}", std::move(says)};
}

INSTANTIATE_TEST_SUITE_P(
    Types, CompileRefusesTest,
    testing::Values(
        Refused{"Mesh", "dist.mesh = \"dp=2\"", {"dist.mesh = \"dp=2\"", "#dist.mesh<"}},
        Refused{"MeshSize", "dist.mesh = #dist.mesh<\"dp=32768\">", {"'dp=32768'", "more than 16384 ranks"}},
        Refused{"StageMeshes", "dist.stage_meshes = 3 : i64", {"dist.stage_meshes = 3", "text in quotes"}},
        Refused{"Options", "nn.options = [1]", {"nn.options = [1]", "dictionary"}},
        Refused{"Optimizer", "nn.optimizer = \"sgd\"", {"nn.optimizer = \"sgd\"", "dictionary"}},
        Refused{"Layouts", "nn.layouts = {a = 1}", {"nn.layouts = {a = 1", "list of pairs"}},
        Refused{"LayoutsEntry", "nn.layouts = [\"weight\"]", {"nn.layouts = \"weight\"", "list of pairs"}},
        Refused{"LayoutsPair", "nn.layouts = [[\"weight\"]]", {"nn.layouts = [\"weight\"]", "list of pairs"}},
        Refused{"LayoutsNumber", "nn.layouts = [[\"weight\", 3]]", {"3", "list of pairs"}},
        entry("Zero", "zero = \"1\"", {"nn.options.zero = \"1\"", "integer"}),
        entry("ZeroReal", "zero = 1.0 : f64", {"nn.options.zero = 1.0", "integer"}),
        entry("ZeroWide", "zero = 1 : i128", {"nn.options.zero = 1 : i128", "integer"}),
        entry("ZeroLevel", "zero = 4294967296 : i64", {"zero = ", "0, 1, 2 or 3"}),
        entry("Fill", "default = \"none\"", {"nn.options.default = \"none\"", "\"data_parallel\" or \"replicate\""}),
        entry("Schedule", "schedule = 3 : i64", {"nn.options.schedule = 3", "text"}),
        entry("ScheduleName", "schedule = \"1fb1\"", {"'1fb1' is unknown", "'1f1b'"}),
        entry("Limit", "memory_limit = -1 : i64", {"memoryLimit = -1"}),
        entry("Virtual", "virtual = 2 : i64", {"virtualStages = 2", "1 pipeline stage"}),
        entry("Recompute", "recompute = true", {"nn.options.recompute = true", "text"}),
        entry("RecomputeName", "recompute = \"tahn\"", {"'tahn'", "nearest is 'tanh'"}),
        entry("Regather", "regather = true", {"nn.options.regather = true", "\"keep\" or \"regather\""}),
        entry("GatherBucket", "gather_bucket = -1 : i64", {"gatherBucket = -1"}),
        entry("GatherBucketType", "gather_bucket = \"1\"", {"nn.options.gather_bucket = \"1\"", "integer"}),
        entry("Overlap", "overlap = \"yes\"", {"nn.options.overlap = \"yes\"", "true or false"}),
        entry("Offload", "offload = \"stat\"", {"offload 'stat' is unknown", "'state'"}),
        entry("Clip", "clip_norm = 0x7FF8000000000000 : f64", {"clipNorm = nan"}),
        entry("ClipType", "clip_norm = 1 : i64", {"nn.options.clip_norm = 1", "number"}),
        entry("Outputs", "gradient_outputs = 1 : i64", {"nn.options.gradient_outputs = 1", "true or false"}),
        entry("Unknown", "zeros = 1 : i64", {"unknown entry 'zeros'", "'zero'"}),
        optimizer("Kind", "kind = \"sdg\"", {"'sdg' is unknown"}),
        optimizer("KindType", "kind = 1 : i64", {"nn.optimizer.kind = 1", "text"}),
        optimizer("Rate", "kind = \"sgd\", lr = 0xFFF0000000000000 : f64", {"sgd: lr = -inf"}),
        optimizer("RateType", "kind = \"sgd\", lr = 1 : i64", {"nn.optimizer.lr = 1", "number"}),
        optimizer("OtherKind", "kind = \"sgd\", beta1 = 0.9 : f64", {"no setting 'beta1'"}),
        optimizer("UnknownSetting", "kind = \"sgd\", rate = 0.9 : f64", {"unknown entry 'rate'"}),
        optimizer("Group", "kind = \"sgd\", groups = [\"w\"]", {"nn.optimizer.groups = \"w\"", "an entry ["}),
        optimizer("Groups", "kind = \"sgd\", groups = {}", {"nn.optimizer.groups = {}", "a list"}),
        optimizer("GroupEntry", "kind = \"sgd\", groups = [[\"w\", {rate = 1.0}]]", {"unknown entry 'rate'"}),
        optimizer("GroupFactor", "kind = \"sgd\", groups = [[\"w*\", {lr_factor = -1.0}]]",
                  {"group 'w*': lr_factor = -1"}),
        optimizer("GroupPattern", "kind = \"sgd\", groups = [[\"weigth\", {frozen = true}]]",
                  {"groups: no parameter matches 'weigth'", "'weight'"}),
        optimizer("Centered", "kind = \"rmsprop\", centered = 1.0", {"nn.optimizer.centered = 1.0", "true or"}),
        optimizer("Nesterov", "kind = \"sgd\", nesterov = \"yes\"", {"nn.optimizer.nesterov = \"yes\"", "true or"})),
    [](const auto& info) { return std::string(info.param.name); });

TEST(CompileTest, PatternOfAParameter) {
  const std::string rest = std::string(kMesh) + ", " + kSgd;
  EXPECT_EQ(compile(rest + ", nn.layouts = [[\"w*\", \"[{},{}]\"]]").status, 0);
  EXPECT_THAT(compile(rest + ", nn.layouts = [[\"wieght\", \"[{},{}]\"]]").err,
              AllOf(HasSubstr("'wieght'"), HasSubstr("nearest is 'weight'")));
}

TEST(CompileTest, FlagsCountBeforeTheModule) {
  const std::string rest = std::string(kMesh) + ", " + kSgd;
  EXPECT_EQ(compile(rest, {"--mesh", "dp=4", "--micro", "1", "--zero", "1"}).status, 0);
  const std::string flagged = bytes(path("model.plan"));
  EXPECT_EQ(compile("dist.mesh = #dist.mesh<\"dp=4\">, nn.options = {zero = 1 : i64}, " + std::string(kSgd)).status, 0);
  EXPECT_EQ(bytes(path("model.plan")), flagged);
  EXPECT_THAT(compile(rest, {"--zero", "4"}).err, HasSubstr("zero = 4"));
  EXPECT_THAT(compile(rest, {"--micro", "0"}).err, HasSubstr("micro = 0"));
  EXPECT_THAT(compile(rest, {"--micro", "-2"}).err, HasSubstr("micro = -2"));
  EXPECT_THAT(compile(rest, {"--mesh", "dp=2,micro=2"}).err, HasSubstr("time axis"));
  EXPECT_THAT(compile(rest, {"--mesh", "dp=2", "--stage-meshes", "dp=2;dp=1"}).err, HasSubstr("both given"));
}

TEST(CompileTest, SaysTheLevelThatWasGiven) {
  EXPECT_THAT(compile(kMesh, {"--zero", "7"}).err, HasSubstr("zero = 7; the ZeRO level is 0, 1, 2 or 3"));
}

// As `weft plan` says it: the plan that needs least.
TEST(CompileTest, NamesThePlanThatNeedsLeastInModeAuto) {
  const std::string model = std::string("dist.mesh = #dist.mesh<\"2\">, ") + kSgd;
  EXPECT_THAT(compile(model, {"--mode", "auto", "--memory-limit", "100"}).err,
              AllOf(HasSubstr("no plan fits in 100 bytes per rank; the least that was found needs "),
                    HasSubstr(" (dp="), HasSubstr("allow as much, or give more devices")));
}

TEST(CompileTest, NamesTheFileThatIsOfAnotherKind) {
  const std::string record = path("cut.json");
  std::ofstream(record) << "{\"mesh\": \"dp=2";
  EXPECT_THAT(compile(kMesh, {"--decisions", record}).err,
              AllOf(HasSubstr(record + ": decisions: no JSON"), HasSubstr("give a whole record")));
  const std::string data = path("data.plan");
  std::ofstream(data) << std::string("\x08\0\x12", 3);
  EXPECT_THAT(run(compileCommand, {data, "-o", path("model.plan")}).err,
              AllOf(HasSubstr(data + ": error: no module"), HasSubstr("3 bytes")));
}

TEST(CompileTest, MicroBatchesStandInTheMeshOfAModule) {
  EXPECT_EQ(compile("dist.mesh = #dist.mesh<\"dp=2,micro=2\">, " + std::string(kSgd)).status, 0);
  const std::string module = bytes(path("model.plan"));
  EXPECT_EQ(compile(std::string(kMesh) + ", " + kSgd, {"--micro", "2"}).status, 0);
  EXPECT_EQ(bytes(path("model.plan")), module);
  // Another mesh keeps them.
  EXPECT_EQ(compile("dist.mesh = #dist.mesh<\"dp=4,micro=2\">, " + std::string(kSgd), {"--mesh", "dp=2"}).status, 0);
  EXPECT_EQ(bytes(path("model.plan")), module);
}

// Those of planner/request.h, which the C++ API has.
TEST(CompileTest, WhatIsAbsentHasTheDefaults) {
  const std::string mesh = std::string(kMesh) + ", ";
  ASSERT_EQ(compile(mesh + "nn.optimizer = {kind = \"adamw\"}").status, 0);
  const std::string plan = bytes(path("model.plan"));
  const std::string settings = "lr = 1.0e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1.0e-8, weight_decay = ";
  const std::string options = "nn.options = {schedule = \"auto\", recompute = \"auto\", regather = \"keep\"}, ";
  ASSERT_EQ(compile(mesh + options + "nn.optimizer = {kind = \"adamw\", " + settings + "0.01}").status, 0);
  EXPECT_EQ(bytes(path("model.plan")), plan);
  ASSERT_EQ(compile(mesh + options + "nn.optimizer = {kind = \"adamw\", " + settings + "0.0}").status, 0);
  EXPECT_NE(bytes(path("model.plan")), plan);
}

TEST(CompileTest, SaysWhatHasNoEffect) {
  const Outcome outcome = compile(std::string(kMesh) + ", " + kSgd + ", nn.options = {schedule = \"gpipe\"}");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.err, HasSubstr("note: schedule = 'gpipe' has no effect"));
  EXPECT_THAT(compile(std::string(kMesh) + ", " + kSgd).err, IsEmpty());
}

// Ranks have one queue.
TEST(CompileTest, LeavesOverlapOut) {
  const Outcome outcome =
      compile(std::string(kMesh) + ", " + kSgd + ", nn.options = {overlap = true, machine = \"a100-80g\"}");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.err, HasSubstr("note: overlap is left out of what is compiled"));
  EXPECT_THAT(bytes(path("model.plan")),
              AllOf(Not(HasSubstr("\"overlap\": true")), Not(HasSubstr("\"overlap\":true"))));
}

TEST(CompileTest, LeavesOffloadOut) {
  const Outcome outcome =
      compile(std::string(kMesh) + ", " + kSgd + ", nn.options = {offload = \"auto\", machine = \"a100-80g\"}");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.err, HasSubstr("note: offload is left out of what is compiled"));
  EXPECT_THAT(bytes(path("model.plan")), Not(HasSubstr("\"offload\"")));
}

TEST(CompileTest, FlagsOfWhatIsDecidedComeTooLate) {
  const std::string dumps = path("dumps");
  ASSERT_EQ(compile(std::string(kMesh) + ", " + kSgd, {"--dump-dir", dumps}).status, 0);
  const std::string whole = bytes(path("model.plan"));
  const std::string decided = dumps + "/04-decide.mlir";
  ASSERT_NE(bytes(decided), "");
  EXPECT_EQ(run(compileCommand, {decided, "-o", path("resumed.plan")}).status, 0);
  EXPECT_EQ(bytes(path("resumed.plan")), whole);
  EXPECT_THAT(run(compileCommand, {dumps + "/00-input.mlir", "-o", path("resumed.plan")}).err, IsEmpty());
  const Outcome outcome = run(compileCommand, {decided, "-o", path("resumed.plan"), "--zero", "1"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("--zero comes too late"), HasSubstr("'decide'")));
}

// What would lower the memory is asked of a logical module, with the flags of `weft compile`.
TEST(AdviseCommand, SaysWhatWouldLowerThePeak) {
  const std::string model = modelWith(std::string(kMesh) + R"(, nn.optimizer = {kind = "adamw", lr = 0.1 : f64})", 256);
  const Outcome text = run(adviseCommand, {model});
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("bytes, predicted"), HasSubstr("--zero 1")));
  const Outcome more = run(adviseCommand, {model, "--zero", "1", "--json"});
  EXPECT_EQ(more.status, 0) << more.err;
  EXPECT_THAT(more.out, AllOf(HasSubstr("\"peak_bytes_per_rank\""), Not(HasSubstr("--zero 1"))));
}

TEST(AdviseCommand, RefusesWhatHasNothingToAsk) {
  const Outcome forward = run(adviseCommand, {modelWith(kMesh)});
  EXPECT_EQ(forward.status, 1);
  EXPECT_THAT(forward.err, HasSubstr("has no optimizer"));
  const std::string attributes = std::string(kMesh) + ", " + kSgd;
  const std::string dump = path("advise_dump");
  ASSERT_EQ(compile(attributes, {"--dump-dir", dump}).status, 0);
  const Outcome late = run(adviseCommand, {dump + "/04-decide.mlir"});
  EXPECT_EQ(late.status, 1);
  EXPECT_THAT(late.err, HasSubstr("give the logical module, 00-input.mlir"));
  EXPECT_EQ(run(adviseCommand, {dump + "/00-input.mlir"}).status, 0);
  const Outcome wrong = run(adviseCommand, {modelWith(attributes), "--zero", "7"});
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(wrong.err, HasSubstr("zero"));
}

}  // namespace
}  // namespace weft::tools
