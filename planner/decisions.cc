#include "planner/decisions.h"

#include <algorithm>

#include "ir/layout/stage_mesh_text.h"
#include "runtime/base/json.h"

namespace weft {
namespace {

constexpr const char* kRunsIn[] = {"prologue", "forward", "backward", "update"};
constexpr const char* kGatherPolicies[] = {"none", "once_per_step", "each_call"};

// Axes are written as a layout of one dimension: "[{dp,tp}]".
std::string printAxes(const AxisList& axes, const Mesh& mesh) {
  return Layout({axes}).print(mesh);
}

void addRecompute(bool recompute, const RecomputePrice& price, Json& json) {
  json["recompute"] = recompute;
  if (price.bytes > 0 || price.time > 0) {
    json["recompute_price"] = {{"bytes", price.bytes}, {"seconds", inSeconds(price.time)}};
  }
}

void addGather(GatherPolicy gather, Json& json) {
  if (gather != GatherPolicy::kNone) {
    json["gather"] = gatherPolicyName(gather);
  }
}

Json toJson(const ReshardDecision& reshard) {
  Json json = {{"id", reshard.id},
               {"index", reshard.index},
               {"how", reshard.how},
               {"stage", reshard.stage},
               {"label", reshard.label}};
  addRecompute(reshard.recompute, reshard.recomputePrice, json);
  return json;
}

Json toJson(const OperatorDecision& op, const Mesh& mesh) {
  Json json = {{"id", op.id}, {"label", op.label}, {"runs_in", runsInName(op.runsIn)}};
  if (!op.batch.empty()) {
    json["batch"] = op.batch;
    json["per_micro_batch"] = op.perMicroBatch;
  }
  if (op.stage > 0) {
    json["stage"] = op.stage;
  }
  if (op.recompute) {
    addRecompute(true, op.recomputePrice, json);
  }
  addGather(op.gather, json);
  Json axes = Json::object();
  for (const auto& [factor, list] : op.axes) {
    axes[factor] = printAxes(list, mesh);
  }
  json["axes"] = axes;
  for (const auto& [index, layout] : op.results) {
    json["results"][std::to_string(index)] = layout.print(mesh);
  }
  json["origin"] = op.origin;
  return json;
}

Json toJson(const ArgumentDecision& argument, const StageMeshes& meshes) {
  Json json = {{"name", argument.name},
               {"layout", argument.layout.print(meshes.ofStage(argument.stage))},
               {"origin", argument.origin}};
  addGather(argument.gather, json);
  if (argument.zero) {
    json["zero"] = *argument.zero;
  }
  if (argument.stage > 0) {
    json["stage"] = argument.stage;
  }
  if (!argument.laterStages.empty()) {
    json["later_stages"] = argument.laterStages;
  }
  for (const auto& [number, layout] : argument.elsewhere) {
    json["elsewhere"][std::to_string(number)] = layout.print(meshes.withNumber(number));
  }
  return json;
}

}  // namespace

std::string runsInName(RunsIn where) {
  return kRunsIn[static_cast<size_t>(where)];
}

std::optional<RunsIn> runsInNamed(const std::string& name) {
  const auto* const found = std::find(std::begin(kRunsIn), std::end(kRunsIn), name);
  return found == std::end(kRunsIn) ? std::nullopt : std::optional(static_cast<RunsIn>(found - std::begin(kRunsIn)));
}

const Layout& ArgumentDecision::layoutOn(int64_t mesh) const {
  const auto other = elsewhere.find(mesh);
  return other == elsewhere.end() ? layout : other->second;
}

std::string gatherPolicyName(GatherPolicy policy) {
  return kGatherPolicies[static_cast<size_t>(policy)];
}

std::optional<DType> parsePrecision(const std::string& name) {
  const std::optional<DType> type = parseDType(name);
  return type == DType::kBF16 || type == DType::kF16 ? type : std::nullopt;
}

int64_t Prediction::most() const {
  return peakBytes.empty() ? 0 : *std::max_element(peakBytes.begin(), peakBytes.end());
}

const OperatorDecision* Decisions::find(int64_t id) const {
  const auto it = std::find_if(operators.begin(), operators.end(), [&](const auto& op) { return op.id == id; });
  return it == operators.end() ? nullptr : &*it;
}

std::map<int64_t, const OperatorDecision*> decisionsById(const Decisions& decisions) {
  std::map<int64_t, const OperatorDecision*> byId;
  for (const OperatorDecision& decision : decisions.operators) {
    byId.emplace(decision.id, &decision);
  }
  return byId;
}

AxisList dataParallelAxes(const Mesh& mesh) {
  for (const NamedAxis& named : mesh.axes()) {
    if (named.name == "dp" && named.axis.size > 1) {
      return {named.axis};
    }
  }
  const bool unnamed = std::none_of(mesh.axes().begin(), mesh.axes().end(),
                                    [](const NamedAxis& axis) { return axis.axis.kind == AxisKind::kSpace; });
  if (unnamed && mesh.ranks() > 1) {
    return {Axis{AxisKind::kSpace, 1, mesh.ranks()}};
  }
  return {};
}

StageMeshes Decisions::meshes() const {
  return {stageMeshes.empty() ? std::vector<Mesh>{mesh} : stageMeshes, schedule.submeshes};
}

std::string printDecisions(const Decisions& decisions) {
  const StageMeshes meshes = decisions.meshes();
  Json json = {{"mesh", decisions.mesh.print()}, {"zero", decisions.zero}};
  if (decisions.precision) {
    json["precision"] = dtypeName(*decisions.precision);
  }
  if (decisions.overlap) {
    json["overlap"] = true;
  }
  if (decisions.offload != Offload::kNone) {
    json["offload"] = offloadName(decisions.offload);
  }
  if (decisions.gatherBucket > 0) {
    json["gather_bucket"] = decisions.gatherBucket;
  }
  if (decisions.schedule.submeshes.size() > 1) {
    json["schedule"] = {{"kind", decisions.schedule.kind},
                        {"virtual", decisions.schedule.virtualStages},
                        {"submeshes", decisions.schedule.submeshes}};
    if (!decisions.schedule.table.empty()) {
      json["schedule"]["table"] = decisions.schedule.table;
    }
    if (!decisions.schedule.considered.empty()) {
      json["schedule"]["considered"] = Json::parse(decisions.schedule.considered);
    }
  }
  if (!decisions.stageMeshes.empty()) {
    json["stage_meshes"] = printStageMeshes(decisions.stageMeshes);
    json["stripes"] = decisions.stripes;
  }
  json["rewrites"] = Json::array();
  for (const Rewrite& rewrite : decisions.rewrites) {
    if (rewrite.kind == Rewrite::kExpand) {
      json["rewrites"].push_back({{"expand", rewrite.id}});
      if (!rewrite.of.empty()) {
        json["rewrites"].back()["of"] = rewrite.of;
      }
    } else if (rewrite.kind == Rewrite::kRegroup) {
      json["rewrites"].push_back({{"regroup", rewrite.id}, {"groups", rewrite.groups}});
    } else {
      json["rewrites"].push_back({{"prologue", rewrite.id}, {"operand", rewrite.operand}});
    }
  }
  json["arguments"] = Json::array();
  for (const ArgumentDecision& argument : decisions.arguments) {
    json["arguments"].push_back(toJson(argument, meshes));
  }
  json["operators"] = Json::array();
  for (const OperatorDecision& op : decisions.operators) {
    json["operators"].push_back(toJson(op, meshes.ofStage(op.stage)));
  }
  if (!decisions.reshards.empty()) {
    json["reshards"] = Json::array();
    for (const ReshardDecision& reshard : decisions.reshards) {
      json["reshards"].push_back(toJson(reshard));
    }
  }
  if (!decisions.recomputeSummary.empty()) {
    json["recompute"] = Json::parse(decisions.recomputeSummary);
  }
  json["conflicts"] = decisions.conflicts;
  json["notes"] = decisions.notes;
  if (!decisions.prices.empty()) {
    json["prices"] = Json::parse(decisions.prices);
  }
  if (decisions.prediction) {
    json["prediction"] = {{"peak_bytes", decisions.prediction->peakBytes},
                          {"seconds", inSeconds(decisions.prediction->time)}};
    if (decisions.prediction->bound > 0) {
      json["prediction"]["bound_seconds"] = inSeconds(decisions.prediction->bound);
    }
  }
  // A name may hold bytes that are no UTF-8; the record shows them as well as can be.
  return json.dump(1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

}  // namespace weft
