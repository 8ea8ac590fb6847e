#include "planner/graph/shorten.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace weft {
namespace {

constexpr int kNone = Segments::kNone;

// What belongs to a segment, each list in program order.
struct Belongings {
  std::vector<int> operators;
  std::vector<int> arguments;
};

class Shortener {
 public:
  Shortener(const GraphView& view, const Segments& segments, const SaidAlike& said)
      : view_(view), segments_(segments), said_(said) {}

  std::optional<Shortened> run() {
    findStretches();
    findOwners();
    if (stretches_.empty() || !areAlike() || !joinOperators() || !joinResults()) {
      return std::nullopt;
    }
    return std::move(made_);
  }

 private:
  // Alike segments that follow one another.
  struct Stretch {
    int first = 0;
    int count = 0;
    int last() const { return first + count - 1; }
    bool has(int segment) const { return segment >= first && segment <= last(); }
  };

  int count() const { return static_cast<int>(segments_.classOf.size()); }
  const GraphOperator& op(int number) const { return view_.op(number); }

  void findStretches() {
    for (int s = 0; s < count(); ++s) {
      made_.standsFor.push_back(s);
    }
    for (int first = 0, next = 0; first < count(); first = next) {
      while (next < count() && segments_.classOf[next] == segments_.classOf[first]) {
        ++next;
      }
      const Stretch stretch = {first, next - first};
      if (stretch.count > kLayersLeft) {
        stretches_.push_back(stretch);
        for (int s = firstGone(stretch); s < stretch.last(); ++s) {
          made_.standsFor[s] = firstGone(stretch) - 1;
        }
      }
    }
  }

  static int firstGone(const Stretch& stretch) { return stretch.first + kLayersLeft - 1; }
  bool isGone(int segment) const { return segment != kNone && made_.standsFor[segment] != segment; }
  const Stretch* stretchOf(int segment) const {
    const auto it =
        std::find_if(stretches_.begin(), stretches_.end(), [&](const Stretch& s) { return s.has(segment); });
    return it == stretches_.end() ? nullptr : &*it;
  }

  // Parameters belong to the segment that reads them, operators of the backward pass to that of the operator whose
  // gradient they are, what updates to what it updates; further operators where all that they read belongs.
  void findOwners() {
    argumentOwners_.assign(view_.graph().arguments.size(), kNone);
    for (size_t a = 0; a < argumentOwners_.size(); ++a) {
      if (view_.graph().arguments[a].kind == ArgumentKind::kParameter) {
        argumentOwners_[a] = readerOf(static_cast<int>(a));
      }
    }
    std::map<std::string, int> owners;  // by the name of a parameter
    for (size_t a = 0; a < argumentOwners_.size(); ++a) {
      owners[view_.graph().arguments[a].name] = argumentOwners_[a];
    }
    owners_.assign(view_.operators(), kNone);
    for (int number = 0; number < view_.operators(); ++number) {
      const GraphOperator& node = op(number);
      const std::optional<int> forward = node.forward ? view_.find(*node.forward) : std::nullopt;
      const std::optional<int> original = node.prologueOf ? view_.find(*node.prologueOf) : std::nullopt;
      owners_[number] = original                        ? segments_.of[*original]
                        : node.phase == Phase::kForward ? segments_.of[number]
                        : !node.gradientOf.empty()      ? owners[node.gradientOf]
                        : forward                       ? segments_.of[*forward]
                                                        : ownerOfOperands(number);
    }
    shareFirstSums();
    // States belong to what makes their next value.
    for (const GraphResult& result : view_.graph().results) {
      if (result.updates && !result.value.isArgument()) {
        argumentOwners_[*result.updates] = owners_[*view_.find(result.value.producer)];
      }
    }
  }

  // A sum over layers begins with terms of one: what only such a sum reads is shared as the sum is.
  void shareFirstSums() {
    const auto isShared = [&](const GraphView::Use& use) {
      return use.op != GraphView::kStep && op(use.op).facts.isSum && owners_[use.op] == kNone;
    };
    for (int number = view_.operators() - 1; number >= 0; --number) {
      if (op(number).facts.isSum && op(number).phase == Phase::kBackward) {
        const std::vector<GraphView::Use>& uses = view_.usesOf(view_.resultOf(number, 0));
        if (!uses.empty() && std::all_of(uses.begin(), uses.end(), isShared)) {
          owners_[number] = kNone;
        }
      }
    }
  }

  // The segment of all forward operators that read an argument; none where they are of several.
  int readerOf(int argument) const {
    std::set<int> readers;
    for (const GraphView::Use& use : view_.usesOf(argument)) {
      if (use.op != GraphView::kStep && op(use.op).phase == Phase::kForward) {
        readers.insert(segments_.of[use.op]);
      }
    }
    return readers.size() == 1 ? *readers.begin() : kNone;
  }

  int ownerOfOperands(int number) const {
    std::set<int> found;
    for (const GraphValue& operand : op(number).operands) {
      if (!operand.isArgument()) {
        found.insert(owners_[*view_.find(operand.producer)]);
      } else if (view_.graph().arguments[operand.index].kind == ArgumentKind::kParameter) {
        found.insert(argumentOwners_[operand.index]);
      }
    }
    // What all layers share, the number of the step, belongs to none; a sum over layers is shared, too.
    if (!op(number).facts.isSum) {
      found.erase(kNone);
    } else if (op(number).phase == Phase::kUpdate) {
      return kNone;
    }
    return found.size() == 1 ? *found.begin() : kNone;
  }

  // Have the segments of a stretch the same things, in the same order?
  bool areAlike() {
    belongings_.resize(count());
    for (int number = 0; number < view_.operators(); ++number) {
      if (owners_[number] != kNone) {
        places_[number] = static_cast<int>(belongings_[owners_[number]].operators.size());
        belongings_[owners_[number]].operators.push_back(number);
      }
    }
    argumentPlaces_.resize(argumentOwners_.size());
    for (size_t a = 0; a < argumentOwners_.size(); ++a) {
      if (argumentOwners_[a] != kNone) {
        argumentPlaces_[a] = static_cast<int>(belongings_[argumentOwners_[a]].arguments.size());
        belongings_[argumentOwners_[a]].arguments.push_back(static_cast<int>(a));
      }
    }
    // The first may differ: a layer that reads the inputs computes no gradient for them.
    for (const Stretch& stretch : stretches_) {
      const Belongings& model = belongings_[firstGone(stretch) - 1];
      for (int s = stretch.first + 1; s <= stretch.last(); ++s) {
        if (!areAlike(model, belongings_[s]) || (isGone(s) && !isSaidAlike(model, belongings_[s]))) {
          return false;
        }
      }
    }
    return true;
  }

  bool isSaidAlike(const Belongings& a, const Belongings& b) const {
    return std::equal(a.operators.begin(), a.operators.end(), b.operators.begin(), said_.operators) &&
           std::equal(a.arguments.begin(), a.arguments.end(), b.arguments.begin(), said_.arguments);
  }

  bool areAlike(const Belongings& a, const Belongings& b) const {
    const auto operatorsAlike = [&](int x, int y) {
      return op(x).facts.kind == op(y).facts.kind && op(x).facts.rule == op(y).facts.rule &&
             op(x).phase == op(y).phase && op(x).results == op(y).results &&
             op(x).operands.size() == op(y).operands.size() && op(x).constraint == op(y).constraint &&
             op(x).recomputeScope.has_value() == op(y).recomputeScope.has_value() &&
             op(x).alternatives == op(y).alternatives;
    };
    const auto argumentsAlike = [&](int x, int y) {
      const GraphArgument& one = view_.graph().arguments[x];
      const GraphArgument& other = view_.graph().arguments[y];
      return one.kind == other.kind && one.type == other.type && one.layout == other.layout;
    };
    return std::equal(a.operators.begin(), a.operators.end(), b.operators.begin(), b.operators.end(), operatorsAlike) &&
           std::equal(a.arguments.begin(), a.arguments.end(), b.arguments.begin(), b.arguments.end(), argumentsAlike);
  }

  bool joinOperators() {
    made_.graph = view_.graph();
    made_.graph.operators.clear();
    made_.graph.results.clear();
    made_.graph.arguments.clear();
    for (size_t a = 0; a < argumentOwners_.size(); ++a) {
      newArguments_.push_back(made_.graph.arguments.size());
      if (!isGone(argumentOwners_[a])) {
        made_.graph.arguments.push_back(view_.graph().arguments[a]);
      }
    }
    for (int number = 0; number < view_.operators(); ++number) {
      if (!isGone(owners_[number]) && !joinOperator(number)) {
        return false;
      }
    }
    return true;
  }

  // A kept operator, with what it reads of layers that are left out replaced.
  bool joinOperator(int number) {
    GraphOperator node = op(number);
    std::vector<GraphValue> left;
    for (const GraphValue& operand : node.operands) {
      const int owner = ownerOf(operand);
      const GraphValue value = isGone(owner) ? counterpart(operand, owners_[number]) : renumbered(operand);
      if (value != kNowhere) {
        left.push_back(value);
      }
    }
    if (left.size() == node.operands.size()) {
      node.operands = std::move(left);
      made_.graph.operators.push_back(std::move(node));
      return true;
    }
    // Terms of a sum.
    const bool isSum = node.facts.isSum && owners_[number] == kNone && left.size() < 2;
    aliases_[{node.id, 0}] = left.empty() ? kNowhere : left.front();
    return isSum;
  }

  static constexpr GraphValue kNowhere = {-2, 0};

  int ownerOf(const GraphValue& value) const {
    return value.isArgument() ? argumentOwners_[value.index] : owners_[*view_.find(value.producer)];
  }

  // The value of the segment that stands as far from `reader` in what is left as `value` stood in the program.
  GraphValue counterpart(const GraphValue& value, int reader) const {
    const int owner = ownerOf(value);
    const Stretch* stretch = stretchOf(owner);
    if (reader == kNone || !stretch->has(reader)) {
      return kNowhere;
    }
    const int place = reader == stretch->last() ? kLayersLeft - 1 : reader - stretch->first;
    const int wanted = place + owner - reader;
    if (wanted < 0 || wanted >= kLayersLeft) {
      return kNowhere;
    }
    const Belongings& other = belongings_[wanted == kLayersLeft - 1 ? stretch->last() : stretch->first + wanted];
    if (wanted == 0 && !areAlike(other, belongings_[owner])) {
      return kNowhere;
    }
    if (value.isArgument()) {
      return renumbered({GraphValue::kArgument, static_cast<unsigned>(other.arguments[argumentPlaces_[value.index]])});
    }
    return {op(other.operators[places_.at(*view_.find(value.producer))]).id, value.index};
  }

  GraphValue renumbered(const GraphValue& value) const {
    if (value.isArgument()) {
      return {GraphValue::kArgument, static_cast<unsigned>(newArguments_[value.index])};
    }
    const auto it = aliases_.find(value);
    return it == aliases_.end() ? value : it->second;
  }

  bool joinResults() {
    for (GraphResult result : view_.graph().results) {
      if (isGone(ownerOf(result.value))) {
        if (!result.updates) {
          return false;
        }
        continue;
      }
      result.value = renumbered(result.value);
      if (result.value == kNowhere) {
        return false;
      }
      if (result.updates) {
        result.updates = static_cast<unsigned>(newArguments_[*result.updates]);
      }
      made_.graph.results.push_back(result);
    }
    return true;
  }

  const GraphView& view_;
  const Segments& segments_;
  const SaidAlike& said_;
  std::vector<Stretch> stretches_;
  std::vector<int> owners_;          // of each operator: its segment
  std::vector<int> argumentOwners_;  // of each argument
  std::vector<Belongings> belongings_;
  std::map<int, int> places_;  // of each operator that belongs to a segment: among its operators
  std::vector<int> argumentPlaces_;
  std::vector<size_t> newArguments_;          // of each argument: its number in what is left
  std::map<GraphValue, GraphValue> aliases_;  // of sums with one term left, or none: what stands for them
  Shortened made_;
};

}  // namespace

std::optional<Shortened> shortened(const GraphView& view, const Segments& segments, const SaidAlike& said) {
  return Shortener(view, segments, said).run();
}

}  // namespace weft
