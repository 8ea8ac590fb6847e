#include "planner/schedule/simulate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "planner/schedule/generate.h"
#include "planner/schedule/timeline.h"

namespace weft::schedule {
namespace {

using ::testing::HasSubstr;

Simulation run(const Request& request, const Times& times) {
  absl::StatusOr<Table> table = generate(request);
  EXPECT_TRUE(table.ok()) << table.status();
  absl::StatusOr<Simulation> result = simulate(*table, times);
  EXPECT_TRUE(result.ok()) << result.status();
  return *result;
}

int32_t peak(const Simulation& simulation) {
  return *std::max_element(simulation.peakInFlight.begin(), simulation.peakInFlight.end());
}

TEST(SimulateTest, ByHand) {
  // rank 0: F [0,1], then waits for the gradient: F1 arrives at 1.5, ends 2.5, B1 ends 4.5, arrives 5.
  const Simulation result = *simulate(*parseCsv("0F0,0I0,0W0\n1F0,1B0\n"), Times::uniform(1, 1, 1, 0.5));
  EXPECT_EQ(result.starts, (std::vector<std::vector<double>>{{0, 5, 6}, {1.5, 2.5}}));
  EXPECT_EQ(result.ends, (std::vector<std::vector<double>>{{1, 6, 7}, {2.5, 4.5}}));
  EXPECT_EQ(result.makespan, 7);
  EXPECT_EQ(result.busy, (std::vector<double>{3, 3}));
  EXPECT_DOUBLE_EQ(result.bubbleRatio, 8.0 / 14);
  EXPECT_DOUBLE_EQ(result.spanBubble, 4.0 / 7);
  EXPECT_EQ(result.peakInFlight, (std::vector<int32_t>{1, 1}));
  // Down 1.5 to rank 1, its F and I take 2, the transfer 0.5, I and W of stage 0 take 2.
  EXPECT_EQ(result.lowerBound, 6);
}

TEST(SimulateTest, TimesOfEachStageAndOfAWholeBackward) {
  Times times;
  times.stages = {{1, 2, 3, std::nullopt}, {4, 5, 6, 10}};
  const Simulation result = *simulate(*parseCsv("0F0,0I0,0W0\n1F0,1B0\n"), times);
  EXPECT_EQ(result.makespan, 1 + 4 + 10 + 2 + 3);
  EXPECT_EQ(result.busy, (std::vector<double>{6, 14}));
}

TEST(SimulateTest, Errors) {
  const Table table = *parseCsv("0F0,0B0\n1F0,1B0\n");
  auto error = [&](const Times& times) { return std::string(simulate(table, times).status().message()); };
  EXPECT_THAT(error(Times::uniform(-1, 1, 1)), HasSubstr("time f is -1"));
  EXPECT_THAT(error(Times::uniform(1, 1, 1, std::numeric_limits<double>::infinity())), HasSubstr("time comm is inf"));
  EXPECT_THAT(error(Times{{{}, {}, {}}, 0}), HasSubstr("times of 3 stages for a table of 2"));
  EXPECT_THAT(error(Times{}), HasSubstr("times of 0 stages"));
  EXPECT_FALSE(simulate(*parseCsv("0F0"), Times::uniform(1, 1, 1)).ok());
  EXPECT_EQ(simulate(table, Times::uniform(0, 0, 0))->bubbleRatio, 0);
}

// Idle time per rank up to the common end, in closed form; see generate.h. Exact in units of quarters.
TEST(SimulateTest, ClosedForms) {
  struct Figures {
    double f, i, w;
  };
  for (const Figures& t : {Figures{1, 1, 1}, {1, 1.5, 0.5}, {1, 0.75, 1.25}, {2, 1, 3}}) {
    for (int32_t p : {1, 2, 3, 4, 8}) {
      const int32_t m = 3 * p;
      const Times times = Times::uniform(t.f, t.i, t.w);
      const double b = t.i + t.w;
      auto idle = [&](Kind kind, int32_t v) {
        const Simulation result = run({kind, p, v, m}, times);
        return result.makespan - m * v * (t.f + b);
      };
      EXPECT_EQ(idle(Kind::kGpipe, 1), (p - 1) * (t.f + b));
      EXPECT_EQ(idle(Kind::k1F1B, 1), (p - 1) * (t.f + b));
      EXPECT_EQ(idle(Kind::kZbH1, 1), (p - 1) * std::max(t.f, t.f + t.i - t.w));
      EXPECT_EQ(idle(Kind::kZbH2, 1), (p - 1) * std::max(t.f, t.f + t.i - 2 * t.w));
      for (int32_t v : {2, 3}) {  // times are those of one stage, so nothing is divided by v
        EXPECT_EQ(idle(Kind::kInterleaved, v), (p - 1) * (t.f + b));
        EXPECT_EQ(idle(Kind::kBreadthFirst, v), (p - 1) * (t.f + b));
        EXPECT_EQ(idle(Kind::kZbInterleaved, v), (p - 1) * std::max(t.f, t.f + t.i - t.w));
      }
      if (t.f == t.i && t.i == t.w) {
        EXPECT_EQ(idle(Kind::kZbV, 2), (p - 1) * t.f);
        EXPECT_EQ(run({Kind::kZbV, p, 2, m}, times).spanBubble, 0);
      }
      for (int32_t k : {2, 3}) {
        const Simulation result = run({Kind::kSeq1F1B, p, 1, m, 0, k}, times);
        EXPECT_EQ(result.makespan - m * k * (t.f + b), (p - 1) * (t.f + b));
      }
    }
  }
}

TEST(SimulateTest, FewerMicroBatchesThanRanks) {
  const Times times = Times::uniform(1, 1, 1);
  for (int32_t p : {2, 4, 8}) {
    for (int32_t m = 1; m < p; ++m) {
      EXPECT_EQ(run({Kind::k1F1B, p, 1, m}, times).makespan, (m + p - 1) * 3);
      EXPECT_EQ(run({Kind::kZbH1, p, 1, m}, times).makespan, (m + p - 1) * 2 + 1);
    }
  }
}

// The work of a rank, and the way of the first micro-batch to the last rank: no table is shorter.
TEST(SimulateTest, ZeroBubbleKindsWithFewMicroBatchesAreShortest) {
  const Times times = Times::uniform(1, 1, 1);
  for (int32_t p : {2, 4, 6, 8}) {
    const int32_t m = p;
    EXPECT_EQ(run({Kind::kZbH2, p, 1, m}, times).makespan, 3 * m + p - 1);
    EXPECT_EQ(run({Kind::kZbV, p, 2, m}, times).makespan, 6 * m + p - 1);
    EXPECT_LE(peak(run({Kind::kZbV, p, 2, m}, times)), 2 * p);
  }
}

// What a search of tables found at the memory of the block that is repeated.
TEST(SimulateTest, ShakenBlocks) {
  const Times times = Times::uniform(1, 1, 1);
  const auto makespan = [&](int32_t p, int32_t m) { return run({Kind::kVHalf, p, 2, m}, times).makespan; };
  EXPECT_EQ(makespan(4, 8), 53);
  EXPECT_EQ(makespan(6, 12), 83);
  EXPECT_EQ(makespan(6, 24), 155);
  EXPECT_EQ(peak(run({Kind::kVHalf, 4, 2, 8}, times)), 6);
}

// Any number of micro-batches fills an interleaved schedule: groups are never smaller than the ranks.
TEST(SimulateTest, InterleavedBubbleDoesNotDependOnDivisibility) {
  for (int32_t p : {2, 3, 4, 8}) {
    for (int32_t m = p; m <= 3 * p; ++m) {
      const Times times = Times::uniform(1, 1, 1);
      EXPECT_EQ(run({Kind::kInterleaved, p, 2, m}, times).makespan, 2 * m * 3 + (p - 1) * 3) << p << " " << m;
      EXPECT_EQ(run({Kind::kZbInterleaved, p, 2, m}, times).makespan, 2 * m * 3 + (p - 1)) << p << " " << m;
    }
  }
}

TEST(SimulateTest, PeaksInFlight) {
  const Times times = Times::uniform(1, 1, 1);
  for (int32_t p : {2, 4, 8}) {
    const int32_t m = 4 * p;
    for (int32_t rank = 0; rank < p; ++rank) {
      auto at = [&](Kind kind, int32_t v) { return run({kind, p, v, m}, times).peakInFlight[rank]; };
      EXPECT_EQ(at(Kind::kGpipe, 1), m);
      EXPECT_EQ(at(Kind::kBreadthFirst, 2), 2 * m);
      EXPECT_EQ(at(Kind::k1F1B, 1), p - rank);
      EXPECT_EQ(at(Kind::kInterleaved, 3), 2 * p + 2 * (p - 1 - rank) + 1);
      EXPECT_EQ(at(Kind::kZbH1, 1), p);
      EXPECT_EQ(at(Kind::kZbH2, 1), 2 * p - 1);
      EXPECT_EQ(at(Kind::kZbInterleaved, 3), 3 * p);
      EXPECT_EQ(at(Kind::kZbV, 2), 2 * p);
      EXPECT_EQ(run({Kind::kSeq1F1B, p, 1, m, 0, 4}, times).peakInFlight[rank], p - 1 - rank + 4);
    }
    EXPECT_EQ(peak(run({Kind::kDualPipeV, p, 2, m}, times)), 2 * p + 1);
  }
}

// arXiv:2405.15362: V-Half and V-Min hold about a half and a third of what 1F1B does, in pairs of half stages.
TEST(SimulateTest, VHalfAndVMin) {
  const Times times = Times::uniform(1, 1, 1);
  const Simulation half = run({Kind::kVHalf, 8, 2, 16}, times);
  const Simulation min = run({Kind::kVMin, 8, 2, 16}, times);
  EXPECT_EQ(peak(half), 10);  // 5 stages
  EXPECT_EQ(peak(min), 8);    // 4 stages
  // Idle slots per rank; squeezing as the authors do gives 17 and 27.
  EXPECT_LE(half.makespan - 16 * 6, 17);
  EXPECT_LE(min.makespan - 16 * 6, 23);
  for (int32_t p = 2; p <= 16; ++p) {
    EXPECT_LE(peak(run({Kind::kVHalf, p, 2, 3 * p}, times)), p + 3) << p;
    EXPECT_LE(peak(run({Kind::kVMin, p, 2, 3 * p}, times)), 2 * p / 3 + 4) << p;
    // The bubble must stay in the two ends: more micro-batches, the same idle time.
    for (Kind kind : {Kind::kVHalf, Kind::kVMin}) {
      const double shorter = run({kind, p, 2, 4 * p}, times).makespan - 6 * 4 * p;
      const double longer = run({kind, p, 2, 8 * p}, times).makespan - 6 * 8 * p;
      EXPECT_LE(longer, shorter + 2) << kindName(kind) << " " << p;
    }
  }
}

// Profiles of arXiv:2401.10241 table 9, in milliseconds, and the shares of idle time they lead to.
struct Published {
  const char* model;
  int32_t ranks;
  int32_t micros;
  double f, i, w, comm;
  // Up to the common end: 1F1B, interleaved v = 2 and 4, ZB-H1, ZB-H2, interleaved ZB v = 2, 3, 4, ZB-V.
  double rates[9];
  double bound;  // share of idle time at the lower bound, v = 2
};

const Published kPublished[] = {
    {"1.5B", 8, 24, 18.522, 18.086, 9.337, 0.601, {.243, .140, .096, .159, .108, .096, .076, .067, .073}, .059},
    {"6.2B", 8, 24, 29.718, 29.444, 19.927, 0.527, {.235, .134, .083, .132, .100, .076, .057, .048, .060}, .054},
    {"14.6B", 16, 48, 11.347, 11.248, 8.132, 0.377, {.255, .147, .099, .140, .107, .085, .068, .061, .071}, .058},
    {"28.3B", 32, 96, 10.419, 10.207, 7.715, 0.408, {.265, .153, .106, .142, .110, .088, .072, .065, .076}, .060},
};

Simulation runPublished(const Published& at, Kind kind, int32_t v) {
  return run({kind, at.ranks, v, at.micros}, Times::uniform(at.f / v, at.i / v, at.w / v, at.comm));
}

TEST(SimulateTest, RatesUpToTheCommonEnd) {
  const std::pair<Kind, int32_t> columns[] = {
      {Kind::k1F1B, 1},          {Kind::kInterleaved, 2},   {Kind::kInterleaved, 4},
      {Kind::kZbH1, 1},          {Kind::kZbH2, 1},          {Kind::kZbInterleaved, 2},
      {Kind::kZbInterleaved, 3}, {Kind::kZbInterleaved, 4}, {Kind::kZbV, 2}};
  constexpr double kDigits = 0.0006;  // the figures are rounded to three digits
  for (const Published& at : kPublished) {
    for (size_t k = 0; k < std::size(columns); ++k) {
      EXPECT_NEAR(runPublished(at, columns[k].first, columns[k].second).bubbleRatio, at.rates[k], kDigits)
          << at.model << " " << kindName(columns[k].first) << " " << columns[k].second;
    }
    const Simulation zbV = runPublished(at, Kind::kZbV, 2);
    EXPECT_NEAR(1 - zbV.busy[0] / zbV.lowerBound, at.bound, kDigits) << at.model;
  }
}

// arXiv:2401.10241 table 5, last column: 28.3B with 96 micro-batches; idle time inside the longest span.
TEST(SimulateTest, RatesInsideTheLongestSpan) {
  constexpr double kDigits = 0.00006;  // rounded to four digits
  EXPECT_NEAR(runPublished(kPublished[3], Kind::k1F1B, 1).spanBubble, .2646, kDigits);
  EXPECT_NEAR(runPublished(kPublished[3], Kind::kZbH1, 1).spanBubble, .1421, kDigits);
  EXPECT_NEAR(runPublished(kPublished[3], Kind::kZbH2, 1).spanBubble, .0641, kDigits);
}

// Starts and ends obey the model: found again from the table without the simulator's order.
TEST(SimulateTest, TimesAreConsistent) {
  Times times;
  times.comm = 0.3;
  for (int32_t stage = 0; stage < 8; ++stage) {
    times.stages.push_back({1 + 0.1 * stage, 1.2, 0.7 + 0.05 * stage, std::nullopt});
  }
  for (Kind kind : allKinds()) {
    const int32_t v = defaultVirtualStages(kind);
    const Table table = *generate({kind, 8 / v, v, 9});
    const Simulation result = *simulate(table, times);
    auto endOf = [&](int32_t stage, int32_t micro, bool forwards) {
      const int32_t rank = table.stageToRank[stage];
      for (size_t k = 0; k < table.orders[rank].size(); ++k) {
        const Action& action = table.orders[rank][k];
        const bool fits = forwards ? action.kind == ActionKind::kForward : makesInputGrad(action.kind);
        if (action.stage == stage && action.micro == micro && fits) {
          return result.ends[rank][k];
        }
      }
      return std::numeric_limits<double>::quiet_NaN();
    };
    for (int32_t rank = 0; rank < table.ranks(); ++rank) {
      for (size_t k = 0; k < table.orders[rank].size(); ++k) {
        const Action& action = table.orders[rank][k];
        double start = k == 0 ? 0 : result.ends[rank][k - 1];
        const bool forwards = action.kind == ActionKind::kForward;
        const int32_t from = action.stage + (forwards ? -1 : 1);
        if (action.kind != ActionKind::kWeightGrad && from >= 0 && from < table.stages()) {
          const double hop = table.stageToRank[from] == rank ? 0 : times.comm;
          start = std::max(start, endOf(from, action.micro, forwards) + hop);
        }
        ASSERT_EQ(result.starts[rank][k], start) << kindName(kind) << " " << printAction(action);
      }
    }
    EXPECT_GE(result.makespan, result.lowerBound) << kindName(kind);
  }
}

TEST(SimulateTest, BoundIsReachedByZeroBubbleSchedules) {
  const Times times = Times::uniform(1, 1, 1);
  for (int32_t p : {2, 4, 8}) {
    const Simulation result = run({Kind::kZbH1, p, 1, 2 * p}, times);
    EXPECT_EQ(result.makespan, result.lowerBound);
    EXPECT_EQ(result.lowerBound, (p - 1) + 2 * p * 3);
    const Simulation one = run({Kind::kZbH1, p, 1, 1}, times);  // a single micro-batch: down, up, and its last W
    EXPECT_EQ(one.lowerBound, 2 * p + 1);
    EXPECT_EQ(one.makespan, one.lowerBound);
  }
}

TEST(TimelineTest, ByHand) {
  const Table table = *parseCsv("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  EXPECT_EQ(printTimeline(table, *simulate(table, Times::uniform(1, 1, 1))),
            "time    0               4               8\n"
            "rank 0  0F0 0F1 ........0B0---- ....0B1----\n"
            "rank 1  ....1F0 1B0---- 1F1 1B1---- ........\n");
}

TEST(TimelineTest, PanelsShowEveryAction) {
  const Table table = *generate({Kind::kZbV, 4, 2, 12});
  const std::string text = printTimeline(table, *simulate(table, Times::uniform(1, 1, 1)), 80);
  for (const std::vector<Action>& order : table.orders) {
    for (const Action& action : order) {
      EXPECT_THAT(text, HasSubstr(printAction(action)));
    }
  }
  size_t longest = 0;
  for (size_t from = 0, to = 0; (to = text.find('\n', from)) != std::string::npos; from = to + 1) {
    longest = std::max(longest, to - from);
  }
  EXPECT_LE(longest, 80u);
}

TEST(TimelineTest, ExtremeTimesStayReadable) {
  const Table table = *generate({Kind::k1F1B, 2, 1, 2});
  EXPECT_EQ(printTimeline(table, *simulate(table, Times::uniform(0, 0, 0))), "nothing takes time\n");
  EXPECT_LT(printTimeline(table, *simulate(table, Times::uniform(1e-9, 1, 1e9))).size(), 200'000u);
}

// The first stage has no input gradient to send, so all of its backward is W (passes/partition/split_backward.cc). That
// costs no time: its I and W are either next to each other, or what is late in W would have been early in I for nobody.
TEST(SimulateTest, FirstStageLosesNothingByHavingAllInW) {
  for (const Kind kind : {Kind::kZbH1, Kind::kZbH2, Kind::kZbInterleaved, Kind::kZbV, Kind::kDualPipeV}) {
    for (const int32_t ranks : {2, 4, 8}) {
      const int32_t virtualStages = kind == Kind::kZbInterleaved ? 2 : defaultVirtualStages(kind);
      const absl::StatusOr<Table> table = generate({kind, ranks, virtualStages, 4 * ranks});
      ASSERT_TRUE(table.ok()) << table.status();
      Times split;
      split.stages.assign(table->stages(), {1, 1.2, 0.8, std::nullopt});
      Times sliced = split;
      sliced.stages[0] = {1, 0, 2, std::nullopt};
      const double longer = simulate(*table, sliced)->makespan / simulate(*table, split)->makespan;
      EXPECT_LE(longer, 1 + 1e-9) << kindName(kind) << ", " << ranks << " ranks";  // rounding of sums
    }
  }
}

}  // namespace
}  // namespace weft::schedule
