// Rings of activation slots: by hand, and against a search that tries every remainder on every generated schedule.
#include "planner/memory/rings.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "planner/schedule/generate.h"

namespace weft {
namespace {

std::vector<FunctionCall> calls(const std::vector<std::pair<int, int64_t>>& list) {
  std::vector<FunctionCall> made;
  for (const auto& [function, microBatch] : list) {
    made.push_back({function, microBatch});
  }
  return made;
}

// Walks through the calls and says whether any slot is taken while another micro-batch in it still has a call to come;
// the most micro-batches in flight in `most`.
bool collides(const std::vector<FunctionCall>& calls, const std::set<int>& functions, int64_t slots, size_t& most) {
  std::set<int64_t> flying;
  bool hit = false;
  for (size_t at = 0; at < calls.size(); ++at) {
    if (functions.count(calls[at].function) == 0) {
      continue;
    }
    for (const int64_t other : flying) {
      hit |= other != calls[at].microBatch && other % slots == calls[at].microBatch % slots;
    }
    flying.insert(calls[at].microBatch);
    most = std::max(most, flying.size());
    bool again = false;
    for (size_t later = at + 1; later < calls.size(); ++later) {
      again |= calls[later].microBatch == calls[at].microBatch && functions.count(calls[later].function) > 0;
    }
    if (!again) {
      flying.erase(calls[at].microBatch);
    }
  }
  return hit;
}

int64_t leastSlots(const std::vector<FunctionCall>& calls, const std::set<int>& functions, size_t& most) {
  int64_t slots = 1;
  while (collides(calls, functions, slots, most)) {
    ++slots;
  }
  return slots;
}

TEST(RingsTest, SlotsByHand) {
  // The example of the header: 0 and 1 forward of stages 0 and 1, 2 and 3 their backward.
  const std::vector<FunctionCall> two = calls({{0, 0}, {0, 1}, {1, 0}, {3, 0}, {1, 1}, {3, 1}, {2, 0}, {2, 1}});
  EXPECT_EQ(ringSlots(two, {0, 2}), 2);
  EXPECT_EQ(ringSlots(two, {1, 3}), 1);
  // Never more than two at once, but 0 meets 1 and 2, 2 meets 3: two slots would put 0 and 2 together.
  const std::vector<FunctionCall> overtaken = calls({{0, 0}, {0, 1}, {1, 1}, {0, 2}, {1, 0}, {0, 3}, {1, 2}, {1, 3}});
  EXPECT_EQ(ringSlots(overtaken, {0, 1}), 3);
  // 0 and 4 together, nothing else: distance 4 asks for three slots, as 1 and 2 divide it.
  EXPECT_EQ(ringSlots(calls({{0, 0}, {0, 4}, {1, 0}, {1, 4}}), {0, 1}), 3);
  EXPECT_EQ(ringSlots({}, {0, 1}), 1);
}

TEST(RingsTest, JoinsWhatTakesNoMoreRoom) {
  // Functions 0 forward, 1 gradient of inputs, 2 of weights; steps 0..29 within a micro-batch.
  const std::vector<FunctionCall> inOrder = calls({{0, 0}, {0, 1}, {1, 0}, {1, 1}, {2, 0}, {2, 1}});
  const RingItem freed{{0, 15, 640}, {0, 1}, 0};
  const RingItem kept{{0, 25, 640}, {0, 2}, 0};
  const RingItem late{{16, 25, 640}, {1, 2}, 0};
  // Each overlaps for two micro-batches: `late` takes the place of `freed` in a slot.
  std::vector<Ring> rings = planRings({freed, kept, late}, inOrder);
  ASSERT_EQ(rings.size(), 1u);
  EXPECT_EQ(rings[0].slots, 2);
  // Weights are left to the end: three micro-batches then are in flight for what they read, one for what the inputs'
  // gradient reads.
  const std::vector<FunctionCall> deferred =
      calls({{0, 0}, {1, 0}, {0, 1}, {1, 1}, {0, 2}, {1, 2}, {2, 0}, {2, 1}, {2, 2}});
  rings = planRings({freed, kept}, deferred);
  ASSERT_EQ(rings.size(), 2u);
  EXPECT_EQ(rings[0].slots + rings[1].slots, 4);
  // Another stage has rings of its own.
  RingItem other = kept;
  other.stage = 1;
  EXPECT_EQ(planRings({kept, other}, deferred).size(), 2u);
  EXPECT_TRUE(planRings({}, deferred).empty());
}

// Functions of a table: 4 x stage + kind; a whole backward is both halves.
std::vector<FunctionCall> callsOf(const std::vector<schedule::Action>& order) {
  std::vector<FunctionCall> made;
  for (const schedule::Action& action : order) {
    if (action.kind == schedule::ActionKind::kBackward) {
      made.push_back({4 * action.stage + static_cast<int>(schedule::ActionKind::kInputGrad), action.micro});
      made.push_back({4 * action.stage + static_cast<int>(schedule::ActionKind::kWeightGrad), action.micro});
    } else {
      made.push_back({4 * action.stage + static_cast<int>(action.kind), action.micro});
    }
  }
  return made;
}

// For each kind, size and stage the least number of slots, and which kinds need more of them than micro-batches in
// flight.
TEST(RingsTest, LeastSlotsOfEveryKind) {
  int rings = 0;
  std::map<std::string, int> wider;
  for (const schedule::Kind kind : schedule::allKinds()) {
    for (const int32_t ranks : {2, 3, 4}) {
      for (const int32_t micros : {1, 2, 5, 8}) {
        for (const int32_t virtualStages : {1, 2, 3}) {
          const absl::StatusOr<schedule::Table> table = schedule::generate({kind, ranks, virtualStages, micros});
          if (!table.ok()) {
            continue;
          }
          for (int32_t stage = 0; stage < table->stages(); ++stage) {
            const std::vector<FunctionCall> order = callsOf(table->orders[table->stageToRank[stage]]);
            for (const int last : {1, 2}) {
              size_t most = 0;
              const int64_t least = leastSlots(order, {4 * stage, 4 * stage + last}, most);
              EXPECT_EQ(ringSlots(order, {4 * stage, 4 * stage + last}), least)
                  << schedule::kindName(kind) << " ranks " << ranks << " micros " << micros << " stage " << stage;
              wider[schedule::kindName(kind)] += static_cast<size_t>(least) > most ? 1 : 0;
              ++rings;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(rings, 1000);
  for (const auto& [kind, count] : wider) {
    EXPECT_EQ(count, 0) << kind << " needs more slots than micro-batches in flight";
  }
}

// Any order of calls: the least, and every item in exactly one ring in which nothing collides.
TEST(RingsTest, AnyOrderOfCalls) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<FunctionCall> order;
    for (int64_t microBatch = 0; microBatch < 1 + trial % 6; ++microBatch) {
      for (int function = 0; function < 3; ++function) {
        const auto at = static_cast<int64_t>(random() % (order.size() + 1));
        order.insert(order.begin() + at, {function, microBatch});
      }
    }
    std::vector<RingItem> items;
    for (int i = 0; i < 8; ++i) {
      const int64_t lower = random() % 20;
      items.push_back({{lower, lower + 1 + static_cast<int64_t>(random() % 9), static_cast<int64_t>(random() % 900)},
                       random() % 2 == 0 ? std::vector<int>{0, 1} : std::vector<int>{0, 2},
                       static_cast<int64_t>(random() % 2)});
    }
    std::set<size_t> seen;
    for (const Ring& ring : planRings(items, order)) {
      std::set<int> functions;
      for (const size_t member : ring.members) {
        EXPECT_TRUE(seen.insert(member).second);
        EXPECT_EQ(items[member].stage, ring.stage);
        functions.insert(items[member].functions.begin(), items[member].functions.end());
      }
      size_t most = 0;
      EXPECT_EQ(leastSlots(order, functions, most), ring.slots);
    }
    EXPECT_EQ(seen.size(), items.size());
  }
}

}  // namespace
}  // namespace weft
