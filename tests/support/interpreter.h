// The one-device answer: runs a logical function operator by operator with the plain CPU kernels.
//
// It knows no layouts, plans or schedules; each operator calls the kernel of its own name on whole tensors, with
// origins zero. So it shares only the kernels with the path from compiler to runtime, and what both compute must agree.
//
//   Interpreter interpreter;
//   auto results = interpreter.run(step, {{"x", x}, {"w", w}});
//   results->at("loss"), results->at("grad.w")
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/kernel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "tests/support/host_tensor.h"

namespace weft::testing {

using NamedTensors = std::map<std::string, HostTensor>;

class Interpreter {
 public:
  // Plain matmul, so that f64 and f32 take the same path.
  Interpreter();
  explicit Interpreter(KernelRegistry kernels) : kernels_(std::move(kernels)) {}

  // Arguments and results by their nn.name; a result without one is called "result<i>". Errors: a missing or ill-typed
  // argument, an operator without kernel, an error of a kernel (with the operator's text).
  absl::StatusOr<NamedTensors> run(mlir::func::FuncOp function, const NamedTensors& arguments) const;

 private:
  KernelRegistry kernels_;
};

// Initial values of all parameters and states by @init, then the arguments given: what @step needs.
absl::StatusOr<NamedTensors> initialArguments(const Interpreter& interpreter, mlir::ModuleOp module,
                                              const NamedTensors& inputs);

}  // namespace weft::testing
