#include "planner/cost/submesh_functions.h"

#include <algorithm>
#include <functional>
#include <list>
#include <numeric>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "planner/cost/overlap.h"
#include "planner/step/backward_parts.h"
#include "planner/step/buckets.h"

namespace weft {
namespace {

FunctionKey keyOf(plan::FunctionKind kind, int64_t stage) {
  switch (kind) {
    case plan::PROLOGUE:
      return {0, 0};
    case plan::FORWARD:
      return {1, stage};
    case plan::BACKWARD:
      return {2, -stage};
    case plan::INPUT_GRAD:
      return {3, -stage};
    case plan::WEIGHT_GRAD:
      return {4, -stage};
    default:
      return {5, 0};
  }
}

StepFunction stepFunctionOf(CutStepFunction function) {
  StepFunction made{function.kind, function.stage, std::move(function.arguments), std::move(function.results), {}};
  for (LoweredInstruction& instruction : function.instructions) {
    made.instructions.push_back(std::move(instruction.step));
  }
  return made;
}

// Puts what follows another instruction directly behind it, what was added last first.
void putInOrder(CutStepFunction& function) {
  std::vector<LoweredInstruction>& all = function.instructions;
  if (std::none_of(all.begin(), all.end(), [](const LoweredInstruction& each) { return each.follows >= 0; })) {
    return;
  }
  std::vector<std::vector<size_t>> followers(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].follows >= 0) {
      followers[all[i].follows].push_back(i);
    }
  }
  std::vector<LoweredInstruction> ordered;
  ordered.reserve(all.size());
  const std::function<void(size_t)> put = [&](size_t i) {
    ordered.push_back(std::move(all[i]));
    std::for_each(followers[i].rbegin(), followers[i].rend(), put);
  };
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].follows < 0) {
      put(i);
    }
  }
  all = std::move(ordered);
}

// A backward function in two: what other stages wait for, and the rest. What the rest reads of the first crosses as an
// activation.
class BackwardCut {
 public:
  // `readOutside`: as backwardParts.
  BackwardCut(const CutStepFunction& function, const std::set<std::string>& readOutside, StepProgram& program)
      : function_(function), program_(program), parts_(backwardParts(stepFunctionOf(function), readOutside)) {}

  std::pair<CutStepFunction, CutStepFunction> run() {
    for (CutStepFunction* half : {&first_, &second_}) {
      half->submesh = function_.submesh;
      half->stage = function_.stage;
    }
    first_.kind = plan::INPUT_GRAD;
    second_.kind = plan::WEIGHT_GRAD;
    for (size_t i = 0; i < function_.instructions.size(); ++i) {
      for (const int output : function_.instructions[i].step.outputs) {
        madeIn_[output] = parts_[i];
      }
    }
    std::vector<StepName> crossings;
    for (size_t i = 0; i < function_.instructions.size(); ++i) {
      if (parts_[i] != BackwardPart::kWeights) {
        LoweredInstruction& made = first_.instructions.emplace_back(function_.instructions[i]);
        for (int& input : made.step.inputs) {
          input = argumentIn(first_, input);
        }
      }
      if (parts_[i] != BackwardPart::kInput) {
        LoweredInstruction& made = second_.instructions.emplace_back(function_.instructions[i]);
        for (int& input : made.step.inputs) {
          input = readInSecond(input, crossings);
        }
        if (parts_[i] == BackwardPart::kBoth) {
          renew(made.step.outputs);
        }
      }
    }
    for (const StepName& result : function_.results) {
      const auto made = madeIn_.find(result.value);
      const bool first = made != madeIn_.end() && made->second != BackwardPart::kWeights;
      (first ? first_ : second_).results.push_back(result);
    }
    first_.results.insert(first_.results.end(), crossings.begin(), crossings.end());
    return {std::move(first_), std::move(second_)};
  }

 private:
  // Arguments belong to one function each: a half has those that it reads.
  int argumentIn(CutStepFunction& half, int value) {
    const auto argument = std::find_if(function_.arguments.begin(), function_.arguments.end(),
                                       [&](const StepName& name) { return name.value == value; });
    return argument == function_.arguments.end() ? value : named(half, *argument, program_.values[value].bytes);
  }

  // What the second half makes again is another value.
  void renew(std::vector<int>& outputs) {
    for (int& output : outputs) {
      program_.values.push_back(program_.values[output]);
      output = again_[output] = static_cast<int>(program_.values.size()) - 1;
    }
  }

  int readInSecond(int value, std::vector<StepName>& crossings) {
    if (const auto again = again_.find(value); again != again_.end()) {
      return again->second;
    }
    const auto made = madeIn_.find(value);
    if (made == madeIn_.end() || made->second == BackwardPart::kWeights) {
      return argumentIn(second_, value);
    }
    auto known = std::find_if(crossings.begin(), crossings.end(), [&](const StepName& n) { return n.value == value; });
    if (known == crossings.end()) {
      const std::string name = absl::StrCat("backward.", function_.stage, ".w", crossings.size());
      crossings.push_back({value, name, plan::ACTIVATION});
      known = std::prev(crossings.end());
    }
    return named(second_, *known, program_.values[value].bytes);
  }

  int named(CutStepFunction& half, const StepName& name, int64_t bytes) {
    const auto [known, added] = half.named.try_emplace(name.name, static_cast<int>(program_.values.size()));
    if (added) {
      program_.values.push_back({bytes});
      half.arguments.push_back({known->second, name.name, name.memory});
    }
    return known->second;
  }

  const CutStepFunction& function_;
  StepProgram& program_;
  std::vector<BackwardPart> parts_;                // of each instruction
  absl::flat_hash_map<int, BackwardPart> madeIn_;  // of each value that an instruction makes
  absl::flat_hash_map<int, int> again_;            // what the second half makes again
  CutStepFunction first_, second_;
};

bool isReturned(const CutStepFunction& function, const LoweredInstruction& instruction) {
  return std::any_of(function.results.begin(), function.results.end(),
                     [&](const auto& result) { return result.value == instruction.step.outputs[0]; });
}

bool readsArgument(const CutStepFunction& function, const LoweredInstruction& instruction) {
  return std::any_of(function.arguments.begin(), function.arguments.end(),
                     [&](const auto& argument) { return argument.value == instruction.step.inputs[0]; });
}

bool mayJoin(const CutStepFunction& function, const LoweredInstruction& instruction) {
  return instruction.reduction && (instruction.reduction->kind != CollectiveKind::kAllGather ||
                                   isReturned(function, instruction) || readsArgument(function, instruction));
}

// Does it add to what is kept of earlier micro-batches?
bool isAccumulation(const CutStepFunction& function, const LoweredInstruction& instruction) {
  return std::any_of(function.arguments.begin(), function.arguments.end(), [&](const StepName& argument) {
    return argument.memory == plan::ACCUMULATOR && !instruction.step.inputs.empty() &&
           argument.value == instruction.step.inputs[0];
  });
}

// The collectives that may join, as bucketsOf() asks for them.
std::vector<Reduction> reductionsOf(const CutStepFunction& function, const StepProgram& program,
                                    std::vector<size_t>& positions) {
  absl::flat_hash_map<int, int64_t> makers;
  absl::flat_hash_map<int, std::vector<int64_t>> readers;
  for (size_t i = 0; i < function.instructions.size(); ++i) {
    for (const int input : function.instructions[i].step.inputs) {
      readers[input].push_back(static_cast<int64_t>(i));
    }
    for (const int output : function.instructions[i].step.outputs) {
      makers[output] = static_cast<int64_t>(i);
    }
  }
  std::vector<Reduction> reductions;
  for (size_t i = 0; i < function.instructions.size(); ++i) {
    const LoweredInstruction& instruction = function.instructions[i];
    if (!mayJoin(function, instruction)) {
      continue;
    }
    Reduction made;
    made.position = static_cast<int64_t>(i);
    made.key = static_cast<int>(positions.size());
    for (size_t other = 0; other < positions.size(); ++other) {
      if (function.instructions[positions[other]].reduction->joins(*instruction.reduction)) {
        made.key = reductions[other].key;
        break;
      }
    }
    for (const int input : instruction.step.inputs) {
      made.bytes += program.values[input].bytes;
      if (makers.count(input) > 0) {
        made.producers.push_back(makers[input]);
      }
    }
    for (const int output : instruction.step.outputs) {
      made.resultBytes += program.values[output].bytes;
      made.readers.insert(made.readers.end(), readers[output].begin(), readers[output].end());
    }
    const bool isAdded = std::any_of(made.readers.begin(), made.readers.end(), [&](int64_t reader) {
      return isAccumulation(function, function.instructions[reader]);
    });
    const bool isOnlyReturned = made.readers.empty() && !made.producers.empty();
    if (instruction.reduction->kind == CollectiveKind::kReduceScatter && (isAdded || isOnlyReturned)) {
      made.limit = BucketLimit::kQuarter;
      made.savesRoom = true;
    }
    if (instruction.reduction->kind == CollectiveKind::kAllGather) {
      made.savesRoom = isReturned(function, instruction);
      made.limit = made.savesRoom ? BucketLimit::kNone : BucketLimit::kLargest;
    }
    if (made.readers.empty()) {
      made.readers.push_back(static_cast<int64_t>(function.instructions.size()));
    }
    positions.push_back(i);
    reductions.push_back(std::move(made));
  }
  return reductions;
}

LoweredInstruction joined(const std::vector<LoweredInstruction>& members, const Machine& machine) {
  LoweredInstruction made = members.front();
  for (size_t i = 1; i < members.size(); ++i) {
    const LoweredInstruction& member = members[i];
    made.step.inputs.insert(made.step.inputs.end(), member.step.inputs.begin(), member.step.inputs.end());
    made.step.outputs.insert(made.step.outputs.end(), member.step.outputs.begin(), member.step.outputs.end());
    made.reduction->bytesReceived += member.reduction->bytesReceived;
  }
  for (size_t i = 1; i < made.step.inputs.size() && !made.step.inPlace.empty(); ++i) {
    made.step.inPlace.push_back({i, i});
  }
  const BucketReduction& all = *made.reduction;
  made.step.time = collectiveCost(machine, all.kind, all.span, all.bytesReceived);
  return made;
}

// Puts each bucket where its members are needed first.
void joinBuckets(CutStepFunction& function, const StepProgram& program, const Machine& machine,
                 const BucketBytes& most) {
  std::vector<size_t> positions;
  const std::vector<Bucket> buckets = bucketsOf(reductionsOf(function, program, positions), most);
  if (buckets.empty()) {
    return;
  }
  // What stands in each place now: the instruction that was there, or the bucket that took it up.
  std::list<std::vector<size_t>> order;
  std::vector<std::list<std::vector<size_t>>::iterator> holder;  // of each instruction
  for (size_t i = 0; i < function.instructions.size(); ++i) {
    holder.push_back(order.insert(order.end(), {i}));
  }
  holder.push_back(order.end());  // where what nothing reads is needed
  for (const Bucket& bucket : buckets) {
    const auto joint = order.insert(holder[bucket.before], std::vector<size_t>());
    for (const size_t member : bucket.members) {
      const auto held = holder[positions[member]];
      for (const size_t position : *held) {
        joint->push_back(position);
        holder[position] = joint;
      }
      held->clear();
    }
  }
  std::vector<LoweredInstruction> made;
  for (const std::vector<size_t>& held : order) {
    std::vector<LoweredInstruction> members;
    for (const size_t position : held) {
      members.push_back(function.instructions[position]);
    }
    if (!members.empty()) {
      made.push_back(members.size() == 1 ? std::move(members[0]) : joined(members, machine));
    }
  }
  function.instructions = std::move(made);
}

// Makes a product that only a sum over micro-batches reads, and the sum, one instruction.
void fuseAccumulations(CutStepFunction& function) {
  absl::flat_hash_map<int, int> reads;
  absl::flat_hash_map<int, size_t> makers;
  for (size_t i = 0; i < function.instructions.size(); ++i) {
    const LoweredInstruction& instruction = function.instructions[i];
    for (const int input : instruction.step.inputs) {
      ++reads[input];
    }
    if (instruction.accumulating) {
      makers[instruction.step.outputs[0]] = i;
    }
  }
  for (const StepName& result : function.results) {
    ++reads[result.value];
  }
  std::vector<bool> isAdded(function.instructions.size());
  for (LoweredInstruction& sum : function.instructions) {
    const auto maker = sum.accumulates ? makers.find(sum.step.inputs[1]) : makers.end();
    if (maker == makers.end() || reads[sum.step.inputs[1]] > 1) {
      continue;
    }
    isAdded[maker->second] = true;
    StepInstruction both = std::move(function.instructions[maker->second].step);
    both.inputs.insert(both.inputs.begin(), sum.step.inputs[0]);
    both.outputs = sum.step.outputs;
    function.instructions[maker->second].accumulating->applyTo(both);
    sum.step = std::move(both);
  }
  size_t kept = 0;
  for (size_t i = 0; i < function.instructions.size(); ++i) {
    if (!isAdded[i]) {
      if (kept != i) {
        function.instructions[kept] = std::move(function.instructions[i]);
      }
      ++kept;
    }
  }
  function.instructions.erase(function.instructions.begin() + static_cast<int64_t>(kept), function.instructions.end());
}

}  // namespace

CutStepFunction& SubmeshFunctions::function(plan::FunctionKind kind, int64_t stage) {
  std::unique_ptr<CutStepFunction>& entry = functions_[keyOf(kind, stage)];
  if (!entry) {
    entry = std::make_unique<CutStepFunction>();
    entry->kind = kind;
    entry->submesh = submesh_;
    entry->stage = entry->perMicroBatch() ? stage : stages_.front();
  }
  return *entry;
}

CutStepFunction* SubmeshFunctions::whereDefined(int value) {
  const auto known = definedIn_.find(value);
  if (known == definedIn_.end()) {
    return nullptr;
  }
  return madeTogether_.count(value) > 0 ? &update() : known->second;
}

int SubmeshFunctions::addValue(int64_t bytes) {
  program_.values.push_back({bytes});
  return static_cast<int>(program_.values.size()) - 1;
}

void SubmeshFunctions::define(CutStepFunction& function, int value, int cut) {
  function.values[value] = cut;
  definedIn_[value] = &function;
}

int SubmeshFunctions::argument(CutStepFunction& function, const std::string& name, int64_t bytes,
                               plan::MemoryClass memory) {
  const auto [known, added] = function.named.try_emplace(name, 0);
  if (added) {
    known->second = addValue(bytes);
    function.arguments.push_back({known->second, name, memory});
  }
  return known->second;
}

int SubmeshFunctions::crossing(CutStepFunction& reader, int value, int64_t bytes) {
  const auto together = madeTogether_.find(value);
  if (together != madeTogether_.end()) {
    return argument(reader, together->second.name, bytes, together->second.memory);
  }
  const auto [known, added] = crossingOf_.try_emplace(value, crossings_.size());
  if (added) {
    crossings_.push_back({value, absl::StrCat("v", crossings_.size())});
  }
  Crossing& crossing = crossings_[known->second];
  crossing.betweenMicroBatchFunctions &= definedIn_[value]->perMicroBatch() && reader.perMicroBatch();
  return argument(reader, crossing.name, bytes, plan::ACTIVATION);  // finish() knows better
}

void SubmeshFunctions::accumulate(CutStepFunction& function, int value, int cut, StepInstruction instruction) {
  const StepName name = {cut, absl::StrCat("acc", accumulators_++), plan::ACCUMULATOR};
  makeTogether(function, value, name, bytesOf(cut), {.step = std::move(instruction), .accumulates = true});
}

void SubmeshFunctions::makeTogether(CutStepFunction& function, int value, const StepName& cut, int64_t bytes,
                                    LoweredInstruction instruction) {
  const int before = argument(function, cut.name, bytes, cut.memory);
  const int after = addValue(bytes);
  instruction.step.inputs = {before, cut.value};
  instruction.step.outputs = {after};
  // Where the term is made: a gradient does not wait for the end of the function.
  const auto maker = std::find_if(function.instructions.rbegin(), function.instructions.rend(), [&](const auto& made) {
    return std::find(made.step.outputs.begin(), made.step.outputs.end(), cut.value) != made.step.outputs.end();
  });
  instruction.follows = function.instructions.rend() - maker - 1;
  function.instructions.push_back(std::move(instruction));
  returnValue(function, after, cut.name, cut.memory);
  definedIn_[value] = &function;
  madeTogether_[value] = {after, cut.name, cut.memory};
}

bool SubmeshFunctions::isCollectedAs(int value, const std::string& name) const {
  const auto known = madeTogether_.find(value);
  return known != madeTogether_.end() && known->second.name == name;
}

bool SubmeshFunctions::isReadElsewhere(const std::string& name, const CutStepFunction& function) const {
  return std::any_of(functions_.begin(), functions_.end(), [&](const auto& entry) {
    return entry.second.get() != &function && entry.second->named.count(name) > 0;
  });
}

void SubmeshFunctions::returnValue(CutStepFunction& function, int cut, const std::string& name,
                                   plan::MemoryClass memory) {
  function.results.push_back({cut, name, memory});
}

void SubmeshFunctions::returnCrossings() {
  absl::flat_hash_map<std::string, plan::MemoryClass> memory;
  for (const Crossing& crossing : crossings_) {
    CutStepFunction& maker = *definedIn_[crossing.value];
    memory[crossing.name] = crossing.betweenMicroBatchFunctions ? plan::ACTIVATION : plan::ACCUMULATOR;
    returnValue(maker, maker.values[crossing.value], crossing.name, memory[crossing.name]);
  }
  for (auto& [key, function] : functions_) {
    for (StepName& argument : function->arguments) {
      const auto known = memory.find(argument.name);
      argument.memory = known == memory.end() ? argument.memory : known->second;
    }
  }
}

// Names that the backward functions of other stages read.
std::set<std::string> SubmeshFunctions::readByOtherBackwards(const CutStepFunction& function) const {
  std::set<std::string> names;
  for (const auto& [key, other] : functions_) {
    if (other->kind == plan::BACKWARD && other.get() != &function) {
      for (const StepName& argument : other->arguments) {
        names.insert(argument.name);
      }
    }
  }
  return names;
}

SubmeshFunctions::Finished SubmeshFunctions::finish(const Decisions& decisions, bool splitsBackward,
                                                    const Machine& machine) {
  returnCrossings();
  std::map<FunctionKey, CutStepFunction> parts;
  for (auto& [key, function] : functions_) {
    putInOrder(*function);
    if (splitsBackward && function->kind == plan::BACKWARD) {
      auto [first, second] = BackwardCut(*function, readByOtherBackwards(*function), program_).run();
      parts[keyOf(first.kind, first.stage)] = std::move(first);
      parts[keyOf(second.kind, second.stage)] = std::move(second);
    } else {
      parts[key] = std::move(*function);
    }
  }
  Finished finished;
  for (auto& [key, part] : parts) {
    joinBuckets(part, program_, machine, {.gathered = decisions.gatherBucket});
    fuseAccumulations(part);
    const size_t number = program_.functions.size();
    std::vector<int64_t> senders;
    for (const LoweredInstruction& instruction : part.instructions) {
      senders.push_back(instruction.sender);
    }
    program_.functions.push_back(stepFunctionOf(std::move(part)));
    std::vector<int64_t> before(senders.size());
    std::iota(before.begin(), before.end(), 0);
    if (decisions.overlap) {
      before = overlapCollectives(program_, number, machine);
    }
    for (size_t i = 0; i < before.size(); ++i) {
      if (before[i] >= 0 && senders[before[i]] >= 0) {
        const int received = program_.functions.back().instructions[i].outputs[0];
        finished.receives.push_back({number, i, senders[before[i]], bytesOf(received)});
      }
    }
  }
  finished.program = std::move(program_);
  return finished;
}

}  // namespace weft
