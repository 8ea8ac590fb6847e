#include "runtime/plan/check_overlap.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/plan/limits.h"

namespace weft {
namespace {

// The bytes of a region that an operand names. The slots of a ring need not be told apart: all operands of a call are
// in the slot of its micro-batch.
struct ByteRange {
  plan::MemoryClass memory = plan::PARAMETER;
  uint32_t ring = 0;
  int64_t begin = 0;
  int64_t end = 0;
  int number = 0;  // among the inputs or outputs

  bool meets(const ByteRange& other) const {
    return memory == other.memory && ring == other.ring && begin < other.end && other.begin < end;
  }
  bool equals(const ByteRange& other) const { return begin == other.begin && end == other.end; }
};

std::vector<ByteRange> byteRangesOf(const plan::Plan& plan,
                                    const google::protobuf::RepeatedPtrField<plan::Operand>& list) {
  std::vector<ByteRange> ranges;
  for (int i = 0; i < list.size(); ++i) {
    const plan::Buffer& buffer = plan.buffers(static_cast<int>(list[i].buffer()));
    if (buffer.bytes() > 0) {
      ranges.push_back({buffer.memory(), buffer.memory() == plan::ACTIVATION ? buffer.ring() : 0, buffer.offset(),
                        buffer.offset() + buffer.bytes(), i});
    }
  }
  return ranges;
}

bool liesBefore(const ByteRange& a, const ByteRange& b) {
  return std::tie(a.memory, a.ring, a.begin) < std::tie(b.memory, b.ring, b.begin);
}

}  // namespace

absl::Status checkOverlap(const plan::Plan& plan, const plan::Instruction& instruction) {
  std::vector<ByteRange> outputs = byteRangesOf(plan, instruction.outputs());
  std::sort(outputs.begin(), outputs.end(), liesBefore);
  for (size_t i = 1; i < outputs.size(); ++i) {
    if (outputs[i].meets(outputs[i - 1]) && !outputs[i].equals(outputs[i - 1])) {
      return inconsistentPlan("'", instruction.label(), "' has outputs ", outputs[i - 1].number, " and ",
                              outputs[i].number, " that overlap");
    }
  }
  const auto same = [](const ByteRange& x, const ByteRange& y) { return x.meets(y); };
  outputs.erase(std::unique(outputs.begin(), outputs.end(), same), outputs.end());
  for (const ByteRange& input : byteRangesOf(plan, instruction.inputs())) {
    // The outputs that are left do not overlap: those that the input meets follow each other.
    auto output = std::upper_bound(outputs.begin(), outputs.end(), input, liesBefore);
    output = output != outputs.begin() && std::prev(output)->meets(input) ? std::prev(output) : output;
    for (; output != outputs.end() && output->meets(input); ++output) {
      const bool copied = instruction.has_collective() && output->number == input.number;
      if (!copied && !output->equals(input)) {
        return inconsistentPlan("'", instruction.label(), "' writes output ", output->number, " over part of input ",
                                input.number, ", bytes ", input.begin, " to ", input.end, " of region ",
                                plan::MemoryClass_Name(input.memory));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace weft
