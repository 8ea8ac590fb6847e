#include "planner/step/step_play.h"

#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace weft {
namespace {

// One write: the number of the call, from 1 on, and the value written, or 0 and the name that the host filled. What
// every micro-batch makes alike counts as one write.
struct Token {
  static constexpr int64_t kNone = -1;
  static constexpr int64_t kEveryMicroBatch = -2;

  int64_t call = kNone;
  int what = -1;

  friend bool operator==(const Token&, const Token&) = default;
};

bool isFilledByTheHost(plan::MemoryClass memory) {
  return memory == plan::PARAMETER || memory == plan::STATE || memory == plan::INPUT;
}

// Which storages lie on some of the same bytes. Only activations share.
std::vector<std::vector<int>> sharersOf(const StorageAssignment& assignment, const StepMemory& memory) {
  const auto count = static_cast<int>(assignment.storages.size());
  std::map<int, std::vector<int>> rings;
  for (int i = 0; i < count; ++i) {
    if (assignment.storages[i].memory == plan::ACTIVATION && assignment.storages[i].bytes > 0) {
      rings[memory.rings[i]].push_back(i);
    }
  }
  std::vector<std::vector<int>> sharers(assignment.storages.size());
  for (auto& [ring, members] : rings) {
    std::sort(members.begin(), members.end(), [&](int a, int b) { return memory.offsets[a] < memory.offsets[b]; });
    for (size_t i = 0; i < members.size(); ++i) {
      const int64_t end = memory.offsets[members[i]] + assignment.storages[members[i]].bytes;
      for (size_t j = i + 1; j < members.size() && memory.offsets[members[j]] < end; ++j) {
        sharers[members[i]].push_back(members[j]);
        sharers[members[j]].push_back(members[i]);
      }
    }
  }
  return sharers;
}

// What lies where.
class Contents {
 public:
  Contents(const StorageAssignment& assignment, const StepMemory& memory)
      : assignment_(assignment), sharers_(sharersOf(assignment, memory)) {
    std::map<int, int64_t> slots;  // by ring
    for (const StepRegion& region : memory.regions) {
      if (region.memory == plan::ACTIVATION) {
        slots[region.ring] = region.slots;
      }
    }
    for (size_t i = 0; i < assignment.storages.size(); ++i) {
      const bool isActivation = assignment.storages[i].memory == plan::ACTIVATION;
      tokens_.emplace_back(isActivation ? std::max<int64_t>(1, slots[memory.rings[i]]) : 1, Token());
    }
  }

  bool isPlayed(int storage) const {
    const plan::MemoryClass memory = assignment_.storages[storage].memory;
    return memory != plan::TRANSIENT && memory != plan::CONSTANT;
  }
  Token in(int storage, int64_t microBatch) const { return tokens_[storage][slotOf(storage, microBatch)]; }

  void write(int storage, int64_t microBatch, Token token) {
    const size_t slot = slotOf(storage, microBatch);
    tokens_[storage][slot] = token;
    for (const int other : sharers_[storage]) {
      tokens_[other][slot] = token;
    }
  }

 private:
  size_t slotOf(int storage, int64_t microBatch) const {
    return static_cast<size_t>(microBatch) % tokens_[storage].size();
  }

  const StorageAssignment& assignment_;
  std::vector<std::vector<int>> sharers_;
  std::vector<std::vector<Token>> tokens_;  // of each storage and slot; of one ring all have as many
};

// A name as one function takes or returns it.
struct NameUse {
  int value = -1;
  int name = -1;           // index of the name
  bool isAddedTo = false;  // of an argument: the function returns it, too
};

class Player {
 public:
  Player(const StepProgram& program, const StorageAssignment& assignment, const StepMemory& memory)
      : program_(program), assignment_(assignment), contents_(assignment, memory), means_(program.values.size()) {
    for (const StepFunction& function : program.functions) {
      uses_.push_back({usesOf(function.arguments), usesOf(function.results)});
    }
    for (Uses& uses : uses_) {
      for (NameUse& argument : uses.arguments) {
        argument.isAddedTo = isAmong(uses.results, argument.name);
      }
    }
    findAlike();
    left_.resize(names_.size());
    for (size_t name = 0; name < names_.size(); ++name) {
      if (isFilledByTheHost(names_[name].memory)) {
        left_[name][0] = {0, static_cast<int>(name)};
        contents_.write(names_[name].storage, 0, left_[name][0]);
      }
    }
  }

  std::optional<Misread> play(const std::vector<FunctionCall>& calls) {
    for (const FunctionCall& call : calls) {
      if (const std::optional<std::string> wrong = play(call)) {
        return Misread{call, *wrong};
      }
    }
    return std::nullopt;
  }

  // What the host and the next step read must be there when the last call is over.
  std::optional<Misread> end(const FunctionCall& last) const {
    for (size_t i = 0; i < names_.size(); ++i) {
      const bool isKept = isFilledByTheHost(names_[i].memory) || names_[i].memory == plan::OUTPUT;
      if (isKept && !left_[i].empty() && contents_.in(names_[i].storage, 0) != left_[i].at(0)) {
        return Misread{last, absl::StrCat("ends the step, but ", nameOf(i), lostTo(names_[i].storage, 0))};
      }
    }
    return std::nullopt;
  }

 private:
  struct Name {
    absl::string_view name;
    plan::MemoryClass memory = plan::ACTIVATION;
    int storage = -1;
  };
  struct Uses {
    std::vector<NameUse> arguments;
    std::vector<NameUse> results;
  };

  std::vector<NameUse> usesOf(const std::vector<StepName>& names) {
    std::vector<NameUse> uses;
    for (const StepName& name : names) {
      const auto [known, added] = numbers_.try_emplace(name.name, static_cast<int>(names_.size()));
      if (added) {
        names_.push_back({name.name, name.memory, assignment_.named.at(name.name)});
      }
      uses.push_back({name.value, known->second});
    }
    return uses;
  }

  // What a function leaves as an accumulator in each micro-batch without adding to it depends on no micro-batch: of
  // what does, the terms are added up (cut_functions.cc).
  void findAlike() {
    isAlike_.resize(program_.values.size());
    for (size_t f = 0; f < uses_.size(); ++f) {
      for (const NameUse& result : uses_[f].results) {
        isAlike_[result.value] = isAlike_[result.value] || (names_[result.name].memory == plan::ACCUMULATOR &&
                                                            isPerMicroBatch(program_.functions[f].kind) &&
                                                            !isAmong(uses_[f].arguments, result.name));
      }
    }
  }

  static bool isAmong(const std::vector<NameUse>& uses, int name) {
    return std::any_of(uses.begin(), uses.end(), [&](const NameUse& use) { return use.name == name; });
  }

  std::string nameOf(size_t name) const {
    return absl::StrCat(absl::AsciiStrToLower(plan::MemoryClass_Name(names_[name].memory)), " '", names_[name].name,
                        "'");
  }

  int64_t keyOf(int name, int64_t microBatch) const { return names_[name].memory == plan::ACTIVATION ? microBatch : 0; }

  // What lies in a storage instead of what should.
  std::string lostTo(int storage, int64_t microBatch) const {
    const Token there = contents_.in(storage, microBatch);
    if (there.call == Token::kNone) {
      return " was never written there";
    }
    if (there.call == Token::kEveryMicroBatch) {
      return " gave place to what every micro-batch makes alike";
    }
    if (there.call == 0) {
      return absl::StrCat(" gave place to ", nameOf(there.what), ", which the host fills");
    }
    const FunctionCall& call = calls_[there.call - 1];
    const StepFunction& function = program_.functions[call.function];
    return absl::StrCat(" gave place to '", labelOf(function, there.what), "' of ",
                        absl::AsciiStrToLower(plan::FunctionKind_Name(function.kind)), " of stage ", function.stage,
                        ", micro-batch ", call.microBatch);
  }

  static absl::string_view labelOf(const StepFunction& function, int value) {
    for (const StepInstruction& instruction : function.instructions) {
      if (std::find(instruction.outputs.begin(), instruction.outputs.end(), value) != instruction.outputs.end()) {
        return instruction.label;
      }
    }
    for (const StepName& argument : function.arguments) {
      if (argument.value == value) {
        return argument.name;
      }
    }
    return "";
  }

  std::optional<std::string> play(const FunctionCall& call) {
    const StepFunction& function = program_.functions[call.function];
    calls_.push_back(call);
    for (const NameUse& argument : uses_[call.function].arguments) {
      if (const std::optional<std::string> wrong = take(argument, call)) {
        return wrong;
      }
    }
    for (size_t i = 0; i < function.instructions.size(); ++i) {
      const StepInstruction& instruction = function.instructions[i];
      for (const int input : instruction.inputs) {
        if (!isThere(input, call.microBatch)) {
          return absl::StrCat(instruction.label, " reads what", lostTo(assignment_.of[input], call.microBatch));
        }
      }
      for (const int output : instruction.outputs) {
        if (assignment_.views[call.function][i]) {
          means_[output] = means_[instruction.inputs[0]];
        } else {
          make(output, call);
        }
      }
    }
    for (const Copy& copy : assignment_.copies[call.function]) {
      if (contents_.isPlayed(copy.from) && contents_.in(copy.from, call.microBatch) != means_[copy.like]) {
        return absl::StrCat("copies what", lostTo(copy.from, call.microBatch));
      }
      contents_.write(copy.to, call.microBatch, means_[copy.like]);
    }
    return leave(call);
  }

  std::optional<std::string> leave(const FunctionCall& call) {
    for (const NameUse& result : uses_[call.function].results) {
      const int storage = names_[result.name].storage;
      if (contents_.isPlayed(storage) && contents_.in(storage, call.microBatch) != means_[result.value]) {
        return absl::StrCat("returns ", nameOf(result.name), ", which", lostTo(storage, call.microBatch));
      }
      left_[result.name][keyOf(result.name, call.microBatch)] = means_[result.value];
    }
    return std::nullopt;
  }

  void make(int value, const FunctionCall& call) {
    means_[value] = {isAlike_[value] ? Token::kEveryMicroBatch : static_cast<int64_t>(calls_.size()), value};
    if (const int storage = assignment_.of[value]; storage >= 0) {
      contents_.write(storage, call.microBatch, means_[value]);
    }
  }

  bool isThere(int value, int64_t microBatch) const {
    const int storage = assignment_.of[value];
    return storage < 0 || !contents_.isPlayed(storage) || contents_.in(storage, microBatch) == means_[value];
  }

  // An argument, as an earlier call left it.
  std::optional<std::string> take(const NameUse& argument, const FunctionCall& call) {
    const std::map<int64_t, Token>& left = left_[argument.name];
    const bool isActivation = names_[argument.name].memory == plan::ACTIVATION;
    const bool perMicroBatch = isPerMicroBatch(program_.functions[call.function].kind);
    const auto known = left.find(keyOf(argument.name, call.microBatch));
    if (known == left.end()) {
      if (argument.isAddedTo && !isActivation) {  // the first part of a sum, or of what is collected: it only writes
        make(argument.value, call);
        return std::nullopt;
      }
      return absl::StrCat("reads ", nameOf(argument.name), ", which no call before it writes",
                          perMicroBatch ? absl::StrCat(" for micro-batch ", call.microBatch) : "");
    }
    means_[argument.value] = known->second;
    if (!isThere(argument.value, call.microBatch)) {
      return absl::StrCat("reads ", nameOf(argument.name), ", which",
                          lostTo(assignment_.of[argument.value], call.microBatch));
    }
    return std::nullopt;
  }

  const StepProgram& program_;
  const StorageAssignment& assignment_;
  Contents contents_;
  std::vector<Uses> uses_;  // of each function
  std::vector<Name> names_;
  std::map<std::string, int> numbers_;
  std::vector<std::map<int64_t, Token>> left_;  // under each name; an activation for each micro-batch, all else under 0
  std::vector<bool> isAlike_;                   // of each value: in every micro-batch
  std::vector<Token> means_;                    // of each value, in the call at hand
  std::vector<FunctionCall> calls_;             // so far
};

}  // namespace

std::optional<Misread> misreadOf(const StepProgram& program, const StorageAssignment& assignment,
                                 const StepMemory& memory, const std::vector<FunctionCall>& init,
                                 const std::vector<FunctionCall>& step) {
  Player player(program, assignment, memory);
  if (const std::optional<Misread> wrong = player.play(init)) {
    return wrong;
  }
  if (const std::optional<Misread> wrong = player.play(step)) {
    return wrong;
  }
  return step.empty() ? std::nullopt : player.end(step.back());
}

}  // namespace weft
