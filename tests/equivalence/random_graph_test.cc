// N ranks give the one-rank answer: random programs with random strategies on random meshes, with ZeRO,
// micro-batches and pipeline stages.
//
//   weft_random_graph_test                 seeds 1 to 150
//   weft_random_graph_test --all           seeds 1 to 1000
//   weft_random_graph_test --seed=17       one seed, its module on the standard output

#include "tests/equivalence/random_graph.h"

#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "ir/nn/operator_interface.h"
#include "mlir/IR/MLIRContext.h"
#include "passes/pipeline.h"
#include "tests/support/seeds.h"

namespace weft::testing {

SeedRange seeds = {1, 150};

namespace {

TEST(RandomGraphTest, AnyRanksGiveTheOneRankAnswer) {
  uint64_t refused = 0;
  std::map<std::string, int> meshes;
  for (uint64_t seed = seeds.first; seed <= seeds.last; ++seed) {
    const absl::StatusOr<RandomCase> random = randomCase(seed);
    ASSERT_TRUE(random.ok()) << "seed " << seed << ": " << random.status();
    ++meshes[random->request.mesh];
    SCOPED_TRACE(absl::StrCat("seed ", seed, ", mesh ", random->request.mesh, ", zero ", random->request.zero, " ",
                              random->request.zeroOf, " ", random->request.optimizer));
    if (seeds.isOne()) {
      std::cout << random->text << "\n";
    }
    const NamedTensors arguments = randomArguments(random->random.program, seed);
    const absl::StatusOr<NamedTensors> one =
        trainOnce(random->random.program, {.optimizer = random->request.optimizer}, arguments);
    if (!one.ok()) {
      ADD_FAILURE() << "on one rank: " << one.status();
      continue;
    }
    const std::string off = differenceFromOneRank(random->text, *one, arguments);
    // A rank that has parts of several stripes of a padded batch and none whole: refused by design (docs/adr/0009).
    if (off.find("needs the place of its rows") != std::string::npos) {
      ++refused;
      continue;
    }
    EXPECT_EQ(off, "");
  }
  for (const auto& [mesh, programs] : meshes) {
    std::cout << programs << " programs on " << mesh << "\n";
  }
  EXPECT_LE(refused * 100, seeds.last - seeds.first + 1) << "more than one in a hundred";
}

// Operators that no program draws: those that the compiler itself makes, of which all occur (gradients, what expansions
// and updates need), and a user's own, which have a test of their own. `constrain` is a user's word about a layout,
// like the strategies that a random case adds.
bool isDrawn(llvm::StringRef op) {
  static const std::set<llvm::StringRef> made = {
      "adam",    "adam_direction", "channel_affine", "channel_dot", "channel_sum",   "constrain", "custom",
      "descend", "lion_direction", "pick_grad",      "prod_grad",   "rms_direction", "sgd"};
  return made.count(op) == 0 && (!op.ends_with("_grad") || op == "conv2d_input_grad");
}

TEST(RandomProgramTest, DrawsEveryOperator) {
  std::string text;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    std::mt19937_64 generator(seed);
    text += randomProgram(generator, 2).program.body;
  }
  mlir::DialectRegistry dialects;
  registerWeftDialects(dialects);
  mlir::MLIRContext context(dialects);
  context.loadAllAvailableDialects();
  for (const mlir::RegisteredOperationName name : context.getRegisteredOperations()) {
    if (name.hasInterface<ir::OperatorInterface>() && isDrawn(name.stripDialect())) {
      EXPECT_NE(text.find(name.getStringRef().str() + " "), std::string::npos) << name.getStringRef().str();
    }
  }
}

}  // namespace
}  // namespace weft::testing

int main(int argc, char** argv) {
  return weft::testing::runSeeded(argc, argv, weft::testing::seeds, 1000);
}
