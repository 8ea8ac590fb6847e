#include "planner/schedule/transfers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/schedule/generate.h"

namespace weft::schedule {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const Times kUnit = Times::uniform(1, 1, 1);

std::string refusal(const Table& table, const Queues& queues) {
  absl::Status status = prove(table, queues);
  return status.ok() ? "no refusal" : std::string(status.message());
}

std::string text(const Queues& queues) {
  std::string out;
  for (const std::vector<Step>& queue : queues) {
    for (const Step& step : queue) {
      absl::StrAppend(&out, printStep(step), ";");
    }
    out += "\n";
  }
  return out;
}

TEST(TransfersTest, ByHand) {
  const Table table = *parseCsv("0F0,0B0\n1F0,1I0,1W0\n");
  EXPECT_EQ(text(*placeTransfers(table, kUnit)),
            "0F0;SEND 0F0 to rank 1;RECV 1I0 from rank 1;0B0;\n"
            "RECV 0F0 from rank 0;1F0;1I0;SEND 1I0 to rank 0;1W0;\n");
}

TEST(TransfersTest, NoTransferBetweenStagesOfOneRank) {
  const Queues queues = *placeTransfers(*generate({Kind::kZbV, 1, 2, 3}), kUnit);
  for (const Step& step : queues[0]) {
    EXPECT_EQ(step.kind, StepKind::kAction);
  }
}

// Each micro-batch crosses each boundary between ranks once forward and once backward.
TEST(TransfersTest, Count) {
  auto sends = [](Kind kind, int32_t ranks, int32_t virtualStages, int32_t micros) {
    int64_t count = 0;
    const Queues queues = *placeTransfers(*generate({kind, ranks, virtualStages, micros}), kUnit);
    for (const std::vector<Step>& queue : queues) {
      count += std::count_if(queue.begin(), queue.end(), [](const Step& s) { return s.kind == StepKind::kSend; });
    }
    return count;
  };
  EXPECT_EQ(sends(Kind::k1F1B, 4, 1, 8), 8 * 2 * 3);
  EXPECT_EQ(sends(Kind::kInterleaved, 4, 3, 8), 8 * 2 * (4 * 3 - 1));
  EXPECT_EQ(sends(Kind::kZbV, 4, 2, 8), 8 * 4 * 3);  // the turn is local
}

TEST(TransfersTest, ActionsWithoutDurationKeepTheirOrder) {
  for (Kind kind : allKinds()) {
    const Table table = *generate({kind, 4, defaultVirtualStages(kind), 8});
    for (const Times& times : {Times::uniform(0, 0, 0), Times::uniform(1, 0, 1), Times::uniform(0, 1, 0, 0.5)}) {
      EXPECT_EQ(refusal(table, *placeTransfers(table, times)), "no refusal") << kindName(kind);
    }
  }
}

// Receives just before their use: the steady state of two neighbors wants to send in both directions at once.
TEST(TransfersTest, ReceiveBeforeUseDeadlocks) {
  for (Kind kind : allKinds()) {
    const Table table = *generate({kind, 4, defaultVirtualStages(kind), 8});
    const std::string found = refusal(table, *placeTransfers(table, kUnit, ReceivePlacement::kBeforeUse));
    if (kind == Kind::kGpipe || kind == Kind::kBreadthFirst) {
      EXPECT_EQ(found, "no refusal") << kindName(kind);  // traffic goes one way at a time
    } else {
      EXPECT_THAT(found, HasSubstr("the transfers deadlock")) << kindName(kind);
    }
  }
  // With several stages per rank the last rank sends back to the first while that one sends on.
  const Table looped = *generate({Kind::kBreadthFirst, 2, 2, 4});
  EXPECT_THAT(refusal(looped, *placeTransfers(looped, kUnit, ReceivePlacement::kBeforeUse)),
              HasSubstr("the transfers deadlock"));
}

// Both ranks stand at a send that the other one would take only after its own.
TEST(TransfersTest, TheCycleIsPrinted) {
  const Table table = *parseCsv("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  EXPECT_EQ(refusal(table, *placeTransfers(table, kUnit)), "no refusal");
  EXPECT_THAT(
      refusal(table, *placeTransfers(table, kUnit, ReceivePlacement::kBeforeUse)),
      AllOf(HasSubstr("rank 0, step 3: SEND 0F1 to rank 1, which waits for step 4 of rank 1, behind SEND 1B0"),
            HasSubstr("rank 1, step 3: SEND 1B0 to rank 0, which waits for step 4 of rank 0, behind SEND 0F1")));
}

TEST(TransfersTest, TablesMadeToDeadlockAreRefused) {
  for (const char* csv : {"0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n", "1F0,0F0,1B0,0B0\n",
                          "0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n2F0,2F1,2B1,2B0\n"}) {
    absl::StatusOr<Queues> queues = placeTransfers(*parseCsv(csv), kUnit);
    ASSERT_FALSE(queues.ok()) << csv;
    EXPECT_THAT(std::string(queues.status().message()), AllOf(HasSubstr("deadlocks"), HasSubstr("waits for")));
  }
}

TEST(TransfersTest, DamagedQueuesAreRefused) {
  const Table table = *parseCsv("0F0,0B0\n1F0,1B0\n");
  const Queues good = *placeTransfers(table, kUnit);
  // rank 0: 0F0, SEND 0F0, RECV 1B0, 0B0; rank 1: RECV 0F0, 1F0, 1B0, SEND 1B0.
  ASSERT_EQ(refusal(table, good), "no refusal");
  Queues bad = good;
  bad[0].erase(bad[0].begin() + 1);
  EXPECT_THAT(refusal(table, bad), HasSubstr("0F0, from rank 0 to rank 1, has no matching send and receive"));
  bad = good;
  bad[0][1].peer = 0;
  EXPECT_THAT(refusal(table, bad), HasSubstr("no matching send and receive"));
  bad = good;
  bad[0].insert(bad[0].begin(), bad[0][1]);
  EXPECT_THAT(refusal(table, bad), HasSubstr("occurs a second time"));
  bad = good;
  std::swap(bad[0][0], bad[0][1]);
  EXPECT_THAT(refusal(table, bad), HasSubstr("is sent before it is computed"));
  bad = good;
  std::swap(bad[1][0], bad[1][1]);
  EXPECT_THAT(refusal(table, bad), HasSubstr("is received after its use"));
  bad = good;
  std::swap(bad[1][1], bad[1][2]);
  EXPECT_THAT(refusal(table, bad), HasSubstr("rank 1, step 1: 1B0, but the table has 1F0 here"));
  bad = good;
  bad[1].erase(bad[1].begin() + 2);
  EXPECT_THAT(refusal(table, bad), HasSubstr("the queue ends before 1B0"));
  bad = good;
  bad[1].push_back({StepKind::kSend, weightGrad(1, 0), 0});
  EXPECT_THAT(refusal(table, bad), HasSubstr("the queues hold 3 transfers, the table needs 2"));
  bad = good;
  bad.pop_back();
  EXPECT_THAT(refusal(table, bad), HasSubstr("1 queues for 2 ranks"));
}

}  // namespace
}  // namespace weft::schedule
