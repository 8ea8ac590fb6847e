#include "runtime/exec/instruction_spec.h"

#include <string>
#include <vector>

#include "runtime/plan/plan_file.h"

namespace weft {
namespace {

Attribute attributeOf(const plan::Attribute& attribute) {
  switch (attribute.value_case()) {
    case plan::Attribute::kReal:
      return attribute.real();
    case plan::Attribute::kText:
      return attribute.text();
    case plan::Attribute::kIntegers:
      return std::vector<int64_t>(attribute.integers().values().begin(), attribute.integers().values().end());
    case plan::Attribute::kFloats:
      return std::vector<double>(attribute.floats().values().begin(), attribute.floats().values().end());
    default:
      return attribute.integer();
  }
}

}  // namespace

TensorSpec specOf(const plan::Buffer& buffer) {
  return {dtypeOf(buffer.type()), std::vector<int64_t>(buffer.shape().begin(), buffer.shape().end())};
}

KernelSpec specOf(const plan::Plan& plan, const plan::Instruction& instruction) {
  KernelSpec spec;
  spec.name = instruction.kernel();
  for (const plan::Operand& operand : instruction.inputs()) {
    spec.inputs.push_back(specOf(plan.buffers(static_cast<int>(operand.buffer()))));
  }
  for (const plan::Operand& operand : instruction.outputs()) {
    spec.outputs.push_back(specOf(plan.buffers(static_cast<int>(operand.buffer()))));
  }
  for (const auto& [name, value] : instruction.attributes()) {
    spec.attributes[name] = attributeOf(value);
  }
  spec.scalars = static_cast<size_t>(instruction.scalars_size());
  return spec;
}

}  // namespace weft
