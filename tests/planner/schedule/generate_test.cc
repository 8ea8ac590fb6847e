#include "planner/schedule/generate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "planner/schedule/simulate.h"
#include "planner/schedule/transfers.h"

namespace weft::schedule {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string nameOf(const Request& r) {
  return absl::StrCat(kindName(r.kind), " ranks ", r.ranks, " virtual ", r.virtualStages, " micro ", r.micros,
                      " group ", r.group, " slices ", r.sequenceSlices);
}

// What the header says is legal, written a second time.
bool shouldBeLegal(const Request& r) {
  switch (r.kind) {
    case Kind::kGpipe:
    case Kind::k1F1B:
    case Kind::kZbH1:
    case Kind::kZbH2:
    case Kind::kSeq1F1B:
      return r.virtualStages == 1;
    case Kind::kInterleaved:
    case Kind::kBreadthFirst:
    case Kind::kZbInterleaved:
      return true;
    case Kind::kZbV:
    case Kind::kVHalf:
    case Kind::kVMin:
      return r.virtualStages == 2;
    case Kind::kDualPipeV:
      return r.virtualStages == 2 && r.micros >= 2 * r.ranks;
  }
  return false;
}

bool hasSplit(const Table& table) {
  return std::any_of(table.orders.begin(), table.orders.end(), [](const std::vector<Action>& order) {
    return std::any_of(order.begin(), order.end(), [](const Action& a) { return a.kind == ActionKind::kWeightGrad; });
  });
}

// Gradients of one stage are summed over micro-batches in index order, so all schedules give the same bits.
void expectIndexOrder(const Table& table) {
  for (const std::vector<Action>& order : table.orders) {
    std::vector<int32_t> next(table.stages(), 0);
    for (const Action& action : order) {
      if (action.kind == ActionKind::kWeightGrad || action.kind == ActionKind::kBackward) {
        ASSERT_EQ(action.micro, next[action.stage]++) << printAction(action);
      }
    }
  }
}

void expectGood(const Request& request) {
  absl::StatusOr<Table> table = generate(request);
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->ranks(), request.ranks);
  ASSERT_EQ(table->stages(), request.ranks * request.virtualStages);
  ASSERT_EQ(table->micros(), request.micros * request.sequenceSlices);
  ASSERT_TRUE(validate(*table).ok()) << validate(*table);
  if (request.sequenceSlices == 1) {
    expectIndexOrder(*table);
  }
  const Times times = Times::uniform(1, 1.25, 0.75, 0.125);
  absl::StatusOr<Queues> queues = placeTransfers(*table, times);
  ASSERT_TRUE(queues.ok()) << queues.status();
  ASSERT_TRUE(prove(*table, *queues).ok()) << prove(*table, *queues);
  const Simulation run = *simulate(*table, times);
  ASSERT_GE(run.makespan, run.lowerBound);
  absl::StatusOr<Table> read = parseCsv(printCsv(*table));
  ASSERT_TRUE(read.ok()) << read.status();
  read->sequenceSlices = table->sequenceSlices;  // not part of the text
  ASSERT_EQ(*read, *table);
}

TEST(GenerateTest, EveryLegalRequestGivesAGoodTableAndEveryOtherAReason) {
  int legalOnes = 0;
  for (Kind kind : allKinds()) {
    for (int32_t ranks = 1; ranks <= 8; ++ranks) {
      for (int32_t virtualStages = 1; virtualStages <= 4; ++virtualStages) {
        for (int32_t micros = 1; micros <= 16; ++micros) {
          const Request request{kind, ranks, virtualStages, micros};
          SCOPED_TRACE(nameOf(request));
          const absl::Status status = legal(request);
          ASSERT_EQ(status.ok(), shouldBeLegal(request)) << status;
          if (status.ok()) {
            ++legalOnes;
            expectGood(request);
          } else {
            EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(kindName(kind)), HasSubstr("; use ")));
            EXPECT_FALSE(generate(request).ok());
          }
          if (HasFatalFailure()) {
            return;
          }
        }
      }
    }
  }
  // 3 kinds take all 512 sizes, 8 a quarter of them, and dualpipe_v those with m >= 2p: 15+13+11+9+7+5+3+1.
  EXPECT_EQ(legalOnes, 3 * 512 + 8 * 128 + 64);
}

TEST(GenerateTest, GroupsAndPieces) {
  for (int32_t ranks : {1, 2, 3, 4, 5}) {
    for (int32_t micros = 1; micros <= 13; ++micros) {
      for (int32_t group = ranks; group <= 9; ++group) {
        for (Kind kind : {Kind::kInterleaved, Kind::kZbInterleaved}) {
          const Request request{kind, ranks, 3, micros, group};
          SCOPED_TRACE(nameOf(request));
          expectGood(request);
        }
      }
      for (int32_t slices = 1; slices <= 5; ++slices) {
        const Request request{Kind::kSeq1F1B, ranks, 1, micros, 0, slices};
        SCOPED_TRACE(nameOf(request));
        expectGood(request);
        EXPECT_EQ(generate(request)->sequenceSlices, slices);
      }
      if (HasFatalFailure()) {
        return;
      }
    }
  }
}

TEST(GenerateTest, LargerTables) {
  for (Kind kind : allKinds()) {
    for (const auto& [ranks, micros] : {std::pair{13, 29}, {16, 32}, {32, 96}, {11, 64}}) {
      const Request request{kind, ranks, defaultVirtualStages(kind), micros};
      SCOPED_TRACE(nameOf(request));
      expectGood(request);
    }
  }
  expectGood({Kind::kInterleaved, 16, 5, 37});
  expectGood({Kind::kZbInterleaved, 16, 5, 37});
}

TEST(GenerateTest, SmallTablesByHand) {
  EXPECT_EQ(printCsv(*generate({Kind::kGpipe, 2, 1, 2})), "0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n");
  EXPECT_EQ(printCsv(*generate({Kind::k1F1B, 2, 1, 3})), "0F0,0F1,0B0,0F2,0B1,0B2\n1F0,1B0,1F1,1B1,1F2,1B2\n");
  EXPECT_EQ(printCsv(*generate({Kind::kZbH1, 2, 1, 2})), "0F0,0F1,0I0,0W0,0I1,0W1\n1F0,1I0,1F1,1I1,1W0,1W1\n");
  EXPECT_EQ(printCsv(*generate({Kind::kBreadthFirst, 2, 2, 2})),
            "0F0,0F1,2F0,2F1,2B0,2B1,0B0,0B1\n1F0,1F1,3F0,3F1,3B0,3B1,1B0,1B1\n");
  EXPECT_EQ(printCsv(*generate({Kind::kInterleaved, 2, 2, 2})),
            "0F0,0F1,2F0,2F1,2B0,2B1,0B0,0B1\n1F0,1F1,3F0,3B0,3F1,3B1,1B0,1B1\n");
  EXPECT_EQ(printCsv(*generate({Kind::kZbV, 1, 2, 1})), "0F0,1F0,1I0,1W0,0I0,0W0\n");
  EXPECT_EQ(printCsv(*generate({Kind::kSeq1F1B, 2, 1, 1, 0, 2})), "0F0,0F1,0B1,0B0\n1F0,1F1,1B1,1B0\n");
}

TEST(GenerateTest, OneStageKindsAreSpecialCasesOfTheGeneralOnes) {
  for (int32_t ranks : {1, 2, 5}) {
    for (int32_t micros : {1, 4, 9}) {
      EXPECT_EQ(*generate({Kind::kInterleaved, ranks, 1, micros}), *generate({Kind::k1F1B, ranks, 1, micros}));
      EXPECT_EQ(*generate({Kind::kZbInterleaved, ranks, 1, micros}), *generate({Kind::kZbH1, ranks, 1, micros}));
      EXPECT_EQ(*generate({Kind::kBreadthFirst, ranks, 1, micros}), *generate({Kind::kGpipe, ranks, 1, micros}));
      EXPECT_EQ(*generate({Kind::kSeq1F1B, ranks, 1, micros}), *generate({Kind::k1F1B, ranks, 1, micros}));
    }
  }
}

TEST(GenerateTest, PlacementsAndKindsOfGradients) {
  EXPECT_EQ(generate({Kind::kInterleaved, 3, 2, 4})->stageToRank, (std::vector<int32_t>{0, 1, 2, 0, 1, 2}));
  for (Kind kind : {Kind::kZbV, Kind::kVHalf, Kind::kVMin, Kind::kDualPipeV}) {
    EXPECT_EQ(generate({kind, 3, 2, 6})->stageToRank, (std::vector<int32_t>{0, 1, 2, 2, 1, 0})) << kindName(kind);
  }
  for (Kind kind : allKinds()) {
    const bool split = hasSplit(*generate({kind, 2, defaultVirtualStages(kind), 4}));
    const bool whole = kind == Kind::kGpipe || kind == Kind::k1F1B || kind == Kind::kInterleaved ||
                       kind == Kind::kBreadthFirst || kind == Kind::kSeq1F1B;
    EXPECT_EQ(split, !whole) << kindName(kind);
  }
}

TEST(GenerateTest, RefusalsSayWhyAndWhatToDo) {
  auto refusal = [](const Request& request) { return std::string(generate(request).status().message()); };
  EXPECT_EQ(refusal({Kind::k1F1B, 4, 2, 8}),
            "1f1b: a rank has one stage, not 2; use virtual 1, or interleaved for more");
  EXPECT_THAT(refusal({Kind::kZbV, 4, 1, 8}), HasSubstr("zb_v: a rank has two stages"));
  EXPECT_THAT(refusal({Kind::kDualPipeV, 4, 2, 7}), HasSubstr("8 for 4 ranks, not 7; use at least 8, or zb_v"));
  EXPECT_THAT(refusal({Kind::kGpipe, 0, 1, 7}), HasSubstr("the number of ranks is 0; give a number from 1"));
  EXPECT_THAT(refusal({Kind::kGpipe, 1, 1, -1}), HasSubstr("the number of micro-batches is -1"));
  EXPECT_THAT(refusal({Kind::kInterleaved, 4, 2, 8, 3}), HasSubstr("a group of 3 micro-batches does not fill 4 ranks"));
  EXPECT_THAT(refusal({Kind::k1F1B, 4, 1, 8, 4}), HasSubstr("has no groups"));
  EXPECT_THAT(refusal({Kind::k1F1B, 4, 1, 8, 0, 2}), HasSubstr("use 1 sequence slice, or seq1f1b"));
  EXPECT_THAT(refusal({Kind::kVHalf, 100000, 2, 8}), HasSubstr("generators serve up to"));
  EXPECT_THAT(refusal({Kind::kGpipe, 1000, 1, 1000000}), HasSubstr("pairs of stage and micro-batch"));
}

TEST(GenerateTest, NamesRoundTrip) {
  EXPECT_EQ(allKinds().size(), 12u);
  for (Kind kind : allKinds()) {
    EXPECT_EQ(*parseKind(kindName(kind)), kind);
  }
  EXPECT_THAT(std::string(parseKind("zbv").status().message()), AllOf(HasSubstr("'zbv'"), HasSubstr("zb_v, v_half")));
}

}  // namespace
}  // namespace weft::schedule
