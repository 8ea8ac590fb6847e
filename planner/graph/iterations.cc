#include "planner/graph/iterations.h"

#include <map>
#include <optional>
#include <utility>

namespace weft {
namespace {

// The factors of the forward operator in each dimension of a value, major first.
using DimLabels = std::vector<DimFactors>;

class Tracer {
 public:
  Tracer(const GraphView& view, const std::function<const Rule&(int)>& ruleOf)
      : view_(view), ruleOf_(ruleOf), factors_(view.operators()), labels_(view.values()) {}

  ForwardFactors run() {
    for (int op = 0; op < view_.operators(); ++op) {
      factors_[op].assign(ruleOf_(op).factors().size(), kNoFactor);
      const std::optional<int64_t>& id = view_.op(op).forward;
      const std::optional<int> forward = id ? view_.find(*id) : std::nullopt;
      if (forward && *forward != op) {
        trace(op, *forward);
      }
    }
    return std::move(factors_);
  }

 private:
  void trace(int op, int forward) {
    const Rule& rule = ruleOf_(op);
    for (unsigned i = 0; i < rule.operands().size(); ++i) {
      match(op, rule.operands()[i], labelsOf(view_.operandOf(op, i), forward));
    }
    for (unsigned r = 0; r < rule.results().size(); ++r) {
      const int value = view_.resultOf(op, r);
      if (leaves(value, forward)) {
        matchOperand(op, rule.results()[r], value, forward);
      }
      labels_[value] = made(op, rule.results()[r]);
    }
  }

  // Factors that stand where a labeled dimension has as many take its labels; who was first keeps his.
  void match(int op, const std::vector<DimFactors>& dims, const DimLabels& labels) {
    for (size_t d = 0; d < dims.size() && d < labels.size(); ++d) {
      for (size_t k = 0; k < dims[d].size() && dims[d].size() == labels[d].size(); ++k) {
        int& known = factors_[op][dims[d][k]];
        known = known == kNoFactor ? labels[d][k] : known;
      }
    }
  }

  DimLabels made(int op, const std::vector<DimFactors>& dims) const {
    DimLabels labels = dims;
    for (DimFactors& dim : labels) {
      for (int& factor : dim) {
        factor = factors_[op][factor];
      }
    }
    return labels;
  }

  DimLabels labelsOf(int value, int forward) const {
    if (const std::optional<DimLabels> own = ownLabels(value, forward)) {
      return *own;
    }
    const std::optional<int> producer = view_.producerOf(value);
    if (!producer || view_.op(*producer).phase != Phase::kBackward) {
      return {};
    }
    return view_.op(*producer).forward == view_.op(forward).id ? labels_[value] : arriving(value, forward);
  }

  // Of a value that the forward operator reads or makes.
  std::optional<DimLabels> ownLabels(int value, int forward) const {
    const Rule& rule = ruleOf_(forward);
    for (unsigned r = 0; r < rule.results().size(); ++r) {
      if (view_.resultOf(forward, r) == value) {
        return rule.results()[r];
      }
    }
    for (unsigned i = 0; i < rule.operands().size(); ++i) {
      if (view_.operandOf(forward, i) == value) {
        return rule.operands()[i];
      }
    }
    return std::nullopt;
  }

  // Of a gradient that other operators have made: that of the first result of its shape. Results of one shape have the
  // same loops in their dimensions.
  DimLabels arriving(int value, int forward) const {
    const Rule& rule = ruleOf_(forward);
    for (unsigned r = 0; r < rule.results().size(); ++r) {
      if (view_.typeOf(view_.resultOf(forward, r)).shape == view_.typeOf(value).shape) {
        return rule.results()[r];
      }
    }
    return {};
  }

  // Is the value the gradient of an operand: read by others than the gradient of `forward`?
  bool leaves(int value, int forward) const {
    for (const GraphView::Use& use : view_.usesOf(value)) {
      if (use.op == GraphView::kStep || view_.op(use.op).forward != view_.op(forward).id) {
        return true;
      }
    }
    return false;
  }

  // Factors that only the result has, as where a sum's gradient is spread: those of the operand whose gradient it is.
  // Which one that is, its shape and the factors known so far must say; where several remain, they must agree.
  void matchOperand(int op, const std::vector<DimFactors>& dims, int value, int forward) {
    std::map<int, int> found;
    for (unsigned i = 0; i < ruleOf_(forward).operands().size(); ++i) {
      const DimLabels& labels = ruleOf_(forward).operands()[i];
      if (view_.typeOf(view_.operandOf(forward, i)).shape != view_.typeOf(value).shape || !agrees(op, dims, labels)) {
        continue;
      }
      for (size_t d = 0; d < dims.size(); ++d) {
        for (size_t k = 0; k < dims[d].size() && dims[d].size() == labels[d].size(); ++k) {
          const auto [it, isNew] = found.try_emplace(dims[d][k], labels[d][k]);
          it->second = isNew || it->second == labels[d][k] ? labels[d][k] : kNoFactor;
        }
      }
    }
    for (const auto& [factor, label] : found) {
      int& known = factors_[op][factor];
      known = known == kNoFactor ? label : known;
    }
  }

  bool agrees(int op, const std::vector<DimFactors>& dims, const DimLabels& labels) const {
    for (size_t d = 0; d < dims.size(); ++d) {
      for (size_t k = 0; k < dims[d].size() && dims[d].size() == labels[d].size(); ++k) {
        const int known = factors_[op][dims[d][k]];
        if (known != kNoFactor && known != labels[d][k]) {
          return false;
        }
      }
    }
    return true;
  }

  const GraphView& view_;
  const std::function<const Rule&(int)>& ruleOf_;
  ForwardFactors factors_;
  std::vector<DimLabels> labels_;  // of what backward operators make
};

}  // namespace

ForwardFactors forwardFactors(const GraphView& view, const std::function<const Rule&(int)>& ruleOf) {
  return Tracer(view, ruleOf).run();
}

}  // namespace weft
