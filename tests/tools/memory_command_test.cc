#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/runtime/plan_builder.h"
#include "tests/tools/run_command.h"
#include "tools/analysis/lifetimes_csv.h"
#include "tools/analysis/plan_memory.h"
#include "tools/analysis/step_peak.h"
#include "tools/commands/memory.h"

namespace weft::tools {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A file that is gone when the test ends.
class TemporaryFile {
 public:
  TemporaryFile(const std::string& name, const std::string& bytes) : path_(::testing::TempDir() + "/" + name) {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~TemporaryFile() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Outcome pack(const std::string& table, std::vector<std::string> flags = {"--json"}) {
  const TemporaryFile file("weft_memory_test.csv", table);
  flags.insert(flags.begin(), file.path());
  return run(memoryCommand, flags);
}

TEST(MemoryCommand, JsonHasTheAgreedFields) {
  const Outcome outcome = pack("id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const json out = json::parse(outcome.out);
  EXPECT_EQ(out["max_live"], 12);
  EXPECT_EQ(out["arena"], 12);
  EXPECT_EQ(out["proved"], true);
  ASSERT_EQ(out["offsets"].size(), 5u);
  EXPECT_EQ(out["offsets"]["b1"], out["offsets"]["b2"]);  // one after the other in the only place left
  EXPECT_NE(out["offsets"]["b3"], out["offsets"]["b5"]);
}

TEST(MemoryCommand, SizesAreTakenAsGiven) {
  const std::string table = "id,lower,upper,size\na,0,2,3\nb,1,3,5\n";
  EXPECT_EQ(json::parse(pack(table).out)["arena"], 8);
  EXPECT_EQ(json::parse(pack(table, {"--json", "--alignment", "64"}).out)["arena"], 128);
}

TEST(MemoryCommand, FreeFormOfTables) {
  for (const std::string table : {"id,lower,upper,size\r\na,0,2,3\r\n", "\xEF\xBB\xBFid,lower,upper,size\na,0,2,3",
                                  "size, upper ,lower,id\n\n3,2, 0,a\n\n", "\nid,lower,upper,size\n\ta , 0,2 ,3\n"}) {
    const Outcome outcome = pack(table);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(json::parse(outcome.out)["offsets"], json::parse(R"({"a":0})"));
  }
  EXPECT_EQ(json::parse(pack("id,lower,upper,size\n").out)["arena"], 0);
  EXPECT_EQ(json::parse(pack("id,lower,upper,size\na,-3,2,0\n").out)["proved"], true);
  const std::string name = "caf\xC3\xA9 \"x\"";
  EXPECT_EQ(json::parse(pack("id,lower,upper,size\n" + name + ",0,1,2\n").out)["offsets"][name], 0);
}

TEST(MemoryCommand, TextForPeople) {
  const Outcome outcome = pack("id,lower,upper,size\na,0,2,3\nb,1,3,5\n", {});
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("proved optimal"), HasSubstr("max-live"), HasSubstr("--json")));
}

TEST(MemoryCommand, MalformedTables) {
  struct Case {
    std::string table;
    std::string place;  // line:column
    std::string found;
    std::string remedy;
  };
  const std::string head = "id,lower,upper,size\n";
  const std::vector<Case> cases{
      {"", ":1:1:", "empty", "id,lower,upper,size"},
      {"\n \n", ":1:1:", "empty", "id,lower,upper,size"},
      {"a,0,1,2\n", ":1:1:", "'a'", "names the columns"},
      {"id,lower,uper,size\n", ":1:10:", "'uper'", "did you mean 'upper'?"},
      {"id,lower,upper,size,offset\n", ":1:21:", "'offset'", "no others"},
      {"id,lower,upper\n", ":1:10:", "'size' is missing", "names the columns"},
      {"id,lower,lower,size\n", ":1:10:", "'lower' is named twice", "remove one"},
      {"id;lower;upper;size\n", ":1:1:", "'id;lower;upper;size'", "names the columns"},
      {head + "a,0,1\n", ":2:5:", "3 values", "one value per column"},
      {head + "a,0,1,2,3\n", ":2:9:", "5 values", "one value per column"},
      {head + "a,0,1,2\n\nb,0,x,3\n", ":4:5:", "column 'upper': found 'x'", "decimal digits"},
      {head + "a,0,1,2.5\n", ":2:7:", "column 'size': found '2.5'", "decimal digits"},
      {head + "a,0,1,1e3\n", ":2:7:", "'1e3'", "decimal digits"},
      {head + "a,,1,2\n", ":2:3:", "column 'lower': found ''", "decimal digits"},
      {head + "a,+1,2,2\n", ":2:3:", "'+1'", "decimal digits"},
      {head + "a,0x1,2,2\n", ":2:3:", "'0x1'", "decimal digits"},
      {head + "a,0,99999999999999999999,2\n", ":2:5:", "too large", "64 bits"},
      {head + "a,3,3,2\n", ":2:5:", "found 3, not above lower 3", "last step + 1"},
      {head + "a,3,1,2\n", ":2:5:", "found 1, not above lower 3", "last step + 1"},
      {head + "a,0,1,-2\n", ":2:7:", "found -2", ">= 0"},
      {head + "a,0,1,2\na,0,1,2\n", ":3:1:", "'a' already stands in line 2", "name of its own"},
      {head + ",0,1,2\n", ":2:1:", "column 'id': found ''", "UTF-8"},
      {head + "a\xFF,0,1,2\n", ":2:1:", "'a\\xff'", "UTF-8"},
      {head + "a\xED\xA0\x80,0,1,2\n", ":2:1:", "\\xed", "UTF-8"},
      {head + std::string("a\0,0,1,2\n", 9), ":2:1:", "'a\\x00'", "UTF-8"},
      {head + "a,0,1,9223372036854775807\n", ":2:7:", "sum to more than", "larger unit"},
      {head + "a,0,1,1152921504606846976\nb,5,6,1\n", ":3:7:", "sum to more than", "larger unit"},
      {head + "\"a,b\",0,1,2\n", ":2:11:", "5 values", "without quotes or commas"},
      {"\x1F\x8B\x08 compressed", ":1:1:", "\\x1f", "names the columns"},
  };
  for (const Case& c : cases) {
    const Outcome outcome = pack(c.table);
    EXPECT_EQ(outcome.status, 1) << c.table;
    EXPECT_EQ(outcome.out, "") << c.table;
    EXPECT_THAT(outcome.err,
                AllOf(HasSubstr("weft_memory_test.csv" + c.place), HasSubstr(c.found), HasSubstr(c.remedy)))
        << c.table;
  }
}

// Every table is either taken or refused with its place, whatever bytes are damaged.
TEST(MemoryCommand, DamagedTables) {
  const std::string whole = "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\n\"b3\",-5,9,4\n";
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const char byte : {'\0', ',', '\n', '-', '9', '\xFF', '"'}) {
      std::string damaged = whole;
      damaged[at] = byte;
      const absl::StatusOr<Lifetimes> lifetimes = parseLifetimes(damaged, "t");
      if (lifetimes.ok()) {
        EXPECT_EQ(lifetimes->ids.size(), lifetimes->items.size());
      } else {
        EXPECT_THAT(std::string(lifetimes.status().message()), ::testing::MatchesRegex("t:[0-9]+:[0-9]+: (.|\n)+"));
      }
    }
  }
}

TEST(MemoryCommand, WrongUse) {
  EXPECT_EQ(run(memoryCommand, {}).status, 2);
  EXPECT_EQ(run(memoryCommand, {"--help"}).status, 0);
  EXPECT_EQ(run(memoryCommand, {"a.csv", "--jsn"}).status, 2);
  Outcome outcome = run(memoryCommand, {"/nonexistent/a.csv"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("cannot read '/nonexistent/a.csv'"));
  outcome = run(memoryCommand, {::testing::TempDir()});
  EXPECT_EQ(outcome.status, 1);
  for (const std::string alignment : {"0", "-4", "x", "99999999999999999999"}) {
    outcome = pack("id,lower,upper,size\n", {"--alignment", alignment});
    EXPECT_EQ(outcome.status, 1) << alignment;
    EXPECT_THAT(outcome.err, HasSubstr("--alignment"));
  }
}

// Four transients in `forward`: a (used by 1 and, seen in another shape, by 3), b, c and d.
plan::Plan smallPlan() {
  PlanBuilder builder(1, 1);
  const uint32_t a = builder.buffer(plan::TRANSIENT, DType::kF32, {32});
  const uint32_t b = builder.buffer(plan::TRANSIENT, DType::kF32, {16});
  const uint32_t c = builder.buffer(plan::TRANSIENT, DType::kF32, {4});
  const uint32_t d = builder.buffer(plan::TRANSIENT, DType::kF32, {64});
  const uint32_t e = builder.buffer(plan::PARAMETER, DType::kF32, {64});
  const uint32_t seen = builder.view(a, {8, 4});
  for (const auto& [buffer, storage, label] : {std::tuple{a, 1, "a"}, std::tuple{b, 2, "b"}, std::tuple{c, 3, "c"},
                                               std::tuple{d, 4, "d"}, std::tuple{seen, 1, "a"}}) {
    builder.raw().mutable_buffers(static_cast<int>(buffer))->set_storage(storage);
    builder.raw().mutable_buffers(static_cast<int>(buffer))->set_label(label);
  }
  builder.kernel(1, "make", {e}, {a});
  builder.kernel(1, "first", {a}, {b});
  builder.kernel(1, "second", {b}, {c});
  builder.kernel(1, "third", {seen, c}, {d});
  return builder.build();
}

TEST(MemoryCommand, PeakOfAPlan) {
  const TransientPeak peak = transientPeak(smallPlan());
  EXPECT_EQ(peak.function, "forward");
  EXPECT_EQ(peak.instruction, 3);
  EXPECT_EQ(peak.source, "model.cc:42");
  EXPECT_EQ(peak.bytes, 128 + 64 + 256);
  ASSERT_EQ(peak.tensors.size(), 3u);
  EXPECT_EQ(peak.tensors[0].name, "d");
  EXPECT_EQ(peak.tensors[1].name, "a");
  EXPECT_EQ(peak.tensors[1].first, 0);
  EXPECT_EQ(peak.tensors[1].last, 3);
  EXPECT_EQ(peak.tensors[2].name, "c");
  EXPECT_EQ(peak.tensors[2].bytes, 64);  // 16, rounded up
  EXPECT_TRUE(transientPeak(PlanBuilder(1, 1).build()).tensors.empty());
  const Demand demand = transientDemand(smallPlan());
  EXPECT_EQ(demand.name, "third.label");
  EXPECT_EQ(demand.own, 128 + 64 + 256);
  EXPECT_EQ(demand.otherwise, 128 + 64 + 64);
}

// Forward of micro-batches 0 and 1, then backward of both: two micro-batches are alive at once, whatever the planner
// reserved.
TEST(MemoryCommand, FullestMomentOfTheStep) {
  PlanBuilder builder(1, 2, 2);
  const uint32_t w = builder.buffer(plan::PARAMETER, DType::kF32, {64});
  const uint32_t kept = builder.buffer(plan::ACTIVATION, DType::kF32, {32});
  const uint32_t made = builder.buffer(plan::TRANSIENT, DType::kF32, {16});
  plan::Function* backward = builder.raw().add_functions();
  backward->set_name("backward");
  backward->set_kind(plan::BACKWARD);
  builder.kernel(1, "make", {w}, {kept});
  builder.kernel(2, "read", {kept}, {made});
  for (const int64_t microBatch : {0, 1}) {
    plan::Action* action = builder.raw().mutable_schedules(0)->add_step();
    action->set_function(2);
    action->set_micro_batch(microBatch);
  }
  const StepPeak peak = stepPeak(builder.build());
  EXPECT_EQ(peak.bytes, 256 + 2 * 128 + 64);
  EXPECT_EQ(peak.function, "backward");
  EXPECT_EQ(peak.microBatch, 0);
  ASSERT_EQ(peak.tensors.size(), 3u);
  EXPECT_EQ(peak.tensors[0].memory, "parameter");
  EXPECT_EQ(peak.tensors[1].memory, "activation");
  EXPECT_EQ(peak.tensors[1].bytes, 256);
  EXPECT_EQ(peak.tensors[1].microBatches, 2);
  EXPECT_EQ(peak.tensors[1].source, "model.cc:42");
  const TemporaryFile file("weft_memory_test.plan", serializePlan(builder.build()).value());
  const Outcome outcome = run(memoryCommand, {file.path()});
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("activation forward to backward x 2 slots"), HasSubstr("of 2 micro-batches"),
                                 HasSubstr("576 in the whole step")));
}

TEST(MemoryCommand, PlanForPeopleAndAsJson) {
  plan::Plan plan = smallPlan();
  for (plan::Region& region : *plan.mutable_memory()->mutable_regions()) {
    if (region.memory() == plan::TRANSIENT) {
      region.set_max_live(448);
      region.set_lower_bound(region.bytes());
    }
  }
  const TemporaryFile file("weft_memory_test.plan", serializePlan(plan).value());
  Outcome outcome = run(memoryCommand, {file.path()});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("transient"), HasSubstr("proved optimal"), HasSubstr("model.cc:42"),
                                 HasSubstr("448 bytes in 3 tensors")));
  outcome = run(memoryCommand, {file.path(), "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const json out = json::parse(outcome.out);
  EXPECT_EQ(out["transient_peak"]["bytes"], 448);
  EXPECT_EQ(out["transient_peak"]["tensors"][0]["name"], "d");
  EXPECT_EQ(out["transient_peak"]["tensors"][0]["source"], "model.cc:42");
  const auto transient = std::find_if(out["regions"].begin(), out["regions"].end(),
                                      [](const json& region) { return region["memory"] == "transient"; });
  ASSERT_NE(transient, out["regions"].end());
  EXPECT_EQ((*transient)["max_live"], 448);
  EXPECT_EQ((*transient)["proved"], true);
  EXPECT_EQ(run(memoryCommand, {file.path(), "--alignment", "4"}).status, 1);
}

TEST(MemoryCommand, DamagedPlan) {
  const TemporaryFile file("weft_memory_test.plan", "id,lower,upper,size\n");
  const Outcome outcome = run(memoryCommand, {file.path()});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("weft_memory_test.plan"));
}

}  // namespace
}  // namespace weft::tools
