#include "tools/analysis/step_peak.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/arithmetic.h"
#include "runtime/plan/describe.h"
#include "runtime/plan/plan_file.h"

namespace weft::tools {
namespace {

// A storage of a call (transients: number of the call; activations: of the micro-batch; else 0).
using Key = std::tuple<plan::MemoryClass, int64_t, bool, uint32_t>;

struct Life {
  int64_t first = 0;
  int64_t last = 0;
  int64_t bytes = 0;
  uint32_t buffer = 0;
  const plan::Instruction* maker = nullptr;
};

struct Moment {
  const plan::Function* function = nullptr;
  const plan::Instruction* instruction = nullptr;
  int64_t microBatch = 0;
};

bool stays(plan::MemoryClass memory) {
  return memory != plan::ACTIVATION && memory != plan::TRANSIENT;
}

class Walk {
 public:
  explicit Walk(const plan::Plan& plan) : plan_(plan) {}

  void run() {
    if (plan_.schedules_size() == 0) {
      return;
    }
    for (const plan::Action& action : plan_.schedules(0).step()) {
      const plan::Function& function = plan_.functions(static_cast<int>(action.function()));
      for (const plan::Instruction& instruction : function.instructions()) {
        visit(instruction, action.micro_batch());
        moments_.push_back({&function, &instruction, action.micro_batch()});
      }
      ++call_;
    }
  }

  StepCurve curve() const {
    StepCurve curve{0, alive(plan::ACTIVATION), alive(plan::TRANSIENT)};
    for (const plan::Region& region : plan_.memory().regions()) {
      curve.staying += stays(region.memory()) ? region.bytes() : 0;
    }
    return curve;
  }

  StepPeak peak() const {
    const StepCurve curve = this->curve();
    StepPeak peak;
    peak.bytes = curve.staying;
    int64_t when = 0;
    for (size_t at = 0; at < moments_.size(); ++at) {
      const int64_t bytes = curve.staying + curve.activations[at] + curve.transients[at];
      when = bytes > peak.bytes ? static_cast<int64_t>(at) : when;
      peak.bytes = std::max(peak.bytes, bytes);
    }
    if (when < static_cast<int64_t>(moments_.size())) {
      const Moment& moment = moments_[when];
      peak.function = moment.function->name();
      peak.microBatch = moment.microBatch;
      peak.name = moment.instruction->label();
      peak.source = sourceOf(plan_, *moment.instruction);
    }
    list(when, peak.tensors);
    return peak;
  }

 private:
  // Bytes of a class at each moment.
  std::vector<int64_t> alive(plan::MemoryClass memory) const {
    std::vector<int64_t> live(moments_.size() + 1, 0);
    for (const auto& [key, life] : lives_) {
      if (std::get<0>(key) == memory) {
        live[life.first] += life.bytes;
        live[life.last + 1] -= life.bytes;
      }
    }
    for (size_t at = 1; at < live.size(); ++at) {
      live[at] += live[at - 1];
    }
    live.pop_back();
    return live;
  }

  void visit(const plan::Instruction& instruction, int64_t microBatch) {
    for (const auto* operands : {&instruction.inputs(), &instruction.outputs()}) {
      for (const plan::Operand& operand : *operands) {
        touch(operand.buffer(), instruction, microBatch);
      }
    }
  }

  void touch(uint32_t index, const plan::Instruction& instruction, int64_t microBatch) {
    const plan::Buffer& buffer = plan_.buffers(static_cast<int>(index));
    const int64_t of = stays(buffer.memory()) ? 0 : buffer.memory() == plan::ACTIVATION ? microBatch : call_;
    const Key key = {buffer.memory(), of, buffer.storage() > 0, buffer.storage() > 0 ? buffer.storage() : index};
    const auto now = static_cast<int64_t>(moments_.size());
    Life& life = lives_.try_emplace(key, Life{now, now, 0, index, &instruction}).first->second;
    life.last = now;
    life.bytes = std::max(life.bytes, alignUp(buffer.bytes()));
  }

  void list(int64_t when, std::vector<StepTensor>& tensors) const {
    std::map<std::tuple<plan::MemoryClass, bool, uint32_t>, StepTensor> alive;  // a storage for all its micro-batches
    for (const auto& [key, life] : lives_) {
      if (!stays(std::get<0>(key)) && (life.first > when || life.last < when)) {
        continue;
      }
      StepTensor& tensor = alive[{std::get<0>(key), std::get<2>(key), std::get<3>(key)}];
      if (tensor.microBatches == 0) {
        describe(life, tensor);
      }
      tensor.bytes += life.bytes;
      ++tensor.microBatches;
    }
    for (auto& [key, tensor] : alive) {
      tensors.push_back(std::move(tensor));
    }
    std::stable_sort(tensors.begin(), tensors.end(),
                     [](const StepTensor& a, const StepTensor& b) { return a.bytes > b.bytes; });
  }

  void describe(const Life& life, StepTensor& tensor) const {
    const plan::Buffer& buffer = plan_.buffers(static_cast<int>(life.buffer));
    tensor.memory = plan::MemoryClass_Name(buffer.memory());
    std::transform(tensor.memory.begin(), tensor.memory.end(), tensor.memory.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    tensor.name = buffer.label().empty() ? life.maker->label() : buffer.label();
    tensor.source = sourceOf(plan_, *life.maker);
    tensor.shape = absl::StrCat(dtypeName(dtypeOf(buffer.type())), "[", absl::StrJoin(buffer.shape(), ","), "]");
  }

  const plan::Plan& plan_;
  std::map<Key, Life> lives_;
  std::vector<Moment> moments_;
  int64_t call_ = 0;
};

}  // namespace

StepCurve stepCurve(const plan::Plan& plan) {
  Walk walk(plan);
  walk.run();
  return walk.curve();
}

StepPeak stepPeak(const plan::Plan& plan) {
  Walk walk(plan);
  walk.run();
  return walk.peak();
}

}  // namespace weft::tools
