#include "planner/step/storage.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "planner/step/copies.h"
#include "planner/step/step_facts.h"

namespace weft {
namespace {

// The assignment as far as it has come: which storages there are, and which names they carry.
class StorageTable {
 public:
  StorageTable(const StepProgram& program, StorageAssignment& out) : program_(program), out_(out) {}

  Storage& at(int storage) { return out_.storages[storage]; }
  const std::vector<std::string>& namesOf(int storage) { return names_[storage]; }
  bool knows(const std::string& name) const { return out_.named.count(name) > 0; }
  bool carries(int storage, const std::string& name) const {
    const auto known = out_.named.find(name);
    return known != out_.named.end() && known->second == storage;
  }

  int add(Storage storage) {
    out_.storages.push_back(std::move(storage));
    return static_cast<int>(out_.storages.size()) - 1;
  }

  // The storage of a name; made on first sight.
  int ofName(const StepName& name) {
    const auto [it, added] = out_.named.try_emplace(name.name, static_cast<int>(out_.storages.size()));
    if (added) {
      add({.memory = name.memory, .bytes = program_.values[name.value].bytes, .label = name.name});
      names_[it->second].push_back(name.name);
    }
    return it->second;
  }

  // Equal constants share one storage.
  int ofConstant(const StepInstruction& constant) {
    const auto [it, added] = constants_.try_emplace(constant.constant, static_cast<int>(out_.storages.size()));
    if (added) {
      const int64_t bytes = program_.values[constant.outputs[0]].bytes;
      add({.memory = plan::CONSTANT, .bytes = bytes, .label = constant.label});
    }
    return it->second;
  }

  void giveName(int storage, const std::string& name) {
    out_.named[name] = storage;
    names_[storage].push_back(name);
  }

 private:
  const StepProgram& program_;
  StorageAssignment& out_;
  absl::flat_hash_map<int, std::vector<std::string>> names_;  // of each storage
  absl::flat_hash_map<int, int> constants_;                   // number of a constant to its storage
};

// A value and its views: one content of one storage.
struct Cell {
  int storage = -1;
  int64_t lastUse = -1;
};

// The cells of one function, and which storage holds which of them now.
class FunctionCells {
 public:
  FunctionCells(const StepFacts& facts, std::vector<int>& storageOf) : facts_(facts), storageOf_(storageOf) {}

  int of(int value) const { return cellOf_.at(value); }
  int storageOf(int value) const { return cells_[of(value)].storage; }

  // The cell that the storage holds; null before the function has anything there.
  const Cell* in(int storage) const {
    const auto known = occupant_.find(storage);
    return known == occupant_.end() ? nullptr : &cells_[known->second];
  }
  bool holds(int storage, int value) const { return occupant_.at(storage) == of(value); }

  // The value is the storage's new content.
  void write(int value, int storage) {
    cells_.push_back({storage, -1});
    occupant_[storage] = static_cast<int>(cells_.size()) - 1;
    join(value, occupant_[storage]);
  }

  // The value is in the storage already: under another name, or as what it is a view of.
  void share(int value, int storage) {
    const auto known = occupant_.find(storage);
    known == occupant_.end() ? write(value, storage) : join(value, known->second);
  }

  // The value is one more view of what is in the cell.
  void join(int value, int cell) {
    cellOf_[value] = cell;
    storageOf_[value] = cells_[cell].storage;
    cells_[cell].lastUse = std::max(cells_[cell].lastUse, facts_.values[value].last);
  }

 private:
  const StepFacts& facts_;
  std::vector<int>& storageOf_;  // of each value of the program
  std::vector<Cell> cells_;
  absl::flat_hash_map<int, int> cellOf_;    // value to cell
  absl::flat_hash_map<int, int> occupant_;  // storage to cell
};

// Walks through one function and gives each of its values a storage.
class FunctionAssigner {
 public:
  FunctionAssigner(const StepProgram& program, const StepFacts& facts, int index, StorageTable& table,
                   StorageAssignment& out)
      : program_(program),
        facts_(facts),
        index_(index),
        function_(program.functions[index]),
        table_(table),
        cells_(facts, out.of),
        out_(out) {}

  void run() {
    out_.views.emplace_back(function_.instructions.size(), false);
    for (const StepName& argument : function_.arguments) {
      cells_.share(argument.value, table_.ofName(argument));
    }
    const std::vector<StepName> fresh = aimResults();
    for (size_t at = 0; at < function_.instructions.size(); ++at) {
      for (size_t output = 0; output < function_.instructions[at].outputs.size(); ++output) {
        place(at, output);
      }
    }
    for (const StepName& result : fresh) {
      settle(result);
    }
    finishCopies();
  }

 private:
  // Gives results whose storage is known their targets; returns the others. A name is fresh if it is new and this
  // result its only writer: its storage may be whatever the value lies in.
  std::vector<StepName> aimResults() {
    std::vector<StepName> fresh;
    for (const StepName& result : function_.results) {
      if (facts_.names.at(result.name).writers == 1 && !table_.knows(result.name)) {
        fresh.push_back(result);
      } else {
        aim(result.value, table_.ofName(result));
      }
    }
    return fresh;
  }

  void aim(int value, int storage) {
    const int producer = facts_.values[value].producer;
    const bool made = producer >= 0 && function_.instructions[producer].kind != StepInstruction::Kind::kConstant;
    if (!made || !targets_.try_emplace(value, storage).second) {
      copies_.push_back({value, -1, storage});
    }
  }

  void place(size_t at, size_t output) {
    const StepInstruction& instruction = function_.instructions[at];
    const int value = instruction.outputs[output];
    if (instruction.kind == StepInstruction::Kind::kConstant) {
      return cells_.write(value, table_.ofConstant(instruction));
    }
    if (placeAtTarget(at, output)) {
      return;
    }
    if (instruction.kind == StepInstruction::Kind::kView) {
      out_.views.back()[at] = true;
      return cells_.join(value, cells_.of(instruction.inputs[0]));
    }
    for (const InPlacePair& pair : instruction.inPlace) {
      if (pair.output != output) {
        continue;
      }
      const int storage = cells_.storageOf(instruction.inputs[pair.input]);
      if (reusable(storage) && mayWrite(at, output, storage)) {
        return cells_.write(value, storage);
      }
    }
    cells_.write(value, table_.add({.bytes = program_.values[value].bytes, .label = instruction.label}));
  }

  // Writes a result where its name lies, if it may; else it is copied there in the end.
  bool placeAtTarget(size_t at, size_t output) {
    const StepInstruction& instruction = function_.instructions[at];
    const int value = instruction.outputs[output];
    const auto wanted = targets_.find(value);
    if (wanted == targets_.end()) {
      return false;
    }
    if (!mayWrite(at, output, wanted->second)) {
      copies_.push_back({value, -1, wanted->second});
      return false;
    }
    // Accumulators have made-up names; what they hold says more.
    Storage& storage = table_.at(wanted->second);
    storage.label = storage.memory == plan::ACCUMULATOR && instruction.named ? instruction.label : storage.label;
    cells_.write(value, wanted->second);
    return true;
  }

  static bool allows(const StepInstruction& instruction, size_t input, size_t output) {
    const auto& pairs = instruction.inPlace;
    return std::find(pairs.begin(), pairs.end(), InPlacePair{input, output}) != pairs.end();
  }

  // Is what the storage holds read no more after the instruction, and by it only in a way that the output may take its
  // place?
  bool mayWrite(size_t at, size_t output, int storage) const {
    const int64_t step = facts_.starts[index_] + static_cast<int64_t>(at);
    const Cell* held = cells_.in(storage);
    if (held == nullptr || held->lastUse < step) {
      return true;
    }
    if (held->lastUse > step) {
      return false;
    }
    const StepInstruction& instruction = function_.instructions[at];
    int readers = 0;
    bool allowed = false;
    for (size_t input = 0; input < instruction.inputs.size(); ++input) {
      if (cells_.holds(storage, instruction.inputs[input])) {
        ++readers;
        allowed = allows(instruction, input, output);
      }
    }
    return readers == 1 && allowed;
  }

  // May what this function does not name be written here? Transients; and what came in only for this function, the last
  // to read it before it is written again: activations in the backward pass, accumulators in the update.
  bool reusable(int storage) {
    const plan::MemoryClass memory = table_.at(storage).memory;
    if (memory == plan::TRANSIENT) {
      return true;
    }
    const plan::FunctionKind kind = function_.kind;
    const bool last = (memory == plan::ACTIVATION && isPerMicroBatch(kind) && kind != plan::FORWARD) ||
                      (memory == plan::ACCUMULATOR && kind == plan::UPDATE);
    const std::vector<std::string>& names = table_.namesOf(storage);
    return last && std::all_of(names.begin(), names.end(), [&](const std::string& name) {
             const NameFacts& facts = facts_.names.at(name);
             const bool isLast = facts.lastReader == index_ && (kind == plan::BACKWARD || !facts.isReadByStages);
             return program_.visible.count(name) == 0 && isLast && facts.lastWriter < index_;
           });
  }

  // Gives a fresh name its storage: the value's own where that lasts, else a copy.
  void settle(const StepName& name) {
    const int storage = cells_.storageOf(name.value);
    Storage& entry = table_.at(storage);
    const bool internal = name.memory == plan::ACTIVATION || name.memory == plan::ACCUMULATOR;
    // Later micro-batches reuse a ring's slot: what is read after the last one must be copied out.
    const bool slotted = entry.memory == plan::ACTIVATION && name.memory == plan::ACCUMULATOR;
    if (entry.memory == plan::TRANSIENT) {
      entry.memory = name.memory;
      entry.label = internal ? entry.label : name.name;
    } else if (!internal || slotted || !lasts(storage, name)) {
      copies_.push_back({name.value, -1, table_.ofName(name)});
      return;
    }
    table_.giveName(storage, name.name);
  }

  // Does the storage keep what it holds now until the last reader of the name has begun? (That one sees both names and
  // takes care itself.) What the prologue leaves must outlast all micro-batches; so must an activation that lies in
  // memory the micro-batches share. In the slot of its micro-batch it meets no other.
  bool lasts(int storage, const StepName& name) {
    const int lastReader = facts_.names.at(name.name).lastReader;
    const bool shared = table_.at(storage).memory != plan::ACTIVATION;
    for (int f = 0; f < static_cast<int>(program_.functions.size()); ++f) {
      const bool perMicroBatch = isPerMicroBatch(program_.functions[f].kind);
      const bool between = f >= index_ && f < std::max(lastReader, index_ + 1);
      const bool otherMicroBatch =
          perMicroBatch && shared &&
          (name.memory == plan::ACTIVATION || (f > index_ && !isPerMicroBatch(function_.kind)));
      if ((between || otherMicroBatch) && writes(f, storage)) {
        return false;
      }
    }
    return true;
  }

  // Does the function return another value in the storage? Names that the function at hand has just settled hold the
  // same value.
  bool writes(int function, int storage) const {
    const std::vector<StepName>& results = program_.functions[function].results;
    return std::any_of(results.begin(), results.end(), [&](const StepName& result) {
      const bool same =
          function == index_ && facts_.names.at(result.name).writers == 1 && cells_.holds(storage, result.value);
      return table_.carries(storage, result.name) && !same;
    });
  }

  void finishCopies() {
    for (Copy& copy : copies_) {
      copy.from = cells_.storageOf(copy.like);
    }
    const auto temporary = [&](const Copy& copy) {
      return table_.add({.bytes = program_.values[copy.like].bytes, .label = "copy"});
    };
    out_.copies.push_back(orderCopies(copies_, temporary));
  }

  const StepProgram& program_;
  const StepFacts& facts_;
  const int index_;
  const StepFunction& function_;
  StorageTable& table_;
  FunctionCells cells_;
  StorageAssignment& out_;
  absl::flat_hash_map<int, int> targets_;  // storages that values are to be written to
  std::vector<Copy> copies_;
};

}  // namespace

StorageAssignment assignStorage(const StepProgram& program) {
  StorageAssignment out;
  out.of.assign(program.values.size(), -1);
  const StepFacts facts = factsOf(program);
  StorageTable table(program, out);
  for (size_t f = 0; f < program.functions.size(); ++f) {
    FunctionAssigner(program, facts, static_cast<int>(f), table, out).run();
  }
  return out;
}

}  // namespace weft
