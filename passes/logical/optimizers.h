// The update of parameters by an optimizer, as operators: the formulas stand in planner/optimizer.h.
//
// SGD and Adam are one operator for each parameter. The others are compositions: where a sum over a tensor is in them
// (the norms of LAMB, the means of Adafactor), the compiler makes a collective of it as of any other, whatever splits
// the tensor. Their elements are computed where the finished gradient lies, with ZeRO in its parts.
#pragma once

#include <map>
#include <string>

#include "passes/logical/update_emitter.h"
#include "planner/optimizer.h"

namespace weft {

class OptimizerBuilder {
 public:
  // Makes the state that all parameters share: the learning rate `lr` and the count of steps `step`.
  OptimizerBuilder(UpdateEmitter& emit, const Optimizer& optimizer);

  // The next value of a parameter and of its state.
  mlir::LogicalResult update(const std::string& name, mlir::Value parameter, mlir::Value gradient);
  // The next count of steps, after all parameters.
  void finish();

 private:
  struct Trained;  // one parameter

  void sgd(const Trained& p);
  void adam(const Trained& p);
  void adagrad(const Trained& p);
  void rmsProp(const Trained& p);
  void lamb(const Trained& p);
  void lion(const Trained& p);
  void adafactor(const Trained& p);

  mlir::Value rateOf(double factor);
  mlir::Value stepAs(mlir::Type element);
  mlir::Value decayed(const Trained& p);
  mlir::Value average(const Trained& p, mlir::Value state, mlir::Value value, mlir::Value weight);
  mlir::Value direction(const Trained& p, llvm::StringRef mnemonic, llvm::ArrayRef<mlir::Value> operands,
                        llvm::ArrayRef<mlir::Value> states, mlir::NamedAttrList attrs);
  mlir::Value mean(const Trained& p, mlir::Value value, int64_t dim);
  mlir::Value rootMeanSquare(const Trained& p, mlir::Value value);
  mlir::Value factoredSquares(const Trained& p, mlir::Value squares, mlir::Value weight);
  void descend(const Trained& p, mlir::Value direction, mlir::Value rate, double decay);
  void finishUpdate(const Trained& p, mlir::Operation* op, llvm::ArrayRef<mlir::Value> arguments);

  double setting(const char* name) const { return optimizer_.setting(name); }
  mlir::FloatAttr real(double value) { return emit_.builder().getF64FloatAttr(value); }

  UpdateEmitter& emit_;
  const Optimizer& optimizer_;
  mlir::Value lr_;
  mlir::Value count_;
  mlir::Value step_;                          // of this step, from 1
  std::map<double, mlir::Value> rates_;       // by the factor of a group
  std::map<const void*, mlir::Value> steps_;  // as floats, by type
};

}  // namespace weft
