// Which storage each value gets, on programs written by hand. Random programs, against an oracle that follows every
// byte, are in tests/passes/plan.
#include "planner/step/storage.h"

#include <gtest/gtest.h>

#include "planner/step/copies.h"
#include "planner/step/storage_lives.h"
#include "tests/planner/step/step_builder.h"

namespace weft::testing {
namespace {

TEST(StorageTest, InPlaceOnlyWhereTheCellIsReadNoMore) {
  StepBuilder b;
  b.function(plan::FORWARD);
  const int a = b.kernel({});
  const int stillRead = b.inPlace({a});
  const int last = b.inPlace({a});
  const int twice = b.inPlace({last, last});
  const int other = b.kernel({twice});
  b.read({other, stillRead});
  const StorageAssignment out = assignStorage(b.program);
  EXPECT_NE(out.of[stillRead], out.of[a]);  // the next instruction reads a
  EXPECT_EQ(out.of[last], out.of[a]);
  EXPECT_NE(out.of[twice], out.of[last]);   // each input alone, not both at once
  EXPECT_NE(out.of[other], out.of[twice]);  // the kernel does not allow it
  const std::vector<StorageLife> lives = livesOf(b.program, out);
  EXPECT_EQ(lives[out.of[a]].users, std::vector<int>{0});
  EXPECT_EQ(lives[out.of[a]].first, 0);
  EXPECT_EQ(lives[out.of[a]].last, 3);  // with what lies there after it
  EXPECT_EQ(lives[out.of[stillRead]].last, 5);
}

TEST(StorageTest, TakesTheFirstInputThatMayBeWritten) {
  StepBuilder b;
  b.function(plan::FORWARD);
  const int x = b.argument("x", plan::INPUT);
  const int w = b.argument("w", plan::PARAMETER);
  const int a = b.kernel({x});
  const int c = b.inPlace({x, w, a});
  b.read({c});
  const StorageAssignment out = assignStorage(b.program);
  EXPECT_EQ(out.of[c], out.of[a]);  // inputs and parameters are kept, though nothing here reads them again
  EXPECT_EQ(out.named.at("x"), out.of[x]);
  EXPECT_EQ(out.storages[out.of[x]].memory, plan::INPUT);
  EXPECT_EQ(out.storages[out.of[w]].memory, plan::PARAMETER);
}

TEST(StorageTest, AReturnedValueIsKeptToTheEnd) {
  StepBuilder b;
  b.function(plan::FORWARD);
  const int a = b.kernel({});
  const int over = b.inPlace({a});
  b.read({over});
  b.returns(a, "v0", plan::ACTIVATION);
  const StorageAssignment out = assignStorage(b.program);
  EXPECT_NE(out.of[over], out.of[a]);
  EXPECT_EQ(livesOf(b.program, out)[out.of[a]].last, 3);
}

// A parameter is written over only by a kernel that allows it for this input; any other writes elsewhere and is copied.
TEST(StorageTest, AParameterIsWrittenOverOrCopied) {
  StepBuilder b;
  b.function(plan::UPDATE);
  const int w = b.argument("w", plan::PARAMETER);
  const int u = b.argument("u", plan::PARAMETER);
  const int nextW = b.inPlace({w});
  b.last().label = "sgd";
  b.last().named = true;
  const int nextU = b.kernel({u});
  b.returns(nextW, "w", plan::PARAMETER);
  b.returns(nextU, "u", plan::PARAMETER);
  const StorageAssignment out = assignStorage(b.program);
  EXPECT_EQ(out.of[nextW], out.of[w]);
  EXPECT_EQ(out.storages[out.of[w]].label, "w");  // its own name says what it is
  EXPECT_NE(out.of[nextU], out.of[u]);
  ASSERT_EQ(out.copies[0].size(), 1u);
  EXPECT_EQ(out.copies[0][0].from, out.of[nextU]);
  EXPECT_EQ(out.copies[0][0].to, out.of[u]);
}

TEST(StorageTest, ViewLiesInItsInput) {
  StepBuilder b;
  b.function(plan::FORWARD);
  const int a = b.kernel({});
  const int flat = b.view(a);
  const int over = b.inPlace({a});
  b.read({flat, over});
  const int again = b.view(over);
  const int late = b.inPlace({again});
  b.read({late});
  const StorageAssignment out = assignStorage(b.program);
  EXPECT_EQ(out.of[flat], out.of[a]);
  EXPECT_NE(out.of[over], out.of[a]);     // the view is still read
  EXPECT_EQ(out.of[late], out.of[over]);  // it is the last reader of all views
  EXPECT_EQ(out.views[0], (std::vector<bool>{false, true, false, false, true, false, false}));
}

TEST(StorageTest, ViewThatIsANamedResultIsWrittenThere) {
  StepBuilder b;
  b.function(plan::UPDATE);
  const int w = b.argument("w", plan::PARAMETER);
  const int sum = b.kernel({w});
  const int flat = b.view(sum);
  b.returns(flat, "w", plan::PARAMETER);
  const StorageAssignment out = assignStorage(b.program);
  EXPECT_EQ(out.of[flat], out.of[w]);
  EXPECT_NE(out.of[sum], out.of[w]);
  EXPECT_FALSE(out.views[0][1]);
  EXPECT_TRUE(out.copies[0].empty());
}

TEST(StorageTest, OneNameIsOneStorageInAllFunctions) {
  StepBuilder b;
  b.function(plan::FORWARD);
  const int h = b.kernel({});
  b.last().label = "fc1";
  b.returns(h, "v0", plan::ACTIVATION);
  b.returns(h, "v1", plan::ACTIVATION);
  b.function(plan::BACKWARD);
  const int first = b.argument("v0", plan::ACTIVATION);
  const int second = b.argument("v1", plan::ACTIVATION);
  b.read({first});
  b.read({second});
  const StorageAssignment out = assignStorage(b.program);
  EXPECT_EQ(out.of[first], out.of[h]);
  EXPECT_EQ(out.of[second], out.of[h]);
  EXPECT_EQ(out.named.at("v0"), out.named.at("v1"));
  const Storage& storage = out.storages[out.of[h]];
  EXPECT_EQ(storage.memory, plan::ACTIVATION);
  EXPECT_EQ(storage.label, "fc1");
  const StorageLife life = livesOf(b.program, out)[out.of[h]];
  EXPECT_EQ(life.first, 0);
  EXPECT_EQ(life.last, 3);  // made, end of the forward function, two readers
  EXPECT_EQ(life.users, (std::vector<int>{0, 1}));
  EXPECT_TRUE(out.copies[0].empty());
}

// Of two writers of a name neither chooses where it lies.
TEST(StorageTest, ANameThatTwoFunctionsWriteHasAStorageOfItsOwn) {
  StepBuilder b;
  b.function(plan::FORWARD, 0);
  const int a = b.kernel({});
  b.returns(a, "v0", plan::ACTIVATION);
  b.function(plan::FORWARD, 1);
  const int v = b.argument("v0", plan::ACTIVATION);
  const int next = b.inPlace({v});
  b.returns(next, "v0", plan::ACTIVATION);
  const StorageAssignment out = assignStorage(b.program);
  EXPECT_EQ(out.of[a], out.named.at("v0"));
  EXPECT_EQ(out.of[next], out.named.at("v0"));
  EXPECT_EQ(out.storages.size(), 1u);
}

// ... and shares none with another name, which would change with it.
TEST(StorageTest, ANameThatTwoFunctionsWriteSharesNoStorage) {
  StepBuilder b;
  b.function(plan::FORWARD);
  const int h = b.kernel({});
  b.returns(h, "v0", plan::ACTIVATION);
  b.returns(h, "v1", plan::ACTIVATION);
  b.function(plan::BACKWARD);
  b.read({b.argument("v0", plan::ACTIVATION), b.argument("v1", plan::ACTIVATION)});
  b.returns(b.kernel({}), "v1", plan::ACTIVATION);
  const StorageAssignment out = assignStorage(b.program);
  EXPECT_NE(out.named.at("v0"), out.named.at("v1"));
  ASSERT_EQ(out.copies[0].size(), 1u);
  EXPECT_EQ(out.copies[0][0].like, h);
}

TEST(StorageTest, EqualConstantsAreOneStorageAndNeverWritten) {
  StepBuilder b;
  b.function(plan::INIT);
  const int one = b.constant(0);
  const int other = b.constant(1);
  b.returns(one, "w", plan::PARAMETER);
  b.function(plan::FORWARD);
  const int same = b.constant(0);
  const int over = b.inPlace({same});
  b.read({over});
  const StorageAssignment out = assignStorage(b.program);
  EXPECT_EQ(out.of[one], out.of[same]);
  EXPECT_NE(out.of[one], out.of[other]);
  EXPECT_NE(out.of[over], out.of[same]);
  EXPECT_EQ(out.storages[out.of[one]].memory, plan::CONSTANT);
  ASSERT_EQ(out.copies[0].size(), 1u);
  EXPECT_EQ(out.copies[0][0].from, out.of[one]);
  EXPECT_EQ(out.copies[0][0].to, out.named.at("w"));
}

// The backward pass may write over an activation if it is the last to read it, the host does not see it, and it is
// written again before it is read again.
TEST(StorageTest, ReusesActivationsOnlyInTheBackwardPassByTheLastReader) {
  const auto reused = [](plan::FunctionKind kind, bool readLater, bool visible) {
    StepBuilder b;
    b.function(plan::FORWARD);
    b.returns(b.kernel({}), "v0", plan::ACTIVATION);
    b.function(kind);
    const int v = b.argument("v0", plan::ACTIVATION);
    const int over = b.inPlace({v});
    b.read({over});
    b.function(plan::WEIGHT_GRAD);
    b.read({readLater ? b.argument("v0", plan::ACTIVATION) : b.kernel({})});
    if (visible) {
      b.program.visible.insert("v0");
    }
    const StorageAssignment out = assignStorage(b.program);
    return out.of[over] == out.of[v];
  };
  EXPECT_TRUE(reused(plan::BACKWARD, false, false));
  EXPECT_TRUE(reused(plan::INPUT_GRAD, false, false));
  EXPECT_FALSE(reused(plan::INPUT_GRAD, true, false));
  EXPECT_FALSE(reused(plan::BACKWARD, false, true));
  EXPECT_FALSE(reused(plan::FORWARD, false, false));
  EXPECT_FALSE(reused(plan::UPDATE, false, false));
}

// Where the backward pass is cut in two, halves of stages that share a submesh run in the order of the schedule: the
// one that stands last need not run last.
TEST(StorageTest, WhatHalvesOfSeveralStagesReadStays) {
  const auto isReused = [](plan::FunctionKind kind, int64_t otherStage) {
    StepBuilder b;
    b.function(plan::FORWARD, 1);
    const int h = b.kernel({});
    b.returns(h, "v0", plan::ACTIVATION);
    b.function(kind, otherStage);
    b.read({b.argument("v0", plan::ACTIVATION)});
    b.function(kind, 1);
    const int over = b.inPlace({b.argument("v0", plan::ACTIVATION)});
    b.read({over});
    const StorageAssignment out = assignStorage(b.program);
    return out.of[over] == out.of[h];
  };
  EXPECT_FALSE(isReused(plan::WEIGHT_GRAD, 2));
  EXPECT_FALSE(isReused(plan::INPUT_GRAD, 2));
  EXPECT_TRUE(isReused(plan::BACKWARD, 2)) << "whole backward passes run from the last stage to the first";
  EXPECT_TRUE(isReused(plan::WEIGHT_GRAD, 1)) << "of one stage";
}

// A second name of the storage keeps it: the name has a later reader.
TEST(StorageTest, AllNamesOfAStorageMustBeReadNoMore) {
  StepBuilder b;
  b.function(plan::FORWARD);
  const int h = b.kernel({});
  b.returns(h, "v0", plan::ACTIVATION);
  b.returns(h, "v1", plan::ACTIVATION);
  b.function(plan::INPUT_GRAD);
  const int over = b.inPlace({b.argument("v0", plan::ACTIVATION)});
  b.read({over});
  b.function(plan::WEIGHT_GRAD);
  b.read({b.argument("v1", plan::ACTIVATION)});
  const StorageAssignment out = assignStorage(b.program);
  EXPECT_NE(out.of[over], out.named.at("v0"));
}

TEST(StorageTest, AccumulatorIsWrittenWhereItLiesAndTakesTheLabel) {
  StepBuilder b;
  b.function(plan::BACKWARD);
  const int sum = b.argument("acc0", plan::ACCUMULATOR);
  const int unnamed = b.argument("acc1", plan::ACCUMULATOR);
  const int gradient = b.kernel({});
  const int next = b.inPlace({sum, gradient});
  b.last().label = "fc1.grad";
  b.last().named = true;
  const int nextUnnamed = b.inPlace({unnamed, gradient});
  b.last().label = "accumulate";
  b.returns(next, "acc0", plan::ACCUMULATOR);
  b.returns(nextUnnamed, "acc1", plan::ACCUMULATOR);
  b.function(plan::UPDATE);
  const int total = b.argument("acc0", plan::ACCUMULATOR);
  const int scaled = b.inPlace({total});
  b.read({scaled});
  const StorageAssignment out = assignStorage(b.program);
  EXPECT_EQ(out.of[next], out.of[sum]);
  EXPECT_TRUE(out.copies[0].empty());
  EXPECT_EQ(out.storages[out.of[sum]].label, "fc1.grad");
  EXPECT_EQ(out.storages[out.of[unnamed]].label, "acc1");
  // Of the update alone, until the next step writes it.
  EXPECT_EQ(out.of[scaled], out.of[total]);
  EXPECT_EQ(out.of[total], out.of[sum]);
}

TEST(StorageTest, WhatMustOutlastItsMemoryIsCopied) {
  // Read after the last micro-batch, but made in a slot that later ones write.
  StepBuilder b;
  b.function(plan::FORWARD);
  b.returns(b.kernel({}), "v0", plan::ACTIVATION);
  b.function(plan::BACKWARD);
  const int v = b.argument("v0", plan::ACTIVATION);
  b.returns(v, "late", plan::ACCUMULATOR);
  b.function(plan::UPDATE);
  b.read({b.argument("late", plan::ACCUMULATOR)});
  StorageAssignment out = assignStorage(b.program);
  ASSERT_EQ(out.copies[1].size(), 1u);
  EXPECT_EQ(out.copies[1][0].like, v);
  EXPECT_EQ(out.copies[1][0].from, out.of[v]);
  EXPECT_EQ(out.copies[1][0].to, out.named.at("late"));
  EXPECT_NE(out.named.at("late"), out.of[v]);

  // What the prologue leaves is read by every micro-batch; the forward function returns it under a name that it alone
  // writes. It stays where it is, unless a micro-batch writes there.
  for (const bool written : {false, true}) {
    StepBuilder p;
    p.function(plan::PROLOGUE);
    p.returns(p.kernel({}), "once", plan::ACCUMULATOR);
    p.function(plan::FORWARD);
    const int once = p.argument("once", plan::ACCUMULATOR);
    p.returns(once, "v0", plan::ACTIVATION);
    p.function(plan::BACKWARD);
    const int late = p.argument("v0", plan::ACTIVATION);
    if (written) {
      p.returns(p.kernel({late}), "once", plan::ACCUMULATOR);
    }
    p.read({late});
    out = assignStorage(p.program);
    EXPECT_EQ(out.copies[1].size(), written ? 1u : 0u);
    EXPECT_EQ(out.of[late] == out.of[once], !written);
  }
}

// What a storage holds after the copies, if storage i held i.
std::vector<int> contentsAfter(const StorageAssignment& out, int function) {
  std::vector<int> contents;
  for (size_t i = 0; i < out.storages.size(); ++i) {
    contents.push_back(static_cast<int>(i));
  }
  for (const Copy& copy : out.copies[function]) {
    contents[copy.to] = contents[copy.from];
  }
  return contents;
}

TEST(StorageTest, TwoParametersTradePlaces) {
  StepBuilder b;
  b.function(plan::UPDATE);
  const int first = b.argument("w0", plan::PARAMETER);
  const int second = b.argument("w1", plan::PARAMETER);
  b.returns(second, "w0", plan::PARAMETER);
  b.returns(first, "w1", plan::PARAMETER);
  const StorageAssignment out = assignStorage(b.program);
  ASSERT_EQ(out.copies[0].size(), 3u);
  const std::vector<int> contents = contentsAfter(out, 0);
  EXPECT_EQ(contents[out.of[first]], out.of[second]);
  EXPECT_EQ(contents[out.of[second]], out.of[first]);
  ASSERT_EQ(out.storages.size(), 3u);
  EXPECT_EQ(out.storages[2].memory, plan::TRANSIENT);
  EXPECT_EQ(out.storages[2].bytes, kBytes);
  EXPECT_EQ(livesOf(b.program, out)[2].first, 0);  // the end of the function, its only step
}

TEST(OrderCopiesTest, RunsEachBeforeItsSourceIsOverwritten) {
  const auto none = [](const Copy&) {
    ADD_FAILURE() << "there is no cycle";
    return -1;
  };
  // 1 -> 2 -> 3, and 4 onto itself.
  const std::vector<Copy> ordered = orderCopies({{0, 1, 2}, {1, 2, 3}, {2, 4, 4}}, none);
  ASSERT_EQ(ordered.size(), 2u);
  EXPECT_EQ(ordered[0].to, 3);
  EXPECT_EQ(ordered[1].to, 2);
}

TEST(OrderCopiesTest, EveryPermutationOfFour) {
  std::vector<int> sources = {0, 1, 2, 3};
  do {
    std::vector<Copy> copies;
    for (int to = 0; to < 4; ++to) {
      copies.push_back({to, sources[to], to});
    }
    std::vector<int> contents = {0, 1, 2, 3};
    const auto temporary = [&](const Copy&) {
      contents.push_back(-1);
      return static_cast<int>(contents.size()) - 1;
    };
    for (const Copy& copy : orderCopies(copies, temporary)) {
      contents.resize(std::max(contents.size(), static_cast<size_t>(copy.to) + 1), -1);
      contents[copy.to] = contents[copy.from];
    }
    for (int to = 0; to < 4; ++to) {
      EXPECT_EQ(contents[to], sources[to]);
    }
  } while (std::next_permutation(sources.begin(), sources.end()));
}

}  // namespace
}  // namespace weft::testing
