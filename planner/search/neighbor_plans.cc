#include "planner/search/neighbor_plans.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "planner/open_mesh.h"
#include "planner/search/plan_space.h"

namespace weft {
namespace {

bool isPrime(int64_t number) {
  int64_t divisor = 2;
  while (divisor * divisor <= number && number % divisor != 0) {
    ++divisor;
  }
  return number > 1 && divisor * divisor > number;
}

// Do the meshes differ in the order of their axes alone, or in a prime factor that one axis has from another?
bool areNear(const Mesh& a, const Mesh& b) {
  std::map<std::string, int64_t> sizes;
  for (const NamedAxis& named : a.axes()) {
    sizes[named.name] = named.axis.size;
  }
  for (const NamedAxis& named : b.axes()) {
    const int64_t size = sizes.count(named.name) > 0 ? sizes[named.name] : 1;
    const int64_t more = std::max(size, named.axis.size);
    const int64_t less = std::min(size, named.axis.size);
    if (more != less && (more % less != 0 || !isPrime(more / less))) {
      return false;
    }
  }
  return true;
}

bool isLevelOpen(const ProgramGraph& graph, const CompileOptions& request) {
  return request.zeroLevel() == kFindZero && graph.trains();
}

class Neighbors {
 public:
  Neighbors(const Sketch& sketch, const ProgramGraph& graph, const CompileOptions& request)
      : sketch_(sketch), graph_(graph), request_(request), parts_(batchParts(sketch.grid.mesh, request.fill)) {}

  std::vector<Sketch> run() {
    addMeshes();
    addMicroBatches();
    for (CompileOptions& level : atOtherLevels(sketch_.request, graph_, request_)) {
      found_.push_back(changed(std::move(level)));
    }
    return std::move(found_);
  }

 private:
  Sketch changed(CompileOptions closed) const {
    Sketch neighbor = sketch_;
    neighbor.request = std::move(closed);
    return neighbor;
  }

  void addMeshes() {
    const absl::StatusOr<Mesh> mine = Mesh::parse(sketch_.grid.mesh);
    const bool isOpen = request_.stageMeshes.empty() && (request_.mesh.empty() || isOpenMesh(request_.mesh));
    if (sketch_.grid.mesh.empty() || !isOpen || !mine.ok()) {
      return;
    }
    const absl::StatusOr<std::vector<OrderedMesh>> meshes = meshesOfRanks(graph_, request_, mine->ranks());
    for (const OrderedMesh& other : meshes.ok() ? *meshes : std::vector<OrderedMesh>()) {
      const absl::StatusOr<Mesh> mesh = Mesh::parse(other.text);
      if (mesh.ok() && other.text != sketch_.grid.mesh && areNear(*mine, *mesh)) {
        addMesh(other);
      }
    }
  }

  // With as many micro-batches, or as nearly as many as its parts of the batch have rows for.
  void addMesh(const OrderedMesh& mesh) {
    const int64_t parts = batchParts(mesh.text, request_.fill);
    const int64_t micro = microBatchesWithin(graph_, request_, parts, sketch_.request.microBatches());
    CompileOptions closed = sketch_.request;
    closed.mesh = mesh.text;
    closed.micro = micro;
    if (isLevelOpen(graph_, request_) && (parts == 1 || parts_ == 1)) {
      const CompileOptions first = firstRequest(request_, mesh.text, micro, parts > 1);
      closed.zero = first.zero;
      closed.regather = first.regather;
    }
    Sketch& neighbor = found_.emplace_back(changed(std::move(closed)));
    neighbor.grid.mesh = mesh.text;
    neighbor.grid.isReordered = mesh.isReordered;
  }

  void addMicroBatches() {
    if (sketch_.grid.mesh.empty()) {
      return;
    }
    const std::vector<int64_t> counts = microBatchCounts(graph_, request_, parts_);
    const auto mine = std::find(counts.begin(), counts.end(), sketch_.request.microBatches());
    if (mine == counts.end()) {
      return;
    }
    const auto add = [&](int64_t micro) {
      CompileOptions closed = sketch_.request;
      closed.micro = micro;
      found_.push_back(changed(std::move(closed)));
    };
    if (mine != counts.begin()) {
      add(*std::prev(mine));
    }
    if (std::next(mine) != counts.end()) {
      add(*std::next(mine));
    }
  }

  const Sketch& sketch_;
  const ProgramGraph& graph_;
  const CompileOptions& request_;
  int64_t parts_;  // of the batch
  std::vector<Sketch> found_;
};

}  // namespace

std::vector<Sketch> neighborsOf(const Sketch& sketch, const ProgramGraph& graph, const CompileOptions& request) {
  return Neighbors(sketch, graph, request).run();
}

std::vector<CompileOptions> atOtherLevels(const CompileOptions& closed, const ProgramGraph& graph,
                                          const CompileOptions& request) {
  const bool shares = closed.mesh.empty() || batchParts(closed.mesh, request.fill) > 1;
  if (!graph.trains() || !shares) {
    return {};
  }
  std::vector<CompileOptions> levels = atOpenLevels(request, closed);
  std::erase_if(levels, [&](const CompileOptions& level) {
    return level.zero == closed.zero && level.regather == closed.regather;
  });
  return levels;
}

}  // namespace weft
