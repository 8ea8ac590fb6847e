#include "runtime/exec/finite_check.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/finite.h"
#include "runtime/exec/instruction_spec.h"

namespace weft {
namespace {

const plan::Buffer& bufferOf(const plan::Plan& plan, const plan::Operand& operand) {
  return plan.buffers(static_cast<int>(operand.buffer()));
}

NonFinite nonFiniteIn(const plan::Buffer& buffer, const void* data) {
  const TensorSpec spec = specOf(buffer);
  return nonFiniteIn(spec.type, data, spec.elements());
}

// "'h0.fc/matmul' [4, 64]".
std::string nameOf(const plan::Buffer& buffer) {
  return absl::StrCat("'", buffer.label(), "' [", absl::StrJoin(buffer.shape(), ", "), "]");
}

bool isInfinite(const plan::Attribute& attribute) {
  const auto& list = attribute.floats().values();
  return std::isinf(attribute.real()) ||
         std::any_of(list.begin(), list.end(), [](double value) { return std::isinf(value); });
}

}  // namespace

FiniteCheck::FiniteCheck(const plan::Plan& plan, const plan::Instruction& instruction, const void* const* inputs)
    : plan_(plan), instruction_(instruction) {
  for (int i = 0; i < instruction.inputs_size(); ++i) {
    const NonFinite found = nonFiniteIn(bufferOf(plan, instruction.inputs(i)), inputs[i]);
    nanInput_ = found.nans > 0 && nanInput_ < 0 ? i : nanInput_;
    infiniteInput_ = infiniteInput_ || found.infinities > 0;
  }
}

bool FiniteCheck::mayBeInfinite() const {
  if (instruction_.has_transfer() || infiniteInput_) {
    return true;
  }
  if (instruction_.has_collective()) {
    const plan::Collective& collective = instruction_.collective();
    const bool reduces = collective.kind() == plan::ALL_REDUCE || collective.kind() == plan::REDUCE_SCATTER;
    return !reduces || collective.reduction() != plan::SUM;
  }
  return std::any_of(instruction_.attributes().begin(), instruction_.attributes().end(),
                     [](const auto& attribute) { return isInfinite(attribute.second); });
}

absl::Status FiniteCheck::after(void* const* outputs) const {
  for (int i = 0; i < instruction_.outputs_size(); ++i) {
    const plan::Buffer& buffer = bufferOf(plan_, instruction_.outputs(i));
    const NonFinite found = nonFiniteIn(buffer, outputs[i]);
    if (found.nans == 0 && (found.infinities == 0 || mayBeInfinite())) {
      continue;
    }
    const TensorSpec spec = specOf(buffer);
    const int64_t index = found.nans > 0 && mayBeInfinite() ? found.firstNan : found.first;
    const std::string from =
        nanInput_ < 0 ? ""
                      : absl::StrCat("; input ", nanInput_, ", ",
                                     nameOf(bufferOf(plan_, instruction_.inputs(nanInput_))), ", had a nan before");
    return absl::OutOfRangeError(absl::StrCat("output ", i, ", ", nameOf(buffer), ", has ",
                                              elementAt(spec.type, outputs[i], index, spec.shape), " (", found.count(),
                                              " of ", spec.elements(), " values are not finite)", from));
  }
  return absl::OkStatus();
}

}  // namespace weft
