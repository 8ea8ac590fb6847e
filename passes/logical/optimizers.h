// The update of parameters by an optimizer, as operators: the formulas stand in planner/optimizer.h.
//
// SGD and Adam are one operator for each parameter. The others are compositions: where a sum over a tensor is in them
// (the norms of LAMB, the means of Adafactor), the compiler makes a collective of it as of any other, whatever splits
// the tensor. Their elements are computed where the finished gradient lies, with ZeRO in its parts.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "passes/logical/update_emitter.h"
#include "planner/optimizer.h"

namespace weft {

// What all optimizers of a step share.
struct StepState {
  mlir::Value lr;    // the learning rate of the program, f32
  double first = 0;  // its first value
  mlir::Value step;  // the number of this step, i32, from 1
};

class OptimizerBuilder {
 public:
  // The optimizer's learning rate is the program's times a factor, so that schedules reach all of them.
  OptimizerBuilder(UpdateEmitter& emit, const Optimizer& optimizer, const StepState& shared);

  // The next value of a parameter and of its state; all of it is there after finish().
  mlir::LogicalResult update(const std::string& name, mlir::Value parameter, mlir::Value gradient);
  // What remains of all parameters.
  void finish();

 private:
  struct Trained;  // one parameter

  void sgd(const Trained& p);
  void adam(const Trained& p);
  void adagrad(const Trained& p);
  void rmsProp(const Trained& p);
  void lamb(const Trained& p);
  void trustedStep(const Trained& p, mlir::Value made, mlir::Value parameterSquares, mlir::Value directionSquares);
  void lion(const Trained& p);
  void adafactor(const Trained& p);
  void adafactorDirection(const Trained& p, mlir::Value estimate, mlir::Value size);

  // What is to be made of a parameter behind phase 0, 1, ... of all of them: so sums over ranks that do not depend on
  // each other stand together, and become one collective (--weft-form-buckets).
  void later(size_t phase, std::function<void()> rest);

  mlir::Value rateOf(double factor);
  mlir::Value stepAs(mlir::Type element);
  mlir::Value decayed(const Trained& p);
  mlir::Value average(const Trained& p, mlir::Value state, mlir::Value value, mlir::Value weight);
  mlir::Value direction(const Trained& p, llvm::StringRef mnemonic, llvm::ArrayRef<mlir::Value> operands,
                        llvm::ArrayRef<mlir::Value> states, mlir::NamedAttrList attrs);
  mlir::Value mean(const Trained& p, mlir::Value value, int64_t dim);
  mlir::Value meanOfSquares(const Trained& p, mlir::Value value);
  mlir::Value newWeight(mlir::Type element);
  mlir::Value slowedRate(const Trained& p);
  void descend(const Trained& p, mlir::Value direction, mlir::Value rate, double decay);
  void finishUpdate(const Trained& p, mlir::Operation* op, llvm::ArrayRef<mlir::Value> arguments);

  mlir::NamedAttrList settings(std::initializer_list<const char*> names);  // as attributes of an operator
  double setting(const char* name) const { return optimizer_.setting(name); }
  mlir::FloatAttr real(double value) { return emit_.builder().getF64FloatAttr(value); }

  UpdateEmitter& emit_;
  const Optimizer& optimizer_;
  mlir::Value lr_;
  double factor_;                                                      // of the program's learning rate
  mlir::Value step_;                                                   // of this step, from 1
  std::map<const void*, mlir::Value> weights_;                         // of what is new in an average, by type
  std::map<std::pair<const void*, const void*>, mlir::Value> slowed_;  // rates, by what they are made of and type
  std::vector<std::vector<std::function<void()>>> later_;
  std::map<double, mlir::Value> rates_;       // by the factor of a group
  std::map<const void*, mlir::Value> steps_;  // as floats, by type
};

}  // namespace weft
