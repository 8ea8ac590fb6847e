#include "tools/commands/reshard.h"

#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ir/layout/reshard.h"
#include "runtime/base/status.h"
#include "tools/commands/flags.h"
#include "tools/commands/machine_flag.h"

namespace weft::tools {
namespace {

const std::vector<Flag>& knownFlags() {
  static const std::vector<Flag> flags{
      {"mesh", Flag::kRequired, "axes, major first, such as dp=2,tp=4"},
      {"shape", Flag::kRequired, "sizes of the tensor, such as 16,32; empty for a scalar"},
      {"from", Flag::kRequired, "layout before, such as '[{dp},{tp}]'"},
      {"to", Flag::kRequired, "layout after"},
      {"dtype", Flag::kOptional, "element type: f32 (default), f64, bf16, f16, i32, i64, bool"},
      {"to-mesh", Flag::kOptional, "the mesh of the same ranks against which --to is written; default --mesh"},
      {"machine", Flag::kOptional, "the machine, a name (a100-80g) or a file; default: CPU ranks on one host"},
      {"json", Flag::kSwitch, "print JSON"},
      {"help", Flag::kSwitch, "print this help"}};
  return flags;
}

struct Request {
  Mesh mesh;
  Shape shape;
  DType type = DType::kF32;
  Layout from;
  Layout to;
  Machine machine;
};

absl::StatusOr<Mesh> targetMesh(const Flags& flags, const Mesh& mesh) {
  if (!flags.has("to-mesh")) {
    return mesh;
  }
  WEFT_ASSIGN_OR_RETURN(Mesh other, Mesh::parse(flags.text("to-mesh")));
  if (other.ranks() != mesh.ranks()) {
    return absl::InvalidArgumentError(absl::StrCat("--to-mesh ", other.print(), " has ", other.ranks(),
                                                   " ranks, --mesh ", mesh.print(), " has ", mesh.ranks(),
                                                   "; both must name the same ranks"));
  }
  return other;
}

absl::StatusOr<Request> readRequest(const Flags& flags) {
  Request request;
  WEFT_ASSIGN_OR_RETURN(request.mesh, Mesh::parse(flags.text("mesh")));
  WEFT_ASSIGN_OR_RETURN(request.shape, parseShape(flags.text("shape")));
  std::optional<DType> type = parseDType(flags.text("dtype", "f32"));
  if (!type) {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown --dtype '", flags.text("dtype"), "'; known: f32, f64, bf16, f16, i32, i64, bool"));
  }
  request.type = *type;
  WEFT_ASSIGN_OR_RETURN(request.machine, machineFrom(flags));
  WEFT_ASSIGN_OR_RETURN(request.from, Layout::parse(flags.text("from"), request.mesh));
  WEFT_ASSIGN_OR_RETURN(Mesh other, targetMesh(flags, request.mesh));
  WEFT_ASSIGN_OR_RETURN(request.to, Layout::parse(flags.text("to"), other));
  return request;
}

void printJson(const Request& request, const ReshardPlan& plan) {
  nlohmann::ordered_json steps = nlohmann::ordered_json::array();
  for (const ReshardStep& step : plan.steps) {
    nlohmann::ordered_json entry;
    entry["collective"] = collectiveName(step.kind);
    entry["groups"] = groupsOf(step, request.mesh);
    if (step.kind == CollectiveKind::kPermute) {
      entry["source"] = step.source;
    }
    entry["layout"] = step.layout.print(request.mesh);
    entry["local_shape"] = step.localShape;
    entry["bytes_received_per_rank"] = step.bytesReceived;
    entry["cost"] = inSeconds(step.cost);
    steps.push_back(std::move(entry));
  }
  nlohmann::ordered_json out;
  out["steps"] = std::move(steps);
  out["cost"] = inSeconds(plan.cost);
  std::cout << out.dump(2) << "\n";
}

std::string sizes(const Shape& shape) {
  return shape.empty() ? "scalar" : absl::StrJoin(shape, "x");
}

std::string seconds(double value) {
  return absl::StrFormat("%.3g s", value);
}

// The first groups, then how many there are.
std::string groupsText(const ReshardStep& step, const Mesh& mesh) {
  constexpr size_t kShown = 4;
  std::vector<std::vector<int64_t>> groups = groupsOf(step, mesh);
  const char* between = step.kind == CollectiveKind::kPermute ? ">" : " ";
  std::vector<std::string> shown;
  for (size_t g = 0; g < groups.size() && g < kShown; ++g) {
    shown.push_back(absl::StrCat("(", absl::StrJoin(groups[g], between), ")"));
  }
  std::string text = absl::StrJoin(shown, " ");
  return groups.size() > kShown ? absl::StrCat(text, " .. ", groups.size(), " groups") : text;
}

void printTable(const Request& request, const ReshardPlan& plan) {
  std::cout << "reshard " << dtypeName(request.type) << " " << sizes(request.shape) << " on " << request.mesh.print()
            << "\n"
            << "  from " << request.from.print(request.mesh) << ", local "
            << sizes(request.from.localShape(request.shape)) << "\n"
            << "  to   " << request.to.print(request.mesh) << ", local " << sizes(request.to.localShape(request.shape))
            << "\n";
  if (plan.steps.empty()) {
    std::cout << "Nothing to do: every rank holds what it needs.\n";
    return;
  }
  std::vector<std::vector<std::string>> rows{
      {"step", "collective", "layout after", "local", "received", "cost", "groups"}};
  for (const ReshardStep& step : plan.steps) {
    rows.push_back({absl::StrCat(rows.size()), collectiveName(step.kind), step.layout.print(request.mesh),
                    sizes(step.localShape), absl::StrCat(step.bytesReceived, " B"), seconds(inSeconds(step.cost)),
                    groupsText(step, request.mesh)});
  }
  std::cout << table(rows) << "total " << seconds(inSeconds(plan.cost)) << " on " << request.machine.name << "\n";
}

}  // namespace

int reshardCommand(int argc, char** argv) {
  if (wantsHelp(argc, argv)) {
    std::cout << flagHelp("weft reshard: the cheapest collectives from one layout to another", knownFlags());
    return 0;
  }
  absl::StatusOr<Flags> flags = Flags::parse(knownFlags(), argc, argv);
  if (!flags.ok()) {
    return usageError("reshard", flags.status());
  }
  absl::StatusOr<Request> request = readRequest(*flags);
  if (!request.ok()) {
    return fail("reshard", request.status());
  }
  ReshardPlanner planner(request->mesh, request->machine);
  absl::StatusOr<ReshardPlan> plan = planner.plan(request->shape, request->type, request->from, request->to);
  if (!plan.ok()) {
    return fail("reshard", plan.status());
  }
  flags->has("json") ? printJson(*request, *plan) : printTable(*request, *plan);
  return 0;
}

}  // namespace weft::tools
