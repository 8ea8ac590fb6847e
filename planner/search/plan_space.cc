#include "planner/search/plan_space.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "ir/layout/stage_mesh_text.h"
#include "planner/check_request.h"
#include "planner/derive/defaults.h"
#include "planner/open_mesh.h"
#include "planner/schedule/generate.h"
#include "planner/search/axis_orders.h"
#include "planner/search/choose_open.h"
#include "runtime/base/limits.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

constexpr char kBatchAxis[] = "dp";
constexpr char kOtherAxis[] = "tp";

// Words of layouts that name no axis of a mesh.
bool isAxisName(const std::string& word) {
  static const std::set<std::string> others = {"all", "micro", "pad", "partial", "sum", "max", "min", "None"};
  const bool isPriority =
      word.size() > 1 && word[0] == 'p' &&
      std::all_of(word.begin() + 1, word.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  return !word.empty() && std::isdigit(static_cast<unsigned char>(word[0])) == 0 && others.count(word) == 0 &&
         !isPriority;
}

// The names in the order in which they are met.
class AxisNames {
 public:
  void addFrom(const std::string& text) {
    std::string word;
    for (const char c : text + " ") {
      if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
        word += c;
      } else {
        add(word);
        word.clear();
      }
    }
  }

  const std::vector<std::string>& names() const { return names_; }

 private:
  void add(const std::string& word) {
    if (isAxisName(word) && std::find(names_.begin(), names_.end(), word) == names_.end()) {
      names_.push_back(word);
    }
  }

  std::vector<std::string> names_;
};

// The mesh whose sizes are found where the user gives none: "dp=?,tp=?".
std::string openMesh(const ProgramGraph& graph, const CompileOptions& request) {
  AxisNames named;
  for (const GraphOperator& op : graph.operators) {
    named.addFrom(op.constraint);
    for (const auto* side :
         {op.strategy ? &op.strategy->inNames : nullptr, op.strategy ? &op.strategy->outNames : nullptr}) {
      for (const std::vector<std::string>& tensor : side != nullptr ? *side : std::vector<std::vector<std::string>>()) {
        for (const std::string& dim : tensor) {
          named.addFrom(dim);
        }
      }
    }
  }
  for (const GraphArgument& argument : graph.arguments) {
    named.addFrom(argument.layout);
  }
  for (const auto& [pattern, layout] : request.layouts) {
    named.addFrom(layout);
  }
  std::vector<std::string> axes = {kBatchAxis};
  for (const std::string& name : named.names()) {
    if (name != kBatchAxis) {
      axes.push_back(name);
    }
  }
  if (axes.size() == 1 && request.may(Freedom::kTensorSplits)) {
    axes.emplace_back(kOtherAxis);
  }
  return absl::StrCat(absl::StrJoin(axes, "=?,"), "=?");
}

std::vector<int64_t> divisorsOf(int64_t number) {
  std::vector<int64_t> divisors;
  for (int64_t divisor = 1; divisor <= number; ++divisor) {
    if (number % divisor == 0) {
      divisors.push_back(divisor);
    }
  }
  return divisors;
}

// Of a program that can be cut into so many segments.
int64_t mostStages(const CompileOptions& request, int64_t segments) {
  return request.maxStages > 0 ? std::min(request.maxStages, segments) : segments;
}

class Grids {
 public:
  Grids(const ProgramGraph& graph, const CompileOptions& request, int64_t userStages, int64_t segments)
      : graph_(graph), request_(request), userStages_(userStages), segments_(segments) {}

  absl::StatusOr<std::vector<StageGrid>> run() {
    for (const int64_t each : virtualStageCounts(request_)) {
      for (const int64_t submeshes : submeshCounts(each)) {
        if (submeshes > 1 || each == 1) {
          WEFT_RETURN_IF_ERROR(add(submeshes, each));
        }
      }
    }
    return grids_.empty() ? refuse() : absl::StatusOr<std::vector<StageGrid>>(std::move(grids_));
  }

 private:
  std::vector<int64_t> submeshCounts(int64_t virtualStages) const {
    if (userStages_ > 1) {
      return userStages_ % virtualStages == 0 ? std::vector<int64_t>{userStages_ / virtualStages}
                                              : std::vector<int64_t>();
    }
    std::vector<int64_t> counts = divisorsOf(request_.devices);
    std::erase_if(counts, [&](int64_t count) { return count * virtualStages > mostStages(request_, segments_); });
    return counts;
  }

  absl::Status add(int64_t submeshes, int64_t virtualStages) {
    if (request_.mesh.empty() || isOpenMesh(request_.mesh)) {
      const absl::StatusOr<std::vector<OrderedMesh>> meshes =
          request_.devices % submeshes == 0 ? meshesOfRanks(graph_, request_, request_.devices / submeshes)
                                            : absl::InvalidArgumentError("");
      for (const OrderedMesh& mesh : meshes.ok() ? *meshes : std::vector<OrderedMesh>()) {
        grids_.push_back({submeshes, virtualStages, mesh.text, mesh.isReordered});
      }
      return absl::OkStatus();
    }
    WEFT_ASSIGN_OR_RETURN(const Mesh mesh, Mesh::parse(request_.mesh));
    // Beside a mesh 1 device means as many as there are stages times its ranks.
    if (request_.devices == submeshes * mesh.ranks() ||
        (request_.devices == 1 && (userStages_ > 1 || submeshes == 1))) {
      grids_.push_back({submeshes, virtualStages, request_.mesh});
    }
    return absl::OkStatus();
  }

  absl::Status refuse() const {
    const std::vector<int64_t> each = virtualStageCounts(request_);
    const int64_t fewest = 2 * *std::min_element(each.begin(), each.end());
    const int64_t most = mostStages(request_, segments_);
    if (userStages_ == 1 && fewest > 2 && fewest > most) {  // the words of a pipeline of stages that there are not
      return absl::InvalidArgumentError(
          absl::StrCat("mode auto: ", fewest / 2, " stages on each submesh are at least ", fewest,
                       " stages, and there are at most ", most, most < segments_ ? " (maxStages)" : " in this program",
                       "; ask for another schedule or fewer virtual stages, or leave them out"));
    }
    return absl::InvalidArgumentError(
        absl::StrCat("mode auto: ", request_.devices, " devices",
                     userStages_ > 1 ? absl::StrCat(" and ", userStages_, " stages") : "", " of mesh '",
                     request_.mesh.empty() ? openMesh(graph_, request_) : request_.mesh,
                     "' do not go together; give devices that are the ranks of the mesh times the number of "
                     "stages that are run side by side, or leave the mesh out"));
  }

  const ProgramGraph& graph_;
  const CompileOptions& request_;
  int64_t userStages_;
  int64_t segments_;
  std::vector<StageGrid> grids_;
};

// Of submeshes whose meshes are the user's; where these are all the same, they are one mesh.
absl::StatusOr<std::vector<StageGrid>> gridsOfStageMeshes(const CompileOptions& request, int64_t userStages,
                                                          int64_t segments) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<Mesh> meshes, parseStageMeshes(request.stageMeshes, 1));
  const auto submeshes = static_cast<int64_t>(meshes.size());
  const auto refused = [&](const std::string& why) {
    return absl::InvalidArgumentError(absl::StrCat("mode auto: the stage meshes '", request.stageMeshes, "' are for ",
                                                   submeshes, " submeshes, ", why, ", or leave the stage meshes out"));
  };
  if (userStages > 1) {
    return userStages % submeshes == 0
               ? absl::StatusOr<std::vector<StageGrid>>({{submeshes, userStages / submeshes, ""}})
               : refused(absl::StrCat("the program names ", userStages, " stages; name a multiple of as many"));
  }
  const bool areSame =
      std::all_of(meshes.begin(), meshes.end(), [&](const Mesh& mesh) { return mesh == meshes.front(); });
  std::vector<StageGrid> grids;
  const int64_t most = mostStages(request, segments);
  for (const int64_t each : virtualStageCounts(request)) {
    if (submeshes * each <= most && (submeshes > 1 || each == 1)) {
      grids.push_back({submeshes, each, areSame ? meshes.front().print() : ""});
    }
  }
  return grids.empty() ? refused(absl::StrCat("and there are at most ", most, " stages; give meshes for fewer"))
                       : absl::StatusOr<std::vector<StageGrid>>(std::move(grids));
}

}  // namespace

absl::StatusOr<std::vector<StageGrid>> stageGrids(const ProgramGraph& graph, const CompileOptions& request,
                                                  int64_t userStages, int64_t segments) {
  if (!request.stageMeshes.empty()) {
    return gridsOfStageMeshes(request, userStages, segments);
  }
  return Grids(graph, request, userStages, segments).run();
}

absl::StatusOr<std::vector<Mesh>> meshesOf(const StageGrid& grid, const CompileOptions& request) {
  if (grid.mesh.empty()) {
    return parseStageMeshes(request.stageMeshes, 1);
  }
  WEFT_ASSIGN_OR_RETURN(const Mesh mesh, Mesh::parse(grid.mesh));
  return std::vector<Mesh>(grid.submeshes, mesh);
}

std::vector<int64_t> virtualStageCounts(const CompileOptions& request) {
  if (request.virtualStages > 0) {
    return {request.virtualStages};
  }
  const absl::StatusOr<schedule::Kind> kind = schedule::parseKind(request.schedule);
  if (!kind.ok()) {
    return {1, 2};
  }
  const bool loops = *kind == schedule::Kind::kInterleaved || *kind == schedule::Kind::kBreadthFirst ||
                     *kind == schedule::Kind::kZbInterleaved;
  return loops ? std::vector<int64_t>{2, 4} : std::vector<int64_t>{schedule::defaultVirtualStages(*kind)};
}

absl::StatusOr<std::vector<OrderedMesh>> meshesOfRanks(const ProgramGraph& graph, const CompileOptions& request,
                                                       int64_t ranks) {
  const std::string open = request.mesh.empty() ? openMesh(graph, request) : request.mesh;
  WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> closed, closedMeshes(open, ranks));
  WEFT_ASSIGN_OR_RETURN(const Machine machine, machineOf(request));
  const bool isOrderOpen = request.mesh.empty() && request.may(Freedom::kAxisOrder);
  std::vector<OrderedMesh> meshes;
  for (const std::string& mesh : closed) {
    for (const std::string& order : isOrderOpen ? axisOrders(mesh, machine) : std::vector<std::string>{mesh}) {
      meshes.push_back({order, order != mesh});
    }
  }
  return meshes;
}

bool mayHaveUnlikeMeshes(const CompileOptions& request) {
  return request.may(Freedom::kStageMeshes) && request.mesh.empty() && request.stageMeshes.empty();
}

CompileOptions firstRequest(const CompileOptions& request, const std::string& mesh, int64_t micro, bool shares) {
  CompileOptions closed = request;
  closed.mode = request.may(Freedom::kTensorSplits) ? Mode::kLayouts : Mode::kSemi;
  closed.mesh = mesh;
  closed.stageMeshes = mesh.empty() ? closed.stageMeshes : "";
  closed.devices = 1;
  closed.micro = micro;
  closed.without.insert(Freedom::kBatchAxes);
  const int level = request.zeroLevel();
  closed.zero = shares && (level == kFindZero || level > 1) ? 1 : std::max(level, 0);
  return closed;
}

std::vector<CompileOptions> atOpenLevels(const CompileOptions& request, CompileOptions closed) {
  closed.zero = request.zeroLevel();
  closed.regather = request.regather;
  std::vector<CompileOptions> levels = withZero(closed, true);
  if (closed.zeroLevel() == 3 && !closed.regather && request.may(Freedom::kGathers)) {
    levels.push_back(closed);
    levels.back().regather = true;
  }
  return levels;
}

CompileOptions withFreedomsPinned(CompileOptions request) {
  if (!request.may(Freedom::kRecompute) && request.recompute == "auto") {
    request.recompute = "none";
  }
  if (!request.may(Freedom::kZero) && request.zeroLevel() == kFindZero) {
    request.zero = 0;
  }
  if (!request.may(Freedom::kOffload) && request.offload == Offload::kAuto) {
    request.offload = Offload::kNone;
  }
  if (!request.may(Freedom::kPipeline)) {
    request.maxStages = 1;
  }
  if (!request.may(Freedom::kVirtualStages) && request.virtualStages == 0 && request.schedule == "auto") {
    request.virtualStages = 1;
  }
  return request;
}

int64_t batchRows(const ProgramGraph& graph) {
  int64_t rows = 0;
  for (const GraphArgument& argument : graph.arguments) {
    if (argument.kind == ArgumentKind::kInput && argument.hasBatch()) {
      const int64_t mine = argument.type.shape[argument.batchDim];
      rows = rows == 0 ? mine : std::min(rows, mine);
    }
  }
  return rows;
}

std::vector<int64_t> microBatchCounts(const ProgramGraph& graph, const CompileOptions& request, int64_t parts) {
  if (request.micro) {
    return {*request.micro};
  }
  const int64_t rows = batchRows(graph);
  std::vector<int64_t> counts = rows % parts == 0 ? divisorsOf(rows / parts) : std::vector<int64_t>();
  std::erase_if(counts, [](int64_t count) { return count > kMaxMicroBatches; });
  return counts.empty() ? std::vector<int64_t>{1} : counts;
}

int64_t microBatchesWithin(const ProgramGraph& graph, const CompileOptions& request, int64_t parts, int64_t most) {
  const std::vector<int64_t> counts = microBatchCounts(graph, request, parts);
  const auto above = std::upper_bound(counts.begin(), counts.end(), most);
  return above == counts.begin() ? counts.front() : *std::prev(above);
}

int64_t batchParts(const std::string& mesh, Fill fill) {
  const absl::StatusOr<Mesh> parsed = Mesh::parse(mesh);
  return !mesh.empty() && parsed.ok() ? partsOf(defaultAxes(*parsed, fill)) : 1;
}

}  // namespace weft
