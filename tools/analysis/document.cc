#include "tools/analysis/document.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "planner/decisions.h"
#include "planner/derive/zero_words.h"
#include "planner/explain/prices_json.h"
#include "runtime/base/status.h"
#include "runtime/plan/activation_rings.h"
#include "runtime/plan/describe.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/statistics.h"
#include "tools/analysis/step_peak.h"

namespace weft::tools {
namespace {

using Json = nlohmann::ordered_json;

// Points of a memory curve: more than a screen has columns. Of neighbors that are merged the greatest stays.
constexpr size_t kCurvePoints = 1500;
constexpr size_t kPeakTensors = 40;
// An operator without a fold name of its own, such as a sum of gradients, is folded with the one before it if the next
// one that has a name comes this soon.
constexpr int kNameless = 3;

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

std::string shapeText(const plan::Buffer& buffer) {
  return absl::StrCat(dtypeName(dtypeOf(buffer.type())), "[", absl::StrJoin(buffer.shape(), ","), "]");
}

Json listOf(const google::protobuf::RepeatedField<int64_t>& values) {
  return std::vector<int64_t>(values.begin(), values.end());
}

// Source lines of all submeshes, each once.
class Sources {
 public:
  int64_t of(const plan::Plan& submesh, const plan::Instruction& instruction) {
    return number(sourceOf(submesh, instruction));
  }
  int64_t number(const std::string& text) {
    if (text.empty()) {
      return -1;
    }
    const auto [it, added] = numbers_.try_emplace(text, static_cast<int64_t>(texts_.size()));
    if (added) {
      texts_.push_back(text);
    }
    return it->second;
  }
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::map<std::string, int64_t> numbers_;
  std::vector<std::string> texts_;
};

// What an operator's factors are split over, by label and place in the step; "" where operators of one label differ.
class Splits {
 public:
  explicit Splits(const Decisions& decisions) {
    const StageMeshes meshes = decisions.meshes();
    for (const OperatorDecision& op : decisions.operators) {
      const std::string text = textOf(op, meshes.ofStage(op.stage));
      const auto [it, added] = texts_.try_emplace({op.label, op.runsIn}, text);
      it->second = added || it->second == text ? it->second : "";
    }
  }

  std::string of(const std::string& label, plan::FunctionKind kind) const {
    const RunsIn where = kind == plan::PROLOGUE  ? RunsIn::kPrologue
                         : kind == plan::FORWARD ? RunsIn::kForward
                         : kind == plan::UPDATE  ? RunsIn::kUpdate
                                                 : RunsIn::kBackward;
    const auto found = texts_.find({label, where});
    return found == texts_.end() || kind == plan::INIT ? "" : found->second;
  }

 private:
  static std::string textOf(const OperatorDecision& op, const Mesh& mesh) {
    std::vector<std::string> parts;
    for (const auto& [factor, axes] : op.axes) {
      parts.push_back(absl::StrCat(factor, " over ", Layout({axes}).print(mesh)));
    }
    return absl::StrCat(parts.empty() ? "no factor is split" : absl::StrJoin(parts, ", "), " (", op.origin, ")");
  }

  std::map<std::pair<std::string, RunsIn>, std::string> texts_;
};

std::string groupsText(const plan::Plan& submesh, const plan::Collective& collective) {
  if (collective.kind() == plan::PERMUTE) {
    return "pairs of ranks";
  }
  std::vector<std::string> groups;
  for (const auto& group : submesh.group_sets(static_cast<int>(collective.group_set())).groups()) {
    groups.push_back(absl::StrCat("[", absl::StrJoin(group.ranks(), ","), "]"));
  }
  return absl::StrJoin(groups, " ");
}

std::string attributeText(const plan::Attribute& attribute) {
  switch (attribute.value_case()) {
    case plan::Attribute::kInteger:
      return absl::StrCat(attribute.integer());
    case plan::Attribute::kReal:
      return absl::StrCat(attribute.real());
    case plan::Attribute::kText:
      return attribute.text();
    case plan::Attribute::kIntegers:
      return absl::StrCat("[", absl::StrJoin(attribute.integers().values(), ", "), "]");
    case plan::Attribute::kFloats:
      return absl::StrCat("[", absl::StrJoin(attribute.floats().values(), ", "), "]");
    default:
      return "";
  }
}

std::vector<std::string> foldNames(const plan::Function& function) {
  std::vector<std::string> names;
  for (const plan::Instruction& instruction : function.instructions()) {
    names.push_back(instruction.has_transfer() ? "" : foldName(instruction.label()));
  }
  for (size_t i = 1; i < names.size(); ++i) {
    if (function.instructions(static_cast<int>(i)).has_transfer()) {
      continue;  // what goes to another stage is always seen
    }
    const size_t end = std::min(names.size(), i + 1 + kNameless);
    const bool soon = std::any_of(names.begin() + static_cast<int64_t>(i), names.begin() + static_cast<int64_t>(end),
                                  [](const std::string& name) { return !name.empty(); });
    if (names[i].empty() && soon) {
      names[i] = names[i - 1];
    }
  }
  return names;
}

struct Prediction {
  schedule::PlanTimes times;
  schedule::PlanSimulation run;
};

class Writer {
 public:
  Writer(const ViewInput& input, const Decisions& decisions, const Prediction& prediction)
      : input_(input),
        plan_(*input.plan),
        submeshes_(submeshesOf(plan_)),
        decisions_(decisions),
        splits_(decisions),
        prediction_(prediction) {}

  Json run() {
    Json out = {{"version", 1}, {"program", program()}, {"machine", machine()}, {"predicted", predicted()}};
    out["sources"] = Json::array();
    out["submeshes"] = Json::array();
    int64_t firstRank = 0;
    for (size_t b = 0; b < submeshes_.size(); ++b) {
      out["submeshes"].push_back(submeshJson(b, firstRank));
      firstRank += submeshes_[b]->ranks();
    }
    out["tensors"] = tensors();
    for (const FrontierPoint& point : parseOtherPlans(decisions_.prices).frontier) {
      out["frontier"].push_back(
          {{"peak_bytes", point.peakBytes}, {"step_seconds", point.seconds}, {"plan", point.plan}});
    }
    if (input_.profile != nullptr) {
      out["executed"] = executed();
    }
    out["sources"] = sources_.texts();
    return out;
  }

 private:
  Json program() const {
    std::set<int64_t> stages;
    for (const plan::Plan* submesh : submeshes_) {
      for (const plan::Function& function : submesh->functions()) {
        stages.insert(function.stage());
      }
    }
    const ScheduleDecision& schedule = decisions_.schedule;
    Json out = {{"name", input_.name},
                {"program", plan_.program()},
                {"mesh", plan_.mesh()},
                {"ranks", plan_.ranks()},
                {"micro_batches", plan_.micro_batches()},
                {"stages", stages.size()},
                {"submeshes", submeshes_.size()},
                {"schedule", schedule.submeshes.size() > 1 ? schedule.kind : ""},
                {"virtual", schedule.virtualStages},
                {"zero", decisions_.zero}};
    if (!zeroWords(decisions_).empty()) {
      out["zero"] = zeroText(decisions_);
    }
    const auto gathered = [](const auto& decision) { return decision.gather == GatherPolicy::kEachCall; };
    out["gathered_each_call"] = std::count_if(decisions_.arguments.begin(), decisions_.arguments.end(), gathered) +
                                std::count_if(decisions_.operators.begin(), decisions_.operators.end(), gathered);
    const auto again = [](const auto& decision) { return decision.recompute; };
    out["recomputed"] = std::count_if(decisions_.operators.begin(), decisions_.operators.end(), again) +
                        std::count_if(decisions_.reshards.begin(), decisions_.reshards.end(), again);
    out["conflicts"] = decisions_.conflicts;
    return out;
  }

  Json machine() const {
    return {{"name", input_.machine.name},
            {"flops", input_.machine.flops},
            {"memory_bandwidth", input_.machine.memoryBandwidth},
            {"link_bandwidth", input_.machine.linkBandwidth},
            {"link_latency", input_.machine.linkLatency},
            {"launch_latency", input_.machine.launchLatency}};
  }

  Json predicted() const {
    const PlanStatistics statistics = statisticsOf(plan_);
    Json out = {{"step", prediction_.run.seconds},
                {"bubble", prediction_.run.bubbleRatio},
                {"peak_bytes", statistics.peakBytes},
                {"flops", statistics.flops}};
    out["collectives"] = Json::object();
    for (const auto& [kind, count] : statistics.collectives) {
      out["collectives"][kind] = {{"calls", count.calls}, {"bytes", count.bytesReceived}};
    }
    return out;
  }

  Json submeshJson(size_t b, int64_t firstRank) {
    const plan::Plan& submesh = *submeshes_[b];
    Json out = {{"first_rank", firstRank}, {"ranks", submesh.ranks()}, {"peak_bytes", submesh.memory().peak_bytes()}};
    out["busy"] = prediction_.run.ranks[firstRank].busy;
    out["regions"] = regions(submesh);
    out["buffers"] = buffers(submesh);
    out["functions"] = Json::array();
    for (int f = 0; f < submesh.functions_size(); ++f) {
      out["functions"].push_back(functionJson(b, f));
    }
    const std::vector<PredictedCall> calls = predictedCalls(b, prediction_.times, prediction_.run.ranks[firstRank]);
    out["calls"] = callsJson(calls);
    out["memory"] = memory(b, calls);
    if (input_.profile != nullptr) {
      out["measured_calls"] =
          callsJson(predictedCalls(b, input_.profile->means.times, input_.profile->simulated.ranks[firstRank]));
    }
    return out;
  }

  // A call of the submesh's first rank, whose times stand for those of all its ranks.
  struct PredictedCall {
    const plan::Action* action = nullptr;
    double start = 0;
    double end = 0;
    double lead = 0;  // waiting for a message, before the work
  };

  std::vector<PredictedCall> predictedCalls(size_t b, const schedule::PlanTimes& times,
                                            const schedule::RankRun& run) const {
    std::vector<PredictedCall> calls;
    const auto& step = submeshes_[b]->schedules(0).step();
    for (int i = 0; i < step.size(); ++i) {
      const plan::Function& function = submeshes_[b]->functions(static_cast<int>(step[i].function()));
      const std::vector<double>& seconds = times.instructions[b][step[i].function()];
      const double work = std::accumulate(seconds.begin(), seconds.end(), 0.0);
      const bool receives = function.instructions_size() > 0 && function.instructions(0).has_transfer() &&
                            !function.instructions(0).transfer().send();
      const double lead = receives ? std::max(run.ends[i] - run.starts[i] - work, 0.0) : 0;
      calls.push_back({&step[i], run.starts[i], run.ends[i], lead});
    }
    return calls;
  }

  static Json callsJson(const std::vector<PredictedCall>& calls) {
    Json out = Json::array();
    for (const PredictedCall& call : calls) {
      out.push_back({call.action->function(), call.action->micro_batch(), call.start, call.end, call.lead});
    }
    return out;
  }

  static Json regions(const plan::Plan& submesh) {
    Json out = Json::array();
    std::map<uint32_t, std::set<uint32_t>> functions = ringFunctions(submesh);
    for (const plan::Region& region : submesh.memory().regions()) {
      Json entry = {{"memory", lower(plan::MemoryClass_Name(region.memory()))},
                    {"bytes", region.bytes()},
                    {"slots", region.slots()}};
      if (const std::set<uint32_t>& life = functions[region.ring()];
          region.memory() == plan::ACTIVATION && !life.empty()) {
        entry["stage"] = region.stage();
        entry["from"] = submesh.functions(static_cast<int>(*life.begin())).name();
        entry["to"] = submesh.functions(static_cast<int>(*life.rbegin())).name();
      }
      out.push_back(entry);
    }
    return out;
  }

  // [label, class, type and shape, bytes, storage]: buffers of equal storage are the same memory.
  static Json buffers(const plan::Plan& submesh) {
    Json out = Json::array();
    for (int i = 0; i < submesh.buffers_size(); ++i) {
      const plan::Buffer& buffer = submesh.buffers(i);
      const int64_t storage = buffer.storage() > 0 ? static_cast<int64_t>(buffer.storage()) : -1 - i;
      out.push_back(
          {buffer.label(), lower(plan::MemoryClass_Name(buffer.memory())), shapeText(buffer), buffer.bytes(), storage});
    }
    return out;
  }

  Json functionJson(size_t b, int f) {
    const plan::Plan& submesh = *submeshes_[b];
    const plan::Function& function = submesh.functions(f);
    int64_t calls = 0;
    for (const plan::Action& action : submesh.schedules(0).step()) {
      calls += action.function() == static_cast<uint32_t>(f) ? 1 : 0;
    }
    Json out = {{"name", function.name()},
                {"kind", lower(plan::FunctionKind_Name(function.kind()))},
                {"stage", function.stage()},
                {"calls", calls}};
    out["ops"] = Json::array();
    const std::vector<std::string> folds = foldNames(function);
    for (int i = 0; i < function.instructions_size(); ++i) {
      Json op = operatorJson(submesh, function, function.instructions(i));
      op["seconds"] = prediction_.times.instructions[b][f][i];
      if (!folds[i].empty()) {
        op["fold"] = folds[i];
      }
      if (input_.profile != nullptr && calls > 0) {
        op["measured"] = input_.profile->means.times.instructions[b][f][i];
      }
      out["ops"].push_back(std::move(op));
    }
    return out;
  }

  Json operatorJson(const plan::Plan& submesh, const plan::Function& function, const plan::Instruction& instruction) {
    Json op = {{"label", instruction.label()}, {"what", whatOf(instruction)}};
    op["source"] = sources_.of(submesh, instruction);
    op["in"] = Json::array();
    op["out"] = Json::array();
    int64_t bytes = 0;
    for (const plan::Operand& operand : instruction.inputs()) {
      op["in"].push_back(operand.buffer());
      bytes += submesh.buffers(static_cast<int>(operand.buffer())).bytes();
    }
    for (const plan::Operand& operand : instruction.outputs()) {
      op["out"].push_back(operand.buffer());
      bytes += submesh.buffers(static_cast<int>(operand.buffer())).bytes();
    }
    op["flops"] = instruction.flops();
    op["bytes"] = bytes;
    addMoving(submesh, instruction, op);
    if (const std::string splits = splits_.of(instruction.label(), function.kind()); !splits.empty()) {
      op["splits"] = splits;
    }
    std::map<std::string, std::string> attributes;
    for (const auto& [name, attribute] : instruction.attributes()) {
      attributes[name] = attributeText(attribute);
    }
    if (!attributes.empty()) {
      op["attributes"] = attributes;
    }
    return op;
  }

  static std::string whatOf(const plan::Instruction& instruction) {
    return instruction.has_collective() ? collectiveKindName(instruction.collective().kind())
           : instruction.has_transfer() ? (instruction.transfer().send() ? "send" : "receive")
                                        : instruction.kernel();
  }

  void addMoving(const plan::Plan& submesh, const plan::Instruction& instruction, Json& op) const {
    if (instruction.has_collective()) {
      const plan::Collective& collective = instruction.collective();
      op["moved"] = collective.bytes_received();
      op["why"] = collective.reason();
      op["groups"] = groupsText(submesh, collective);
    } else if (instruction.has_transfer()) {
      const plan::Transfer& transfer = instruction.transfer();
      const plan::Operand& carried = transfer.send() ? instruction.inputs(0) : instruction.outputs(0);
      op["moved"] = submesh.buffers(static_cast<int>(carried.buffer())).bytes();
      op["why"] = transfer.reason();
      op["channel"] = transfer.channel();
      op["other"] = transfer.submesh();
    }
  }

  // The curve over the simulated step: [seconds, activations, transients] at the begin of an instruction.
  Json memory(size_t b, const std::vector<PredictedCall>& calls) {
    const plan::Plan& submesh = *submeshes_[b];
    const StepCurve curve = stepCurve(submesh);
    const StepPeak peak = stepPeak(submesh);
    const std::vector<double> starts = instructionStarts(b, calls);
    Json out = {{"staying", curve.staying},       {"peak_bytes", peak.bytes}, {"function", peak.function},
                {"micro_batch", peak.microBatch}, {"operator", peak.name},    {"source", sources_.number(peak.source)}};
    const auto sum = [&](size_t i) { return curve.activations[i] + curve.transients[i]; };
    const size_t stride = std::max<size_t>(1, (starts.size() + kCurvePoints - 1) / kCurvePoints);
    out["curve"] = Json::array();
    for (size_t from = 0; from < starts.size(); from += stride) {
      size_t most = from;
      for (size_t i = from; i < std::min(from + stride, starts.size()); ++i) {
        most = sum(i) > sum(most) ? i : most;
      }
      out["curve"].push_back({starts[most], curve.activations[most], curve.transients[most]});
    }
    out["tensors"] = Json::array();
    for (size_t i = 0; i < std::min(peak.tensors.size(), kPeakTensors); ++i) {
      const StepTensor& tensor = peak.tensors[i];
      out["tensors"].push_back({{"name", tensor.name},
                                {"memory", tensor.memory},
                                {"shape", tensor.shape},
                                {"bytes", tensor.bytes},
                                {"micro_batches", tensor.microBatches},
                                {"source", sources_.number(tensor.source)}});
    }
    out["alive"] = peak.tensors.size();
    return out;
  }

  // When each instruction of the step begins, in the order of stepCurve().
  std::vector<double> instructionStarts(size_t b, const std::vector<PredictedCall>& calls) const {
    std::vector<double> starts;
    for (const PredictedCall& call : calls) {
      double now = call.start;
      double lead = call.lead;
      for (const double seconds : prediction_.times.instructions[b][call.action->function()]) {
        starts.push_back(now);
        now += seconds + std::exchange(lead, 0);
      }
    }
    return starts;
  }

  Json tensors() const {
    const StageMeshes meshes = decisions_.meshes();
    std::map<std::string, std::pair<std::string, std::string>> layouts;  // with why
    for (const ArgumentDecision& argument : decisions_.arguments) {
      std::string text = argument.layout.print(meshes.ofStage(argument.stage));
      for (const auto& [number, layout] : argument.elsewhere) {
        absl::StrAppend(&text, "; on mesh ", number, " ", layout.print(meshes.withNumber(number)));
      }
      layouts[argument.name] = {text, argument.origin};
    }
    Json out = Json::array();
    for (const plan::NamedTensor& tensor : plan_.tensors()) {
      Json entry = {{"name", tensor.name()},
                    {"kind", lower(plan::TensorKind_Name(tensor.kind())).substr(std::string("tensor_").size())},
                    {"type", dtypeName(dtypeOf(tensor.type()))},
                    {"shape", listOf(tensor.shape())}};
      if (const auto layout = layouts.find(tensor.name()); layout != layouts.end()) {
        entry["layout"] = layout->second.first;
        entry["origin"] = layout->second.second;
      }
      entry["slices"] = slices(tensor);
      out.push_back(std::move(entry));
    }
    return out;
  }

  // [ranks, offsets, sizes]; ranks with the same slice stand together, ranks without the tensor in none.
  static Json slices(const plan::NamedTensor& tensor) {
    std::map<std::vector<int64_t>, size_t> known;
    Json out = Json::array();
    for (int rank = 0; rank < tensor.slices_size(); ++rank) {
      const plan::Slice& slice = tensor.slices(rank);
      if (std::count(slice.valid().begin(), slice.valid().end(), 0) > 0) {
        continue;
      }
      std::vector<int64_t> key(slice.offset().begin(), slice.offset().end());
      key.insert(key.end(), slice.valid().begin(), slice.valid().end());
      const auto [it, added] = known.try_emplace(key, out.size());
      if (added) {
        out.push_back({Json::array(), listOf(slice.offset()), listOf(slice.valid())});
      }
      out[it->second][0].push_back(rank);
    }
    return out;
  }

  Json executed() const {
    const ExecutedStep& step = input_.profile->step;
    Json out = {{"shown", step.shown},
                {"step_seconds", step.stepSeconds},
                {"mean", input_.profile->means.stepSeconds},
                {"simulated", input_.profile->simulated.seconds}};
    out["ranks"] = Json::array();
    for (const std::vector<ExecutedCall>& calls : step.ranks) {
      Json row = Json::array();
      for (const ExecutedCall& call : calls) {
        row.push_back({call.function, call.microBatch, call.start, call.end, call.lead, call.waiting, call.moving});
      }
      out["ranks"].push_back(std::move(row));
    }
    return out;
  }

  const ViewInput& input_;
  const plan::Plan& plan_;
  const std::vector<const plan::Plan*> submeshes_;
  const Decisions& decisions_;
  const Splits splits_;
  const Prediction& prediction_;
  Sources sources_;
};

}  // namespace

std::string foldName(const std::string& label) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  // "copy to h0.fc"
  const std::vector<std::string> parts = absl::StrSplit(label.substr(label.find_last_of(' ') + 1), '.');
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    if (!parts[i].empty() && digit(parts[i].back())) {
      const bool number = std::all_of(parts[i].begin(), parts[i].end(), digit);
      return number && i > 0 ? absl::StrCat(parts[i - 1], ".", parts[i]) : parts[i];
    }
  }
  return "";
}

absl::StatusOr<Json> viewDocument(const ViewInput& input) {
  // A plan that was written by hand has no decisions.
  Decisions decisions;
  if (!input.plan->decisions().empty()) {
    WEFT_ASSIGN_OR_RETURN(decisions, parseDecisions(input.plan->decisions()));
  }
  Prediction prediction;
  prediction.times = schedule::predictedTimes(*input.plan, input.machine);
  WEFT_ASSIGN_OR_RETURN(prediction.run, schedule::simulatePlan(*input.plan, prediction.times));
  return Writer(input, decisions, prediction).run();
}

}  // namespace weft::tools
