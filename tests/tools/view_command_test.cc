// `weft view` on plans written by hand: what is folded, the document, the page, the errors.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/runtime/plan_builder.h"
#include "tests/tools/run_command.h"
#include "tools/analysis/document.h"
#include "tools/commands/view/view.h"

namespace weft::tools {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string inTemp(const std::string& name) {
  return ::testing::TempDir() + "/weft_view_" + name;
}

std::string textOf(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Two ranks, three micro-batches, one kernel; `label` is its name.
std::string planFile(const std::string& label) {
  PlanBuilder builder(2, 3);
  const uint32_t in = builder.buffer(plan::INPUT, DType::kF32, {4});
  const uint32_t out = builder.buffer(plan::TRANSIENT, DType::kF32, {4});
  builder.kernel(1, "relu", {in}, {out})->set_label(label);
  const std::string path = inTemp("hand.plan");
  EXPECT_TRUE(writePlan(builder.build(), path).ok());
  return path;
}

// A trace of planFile("f"): per step three calls of 2 us on each rank.
std::string traceText(int steps, const std::string& label, int ranks = 2) {
  json events = json::array();
  const auto event = [&](int row, const std::string& name, const std::string& category, double at, double micros) {
    return json{{"name", name}, {"cat", category}, {"ph", "X"}, {"pid", 0}, {"tid", row}, {"ts", at}, {"dur", micros}};
  };
  for (int step = 0; step < steps; ++step) {
    events.push_back(event(2, "step", "step", 10.0 * step, 8));
    for (int rank = 0; rank < ranks; ++rank) {
      for (int microBatch = 0; microBatch < 3; ++microBatch) {
        const double at = 10.0 * step + 1 + 2 * microBatch;
        events.push_back(event(rank, "forward", "action", at, 2));
        events.back()["args"] = {{"function", "forward"}, {"micro_batch", microBatch}};
        events.push_back(event(rank, label, "kernel", at, 2));
        events.back()["args"] = {
            {"kernel", "relu"}, {"micro_batch", microBatch}, {"function", "forward"}, {"index", 0}};
      }
    }
  }
  return json{{"traceEvents", events}}.dump();
}

std::string traceFile(const std::string& text) {
  const std::string path = inTemp("trace.json");
  std::ofstream(path) << text;
  return path;
}

TEST(FoldName, FirstNumberedPartThatIsNotTheLast) {
  EXPECT_EQ(foldName("h0.qkv"), "h0");
  EXPECT_EQ(foldName("update.h12.fc.bias"), "h12");
  EXPECT_EQ(foldName("init.adam.m.h3.ln1.weight"), "h3");
  EXPECT_EQ(foldName("blocks.3.fc"), "blocks.3");
  EXPECT_EQ(foldName("copy to h1.fc"), "h1");
  EXPECT_EQ(foldName("7.fc"), "7");
  for (const std::string none : {"", "add", "fc1", "ln.weight", ".", "..", "h.w0"}) {
    EXPECT_EQ(foldName(none), "") << none;
  }
}

TEST(ViewCommand, DocumentOfAPlanWithoutDecisions) {
  const Outcome outcome = run(viewCommand, {planFile("f"), "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const json doc = json::parse(outcome.out);
  EXPECT_EQ(doc["program"]["name"], "weft_view_hand");
  EXPECT_EQ(doc["program"]["micro_batches"], 3);
  const json& submesh = doc["submeshes"][0];
  EXPECT_EQ(submesh["calls"].size(), 3u);
  const json& op = submesh["functions"][1]["ops"][0];
  EXPECT_EQ(op["label"], "f");
  EXPECT_EQ(doc["sources"][op["source"].get<int>()], "model.cc:42");
  EXPECT_FALSE(doc.contains("executed"));
}

TEST(ViewCommand, ProfileIsMeasuredAndDrawn) {
  const Outcome outcome =
      run(viewCommand, {planFile("f"), "--json", "--profile", traceFile(traceText(4, "f")), "--step", "3"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const json doc = json::parse(outcome.out);
  EXPECT_EQ(doc["executed"]["shown"], 3);
  EXPECT_EQ(doc["executed"]["step_seconds"].size(), 4u);
  // Decimal microseconds become binary seconds.
  EXPECT_NEAR(doc["executed"]["ranks"][1][2][2].get<double>(), 5e-6, 1e-15);
  EXPECT_NEAR(doc["executed"]["ranks"][1][2][3].get<double>(), 7e-6, 1e-15);
  EXPECT_NEAR(doc["submeshes"][0]["functions"][1]["ops"][0]["measured"].get<double>(), 2e-6, 1e-15);
}

TEST(ViewCommand, PageIsOneFileAndNamesCannotBreakOutOfIt) {
  const std::string page = inTemp("page.html");
  const Outcome outcome = run(viewCommand, {planFile("</script><b>/* page.js */"), "-o", page});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const std::string text = textOf(page);
  std::remove(page.c_str());
  EXPECT_THAT(text, AllOf(HasSubstr("\\u003c/script>\\u003cb>/* page.js */"), HasSubstr("function start()")));
  EXPECT_THAT(text, Not(HasSubstr("</script><b>")));
  EXPECT_THAT(text, Not(HasSubstr("/* graph.js */")));
  for (const char* foreign : {" src=", "http://", "https://", "@import", "url("}) {
    const size_t found = text.find(foreign);
    // The name of SVG's elements is no address that is fetched.
    EXPECT_TRUE(found == std::string::npos || text.compare(found, 26, "http://www.w3.org/2000/svg") == 0) << foreign;
  }
}

struct Mistake {
  std::string name;
  std::vector<std::string> words;
  int status = 1;
  std::vector<std::string> parts;  // of the message
};

TEST(ViewCommand, Errors) {
  const std::string plan = planFile("f");
  const std::string good = traceFile(traceText(2, "f"));
  const auto trace = [](const std::string& name, const std::string& text) {
    std::ofstream(inTemp(name)) << text;
    return inTemp(name);
  };
  json noMicroBatch = json::parse(traceText(2, "f"));
  noMicroBatch["traceEvents"][3]["args"]["micro_batch"] = 2;
  const std::vector<Mistake> mistakes = {
      {"no plan", {"-o", "x.html"}, 2, {"a plan file is missing"}},
      {"no output", {plan}, 2, {"-o PAGE.html"}},
      {"step alone", {plan, "--json", "--step", "1"}, 2, {"--profile"}},
      {"missing plan", {"/nowhere.plan", "--json"}, 1, {"/nowhere.plan"}},
      {"no plan's bytes", {good, "--json"}, 1, {good}},
      {"unwritable", {plan, "-o", "/nowhere/x.html"}, 1, {"/nowhere/x.html", "No such file"}},
      {"missing trace", {plan, "--json", "--profile", "/nowhere.json"}, 1, {"/nowhere.json"}},
      {"no JSON", {plan, "--json", "--profile", trace("a", "{\"traceEvents\":[")}, 1, {"is no trace"}},
      {"no events", {plan, "--json", "--profile", trace("b", "[1,2]")}, 1, {"is no trace"}},
      {"event without times", {plan, "--json", "--profile", trace("c", R"({"traceEvents":[{"ph":"X"}]})")}, 1, {"ts"}},
      {"other operator",
       {plan, "--json", "--profile", trace("d", traceText(2, "g"))},
       1,
       {"another plan", "rank 0", "'g' (relu)", "'f' (relu)", "model.cc:42"}},
      {"other rank",
       {plan, "--json", "--profile", trace("e", traceText(2, "f", 3))},
       1,
       {"another plan", "rank 2", "2 ranks"}},
      {"rank without events", {plan, "--json", "--profile", trace("f", traceText(2, "f", 1))}, 1, {"no whole step"}},
      {"other micro-batch",
       {plan, "--json", "--profile", trace("g", noMicroBatch.dump())},
       1,
       {"rank 0", "forward of micro-batch 2", "forward of micro-batch 1"}},
      {"step too far", {plan, "--json", "--profile", good, "--step", "2"}, 1, {"no whole step 2", "0 to 1"}},
      {"no step number", {plan, "--json", "--profile", good, "--step", "-1"}, 1, {"'-1'"}},
      {"machine", {plan, "--json", "--machine", good}, 1, {"line 1"}},
  };
  for (const Mistake& mistake : mistakes) {
    const Outcome outcome = run(viewCommand, mistake.words);
    EXPECT_EQ(outcome.status, mistake.status) << mistake.name << ": " << outcome.err;
    EXPECT_EQ(outcome.out, "") << mistake.name;
    for (const std::string& part : mistake.parts) {
      EXPECT_THAT(outcome.err, HasSubstr(part)) << mistake.name;
    }
  }
}

}  // namespace
}  // namespace weft::tools
