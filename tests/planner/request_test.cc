// What a user may ask for: each option that makes no sense is refused with its value and a remedy, what has no effect
// is said.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "planner/check_request.h"
#include "planner/open_mesh.h"

namespace weft {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string refusalOf(const CompileOptions& options) {
  return std::string(checkRequest(Request{options, optim::Sgd{}}).message());
}

std::string refusalOf(const Optimizer& optimizer) {
  return std::string(checkRequest(Request{{}, optimizer}).message());
}

struct Refused {
  const char* name;
  CompileOptions options;
  std::vector<std::string> says;  // option, value, remedy
};

class RefusedTest : public testing::TestWithParam<Refused> {};

TEST_P(RefusedTest, NamesOptionValueAndRemedy) {
  const std::string error = refusalOf(GetParam().options);
  for (const std::string& part : GetParam().says) {
    EXPECT_THAT(error, HasSubstr(part));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Options, RefusedTest,
    testing::Values(
        Refused{"NoDevice", {.devices = 0}, {"devices = 0", "from 1 to 16384"}},
        Refused{"NegativeDevices", {.devices = -3}, {"devices = -3", "from 1 to 16384"}},
        Refused{"TooManyDevices", {.devices = 16385}, {"devices = 16385", "from 1 to 16384"}},
        Refused{"TooLargeMesh", {.mesh = "dp=128,tp=256"}, {"'dp=128,tp=256': more than 16384 ranks", "smaller axes"}},
        Refused{
            "OtherDevices", {.mesh = "dp=2", .devices = 4}, {"devices = 4", "'dp=2', which has 2", "leave devices"}},
        Refused{"OpenMeshThatCannotBe",
                {.mesh = "dp=3,tp=?", .devices = 8},
                {"mesh 'dp=3,tp=?' on 8 devices", "change the sizes"}},
        Refused{"OpenMeshWithoutSize", {.mesh = "dp,tp=?", .devices = 8}, {"'dp' is no axis", "name=?"}},
        Refused{"OpenMeshWithOneNameTwice", {.mesh = "dp=?,dp=?", .devices = 8}, {"'dp' is named twice"}},
        Refused{"TimeAxis", {.mesh = "dp=2,micro=4"}, {"'micro' is the time axis", "micro = 4"}},
        Refused{"OnlyTimeAxis", {.mesh = "micro=2"}, {"'micro' is the time axis", "micro = 2"}},
        Refused{"LineOfRanks", {.mesh = "all=4"}, {"'all' is reserved", "choose another"}},
        Refused{"NamelessAxis", {.mesh = "=4"}, {"'' is no axis name"}},
        Refused{"EmptyAxis", {.mesh = "dp=0"}, {"size '0' in 'dp=0'", ">= 1"}},
        Refused{"Overflow", {.mesh = "a=16777216,b=16777216"}, {"b=16777216", "ranks"}},
        Refused{"TwoMeshes", {.mesh = "dp=2", .stageMeshes = "dp=2;dp=1"}, {"'dp=2'", "'dp=2;dp=1'", "both given"}},
        Refused{"StageMeshDevices", {.stageMeshes = "dp=2;dp=1", .devices = 4}, {"3 ranks together", "devices = 4"}},
        Refused{"StageMeshTime", {.stageMeshes = "dp=2;micro=2"}, {"'micro=2'", "for the whole program"}},
        Refused{
            "StageMeshSize", {.stageMeshes = "dp=2;dp=20000"}, {"'dp=20000': more than 16384 ranks", "smaller axes"}},
        Refused{"StageMeshesTogether", {.stageMeshes = "dp=16384;dp=2"}, {"16386 ranks together", "at most 16384"}},
        Refused{"NoMicroBatch", {.micro = 0}, {"micro = 0", "at least 1"}},
        Refused{"HugeMicro", {.micro = int64_t{1} << 40}, {"micro = 1099511627776", "from 1 to 16384"}},
        Refused{"ZeroBelow", {.zero = -2}, {"zero = -2", "0, 1, 2 or 3"}},
        Refused{"ZeroAbove", {.zero = 4}, {"zero = 4", "0, 1, 2 or 3"}},
        Refused{"Clip", {.clipNorm = -1}, {"clipNorm = -1", "at least 0"}},
        Refused{"ClipNan", {.clipNorm = kNan}, {"clipNorm = nan", "finite"}},
        Refused{"ClipInfinity", {.clipNorm = kInfinity}, {"clipNorm = inf", "finite"}},
        Refused{"ClipHuge", {.clipNorm = 1e300}, {"clipNorm = 1e+300", "finite"}},
        Refused{"OffloadToNowhere",
                {.machine = "cpu", .offload = Offload::kAuto},
                {"offload = auto", "'cpu'", "host_bandwidth", "offload = none"}},
        Refused{"Limit", {.memoryLimit = -5}, {"memoryLimit = -5", "0 = no limit"}},
        Refused{"Virtual", {.virtualStages = -1}, {"virtualStages = -1", "from 0"}},
        Refused{"HugeVirtual", {.virtualStages = int64_t{1} << 62}, {"virtualStages = 4611686018427387904", "16384"}},
        Refused{"Schedule", {.schedule = "zb_h3"}, {"'zb_h3' is unknown", "did you mean 'zb_h"}},
        Refused{"NoSchedule", {.schedule = ""}, {"schedule = '' is unknown", "There are auto"}},
        Refused{"EmptyTable", {.schedule = "table"}, {"'table'", "empty", "scheduleTable"}},
        Refused{"LostTable", {.schedule = "1f1b", .scheduleTable = "0F0,0B0\n"}, {"'1f1b'", "'table'"}},
        Refused{"AutoTable", {.scheduleTable = "0F0,0B0\n"}, {"'auto'", "'table'"}},
        Refused{"BadTable", {.schedule = "table", .scheduleTable = "0F0,0X0\n"}, {"line 1"}},
        Refused{"NegativeDepartures", {.mode = Mode::kAuto, .departures = -1}, {"departures = -1", "from 0 to 1000"}},
        Refused{"DeparturesOutsideOfAuto", {.departures = 2}, {"departures = 2 in mode semi", "mode auto"}},
        Refused{"AutoAndMore", {.recompute = "auto,gelu"}, {"'auto,gelu'", "stands alone"}},
        Refused{"AutoLast", {.recompute = "gelu, auto"}, {"'gelu, auto'", "stands alone"}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(RequestTest, TheMachineIsItsText) {
  EXPECT_EQ(machineOf(CompileOptions())->linkLatency, Machine().linkLatency);
  EXPECT_EQ(machineOf({.machine = "link_latency = 0.5"})->linkLatency, 0.5);
  EXPECT_THAT(refusalOf({.machine = "name = mine\nflosp = 1"}),
              AllOf(HasSubstr("machine, line 2: unknown key 'flosp'"), HasSubstr("flops")));
}

TEST(RequestTest, OpenMeshesAreAllThatTheyCanBe) {
  const auto meshes = [](const std::string& mesh, int64_t ranks) { return *closedMeshes(mesh, ranks); };
  EXPECT_THAT(meshes("dp=?,tp=?", 6), ElementsAre("dp=6,tp=1", "dp=3,tp=2", "dp=2,tp=3", "dp=1,tp=6"));
  EXPECT_THAT(meshes("dp=?, tp=2", 8), ElementsAre("dp=4,tp=2"));
  EXPECT_THAT(meshes("a=?,b=2,c=?", 4), ElementsAre("a=2,b=2,c=1", "a=1,b=2,c=2"));
  EXPECT_EQ(meshes("a=?,b=?,c=?", 64).size(), 28U);
  EXPECT_EQ(meshOf({.mesh = "dp=?,tp=?", .devices = 8})->ranks(), 8);
}

TEST(RequestTest, ModesHaveTheirNamesAndThoseOfMindSpore) {
  for (const Mode mode : {Mode::kSemi, Mode::kLayouts, Mode::kAuto}) {
    EXPECT_EQ(*parseMode(modeName(mode)), mode);
  }
  EXPECT_EQ(*parseMode("semi_auto_parallel"), Mode::kSemi);
  EXPECT_EQ(*parseMode("sharding_propagation"), Mode::kSemi);
  EXPECT_EQ(*parseMode("dynamic_programming"), Mode::kAuto);
  EXPECT_EQ(*parseMode("recursive_programming"), Mode::kAuto);
  EXPECT_THAT(std::string(parseMode("layuots").status().message()),
              AllOf(HasSubstr("'layuots' is unknown"), HasSubstr("did you mean 'layouts'?")));
}

// A mesh without names says how many devices there are; asked again of what says it already, it changes nothing.
TEST(RequestTest, ALineIsOpenedOnce) {
  CompileOptions options = {.mode = Mode::kAuto, .mesh = "6"};
  for (int times = 0; times < 2; ++times) {
    openLine(options);
    EXPECT_EQ(options.devices, 6);
    EXPECT_EQ(options.mesh, "");
  }
  options.mesh = "dp=2";
  openLine(options);
  EXPECT_EQ(options.mesh, "dp=2");
}

TEST(RequestTest, FreedomsHaveTheirNames) {
  Freedoms all;
  for (const Freedom freedom : allFreedoms()) {
    EXPECT_THAT(*parseFreedoms(freedomName(freedom)), ElementsAre(freedom));
    all.insert(freedom);
  }
  EXPECT_EQ(*parseFreedoms(printFreedoms(all)), all);
  EXPECT_THAT(*parseFreedoms(" zero, pipeline"), ElementsAre(Freedom::kZero, Freedom::kPipeline));
  EXPECT_THAT(*parseFreedoms(""), IsEmpty());
  EXPECT_THAT(std::string(parseFreedoms("zero,recompote").status().message()),
              AllOf(HasSubstr("'zero,recompote'"), HasSubstr("did you mean 'recompute'?"), HasSubstr("tensor-splits")));
}

TEST(RequestTest, KindsOfOffloadHaveTheirNames) {
  for (const Offload offload : {Offload::kNone, Offload::kState, Offload::kAuto}) {
    EXPECT_EQ(*parseOffload(offloadName(offload)), offload);
  }
  EXPECT_THAT(
      std::string(parseOffload("states").status().message()),
      AllOf(HasSubstr("offload 'states' is unknown"), HasSubstr("did you mean 'state'? There are none, state")));
  EXPECT_EQ(refusalOf(CompileOptions{.machine = "a100-80g", .offload = Offload::kState}), "");
  EXPECT_EQ(refusalOf(CompileOptions{.machine = "cpu"}), "");
}

TEST(RequestTest, DefaultsAreTaken) {
  EXPECT_EQ(refusalOf(CompileOptions()), "");
  EXPECT_EQ(refusalOf(optim::Adam{}), "");
  EXPECT_EQ(refusalOf(optim::AdamW{}), "");
  EXPECT_EQ(refusalOf({.mesh = "dp=2,tp=2", .devices = 4}), "");
  EXPECT_EQ(refusalOf({.devices = 16384, .micro = 16384, .zero = 3, .recompute = "full"}), "");
  EXPECT_EQ(refusalOf({.recompute = "none,gelu"}), "");
  EXPECT_EQ(refusalOf({.stageMeshes = "dp=2;dp=1", .devices = 3}), "");
}

TEST(RequestTest, NumbersOfOptimizers) {
  for (const double bad : {kNan, kInfinity, -kInfinity, -0.1, 1e39}) {
    EXPECT_THAT(refusalOf(optim::Sgd{.lr = bad}), HasSubstr("sgd: lr = "));
    EXPECT_THAT(refusalOf(optim::Sgd{.weightDecay = bad}), HasSubstr("sgd: weight_decay = "));
    EXPECT_THAT(refusalOf(optim::Adam{.epsilon = bad}), HasSubstr("adam: epsilon = "));
  }
  for (const double bad : {kNan, kInfinity, -0.1, 1.0}) {
    EXPECT_THAT(refusalOf(optim::Sgd{.momentum = bad}), AllOf(HasSubstr("momentum = "), HasSubstr("below 1")));
    EXPECT_THAT(refusalOf(optim::Adam{.beta1 = bad}), HasSubstr("adam: beta1 = "));
    EXPECT_THAT(refusalOf(optim::AdamW{.beta2 = bad}), HasSubstr("adamw: beta2 = "));
  }
  EXPECT_EQ(refusalOf(optim::Sgd{.lr = 0, .momentum = 0.999}), "");
  for (const double bad : {kNan, -0.1, 1.1}) {
    EXPECT_THAT(refusalOf(optim::Sgd{.dampening = bad}),
                AllOf(HasSubstr("sgd: dampening = "), HasSubstr("from 0 to 1")));
  }
  for (const double bad : {kNan, kInfinity, -0.1}) {
    EXPECT_THAT(refusalOf(optim::Adagrad{.lrDecay = bad}), HasSubstr("adagrad: lr_decay = "));
    EXPECT_THAT(refusalOf(optim::Adagrad{.initial = bad}), HasSubstr("adagrad: initial = "));
    EXPECT_THAT(refusalOf(optim::Lion{.lr = bad}), AllOf(HasSubstr("lion: lr = "), HasSubstr("of at least 0")));
    EXPECT_THAT(refusalOf(optim::Adafactor{.epsilon2 = bad}), HasSubstr("adafactor: epsilon2 = "));
  }
  EXPECT_THAT(refusalOf(optim::RmsProp{.alpha = 1}), AllOf(HasSubstr("rmsprop: alpha = 1;"), HasSubstr("below 1")));
  EXPECT_THAT(refusalOf(optim::Lamb{.beta2 = 1}), AllOf(HasSubstr("lamb: beta2 = 1;"), HasSubstr("below 1")));
  EXPECT_THAT(refusalOf(optim::Adafactor{.beta2Decay = 0.8}),
              AllOf(HasSubstr("beta2_decay = 0.8"), HasSubstr("at most 0")));
  EXPECT_THAT(refusalOf(optim::Adafactor{.clipThreshold = 0}),
              AllOf(HasSubstr("clip_threshold = 0"), HasSubstr("above 0")));
  EXPECT_EQ(refusalOf(optim::Sgd{.momentum = 0.9, .dampening = 1}), "");
  EXPECT_THAT(refusalOf(optim::Sgd{.momentum = 0.9, .nesterov = true, .dampening = 0.5}),
              AllOf(HasSubstr("nesterov with dampening = 0.5"), HasSubstr("leave one out")));
}

TEST(RequestTest, NumbersOfGroups) {
  EXPECT_EQ(refusalOf(optim::Lamb{.groups = {{"*.bias", {.lrFactor = 2, .weightDecay = 0}}, {"w?", {.frozen = true}}}}),
            "");
  EXPECT_THAT(refusalOf(optim::Lamb{.groups = {{"b*", {.lrFactor = -1}}}}),
              AllOf(HasSubstr("lamb, group 'b*': lr_factor = -1"), HasSubstr("of at least 0")));
  EXPECT_THAT(refusalOf(optim::Sgd{.groups = {{"b*", {.weightDecay = kNan}}}}), HasSubstr("'b*': weight_decay = nan"));
  EXPECT_THAT(refusalOf(optim::Sgd{.groups = {{"", {.frozen = true}}}}), HasSubstr("no pattern of parameter names"));
  EXPECT_THAT(refusalOf(optim::Sgd{.groups = {{"b", {.weightDecay = 0, .frozen = true}}}}),
              AllOf(HasSubstr("group 'b': it is frozen"), HasSubstr("leave these out")));
}

TEST(RequestTest, SettingsOfAnotherOptimizer) {
  EXPECT_THAT(refusalOf(Optimizer("sgdd", {})), AllOf(HasSubstr("'sgdd' is unknown"), HasSubstr("sgd, adam")));
  EXPECT_THAT(refusalOf(Optimizer("sgd", {{"beta1", 0.9}})),
              AllOf(HasSubstr("no setting 'beta1'"), HasSubstr("lr, momentum, weight_decay")));
  EXPECT_THAT(refusalOf(Optimizer("adam", {{"nesterov", 1}})), HasSubstr("no setting 'nesterov'"));
  EXPECT_THAT(refusalOf(Optimizer("none", {{"lr", 1}})), HasSubstr("it has none"));
}

TEST(RequestTest, FirstValues) {
  const auto refusal = [](const char* name, double a, double b) {
    return std::string(checkInitial(name, a, b).message());
  };
  EXPECT_EQ(refusal("normal", 0, 1), "");
  EXPECT_EQ(refusal("uniform", -1, 1), "");
  EXPECT_THAT(refusal("norml", 0, 1), HasSubstr("'norml' is unknown"));
  EXPECT_THAT(refusal("normal", 0, kNan), HasSubstr("normal(0, nan)"));
  EXPECT_THAT(refusal("constant", kInfinity, 0), HasSubstr("not finite"));
  EXPECT_THAT(refusal("normal", 0, -1), HasSubstr("deviation -1"));
  EXPECT_THAT(refusal("uniform", 2, 1), HasSubstr("from 2 to 1"));
}

const ProgramOutline kProgram = {.stages = 1, .rows = 16, .parameters = {"wte", "h0.fc.weight", "h0.fc.bias"}};

std::vector<std::string> notesOf(const CompileOptions& options, const ProgramOutline& program = kProgram) {
  const auto notes = checkRequest(Request{options, optim::Sgd{}}, program);
  return notes.ok() ? *notes : std::vector<std::string>{std::string(notes.status().message())};
}

TEST(ProgramTest, StagesThatAreNot) {
  EXPECT_THAT(notesOf({.virtualStages = 2}),
              ElementsAre(AllOf(HasSubstr("virtualStages = 2"), HasSubstr("1 pipeline stage;"), HasSubstr("leave"))));
  EXPECT_THAT(notesOf({.virtualStages = 3}, {.stages = 2}), ElementsAre(HasSubstr("has 2 pipeline stages")));
  EXPECT_THAT(notesOf({.virtualStages = 2}, {.stages = 4}), IsEmpty());
  EXPECT_THAT(notesOf({.schedule = "seq1f1b"}), ElementsAre(HasSubstr("simulated, not executed; take 1f1b")));
}

TEST(ProgramTest, StagesOfParametersAscend) {
  EXPECT_THAT(notesOf({.stages = {{"wte", {0, 2}}, {"h0.fc.bias", {1}}}}), IsEmpty());
  EXPECT_THAT(notesOf({.stages = {{"wte", {}}}}),
              ElementsAre(AllOf(HasSubstr("stages of parameter 'wte' are none"), HasSubstr("leave it out"))));
  EXPECT_THAT(notesOf({.stages = {{"wte", {-1}}}}), ElementsAre(HasSubstr("the stage of parameter 'wte' = -1")));
  EXPECT_THAT(notesOf({.stages = {{"wte", {2, 2}}}}), ElementsAre(HasSubstr("the stage of parameter 'wte' = 2")));
}

TEST(ProgramTest, FreedomsAreThoseOfModeAuto) {
  EXPECT_THAT(notesOf({.without = {Freedom::kZero}}),
              ElementsAre(AllOf(HasSubstr("without = 'zero' in mode semi"), HasSubstr("ask for that mode"))));
  EXPECT_THAT(notesOf({.mode = Mode::kAuto, .without = {Freedom::kZero}}), IsEmpty());
}

TEST(ProgramTest, PatternsThatMatchNothing) {
  EXPECT_THAT(notesOf({.layouts = {{"h0.fc.wieght", "[{},{}]"}}}),
              ElementsAre(AllOf(HasSubstr("'h0.fc.wieght'"), HasSubstr("nearest is 'h0.fc.weight'"))));
  EXPECT_THAT(notesOf({.layouts = {{"*.fc.weight", "[{},{}]"}, {"wt?", "[{},{}]"}}}), IsEmpty());
  EXPECT_THAT(notesOf({.layouts = {{"*", "[{},{}]"}, {"wte", "[{},{}]"}}}),
              ElementsAre(AllOf(HasSubstr("'wte' has no effect"), HasSubstr("before it"))));
  const auto groups = [](const optim::Groups& given) {
    const auto notes = checkRequest(Request{{}, optim::Sgd{.groups = given}}, kProgram);
    return notes.ok() ? *notes : std::vector<std::string>{std::string(notes.status().message())};
  };
  EXPECT_THAT(
      groups({{"h0.fc.bais", {.weightDecay = 0}}}),
      ElementsAre(AllOf(HasSubstr("groups: no parameter matches 'h0.fc.bais'"), HasSubstr("nearest is 'h0.fc.bias'"))));
  EXPECT_THAT(groups({{"*", {.frozen = true}}, {"wte", {.weightDecay = 0}}}),
              ElementsAre(AllOf(HasSubstr("groups: 'wte' has no effect"), HasSubstr("before it"))));
  // Of a forward program, whose layouts are those of another one, a note.
  const auto notes = checkRequest(Request{{.layouts = {{"head", "[{},{}]"}}}, std::nullopt}, kProgram);
  ASSERT_TRUE(notes.ok()) << notes.status();
  EXPECT_THAT(*notes, ElementsAre(HasSubstr("no parameter matches 'head'")));
}

TEST(ProgramTest, LevelsOfParametersThatAreNot) {
  EXPECT_THAT(
      notesOf({.mesh = "dp=2", .zeroOf = {{"h*.fc.wieght", 3}}}),
      ElementsAre(AllOf(HasSubstr("zeroOf: no parameter matches 'h*.fc.wieght'"), HasSubstr("'h0.fc.weight'"))));
  EXPECT_THAT(notesOf({.mesh = "dp=2", .zeroOf = {{"*.weight", 3}, {"wte", 0}}}), IsEmpty());
  EXPECT_THAT(notesOf({.mesh = "dp=2", .zeroOf = {{"*", 3}, {"wte", 0}}}),
              ElementsAre(HasSubstr("zeroOf: 'wte' has no effect")));
  EXPECT_THAT(notesOf({.zeroOf = {{"wte", 2}}}), ElementsAre(HasSubstr("zeroOf = 'wte=2' has no effect on 1 rank")));
  for (const int level : {-1, 4}) {
    EXPECT_THAT(notesOf({.zeroOf = {{"wte", level}}}),
                ElementsAre(AllOf(HasSubstr(absl::StrCat("'wte' = ", level)), HasSubstr("0, 1, 2 or 3"))));
  }
  EXPECT_THAT(notesOf({.zeroOf = {{"a,b", 1}}}), ElementsAre(HasSubstr("'a,b' is no pattern")));
  EXPECT_THAT(notesOf({.zeroOf = {{"", 1}}}), ElementsAre(HasSubstr("'' is no pattern")));
}

TEST(ProgramTest, OperatorsThatMatchNothing) {
  const std::vector<std::string> operators = {"gelu", "h0.gelu", "layer_norm", "matmul"};
  EXPECT_TRUE(checkRecompute("auto", operators).ok());
  EXPECT_TRUE(checkRecompute("full", operators).ok());
  EXPECT_TRUE(checkRecompute("gelu, h*.gelu,layer_nor?", operators).ok());
  EXPECT_THAT(std::string(checkRecompute("gelu,layernorm", operators).message()),
              AllOf(HasSubstr("'layernorm'"), HasSubstr("nearest is 'layer_norm'")));
}

TEST(ProgramTest, WhatHasNoEffectIsSaid) {
  EXPECT_THAT(notesOf({}), IsEmpty());
  EXPECT_THAT(notesOf({.schedule = "1f1b"}), ElementsAre(HasSubstr("schedule = '1f1b' has no effect")));
  EXPECT_THAT(notesOf({.micro = 64}), ElementsAre(HasSubstr("48 micro-batches hold nothing but padding")));
  EXPECT_THAT(notesOf({.zero = 2}), ElementsAre(HasSubstr("zero = 2 has no effect on 1 rank")));
  EXPECT_THAT(notesOf({.mesh = "dp=2", .zero = 2}), IsEmpty());
  const auto forward = checkRequest(Request{{.recompute = "gelu"}, std::nullopt}, kProgram);
  EXPECT_THAT(*forward, ElementsAre(HasSubstr("recompute = 'gelu' has no effect")));
  const auto nesterov = checkRequest(Request{{}, optim::Sgd{.nesterov = true}}, kProgram);
  EXPECT_THAT(*nesterov, ElementsAre(HasSubstr("nesterov has no effect")));
}

}  // namespace
}  // namespace weft
