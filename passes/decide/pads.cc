#include "passes/decide/pads.h"

#include <algorithm>

#include "ir/nn/operator_interface.h"
#include "ir/program/program.h"

namespace weft {
namespace {

using namespace mlir;  // NOLINT

class Spreader {
 public:
  Spreader(func::FuncOp function, StoredShapes& shapes) : function_(function), shapes_(shapes) {}

  LogicalResult run() {
    Block& body = function_.getBody().front();
    do {
      changed_ = false;
      for (Operation& op : body.without_terminator()) {
        if (failed(visit(&op))) {
          return failure();
        }
      }
      for (Operation& op : llvm::reverse(body.without_terminator())) {
        if (failed(visit(&op))) {
          return failure();
        }
      }
      followUpdates(body);
    } while (changed_);
    return success();
  }

 private:
  // An argument and the result that replaces it are stored alike.
  void followUpdates(Block& body) {
    for (unsigned i = 0; i < function_.getNumResults(); ++i) {
      if (auto attr = function_.getResultAttrOfType<IntegerAttr>(i, kUpdatesAttr)) {
        grow(body.getArgument(attr.getInt()), shapes_.of(returned(function_, i)));
        grow(returned(function_, i), shapes_.of(body.getArgument(attr.getInt())));
      }
    }
  }

  void grow(Value value, const Shape& wanted) {
    Shape shape = shapes_.of(value);
    for (size_t d = 0; d < shape.size(); ++d) {
      if (wanted[d] > shape[d]) {
        shape[d] = wanted[d];
        changed_ = true;
      }
    }
    shapes_.set(value, shape);
  }

  LogicalResult visit(Operation* op) {
    FailureOr<Rule> rule = ir::ruleOf(cast<ir::OperatorInterface>(op));
    if (failed(rule)) {
      return failure();
    }
    std::vector<int64_t> stored;
    for (const Factor& factor : rule->factors()) {
      stored.push_back(factor.size);
    }
    if (failed(collect(op, *rule, stored))) {
      return failure();
    }
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      if (failed(assign(op, op->getOperand(i), rule->operands()[i], *rule, stored))) {
        return failure();
      }
    }
    for (unsigned r = 0; r < op->getNumResults(); ++r) {
      if (failed(assign(op, op->getResult(r), rule->results()[r], *rule, stored))) {
        return failure();
      }
    }
    return success();
  }

  // The greatest stored size any tensor of the operator gives each factor.
  LogicalResult collect(Operation* op, const Rule& rule, std::vector<int64_t>& stored) {
    auto take = [&](Value value, const std::vector<DimFactors>& dims) -> LogicalResult {
      const Shape& shape = shapes_.of(value);
      const Shape logical = ir::shapeOf(value);
      for (size_t d = 0; d < dims.size(); ++d) {
        if (shape[d] == logical[d] || dims[d].empty()) {
          continue;
        }
        int64_t minor = 1;
        for (size_t k = 1; k < dims[d].size(); ++k) {
          minor *= rule.factors()[dims[d][k]].size;
        }
        if (shape[d] % minor != 0) {
          return op->emitError() << labelOf(op) << ": dimension " << d << " of size " << logical[d]
                                 << " is stored with " << shape[d] << " elements, which " << labelOf(op)
                                 << " cannot see as rows of " << minor << "; pad another dimension";
        }
        int64_t& size = stored[dims[d].front()];
        size = std::max(size, shape[d] / minor);
      }
      return success();
    };
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      if (failed(take(op->getOperand(i), rule.operands()[i]))) {
        return failure();
      }
    }
    for (unsigned r = 0; r < op->getNumResults(); ++r) {
      if (failed(take(op->getResult(r), rule.results()[r]))) {
        return failure();
      }
    }
    return success();
  }

  LogicalResult assign(Operation* op, Value value, const std::vector<DimFactors>& dims, const Rule& rule,
                       const std::vector<int64_t>& stored) {
    Shape wanted = shapes_.of(value);
    for (size_t d = 0; d < dims.size(); ++d) {
      int64_t size = 1;
      for (size_t k = 0; k < dims[d].size(); ++k) {
        const int factor = dims[d][k];
        if (k > 0 && stored[factor] != rule.factors()[factor].size) {
          return op->emitError() << labelOf(op) << " would merge a padded dimension (" << rule.factors()[factor].size
                                 << " stored as " << stored[factor]
                                 << ") into another; pad or split the outer one instead";
        }
        size *= stored[factor];
      }
      if (!dims[d].empty()) {
        wanted[d] = std::max(wanted[d], size);
      }
    }
    grow(value, wanted);
    return success();
  }

  func::FuncOp function_;
  StoredShapes& shapes_;
  bool changed_ = false;
};

}  // namespace

bool StoredShapes::padded(Value value) const {
  return of(value) != ir::shapeOf(value);
}

std::vector<Shape> StoredShapes::operands(Operation* op) const {
  std::vector<Shape> shapes;
  for (Value value : op->getOperands()) {
    shapes.push_back(of(value));
  }
  return shapes;
}

std::vector<Shape> StoredShapes::results(Operation* op) const {
  std::vector<Shape> shapes;
  for (Value value : op->getResults()) {
    shapes.push_back(of(value));
  }
  return shapes;
}

FailureOr<StoredShapes> spreadPads(func::FuncOp function, const llvm::DenseMap<unsigned, Shape>& arguments) {
  StoredShapes shapes;
  Block& body = function.getBody().front();
  for (BlockArgument argument : body.getArguments()) {
    const auto it = arguments.find(argument.getArgNumber());
    shapes.set(argument, it == arguments.end() ? ir::shapeOf(argument) : it->second);
  }
  for (Operation& op : body.without_terminator()) {
    for (Value result : op.getResults()) {
      shapes.set(result, ir::shapeOf(result));
    }
  }
  if (failed(Spreader(function, shapes).run())) {
    return failure();
  }
  return shapes;
}

}  // namespace weft
