#include "planner/recompute/pareto.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace weft::recompute {

namespace {

// What of an interval takes part in the choice.
class Candidates {
 public:
  explicit Candidates(const Graph& graph) : graph_(graph), results_(graph.results()) {
    // Everything dropped that may be: the operators any choice can ask to run again.
    reached_ = outcomeOf(graph, std::vector<bool>(graph.operators.size(), false)).repeated;
    readers_.resize(graph.values.size());
    for (size_t op = 0; op < graph.operators.size(); ++op) {
      for (const int input : graph.operators[op].inputs) {
        readers_[input].push_back(static_cast<int>(op));
      }
    }
  }

  std::vector<int> all() const {
    std::vector<int> found;
    for (size_t op = 0; op < graph_.operators.size(); ++op) {
      const int index = static_cast<int>(op);
      if (reached_[op] && graph_.operators[op].mayKeep && !isFree(index) && !isDominated(index)) {
        found.push_back(index);
      }
    }
    return found;
  }

  // Operators that read results of `op` when everything runs again, those of its views for the views.
  std::set<int> repeatedReaders(int op) const {
    std::set<int> found;
    for (const int value : results_[op]) {
      for (const int reader : readers_[value]) {
        if (reached_[reader] && isView(reader)) {
          found.merge(repeatedReaders(reader));
        } else if (reached_[reader]) {
          found.insert(reader);
        }
      }
    }
    return found;
  }

 private:
  bool isView(int op) const {
    return std::all_of(results_[op].begin(), results_[op].end(),
                       [&](int value) { return graph_.values[value].storage >= 0; });
  }

  bool isFree(int op) const {
    const Operator& it = graph_.operators[op];
    return it.time == 0 && (it.inputs.empty() || isView(op));
  }

  bool isRead(int op) const {
    return std::any_of(results_[op].begin(), results_[op].end(), [&](int value) {
      const std::vector<int>& readers = readers_[value];
      return graph_.values[value].read || std::any_of(readers.begin(), readers.end(), [&](int reader) {
               return reached_[reader] && isView(reader) && isRead(reader);
             });
    });
  }

  // Bytes of the results that a choice can keep.
  int64_t bytesOf(int op, bool least) const {
    int64_t bytes = 0;
    int64_t smallest = -1;
    for (const int value : results_[op]) {
      bytes += graph_.values[value].bytes;
      smallest = smallest < 0 ? graph_.values[value].bytes : std::min(smallest, graph_.values[value].bytes);
    }
    return least ? std::max<int64_t>(smallest, 0) : bytes;
  }

  bool isDominated(int op) const {
    if (isRead(op)) {
      return false;
    }
    const std::set<int> readers = repeatedReaders(op);
    if (readers.size() != 1) {
      return false;
    }
    const int reader = *readers.begin();
    return graph_.operators[reader].mayKeep && bytesOf(reader, false) <= bytesOf(op, true);
  }

  const Graph& graph_;
  std::vector<std::vector<int>> results_;
  std::vector<std::vector<int>> readers_;  // of each value
  std::vector<bool> reached_;
};

// Joins the group of fewest bytes with that of its nearest reader, else of the nearest before it.
void joinSmallest(const std::map<int, int64_t>& bytes, const Candidates& candidates,
                  std::vector<std::vector<int>>& groups) {
  const auto size = [&](const std::vector<int>& group) {
    int64_t sum = 0;
    for (const int op : group) {
      sum += bytes.at(op);
    }
    return sum;
  };
  const auto smallest =
      std::min_element(groups.begin(), groups.end(), [&](const auto& a, const auto& b) { return size(a) < size(b); });
  const size_t from = smallest - groups.begin();
  size_t to = from == 0 ? 1 : from - 1;
  for (const int reader : candidates.repeatedReaders(groups[from].back())) {
    for (size_t g = 0; g < groups.size(); ++g) {
      if (g != from && std::find(groups[g].begin(), groups[g].end(), reader) != groups[g].end()) {
        to = g;
      }
    }
  }
  groups[to].insert(groups[to].end(), groups[from].begin(), groups[from].end());
  std::sort(groups[to].begin(), groups[to].end());
  groups.erase(groups.begin() + static_cast<int64_t>(from));
}

}  // namespace

int countCandidates(const Graph& graph) {
  return static_cast<int>(Candidates(graph).all().size());
}

std::vector<std::vector<int>> candidatesOf(const Graph& graph, int most) {
  const Candidates candidates(graph);
  std::vector<std::vector<int>> groups;
  std::map<int, int64_t> bytes;
  for (const int op : candidates.all()) {
    groups.push_back({op});
  }
  for (const Value& value : graph.values) {
    bytes[value.op] += value.bytes;
  }
  while (static_cast<int>(groups.size()) > std::max(most, 1)) {
    joinSmallest(bytes, candidates, groups);
  }
  return groups;
}

std::vector<Point> paretoPoints(const Graph& graph, int most) {
  const std::vector<std::vector<int>> groups = candidatesOf(graph, most);
  const auto keepOf = [&](uint64_t kept) {  // a bit for each group
    std::vector<bool> keep(graph.operators.size(), false);
    for (size_t g = 0; g < groups.size(); ++g) {
      for (const int op : groups[g]) {
        keep[op] = (kept >> g & 1) != 0;
      }
    }
    return keep;
  };
  const uint64_t all = (uint64_t{1} << groups.size()) - 1;
  OutcomeFinder finder(graph);
  std::vector<std::tuple<int64_t, Picoseconds, uint64_t>> points;  // bytes, time, groups that are not kept
  std::vector<uint8_t> keep(graph.operators.size(), 0);
  uint64_t kept = 0;
  for (uint64_t dropped = 0; dropped <= all; ++dropped) {
    for (size_t g = 0; g < groups.size(); ++g) {
      const uint64_t is = (all - dropped) >> g & 1;
      if (is != (kept >> g & 1)) {
        for (const int op : groups[g]) {
          keep[op] = static_cast<uint8_t>(is);
        }
      }
    }
    kept = all - dropped;
    finder.find(keep);
    points.emplace_back(finder.bytes(), finder.time(), dropped);
  }
  // All kept first: of equal points the one that keeps most stays.
  std::sort(points.begin(), points.end());
  std::vector<Point> front;
  for (const auto& [bytes, time, dropped] : points) {
    if (front.empty() || time < front.back().time) {
      front.push_back({bytes, time, keepOf(all - dropped)});
    }
  }
  std::reverse(front.begin(), front.end());
  return front;
}

const std::vector<Point>& KnownFronts::of(const Graph& graph, int most) {
  const auto [known, isNew] = known_.try_emplace({graph, most});
  if (isNew) {
    known->second = paretoPoints(graph, most);
  }
  return known->second;
}

}  // namespace weft::recompute
