// Modules that lie: every state of small programs, with one fault each, is compiled further. Each must be refused with
// a message, or come out as a plan that validatePlan accepts; never a crash, never a hang, never a gigabyte.
//
// Every case runs in a child process, so that one run reports all of them. A fixed sample; `--all` runs every kind of
// mutation in every state (an hour), `--seed=N` another sample, `--count=N` so many cases per program.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "ir/registry.h"
#include "passes/compile.h"
#include "passes/logical/read_module.h"
#include "runtime/plan/plan_file.h"
#include "tests/passes/gates/hostile_programs.h"
#include "tests/passes/gates/mutations.h"
#include "tests/support/seeds.h"

namespace weft::testing {
namespace {

using namespace mlir;  // NOLINT

constexpr int kSecondsPerCase = 60;

struct Sample {
  bool all = false;
  uint64_t seed = 1;
  size_t count = 22;  // cases of each program, and of its decisions
};
Sample sample;

// Not 0 or 1, with which a library might end the process.
enum Verdict : int { kValid = 40, kRefused, kSilent, kWrongPlan };

// What becomes of a module once it is written to a file and read again, in this process.
Verdict compiled(ModuleOp written, const std::string& decisions = "") {
  std::string text;
  llvm::raw_string_ostream stream(text);
  ScopedDiagnosticHandler quiet(written.getContext(), [](Diagnostic&) { return success(); });
  // Of an operator that does not hold together only the generic form can be printed.
  written.print(stream, OpPrintingFlags().enableDebugInfo(true, false).printGenericOpForm().assumeVerified());
  const absl::StatusOr<OwningOpRef<ModuleOp>> read = readModule(text, "hostile.mlir", *written.getContext());
  if (!read.ok()) {
    return read.status().message().empty() ? kSilent : kRefused;
  }
  ModuleOp module = **read;
  PipelineOptions options;
  if (!decisions.empty()) {
    absl::StatusOr<Decisions> record = parseDecisions(decisions);
    if (!record.ok()) {
      return record.status().message().empty() ? kSilent : kRefused;
    }
    options.decisions = *std::move(record);
  }
  options.program = module->hasAttr("nn.optimizer") ? "train" : "evaluate";
  const ir::OperatorRegistry registry = ir::OperatorRegistry::builtin();
  const absl::StatusOr<plan::Plan> plan = compileModule(module, registry, options);
  if (!plan.ok()) {
    return plan.status().message().empty() ? kSilent : kRefused;
  }
  return validatePlan(*plan).ok() ? kValid : kWrongPlan;
}

// What becomes of it in a process of its own; the text of a status of waitpid that is no verdict.
std::string outcomeOf(const std::function<Verdict()>& run, std::map<Verdict, int>& counts) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit core = {0, 0};
    setrlimit(RLIMIT_CORE, &core);
#if !defined(__SANITIZE_ADDRESS__) && !__has_feature(address_sanitizer)
    const rlimit memory = {rlim_t{4} << 30, rlim_t{4} << 30};
    setrlimit(RLIMIT_AS, &memory);
#endif
    alarm(kSecondsPerCase);
    _exit(run());
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) {
    return std::string("killed by ") + strsignal(WTERMSIG(status));
  }
  const int code = WEXITSTATUS(status);
  if (code < kValid || code > kWrongPlan) {
    return "ended with status " + std::to_string(code);
  }
  ++counts[static_cast<Verdict>(code)];
  return code == kSilent ? "refused without a word" : code == kWrongPlan ? "made a plan that is inconsistent" : "";
}

// The cases to run: all, or a sample in which every kind of mutation is equally likely.
std::vector<size_t> chosen(const std::vector<Mutation>& mutations, size_t count, uint64_t seed) {
  std::map<std::string, std::vector<size_t>> byKind;
  for (size_t i = 0; i < mutations.size(); ++i) {
    byKind[mutations[i].kind].push_back(i);
  }
  std::mt19937_64 random(seed);
  std::vector<size_t> one;
  for (const auto& [kind, members] : byKind) {
    one.push_back(members[random() % members.size()]);
  }
  std::shuffle(one.begin(), one.end(), random);
  one.resize(std::min(one.size(), count));
  return one;
}

std::string directoryFor(const std::string& name) {
  return ::testing::TempDir() + "/weft_hostile_" + name + std::to_string(getpid());
}

class HostileModule : public ::testing::TestWithParam<std::string> {
 protected:
  ~HostileModule() override { std::filesystem::remove_all(directoryFor(GetParam())); }
};

TEST_P(HostileModule, IsRefusedOrMakesAValidPlan) {
  const DumpedProgram program = dumpedProgram(GetParam(), directoryFor(GetParam()));
  DialectRegistry dialects;
  registerWeftDialects(dialects);
  MLIRContext context(dialects, MLIRContext::Threading::DISABLED);
  std::map<Verdict, int> counts;
  for (size_t d = 0; d < program.dumps.size(); ++d) {
    const Dump& dump = program.dumps[d];
    const auto module = readModule(dump.text, dump.path, context);
    ASSERT_TRUE(module.ok()) << module.status();
    std::map<Verdict, int> asItIs;
    EXPECT_EQ(outcomeOf([&] { return compiled(**module); }, asItIs), "") << dump.phase << " as it is";
    EXPECT_EQ(asItIs[kValid], 1) << GetParam() << " " << dump.phase << " is refused as it is";
    std::vector<Mutation> mutations = mutationsOf(**module);
    const size_t share = sample.count * (d + 1) / program.dumps.size() - sample.count * d / program.dumps.size();
    for (const size_t i : chosen(mutations, sample.all ? mutations.size() : share, sample.seed + d)) {
      const Mutation& mutation = mutations[i];
      const std::string outcome = outcomeOf(
          [&] {
            mutation.apply();
            return compiled(**module);
          },
          counts);
      EXPECT_EQ(outcome, "") << GetParam() << " " << dump.phase << ", " << mutation.name << " [" << mutation.kind
                             << "]";
    }
  }
  std::printf("%s: %d refused, %d made a plan\n", GetParam().c_str(), counts[kRefused], counts[kValid]);
  EXPECT_GT(counts[kRefused], counts[kValid] / 4) << "the faults are no faults";
}

// Every entry of a decisions record left out or replaced.
std::vector<std::pair<std::string, std::string>> damagedRecords(const std::string& text) {
  using Json = nlohmann::ordered_json;
  const Json record = Json::parse(text);
  std::vector<std::pair<std::string, std::string>> damaged;
  const std::vector<Json> others = {nullptr,
                                    -1,
                                    1000,
                                    int64_t{1} << 62,
                                    1.5,
                                    true,
                                    "x",
                                    "[{all}]",
                                    "[{},{}] partial{micro:sum}",
                                    "3,micro=5",
                                    "dp=2;dp=3",
                                    Json::array(),
                                    Json::array({5, 0}),
                                    Json::object()};
  const Json flat = record.flatten();
  for (const auto& [pointer, value] : flat.items()) {
    // The entry itself and what holds it.
    for (Json::json_pointer at(pointer); !at.empty(); at = at.parent_pointer()) {
      for (const Json& other : others) {
        Json changed = record;
        changed[at] = other;
        damaged.emplace_back(at.to_string() + " = " + other.dump(), changed.dump());
      }
      Json shorter = record;
      Json& holder = shorter[at.parent_pointer()];
      holder.is_array() ? holder.erase(std::stoul(at.back())) : static_cast<void>(holder.erase(at.back()));
      damaged.emplace_back(at.to_string() + " left out", shorter.dump());
    }
  }
  return damaged;
}

TEST_P(HostileModule, IsRefusedWithDecisionsThatDoNotFit) {
  const DumpedProgram program = dumpedProgram(GetParam(), directoryFor(GetParam()));
  DialectRegistry dialects;
  registerWeftDialects(dialects);
  MLIRContext context(dialects, MLIRContext::Threading::DISABLED);
  const auto module = readModule(program.dumps.front().text, program.dumps.front().path, context);
  ASSERT_TRUE(module.ok()) << module.status();
  auto damaged = damagedRecords(program.decisions);
  std::mt19937_64 random(sample.seed);
  std::shuffle(damaged.begin(), damaged.end(), random);
  damaged.resize(std::min(damaged.size(), sample.all ? size_t{4000} : sample.count));
  std::map<Verdict, int> counts;
  for (const auto& [what, record] : damaged) {
    const std::string outcome = outcomeOf([&, &text = record] { return compiled(**module, text); }, counts);
    EXPECT_EQ(outcome, "") << GetParam() << " with decisions in which " << what;
  }
  std::printf("%s: %d records refused, %d made a plan\n", GetParam().c_str(), counts[kRefused], counts[kValid]);
  EXPECT_GT(counts[kRefused], counts[kValid] / 4) << "the faults are no faults";
}

INSTANTIATE_TEST_SUITE_P(Programs, HostileModule, ::testing::ValuesIn(hostileProgramNames()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace weft::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  weft::testing::sample.all = weft::testing::wantsAll(argc, argv);
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.rfind("--seed=", 0) == 0) {
      weft::testing::sample.seed = std::stoull(word.substr(7));
    } else if (word.rfind("--count=", 0) == 0) {
      weft::testing::sample.count = std::stoull(word.substr(8));
    }
  }
  return RUN_ALL_TESTS();
}
