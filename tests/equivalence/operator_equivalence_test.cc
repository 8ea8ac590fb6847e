// N ranks give the one-rank answer: every operator with every legal strategy on 2, 3, 4, 6 and 8 ranks.
//
// What is legal is said here once more, from the factor rule alone: each splittable factor in parts that divide it, all
// parts together a divisor of the ranks, and in a compound dimension (a b) only whole submeshes. The compiler must take
// all of these, by numbers and by axis names, and forward, gradients and update must be those of one rank.
//
// Without flags a fixed sample; --all for everything.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/nn/operator_interface.h"
#include "tests/equivalence/operator_cases.h"
#include "tests/equivalence/strategies.h"
#include "tests/support/parse.h"
#include "tests/support/seeds.h"

namespace weft::testing {

bool testEverything = false;

namespace {

// Strategies per operator in the fixed sample: one of each kind, five forms on five numbers of ranks, where it has
// them.
constexpr size_t kSample = 25;

absl::StatusOr<TargetRule> targetOf(const OperatorCase& test) {
  Modules modules;
  mlir::OwningOpRef<mlir::ModuleOp> module = modules.parse(moduleText(test.program(""), {}));
  if (!module) {
    return absl::InvalidArgumentError("the case is no module:\n" + moduleText(test.program(""), {}));
  }
  absl::StatusOr<TargetRule> target = absl::NotFoundError("no op named target");
  module->walk([&](mlir::Operation* op) {
    auto name = op->getAttrOfType<mlir::StringAttr>("nn.name");
    if (!name || name.getValue() != "target") {
      return;
    }
    target = targetRule(op);
  });
  return target;
}

std::string namesText(const std::vector<std::vector<DimFactors>>& tensors, const Parts& parts) {
  std::vector<std::string> lists;
  for (const auto& dims : tensors) {
    std::vector<std::string> list;
    for (const DimFactors& dim : dims) {
      std::vector<std::string> names;
      for (const int f : dim) {
        if (parts[f] > 1) {
          names.push_back(absl::StrCat("x", f));
        }
      }
      list.push_back(absl::StrCat("\"", absl::StrJoin(names, ","), "\""));
    }
    lists.push_back(absl::StrCat("[", absl::StrJoin(list, ", "), "]"));
  }
  return absl::StrCat("[", absl::StrJoin(lists, ", "), "]");
}

// How a strategy is written: splits of the operands; of the results, too; with a partial sum scattered; axis names in
// the rule's order; turned round.
enum class Form { kOperands, kResults, kScattered, kNames, kNamesTurned };

// One program to compile: mesh and strategy text.
struct Trial {
  std::string mesh;
  std::string strategy;
  int64_t ranks;
  Form form;
};

// A factor that only results have takes its split from the result: nothing is scattered there.
bool readsFactor(const TargetRule& target, int factor) {
  for (const auto& dims : target.rule.operands()) {
    for (const DimFactors& dim : dims) {
      if (std::find(dim.begin(), dim.end(), factor) != dim.end()) {
        return true;
      }
    }
  }
  return false;
}

// By numbers: without and with splits of the results, which say where a partial sum is scattered.
void addNumbers(const TargetRule& target, int64_t ranks, std::vector<Trial>& trials) {
  for (const Parts& parts : legalParts(target, ranks, false)) {
    const std::string in = splitsText(target.rule.operands(), parts);
    trials.push_back({absl::StrCat(ranks), "{in = " + in + "}", ranks, Form::kOperands});
    const std::string out = splitsText(target.rule.results(), parts);
    trials.push_back({absl::StrCat(ranks), "{in = " + in + ", out = " + out + "}", ranks, Form::kResults});
    int64_t reduced = 1;
    for (size_t f = 0; f < parts.size(); ++f) {
      reduced *= target.rule.reducedIn(static_cast<int>(f), 0) ? parts[f] : 1;
    }
    const auto& dims = target.rule.results()[0];
    for (size_t d = 0; d < dims.size() && reduced > 1 && target.results.size() == 1; ++d) {
      Parts more = parts;
      if (dims[d].size() != 1 || !readsFactor(target, dims[d][0]) ||
          target.results[0][d] % (parts[dims[d][0]] * reduced) != 0) {
        continue;
      }
      more[dims[d][0]] *= reduced;
      trials.push_back({absl::StrCat(ranks),
                        absl::StrCat("{in = ", in, ", out = ", splitsText(target.rule.results(), more), "}"), ranks,
                        Form::kScattered});
    }
  }
}

// By names: one axis for each split factor, in the rule's order and turned round; one for the ranks that repeat.
void addNames(const TargetRule& target, int64_t ranks, std::vector<Trial>& trials) {
  for (const Parts& parts : legalParts(target, ranks, true)) {
    std::vector<std::string> axes;
    int64_t used = 1;
    for (size_t f = 0; f < parts.size(); ++f) {
      used *= parts[f];
      if (parts[f] > 1) {
        axes.push_back(absl::StrCat("x", f, "=", parts[f]));
      }
    }
    if (used < ranks) {
      axes.push_back(absl::StrCat("dp=", ranks / used));
    }
    const std::string strategy = "{in = " + namesText(target.rule.operands(), parts) + "}";
    trials.push_back({absl::StrJoin(axes, ","), strategy, ranks, Form::kNames});
    std::reverse(axes.begin(), axes.end());
    trials.push_back({absl::StrJoin(axes, ","), strategy, ranks, Form::kNamesTurned});
  }
}

// A fixed sample, the same number of each kind as far as there are so many.
void takeSample(std::vector<Trial>& trials) {
  std::mt19937_64 generator(2024);
  std::shuffle(trials.begin(), trials.end(), generator);
  std::map<std::pair<int64_t, Form>, size_t> seen;
  std::vector<std::pair<size_t, Trial>> byTurn;
  for (Trial& trial : trials) {
    const size_t turn = seen[{trial.ranks, trial.form}]++;
    byTurn.emplace_back(turn, std::move(trial));
  }
  std::stable_sort(byTurn.begin(), byTurn.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  byTurn.resize(std::min(byTurn.size(), kSample));
  trials.clear();
  for (auto& [turn, trial] : byTurn) {
    trials.push_back(std::move(trial));
  }
}

std::vector<Trial> trialsOf(const TargetRule& target) {
  std::vector<Trial> trials;
  for (const int64_t ranks : {2, 3, 4, 6, 8}) {
    addNumbers(target, ranks, trials);
    addNames(target, ranks, trials);
  }
  std::set<std::pair<std::string, std::string>> seen;
  std::erase_if(trials, [&](const Trial& t) { return !seen.emplace(t.mesh, t.strategy).second; });
  if (!testEverything) {
    takeSample(trials);
  }
  return trials;
}

class OperatorEquivalenceTest : public ::testing::TestWithParam<OperatorCase> {};

TEST_P(OperatorEquivalenceTest, AnyRanksGiveTheOneRankAnswer) {
  const OperatorCase& test = GetParam();
  const absl::StatusOr<TargetRule> target = targetOf(test);
  ASSERT_TRUE(target.ok()) << target.status();
  const NamedTensors arguments = randomArguments(test.program(""), 17);
  const absl::StatusOr<NamedTensors> one = trainOnce(test.program(""), {}, arguments);
  ASSERT_TRUE(one.ok()) << one.status();
  for (const Trial& trial : trialsOf(*target)) {
    SCOPED_TRACE(absl::StrCat(test.name, " '", target->rule.text(), "' on mesh ", trial.mesh, ", ", trial.strategy));
    const absl::StatusOr<NamedTensors> many = trainOnce(test.program(trial.strategy), {.mesh = trial.mesh}, arguments);
    if (!many.ok()) {
      ADD_FAILURE() << many.status();
      continue;
    }
    EXPECT_EQ(difference(*one, *many), "");
  }
  RecordProperty("trials", static_cast<int>(trialsOf(*target).size()));
}

INSTANTIATE_TEST_SUITE_P(Operators, OperatorEquivalenceTest, ::testing::ValuesIn(operatorCases()),
                         [](const auto& info) { return info.param.name; });

// Every operator of the dialect stands in a case, or here with the reason why not.
TEST(OperatorEquivalenceCoverage, EveryOperator) {
  // Part of every step, others than sgd in random_graph_test.cc and optimizers_test.cc; made by the compiler from
  // batch_norm, which has a case; a user's own, in tests/frontend/own_operator_test.cc.
  std::set<std::string> covered = {"sgd",     "adam",           "adam_direction",  "rms_direction",
                                   "descend", "lion_direction", "batch_norm_grad", "custom"};
  for (const OperatorCase& test : operatorCases()) {
    covered.insert(test.mnemonic);
  }
  Modules modules;
  for (mlir::RegisteredOperationName name : modules.context()->getRegisteredOperations()) {
    if (name.hasInterface<ir::OperatorInterface>()) {
      EXPECT_EQ(covered.count(name.stripDialect().str()), 1U) << name.getStringRef().str();
    }
  }
}

}  // namespace
}  // namespace weft::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  weft::testing::testEverything = weft::testing::wantsAll(argc, argv);
  return RUN_ALL_TESTS();
}
