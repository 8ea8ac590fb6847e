#include "tests/equivalence/training_step.h"

#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/registry.h"
#include "kernels/kernel.h"
#include "passes/compile.h"
#include "runtime/base/status.h"
#include "runtime/exec/executor.h"
#include "tests/support/parse.h"

namespace weft::testing {

namespace {

constexpr double kTolerance = 1e-10;
constexpr double kSmallestSize = 1e-2;

std::string argumentText(const TensorLine& line, const std::string& kind) {
  const std::string init =
      kind == "parameter" ? ", nn.init = {distribution = \"normal\", a = 0.0 : f64, b = 1.0 : f64}" : "";
  return absl::StrCat("%", line.name, ": ", typeText(line.shape, line.type), " {nn.kind = \"", kind, "\", nn.name = \"",
                      line.name, "\"", init, "}");
}

HostTensor randomTensor(const TensorLine& line, std::mt19937_64& generator) {
  if (line.type == "i32") {
    HostTensor tensor(DType::kI32, line.shape);
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      tensor.data<int32_t>()[i] = static_cast<int32_t>(generator() % static_cast<uint64_t>(line.bound));
    }
    return tensor;
  }
  if (line.type == "i1") {
    HostTensor tensor(DType::kBool, line.shape);
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      tensor.data<uint8_t>()[i] = static_cast<uint8_t>(generator() % 2);
    }
    return tensor;
  }
  HostTensor tensor(DType::kF64, line.shape);
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const double size = 0.3 + static_cast<double>(generator() >> 11) * 0x1p-53;
    tensor.data<double>()[i] = line.positive || generator() % 2 == 0 ? size : -size;
  }
  return tensor;
}

DType dtypeOf(plan::ElementType type) {
  switch (type) {
    case plan::F32:
      return DType::kF32;
    case plan::F64:
      return DType::kF64;
    case plan::I32:
      return DType::kI32;
    case plan::I64:
      return DType::kI64;
    default:
      return DType::kBool;
  }
}

// Any element type as a number.
double elementOf(const HostTensor& tensor, int64_t i) {
  switch (tensor.type) {
    case DType::kF32:
      return tensor.data<float>()[i];
    case DType::kF64:
      return tensor.data<double>()[i];
    case DType::kI32:
      return tensor.data<int32_t>()[i];
    case DType::kI64:
      return static_cast<double>(tensor.data<int64_t>()[i]);
    default:
      return tensor.data<uint8_t>()[i];
  }
}

std::string tensorDifference(const HostTensor& expected, const HostTensor& actual) {
  if (expected.shape != actual.shape || expected.type != actual.type) {
    return absl::StrCat("shape [", absl::StrJoin(actual.shape, ","), "], expected [",
                        absl::StrJoin(expected.shape, ","), "], or another type");
  }
  const bool exact = expected.type != DType::kF64 && expected.type != DType::kF32;
  double largest = kSmallestSize;
  for (int64_t i = 0; i < expected.elements(); ++i) {
    largest = std::max(largest, std::abs(elementOf(expected, i)));
  }
  const double bound = exact ? 0 : kTolerance * largest;
  double worst = bound;
  int64_t at = -1;
  for (int64_t i = 0; i < expected.elements(); ++i) {
    const double off = std::abs(elementOf(actual, i) - elementOf(expected, i));
    if (!(off <= worst)) {
      worst = std::isnan(off) ? HUGE_VAL : off;
      at = i;
    }
  }
  return at < 0 ? ""
                : absl::StrCat("element ", at, " is ", elementOf(actual, at), ", expected ", elementOf(expected, at),
                               " within ", bound);
}

}  // namespace

std::string typeText(const std::vector<int64_t>& shape, const std::string& element) {
  return absl::StrCat("tensor<", absl::StrJoin(shape, "x"), shape.empty() ? "" : "x", element, ">");
}

std::string moduleText(const TrainingProgram& program, const CompileRequest& request) {
  std::vector<std::string> arguments;
  for (const TensorLine& line : program.inputs) {
    arguments.push_back(argumentText(line, "input"));
  }
  for (const TensorLine& line : program.parameters) {
    arguments.push_back(argumentText(line, "parameter"));
  }
  std::vector<std::string> results = {"tensor<f64> {nn.kind = \"loss\", nn.name = \"loss\"}"};
  std::vector<std::string> values = {"%loss"};
  std::vector<std::string> types = {"tensor<f64>"};
  for (const TensorLine& line : program.outputs) {
    types.push_back(typeText(line.shape, line.type));
    values.push_back("%" + line.name);
    results.push_back(types.back() + " {nn.kind = \"output\", nn.name = \"" + line.name + "\"}");
  }
  return absl::StrCat("module attributes {dist.mesh = #dist.mesh<\"", request.mesh,
                      "\">,\n    nn.options = {zero = ", request.zero, " : i64, zero_of = \"", request.zeroOf, "\", ",
                      request.machine.empty() ? "" : absl::StrCat("machine = \"", request.machine, "\", "),
                      "default = \"data_parallel\", gradient_outputs = true, seed = 1 : i64},\n    nn.optimizer = ",
                      request.optimizer, "} {\n  func.func @step(", absl::StrJoin(arguments, ",\n      "),
                      ")\n      -> (", absl::StrJoin(results, ", "), ") {\n", program.body, "\n    return ",
                      absl::StrJoin(values, ", "), " : ", absl::StrJoin(types, ", "), "\n  }\n}\n");
}

NamedTensors randomArguments(const TrainingProgram& program, uint64_t seed) {
  std::mt19937_64 generator(seed);
  NamedTensors arguments;
  for (const auto* lines : {&program.inputs, &program.parameters}) {
    for (const TensorLine& line : *lines) {
      arguments[line.name] = randomTensor(line, generator);
    }
  }
  return arguments;
}

absl::StatusOr<plan::Plan> compileText(const std::string& text) {
  Modules modules;
  mlir::OwningOpRef<mlir::ModuleOp> module = modules.parse(text);
  if (!module) {
    return absl::InvalidArgumentError("the text is no module:\n" + text);
  }
  return compileModule(*module, ir::OperatorRegistry::builtin(), {});
}

absl::StatusOr<NamedTensors> runPlan(plan::Plan plan, const NamedTensors& arguments, int64_t steps) {
  const KernelRegistry kernels = cpuKernels({.plainMatmul = true});
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<Executor> executor,
                        Executor::create(std::move(plan), kernels, {.threadsPerRank = 1}));
  WEFT_RETURN_IF_ERROR(executor->runInit());
  for (const auto& [name, value] : arguments) {
    WEFT_RETURN_IF_ERROR(executor->writeTensor(name, value.bytes.data(), value.bytes.size()));
  }
  WEFT_RETURN_IF_ERROR(executor->runStep());
  for (int64_t step = 1; step < steps; ++step) {
    for (const plan::NamedTensor& named : executor->plan().tensors()) {
      if (const auto it = arguments.find(named.name()); named.kind() == plan::TENSOR_INPUT && it != arguments.end()) {
        WEFT_RETURN_IF_ERROR(executor->writeTensor(it->first, it->second.bytes.data(), it->second.bytes.size()));
      }
    }
    WEFT_RETURN_IF_ERROR(executor->runStep());
  }
  NamedTensors results;
  for (const plan::NamedTensor& named : executor->plan().tensors()) {
    if (named.kind() == plan::TENSOR_INPUT) {
      continue;
    }
    WEFT_ASSIGN_OR_RETURN(const std::vector<char> bytes, executor->readTensor(named.name()));
    HostTensor value(dtypeOf(named.type()), {named.shape().begin(), named.shape().end()});
    if (bytes.size() != value.bytes.size()) {
      return absl::InternalError(
          absl::StrCat(named.name(), " has ", bytes.size(), " bytes, its shape needs ", value.bytes.size()));
    }
    std::memcpy(value.bytes.data(), bytes.data(), bytes.size());
    results[named.name()] = std::move(value);
  }
  return results;
}

absl::StatusOr<NamedTensors> trainOnce(const TrainingProgram& program, const CompileRequest& request,
                                       const NamedTensors& arguments) {
  WEFT_ASSIGN_OR_RETURN(plan::Plan plan, compileText(moduleText(program, request)));
  return runPlan(std::move(plan), arguments);
}

std::string differenceFromOneRank(const std::string& module, const NamedTensors& one, const NamedTensors& arguments) {
  absl::StatusOr<plan::Plan> plan = compileText(module);
  if (!plan.ok()) {
    return plan.status().ToString();
  }
  const absl::StatusOr<NamedTensors> many = runPlan(*std::move(plan), arguments);
  return many.ok() ? difference(one, *many) : many.status().ToString();
}

std::string difference(const NamedTensors& expected, const NamedTensors& actual) {
  std::string text;
  for (const auto& [name, value] : expected) {
    const auto found = actual.find(name);
    const std::string off = found == actual.end() ? "is missing" : tensorDifference(value, found->second);
    text += off.empty() ? "" : name + ": " + off + "\n";
  }
  for (const auto& [name, value] : actual) {
    text += expected.count(name) > 0 ? "" : name + ": not in the expected answer\n";
  }
  return text;
}

}  // namespace weft::testing
