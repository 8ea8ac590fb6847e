#include "planner/advise/advise_zero.h"

#include <algorithm>
#include <map>
#include <string>

#include "ir/layout/reshard.h"
#include "runtime/base/arithmetic.h"

namespace weft::advise {
namespace {

struct Parameter {
  std::string name;
  uint32_t storage = 0;  // 0: none found
  int64_t bytes = 0;     // one rank's, whole
  int64_t stateBytes = 0;
  int64_t sumBytes = 0;  // of its gradient
  int64_t shards = 1;    // over which ZeRO divides it further
  double updateSeconds = 0;
};

const plan::Buffer& bufferOf(const plan::Plan& plan, const plan::Operand& operand) {
  return plan.buffers(static_cast<int>(operand.buffer()));
}

// As the compiler divides a parameter: over the data axes its layout leaves free, on a dimension that divides.
int64_t shardsOf(const plan::Plan& plan, const plan::NamedTensor& tensor, const Decisions& decisions) {
  const auto found = std::find_if(decisions.arguments.begin(), decisions.arguments.end(),
                                  [&](const ArgumentDecision& argument) { return argument.name == tensor.name(); });
  if (found == decisions.arguments.end()) {
    return 1;
  }
  int64_t shards = 1;
  for (const Axis& axis : dataParallelAxes(decisions.mesh)) {
    shards *= found->layout.uses(axis) ? 1 : axis.size;
  }
  const plan::Buffer& buffer = plan.buffers(static_cast<int>(tensor.buffer()));
  const bool divides =
      std::any_of(buffer.shape().begin(), buffer.shape().end(), [&](int64_t size) { return size % shards == 0; });
  const bool padded = std::any_of(tensor.shape().begin(), tensor.shape().end(),
                                  [&](int64_t size) { return size > shards * kSmallestZeroShard; });
  return divides || padded ? shards : 1;
}

// The parameters that one optimizer operator each updates, with their state and the sums their gradients come from.
std::vector<Parameter> parametersOf(const plan::Plan& plan, const Decisions& decisions, const Machine& machine) {
  std::map<uint32_t, const plan::NamedTensor*> tensors;
  for (const plan::NamedTensor& tensor : plan.tensors()) {
    if (tensor.kind() == plan::TENSOR_PARAMETER) {
      tensors[plan.buffers(static_cast<int>(tensor.buffer())).storage()] = &tensor;
    }
  }
  std::vector<Parameter> parameters;
  for (const plan::Function& function : plan.functions()) {
    std::map<uint32_t, int64_t> sums;  // storage to the bytes of the gradient sum that lies or came from there
    for (const plan::Instruction& instruction : function.instructions()) {
      int64_t sum = 0;
      for (const plan::Operand& operand : instruction.inputs()) {
        const plan::Buffer& buffer = bufferOf(plan, operand);
        sum = std::max(sum, buffer.memory() == plan::ACCUMULATOR ? buffer.bytes() : sums[buffer.storage()]);
      }
      for (const plan::Operand& operand : instruction.outputs()) {
        const plan::Buffer& buffer = bufferOf(plan, operand);
        sums[buffer.storage()] = buffer.bytes() <= sum ? sum : 0;
      }
      if (function.kind() != plan::UPDATE || instruction.role() != plan::OPTIMIZE || instruction.inputs_size() < 2) {
        continue;
      }
      const plan::Buffer& updated = bufferOf(plan, instruction.inputs(0));
      const auto tensor = tensors.find(updated.storage());
      if (tensor == tensors.end()) {
        continue;
      }
      Parameter& made = parameters.emplace_back();
      made.name = tensor->second->name();
      made.storage = updated.storage();
      made.bytes = alignUp(updated.bytes());
      made.shards = shardsOf(plan, *tensor->second, decisions);
      int64_t touched = 0;
      for (const plan::Operand& operand : instruction.inputs()) {
        const plan::Buffer& buffer = bufferOf(plan, operand);
        touched += 2 * buffer.bytes();
        made.stateBytes += buffer.memory() == plan::STATE && buffer.bytes() == updated.bytes() ? made.bytes : 0;
      }
      const plan::Buffer& gradient = bufferOf(plan, instruction.inputs(1));
      made.sumBytes = gradient.memory() == plan::ACCUMULATOR ? gradient.bytes() : std::min(made.bytes, sum);
      made.updateSeconds = static_cast<double>(touched) / machine.memoryBandwidth;
    }
  }
  return parameters;
}

class Changer {
 public:
  Changer(const SubmeshModel& submesh, const Decisions& decisions, const Machine& machine)
      : decisions_(decisions), machine_(machine) {
    change_.submesh = submesh;
  }

  ZeroChange run(int64_t level) {
    for (const Parameter& parameter : parametersOf(*change_.submesh.plan, decisions_, machine_)) {
      if (parameter.shards < 2) {
        continue;
      }
      const auto freed = [&](int64_t bytes) { return bytes - alignUp(bytes / parameter.shards); };
      change_.freedBytes += freed(parameter.stateBytes / std::max<int64_t>(parameter.bytes, 1) * parameter.bytes);
      change_.freedBytes += level >= 2 ? freed(parameter.sumBytes) : 0;
      change_.freedBytes += level >= 3 ? freed(parameter.bytes) : 0;
      change_.seconds += price(parameter, level) - price(parameter, decisions_.zero);
      if (decisions_.zero == 0) {
        change_.seconds -= parameter.updateSeconds * (1 - 1.0 / static_cast<double>(parameter.shards));
      }
      if (level >= 3) {
        gather(parameter);
      }
    }
    if (level >= 2 && decisions_.zero < 2 && change_.freedBytes > 0) {
      bucketGradients();
    }
    return std::move(change_);
  }

 private:
  double collective(CollectiveKind kind, const Parameter& parameter, double turns) const {
    const auto bytes =
        static_cast<int64_t>(turns * static_cast<double>(parameter.bytes) * static_cast<double>(parameter.shards - 1) /
                             static_cast<double>(parameter.shards));
    return collectiveCost(machine_, kind, parameter.shards, bytes);
  }

  // Seconds per step of reducing one parameter's gradient and gathering its new value.
  double price(const Parameter& parameter, int64_t level) const {
    const auto microBatches = static_cast<double>(change_.submesh.plan->micro_batches());
    const double scatter = collective(CollectiveKind::kReduceScatter, parameter, 1);
    const double gather = collective(CollectiveKind::kAllGather, parameter, 1);
    switch (level) {
      case 0:
        return collective(CollectiveKind::kAllReduce, parameter, 2);
      case 1:
        return scatter + gather;
      case 2:
        return microBatches * scatter + gather;
      default:
        return microBatches * scatter;
    }
  }

  // The reduce_scatters of a function are joined behind the last gradient: all of them wait for it.
  void bucketGradients() {
    for (StageModel& stage : change_.submesh.stages) {
      std::vector<int> gradients;
      for (const Op& op : stage.backward) {
        if (op.source->role() == plan::ACCUMULATE && !op.inputs.empty()) {
          gradients.push_back(op.inputs.back());
        }
      }
      if (!gradients.empty()) {
        Op& last = stage.backward.back();
        last.inputs.insert(last.inputs.end(), gradients.begin(), gradients.end());
        last.views.resize(last.inputs.size(), false);
      }
    }
  }

  // Each list that reads a parameter gathers it before its first reader and has it until the last.
  void gather(const Parameter& parameter) {
    for (StageModel& stage : change_.submesh.stages) {
      for (std::vector<Op>* list : {&stage.forward, &stage.backward}) {
        int value = -1;
        for (Op& op : *list) {
          for (const plan::Operand& operand : op.source->inputs()) {
            const plan::Buffer& buffer = bufferOf(*change_.submesh.plan, operand);
            if (buffer.memory() != plan::PARAMETER || buffer.storage() != parameter.storage) {
              continue;
            }
            if (value < 0) {
              value = static_cast<int>(change_.submesh.values.size());
              change_.submesh.values.push_back({parameter.bytes, change_.submesh.storages++, false});
              op.seconds.fixed += collective(CollectiveKind::kAllGather, parameter, 1);
            }
            op.inputs.push_back(value);
            op.views.push_back(false);
          }
        }
      }
    }
  }

  const Decisions& decisions_;
  const Machine& machine_;
  ZeroChange change_;
};

}  // namespace

ZeroChange withZero(const SubmeshModel& submesh, const Decisions& decisions, int64_t level, const Machine& machine) {
  return Changer(submesh, decisions, machine).run(level);
}

}  // namespace weft::advise
