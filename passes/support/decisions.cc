#include "passes/support/decisions.h"

#include <algorithm>
#include <nlohmann/json.hpp>

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

ReshardDecision reshardFromJson(const Json& json) {
  ReshardDecision reshard;
  reshard.id = json.at("id").get<int64_t>();
  reshard.index = json.at("index").get<unsigned>();
  reshard.how = json.at("how").get<std::string>();
  reshard.stage = json.value("stage", int64_t{0});
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

absl::StatusOr<OperatorDecision> operatorFromJson(const Json& json, const Mesh& mesh) {
  OperatorDecision op;
  op.id = json.at("id").get<int64_t>();
  op.label = json.at("label").get<std::string>();
  WEFT_ASSIGN_OR_RETURN(op.runsIn, parseRunsIn(json.at("runs_in").get<std::string>()));
  op.stage = json.value("stage", int64_t{0});
  op.recompute = json.value("recompute", false);
  op.recomputePrice = priceFromJson(json);
  op.batch = json.value("batch", "");
  op.perPiece = json.value("per_piece", false);
  for (const auto& [factor, text] : json.at("axes").items()) {
    WEFT_ASSIGN_OR_RETURN(op.axes[factor], parseAxes(text.get<std::string>(), mesh));
  }
  if (json.contains("results")) {
    for (const auto& [index, text] : json.at("results").items()) {
      WEFT_ASSIGN_OR_RETURN(op.results[static_cast<unsigned>(std::atoi(index.c_str()))],
                            Layout::parse(text.get<std::string>(), mesh));
    }
  }
  op.origin = json.value("origin", "");
  return op;
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
  for (const Json& entry : json.at("rewrites")) {
    const bool expand = entry.contains("expand");
    decisions.rewrites.push_back({expand ? Rewrite::kExpand : Rewrite::kPrologue,
                                  entry.at(expand ? "expand" : "prologue").get<int64_t>(), entry.value("operand", 0u)});
  }
  for (const Json& entry : json.at("arguments")) {
    ArgumentDecision argument;
    argument.name = entry.at("name").get<std::string>();
    WEFT_ASSIGN_OR_RETURN(argument.layout, Layout::parse(entry.at("layout").get<std::string>(), decisions.mesh));
    argument.origin = entry.value("origin", "");
    decisions.arguments.push_back(std::move(argument));
  }
  for (const Json& entry : json.at("operators")) {
    WEFT_ASSIGN_OR_RETURN(OperatorDecision op, operatorFromJson(entry, decisions.mesh));
    decisions.operators.push_back(std::move(op));
  }
  for (const Json& entry : json.value("reshards", Json::array())) {
    decisions.reshards.push_back(reshardFromJson(entry));
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

std::string printDecisions(const Decisions& decisions) {
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
    json["arguments"].push_back(
        {{"name", argument.name}, {"layout", argument.layout.print(decisions.mesh)}, {"origin", argument.origin}});
  }
  json["operators"] = Json::array();
  for (const OperatorDecision& op : decisions.operators) {
    json["operators"].push_back(toJson(op, decisions.mesh));
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
