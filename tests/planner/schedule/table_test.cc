#include "planner/schedule/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/schedule/validate.h"

namespace weft::schedule {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string errorOf(const std::string& text) {
  absl::StatusOr<Table> table = parseCsv(text);
  return table.ok() ? "no error" : std::string(table.status().message());
}

TEST(ActionTest, TextRoundTrip) {
  for (ActionKind kind :
       {ActionKind::kForward, ActionKind::kInputGrad, ActionKind::kWeightGrad, ActionKind::kBackward}) {
    for (int32_t stage : {0, 7, 12, kMaxIndex - 1}) {
      for (int32_t micro : {0, 3, 120, kMaxIndex - 1}) {
        const Action action{stage, kind, micro};
        absl::StatusOr<Action> read = parseAction(printAction(action));
        ASSERT_TRUE(read.ok()) << read.status();
        EXPECT_EQ(*read, action);
      }
    }
  }
  EXPECT_EQ(printAction(forward(2, 0)), "2F0");
  EXPECT_EQ(printAction(inputGrad(1, 3)), "1I3");
  EXPECT_EQ(printAction(weightGrad(0, 2)), "0W2");
  EXPECT_EQ(printAction(backward(3, 1)), "3B1");
}

TEST(ActionTest, Malformed) {
  auto error = [](const std::string& text) {
    absl::StatusOr<Action> read = parseAction(text);
    return read.ok() ? "no error" : std::string(read.status().message());
  };
  EXPECT_THAT(error(""), AllOf(HasSubstr("column 1: found the end"), HasSubstr("such as 2F0")));
  EXPECT_THAT(error("2"), HasSubstr("column 2: found the end, expected one of F I W B after stage 2"));
  EXPECT_THAT(error("2f0"), HasSubstr("column 2: found 'f'"));
  EXPECT_THAT(error("2F"), HasSubstr("expected the micro-batch after 2F"));
  EXPECT_THAT(error("2F0 "), HasSubstr("column 4: found ' ', expected nothing after 2F0"));
  EXPECT_THAT(error("-1F0"), HasSubstr("column 1: found '-'"));
}

TEST(CsvTest, ReadsRowsAndInfersStages) {
  absl::StatusOr<Table> table = parseCsv("0F0,3F0, 3B0 ,0B0\r\n1F0,2F0,2I0,1B0,2W0\n\n");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->stageToRank, (std::vector<int32_t>{0, 1, 1, 0}));
  EXPECT_EQ(table->orders[1][4], weightGrad(2, 0));
  EXPECT_EQ(table->actions(), 9);
  EXPECT_EQ(table->micros(), 1);
  EXPECT_TRUE(validate(*table).ok()) << validate(*table);
  EXPECT_EQ(printCsv(*table), "0F0,3F0,3B0,0B0\n1F0,2F0,2I0,1B0,2W0\n");
}

TEST(CsvTest, IdleSlotsAndOverlappedActionsOfOtherTools) {
  absl::StatusOr<Table> table = parseCsv("0F0,,,0B0,,\n,1F0,1B0,,\n");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(printCsv(*table), "0F0,0B0\n1F0,1B0\n");
  table = parseCsv("0F0,0F1,(0F2;1B0)OVERLAP_F_B\n1F0,1F1,1F2");
  EXPECT_THAT(std::string(table.status().message()), HasSubstr("puts stage 1 on rank 1, but line 1 has it on rank 0"));
  table = parseCsv("0F0,0F1,(0F2;0B0)OVERLAP_F_B");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(printCsv(*table), "0F0,0F1,0F2,0B0\n");
}

TEST(CsvTest, MalformedTablesAreRefusedWithThePlace) {
  const struct {
    std::string text;
    std::string error;
  } corpus[] = {
      {"", "the table has no action"},
      {"\n\n\n", "the table has no action"},
      {" , ,\n", "the table has no action"},
      {"0F0,0X0", "line 1, column 6: found 'X', expected one of F I W B after stage 0"},
      {"0F0\n1F0,1B", "line 2, column 7: found the end, expected the micro-batch after 1B"},
      {"0F0,0B\n1F0", "line 1, column 7: found the end of the line, expected the micro-batch after 0B"},
      {"0F0 0B0", "line 1, column 5: found '0', expected ',' or the end of the line"},
      {"0F0;0B0", "line 1, column 4: found ';', expected ','"},
      {"F0", "line 1, column 1: found 'F', expected stage, one of F I W B, micro-batch, such as 2F0"},
      {"0F0,-1B0", "line 1, column 5: found '-'"},
      {"0F-1", "line 1, column 3: found '-', expected the micro-batch"},
      {"0F0.5", "line 1, column 4: found '.'"},
      {"0F1000000", "line 1, column 3: found '1', expected a number below 1000000"},
      {"99999999999999999999F0", "line 1, column 1: found '9', expected a number below 1000000"},
      {"0F0,0UNSHARD", "line 1, column 6: found 'U', expected one of F I W B"},
      {"0SEND_F0", "line 1, column 2: found 'S', expected one of F I W B"},
      {"(0F0;0B0)", "line 1, column 9: found ')', expected ';' and another action, or ')OVERLAP_F_B'"},
      {"(0F0;0B0", "line 1, column 9: found the end, expected ';'"},
      {"()OVERLAP_F_B", "line 1, column 2: found ')', expected stage"},
      {"0F0,0B0\n2F0,2B0", "stage 1 has no action, but stage 2 has"},
      {"1F0,1B0", "stage 0 has no action"},
      {"0F0\n0B0", "line 2: 0B0 puts stage 0 on rank 1, but line 1 has it on rank 0"},
      {std::string("0F0,\0", 5), "line 1, column 5: found byte 0"},
      {"0F0,\xff", "line 1, column 5: found byte 255"},
      {"0F0\r0B0", "line 1, column 4: found byte 13"},
  };
  for (const auto& [text, error] : corpus) {
    EXPECT_THAT(errorOf(text), HasSubstr(error)) << "table: " << text;
  }
}

}  // namespace
}  // namespace weft::schedule
