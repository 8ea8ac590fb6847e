// One training step of a program given as text: compiled for some ranks, run, and compared with the same step
// elsewhere.
//
//   TrainingProgram program;                                         // %w: parameter, %x: input, loss %loss
//   program.parameters = {{"w", {4, 3}}};
//   program.body = "%loss = nn.sum %w {dims = array<i64: 0, 1>} : (tensor<4x3xf64>) -> tensor<f64>";
//   absl::StatusOr<NamedTensors> one = trainOnce(program, {.mesh = "1"}, inputs);
//   absl::StatusOr<NamedTensors> many = trainOnce(program, {.mesh = "dp=4", .zero = 2}, inputs);
//   EXPECT_EQ(difference(*one, *many), "");
#pragma once

#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/plan/plan.pb.h"
#include "tests/support/interpreter.h"

namespace weft::testing {

// An argument or a result of the step. `type` is an element type of MLIR; integers get values in [0, bound).
struct TensorLine {
  std::string name;
  std::vector<int64_t> shape;
  std::string type = "f64";
  bool positive = false;
  int64_t bound = 1;
};

// `body` defines %loss, a scalar of f64, and a value of the name of each output.
struct TrainingProgram {
  std::vector<TensorLine> parameters;
  std::vector<TensorLine> inputs;  // the batch is dimension 0
  std::vector<TensorLine> outputs;
  std::string body;
};

inline constexpr char kSgdText[] = R"({kind = "sgd", lr = 0.1 : f64, momentum = 0.9 : f64, weight_decay = 0.01 : f64})";

struct CompileRequest {
  std::string mesh = "1";  // "dp=2,micro=4"; "8": a line of ranks without names
  int zero = 0;
  std::string zeroOf = "";           // levels by parameter, "w0=3,w1=1"
  std::string optimizer = kSgdText;  // nn.optimizer
  std::string machine = "";          // name or figures; "" the default
};

// "tensor<2x3xf64>".
std::string typeText(const std::vector<int64_t>& shape, const std::string& element = "f64");
// The module in the logical state; gradients are outputs.
std::string moduleText(const TrainingProgram& program, const CompileRequest& request);

// Random values of all parameters and inputs: +-[0.3, 1.3], or [0.3, 1.3] if positive; away from kinks and poles at 0.
NamedTensors randomArguments(const TrainingProgram& program, uint64_t seed);

// Errors: what the compiler says.
absl::StatusOr<plan::Plan> compileText(const std::string& text);
// First values, then the given ones, then so many steps with the same inputs: every output (loss, gradients, outputs),
// and every parameter and state after its update, by name.
absl::StatusOr<NamedTensors> runPlan(plan::Plan plan, const NamedTensors& arguments, int64_t steps = 1);
absl::StatusOr<NamedTensors> trainOnce(const TrainingProgram& program, const CompileRequest& request,
                                       const NamedTensors& arguments);

// Runs the module's plan and compares with the answer of one rank: "" if they agree, else the differences or the error.
std::string differenceFromOneRank(const std::string& module, const NamedTensors& one, const NamedTensors& arguments);

// Where two answers differ, one tensor a line with the worst element and both values; "" where they agree.
//
// Floats agree within 1e-10 of the tensor's largest element. Why: ranks only change the order of sums. A sum of n terms
// of f64 is off by n * 1.1e-16 of the sum of their sizes; these programs sum less than 1e3 terms in a row, and what
// they do with the sums (norms of rows, exponentials) makes errors up to 1e3 times larger: 1e-10. A missing or doubled
// term is off by more than 1e-4. Tensors smaller than 1e-2 count as of that size: a gradient that is zero by
// cancellation is noise of 1e-16 on both sides. Integers and bools are equal.
std::string difference(const NamedTensors& expected, const NamedTensors& actual);

}  // namespace weft::testing
