// Decisions records as text: what is read, and that every entry is checked where it stands.
#include "planner/decisions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/json.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Two stages on meshes of their own; every entry that a record can have.
Json record() {
  return *parseJson(R"({
    "mesh": "dp=2,micro=2", "zero": 1, "precision": "bf16", "overlap": true, "offload": "state", "gather_bucket": 4096,
    "schedule": {"kind": "1f1b", "virtual": 1, "submeshes": [0, 1], "considered": [{"kind": "gpipe", "seconds": 0.5}]},
    "stage_meshes": "dp=2;dp=4", "stripes": 4,
    "rewrites": [{"expand": 7, "of": "softmax"}, {"prologue": 8, "operand": 1}, {"regroup": 9, "groups": [[1, 2], [0]]}],
    "arguments": [
      {"name": "w", "layout": "[{dp},{}]", "origin": "user", "gather": "once_per_step", "zero": 3, "stage": 1, "elsewhere": {"0": "[{},{}]"}},
      {"name": "tied", "layout": "[{}]", "origin": "user", "later_stages": [1]}],
    "operators": [
      {"id": 7, "label": "matmul", "runs_in": "forward", "gather": "each_call", "batch": "m", "per_micro_batch": true, "stage": 1, "recompute": true,
       "recompute_price": {"bytes": 64, "seconds": 0.25}, "axes": {"m": "[{dp}]"}, "results": {"0": "[{dp},{}]"},
       "origin": "user"}],
    "reshards": [
      {"id": -1, "index": 2, "how": "[{},{}]", "stage": 0, "label": "x", "recompute": true}],
    "recompute": {"limit": 1000, "stages": []}, "conflicts": ["a against b"]})");
}

std::string errorOf(const Json& json) {
  return std::string(parseDecisions(json.dump()).status().message());
}

// The record with the value at `path` replaced by what `value` says.
Json with(const std::string& path, const std::string& value) {
  Json json = record();
  json[Json::json_pointer(path)] = *parseJson(value);
  return json;
}

Json without(const std::string& path, const std::string& name) {
  Json json = record();
  json[Json::json_pointer(path)].erase(name);
  return json;
}

TEST(DecisionsText, ReadsWhatItPrints) {
  const Json given = record();
  const absl::StatusOr<Decisions> decisions = parseDecisions(given.dump());
  ASSERT_TRUE(decisions.ok()) << decisions.status();
  EXPECT_EQ(decisions->operators[0].stage, 1);
  EXPECT_EQ(decisions->operators[0].recomputePrice.bytes, 64);
  EXPECT_EQ(decisions->rewrites[1].operand, 1u);
  EXPECT_EQ(decisions->rewrites[2].groups, (std::vector<std::vector<unsigned>>{{1, 2}, {0}}));
  EXPECT_EQ(decisions->arguments[0].elsewhere.size(), 1u);
  EXPECT_EQ(decisions->arguments[0].zero, 3);
  EXPECT_EQ(decisions->arguments[1].laterStages, std::vector<int64_t>{1});
  EXPECT_EQ(decisions->reshards[0].id, -1);
  EXPECT_TRUE(decisions->overlap);
  EXPECT_EQ(decisions->offload, Offload::kState);
  EXPECT_EQ(decisions->gatherBucket, 4096);
  const std::string text = printDecisions(*decisions);
  EXPECT_EQ(printDecisions(*parseDecisions(text)), text);
  for (const auto& [name, value] : given.items()) {
    EXPECT_THAT(text, HasSubstr("\"" + name + "\"")) << "printed, too";
  }
}

TEST(DecisionsText, PrintsNamesThatAreNoUtf8) {
  Decisions decisions = *parseDecisions(record().dump());
  decisions.operators[0].label = "h\xFF";
  const absl::StatusOr<Decisions> again = parseDecisions(printDecisions(decisions));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->operators[0].label, "h\uFFFD");
}

struct Mistake {
  std::string path;
  std::string value;
  std::string error;
};

TEST(DecisionsText, ErrorsNameEntryAndWhatWasExpected) {
  const std::vector<Mistake> mistakes = {
      {"/mesh", "7", "decisions: mesh: found 7, expected a text"},
      {"/mesh", "\"dp=0\"", "decisions: mesh: "},
      {"/zero", "4", "decisions: zero: found 4, expected an integer from 0 to 3"},
      {"/zero", "1.5", "decisions: zero: found 1.5"},
      {"/offload", "\"auto\"", "decisions: offload: found 'auto', expected one of none, state"},
      {"/offload", "7", "decisions: offload: found 7, expected a text"},
      {"/gather_bucket", "0", "decisions: gather_bucket: found 0, expected an integer of at least 1"},
      {"/operators/0/gather", "\"once_per_step\"",
       "decisions: operators[0].gather: found once_per_step, expected none or"},
      {"/operators/0/gather", "\"never\"", "decisions: operators[0].gather: found "},
      {"/operators/0/residence", "\"host\"",
       "decisions: operators[0].residence: found \"host\"; only the optimizer's state leaves the device, by the "
       "record's offload; expected \"device\", or nothing"},
      {"/arguments/0/residence", "\"host\"", "decisions: arguments[0].residence: found \"host\""},
      {"/arguments/0/copies", "[]", "decisions: arguments[0].copies: found []; a parameter is stored once"},
      {"/arguments/0/stored_by", "\"train\"", "decisions: arguments[0].stored_by: found \"train\"; another program"},
      {"/operators/0/sequence", "0", "decisions: operators[0].sequence: found 0; only the batch is cut"},
      {"/reshards/0/start", "3", "decisions: reshards[0].start: found 3; a collective starts and ends where it stands"},
      {"/reshards/0/wait", "3", "decisions: reshards[0].wait: found 3; a collective"},
      {"/reshards/0/queue", "1",
       "decisions: reshards[0].queue: found 1; a rank runs one thing at a time; expected 0, or nothing"},
      {"/schedule", "[]", "decisions: schedule: found [], expected an object"},
      {"/schedule/virtual", "0", "decisions: schedule.virtual: found 0, expected an integer from 1 to 2"},
      {"/schedule/virtual", "9223372036854775807", "decisions: schedule.virtual: found 9223372036854775807"},
      {"/schedule/submeshes", "[]", "decisions: schedule.submeshes: found 0 stages"},
      {"/schedule/submeshes", "[0,2]", "decisions: schedule.submeshes[1]: found 2, expected an integer from 0 to 1"},
      {"/schedule/submeshes", "[1,1]", "decisions: schedule.submeshes: found [1,1], expected every number from 0"},
      {"/schedule/submeshes", "[0,-1]", "decisions: schedule.submeshes[1]: found -1"},
      {"/schedule/submeshes", "\"01\"", "decisions: schedule.submeshes: found \"01\", expected a list"},
      {"/schedule/considered", "7", "decisions: schedule.considered: found 7, expected a list"},
      {"/stage_meshes", "\"dp=2;dp=x\"", "decisions: stage_meshes: "},
      {"/stage_meshes", "\"dp=2;dp=4;dp=4\"",
       "decisions: stage_meshes: found 3 meshes, expected one for each of the 2"},
      {"/stripes", "0", "decisions: stripes: found 0, expected an integer of at least 1"},
      {"/rewrites", "{}", "decisions: rewrites: found {}, expected a list"},
      {"/rewrites/0/expand", "-1", "decisions: rewrites[0].expand: found -1"},
      {"/rewrites/1/operand", "-1", "decisions: rewrites[1].operand: found -1"},
      {"/rewrites/1/operand", "4294967296", "decisions: rewrites[1].operand: found 4294967296"},
      {"/rewrites/2/regroup", "-1", "decisions: rewrites[2].regroup: found -1"},
      {"/rewrites/2/groups", "{}", "decisions: rewrites[2].groups: found {}, expected a list"},
      {"/rewrites/2/groups/1", "0", "decisions: rewrites[2].groups[1]: found 0, expected a list of terms"},
      {"/rewrites/2/groups/1/0", "-1", "decisions: rewrites[2].groups[1]: found -1"},
      {"/arguments/0", "\"w\"", "decisions: arguments[0]: found \"w\", expected an object"},
      {"/arguments/0/stage", "2", "decisions: arguments[0].stage: found 2, expected an integer from 0 to 1"},
      {"/arguments/0/layout", "\"[{tp}]\"", "decisions: arguments[0].layout: "},
      {"/arguments/0/elsewhere/2", "\"[]\"", "decisions: arguments[0].elsewhere has an entry '2'"},
      {"/arguments/0/elsewhere/00", "\"[]\"", "decisions: arguments[0].elsewhere has an entry '00'"},
      {"/arguments/0/elsewhere/0", "0", "decisions: arguments[0].elsewhere.0: found 0, expected a text"},
      {"/arguments/1/later_stages", "1", "decisions: arguments[1].later_stages: found 1, expected a list"},
      {"/arguments/1/later_stages/0", "0",
       "decisions: arguments[1].later_stages[0]: found 0, expected an integer from 1"},
      {"/arguments/1/later_stages/1", "1", "decisions: arguments[1].later_stages[1]: found 1"},
      {"/operators/0/id", "-1", "decisions: operators[0].id: found -1"},
      {"/operators/0/id", "\"7\"", "decisions: operators[0].id: found \"7\", expected an integer"},
      {"/operators/0/runs_in", "\"never\"", "decisions: operators[0].runs_in: found 'never', expected one of prologue"},
      {"/operators/0/stage", "-1", "decisions: operators[0].stage: found -1, expected an integer from 0 to 1"},
      {"/operators/0/stage", "1000000000", "decisions: operators[0].stage: found 1000000000"},
      {"/operators/0/per_micro_batch", "1", "decisions: operators[0].per_micro_batch: found 1"},
      {"/operators/0/recompute_price/bytes", "-1", "decisions: operators[0].recompute_price.bytes: found -1"},
      {"/operators/0/recompute_price/seconds", "-0.5", "decisions: operators[0].recompute_price.seconds: found -0.5"},
      {"/operators/0/axes", "[]", "decisions: operators[0].axes: found [], expected an object"},
      {"/operators/0/axes/m", "\"[{dp},{}]\"",
       "decisions: operators[0].axes.m: found \"[{dp},{}]\", expected the axes"},
      {"/operators/0/axes/m", "\"[{dp}] pad{0:8}\"", "decisions: operators[0].axes.m: "},
      {"/operators/0/results/x", "\"[]\"", "decisions: operators[0].results has an entry 'x'"},
      {"/operators/0/results/-1", "\"[]\"", "decisions: operators[0].results has an entry '-1'"},
      {"/operators/0/axis", "{}", "decisions: operators[0] has an unknown entry 'axis'; did you mean 'axes'?"},
      {"/reshards/0/id", "-2", "decisions: reshards[0].id: found -2, expected an integer from -1"},
      {"/reshards/0/index", "-1", "decisions: reshards[0].index: found -1"},
      {"/reshards/0/stage", "2", "decisions: reshards[0].stage: found 2"},
      {"/reshards/0/recompute", "\"yes\"", "decisions: reshards[0].recompute: found \"yes\""},
      {"/recompute", "[]", "decisions: recompute: found [], expected an object"},
      {"/conflicts", "[1]", "decisions: conflicts[0]: found 1, expected a text"},
      {"/operator", "[]", "decisions: it has an unknown entry 'operator'; did you mean 'operators'?"},
  };
  for (const Mistake& mistake : mistakes) {
    EXPECT_THAT(errorOf(with(mistake.path, mistake.value)), StartsWith(mistake.error))
        << mistake.path << " " << mistake.value;
  }
}

TEST(DecisionsText, NamesWhatIsMissing) {
  EXPECT_EQ(errorOf(without("", "mesh")), "decisions: mesh is missing");
  EXPECT_EQ(errorOf(without("", "operators")), "decisions: operators is missing");
  EXPECT_EQ(errorOf(without("", "stripes")), "decisions: stripes is missing");
  EXPECT_EQ(errorOf(without("/schedule", "submeshes")), "decisions: schedule.submeshes is missing");
  EXPECT_EQ(errorOf(without("/operators/0", "axes")), "decisions: operators[0].axes is missing");
  EXPECT_EQ(errorOf(without("/rewrites/1", "operand")), "decisions: rewrites[1].operand is missing");
  // A stage of another schedule than the record's.
  EXPECT_THAT(errorOf(without("", "schedule")), HasSubstr("stage_meshes: found 2 meshes"));
}

TEST(DecisionsText, RefusesTextThatIsNoRecord) {
  EXPECT_THAT(std::string(parseDecisions("").status().message()), HasSubstr("decisions: no JSON"));
  EXPECT_THAT(std::string(parseDecisions("[]").status().message()), HasSubstr("expected an object"));
  EXPECT_THAT(std::string(parseDecisions(std::string(1'000'000, '[') + std::string(1'000'000, ']')).status().message()),
              HasSubstr("nested more than"));
  EXPECT_THAT(std::string(parseDecisions(R"({"zero":0,"zero":1})").status().message()), HasSubstr("'zero' twice"));
}

}  // namespace
}  // namespace weft
