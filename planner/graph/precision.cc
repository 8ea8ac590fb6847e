#include "planner/graph/precision.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "planner/graph/flops.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

std::vector<Shape> shapesOf(const std::vector<TensorType>& types) {
  std::vector<Shape> shapes;
  for (const TensorType& type : types) {
    shapes.push_back(type.shape);
  }
  return shapes;
}

// Does the operator do arithmetic on more elements than it makes, adding them up, without being a product?
absl::StatusOr<bool> isReduction(const OperatorFacts& facts, const std::vector<TensorType>& operands,
                                 const std::vector<TensorType>& results) {
  if (facts.flopsPerPoint == 0 || operands.empty() || results.empty()) {
    return false;
  }
  WEFT_ASSIGN_OR_RETURN(const Rule rule, Rule::parse(facts.rule, shapesOf(operands), shapesOf(results)));
  bool reduces = false;
  for (const DimFactors& dim : rule.operands()[0]) {
    for (const int f : dim) {
      reduces = reduces || rule.reducedIn(f, 0);
    }
  }
  return reduces && !isProduct(rule);
}

// Makes the values of one program narrow.
class Narrower {
 public:
  Narrower(const ProgramGraph& graph, DType type) : graph_(graph), type_(type) {}

  absl::StatusOr<ProgramGraph> run() {
    findFinishedGradients();
    for (GraphArgument& argument : graph_.arguments) {
      if (argument.kind == ArgumentKind::kParameter) {
        narrow(argument.type);
      }
    }
    std::vector<GraphOperator> operators = std::move(graph_.operators);
    for (GraphOperator& op : operators) {
      std::optional<GraphOperator> cast;
      if (op.phase != Phase::kUpdate) {
        WEFT_RETURN_IF_ERROR(narrowResults(op));
      } else {
        cast = onMasters(op);
      }
      for (unsigned r = 0; r < op.results.size(); ++r) {
        types_[{op.id, r}] = op.results[r];
      }
      graph_.operators.push_back(std::move(op));
      if (cast) {
        types_[{cast->id, 0}] = cast->results[0];
        graph_.operators.push_back(*std::move(cast));
      }
    }
    return std::move(graph_);
  }

 private:
  // What operators read that finish the gradient of a parameter; behind views what these are views of.
  void findFinishedGradients() {
    std::map<int64_t, const GraphOperator*> byId;
    for (const GraphOperator& op : graph_.operators) {
      byId[op.id] = &op;
      if (op.gradientOf.empty()) {
        continue;
      }
      for (GraphValue value : op.operands) {
        const GraphOperator* producer = nullptr;
        do {
          finished_.insert(value);
          producer = value.isArgument() ? nullptr : byId.at(value.producer);
          value = producer == nullptr || producer->operands.empty() ? value : producer->operands[0];
        } while (producer != nullptr && producer->facts.view != ViewKind::kNone && !producer->operands.empty());
      }
    }
  }

  void narrow(TensorType& type) const { type.type = type.type == DType::kF32 ? type_ : type.type; }

  const TensorType& typeOf(const GraphValue& value) const {
    return value.isArgument() ? graph_.arguments[value.index].type : types_.at(value);
  }

  std::vector<TensorType> typesOf(const std::vector<GraphValue>& values) const {
    std::vector<TensorType> types;
    for (const GraphValue& value : values) {
      types.push_back(typeOf(value));
    }
    return types;
  }

  bool isNarrowParameter(const GraphValue& value) const {
    return value.isArgument() && graph_.arguments[value.index].kind == ArgumentKind::kParameter &&
           typeOf(value).type == type_;
  }

  absl::Status narrowResults(GraphOperator& op) {
    const std::vector<TensorType> operands = typesOf(op.operands);
    std::vector<TensorType> ofBody = operands;  // what is expanded reads what comes of the expansion of others
    for (size_t i = 0; i < ofBody.size(); ++i) {
      const auto expanded = expanded_.find(op.operands[i]);
      ofBody[i] = expanded == expanded_.end() ? ofBody[i] : expanded->second;
    }
    for (Alternative& alternative : op.alternatives) {
      WEFT_RETURN_IF_ERROR(narrowBody(alternative, ofBody));
    }
    WEFT_RETURN_IF_ERROR(narrowResults(op.facts, operands, op.results));
    for (unsigned r = 0; r < op.results.size(); ++r) {
      if (finished_.count({op.id, r}) > 0 && op.results[r].type == type_) {
        op.results[r].type = DType::kF32;
      }
      for (Alternative& alternative : op.alternatives) {
        const GraphValue& made = alternative.results[r];
        if (!made.isArgument()) {
          TensorType& inBody = alternative.body[made.producer].results[made.index];
          inBody.type = op.results[r].type;
          if (op.facts.mustExpand) {
            expanded_[{op.id, r}] = inBody;
          }
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status narrowResults(const OperatorFacts& facts, const std::vector<TensorType>& operands,
                             std::vector<TensorType>& results) const {
    const auto isFloatOperand = [](const TensorType& operand) { return isFloat(operand.type); };
    const auto isNarrow = [&](const TensorType& operand) { return operand.type == type_; };
    const bool wide = std::any_of(operands.begin(), operands.end(), isFloatOperand) &&
                      std::none_of(operands.begin(), operands.end(), isNarrow);
    WEFT_ASSIGN_OR_RETURN(const bool reduces, isReduction(facts, operands, results));
    for (size_t r = 0; r < results.size() && !wide && !reduces; ++r) {
      const bool isStatistic = r > 0 && results[r].shape.size() < results[0].shape.size();
      if (!isStatistic && !results[r].shape.empty()) {
        narrow(results[r]);
      }
    }
    return absl::OkStatus();
  }

  absl::Status narrowBody(Alternative& alternative, const std::vector<TensorType>& of) const {
    for (AlternativeOperator& op : alternative.body) {
      std::vector<TensorType> operands;
      for (const GraphValue& value : op.operands) {
        operands.push_back(value.isArgument() ? of[value.index]
                                              : alternative.body[value.producer].results[value.index]);
      }
      WEFT_RETURN_IF_ERROR(narrowResults(op.facts, operands, op.results));
    }
    return absl::OkStatus();
  }

  // The update works on masters; the operator that is returned makes the parameter of the one that `op` updates.
  std::optional<GraphOperator> onMasters(GraphOperator& op) {
    const bool updates = op.facts.updatesParameter && isNarrowParameter(op.operands[0]);
    for (GraphValue& operand : op.operands) {
      operand = isNarrowParameter(operand) ? masterOf(operand.index) : operand;
    }
    return updates ? std::optional(replaceMaster(op)) : std::nullopt;
  }

  GraphValue masterOf(unsigned parameter) {
    const auto [it, isNew] = masters_.emplace(parameter, static_cast<unsigned>(graph_.arguments.size()));
    if (isNew) {
      GraphArgument master = graph_.arguments[parameter];
      master.kind = ArgumentKind::kState;
      master.name = absl::StrCat("master.", master.name);
      master.type.type = DType::kF32;
      master.layout.clear();
      graph_.arguments.push_back(std::move(master));
    }
    return {GraphValue::kArgument, it->second};
  }

  GraphOperator replaceMaster(const GraphOperator& op) {
    const unsigned number = op.operands[0].index;
    const Shape shape = graph_.arguments[number].type.shape;
    GraphOperator cast;
    cast.id = graph_.nextId++;
    cast.facts = {.kind = "cast", .rule = elementwiseRule(shape.size()), .flopsPerPoint = 1};
    cast.phase = Phase::kUpdate;
    cast.userStage = op.userStage;
    cast.line = op.line;
    cast.operands = {{op.id, 0}};
    cast.results = {{shape, type_}};
    for (GraphResult& result : graph_.results) {
      result.value = result.value == GraphValue{op.id, 0} ? GraphValue{cast.id, 0} : result.value;
    }
    graph_.results.push_back({{op.id, 0}, number});
    return cast;
  }

  static std::string elementwiseRule(size_t dimensions) {
    std::string dims;
    for (size_t d = 0; d < dimensions; ++d) {
      absl::StrAppend(&dims, d == 0 ? "d" : " d", d);
    }
    return absl::StrCat(dims, " -> ", dims);
  }

  ProgramGraph graph_;
  DType type_;
  std::set<GraphValue> finished_;
  std::map<unsigned, unsigned> masters_;    // by the parameter's argument
  std::map<GraphValue, TensorType> types_;  // of what operators make
  // Of what operators make that exist only to be expanded: the types once they are (Alternative).
  std::map<GraphValue, TensorType> expanded_;
};

}  // namespace

absl::StatusOr<ProgramGraph> inPrecision(const ProgramGraph& graph, DType type) {
  return Narrower(graph, type).run();
}

}  // namespace weft
