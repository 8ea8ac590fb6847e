#include "planner/derive/pads.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "planner/derive/micro_batches.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

class Spreader {
 public:
  Spreader(const GraphView& view, StoredShapes& shapes) : view_(view), shapes_(shapes) {}

  absl::Status run() {
    for (int op = 0; op < view_.operators(); ++op) {
      WEFT_ASSIGN_OR_RETURN(Rule rule, ruleOf(view_, op));
      rules_.push_back(std::move(rule));
    }
    do {
      changed_ = false;
      for (int op = 0; op < view_.operators(); ++op) {
        WEFT_RETURN_IF_ERROR(visit(op));
      }
      for (int op = view_.operators() - 1; op >= 0; --op) {
        WEFT_RETURN_IF_ERROR(visit(op));
      }
      followUpdates();
    } while (changed_);
    return absl::OkStatus();
  }

 private:
  // An argument and the result that replaces it are stored alike.
  void followUpdates() {
    for (const GraphResult& result : view_.graph().results) {
      if (result.updates) {
        const int value = view_.valueOf(result.value);
        const int argument = static_cast<int>(*result.updates);
        grow(argument, shapes_.of(value));
        grow(value, shapes_.of(argument));
      }
    }
  }

  void grow(int value, const Shape& wanted) {
    Shape shape = shapes_.of(value);
    for (size_t d = 0; d < shape.size(); ++d) {
      if (wanted[d] > shape[d]) {
        shape[d] = wanted[d];
        changed_ = true;
      }
    }
    shapes_.set(value, shape);
  }

  absl::Status visit(int op) {
    const Rule& rule = rules_[op];
    std::vector<int64_t> stored;
    for (const Factor& factor : rule.factors()) {
      stored.push_back(factor.size);
    }
    const auto eachTensor = [&](const auto& call) -> absl::Status {
      for (unsigned i = 0; i < view_.op(op).operands.size(); ++i) {
        WEFT_RETURN_IF_ERROR(call(view_.operandOf(op, i), rule.operands()[i]));
      }
      for (unsigned r = 0; r < view_.op(op).results.size(); ++r) {
        WEFT_RETURN_IF_ERROR(call(view_.resultOf(op, r), rule.results()[r]));
      }
      return absl::OkStatus();
    };
    WEFT_RETURN_IF_ERROR(
        eachTensor([&](int value, const std::vector<DimFactors>& dims) { return collect(op, value, dims, stored); }));
    return eachTensor([&](int value, const std::vector<DimFactors>& dims) { return assign(op, value, dims, stored); });
  }

  // The greatest stored size any tensor of the operator gives each factor.
  absl::Status collect(int op, int value, const std::vector<DimFactors>& dims, std::vector<int64_t>& stored) const {
    const Shape& shape = shapes_.of(value);
    const Shape& logical = view_.typeOf(value).shape;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (shape[d] == logical[d] || dims[d].empty()) {
        continue;
      }
      int64_t minor = 1;
      for (size_t k = 1; k < dims[d].size(); ++k) {
        minor *= rules_[op].factors()[dims[d][k]].size;
      }
      if (shape[d] % minor != 0) {
        const std::string& label = view_.op(op).label();
        return errorAt(view_.op(op).line, absl::StrCat(label, ": dimension ", d, " of size ", logical[d],
                                                       " is stored with ", shape[d], " elements, which ", label,
                                                       " cannot see as rows of ", minor, "; pad another dimension"));
      }
      int64_t& size = stored[dims[d].front()];
      size = std::max(size, shape[d] / minor);
    }
    return absl::OkStatus();
  }

  absl::Status assign(int op, int value, const std::vector<DimFactors>& dims, const std::vector<int64_t>& stored) {
    const Rule& rule = rules_[op];
    Shape wanted = shapes_.of(value);
    for (size_t d = 0; d < dims.size(); ++d) {
      int64_t size = 1;
      for (size_t k = 0; k < dims[d].size(); ++k) {
        const int factor = dims[d][k];
        if (k > 0 && stored[factor] != rule.factors()[factor].size) {
          return errorAt(view_.op(op).line, absl::StrCat(view_.op(op).label(), " would merge a padded dimension (",
                                                         rule.factors()[factor].size, " stored as ", stored[factor],
                                                         ") into another; pad or split the outer one instead"));
        }
        size *= stored[factor];
      }
      if (!dims[d].empty()) {
        wanted[d] = std::max(wanted[d], size);
      }
    }
    grow(value, wanted);
    return absl::OkStatus();
  }

  const GraphView& view_;
  StoredShapes& shapes_;
  std::vector<Rule> rules_;
  bool changed_ = false;
};

}  // namespace

StoredShapes::StoredShapes(const GraphView& view) {
  for (int value = 0; value < view.values(); ++value) {
    shapes_.push_back(view.typeOf(value).shape);
  }
}

std::vector<Shape> StoredShapes::operands(const GraphView& view, int op) const {
  std::vector<Shape> shapes;
  for (unsigned i = 0; i < view.op(op).operands.size(); ++i) {
    shapes.push_back(of(view.operandOf(op, i)));
  }
  return shapes;
}

std::vector<Shape> StoredShapes::results(const GraphView& view, int op) const {
  std::vector<Shape> shapes;
  for (unsigned r = 0; r < view.op(op).results.size(); ++r) {
    shapes.push_back(of(view.resultOf(op, r)));
  }
  return shapes;
}

Layout withPads(Layout layout, const Shape& logical, const Shape& stored) {
  for (size_t d = 0; d < logical.size(); ++d) {
    layout.setPad(d, stored[d] == logical[d] ? 0 : stored[d]);
  }
  return layout;
}

absl::StatusOr<Rule> ruleOf(const GraphView& view, const StoredShapes& stored, int op) {
  return ruleOver(view, op, stored.operands(view, op), stored.results(view, op));
}

absl::StatusOr<StoredShapes> spreadPads(const GraphView& view, const std::map<unsigned, Shape>& arguments) {
  StoredShapes shapes(view);
  for (const auto& [index, shape] : arguments) {
    shapes.set(static_cast<int>(index), shape);
  }
  if (shapes != StoredShapes(view)) {
    WEFT_RETURN_IF_ERROR(Spreader(view, shapes).run());
  }
  return shapes;
}

}  // namespace weft
