#include "passes/support/decisions.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/numbers.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kRunsIn[] = {"prologue", "forward", "backward", "update"};

absl::StatusOr<RunsIn> parseRunsIn(const std::string& text) {
  for (size_t i = 0; i < std::size(kRunsIn); ++i) {
    if (text == kRunsIn[i]) {
      return static_cast<RunsIn>(i);
    }
  }
  return absl::InvalidArgumentError("decisions: '" + text + "' is not one of prologue, forward, backward, update");
}

// Axes are written as a layout of one dimension: "[{dp,tp}]".
std::string printAxes(const std::vector<Axis>& axes, const Mesh& mesh) {
  return Layout({axes}).print(mesh);
}

absl::StatusOr<std::vector<Axis>> parseAxes(const std::string& text, const Mesh& mesh) {
  WEFT_ASSIGN_OR_RETURN(const Layout layout, Layout::parse(text, mesh));
  if (layout.dimensions() != 1) {
    return absl::InvalidArgumentError("decisions: axes '" + text + "' should be written like [{dp,tp}]");
  }
  return layout.dim(0);
}

void addRecompute(bool recompute, const RecomputePrice& price, Json& json) {
  json["recompute"] = recompute;
  if (price.bytes > 0 || price.seconds > 0) {
    json["recompute_price"] = {{"bytes", price.bytes}, {"seconds", price.seconds}};
  }
}

// Numbers of operators, arguments and stages: they index lists, and are keys of maps that keep extreme values for
// themselves.
constexpr int64_t kMostNumber = int64_t{1} << 31;

absl::StatusOr<int64_t> numberFromJson(const Json& json, const std::string& key, int64_t least) {
  const auto value = json.at(key).get<int64_t>();
  if (value < least || value > kMostNumber) {
    return absl::InvalidArgumentError(
        absl::StrCat("decisions: '", key, "' is ", value, "; it should be from ", least, " to ", kMostNumber));
  }
  return value;
}

// Of an entry that may leave it out; one of the schedule's.
absl::StatusOr<int64_t> stageFromJson(const Json& json, int64_t stages) {
  const int64_t stage = json.value("stage", int64_t{0});
  if (stage < 0 || stage >= stages) {
    return absl::InvalidArgumentError(
        absl::StrCat("decisions: 'stage' is ", stage, ", but the schedule has stages 0 to ", stages - 1));
  }
  return stage;
}

RecomputePrice priceFromJson(const Json& json) {
  if (!json.contains("recompute_price")) {
    return {};
  }
  const Json& price = json.at("recompute_price");
  return {price.at("bytes").get<int64_t>(), price.at("seconds").get<double>()};
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

absl::StatusOr<ReshardDecision> reshardFromJson(const Json& json, const StageMeshes& meshes) {
  ReshardDecision reshard;
  WEFT_ASSIGN_OR_RETURN(reshard.id, numberFromJson(json, "id", -1));
  WEFT_ASSIGN_OR_RETURN(const int64_t index, numberFromJson(json, "index", 0));
  reshard.index = static_cast<unsigned>(index);
  reshard.how = json.at("how").get<std::string>();
  WEFT_ASSIGN_OR_RETURN(reshard.stage, stageFromJson(json, static_cast<int64_t>(meshes.blocks.size())));
  reshard.label = json.value("label", "");
  reshard.recompute = json.at("recompute").get<bool>();
  reshard.recomputePrice = priceFromJson(json);
  return reshard;
}

Json toJson(const OperatorDecision& op, const Mesh& mesh) {
  Json json = {{"id", op.id}, {"label", op.label}, {"runs_in", runsInName(op.runsIn)}};
  if (!op.batch.empty()) {
    json["batch"] = op.batch;
    json["per_piece"] = op.perPiece;
  }
  if (op.stage > 0) {
    json["stage"] = op.stage;
  }
  if (op.recompute) {
    addRecompute(true, op.recomputePrice, json);
  }
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

absl::StatusOr<OperatorDecision> operatorFromJson(const Json& json, const StageMeshes& meshes) {
  OperatorDecision op;
  WEFT_ASSIGN_OR_RETURN(op.id, numberFromJson(json, "id", 0));
  WEFT_ASSIGN_OR_RETURN(op.stage, stageFromJson(json, static_cast<int64_t>(meshes.blocks.size())));
  const Mesh& mesh = meshes.ofStage(op.stage);
  op.label = json.at("label").get<std::string>();
  WEFT_ASSIGN_OR_RETURN(op.runsIn, parseRunsIn(json.at("runs_in").get<std::string>()));
  op.recompute = json.value("recompute", false);
  op.recomputePrice = priceFromJson(json);
  op.batch = json.value("batch", "");
  op.perPiece = json.value("per_piece", false);
  for (const auto& [factor, text] : json.at("axes").items()) {
    WEFT_ASSIGN_OR_RETURN(op.axes[factor], parseAxes(text.get<std::string>(), mesh));
  }
  if (json.contains("results")) {
    for (const auto& [index, text] : json.at("results").items()) {
      WEFT_ASSIGN_OR_RETURN(const int64_t result, parseInteger(index, {0, kMostNumber}));
      WEFT_ASSIGN_OR_RETURN(op.results[static_cast<unsigned>(result)], Layout::parse(text.get<std::string>(), mesh));
    }
  }
  op.origin = json.value("origin", "");
  return op;
}

absl::StatusOr<ArgumentDecision> argumentFromJson(const Json& json, const StageMeshes& meshes) {
  ArgumentDecision argument;
  argument.name = json.at("name").get<std::string>();
  WEFT_ASSIGN_OR_RETURN(argument.stage, stageFromJson(json, static_cast<int64_t>(meshes.blocks.size())));
  WEFT_ASSIGN_OR_RETURN(argument.layout,
                        Layout::parse(json.at("layout").get<std::string>(), meshes.ofStage(argument.stage)));
  argument.gather = json.value("gather", "");
  argument.origin = json.value("origin", "");
  const Json elsewhere = json.value("elsewhere", Json::object());
  for (const auto& [number, layout] : elsewhere.items()) {
    const absl::StatusOr<int64_t> mesh = parseInteger(number, {0, static_cast<int64_t>(meshes.ofBlock.size()) - 1});
    if (!mesh.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("decisions: argument '", argument.name, "' lies on mesh '", number,
                                                     "'; there are ", meshes.ofBlock.size()));
    }
    WEFT_ASSIGN_OR_RETURN(argument.elsewhere[*mesh],
                          Layout::parse(layout.get<std::string>(), meshes.withNumber(*mesh)));
  }
  return argument;
}

Json toJson(const ArgumentDecision& argument, const StageMeshes& meshes) {
  Json json = {{"name", argument.name},
               {"layout", argument.layout.print(meshes.ofStage(argument.stage))},
               {"origin", argument.origin}};
  if (!argument.gather.empty()) {
    json["gather"] = argument.gather;
  }
  if (!meshes.same()) {
    json["stage"] = argument.stage;
  }
  for (const auto& [number, layout] : argument.elsewhere) {
    json["elsewhere"][std::to_string(number)] = layout.print(meshes.withNumber(number));
  }
  return json;
}

// Blocks 0, 1, ... without gaps, each with a stage.
absl::Status checkBlocks(const ScheduleDecision& schedule) {
  const std::set<int64_t> used(schedule.blocks.begin(), schedule.blocks.end());
  if (used.empty() || *used.begin() != 0 || *used.rbegin() + 1 != static_cast<int64_t>(used.size())) {
    return absl::InvalidArgumentError(absl::StrCat("decisions: the schedule puts its stages on blocks [",
                                                   absl::StrJoin(schedule.blocks, ","),
                                                   "]; blocks are numbered 0, 1, ... and each has a stage"));
  }
  return absl::OkStatus();
}

// The blocks' own meshes, if they have some; one for each block of the schedule, which is read before.
absl::Status readMeshes(const Json& json, Decisions& decisions) {
  const std::string text = json.value("stage_meshes", "");
  if (text.empty()) {
    return absl::OkStatus();
  }
  WEFT_ASSIGN_OR_RETURN(decisions.stageMeshes, parseStageMeshes(text, decisions.mesh.pieces()));
  WEFT_ASSIGN_OR_RETURN(decisions.segments, numberFromJson(json, "segments", 1));
  const std::vector<int64_t>& blocks = decisions.schedule.blocks;
  const auto [least, most] = std::minmax_element(blocks.begin(), blocks.end());
  if (blocks.empty() || *least < 0 || *most + 1 != static_cast<int64_t>(decisions.stageMeshes.size())) {
    return absl::InvalidArgumentError(absl::StrCat("decisions: ", decisions.stageMeshes.size(),
                                                   " stage meshes do not fit the blocks of the schedule"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Decisions> fromJson(const Json& json) {
  Decisions decisions;
  WEFT_ASSIGN_OR_RETURN(decisions.mesh, Mesh::parse(json.at("mesh").get<std::string>()));
  decisions.zero = json.at("zero").get<int64_t>();
  decisions.regather = json.at("regather").get<bool>();
  if (json.contains("schedule")) {
    const Json& schedule = json.at("schedule");
    decisions.schedule = {schedule.at("kind").get<std::string>(), schedule.at("virtual").get<int64_t>(),
                          schedule.at("blocks").get<std::vector<int64_t>>(), schedule.value("table", ""),
                          schedule.contains("considered") ? schedule.at("considered").dump() : ""};
  }
  WEFT_RETURN_IF_ERROR(checkBlocks(decisions.schedule));
  WEFT_RETURN_IF_ERROR(readMeshes(json, decisions));
  const StageMeshes meshes = decisions.meshes();
  for (const Json& entry : json.at("rewrites")) {
    const bool expand = entry.contains("expand");
    WEFT_ASSIGN_OR_RETURN(const int64_t id, numberFromJson(entry, expand ? "expand" : "prologue", 0));
    WEFT_ASSIGN_OR_RETURN(const int64_t operand, expand ? 0 : numberFromJson(entry, "operand", 0));
    decisions.rewrites.push_back({expand ? Rewrite::kExpand : Rewrite::kPrologue, id, static_cast<unsigned>(operand)});
  }
  for (const Json& entry : json.at("arguments")) {
    WEFT_ASSIGN_OR_RETURN(ArgumentDecision argument, argumentFromJson(entry, meshes));
    decisions.arguments.push_back(std::move(argument));
  }
  for (const Json& entry : json.at("operators")) {
    WEFT_ASSIGN_OR_RETURN(OperatorDecision op, operatorFromJson(entry, meshes));
    decisions.operators.push_back(std::move(op));
  }
  for (const Json& entry : json.value("reshards", Json::array())) {
    WEFT_ASSIGN_OR_RETURN(ReshardDecision reshard, reshardFromJson(entry, meshes));
    decisions.reshards.push_back(std::move(reshard));
  }
  decisions.recomputeSummary = json.contains("recompute") ? json.at("recompute").dump() : "";
  decisions.conflicts = json.value("conflicts", std::vector<std::string>());
  return decisions;
}

}  // namespace

std::string runsInName(RunsIn where) {
  return kRunsIn[static_cast<size_t>(where)];
}

const OperatorDecision* Decisions::find(int64_t id) const {
  const auto it = std::find_if(operators.begin(), operators.end(), [&](const auto& op) { return op.id == id; });
  return it == operators.end() ? nullptr : &*it;
}

std::vector<Axis> dataParallelAxes(const Mesh& mesh) {
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
  return {stageMeshes.empty() ? std::vector<Mesh>{mesh} : stageMeshes, schedule.blocks};
}

std::string printDecisions(const Decisions& decisions) {
  const StageMeshes meshes = decisions.meshes();
  Json json = {{"mesh", decisions.mesh.print()}, {"zero", decisions.zero}, {"regather", decisions.regather}};
  if (decisions.schedule.blocks.size() > 1) {
    json["schedule"] = {{"kind", decisions.schedule.kind},
                        {"virtual", decisions.schedule.virtualStages},
                        {"blocks", decisions.schedule.blocks}};
    if (!decisions.schedule.table.empty()) {
      json["schedule"]["table"] = decisions.schedule.table;
    }
    if (!decisions.schedule.considered.empty()) {
      json["schedule"]["considered"] = Json::parse(decisions.schedule.considered);
    }
  }
  if (!decisions.stageMeshes.empty()) {
    json["stage_meshes"] = printStageMeshes(decisions.stageMeshes);
    json["segments"] = decisions.segments;
  }
  json["rewrites"] = Json::array();
  for (const Rewrite& rewrite : decisions.rewrites) {
    if (rewrite.kind == Rewrite::kExpand) {
      json["rewrites"].push_back({{"expand", rewrite.id}});
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
  return json.dump(1);
}

absl::StatusOr<Decisions> parseDecisions(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    return absl::InvalidArgumentError("decisions: the text is not JSON");
  }
  // The JSON library reports a missing or mistyped entry by exception; it ends here.
  try {
    return fromJson(json);
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(std::string("decisions: ") + error.what());
  }
}

}  // namespace weft
