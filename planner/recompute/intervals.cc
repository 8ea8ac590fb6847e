#include "planner/recompute/intervals.h"

#include <algorithm>
#include <map>

#include "planner/recompute/pareto.h"

namespace weft::recompute {

namespace {

// Joined intervals have at most so many candidates; those above kMaxCandidates are then decided in groups.
constexpr int kJoinedCandidates = kMaxCandidates + 4;

bool isFreeSource(const Operator& op) {
  return op.inputs.empty() && op.time == 0;
}

// The positions of the operators that read each storage, views of it included, in order.
std::vector<std::vector<int>> readersOf(const Graph& stage) {
  std::vector<std::vector<int>> readers(stage.values.size());
  for (size_t op = 0; op < stage.operators.size(); ++op) {
    for (const int input : stage.operators[op].inputs) {
      readers[stage.storageOf(input)].push_back(static_cast<int>(op));
    }
  }
  return readers;
}

// Positions 0 <= p <= size before which one value at most passes on, of an operator that may be kept, beside `shared`.
std::vector<int> cutsOf(const Graph& stage, const std::vector<std::vector<int>>& readers,
                        const std::vector<bool>& shared) {
  const int size = static_cast<int>(stage.operators.size());
  std::vector<int> passing(size + 1, 0);
  for (size_t v = 0; v < stage.values.size(); ++v) {
    const int op = stage.values[v].op;
    if (shared[v] || readers[v].empty() || (op >= 0 && isFreeSource(stage.operators[op]))) {
      continue;
    }
    // One that the user wants recomputed lets no cut through.
    const int weight = op >= 0 && !stage.operators[op].mayKeep && stage.operators[op].mayRepeat ? 2 : 1;
    for (int p = op + 1; p <= readers[v].back(); ++p) {
      passing[p] += weight;
    }
  }
  std::vector<int> cuts = {0};
  for (int p = 1; p < size; ++p) {
    if (passing[p] <= 1) {
      cuts.push_back(p);
    }
  }
  cuts.push_back(size);
  return cuts;
}

// The storages that many layers read, as an encoder's output, a mask, a constant that is filled once: were they to
// count as passing on, nothing could be cut. Each is read in two equal intervals that end before its last reader; what
// the parts of one layer read, as the residual stream, is read in none or in unlike ones.
class SharedValues {
 public:
  explicit SharedValues(const Graph& stage) : stage_(stage), readers_(readersOf(stage)), shared_(stage.values.size()) {
    for (size_t v = 0; v < shared_.size(); ++v) {
      const int op = stage.values[v].op;
      const bool mayPass = op < 0 || (stage.operators[op].mayKeep && !isFreeSource(stage.operators[op]));
      shared_[v] = mayPass && readers_[v].size() >= kFewestReaders;
    }
    // Without those that are not read so the intervals of the others may be longer.
    for (std::vector<bool> left = readInEqual(); left != shared_; left = readInEqual()) {
      shared_ = std::move(left);
    }
  }

  const std::vector<bool>& found() const { return shared_; }
  std::vector<int> cuts() const { return cutsOf(stage_, readers_, shared_); }

 private:
  static constexpr size_t kFewestReaders = 3;

  std::vector<bool> readInEqual() const {
    const std::vector<int> cuts = this->cuts();
    std::vector<bool> found = shared_;
    for (size_t v = 0; v < shared_.size(); ++v) {
      found[v] = shared_[v] && isReadInEqual(v, cuts);
    }
    return found;
  }

  bool isReadInEqual(size_t value, const std::vector<int>& cuts) const {
    std::vector<Graph> seen;
    for (size_t c = 0; c + 1 < cuts.size() && cuts[c + 1] <= readers_[value].back(); ++c) {
      const bool isRead =
          cuts[c] > stage_.values[value].op && std::any_of(readers_[value].begin(), readers_[value].end(),
                                                           [&](int op) { return op >= cuts[c] && op < cuts[c + 1]; });
      if (isRead) {
        Graph interval = intervalOf(stage_, cuts[c], cuts[c + 1], shared_);
        if (std::find(seen.begin(), seen.end(), interval) != seen.end()) {
          return true;
        }
        seen.push_back(std::move(interval));
      }
    }
    return false;
  }

  const Graph& stage_;
  std::vector<std::vector<int>> readers_;
  std::vector<bool> shared_;  // of each value
};

class Joiner {
 public:
  explicit Joiner(const std::vector<Graph>& stages) : stages_(stages) {
    for (size_t s = 0; s < stages.size(); ++s) {
      const SharedValues shared(stages[s]);
      const std::vector<int> cuts = shared.cuts();
      shared_.push_back(shared.found());
      for (size_t c = 0; c + 1 < cuts.size() && cuts[c] < cuts[c + 1]; ++c) {
        add(intervals_, static_cast<int>(s), cuts[c], cuts[c + 1]);
      }
    }
  }

  Intervals run() {
    while (joinMostFrequent()) {
    }
    Intervals out;
    std::map<int, int> renumbered;  // classes left
    for (Interval interval : intervals_) {
      const auto [it, added] = renumbered.try_emplace(interval.intervalClass, static_cast<int>(out.classes.size()));
      if (added) {
        out.classes.push_back(classes_[interval.intervalClass]);
      }
      interval.intervalClass = it->second;
      out.intervals.push_back(interval);
    }
    return out;
  }

 private:
  using Pair = std::pair<int, int>;

  int classOf(const Graph& graph) {
    const auto it = std::find(classes_.begin(), classes_.end(), graph);
    if (it == classes_.end()) {
      classes_.push_back(graph);
      return static_cast<int>(classes_.size()) - 1;
    }
    return static_cast<int>(it - classes_.begin());
  }

  void add(std::vector<Interval>& intervals, int stage, int first, int last) {
    intervals.push_back({stage, first, last, classOf(intervalOf(stages_[stage], first, last, shared_[stage]))});
  }

  bool follows(size_t interval) const {
    return interval > 0 && intervals_[interval - 1].stage == intervals_[interval].stage;
  }

  // Pairs of neighbors by how often they occur without overlap. A pair that occurs once is joined only where neither
  // half is found elsewhere.
  std::map<Pair, int64_t> pairs() const {
    std::map<Pair, int64_t> counts;
    std::map<Pair, size_t> lastUsed;
    std::map<int, int64_t> found;
    for (size_t b = 0; b < intervals_.size(); ++b) {
      ++found[intervals_[b].intervalClass];
      const Pair pair = {b == 0 ? -1 : intervals_[b - 1].intervalClass, intervals_[b].intervalClass};
      const auto used = lastUsed.find(pair);
      if (follows(b) && (used == lastUsed.end() || used->second + 1 < b)) {
        ++counts[pair];
        lastUsed[pair] = b;
      }
    }
    for (auto it = counts.begin(); it != counts.end();) {
      const bool elsewhere = found[it->first.first] > 1 || found[it->first.second] > 1;
      it = it->second == 1 && elsewhere ? counts.erase(it) : std::next(it);
    }
    return counts;
  }

  bool mayJoin(const Pair& pair) {
    const auto known = joinable_.find(pair);
    if (known != joinable_.end()) {
      return known->second;
    }
    for (size_t b = 1; b < intervals_.size(); ++b) {
      if (follows(b) && Pair{intervals_[b - 1].intervalClass, intervals_[b].intervalClass} == pair) {
        const int stage = intervals_[b].stage;
        const Graph joined = intervalOf(stages_[stage], intervals_[b - 1].first, intervals_[b].last, shared_[stage]);
        return joinable_[pair] = countCandidates(joined) <= kJoinedCandidates;
      }
    }
    return false;
  }

  bool joinMostFrequent() {
    const std::map<Pair, int64_t> counts = pairs();
    std::vector<std::pair<int64_t, Pair>> order;
    for (const auto& [pair, count] : counts) {
      order.emplace_back(-count, pair);
    }
    std::sort(order.begin(), order.end());
    for (const auto& [count, pair] : order) {
      if (mayJoin(pair)) {
        join(pair);
        return true;
      }
    }
    return false;
  }

  void join(const Pair& pair) {
    std::vector<Interval> joined;
    for (size_t b = 0; b < intervals_.size(); ++b) {
      const bool starts = b + 1 < intervals_.size() && follows(b + 1) &&
                          Pair{intervals_[b].intervalClass, intervals_[b + 1].intervalClass} == pair;
      if (starts) {
        add(joined, intervals_[b].stage, intervals_[b].first, intervals_[b + 1].last);
        ++b;
      } else {
        joined.push_back(intervals_[b]);
      }
    }
    intervals_ = std::move(joined);
  }

  const std::vector<Graph>& stages_;
  std::vector<std::vector<bool>> shared_;  // of each stage: its values that many layers read
  std::vector<Interval> intervals_;
  std::vector<Graph> classes_;
  std::map<Pair, bool> joinable_;
};

}  // namespace

Intervals cutIntoIntervals(const std::vector<Graph>& stages) {
  return Joiner(stages).run();
}

Graph intervalOf(const Graph& stage, int first, int last, const std::vector<bool>& shared) {
  Graph interval;
  std::map<int, int> known;  // value of the stage to that of the interval
  const auto inside = [&](int op) { return op >= first && op < last; };
  const auto valueOf = [&](int value, const auto& self) -> int {
    const int root = stage.storageOf(value);
    value = inside(stage.values[root].op) ? value : root;
    const auto it = known.find(value);
    if (it != known.end()) {
      return it->second;
    }
    Value made = stage.values[value];
    if (!inside(made.op)) {
      const bool isShared = !shared.empty() && shared[value];
      const bool elsewhere = made.read || isShared || (made.op >= 0 && isFreeSource(stage.operators[made.op]));
      made = {-1, elsewhere ? 0 : made.bytes, -1, false};
    } else {
      made.op -= first;
      made.storage = made.storage < 0 ? -1 : self(made.storage, self);
    }
    interval.values.push_back(made);
    return known[value] = static_cast<int>(interval.values.size()) - 1;
  };
  const std::vector<std::vector<int>> results = stage.results();
  for (int op = first; op < last; ++op) {
    Operator made = stage.operators[op];
    for (int& input : made.inputs) {
      input = valueOf(input, valueOf);
    }
    for (const int value : results[op]) {
      valueOf(value, valueOf);
    }
    interval.operators.push_back(std::move(made));
  }
  for (size_t op = 0; op < stage.operators.size(); ++op) {
    for (const int input : stage.operators[op].inputs) {
      const int maker = stage.values[stage.storageOf(input)].op;
      if (!inside(static_cast<int>(op)) && inside(maker) && !isFreeSource(stage.operators[maker])) {
        interval.operators[maker - first].mayRepeat = false;
      }
    }
  }
  return interval;
}

}  // namespace weft::recompute
