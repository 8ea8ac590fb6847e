#include "planner/derive/derive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/derive/recompute_scopes.h"
#include "planner/explain/recompute_words.h"
#include "tests/planner/derive/rows_against_columns.h"
#include "tests/planner/graph/graph_builder.h"
#include "tests/planner/search/chain_program.h"

namespace weft::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A parameter w of the step `b`: mean((x w)), the gradient of w, and an update that reads it beside one state tensor.
void addWeight(GraphBuilder& b, const GraphValue& in, const std::string& name, const Shape& x, const Shape& w) {
  const GraphValue weight = b.parameter(name, w);
  const GraphValue momentum = b.state(name + ".momentum", w);
  const GraphValue y = b.add(kMatmul, {in, weight}, {x[0], w[1]});
  const int forward = y.producer;
  b.returns(b.add(kSumAll, {y}, {}));
  const GraphValue dw = b.add({"contract", "m+ k, m+ n -> k n", {{0}, {1}}}, {in, y}, w);
  b.last().phase = Phase::kBackward;
  b.last().forward = forward;
  const GraphValue finished = b.add({"reduced", "a b -> a b", {{0}}}, {dw}, w);
  b.last().phase = Phase::kUpdate;
  b.last().gradientOf = name;
  const GraphValue updated = b.add({.kind = "sgd", .rule = "a b, a b, a b -> a b, a b", .updatesParameter = true},
                                   {weight, finished, momentum}, w);
  b.last().phase = Phase::kUpdate;
  b.last().results.push_back({w, DType::kF32});
  b.updates(weight, updated);
  b.updates(momentum, {updated.producer, 1});
}

GraphBuilder trainingStep(const Shape& x = {8, 4}, const Shape& w = {4, 64}) {
  GraphBuilder b;
  addWeight(b, b.input("x", x), "w", x, w);
  return b;
}

struct Derived {
  absl::StatusOr<Decisions> record;
  ProgramGraph graph;
  std::map<unsigned, Shape> evenPads = {};

  std::string layout(size_t argument) const { return record->arguments[argument].layout.print(record->mesh); }
  std::string error() const { return std::string(record.status().message()); }
};

Derived derive(const GraphBuilder& b, const CompileOptions& options, const OpenChoices& choices = {}) {
  Derived derived{absl::StatusOr<Decisions>(), b.graph};
  absl::StatusOr<Derivation> made = deriveDecisions(derived.graph, options, choices);
  if (made.ok()) {
    derived.evenPads = made->evenPads;
    derived.record = std::move(made->decisions);
  } else {
    derived.record = made.status();
  }
  return derived;
}

TEST(Derive, TheBatchGoesOverTheDataParallelAxes) {
  const Derived derived = derive(trainingStep(), {.mesh = "dp=2"});
  ASSERT_TRUE(derived.record.ok()) << derived.record.status();
  EXPECT_EQ(derived.layout(0), "[{dp},{}]");
  EXPECT_EQ(derived.layout(1), "[{},{}]");
  EXPECT_EQ(derived.record->arguments[0].origin, "default: batch over the data-parallel axes");
  EXPECT_EQ(derived.record->find(2)->axes.at("m").size(), 1U) << "the gradient sums over dp";
  const Derived whole = derive(trainingStep(), {.mesh = "dp=2", .fill = Fill::kReplicate});
  EXPECT_EQ(whole.layout(0), "[{},{}]");
}

// Splits that were held against others as if the input lay for its first reader.
TEST(Derive, InputsLieAsTheirReadersWerePriced) {
  GraphBuilder b;
  const GraphValue x = b.input("x", {8, 64});
  const GraphValue y = b.add(kRelu, {x}, {8, 64});
  b.returns(b.add({"constrain", "a b -> a b"}, {y}, {8, 64}));
  b.last().constraint = "[{},{dp}]";
  const CompileOptions options = {.mode = Mode::kLayouts, .mesh = "dp=2"};
  const Derived derived = derive(b, options, {.batchAxes = true});
  ASSERT_TRUE(derived.record.ok()) << derived.record.status();
  EXPECT_EQ(derived.layout(0), "[{},{dp}]");
  EXPECT_EQ(derived.record->find(0)->axes.at("b").size(), 1U);
  EXPECT_EQ(derive(b, options).layout(0), "[{dp},{}]") << "the batch's axes split the batch alone";
}

// A table split over tp by rows says nothing of the batch.
TEST(Derive, TheBatchIsSplitWhateverItsReadersSplitBesides) {
  GraphBuilder b;
  const GraphValue ids = b.input("ids", {8, 4});
  const GraphValue table = b.parameter("table", {64, 6});
  b.graph.arguments[table.index].layout = "[{tp},{}]";
  b.returns(b.add({"embedding", "v+ c, a b -> a b c", {{0}}}, {table, ids}, {8, 4, 6}));
  const Derived derived = derive(b, {.mesh = "dp=2,tp=2"});
  ASSERT_TRUE(derived.record.ok()) << derived.record.status();
  EXPECT_EQ(derived.layout(0), "[{dp},{}]");
  EXPECT_EQ(derived.record->find(0)->axes.at("a").size(), 1U);
  EXPECT_EQ(derived.record->find(0)->axes.at("v").size(), 1U);
}

// Unless the user says of its reader that it is whole, or splits it himself.
TEST(Derive, TheUsersSplitOfTheBatchStays) {
  for (const std::string words : {"", "tp"}) {
    GraphBuilder b = trainingStep();
    b.graph.operators[0].strategy = UserStrategy{true, {}, {}, {{words, ""}, {"", ""}}, {}, {"model.cc", 30, 1}};
    const Derived derived = derive(b, {.mesh = "dp=2,tp=2"});
    ASSERT_TRUE(derived.record.ok()) << derived.record.status();
    EXPECT_EQ(derived.layout(0), "[{" + words + "},{}]");
  }
}

TEST(Derive, OpenDimensionsOfArgumentsTakeTheBatchAndWhatReadersHave) {
  GraphBuilder b = trainingStep();
  b.graph.arguments[0].layout = "[{?},{tp}]";
  const Derived open = derive(b, {.mesh = "dp=2,tp=2"});
  ASSERT_TRUE(open.record.ok()) << open.record.status();
  EXPECT_EQ(open.layout(0), "[{dp},{tp}]") << "the batch of an open dimension is split by default";
  b.graph.arguments[0].layout = "[{},{tp}]";
  EXPECT_EQ(derive(b, {.mesh = "dp=2,tp=2"}).layout(0), "[{},{tp}]");
  b.graph.arguments[0].layout = "";
  b.graph.operators[0].strategy = UserStrategy{true, {}, {}, {{"", "tp"}}, {}, {}};
  EXPECT_EQ(derive(b, {.mesh = "dp=2,tp=2", .layouts = {{"w", "[{tp},{}]"}}}).layout(1), "[{tp},{}]");
  b.graph.operators[0].strategy->inNames = {{"", "tp"}, {"?", "dp"}};
  EXPECT_EQ(derive(b, {.mesh = "dp=2,tp=2", .layouts = {{"w", "[{tp},{}]"}}}).layout(1), "[{tp},{}]");
  EXPECT_EQ(derive(b, {.mesh = "dp=2,tp=2", .layouts = {{"w", "[{tp,?},{?}]"}}}).layout(1), "[{tp},{dp}]");
  EXPECT_EQ(derive(b, {.mesh = "dp=2,tp=2", .layouts = {{"w", "[{?},{?}]"}}}).record->arguments[1].origin,
            "first reader op0")
      << "open dimensions alone say nothing";
}

TEST(Derive, AStateLiesAsWhatReplacesIt) {
  GraphBuilder b = trainingStep();
  const GraphValue running = b.state("running", {64});
  const GraphValue total = b.add({"columns", "m+ n -> n", {{0}}}, {{0, 0}}, {64});
  b.updates(running, b.add({"blend", "n, n -> n", {{0, 1}}}, {running, total}, {64}));
  b.last().phase = Phase::kUpdate;
  const Derived derived = derive(b, {.mesh = "dp=2,tp=2", .layouts = {{"w", "[{},{tp}]"}}});
  ASSERT_TRUE(derived.record.ok()) << derived.record.status();
  EXPECT_EQ(derived.layout(3), "[{tp}]");
  EXPECT_EQ(derived.record->arguments[3].origin, "replaced by op6");
}

TEST(Derive, NotesNameAxesThatSplitNothingAndSplitsThatDoNotDivide) {
  GraphBuilder b = trainingStep({8, 4}, {4, 63});
  EXPECT_THAT(derive(b, {.mesh = "dp=2"}).record->notes, IsEmpty());
  EXPECT_THAT(
      derive(b, {.mesh = "dp=2,tp=2"}).record->notes,
      ElementsAre("axis tp of mesh dp=2,tp=2 splits nothing: its 2 ranks compute the same; name it in a layout or "
                  "strategy, or leave it out"));
  // Two products: the first is split by columns, the second, of 63 columns, cannot be split by rows.
  GraphBuilder two;
  const GraphValue x = two.input("x", {8, 4});
  const GraphValue w = two.parameter("w", {4, 6});
  const GraphValue v = two.parameter("v", {6, 63});
  const GraphValue y = two.add(kMatmul, {x, w}, {8, 6});
  const GraphValue z = two.add(kMatmul, {y, v}, {8, 63});
  two.add(kAdd, {z, two.input("other", {8, 63})}, {8, 63});
  two.returns({two.last().id, 0});
  for (GraphOperator& op : two.graph.operators) {
    op.facts.flopsPerPoint = 2;
  }
  two.graph.arguments[w.index].layout = "[{},{tp}]";
  two.graph.arguments[3].layout = "[{},{tp}] pad{1:64}";
  const Derived derived = derive(two, {.mesh = "tp=2"});
  ASSERT_TRUE(derived.record.ok()) << derived.record.status();
  EXPECT_THAT(derived.record->notes, IsEmpty()) << "the pad spreads";
}

// Columns that stand for three heads of eight, split over two ranks: a pad of the weight of one more head.
TEST(Derive, NamesThePadsWithWhichSplitsDivide) {
  GraphBuilder b;
  const GraphValue x = b.input("x", {8, 4});
  const GraphValue w = b.parameter("w", {4, 24});
  const GraphValue y = b.add(kMatmul, {x, w}, {8, 24});
  OperatorFacts heads = {"reshape", "m (h d) -> m h d"};
  heads.view = ViewKind::kShape;
  b.returns(b.add(heads, {y}, {8, 3, 8}));
  b.graph.arguments[w.index].layout = "[{},{tp}]";
  const Derived derived = derive(b, {.mesh = "tp=2"});
  ASSERT_TRUE(derived.record.ok()) << derived.record.status();
  EXPECT_THAT(derived.record->notes,
              ElementsAre(HasSubstr("factor h of size 3 does not divide into 2 parts [{tp}]; each of these ranks")));
  EXPECT_THAT(derived.evenPads, ElementsAre(std::pair(w.index, Shape({4, 32}))));

  const Derived padded = derive(b, {.mesh = "tp=2"}, {.pads = derived.evenPads});
  ASSERT_TRUE(padded.record.ok()) << padded.record.status();
  EXPECT_EQ(padded.layout(w.index), "[{},{tp}] pad{1:32}");
  EXPECT_THAT(padded.evenPads, IsEmpty());
  EXPECT_THAT(padded.record->notes,
              ElementsAre(HasSubstr("dimension 1 of size 24 is stored with 32 elements, so that all that is split")));

  b.graph.arguments[w.index].layout = "[{},{tp}] pad{1:24}";
  const Derived named = derive(b, {.mesh = "tp=2"}, {.pads = derived.evenPads});
  ASSERT_TRUE(named.record.ok()) << named.record.status();
  EXPECT_EQ(named.layout(w.index), "[{},{tp}]") << "the user says how it is stored";
}

// A strategy by names may ask for parts that do not divide a parameter.
TEST(Derive, PadsWhatAStrategyByNamesSplits) {
  GraphBuilder b;
  const GraphValue x = b.input("x", {8, 4});
  const GraphValue w = b.parameter("w", {4, 7});
  b.returns(b.add(kMatmul, {x, w}, {8, 7}));
  b.graph.operators[0].strategy = UserStrategy{.byName = true, .inNames = {{"", ""}, {"", "tp"}}};
  const Derived derived = derive(b, {.mesh = "tp=2"});
  ASSERT_TRUE(derived.record.ok()) << derived.record.status();
  EXPECT_EQ(derived.layout(w.index), "[{},{tp}] pad{1:8}");
  EXPECT_THAT(derived.record->notes, ElementsAre(HasSubstr("dimension 1 of size 7 is stored with 8")));
}

// What nobody asks to split is padded where it grows by no more than an eighth, and all that it reaches can run so.
TEST(Derive, NamesThePadsWithWhichMoreSplitsAreConsidered) {
  Freedoms without;
  const auto padsOf = [&](int64_t columns, std::optional<double> fill, const std::string& mesh, Mode mode) {
    GraphBuilder b;
    const GraphValue x = b.input("x", {8, 4});
    const GraphValue w = b.parameter("w", {4, columns});
    OperatorFacts product = kMatmul;
    product.flopsPerPoint = 2;
    const GraphValue y = b.add(product, {x, w}, {8, columns});
    OperatorFacts whole = {"norm", "a v! -> a v"};
    whole.padFill = {fill};
    b.returns(b.add(whole, {y}, {8, columns}));
    const Derived derived = derive(b, {.mode = mode, .mesh = mesh, .without = without});
    EXPECT_TRUE(derived.record.ok()) << derived.record.status();
    EXPECT_THAT(derived.record->notes, Not(Contains(HasSubstr("does not divide"))));
    return derived.evenPads;
  };
  EXPECT_THAT(padsOf(63, 0.0, "tp=2", Mode::kLayouts), ElementsAre(std::pair(1U, Shape({4, 64}))));
  EXPECT_THAT(padsOf(63, 0.0, "tp=2", Mode::kSemi), IsEmpty()) << "nobody asks";
  EXPECT_THAT(padsOf(64, 0.0, "tp=2", Mode::kLayouts), IsEmpty()) << "it divides";
  EXPECT_THAT(padsOf(63, std::nullopt, "tp=2", Mode::kLayouts), IsEmpty()) << "the norm cannot run so";
  EXPECT_THAT(padsOf(24, 0.0, "tp=9", Mode::kLayouts), ElementsAre(std::pair(1U, Shape({4, 27}))));
  EXPECT_THAT(padsOf(23, 0.0, "tp=9", Mode::kLayouts), IsEmpty()) << "too much of it";
  without = {Freedom::kPads};
  EXPECT_THAT(padsOf(63, 0.0, "tp=2", Mode::kLayouts), IsEmpty()) << "the search may not pad";
}

// Of an input nobody asks for a pad, so sums over its columns stay whole.
TEST(Derive, OnlyParametersArePaddedForSplitsThatAreConsidered) {
  GraphBuilder b;
  const GraphValue x = b.input("x", {8, 63});
  const GraphValue w = b.parameter("w", {63, 64});
  b.returns(b.add(kMatmul, {x, w}, {8, 64}));
  EXPECT_THAT(derive(b, {.mode = Mode::kLayouts, .mesh = "tp=2"}).evenPads, IsEmpty());
}

// Columns that are 63 of 96: no pad makes a slice give more of them.
TEST(Derive, NoPadReachesTheResultOfASlice) {
  const auto padsOf = [](const std::string& rule) {
    GraphBuilder b;
    const GraphValue whole = b.parameter("all", {8, 96});
    const GraphValue w = b.parameter("w", {8, 63});
    const GraphValue part = b.add(OperatorFacts{"slice", rule}, {whole}, {8, 63});
    b.returns(b.add(OperatorFacts{"add", "a b, a b -> a b"}, {part, w}, {8, 63}));
    return derive(b, {.mode = Mode::kLayouts, .mesh = "tp=2"}).evenPads;
  };
  EXPECT_THAT(padsOf("a s! -> a r!"), IsEmpty());
  EXPECT_THAT(padsOf("a s! -> a r"), ElementsAre(std::pair(1U, Shape({8, 64})))) << "as of a broadcast";
}

// A pad of one argument spreads to another, whose stored size the user has named.
TEST(Derive, PadsDoNotSpreadToWhatNamesItsOwn) {
  const auto stored = [](const std::string& layout) {
    GraphBuilder b;
    const GraphValue x = b.input("x", {8, 6});
    const GraphValue w = b.parameter("w", {6, 4});
    b.returns(b.add(kMatmul, {x, w}, {8, 4}));
    b.graph.arguments[w.index].layout = layout;
    const Derived derived = derive(b, {.mesh = "tp=4"}, {.pads = {{x.index, {8, 8}}}});
    EXPECT_TRUE(derived.record.ok()) << derived.record.status();
    return derived.record->arguments[w.index].layout.storedShape({6, 4});
  };
  EXPECT_EQ(stored("[{},{}]"), Shape({8, 4}));
  EXPECT_EQ(stored("[{},{}] pad{0:6}"), Shape({6, 4}));
}

// Arguments: x, a and its momentum, b and its momentum.
TEST(Derive, EachParameterHasItsLevelOfZero) {
  GraphBuilder b;
  const GraphValue in = b.input("x", {8, 4});
  addWeight(b, in, "a", {8, 4}, {4, 64});
  addWeight(b, in, "b", {8, 4}, {4, 64});
  const Derived mixed = derive(b, {.mesh = "dp=2", .zero = 1, .zeroOf = {{"b", 3}}});
  ASSERT_TRUE(mixed.record.ok()) << mixed.record.status();
  EXPECT_EQ(mixed.record->zero, 1);
  EXPECT_EQ(mixed.record->arguments[1].zero, std::nullopt);
  EXPECT_EQ(mixed.record->arguments[3].zero, 3);
  EXPECT_EQ(mixed.record->arguments[4].zero, std::nullopt) << "only parameters have a level";
  EXPECT_EQ(mixed.layout(1), "[{},{}]");
  EXPECT_EQ(mixed.layout(2), "[{},{dp}]");
  EXPECT_EQ(mixed.layout(3), "[{},{dp}]");
  EXPECT_EQ(mixed.record->arguments[3].gather, GatherPolicy::kOncePerStep);
  EXPECT_EQ(mixed.record->arguments[1].gather, GatherPolicy::kNone);
  const Derived lowered = derive(b, {.mesh = "dp=2", .zero = 3, .zeroOf = {{"a", 0}}});
  EXPECT_EQ(lowered.layout(1), "[{},{}]");
  EXPECT_EQ(lowered.layout(2), "[{},{}]");
  EXPECT_EQ(lowered.layout(3), "[{},{dp}]");
  EXPECT_EQ(lowered.record->arguments[1].zero, 0);
  const Derived all = derive(b, {.mesh = "dp=2", .zeroOf = {{"*", 2}}});
  EXPECT_EQ(all.record->zero, 2) << "of all, the level is the record's";
  EXPECT_EQ(all.record->arguments[1].zero, std::nullopt);
}

TEST(Derive, OnlyParametersWithALevelArePaddedForIt) {
  GraphBuilder b;
  const GraphValue in = b.input("x", {8, 4});
  addWeight(b, in, "a", {8, 4}, {4, 65});
  addWeight(b, in, "b", {8, 4}, {4, 65});
  const Derived derived = derive(b, {.mesh = "dp=3", .zeroOf = {{"b", 1}}});
  ASSERT_TRUE(derived.record.ok()) << derived.record.status();
  EXPECT_EQ(derived.record->arguments[1].layout.storedShape({4, 65}), Shape({4, 65}));
  EXPECT_EQ(derived.record->arguments[3].layout.storedShape({4, 65}), Shape({4, 66}));
}

TEST(Derive, ZeroShardsStateThenParameters) {
  for (const int zero : {0, 1, 2, 3}) {
    const Derived derived = derive(trainingStep(), {.mesh = "dp=2", .zero = zero});
    ASSERT_TRUE(derived.record.ok()) << derived.record.status();
    EXPECT_EQ(derived.layout(2), zero > 0 ? "[{},{dp}]" : "[{},{}]") << zero;
    EXPECT_EQ(derived.layout(1), zero == 3 ? "[{},{dp}]" : "[{},{}]") << zero;
    EXPECT_EQ(derived.record->arguments[1].gather, zero == 3 ? GatherPolicy::kOncePerStep : GatherPolicy::kNone);
  }
  const Derived scarce = derive(trainingStep(), {.mesh = "dp=2", .zero = 3}, {.gatherBytes = 0});
  EXPECT_EQ(scarce.record->arguments[1].gather, GatherPolicy::kEachCall);
}

TEST(Derive, AWeightThatIsGatheredInEachCallStaysSplit) {
  const GraphBuilder b = rowsAgainstColumns();
  for (const bool regather : {false, true}) {
    const Derived derived = derive(b, {.mesh = "tp=2", .micro = 4, .regather = regather});
    ASSERT_TRUE(derived.record.ok()) << derived.record.status();
    EXPECT_EQ(derived.record->find(1)->axes.count(regather ? "n" : "m"), 1U) << regather;
  }
}

TEST(Derive, WhatDoesNotDivideIsPadded) {
  const Derived batch = derive(trainingStep({9, 4}), {.mesh = "dp=2"});
  ASSERT_TRUE(batch.record.ok()) << batch.record.status();
  EXPECT_EQ(batch.record->arguments[0].layout.storedShape({9, 4}), Shape({10, 4}));
  const Derived zero = derive(trainingStep({8, 4}, {4, 65}), {.mesh = "dp=3", .zero = 1});
  ASSERT_TRUE(zero.record.ok()) << zero.record.status();
  EXPECT_EQ(zero.record->arguments[1].layout.storedShape({4, 65}), Shape({4, 66}));
  GraphBuilder b = trainingStep({8, 4}, {4, 64});
  b.graph.operators[0].strategy = UserStrategy{true, {}, {}, {{"", ""}, {"", "tp"}}, {}, {}};
  const Derived both = derive(b, {.mesh = "dp=3,tp=2", .zero = 1});
  ASSERT_TRUE(both.record.ok()) << both.record.status();
  EXPECT_EQ(both.layout(1), "[{},{tp}] pad{1:66}") << "the split over tp stays";
  EXPECT_EQ(both.layout(2), "[{},{tp,dp}] pad{1:66}");
}

TEST(Derive, MicroBatchesRunPerCallAndTheUpdateOnce) {
  const Derived derived = derive(trainingStep(), {.mesh = "dp=2", .micro = 2});
  ASSERT_TRUE(derived.record.ok()) << derived.record.status();
  EXPECT_EQ(derived.record->find(0)->batch, "m");
  EXPECT_TRUE(derived.record->find(0)->perMicroBatch);
  EXPECT_EQ(derived.record->find(2)->runsIn, RunsIn::kBackward);
  EXPECT_EQ(derived.record->find(4)->runsIn, RunsIn::kUpdate);
  EXPECT_FALSE(derived.record->find(4)->perMicroBatch);
}

TEST(Derive, MixingMicroBatchesIsRefusedAtItsLine) {
  GraphBuilder b;
  const GraphValue x = b.input("x", {8, 4});
  b.returns(b.add({"sort", "a! b -> a b"}, {x}, {8, 4}));
  const Derived derived = derive(b, {.micro = 2});
  EXPECT_THAT(derived.error(), HasSubstr("op0 needs dimension 'a' of the batch whole, but the step runs in 2"));
  EXPECT_EQ(sourcePlaceOf(derived.record.status()), (SourcePlace{"model.cc", 10, 1}));
}

TEST(Derive, AnAlternativeIsTakenWhereASplitReachesIt) {
  GraphBuilder b;
  const GraphValue x = b.input("x", {8, 4});
  b.returns(b.add(kSoftmax, {x}, {8, 4}));
  b.graph.arguments[0].layout = "[{},{tp}]";
  b.last().alternatives = {{{{kRelu, {{GraphValue::kArgument, 0}}, {{{8, 4}, DType::kF32}}}}, {{0, 0}}}};
  const Derived derived = derive(b, {.mesh = "tp=2"});
  ASSERT_TRUE(derived.record.ok()) << derived.record.status();
  ASSERT_EQ(derived.record->rewrites.size(), 1U);
  EXPECT_EQ(derived.record->rewrites[0].id, 0);
  ASSERT_EQ(derived.graph.operators.size(), 1U);
  EXPECT_EQ(derived.graph.operators[0].facts.kind, "relu");
  EXPECT_EQ(derived.record->find(1)->axes.at("b").size(), 1U);
}

// Work takes its arithmetic and bytes, messages what they carry.
constexpr char kPlainMachine[] =
    "flops = 1e12\nmemory_bandwidth = 1e11\nlink_bandwidth = 1e10\nlink_latency = 1e-9\nlaunch_latency = 1e-9\n";
constexpr int64_t kClasses = 4096;

// Three rows of scores, which two ranks cannot share, and a loss of each that needs all classes; its alternative sums
// over the classes with so much arithmetic for each score. The scores are asked to be split by classes only by price.
GraphBuilder classifier(double flopsOfAlternative) {
  GraphBuilder b;
  const GraphValue x = b.input("x", {3, 256});
  const GraphValue w = b.parameter("w", {256, kClasses});
  const GraphValue scores = b.add(kMatmul, {x, w}, {3, kClasses});
  b.graph.operators[0].facts.flopsPerPoint = 2;
  b.returns(b.add({"row_loss", "a v! -> a"}, {scores}, {3}));
  const OperatorFacts exp = {.kind = "exp", .rule = "a v -> a v", .flopsPerPoint = flopsOfAlternative};
  b.last().alternatives = {{{{exp, {{GraphValue::kArgument, 0}}, {{{3, kClasses}, DType::kF32}}},
                             {{"row_sum", "a v+ -> a", {{0}}}, {{0, 0}}, {{{3}, DType::kF32}}}},
                            {{1, 0}}}};
  return b;
}

const CompileOptions kSplitsOpen = {.mode = Mode::kLayouts, .mesh = "tp=2", .machine = kPlainMachine};

TEST(Derive, AnAlternativeThatPaysIsTakenThoughNobodyAsks) {
  const Derived derived = derive(classifier(1), kSplitsOpen);
  ASSERT_TRUE(derived.record.ok()) << derived.record.status();
  ASSERT_EQ(derived.record->rewrites.size(), 1U);
  EXPECT_EQ(derived.record->rewrites[0].id, 1);
  EXPECT_EQ(derived.record->rewrites[0].of, "row_loss");
  ASSERT_EQ(derived.graph.operators.size(), 3U);
  EXPECT_EQ(derived.record->find(0)->axes.at("n").size(), 1U) << "the scores stay split";
  EXPECT_EQ(derived.record->find(2)->axes.at("v").size(), 1U);
  EXPECT_EQ(derived.record->find(3)->axes.at("v").size(), 1U);
}

// Both ranks gather the scores in less time.
TEST(Derive, AnAlternativeThatTakesLongerIsNot) {
  const Derived derived = derive(classifier(1e4), kSplitsOpen);
  ASSERT_TRUE(derived.record.ok()) << derived.record.status();
  ASSERT_THAT(derived.record->rewrites, IsEmpty());
  EXPECT_EQ(derived.record->find(0)->axes.at("n").size(), 1U);
  EXPECT_EQ(derived.record->find(1)->axes.count("v"), 0U);
}

TEST(Derive, AnAlternativeWhoseOwnReshardsTakeLongerIsNot) {
  GraphBuilder b = classifier(1);
  std::vector<AlternativeOperator>& body = b.last().alternatives[0].body;
  body[0].facts.rule = "a v! -> a v";
  body[1].facts.rule = "a v! -> a";
  const Derived derived = derive(b, kSplitsOpen);
  ASSERT_TRUE(derived.record.ok()) << derived.record.status();
  EXPECT_THAT(derived.record->rewrites, IsEmpty()) << "it gathers the scores, too, and reads them twice";
}

TEST(Derive, AnAlternativeWhoseResultsAreLargeSumsIsNot) {
  GraphBuilder b = classifier(1);
  const Shape large = {3, 4 * kClasses};
  b.last().facts.rule = "a v! -> a w";
  b.last().results = {{large, DType::kF32}};
  b.last().alternatives = {
      {{{{"project", "a v+ -> a w", {{0}}}, {{GraphValue::kArgument, 0}}, {{large, DType::kF32}}}}, {{0, 0}}}};
  const Derived derived = derive(b, kSplitsOpen);
  ASSERT_TRUE(derived.record.ok()) << derived.record.status();
  EXPECT_THAT(derived.record->rewrites, IsEmpty()) << "the scores are a quarter of it";
}

TEST(Derive, AlternativesAreNotSearchedInModeSemi) {
  CompileOptions semi = kSplitsOpen;
  semi.mode = Mode::kSemi;
  const Derived derived = derive(classifier(1), semi);
  ASSERT_TRUE(derived.record.ok()) << derived.record.status();
  EXPECT_THAT(derived.record->rewrites, IsEmpty());
}

TEST(Derive, WhatTheUserKeepsWholeKeepsItsOperator) {
  GraphBuilder b = classifier(1);
  b.last().strategy = UserStrategy{true, {}, {}, {{"", ""}}, {}, {}};
  const Derived derived = derive(b, kSplitsOpen);
  ASSERT_TRUE(derived.record.ok()) << derived.record.status();
  EXPECT_THAT(derived.record->rewrites, IsEmpty());
}

// Where the gradient needs the classes whole, the alternative would only move the gather.
TEST(Derive, AGradientThatNeedsTheFactorWholeKeepsTheOperator) {
  for (const char* rule : {"a v, a -> a v", "a v!, a -> a v"}) {
    GraphBuilder b = classifier(1);
    const GraphValue scores = {0, 0};
    const GraphValue loss = {1, 0};
    b.returns(b.add({"row_loss_grad", rule}, {scores, loss}, {3, kClasses}));
    b.last().phase = Phase::kBackward;
    b.last().forward = 1;
    const Derived derived = derive(b, kSplitsOpen);
    ASSERT_TRUE(derived.record.ok()) << derived.record.status();
    EXPECT_EQ(derived.record->rewrites.size(), rule[3] == '!' ? 0U : 1U) << rule;
  }
}

// An alternative that mixes the micro-batches is none in several of them.
TEST(Derive, AnAlternativeThatMixesMicroBatchesIsNotTaken) {
  for (const int64_t micro : {1, 3}) {
    GraphBuilder b = classifier(1);
    std::vector<AlternativeOperator>& body = b.last().alternatives[0].body;
    body.insert(body.begin() + 1, {{"sort", "a! v -> a v"}, {{0, 0}}, {{{3, kClasses}, DType::kF32}}});
    body[2].operands = {{1, 0}};
    b.last().alternatives[0].results = {{2, 0}};
    CompileOptions options = kSplitsOpen;
    options.micro = micro;
    const Derived derived = derive(b, options);
    ASSERT_TRUE(derived.record.ok()) << derived.record.status();
    EXPECT_EQ(derived.record->rewrites.size(), micro == 1 ? 1U : 0U) << micro;
  }
}

// Of what exists only to be expanded, nothing splits anything, and the reader knows nothing of its new shape.
TEST(Derive, WhatMustBeExpandedIsWhateverTheSplits) {
  GraphBuilder b;
  const GraphValue x = b.input("x", {8, 4});
  OperatorFacts statistic = {"statistic", "a b -> a b"};
  statistic.mustExpand = true;
  const GraphValue y = b.add(statistic, {x}, {8, 4});
  b.last().alternatives = {
      {{{{"row_sum", "a b+ -> a"}, {{GraphValue::kArgument, 0}}, {{{8}, DType::kF32}}}}, {{0, 0}}}};
  b.returns(b.add(statistic, {x, y}, {8, 4}));
  b.last().alternatives = {{{{{"sub_rows", "a b, a -> a b"},
                              {{GraphValue::kArgument, 0}, {GraphValue::kArgument, 1}},
                              {{{8, 4}, DType::kF32}}}},
                            {{0, 0}}}};
  const Derived derived = derive(b, {.mesh = "dp=2"});
  ASSERT_TRUE(derived.record.ok()) << derived.record.status();
  ASSERT_EQ(derived.record->rewrites.size(), 2U);
  EXPECT_EQ(derived.record->rewrites[1].id, 1);
  ASSERT_EQ(derived.graph.operators.size(), 2U);
  EXPECT_EQ(derived.graph.operators[0].results[0].shape, (Shape{8}));
  EXPECT_EQ(derived.graph.operators[1].facts.kind, "sub_rows");
  EXPECT_EQ(derived.record->find(3)->axes.at("a").size(), 1U);
}

TEST(Derive, WhatMustBeExpandedNeedsAnExpansion) {
  GraphBuilder b;
  OperatorFacts statistic = {"statistic", "a b -> a b"};
  statistic.mustExpand = true;
  b.returns(b.add(statistic, {b.input("x", {8, 4})}, {8, 4}));
  const Derived derived = derive(b, {});
  EXPECT_THAT(derived.error(), HasSubstr("op0 (statistic) exists only to be expanded, and has no expansion"));
  EXPECT_EQ(sourcePlaceOf(derived.record.status()), (SourcePlace{"model.cc", 10, 1}));
}

// Two layers on stages 0 and 1: what prepares an input runs where it is read, a backward operator with its forward
// operator.
TEST(Derive, StagesFollowTheData) {
  GraphBuilder b;
  const GraphValue x = b.input("x", {8, 4});
  const GraphValue w = b.parameter("w", {4, 4});
  const GraphValue first = b.add(kMatmul, {b.add(kRelu, {x}, {8, 4}), w}, {8, 4});
  const GraphValue second = b.add(kRelu, {first}, {8, 4});
  b.last().userStage = 1;
  const GraphValue third = b.add(kRelu, {second}, {8, 4});
  const GraphValue gradient = b.add(kAdd, {third, first}, {8, 4});
  b.last().phase = Phase::kBackward;
  b.last().forward = 1;
  b.returns(gradient);
  const Derived derived = derive(b, {.micro = 4, .schedule = "1f1b"});
  ASSERT_TRUE(derived.record.ok()) << derived.record.status();
  std::vector<int64_t> stages;
  for (const OperatorDecision& op : derived.record->operators) {
    stages.push_back(op.stage);
  }
  EXPECT_THAT(stages, ElementsAre(0, 0, 1, 1, 0));
  EXPECT_THAT(derived.record->schedule.submeshes, ElementsAre(0, 1));
}

TEST(Derive, StagesThatCannotBeAreRefused) {
  GraphBuilder b;
  const GraphValue x = b.input("x", {8, 4});
  const GraphValue first = b.add(kRelu, {x}, {8, 4});
  b.last().userStage = 1;
  b.returns(b.add(kRelu, {first}, {8, 4}));
  b.last().userStage = 0;
  b.graph.operators[0].line = {"model.cc", 7, 1};
  EXPECT_THAT(derive(b, {}).error(),
              HasSubstr("op1 is on stage 0, but reads a value of stage 1, of op0 (model.cc:7): values flow"));
  b.last().userStage = 3;
  const Derived gap = derive(b, {});
  EXPECT_THAT(gap.error(), HasSubstr("no operator is on stage 0, 2, but some are on stage 3"));
  b.last().userStage = -1;
  EXPECT_THAT(derive(b, {}).error(), HasSubstr("op1 is on stage -1; stages are 0, 1, ..."));
}

TEST(Derive, RecomputeKeepsTheBorderOfAScope) {
  GraphBuilder b;
  const GraphValue x = b.input("x", {8, 4});
  const GraphValue inside = b.add(kRelu, {x}, {8, 4});
  b.last().recomputeScope = 0;
  const GraphValue border = b.add(kRelu, {inside}, {8, 4});
  b.last().recomputeScope = 0;
  const GraphValue outside = b.add(kRelu, {border}, {8, 4});
  b.returns(b.add(kAdd, {outside, inside}, {8, 4}));
  b.last().phase = Phase::kBackward;
  const Derived derived = derive(b, {});
  ASSERT_TRUE(derived.record.ok()) << derived.record.status();
  EXPECT_TRUE(derived.record->find(0)->recompute);
  EXPECT_FALSE(derived.record->find(1)->recompute) << "read outside of the scope";
  EXPECT_FALSE(derived.record->find(2)->recompute);
  const Derived named = derive(b, {.recompute = "op2"});
  EXPECT_TRUE(named.record->find(2)->recompute);
  EXPECT_THAT(derive(b, {.recompute = "op7"}).error(), HasSubstr("op7"));
}

// Of few rows on a slow network the sum over them takes longer than all of them: where the batch's axes are free every
// rank computes the whole.
TEST(Derive, FreeBatchAxesMaySplitNothing) {
  for (const bool isFree : {false, true}) {
    GraphBuilder b;
    const GraphValue loss = b.add({"relu", "a -> a"}, {b.input("x", {4})}, {4});
    b.returns(b.add({"sum", "a+ ->", {{0}}, /*passesSums=*/true}, {loss}, {}));
    CompileOptions options = {.mode = Mode::kLayouts, .mesh = "dp=2"};
    options.machine = "link_latency = 1e-3";
    const Derived derived = derive(b, options, {.batchAxes = isFree});
    ASSERT_TRUE(derived.record.ok()) << derived.record.status();
    EXPECT_EQ(derived.record->find(0)->axes.empty(), isFree);
    EXPECT_EQ(derived.record->find(1)->axes.empty(), isFree);
  }
}

// A constant is made again where it is named, so that a plan that does so for memory can be said in words.
TEST(Derive, WhatReadsNothingRunsAgainWhereItIsNamed) {
  GraphBuilder b;
  const GraphValue ones = b.add({"constant", "-> a b"}, {}, {8, 4});
  b.last().facts.isConstant = true;
  b.returns(b.add(kRelu, {b.add(kAdd, {b.input("x", {8, 4}), ones}, {8, 4})}, {8, 4}));
  const GraphView view(b.graph);
  const std::vector<int64_t> stages(3, 0);
  EXPECT_THAT(recomputableNames(view), Contains("constant"));
  EXPECT_THAT(recomputedOps(view, stages, "constant"), ElementsAre(true, false, false));
  EXPECT_THAT(recomputedOps(view, stages, "full"), ElementsAre(false, true, false)) << "what the step returns is kept";
  const RecomputeWords words = recomputeWords(view, stages, {true, true, false});
  EXPECT_EQ(words.option, "op0,op1");
  EXPECT_THAT(words.operators, IsEmpty());
  b.graph.operators[0].recomputeScope = kRecomputedAlone;
  EXPECT_THAT(recomputedOps(GraphView(b.graph), stages, "none"), ElementsAre(true, false, false));
  // A name that says nothing of an operator is none of the words.
  b.graph.operators[0].recomputeScope.reset();
  EXPECT_EQ(recomputeWords(GraphView(b.graph), {1, 0, 0}, {true, true, false}).option, "op1");
}

// What "full" recomputes are the layers of the model, whether or not all of them are split alike.
TEST(Derive, LayersThatAreSplitDifferentlyAreRecomputedAlike) {
  const auto recomputed = [](const GraphBuilder& b) {
    const Derived derived = derive(b, {.mesh = "dp=2", .recompute = "full"});
    EXPECT_TRUE(derived.record.ok()) << derived.record.status();
    std::vector<int64_t> ids;
    for (const OperatorDecision& op : derived.record->operators) {
      if (op.recompute) {
        ids.push_back(op.id);
      }
    }
    return ids;
  };
  GraphBuilder b = chainProgram({.layers = 4, .relus = 2});
  const std::vector<int64_t> alike = recomputed(b);
  EXPECT_THAT(alike, ElementsAre(0, 1, 3, 4, 6, 7, 9, 10)) << "all but the last operator of each layer";
  b.graph.operators[4].strategy = UserStrategy{.inSplits = {{2, 1}}, .outSplits = {{2, 1}}};
  EXPECT_EQ(recomputed(b), alike);
}

TEST(Derive, WhatNothingReadsIsNotDecided) {
  GraphBuilder b = trainingStep();
  b.add(kRelu, {{GraphValue::kArgument, 0}}, {8, 4});
  const int64_t unused = b.last().id;
  const Derived derived = derive(b, {.mesh = "dp=2"});
  EXPECT_EQ(derived.record->find(unused), nullptr);
  EXPECT_THAT(derived.record->rewrites, IsEmpty());
}

}  // namespace
}  // namespace weft::testing
