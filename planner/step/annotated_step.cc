#include "planner/step/annotated_step.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/step/pad_masks.h"
#include "planner/step/repeats.h"
#include "planner/step/reshard_paths.h"
#include "planner/step/time_layouts.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

// When a value, or what it was before it was moved or filled, is gathered for its readers.
GatherPolicy gatherOf(const AnnotatedStep& step, const Decisions& decisions, int value) {
  const AnnotatedValue& here = step.values[value];
  if (here.producer < 0) {
    return decisions.arguments[here.source].gather;
  }
  const AnnotatedOp& producer = step.ops[here.producer];
  return producer.kind == AnnotatedOp::Kind::kOperator ? decisions.operators[producer.op].gather
                                                       : gatherOf(step, decisions, producer.operands[0]);
}

// The step while it is made. Everything that stands between a value and its readers is made once for those that share
// it.
class StepWriter {
 public:
  StepWriter(const GraphView& view, const Decisions& decisions)
      : view_(view), decisions_(decisions), meshes_(decisions.meshes()) {}

  const AnnotatedValue& value(int number) const { return step_.values[number]; }
  const Mesh& meshOf(int number) const { return meshes_.withNumber(value(number).mesh); }
  const StageMeshes& meshes() const { return meshes_; }
  const AnnotatedOp* producerOf(int number) const {
    return value(number).producer < 0 ? nullptr : &step_.ops[value(number).producer];
  }

  int addArgument(int source, const Layout& layout, int64_t mesh) { return addValue({source, layout, mesh, -1}); }

  int addResult(AnnotatedOp& op, int source, const Layout& layout) {
    op.results.push_back(
        addValue({source, layout.canonical(), meshes_.number(op.place.stage), static_cast<int>(step_.ops.size())}));
    return op.results.back();
  }

  void add(AnnotatedOp op) { step_.ops.push_back(std::move(op)); }
  void leave(AnnotatedResult result) { step_.results.push_back(result); }
  AnnotatedStep take() {
    AnnotatedStep ordered;
    std::vector<bool> isBehind(step_.ops.size(), false);
    for (const auto& [producer, reshards] : behind_) {
      for (const int op : reshards) {
        isBehind[op] = true;
      }
    }
    for (size_t op = 0; op < step_.ops.size(); ++op) {
      if (!isBehind[op]) {
        moveTo(static_cast<int>(op), ordered);
      }
    }
    ordered.values = std::move(step_.values);
    ordered.results = std::move(step_.results);
    return ordered;
  }

  GatherPolicy gatherOf(int number) const { return weft::gatherOf(step_, decisions_, number); }

  // The value in the layout `wanted`, through one reshard that readers of the same region share.
  int reshard(int from, const Layout& wanted, const Place& reader, bool scattersEach = false) {
    const Layout target = wanted.canonical();
    if (value(from).layout == target) {
      return from;
    }
    const ReaderRegion region = regionOf(gatherOf(from), reader);
    std::vector<int>& made = reshards_[{from, region}];
    const auto known = std::find_if(made.begin(), made.end(), [&](int to) { return value(to).layout == target; });
    if (known != made.end()) {
      return *known;
    }
    const AnnotatedOp* producer = producerOf(from);
    const ReshardReader asked = {reader, isMadeOnce(decisions_, gatherOf(from), reader), scattersEach};
    AnnotatedOp op{AnnotatedOp::Kind::kReshard, -1, {}, {from}, {}};
    op.place = placeOfReshard(value(from).layout, target,
                              producer == nullptr ? std::nullopt : std::optional<Place>(producer->place), asked);
    // With overlap it starts there in any case, and is awaited where the next micro-batch's sum is added to it.
    if (producer != nullptr && !decisions_.overlap &&
        standsBehindProducer(value(from).layout, target, asked, view_.typeOf(value(from).source).bytes())) {
      behind_[value(from).producer].push_back(static_cast<int>(step_.ops.size()));
    }
    const int to = addResult(op, value(from).source, target);
    add(std::move(op));
    made.push_back(to);
    return to;
  }

  int mask(int from, int64_t dim, double fill, const Place& reader) {
    int& known = masks_[{from, dim, fill, regionOf(gatherOf(from), reader)}];
    if (known == 0) {  // value 0 is an argument, or the step is empty: never a mask
      AnnotatedOp op{AnnotatedOp::Kind::kMask, -1, reader, {from}, {}, dim};
      known = addResult(op, value(from).source, value(from).layout);
      add(std::move(op));
    }
    return known;
  }

 private:
  int addValue(AnnotatedValue made) {
    step_.values.push_back(std::move(made));
    return static_cast<int>(step_.values.size()) - 1;
  }

  // With what stands behind it, the last that was made first.
  void moveTo(int op, AnnotatedStep& ordered) {
    for (const int result : step_.ops[op].results) {
      step_.values[result].producer = static_cast<int>(ordered.ops.size());
    }
    ordered.ops.push_back(std::move(step_.ops[op]));
    const auto behind = behind_.find(op);
    for (auto i = behind == behind_.end() ? 0 : behind->second.size(); i > 0; --i) {
      moveTo(behind->second[i - 1], ordered);
    }
  }

  const GraphView& view_;
  const Decisions& decisions_;
  StageMeshes meshes_;
  AnnotatedStep step_;
  std::map<int, std::vector<int>> behind_;                               // reshards that stand behind an operation
  std::map<std::pair<int, ReaderRegion>, std::vector<int>> reshards_;    // of a value for a region
  std::map<std::tuple<int, int64_t, double, ReaderRegion>, int> masks_;  // by value, dimension, fill, region
};

// Stripes of the batch: as the record says where meshes differ, else the ways in which the first input splits it.
int64_t stripesOf(const GraphView& view, const Decisions& decisions) {
  for (size_t i = 0; decisions.stripes == 0 && i < decisions.arguments.size(); ++i) {
    const GraphArgument& argument = view.graph().arguments[i];
    if (argument.kind == ArgumentKind::kInput && argument.hasBatch()) {
      return decisions.arguments[i].layout.parts(argument.batchDim);
    }
  }
  return std::max<int64_t>(decisions.stripes, 1);
}

class Annotator {
 public:
  Annotator(const GraphView& view, const Decisions& decisions, const StepLayouts& layouts)
      : view_(view), decisions_(decisions), levels_(decisions), layouts_(layouts), step_(view, decisions) {}

  absl::StatusOr<AnnotatedStep> run() {
    for (size_t i = 0; i < view_.graph().arguments.size(); ++i) {
      const int64_t mesh = step_.meshes().number(decisions_.arguments[i].stage);
      current_.push_back(step_.addArgument(static_cast<int>(i), layouts_.values[i], mesh));
    }
    current_.resize(view_.values(), -1);
    for (int op = 0; op < view_.operators(); ++op) {
      WEFT_RETURN_IF_ERROR(visit(op));
    }
    for (unsigned r = 0; r < view_.graph().results.size(); ++r) {
      WEFT_RETURN_IF_ERROR(leave(r));
    }
    return step_.take();
  }

 private:
  const OperatorDecision& decisionOf(int op) const { return decisions_.operators[op]; }
  const Place& placeOf(int op) const { return layouts_.operators[op].place; }

  absl::Status visit(int op) {
    AnnotatedOp made{AnnotatedOp::Kind::kOperator, op, placeOf(op), {}, {}};
    const size_t count = view_.op(op).operands.size();
    for (unsigned i = 0; i < count; ++i) {
      made.operands.push_back(current_[view_.operandOf(op, i)]);
    }
    for (unsigned i = 0; i < count; ++i) {
      made.operands[i] = brought(made.operands[i], layouts_.operators[op].reads[i], made.place);
    }
    for (unsigned i = 0; i < count; ++i) {
      const LayoutRead request = {layouts_.operators[op].reads[i],
                                  absl::StrCat(view_.op(op).label(), " reads operand ", i),
                                  scattersGradient(levels_, view_.op(op).gradientOf)};
      WEFT_ASSIGN_OR_RETURN(made.operands[i], read(made.operands[i], request, made.place, view_.op(op).line));
      WEFT_ASSIGN_OR_RETURN(made.operands[i], masked(made.operands[i], op, i));
    }
    for (unsigned r = 0; r < view_.op(op).results.size(); ++r) {
      const int value = view_.resultOf(op, r);
      current_[value] = step_.addResult(made, value, layouts_.values[value]);
    }
    step_.add(std::move(made));
    for (const auto& [r, asked] : decisionOf(op).results) {
      const int value = view_.resultOf(op, r);
      current_[value] = step_.reshard(current_[value], layouts_.seen[value], placeOf(op));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<int> read(int value, const LayoutRead& request, const Place& reader, const SourcePlace& line) {
    const Mesh& mesh = step_.meshes().ofStage(reader.stage);
    const absl::StatusOr<std::vector<Layout>> path = pathOfRead(step_.value(value).layout, request, mesh);
    if (!path.ok()) {
      return errorAt(line, std::string(path.status().message()));
    }
    for (const Layout& next : *path) {
      value = step_.reshard(value, next, reader, request.scattersEach);
    }
    return value;
  }

  absl::StatusOr<int> masked(int value, int op, unsigned operand) {
    const OperatorLayouts& layouts = layouts_.operators[op];
    const GraphOperator& reader = view_.op(op);
    std::vector<DType> types;
    for (unsigned i = 0; i < reader.operands.size(); ++i) {
      types.push_back(view_.typeOf(view_.operandOf(op, i)).type);
    }
    for (const PadMask& mask : padMasks(reader.facts, layouts.rule, operand, types, step_.value(value).layout)) {
      if (!mask.fill) {
        return errorAt(reader.line, absl::StrCat(reader.label(), " cannot run on padded dimension ", mask.dim,
                                                 " of operand ", operand, "; split another dimension"));
      }
      value = step_.mask(value, static_cast<int64_t>(mask.dim), *mask.fill, layouts.place);
    }
    return value;
  }

  // A value of another mesh on that of its reader: sent once for each submesh that reads it, in the splits of its first
  // reader there. What depends on nothing is made again instead.
  int brought(int value, const Layout& wanted, const Place& reader) {
    if (step_.value(value).mesh == step_.meshes().number(reader.stage)) {
      return value;
    }
    int& known = brought_[{value, step_.meshes().submeshes[reader.stage]}];
    if (known == 0) {
      const AnnotatedOp* producer = step_.producerOf(value);
      const bool generated = producer != nullptr && producer->kind == AnnotatedOp::Kind::kOperator &&
                             producer->operands.empty() && decisionOf(producer->op).results.empty();
      known = generated ? madeAgain(value, wanted, reader) : transferred(value, wanted, reader);
    }
    return known;
  }

  int madeAgain(int value, const Layout& wanted, const Place& reader) {
    const AnnotatedOp original = *step_.producerOf(value);
    AnnotatedOp copy{AnnotatedOp::Kind::kOperator, original.op, reader, {}, {}};
    int made = 0;
    for (const int result : original.results) {
      const AnnotatedValue before = step_.value(result);
      const bool read = result == value;
      const int again = step_.addResult(copy, before.source,
                                        read ? likeInTime(wanted, before.layout) : Layout(before.layout.dimensions()));
      made = read ? again : made;
    }
    step_.add(std::move(copy));
    return made;
  }

  // What is sent has no sum partial: it is reduced where it is made, over the micro-batches first.
  int transferred(int value, const Layout& wanted, const Place& reader) {
    const AnnotatedOp* producer = step_.producerOf(value);
    if (producer == nullptr) {
      const ArgumentDecision& decision = decisions_.arguments[step_.value(value).source];
      return transfer(value, decision.layoutOn(step_.meshes().number(reader.stage)), reader);
    }
    const Layout splits = likeInTime(wanted, step_.value(value).layout);
    for (const PlacedLayout& next : pathOfReduced(step_.value(value).layout, producer->place)) {
      value = step_.reshard(value, next.layout, next.place);
    }
    return transfer(value, splits, reader);
  }

  int transfer(int value, const Layout& layout, const Place& reader) {
    AnnotatedOp op{AnnotatedOp::Kind::kTransfer, -1, reader, {value}, {}};
    const int made = step_.addResult(op, step_.value(value).source, layout);
    if (step_.producerOf(value) == nullptr) {
      holders_.emplace_back(value, made);
    }
    step_.add(std::move(op));
    return made;
  }

  // A result leaves in the update: what replaces an argument in the argument's layout, all others with no sum partial.
  absl::Status leave(unsigned r) {
    const GraphResult& result = view_.graph().results[r];
    int value = current_[view_.valueOf(result.value)];
    const std::optional<Layout> updated =
        result.updates ? std::optional<Layout>(step_.value(static_cast<int>(*result.updates)).layout) : std::nullopt;
    const std::string reason = absl::StrCat("result ", r);
    const absl::StatusOr<Layout> wanted = layoutOfResult(
        step_.value(value).layout, {std::to_string(r), updated, stripesOf(view_, decisions_)}, step_.meshOf(value));
    if (!wanted.ok()) {
      return errorAt(view_.graph().line, std::string(wanted.status().message()));
    }
    const LayoutRead leaving = {.wanted = *wanted, .reason = reason, .collects = !result.updates};
    WEFT_ASSIGN_OR_RETURN(value, read(value, leaving, {RunsIn::kUpdate, stageOf(value)}, view_.graph().line));
    step_.leave({value, result.updates});
    for (const auto& [argument, held] : holders_) {
      if (result.updates && static_cast<int>(*result.updates) == argument) {
        const Place there = {RunsIn::kUpdate, step_.producerOf(held)->place.stage};
        step_.leave({transfer(value, step_.value(held).layout, there), result.updates});
      }
    }
    return absl::OkStatus();
  }

  int64_t stageOf(int value) const {
    const AnnotatedOp* producer = step_.producerOf(value);
    return producer == nullptr ? decisions_.arguments[step_.value(value).source].stage : producer->place.stage;
  }

  const GraphView& view_;
  const Decisions& decisions_;
  const ZeroLevels levels_;
  const StepLayouts& layouts_;
  StepWriter step_;
  std::vector<int> current_;                        // of each value of the graph: what its readers read
  std::map<std::pair<int, int64_t>, int> brought_;  // by value and the submesh that reads it
  std::vector<std::pair<int, int>> holders_;        // arguments, and what holds them on another mesh
};

// Copies of forward operations in the backward pass, each made before its first reader there. What the backward pass
// gathers itself is gathered once for copies and others, where the first of them reads it.
class Copier {
 public:
  Copier(const AnnotatedStep& step, const std::vector<bool>& repeated) : step_(step), repeated_(repeated) {
    made_.values = step.values;
    made_.results = step.results;
    made_.ops.reserve(step.ops.size());
  }

  AnnotatedStep run() {
    for (size_t i = 0; i < step_.ops.size(); ++i) {
      const AnnotatedOp& op = step_.ops[i];
      AnnotatedOp kept = op;
      if (op.place.where == RunsIn::kBackward) {
        kept.repeated = repeated_[i];
        for (int& operand : kept.operands) {
          operand = again(operand, op.place);
        }
        if (const std::optional<int> known = madeBefore(kept)) {
          copies_[op.results[0]] = *known;
          continue;
        }
      }
      add(std::move(kept));
    }
    return std::move(made_);
  }

 private:
  void add(AnnotatedOp op) {
    for (const int result : op.results) {
      made_.values[result].producer = static_cast<int>(made_.ops.size());
    }
    if (op.kind == AnnotatedOp::Kind::kReshard && op.place.where == RunsIn::kBackward) {
      reshards_[{op.operands[0], op.place.stage}].push_back(op.results[0]);
    }
    made_.ops.push_back(std::move(op));
  }

  // What a reshard of the backward pass makes, where another one there has made it already.
  std::optional<int> madeBefore(const AnnotatedOp& op) const {
    const auto known =
        op.kind == AnnotatedOp::Kind::kReshard ? reshards_.find({op.operands[0], op.place.stage}) : reshards_.end();
    if (known == reshards_.end()) {
      return std::nullopt;
    }
    const AnnotatedValue& wanted = step_.values[op.results[0]];
    const auto same = std::find_if(known->second.begin(), known->second.end(), [&](int value) {
      return made_.values[value].layout == wanted.layout && made_.values[value].mesh == wanted.mesh;
    });
    return same == known->second.end() ? std::nullopt : std::optional(*same);
  }

  int again(int value, const Place& reader) {
    const int producer = step_.values[value].producer;
    if (producer < 0 || step_.ops[producer].place.stage != reader.stage) {
      return value;
    }
    const auto known = copies_.find(value);
    if (known != copies_.end()) {
      return known->second;
    }
    if (!repeated_[producer] || step_.ops[producer].place.where == RunsIn::kBackward) {
      return value;
    }
    AnnotatedOp copy = step_.ops[producer];
    copy.place.where = RunsIn::kBackward;
    copy.repeated = true;
    for (int& operand : copy.operands) {
      operand = again(operand, copy.place);
    }
    if (const std::optional<int> there = madeBefore(copy)) {
      return copies_[value] = *there;
    }
    for (int& result : copy.results) {
      made_.values.push_back(step_.values[result]);
      copies_[result] = static_cast<int>(made_.values.size()) - 1;
      result = copies_[result];
    }
    add(std::move(copy));
    return copies_[value];
  }

  const AnnotatedStep& step_;
  const std::vector<bool>& repeated_;
  AnnotatedStep made_;
  std::map<int, int> copies_;                                     // of each value
  std::map<std::pair<int, int64_t>, std::vector<int>> reshards_;  // of a value in the backward pass of a stage
};

}  // namespace

std::vector<std::vector<int>> AnnotatedStep::readers() const {
  std::vector<std::vector<int>> readers(values.size());
  for (size_t op = 0; op < ops.size(); ++op) {
    for (const int value : ops[op].operands) {
      readers[value].push_back(static_cast<int>(op));
    }
  }
  return readers;
}

absl::StatusOr<AnnotatedStep> annotate(const GraphView& view, const Decisions& decisions) {
  WEFT_ASSIGN_OR_RETURN(const StepLayouts layouts, layoutsOf(view, decisions));
  return Annotator(view, decisions, layouts).run();
}

ReshardDecision reshardEntry(const GraphView& view, const Decisions& decisions, const AnnotatedStep& step, int op) {
  const AnnotatedOp& made = step.ops[op];
  const AnnotatedValue& result = step.values[made.results[0]];
  ReshardDecision entry;
  entry.how = made.kind == AnnotatedOp::Kind::kMask ? howOfMask(made.dim)
                                                    : result.layout.print(decisions.meshes().withNumber(result.mesh));
  entry.stage = made.place.stage;
  const std::optional<int> producer = view.producerOf(result.source);
  entry.id = producer ? view.op(*producer).id : -1;
  entry.index = view.indexOf(result.source);
  return entry;
}

std::vector<bool> repeatedOps(const GraphView& view, const Decisions& decisions, const AnnotatedStep& step) {
  const Repeats repeats(decisions);
  std::vector<bool> repeated(step.ops.size(), false);
  for (size_t i = 0; i < step.ops.size(); ++i) {
    const AnnotatedOp& op = step.ops[i];
    const auto isPartial = [&](int value) { return partialOverTime(step.values[value].layout); };
    // A reshard that adds up what micro-batches make would count one twice.
    const bool partial = std::any_of(op.results.begin(), op.results.end(), isPartial) ||
                         (op.movesOrFills() && isPartial(op.operands[0]));
    if (op.kind == AnnotatedOp::Kind::kOperator) {
      repeated[i] = repeats.ofOperator(view.op(op.op).id, op.place, partial);
    } else if (op.movesOrFills()) {
      const int source = step.values[op.operands[0]].producer;
      const bool isGatheredAgain = gatherOf(step, decisions, op.operands[0]) == GatherPolicy::kEachCall;
      const bool follows =
          isGatheredAgain || (source >= 0 && step.ops[source].place.stage == op.place.stage && repeated[source]);
      repeated[i] =
          repeats.ofMove(reshardEntry(view, decisions, step, static_cast<int>(i)), op.place, partial, follows);
    }
  }
  return repeated;
}

AnnotatedStep withCopies(const AnnotatedStep& step, const std::vector<bool>& repeated) {
  return Copier(step, repeated).run();
}

}  // namespace weft
