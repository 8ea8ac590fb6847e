// Runs one kernel on values given as doubles, and compares with a reference that the test computes itself in double.
#pragma once

#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/describe/describe.h"
#include "kernels/kernel.h"

namespace weft::testing {

using Ints = std::vector<int64_t>;
using Reals = std::vector<double>;

// A tensor whose elements the type represents exactly.
struct Tensor {
  DType type = DType::kF64;
  Ints shape;
  Reals values;

  TensorSpec spec() const { return {type, shape}; }
};

int64_t elementsOf(const Ints& shape);
// Rounds `values` to the type.
Tensor tensor(DType type, const Ints& shape, const Reals& values);
Tensor scalar(DType type, double value);
// Repeatable values in [low, high); integers for an integer type.
Tensor sample(DType type, const Ints& shape, uint64_t seed, double low = -1.0, double high = 1.0);
// The part of `x` with `size` at `offsets`.
Tensor part(const Tensor& x, const Ints& offsets, const Ints& size);
// Writes `x` into `whole` at `offsets`.
void place(const Tensor& x, const Ints& offsets, Tensor& whole);

// One kernel call; with `inPlace` an output lies in an input's memory.
struct Call {
  std::string name;
  std::vector<Tensor> inputs;
  std::vector<TensorSpec> outputs;
  AttributeMap attributes = {};
  Ints scalars = {};
  bool plainMatmul = false;
  std::optional<InPlacePair> inPlace = {};
};

KernelSpec specOf(const Call& call);
// Makes and runs the kernel. Checks on the way that it keeps to its description's scratch and writes nowhere but into
// its outputs; outputs and workspace hold garbage before.
absl::StatusOr<std::vector<Tensor>> tryRun(const Call& call);
// The same for a call that must succeed.
std::vector<Tensor> run(const Call& call);
// run(call) with one output.
Tensor runOne(const Call& call);
// The status of a call that must fail with a message containing `text`.
void expectError(const Call& call, absl::StatusCode code, const std::string& text);

// Half a unit in the last place at 1: the relative error of one rounding.
double epsilonOf(DType type);

// |actual - expected| <= relative * |expected| + absolute, element by element; NaN equals NaN, infinities themselves.
struct Tolerance {
  double relative = 0;
  double absolute = 0;
};
void expectNear(const Tensor& actual, const Reals& expected, const Tolerance& tolerance);
void expectSame(const Tensor& actual, const Tensor& expected);

// Calls visit with every index of `shape`, last dimension fastest.
void forEachIndex(const Ints& shape, const std::function<void(const Ints&)>& visit);
// Row-major position of `index`; dimensions of size 1 and missing leading ones are stretched (numpy).
int64_t positionOf(const Ints& shape, const Ints& index);

// The gradient of f at x by central differences: error about step^2, and rounding / step.
Reals numericGradient(const std::function<double(const Reals&)>& f, const Reals& x, double step = 1e-5);

}  // namespace weft::testing
