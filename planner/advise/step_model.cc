#include "planner/advise/step_model.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "planner/cost/plan_time.h"
#include "planner/step/input_part.h"
#include "planner/step/step_program.h"
#include "runtime/base/arithmetic.h"
#include "runtime/base/names.h"

namespace weft::advise {
namespace {

// Operators behind one that is recomputed which are, too; no model has so many between values it keeps.
constexpr int kLongestChain = 1000;

const plan::Buffer& bufferOf(const plan::Plan& plan, const plan::Operand& operand) {
  return plan.buffers(static_cast<int>(operand.buffer()));
}

class Reader {
 public:
  Reader(const plan::Plan& plan, const Machine& machine) : plan_(plan), machine_(machine) { submesh_.plan = &plan; }

  SubmeshModel run() {
    for (const plan::Function& function : plan_.functions()) {
      std::vector<Op>& list = listOf(function);
      for (const plan::Instruction& instruction : function.instructions()) {
        list.push_back(read(instruction));
        if (function.kind() == plan::PROLOGUE || function.kind() == plan::UPDATE) {
          submesh_.onceSeconds += secondsOf(plan_, instruction, machine_);
        }
      }
    }
    for (StageModel& stage : submesh_.stages) {
      keepGradientsWhole(stage.backward);
      for (std::vector<Op>* list : {&stage.forward, &stage.backward}) {
        for (Op& op : *list) {
          op.seconds = split(op);
        }
      }
    }
    submesh_.storages = static_cast<int>(storages_.size());
    return std::move(submesh_);
  }

 private:
  std::vector<Op>& listOf(const plan::Function& function) {
    if (!isPerMicroBatch(function.kind())) {
      return submesh_.once.emplace_back();
    }
    auto it = std::find_if(submesh_.stages.begin(), submesh_.stages.end(),
                           [&](const StageModel& stage) { return stage.stage >= function.stage(); });
    if (it == submesh_.stages.end() || it->stage != function.stage()) {
      it = submesh_.stages.insert(it, {function.stage(), {}, {}});
    }
    return function.kind() == plan::FORWARD ? it->forward : it->backward;
  }

  // Views of one micro-batch of memory have one number.
  std::optional<int> storageOf(const plan::Operand& operand) {
    const plan::Buffer& buffer = bufferOf(plan_, operand);
    if (buffer.memory() != plan::ACTIVATION && buffer.memory() != plan::TRANSIENT) {
      return std::nullopt;
    }
    const std::pair<bool, uint32_t> key = {buffer.storage() > 0,
                                           buffer.storage() > 0 ? buffer.storage() : operand.buffer()};
    return storages_.try_emplace(key, static_cast<int>(storages_.size())).first->second;
  }

  int make(const plan::Operand& operand, int storage, bool perMicroBatch) {
    submesh_.values.push_back({alignUp(bufferOf(plan_, operand).bytes()), storage, perMicroBatch});
    writtenAs_.push_back(operand.buffer());
    current_[storage] = static_cast<int>(submesh_.values.size()) - 1;
    return current_[storage];
  }

  Op read(const plan::Instruction& instruction) {
    Op op{&instruction, {}, {}, {}, {}};
    bool perMicroBatch = instruction.has_transfer();
    for (const plan::Operand& operand : instruction.inputs()) {
      perMicroBatch |= bufferOf(plan_, operand).memory() == plan::INPUT;
      if (const std::optional<int> storage = storageOf(operand)) {
        const auto known = current_.find(*storage);
        const int value = known == current_.end() ? make(operand, *storage, false) : known->second;
        op.views.push_back(writtenAs_[value] != operand.buffer());
        perMicroBatch |= submesh_.values[value].perMicroBatch;
        op.inputs.push_back(value);
      }
    }
    for (const plan::Operand& operand : instruction.outputs()) {
      if (const std::optional<int> storage = storageOf(operand)) {
        op.outputs.push_back(make(operand, *storage, perMicroBatch));
      }
    }
    return op;
  }

  // What is added to a sum over the micro-batches has the size of a parameter, however small the micro-batch.
  void keepGradientsWhole(const std::vector<Op>& list) {
    std::set<int> whole;
    for (auto op = list.rbegin(); op != list.rend(); ++op) {
      if (op->source->role() == plan::ACCUMULATE && !op->inputs.empty()) {
        whole.insert(op->inputs.back());
      }
      for (const int output : op->outputs) {
        for (const int input : op->inputs) {
          const bool asLarge = submesh_.values[input].bytes == submesh_.values[output].bytes;
          if (whole.count(output) > 0 && (op->source->has_collective() || (op->source->passes_sums() && asLarge))) {
            whole.insert(input);
          }
        }
      }
    }
    for (const int value : whole) {
      submesh_.values[value].perMicroBatch = false;
    }
  }

  Seconds split(const Op& op) const {
    const double all = secondsOf(plan_, *op.source, machine_);
    const auto shrinks = [&](int value) { return submesh_.values[value].perMicroBatch; };
    const bool any = std::any_of(op.inputs.begin(), op.inputs.end(), shrinks) ||
                     std::any_of(op.outputs.begin(), op.outputs.end(), shrinks);
    double cut = 0;
    if (any && op.source->has_collective()) {
      cut = std::min(all, static_cast<double>(op.source->collective().bytes_received()) / machine_.linkBandwidth);
    } else if (any && !op.source->has_transfer()) {
      cut = static_cast<double>(op.source->flops()) / machine_.flops;
      for (const std::vector<int>* values : {&op.inputs, &op.outputs}) {
        for (const int value : *values) {
          cut += shrinks(value) ? static_cast<double>(submesh_.values[value].bytes) / machine_.memoryBandwidth : 0;
        }
      }
      cut = std::min(cut, all);
    }
    return {all - cut, cut};
  }

  const plan::Plan& plan_;
  const Machine& machine_;
  SubmeshModel submesh_;
  std::map<std::pair<bool, uint32_t>, int> storages_;
  std::map<int, int> current_;       // storage to the value in it
  std::vector<uint32_t> writtenAs_;  // buffer of each value
};

// Does the instruction make something of its own that only values inside the stage depend on?
bool mayRepeat(const Op& op, const std::set<int>& outside) {
  return !op.source->has_transfer() && op.source->inputs_size() > 0 &&
         op.outputs.size() == static_cast<size_t>(op.source->outputs_size()) &&
         std::none_of(op.outputs.begin(), op.outputs.end(), [&](int value) { return outside.count(value) > 0; });
}

class StageRecomputer {
 public:
  StageRecomputer(SubmeshModel& submesh, StageModel& stage, const std::vector<std::string>& patterns)
      : submesh_(submesh), stage_(stage), patterns_(patterns), outside_(readOutside(submesh, stage)) {
    for (size_t at = 0; at < stage.forward.size(); ++at) {
      for (const int value : stage.forward[at].outputs) {
        maker_[value] = at;
      }
    }
  }

  void run() {
    const std::vector<Op> before = std::move(stage_.backward);
    stage_.backward.clear();
    for (Op op : before) {
      replaceInputs(op);
      for (const int value : op.outputs) {
        int& storage = submesh_.values[value].storage;
        const auto moved = moved_.find(storage);
        storage = moved == moved_.end() ? storage : moved->second;
      }
      stage_.backward.push_back(std::move(op));
    }
  }

 private:
  bool repeats(size_t at) {
    while (mayRepeat(stage_.forward[at], outside_) && stage_.forward[at].source->role() == plan::RESHARD) {
      const std::vector<int>& inputs = stage_.forward[at].inputs;
      const auto maker = inputs.empty() ? maker_.end() : maker_.find(inputs[0]);
      if (maker == maker_.end() || maker->second >= at) {
        return false;
      }
      at = maker->second;
    }
    const Op& op = stage_.forward[at];
    if (!mayRepeat(op, outside_)) {
      return false;
    }
    return std::any_of(patterns_.begin(), patterns_.end(), [&](const std::string& pattern) {
      return globMatches(pattern, op.source->kernel()) || globMatches(pattern, op.source->label());
    });
  }

  // What is read through a view is recomputed only if the view is.
  void replaceInputs(Op& op) {
    const bool views = std::any_of(patterns_.begin(), patterns_.end(),
                                   [](const std::string& pattern) { return globMatches(pattern, kViewOperator); });
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      op.inputs[i] = !op.views[i] || views ? again(op.inputs[i]) : op.inputs[i];
    }
  }

  // The value to read in the backward pass.
  int again(int value) {
    const auto maker = maker_.find(value);
    if (maker == maker_.end() || !repeats(maker->second)) {
      return value;
    }
    if (const auto known = copies_.find(value); known != copies_.end()) {
      return known->second;
    }
    if (depth_ == kLongestChain) {
      return value;
    }
    ++depth_;
    const int copied = copy(maker->second, value);
    --depth_;
    return copied;
  }

  int copy(size_t at, int wanted) {
    Op op = stage_.forward[at];
    const std::vector<int> inputs = op.inputs;
    replaceInputs(op);
    for (int& value : op.outputs) {
      Value made = submesh_.values[value];
      const int before = made.storage;
      made.storage = submesh_.storages++;
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (op.inputs[i] != inputs[i] && submesh_.values[inputs[i]].storage == before) {
          made.storage = submesh_.values[op.inputs[i]].storage;
        }
      }
      moved_[before] = made.storage;
      submesh_.values.push_back(made);
      copies_[value] = static_cast<int>(submesh_.values.size()) - 1;
      value = copies_[value];
    }
    stage_.backward.push_back(std::move(op));
    return copies_.at(wanted);
  }

  SubmeshModel& submesh_;
  StageModel& stage_;
  const std::vector<std::string>& patterns_;
  std::set<int> outside_;
  int depth_ = 0;                // of copies that a copy asked for
  std::map<int, size_t> maker_;  // forward operator of a value
  std::map<int, int> copies_;
  std::map<int, int> moved_;  // storages whose values in the backward pass lie elsewhere
};

}  // namespace

SubmeshModel readSubmesh(const plan::Plan& plan, const Machine& machine) {
  return Reader(plan, machine).run();
}

SubmeshModel recomputed(SubmeshModel submesh, const std::vector<std::string>& patterns) {
  for (StageModel& stage : submesh.stages) {
    if (!patterns.empty()) {
      StageRecomputer(submesh, stage, patterns).run();
    }
  }
  return submesh;
}

std::set<int> readOutside(const SubmeshModel& submesh, const StageModel& stage) {
  std::set<int> values;
  const auto add = [&](const Op& op) { values.insert(op.inputs.begin(), op.inputs.end()); };
  for (const StageModel& other : submesh.stages) {
    for (const Op& op : other.forward) {
      if (other.stage != stage.stage || op.source->has_transfer()) {
        add(op);
      }
    }
  }
  for (const std::vector<Op>& list : submesh.once) {
    std::for_each(list.begin(), list.end(), add);
  }
  return values;
}

std::string recomputeWord(const Op& op, const std::set<int>& outside) {
  if (!mayRepeat(op, outside) || op.source->role() == plan::RESHARD) {
    return "";
  }
  const std::string& label = op.source->label();
  std::string word;
  for (size_t at = 0; at < label.size(); ++at) {
    size_t end = at;
    while (end < label.size() && std::isdigit(static_cast<unsigned char>(label[end])) != 0) {
      ++end;
    }
    if (end > at && end < label.size() && label[end] == '.') {
      word += '*';
      at = end - 1;
    } else {
      word += label.substr(at, std::max<size_t>(end - at, 1));
      at = std::max(end, at + 1) - 1;
    }
  }
  return word;
}

std::vector<bool> inputPart(const SubmeshModel& submesh, const StageModel& stage) {
  std::set<int> readOutside;
  for (const StageModel& other : submesh.stages) {
    if (other.stage != stage.stage) {
      for (const std::vector<Op>* list : {&other.forward, &other.backward}) {
        for (const Op& op : *list) {
          readOutside.insert(op.inputs.begin(), op.inputs.end());
        }
      }
    }
  }
  std::vector<BackwardOperation> operations;
  for (const Op& op : stage.backward) {
    operations.push_back({op.source->has_transfer(), op.inputs, op.outputs});
  }
  return weft::inputPart(operations, readOutside);
}

}  // namespace weft::advise
