#include "planner/schedule/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/schedule/generate.h"

namespace weft::schedule {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal(const Table& table) {
  absl::Status status = validate(table);
  return status.ok() ? "no refusal" : std::string(status.message());
}

std::string refusal(const std::string& csv) {
  absl::StatusOr<Table> table = parseCsv(csv);
  return table.ok() ? refusal(*table) : absl::StrCat("not even read: ", std::string(table.status().message()));
}

TEST(ValidateTest, OneRank) {
  EXPECT_EQ(refusal("0F0,0B0"), "no refusal");
  EXPECT_EQ(refusal("0F0,0I0,0W0"), "no refusal");
}

TEST(ValidateTest, AGradientComputedTwice) {
  EXPECT_THAT(refusal("0F0,0B0\n1F0,1B0,1B0"),
              AllOf(HasSubstr("stage 1, micro-batch 0 on rank 1: a gradient is computed twice"),
                    HasSubstr("B at position 1 and again at position 2")));
  EXPECT_THAT(refusal("0F0,0B0\n1F0,1B0,1I0"), AllOf(HasSubstr("a gradient is computed twice"),
                                                     HasSubstr("B at position 1"), HasSubstr("I at position 2")));
  EXPECT_THAT(refusal("0F0,0B0\n1F0,1B0,1W0"), HasSubstr("a gradient is computed twice"));
  EXPECT_THAT(refusal("0F0,0B0\n1F0,1I0,1W0,1W0"), HasSubstr("a gradient is computed twice: W at position 2"));
  EXPECT_THAT(refusal("0F0,0B0\n1F0,1B0,1F0"), HasSubstr("the forward is computed twice"));
}

TEST(ValidateTest, MissingActions) {
  EXPECT_THAT(refusal("0F0,0B0\n1B0"), HasSubstr("stage 1, micro-batch 0 on rank 1: no forward; add 1F0"));
  EXPECT_THAT(refusal("0F0,0B0\n1F0"), HasSubstr("stage 1, micro-batch 0 on rank 1: no gradient; add 1B0"));
  EXPECT_THAT(refusal("0F0,0B0\n1F0,1I0"), HasSubstr("I without W; add 1W0"));
  EXPECT_THAT(refusal("0F0,0B0\n1F0,1W0"), HasSubstr("W without I; add 1I0"));
  EXPECT_THAT(refusal("0F0,0F1,0B0,0B1\n1F0,1B0"), HasSubstr("stage 1, micro-batch 1 on rank 1: no forward"));
  // Micro-batches 0..999998 are missing; memory must follow the table's size, not the number in it.
  EXPECT_THAT(refusal("0F999999,0B999999"), HasSubstr("stage 0, micro-batch 0 on rank 0: no forward"));
}

TEST(ValidateTest, OrderOnARank) {
  EXPECT_THAT(refusal("0B0,0F0"), HasSubstr("B at position 0 comes before F at position 1"));
  EXPECT_THAT(refusal("0I0,0F0,0W0"), HasSubstr("I at position 0 comes before F at position 1"));
  EXPECT_THAT(refusal("0F0,0W0,0I0"), HasSubstr("W at position 1 comes before I at position 2"));
}

TEST(ValidateTest, PlacesOfTablesBuiltByHand) {
  Table table = *parseCsv("0F0,0B0\n1F0,1B0");
  Table wrong = table;
  std::swap(wrong.orders[0][1], wrong.orders[1][1]);
  EXPECT_THAT(refusal(wrong), HasSubstr("rank 0, position 1: 1B0 is on the wrong rank: stage 1 lives on rank 1"));
  wrong = table;
  wrong.stageToRank[1] = 2;
  EXPECT_THAT(refusal(wrong), HasSubstr("stage 1 is said to live on rank 2, but the table has ranks 0 to 1"));
  wrong = table;
  wrong.stageToRank.pop_back();
  EXPECT_THAT(refusal(wrong), HasSubstr("names stage 1, but there are stages 0 to 0"));
  wrong = table;
  wrong.orders[0][0].micro = -1;
  EXPECT_THAT(refusal(wrong), HasSubstr("names micro-batch -1"));
  wrong = table;
  wrong.orders.emplace_back();
  EXPECT_THAT(refusal(wrong), HasSubstr("rank 2 has no action"));
  wrong = table;
  wrong.sequenceSlices = 2;
  EXPECT_THAT(refusal(wrong), HasSubstr("1 slices in all, not a multiple of the 2 slices"));
  EXPECT_THAT(refusal(Table{}), HasSubstr("no rank"));
}

TEST(ValidateTest, PiecesGoForwardInOrderAndBackInReverse) {
  Table table = *parseCsv("0F0,0F1,0B1,0B0");
  EXPECT_EQ(refusal(table), "no refusal");
  table.sequenceSlices = 2;
  EXPECT_EQ(refusal(table), "no refusal");
  Table wrong = table;
  std::swap(wrong.orders[0][0], wrong.orders[0][1]);
  EXPECT_THAT(refusal(wrong), HasSubstr("forward of slice 1 comes before that of slice 0"));
  wrong = table;
  std::swap(wrong.orders[0][2], wrong.orders[0][3]);
  EXPECT_THAT(refusal(wrong), HasSubstr("the gradient of slice 0 comes before that of slice 1"));
}

TEST(ValidateTest, DeadlocksPrintTheirCycle) {
  // Rank 0 wants the gradient of micro-batch 0 before it gives micro-batch 1, rank 1 the other way round.
  EXPECT_THAT(refusal("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1"),
              AllOf(HasSubstr("the table deadlocks"),
                    HasSubstr("rank 0, position 1: 0B0 waits for 1B0, at position 2 of rank 1, after 1F1"),
                    HasSubstr("rank 1, position 1: 1F1 waits for 0F1, at position 2 of rank 0, after 0B0")));
  // Three ranks in a circle through their backward passes.
  EXPECT_THAT(refusal("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n2F0,2F1,2B1,2B0"), HasSubstr("the table deadlocks"));
  // One rank that waits for itself: both stages of the turn, in the wrong order.
  EXPECT_THAT(refusal("1F0,0F0,1B0,0B0"),
              AllOf(HasSubstr("rank 0, position 0: 1F0 waits for 0F0, at position 1 of rank 0")));
  // Interleaved, a last group of one micro-batch and the warm-up of a full one.
  EXPECT_THAT(refusal("0F0,0F1,2F0,2B0,2F1,2B1,0B0,0B1\n1F0,1B0,1F1,3F0,3B0,3F1,3B1,1B1"),
              HasSubstr("the table deadlocks"));
}

// Every table with one action removed, doubled or moved to the wrong side of its partner must be refused.
TEST(ValidateTest, MutantsOfGeneratedTables) {
  for (Kind kind : allKinds()) {
    const Table table = *generate({kind, 2, defaultVirtualStages(kind), 4});
    for (int32_t rank = 0; rank < table.ranks(); ++rank) {
      for (size_t k = 0; k < table.orders[rank].size(); ++k) {
        Table mutant = table;
        mutant.orders[rank].erase(mutant.orders[rank].begin() + k);
        EXPECT_FALSE(validate(mutant).ok()) << kindName(kind) << " without " << printAction(table.orders[rank][k]);
        mutant = table;
        mutant.orders[rank].push_back(table.orders[rank][k]);
        EXPECT_THAT(refusal(mutant), HasSubstr("twice")) << kindName(kind);
        mutant = table;
        mutant.orders[1 - rank].push_back(table.orders[rank][k]);
        EXPECT_THAT(refusal(mutant), HasSubstr("wrong rank")) << kindName(kind);
      }
    }
  }
}

}  // namespace
}  // namespace weft::schedule
