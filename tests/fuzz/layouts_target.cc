// Meshes, layouts, shapes, rules and reshards as text: what `weft layout` and `weft reshard` read. One word a line: a
// mesh, a shape, two layouts, a rule for one operand and one result of that shape.
#include <algorithm>

#include "absl/strings/str_split.h"
#include "ir/layout/reshard.h"
#include "ir/layout/rule.h"
#include "ir/layout/stage_mesh_text.h"
#include "ir/layout/stage_meshes.h"
#include "tests/fuzz/target.h"
#include "tools/commands/flags.h"

namespace weft::fuzz {
namespace {

enum Line { kMesh, kShape, kFrom, kTo, kRule, kLines };
// Larger meshes and tensors are only read.
constexpr int64_t kMostRanks = 64;
constexpr size_t kMostDimensions = 4;

absl::StatusOr<Layout> layoutOf(const std::string& text, const Mesh& mesh) {
  absl::StatusOr<Layout> layout = Layout::parse(text, mesh);
  if (layout.ok()) {
    const absl::StatusOr<Layout> again = Layout::parse(layout->print(mesh), mesh);
    requireOk(again.status(), "a printed layout");
    require(again->canonical() == layout->canonical(), "a printed layout is another one");
  }
  return layout;
}

// A shape that a machine can hold; what is larger, the planner is not asked for.
bool isSmall(const Shape& shape, const Mesh& mesh) {
  return shape.size() <= kMostDimensions && mesh.ranks() <= kMostRanks && mesh.microBatches() <= kMostRanks &&
         std::all_of(shape.begin(), shape.end(), [](int64_t size) { return size <= int64_t{1} << 12; });
}

void reshard(const Mesh& mesh, const Shape& shape, const Layout& from, const Layout& to) {
  if (!isSmall(shape, mesh) || !from.check(shape, mesh).ok() || !to.check(shape, mesh).ok()) {
    return;
  }
  for (int64_t rank = 0; rank < mesh.ranks(); ++rank) {
    from.slice(shape, mesh, rank);
  }
  from.replicaGroups(mesh);
  const absl::StatusOr<ReshardPlan> plan = ReshardPlanner(mesh, Machine()).plan(shape, DType::kF32, from, to);
  if (plan.ok() && !plan->steps.empty()) {
    require(plan->steps.back().layout.canonical() == to.canonical(), "a reshard ends in another layout");
  }
}

void useRule(const std::string& text, const Shape& shape, const Mesh& mesh, const Layout& layout) {
  const absl::StatusOr<Rule> rule = Rule::parse(text, {shape}, {shape});
  if (rule.ok() && layout.check(shape, mesh).ok()) {
    const Rule::Projection projection = rule->projectOperand(0, layout);
    rule->check(projection.axes, mesh).IgnoreError();
    rule->resultLayout(0, projection.axes);
  }
}

Outcome run(const std::string& bytes) {
  std::vector<std::string> lines = absl::StrSplit(bytes, '\n');
  lines.resize(kLines);
  Machine::parse(bytes).IgnoreError();
  parseStageMeshes(lines[kMesh], 2).IgnoreError();
  const absl::StatusOr<Mesh> mesh = Mesh::parse(lines[kMesh]);
  const absl::StatusOr<Shape> shape = tools::parseShape(lines[kShape]);
  if (!mesh.ok() || !shape.ok()) {
    return Outcome::kRefused;
  }
  require(Mesh::parse(mesh->print()).ok(), "a printed mesh");
  mesh->resolve(lines[kRule]).IgnoreError();
  const absl::StatusOr<Layout> from = layoutOf(lines[kFrom], *mesh);
  const absl::StatusOr<Layout> to = layoutOf(lines[kTo], *mesh);
  if (!from.ok() || !to.ok()) {
    return Outcome::kRefused;
  }
  useRule(lines[kRule], *shape, *mesh, *from);
  reshard(*mesh, *shape, *from, *to);
  return Outcome::kAccepted;
}

}  // namespace

Target layoutsTarget() {
  return {"layouts", run, nullptr,
          wordsOf("dp=2|tp=4|micro=3|all|all:(2)4|tp:(1)2|[{dp},{}]|[{},{tp}]|{dp,tp}|partial{dp:sum}|"
                  "pad{0:8}|[|]|{|}|,|;|\n|m k+, k+ n -> m n|->|+|!|~|(a b)|max|<|>|=|:")};
}

}  // namespace weft::fuzz
