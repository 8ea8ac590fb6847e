#include "planner/memory/rings.h"

#include <algorithm>
#include <map>
#include <utility>

#include "planner/memory/pack_sections.h"

namespace weft {
namespace {

// Positions of the first and the last call for each micro-batch.
using Flight = std::map<int64_t, std::pair<size_t, size_t>>;

Flight flightOf(const std::vector<FunctionCall>& calls, const std::vector<int>& functions) {
  Flight flight;
  for (size_t at = 0; at < calls.size(); ++at) {
    if (std::find(functions.begin(), functions.end(), calls[at].function) != functions.end()) {
      flight.try_emplace(calls[at].microBatch, at, at).first->second.second = at;
    }
  }
  return flight;
}

// By difference: are two micro-batches whose numbers differ so much in flight at once?
std::vector<bool> distances(const Flight& flight) {
  struct Span {
    size_t start, end;
    int64_t microBatch;
  };
  std::vector<Span> spans;
  for (const auto& [microBatch, span] : flight) {
    spans.push_back({span.first, span.second, microBatch});
  }
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.start < b.start; });
  std::vector<bool> found(flight.empty() ? 1 : flight.rbegin()->first - flight.begin()->first + 1);
  std::vector<Span> flying;
  for (const Span& next : spans) {
    std::erase_if(flying, [&](const Span& other) { return other.end < next.start; });
    for (const Span& other : flying) {
      found[std::abs(next.microBatch - other.microBatch)] = true;
    }
    flying.push_back(next);
  }
  return found;
}

int64_t slotsFor(const Flight& flight) {
  const std::vector<bool> apart = distances(flight);
  const auto meet = [&](size_t slots) {  // do two that are in flight have the same slot?
    for (size_t distance = slots; distance < apart.size(); distance += slots) {
      if (apart[distance]) {
        return true;
      }
    }
    return false;
  };
  size_t slots = 1;
  while (meet(slots)) {
    ++slots;
  }
  return static_cast<int64_t>(slots);
}

// Items of one stage that may become a ring.
struct Group {
  Ring ring;
  Flight flight;
  int64_t bytes = 0;  // of all slots
};

class Planner {
 public:
  explicit Planner(const std::vector<RingItem>& items) : items_(items) {}

  void measure(Group& group) const {
    std::vector<PackItem> lives;
    for (const size_t member : group.ring.members) {
      lives.push_back(items_[member].life);
    }
    group.ring.slots = slotsFor(group.flight);
    group.bytes = group.ring.slots * maxLive(lives);
  }

  Group joined(const Group& a, const Group& b) const {
    Group both = a;
    both.ring.members.insert(both.ring.members.end(), b.ring.members.begin(), b.ring.members.end());
    std::sort(both.ring.members.begin(), both.ring.members.end());
    for (const auto& [microBatch, span] : b.flight) {
      auto& own = both.flight.try_emplace(microBatch, span).first->second;
      own = {std::min(own.first, span.first), std::max(own.second, span.second)};
    }
    measure(both);
    return both;
  }

  // Joins two groups of a stage as long as that takes no more room, the pair that gains most first.
  void join(std::vector<Group>& groups) const {
    while (true) {
      int64_t best = -1;
      std::pair<size_t, size_t> pair;
      Group made;
      for (size_t a = 0; a < groups.size(); ++a) {
        for (size_t b = a + 1; b < groups.size() && groups[b].ring.stage == groups[a].ring.stage; ++b) {
          Group both = joined(groups[a], groups[b]);
          const int64_t gain = groups[a].bytes + groups[b].bytes - both.bytes;
          if (gain > best) {
            best = gain;
            pair = {a, b};
            made = std::move(both);
          }
        }
      }
      if (best < 0) {
        return;
      }
      groups[pair.first] = std::move(made);
      groups.erase(groups.begin() + static_cast<int64_t>(pair.second));
    }
  }

 private:
  const std::vector<RingItem>& items_;
};

}  // namespace

int64_t maxLive(const std::vector<PackItem>& items) {
  int64_t most = 0;
  for (const PackComponent& component : packComponents(items, kAlignment)) {
    most = std::max(most, component.maxLive);
  }
  return most;
}

int64_t ringSlots(const std::vector<FunctionCall>& calls, const std::vector<int>& functions) {
  return slotsFor(flightOf(calls, functions));
}

std::vector<Ring> planRings(const std::vector<RingItem>& items, const std::vector<FunctionCall>& calls) {
  std::map<std::pair<int64_t, std::vector<int>>, std::vector<size_t>> byFunctions;
  for (size_t i = 0; i < items.size(); ++i) {
    byFunctions[{items[i].stage, items[i].functions}].push_back(i);
  }
  std::map<std::pair<int64_t, Flight>, std::vector<size_t>> alike;
  for (const auto& [key, members] : byFunctions) {
    std::vector<size_t>& all = alike[{key.first, flightOf(calls, key.second)}];
    all.insert(all.end(), members.begin(), members.end());
    std::sort(all.begin(), all.end());
  }
  const Planner planner(items);
  std::vector<Group> groups;
  for (auto& [key, members] : alike) {
    groups.push_back({{key.first, 1, std::move(members)}, key.second});
    planner.measure(groups.back());
  }
  planner.join(groups);
  std::vector<Ring> rings;
  for (Group& group : groups) {
    rings.push_back(std::move(group.ring));
  }
  return rings;
}

}  // namespace weft
