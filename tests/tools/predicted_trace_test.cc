// The predicted step as a trace: collectives lie beside the functions that they belong to.
#include "tools/analysis/predicted_trace.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

namespace weft::tools {
namespace {

// One action runs both halves of a backward pass: those of the second begin when the first is done.
TEST(PredictedTrace, CollectivesLieBesideTheirFunctions) {
  constexpr Picoseconds kMicrosecond = 1'000'000;
  Decisions decisions;
  decisions.overlap = true;
  StepTimes step;
  step.times.stages = {{10e-6, 0, 0, 30e-6}};
  step.functions = {{{.kind = plan::FORWARD, .total = 10 * kMicrosecond, .spans = {{"f", 0, kMicrosecond}}},
                     {.kind = plan::INPUT_GRAD, .total = 20 * kMicrosecond, .spans = {{"i", 0, kMicrosecond}}},
                     {.kind = plan::WEIGHT_GRAD, .total = 10 * kMicrosecond, .spans = {{"w", 0, kMicrosecond}}}}};
  const absl::StatusOr<std::string> text = traceOf(decisions, step);
  ASSERT_TRUE(text.ok()) << text.status();
  std::map<std::string, double> begins;
  const nlohmann::json trace = nlohmann::json::parse(*text);
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    if (event.value("cat", "") == "collective") {
      EXPECT_EQ(event.at("tid"), 1);
      begins[event.at("name").get<std::string>()] = event.at("ts").get<double>();
    }
  }
  ASSERT_EQ(begins.size(), 3U);
  EXPECT_NEAR(begins["f"], 0, 1e-6);
  EXPECT_NEAR(begins["i"], 10, 1e-6);
  EXPECT_NEAR(begins["w"], 30, 1e-6) << "after the gradients of inputs";
}

}  // namespace
}  // namespace weft::tools
