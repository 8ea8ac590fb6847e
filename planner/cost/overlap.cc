#include "planner/cost/overlap.h"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "planner/cost/two_queues.h"

namespace weft {
namespace {

using Kind = StepInstruction::Kind;

// Where the values of a function are made and read; a view reads, and is read as, what it shows.
class FunctionUses {
 public:
  explicit FunctionUses(const StepFunction& function) : function_(function) {
    std::map<std::string, int> named;
    for (const StepName& argument : function.arguments) {
      arguments_[argument.value] = &argument;
      named[argument.name] = argument.value;
    }
    for (size_t i = 0; i < function.instructions.size(); ++i) {
      const StepInstruction& instruction = function.instructions[i];
      for (const int input : instruction.inputs) {
        readers_[shown(input)].push_back(i);
      }
      for (const int output : instruction.outputs) {
        makers_[output] = i;
        if (instruction.kind == Kind::kView) {
          shown_[output] = shown(instruction.inputs[0]);
        }
      }
    }
    for (const StepName& result : function.results) {
      readers_[shown(result.value)].push_back(function.instructions.size());
      if (const auto argument = named.find(result.name); argument != named.end()) {
        replaced_[result.value] = argument->second;
      }
    }
  }

  const StepFunction& function() const { return function_; }

  const StepName* argument(int value) const {
    const auto known = arguments_.find(value);
    return known == arguments_.end() ? nullptr : known->second;
  }

  // The argument that the value is the new content of; -1: none.
  int replaced(int value) const {
    const auto known = replaced_.find(value);
    return known == replaced_.end() ? -1 : known->second;
  }

  // What the results of an instruction may be written over: operands that nothing reads later, and arguments.
  std::vector<int> overwrittenAt(size_t place) const {
    const StepInstruction& instruction = function_.instructions[place];
    std::vector<int> values;
    for (const InPlacePair& pair : instruction.inPlace) {
      if (!isReadAfter(instruction.inputs[pair.input], place)) {
        values.push_back(shown(instruction.inputs[pair.input]));
      }
    }
    for (const int output : instruction.outputs) {
      if (const int argument = replaced(output); argument >= 0) {
        values.push_back(argument);
      }
    }
    return values;
  }

  // The first place that comes after whatever makes the value.
  size_t madeBefore(int value) const {
    const auto maker = makers_.find(value);
    return maker == makers_.end() ? 0 : maker->second + 1;
  }

  // The first place that comes after all who read the value before `place`.
  size_t readBefore(int value, size_t place) const {
    size_t after = 0;
    for (const size_t reader : readersOf(value)) {
      after = reader < place ? std::max(after, reader + 1) : after;
    }
    return after;
  }

  bool isReadAfter(int value, size_t place) const {
    const std::vector<size_t>& readers = readersOf(value);
    return std::any_of(readers.begin(), readers.end(), [&](size_t reader) { return reader > place; });
  }

  // What a view shows; any other value itself.
  int shown(int value) const {
    const auto known = shown_.find(value);
    return known == shown_.end() ? value : known->second;
  }

 private:
  const std::vector<size_t>& readersOf(int value) const {
    static const std::vector<size_t> none;
    const auto known = readers_.find(shown(value));
    return known == readers_.end() ? none : known->second;
  }

  const StepFunction& function_;
  std::map<int, const StepName*> arguments_;
  std::map<int, int> replaced_;
  std::map<int, size_t> makers_;
  std::map<int, int> shown_;  // by a view
  std::map<int, std::vector<size_t>> readers_;
};

struct Collective {
  size_t place = 0;          // where it stands without overlap
  size_t ready = 0;          // the first place where it may start
  std::vector<int> before;   // collectives that make its operands, by number
  std::vector<int> held;     // operands that must last until it has ended
  std::vector<int> awaited;  // its results
  int64_t resultBytes = 0;   // that are new memory
  int64_t freedBytes = 0;    // that nothing needs once it has ended
  bool started = false, waited = false;
  Picoseconds end = 0;

  // It leaves no more than it frees, so the sooner the better.
  bool relieves() const { return resultBytes <= freedBytes; }
  // Bytes that are in use only because it has started before `now`, where without overlap it would not have yet.
  int64_t bytesAhead(size_t now) const {
    return !started || now > place ? 0 : waited ? std::max<int64_t>(resultBytes - freedBytes, 0) : resultBytes;
  }
  // And because it has not ended, where without overlap it would have.
  int64_t bytesBehind(size_t now) const { return started && !waited && now > place ? freedBytes : 0; }
};

// What is known of the collectives of a function before anything moves.
class CollectiveReader {
 public:
  CollectiveReader(const StepProgram& program, const FunctionUses& uses)
      : program_(program), function_(uses.function()), uses_(uses) {}

  std::vector<Collective> run() && {
    for (size_t i = 0; i < function_.instructions.size(); ++i) {
      if (function_.instructions[i].queue == Queue::kCommunication) {
        read(i);
      }
    }
    return std::move(made_);
  }

 private:
  void read(size_t place) {
    const StepInstruction& instruction = function_.instructions[place];
    Collective& made = made_.emplace_back();
    made.place = place;
    made.awaited = instruction.outputs;
    std::set<size_t> inPlace;  // outputs
    for (size_t input = 0; input < instruction.inputs.size(); ++input) {
      const int value = instruction.inputs[input];
      const auto pair = std::find_if(instruction.inPlace.begin(), instruction.inPlace.end(),
                                     [&](const InPlacePair& p) { return p.input == input; });
      const bool takesPlace =
          pair != instruction.inPlace.end() && mayTakePlaceOf(value, place, instruction.outputs[pair->output]);
      readOperand(made, value, takesPlace);
      if (takesPlace) {
        inPlace.insert(pair->output);
        made.ready = std::max(made.ready, uses_.readBefore(value, place));
      }
    }
    for (size_t output = 0; output < instruction.outputs.size(); ++output) {
      const int value = instruction.outputs[output];
      const int replaced = uses_.replaced(value);
      const bool isNew = inPlace.count(output) == 0 && replaced < 0;
      made.resultBytes += isNew ? program_.values[value].bytes : 0;
      made.freedBytes += isNew && !uses_.isReadAfter(value, place) ? program_.values[value].bytes : 0;
      made.ready = replaced < 0 ? made.ready : std::max(made.ready, uses_.readBefore(replaced, place));
      makers_[value] = static_cast<int>(made_.size()) - 1;
    }
  }

  // Nothing else reads it later; and if it is an argument, it came in only for this function (storage.h), or `output`
  // is its new content.
  bool mayTakePlaceOf(int value, size_t place, int output) const {
    if (uses_.isReadAfter(value, place)) {
      return false;
    }
    const StepName* argument = uses_.argument(uses_.shown(value));
    if (argument == nullptr || uses_.replaced(output) == argument->value) {
      return true;
    }
    const plan::FunctionKind kind = function_.kind;
    return (argument->memory == plan::ACTIVATION && isPerMicroBatch(kind) && kind != plan::FORWARD) ||
           (argument->memory == plan::ACCUMULATOR && kind == plan::UPDATE);
  }

  void readOperand(Collective& made, int value, bool takesPlace) {
    const auto maker = makers_.find(value);
    if (maker != makers_.end()) {
      made.before.push_back(maker->second);
      made.ready = std::max(made.ready, made_[maker->second].ready);
    } else {
      made.ready = std::max(made.ready, uses_.madeBefore(value));
    }
    if (!takesPlace) {
      made.held.push_back(uses_.shown(value));
      const StepName* argument = uses_.argument(made.held.back());
      const bool lasts = argument != nullptr && argument->memory != plan::ACTIVATION;
      const bool frees = !lasts && !uses_.isReadAfter(value, made.place);
      made.freedBytes += frees ? program_.values[value].bytes : 0;
    }
  }

  const StepProgram& program_;
  const StepFunction& function_;
  const FunctionUses& uses_;
  std::map<int, int> makers_;  // collectives by what they make
  std::vector<Collective> made_;
};

// Which collectives may start at a place, as places go by: those that stand before it, then those that are ready, if
// `mayStart` says so.
class Starts {
 public:
  explicit Starts(const std::vector<Collective>& all) : all_(all), byReady_(all.size()) {
    std::iota(byReady_.begin(), byReady_.end(), 0);
    std::stable_sort(byReady_.begin(), byReady_.end(), [&](int a, int b) { return all_[a].ready < all_[b].ready; });
  }

  template <typename MayStart, typename Start>
  void run(size_t place, const MayStart& mayStart, const Start& start) {
    const auto startOnce = [&](int k) {
      if (!all_[k].started) {
        start(k);
      }
    };
    for (; due_ < all_.size() && all_[due_].place < place; ++due_) {
      startOnce(static_cast<int>(due_));
    }
    for (; ready_ < byReady_.size() && all_[byReady_[ready_]].ready <= place; ++ready_) {
      const int k = byReady_[ready_];
      (all_[k].relieves() ? relieving_ : growing_).insert(k);
    }
    for (auto k = relieving_.begin(); k != relieving_.end();) {
      const bool starts = all_[*k].started || mayStart(*k);
      if (starts) {
        startOnce(*k);
      }
      k = starts ? relieving_.erase(k) : std::next(k);
    }
    while (!growing_.empty() && (all_[*growing_.begin()].started || mayStart(*growing_.begin()))) {
      startOnce(*growing_.begin());
      growing_.erase(growing_.begin());
    }
  }

 private:
  const std::vector<Collective>& all_;
  std::vector<int> byReady_;
  size_t due_ = 0;                     // the first that may not have started
  size_t ready_ = 0;                   // of byReady_, the first that is not ready
  std::set<int> relieving_, growing_;  // ready and, as far as is known, not started
};

// The collectives that are under way, and the room that they need.
class UnderWay {
 public:
  explicit UnderWay(std::vector<Collective>& all) : all_(all) {}

  bool empty() const { return inOrder_.empty(); }
  Collective& first() const { return all_[inOrder_.front()]; }

  void add(int k) {
    inOrder_.push_back(k);
    inRoom_.push_back(k);
  }
  void remove(const Collective& one) {
    std::erase_if(inOrder_, [&](int k) { return &all_[k] == &one; });
  }

  // Nothing but a later collective asks for the value any more.
  void forget(int value) {
    for (const int k : inOrder_) {
      std::erase(all_[k].held, value);
      std::erase(all_[k].awaited, value);
    }
  }

  // One that reads the value; null if none does.
  Collective* readerOf(int value) const {
    for (const int k : inOrder_) {
      if (std::find(all_[k].held.begin(), all_[k].held.end(), value) != all_[k].held.end()) {
        return &all_[k];
      }
    }
    return nullptr;
  }

  int64_t sum(int64_t (Collective::*bytes)(size_t) const, size_t place) {
    std::erase_if(inRoom_, [&](int k) { return all_[k].waited && all_[k].place < place; });
    return std::accumulate(inRoom_.begin(), inRoom_.end(), int64_t{0},
                           [&](int64_t sum, int k) { return sum + (all_[k].*bytes)(place); });
  }

 private:
  std::vector<Collective>& all_;
  std::deque<int> inOrder_;  // not awaited, as they end
  std::vector<int> inRoom_;  // started; without those that are behind and awaited
};

// Goes through a function in time.
class Placer {
 public:
  Placer(const StepProgram& program, const StepFunction& function, const Machine& machine)
      : function_(function),
        uses_(function),
        queues_(machine),
        all_(CollectiveReader(program, uses_).run()),
        starts_(all_),
        underWay_(all_) {
    for (size_t k = 0; k < all_.size(); ++k) {
      most_ = std::max({most_, kRoom * all_[k].resultBytes, kRoom * all_[k].freedBytes});
      for (const int output : function.instructions[all_[k].place].outputs) {
        makers_[output] = static_cast<int>(k);
      }
    }
  }

  void run() {
    const size_t count = function_.instructions.size();
    for (size_t place = 0; place < count; ++place) {
      if (function_.instructions[place].queue == Queue::kCompute) {
        startAt(place);
        waitFor(place);
        emit(place);
        queues_.compute(function_.instructions[place].time);
        while (!underWay_.empty() && underWay_.first().end <= queues_.now()) {
          wait(underWay_.first());
        }
      }
    }
    startAt(count);
    while (!underWay_.empty()) {
      wait(underWay_.first());
    }
  }

  std::vector<StepInstruction> instructions;
  std::vector<int64_t> before;  // the index of each; -1: a wait

 private:
  void emit(size_t place) {
    instructions.push_back(function_.instructions[place]);
    before.push_back(static_cast<int64_t>(place));
  }

  // Starts what stands before this place, and what else may start; waits where operands pile up.
  void startAt(size_t place) {
    starts_.run(place, [&](int k) { return mayStart(all_[k], place); }, [&](int k) { start(k); });
    while (underWay_.sum(&Collective::bytesBehind, place) > most_) {
      wait(underWay_.first());
    }
  }

  // Are its operands on their way, and is there room for its results?
  bool mayStart(const Collective& one, size_t place) {
    return std::all_of(one.before.begin(), one.before.end(), [&](int other) { return all_[other].started; }) &&
           underWay_.sum(&Collective::bytesAhead, place) + one.resultBytes <= most_;
  }

  void start(int k) {
    Collective& one = all_[k];
    // Collectives run in order: those before have read and made what this one writes over, and nothing else reads it.
    for (const int value : uses_.overwrittenAt(one.place)) {
      underWay_.forget(value);
    }
    one.started = true;
    one.end = queues_.communicate(function_.instructions[one.place].time);
    emit(one.place);
    underWay_.add(k);
  }

  // For the collectives that make what the instruction reads, and those that read what it writes over.
  void waitFor(size_t place) {
    for (const int input : function_.instructions[place].inputs) {
      if (const auto maker = makers_.find(input); maker != makers_.end() && !all_[maker->second].waited) {
        wait(all_[maker->second]);
      }
    }
    for (const int value : uses_.overwrittenAt(place)) {
      while (Collective* reader = underWay_.readerOf(value)) {
        wait(*reader);
      }
    }
  }

  void wait(Collective& one) {
    one.waited = true;
    queues_.waitUntil(one.end);
    underWay_.remove(one);
    StepInstruction made;
    made.kind = Kind::kWait;
    made.inputs = one.awaited;
    made.inputs.insert(made.inputs.end(), one.held.begin(), one.held.end());
    if (!made.inputs.empty()) {
      instructions.push_back(std::move(made));
      before.push_back(-1);
    }
  }

  const StepFunction& function_;
  const FunctionUses uses_;
  TwoQueues queues_;
  std::vector<Collective> all_;  // in program order
  Starts starts_;
  UnderWay underWay_;
  std::map<int, int> makers_;  // of values
  int64_t most_ = 0;           // bytes of room
};

}  // namespace

std::vector<int64_t> overlapCollectives(StepProgram& program, size_t function, const Machine& machine) {
  Placer placer(program, program.functions[function], machine);
  placer.run();
  program.functions[function].instructions = std::move(placer.instructions);
  return std::move(placer.before);
}

}  // namespace weft
