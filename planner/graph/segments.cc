#include "planner/graph/segments.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weft {
namespace {

// Longer periods are not looked for: the search takes time in proportion to operators times periods.
constexpr int kLongestPeriod = 4096;
// A single operator that is repeated is no layer.
constexpr int kShortestPeriod = 2;

std::string textOf(const TensorType& type) {
  return absl::StrCat(dtypeName(type.type), "[", absl::StrJoin(type.shape, ","), "]");
}

std::string textOf(const Attribute& attribute) {
  return std::visit(
      [](const auto& value) {
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_arithmetic_v<Value> || std::is_same_v<Value, std::string>) {
          return absl::StrCat(value);
        } else {
          return absl::StrJoin(value, ",");
        }
      },
      attribute);
}

// What numbers an operator's random draws; layers have their own.
bool isRandomKey(const std::string& attribute) {
  return attribute == "seed" || attribute == "key";
}

std::string textOf(const std::optional<UserStrategy>& strategy) {
  if (!strategy) {
    return "";
  }
  std::string text = "strategy";
  const auto add = [&](const auto& lists) {
    for (const auto& list : lists) {
      absl::StrAppend(&text, "(", absl::StrJoin(list, ";"), ")");
    }
    text += "|";
  };
  add(strategy->inSplits);
  add(strategy->outSplits);
  add(strategy->inNames);
  add(strategy->outNames);
  return text;
}

class SegmentFinder {
 public:
  SegmentFinder(const GraphView& view, LayoutWords words)
      : view_(view), words_(words), place_(view.operators(), Segments::kNone) {
    for (int op = 0; op < view.operators(); ++op) {
      if (view.op(op).phase == Phase::kForward && !view.op(op).prologueOf) {
        place_[op] = static_cast<int>(forward_.size());
        forward_.push_back(op);
      }
    }
    std::map<std::string, int> numbers;
    for (const int op : forward_) {
      alike_.push_back(numbers.try_emplace(likeness(op), static_cast<int>(numbers.size())).first->second);
    }
    measureBorders();
  }

  Segments run() {
    segments_.of.assign(view_.operators(), Segments::kNone);
    cut(0, static_cast<int>(forward_.size()));
    return std::move(segments_);
  }

 private:
  // Repeats of `period` operators that begin at `first`.
  struct Repeats {
    int first = 0;
    int period = 0;
    int count = 0;
    int covered() const { return period * count; }
  };

  std::string likeness(int op) const {
    const GraphOperator& node = view_.op(op);
    std::string text = absl::StrCat(node.facts.kind, "|", node.facts.rule, "|", node.facts.flopsPerPoint);
    if (words_ == LayoutWords::kCompared) {
      absl::StrAppend(&text, "|", node.constraint, "|", textOf(node.strategy));
    }
    for (unsigned i = 0; i < node.operands.size(); ++i) {
      absl::StrAppend(&text, "|", textOf(view_.typeOf(view_.operandOf(op, i))));
    }
    for (const TensorType& result : node.results) {
      absl::StrAppend(&text, ">", textOf(result));
    }
    for (const auto& [name, value] : node.facts.attributes) {
      absl::StrAppend(&text, "|", name, "=", isRandomKey(name) ? "" : textOf(value));
    }
    return text;
  }

  // border_[i]: bytes that operators before place i make and those from i on read.
  void measureBorders() {
    border_.assign(forward_.size() + 1, 0);
    for (size_t i = 0; i < forward_.size(); ++i) {
      for (unsigned r = 0; r < view_.op(forward_[i]).results.size(); ++r) {
        const int value = view_.resultOf(forward_[i], r);
        int last = static_cast<int>(i);
        for (const GraphView::Use& use : view_.usesOf(value)) {
          last = std::max(last, use.op == GraphView::kStep ? last : place_[use.op]);
        }
        for (int at = static_cast<int>(i) + 1; at <= last; ++at) {
          border_[at] += view_.typeOf(value).bytes();
        }
      }
    }
  }

  // Cuts the places from `begin` to `end` into segments.
  void cut(int begin, int end) {
    const Repeats best = longest(begin, end);
    if (best.count < 2) {
      if (begin < end) {
        add(begin, end);
      }
      return;
    }
    cut(begin, best.first);
    for (int i = 0; i < best.count; ++i) {
      add(best.first + i * best.period, best.first + (i + 1) * best.period);
    }
    cut(best.first + best.covered(), end);
  }

  // The repeats that cover most, the shorter period where two cover as much.
  Repeats longest(int begin, int end) const {
    Repeats best;
    int bestEnd = begin;
    for (int period = kShortestPeriod; period <= std::min((end - begin) / 2, kLongestPeriod); ++period) {
      int first = begin;
      for (int i = begin; i + period <= end; ++i) {
        if (i + period < end && alike_[i] == alike_[i + period]) {
          continue;
        }
        // The places from `first` to i + period repeat.
        const Repeats found = {first, period, (i - first) / period + 1};
        if (found.count >= 2 && found.covered() > best.covered()) {
          best = found;
          bestEnd = i + period;
        }
        first = i + 1;
      }
    }
    return best.count < 2 ? best : withBestBorders(best, bestEnd);
  }

  // Repeats that begin a little later, where fewer bytes pass their borders, as long as there are two of them.
  Repeats withBestBorders(const Repeats& found, int end) const {
    Repeats best = found;
    for (int first = found.first; first < found.first + found.period; ++first) {
      const Repeats moved = {first, found.period, (end - first) / found.period};
      if (moved.count >= 2 && border_[first + found.period] < border_[best.first + found.period]) {
        best = moved;
      }
    }
    return best;
  }

  // One segment; its class is known by its operators and by how they are joined.
  void add(int begin, int end) {
    std::vector<int> shape;
    for (int at = begin; at < end; ++at) {
      segments_.of[forward_[at]] = static_cast<int>(segments_.classOf.size());
      shape.push_back(alike_[at]);
      for (unsigned i = 0; i < view_.op(forward_[at]).operands.size(); ++i) {
        const int value = view_.operandOf(forward_[at], i);
        const std::optional<int> producer = view_.producerOf(value);
        const int from = producer ? place_[*producer] : Segments::kNone;
        const bool inside = from >= begin;
        shape.push_back(inside ? at - from : 0);
        shape.push_back(inside ? static_cast<int>(view_.indexOf(value)) : 0);
      }
    }
    segments_.classOf.push_back(classes_.try_emplace(shape, static_cast<int>(classes_.size())).first->second);
  }

  const GraphView& view_;
  const LayoutWords words_;
  std::vector<int> forward_;  // operators of the forward pass, in order
  std::vector<int> place_;    // of each operator: where it stands in forward_
  std::vector<int> alike_;    // of each place: equal numbers are alike
  std::vector<int64_t> border_;
  std::map<std::vector<int>, int> classes_;
  Segments segments_;
};

}  // namespace

Segments segmentsOf(const GraphView& view, LayoutWords words) {
  return SegmentFinder(view, words).run();
}

void markAlike(ProgramGraph& graph) {
  constexpr int kEnds = 2;  // layers at either end
  constexpr int kAlternating = 2;
  const Segments segments = segmentsOf(GraphView(graph));
  const auto count = static_cast<int>(segments.classOf.size());
  std::vector<std::vector<size_t>> operators(count);  // of each segment, in order
  for (size_t op = 0; op < graph.operators.size(); ++op) {
    if (segments.of[op] != Segments::kNone) {
      operators[segments.of[op]].push_back(op);
    }
  }
  for (int first = 0, end = 0; first < count; first = end) {
    for (end = first; end < count && segments.classOf[end] == segments.classOf[first];) {
      ++end;
    }
    const int between = first + kEnds;
    for (int segment = between; segment + kEnds < end; ++segment) {
      const std::vector<size_t>& alike = operators[between + (segment - between) % kAlternating];
      for (size_t i = 0; i < alike.size(); ++i) {
        graph.operators[operators[segment][i]].alike = graph.operators[alike[i]].id;
      }
    }
  }
}

}  // namespace weft
