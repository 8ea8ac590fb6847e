// The planner: checks the two layouts, deals with time axes, hands the rest to the search and writes out the steps.
#include "ir/layout/reshard.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/layout/reshard_answers.h"
#include "ir/layout/reshard_line.h"
#include "ir/layout/reshard_space.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

using reshard::Answer;
using reshard::Digit;
using reshard::Path;
using reshard::PathStep;
using reshard::Problem;
using reshard::VirtualLine;

bool inside(const Axis& part, const Axis& whole) {
  return part.kind == whole.kind && whole.pre <= part.pre && part.end() <= whole.end() && part.pre % whole.pre == 0 &&
         whole.end() % part.end() == 0;
}

AxisList ofKind(const AxisList& axes, AxisKind kind) {
  AxisList result;
  std::copy_if(axes.begin(), axes.end(), std::back_inserter(result),
               [kind](const Axis& axis) { return axis.kind == kind; });
  return result;
}

// What is left of sorted `partial` without `axis`, which lies inside one of them.
std::vector<Partial> withoutAxis(const std::vector<Partial>& partial, const Axis& axis) {
  std::vector<Partial> rest;
  for (const Partial& p : partial) {
    if (!inside(axis, p.axis)) {
      rest.push_back(p);
      continue;
    }
    if (p.axis.pre < axis.pre) {
      rest.push_back({{p.axis.kind, p.axis.pre, axis.pre / p.axis.pre}, p.kind});
    }
    if (axis.end() < p.axis.end()) {
      rest.push_back({{p.axis.kind, axis.end(), p.axis.end() / axis.end()}, p.kind});
    }
  }
  return rest;
}

int64_t bytesOf(const Shape& shape, DType type) {
  int64_t bytes = byteSize(type);
  for (int64_t size : shape) {
    bytes *= size;
  }
  return bytes;
}

// What a rank's tensor is: its slice, and which term of a partial sum.
std::vector<int64_t> contentOf(const Layout& layout, const Shape& shape, const Mesh& mesh, int64_t rank) {
  std::vector<int64_t> content = layout.slice(shape, mesh, rank).offset;
  for (const Partial& p : layout.partial()) {
    if (p.axis.kind == AxisKind::kSpace) {
      content.push_back(mesh.coordinate(p.axis, rank));
    }
  }
  return content;
}

}  // namespace

std::vector<int64_t> permuteSources(const Layout& before, const Layout& after, const Mesh& mesh) {
  Shape shape;  // of one element for each part
  for (size_t d = 0; d < before.dimensions(); ++d) {
    if (d >= after.dimensions() || before.parts(d) != after.parts(d)) {
      return {};
    }
    shape.push_back(before.parts(d));
  }
  std::vector<int64_t> source(mesh.ranks(), -1);
  std::map<std::vector<int64_t>, std::vector<int64_t>> holders;
  std::vector<std::vector<int64_t>> wanted;
  for (int64_t rank = 0; rank < mesh.ranks(); ++rank) {
    wanted.push_back(contentOf(after, shape, mesh, rank));
    std::vector<int64_t> held = contentOf(before, shape, mesh, rank);
    if (held == wanted.back()) {
      source[rank] = rank;
    } else {
      holders[held].push_back(rank);
    }
  }
  std::map<std::vector<int64_t>, size_t> next;
  for (int64_t rank = 0; rank < mesh.ranks(); ++rank) {
    if (source[rank] < 0) {
      const std::vector<int64_t>& from = holders[wanted[rank]];
      size_t& taken = next[wanted[rank]];
      if (taken == from.size()) {
        return {};
      }
      source[rank] = from[taken++];
    }
  }
  return source;
}

namespace {

// A line with up to this many cuts (16 ranks have 5, 12 ranks 6) is also searched with cuts at every divisor.
constexpr size_t kMaxFineCuts = 6;

// Dimensions that neither end splits and a path may split on its way; partial sums are scattered over more of them.
constexpr size_t kMostIdle = 1;
constexpr size_t kMostIdleOfSums = 2;

// Plans one reshard on a mesh.
class Planning {
 public:
  Planning(const Mesh& mesh, const Machine& machine, const Shape& shape, DType type)
      : mesh_(mesh), machine_(machine), shape_(shape), type_(type) {}

  absl::Status check(const Layout& from, const Layout& to) {
    WEFT_RETURN_IF_ERROR(checkOne("from", from));
    WEFT_RETURN_IF_ERROR(checkOne("to", to));
    from_ = from.canonical();
    to_ = to.canonical();
    for (size_t d = 0; d < shape_.size(); ++d) {
      if (from.pad(d) != to.pad(d)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "reshard: dimension ", d, " is stored with ", from.storedSize(d, shape_[d]), " elements before and ",
            to.storedSize(d, shape_[d]), " after; a reshard keeps the pad: give both the same"));
      }
    }
    WEFT_RETURN_IF_ERROR(checkPartial());
    WEFT_RETURN_IF_ERROR(checkTime());
    freezeIdle();
    return absl::OkStatus();
  }

  // Accumulation over the micro-batches comes first: everything after it costs once per step.
  void accumulate() {
    current_ = from_;
    std::vector<Partial> keep = from_.partial();
    AxisList axes;
    for (const Partial& p : from_.partial()) {
      if (p.axis.kind != AxisKind::kTime) {
        continue;
      }
      std::vector<Partial> rest{p};
      for (const Partial& wanted : to_.partial()) {
        rest = withoutAxis(rest, wanted.axis);
      }
      for (const Partial& gone : rest) {
        axes.push_back(gone.axis);
        keep = withoutAxis(keep, gone.axis);
      }
    }
    if (!axes.empty()) {
      Layout after = current_;
      after.setPartial(std::move(keep));
      ReshardStep step;
      step.kind = CollectiveKind::kAllReduce;
      step.axes = axes;
      addStep(std::move(step), std::move(after));
    }
  }

  // The problem for the search; also fixes what may not move. The path that answers it goes to `follow` before the
  // next call.
  Problem problem(VirtualLine::Cuts cuts) {
    reshard::Fixed fixed{frozen_, {}};
    Problem problem;
    problem.unitBytes = byteSize(type_);
    Layout from = spaceOnly(from_);
    Layout to = spaceOnly(to_);
    Shape stored = from_.storedShape(shape_);
    Shape local = from_.localShape(shape_);
    for (size_t d = 0; d < shape_.size(); ++d) {
      if (frozen_[d]) {
        fixed.axes.insert(fixed.axes.end(), from.dim(d).begin(), from.dim(d).end());
        problem.unitBytes *= local[d];
      } else {
        problem.sizes.push_back(stored[d]);
      }
    }
    std::vector<Partial> partial = from.partial();
    for (const Partial& p : to.partial()) {
      fixed.axes.push_back(p.axis);
      partial = withoutAxis(partial, p.axis);
    }
    line_ = std::make_unique<VirtualLine>(mesh_, from, to, stored, fixed, cuts);
    problem.cuts = line_->cuts();
    problem.permuted = {mesh_.ranks(), machine_.perNode(mesh_.ranks())};
    if (problem.permuted.nodes() > 1) {
      problem.perNode = membersPerNode();
      problem.cutsNodesEvenly = cutsNodesEvenly();
    }
    problem.from.dims = digitsOf(from);
    problem.to.dims = digitsOf(to);
    for (const Partial& p : partial) {
      problem.scatterable = problem.scatterable && p.kind == ReduceKind::kSum;
      for (Digit digit : line_->digitsOf({p.axis})) {
        reshard::insertSorted(problem.from.partial, digit);
      }
    }
    return problem;
  }

  void follow(const Path& path) {
    for (const PathStep& step : path) {
      ReshardStep out;
      out.kind = step.move.kind;
      out.axes = line_->axesOf(step.move.axes);
      out.sourceDim = dimOf(step.move.source);
      out.targetDim = dimOf(step.move.target);
      addStep(std::move(out), layoutOf(step.after));
    }
  }

  // Views of the micro-batch come last.
  void sliceTime() {
    for (size_t d = 0; d < shape_.size(); ++d) {
      AxisList time = ofKind(to_.dim(d), AxisKind::kTime);
      if (time.empty() || frozen_[d]) {
        continue;
      }
      Layout after = current_;
      after.setDim(d, to_.dim(d));
      ReshardStep step;
      step.kind = CollectiveKind::kSlice;
      step.axes = time;
      step.targetDim = static_cast<int64_t>(d);
      addStep(std::move(step), std::move(after));
    }
  }

  absl::StatusOr<ReshardPlan> finish(const Layout& to) {
    if (!(current_.canonical() == to_)) {
      return absl::InternalError(
          absl::StrCat("reshard: the plan ends at ", current_.print(mesh_), " instead of ", to_.print(mesh_)));
    }
    if (!plan_.steps.empty()) {
      plan_.steps.back().layout = to;
    }
    return std::move(plan_);
  }

 private:
  absl::Status checkOne(const std::string& word, const Layout& layout) const {
    absl::Status status = layout.check(shape_, mesh_);
    return status.ok() ? status
                       : absl::InvalidArgumentError(absl::StrCat("reshard: layout '", word, "' ", layout.print(mesh_),
                                                                 ": ", status.message()));
  }

  absl::Status checkPartial() const {
    for (const Partial& wanted : to_.partial()) {
      bool there = std::any_of(from_.partial().begin(), from_.partial().end(),
                               [&](const Partial& p) { return p.kind == wanted.kind && inside(wanted.axis, p.axis); });
      if (!there) {
        return absl::InvalidArgumentError(absl::StrCat(
            "reshard: '", to_.print(mesh_), "' is partial{", mesh_.name(wanted.axis), ":", reduceKindName(wanted.kind),
            "}, '", from_.print(mesh_), "' is not; a reshard never makes a value partial: leave the axis out of 'to'"));
      }
    }
    return absl::OkStatus();
  }

  // Dimensions split over time on both sides must lie still; time axes may not leave a dimension.
  absl::Status checkTime() {
    frozen_.assign(shape_.size(), false);
    for (size_t d = 0; d < shape_.size(); ++d) {
      AxisList before = ofKind(from_.dim(d), AxisKind::kTime);
      AxisList after = ofKind(to_.dim(d), AxisKind::kTime);
      if (before.empty()) {
        continue;
      }
      frozen_[d] = true;
      if (before != after || from_.dim(d) != to_.dim(d)) {
        return absl::InvalidArgumentError(
            absl::StrCat("reshard: dimension ", d, " of '", from_.print(mesh_), "' is split over time (",
                         mesh_.name(before[0]), "); going to '", to_.print(mesh_),
                         "' would mix the micro-batches of a step; keep dimension ", d, " as it is"));
      }
    }
    return absl::OkStatus();
  }

  // Of the dimensions that neither end splits, those may serve on the way that most ranks can split.
  void freezeIdle() {
    std::vector<std::pair<int64_t, size_t>> idle;  // parts, negative so that most come first
    for (size_t d = 0; d < shape_.size(); ++d) {
      if (from_.dim(d).empty() && to_.dim(d).empty()) {
        frozen_[d] = true;
        idle.emplace_back(-std::gcd(from_.storedSize(d, shape_[d]), mesh_.ranks()), d);
      }
    }
    std::sort(idle.begin(), idle.end());
    idle.resize(std::min(idle.size(), from_.isPartial() ? kMostIdleOfSums : kMostIdle));
    for (const auto& [parts, d] : idle) {
      frozen_[d] = parts == -1;
    }
  }

  Layout spaceOnly(const Layout& layout) const {
    Layout result = layout;
    for (size_t d = 0; d < layout.dimensions(); ++d) {
      result.setDim(d, ofKind(layout.dim(d), AxisKind::kSpace));
    }
    std::vector<Partial> partial;
    std::copy_if(layout.partial().begin(), layout.partial().end(), std::back_inserter(partial),
                 [](const Partial& p) { return p.axis.kind == AxisKind::kSpace; });
    result.setPartial(std::move(partial));
    return result;
  }

  // By digit of the line, see Problem.
  std::vector<int64_t> membersPerNode() const {
    const std::vector<int64_t>& cuts = line_->cuts();
    std::vector<int64_t> members;
    for (uint8_t low = 0; low < cuts.size(); ++low) {
      for (uint8_t high = 0; high < cuts.size(); ++high) {
        const bool isDigit = low < high && cuts[high] % cuts[low] == 0;
        members.push_back(isDigit ? spanOf(machine_, mesh_.ranks(), line_->axesOf({{low, high}})).perNode : 1);
      }
    }
    return members;
  }

  // Not where an axis has three ranks and a node two: some pairs of them share a node, others do not.
  bool cutsNodesEvenly() const {
    const int64_t onNode = machine_.perNode(mesh_.ranks());
    const auto divideOneAnother = [](int64_t a, int64_t b) { return a % b == 0 || b % a == 0; };
    const std::vector<int64_t>& cuts = line_->cuts();
    for (uint8_t low = 0; low + 1u < cuts.size(); ++low) {
      if (cuts[low + 1] % cuts[low] != 0) {
        return false;
      }
      const AxisList axes = line_->axesOf({{low, static_cast<uint8_t>(low + 1)}});
      const int64_t inside = mesh_.ranks() / axes.front().end();
      if (axes.size() > 1 || !divideOneAnother(inside, onNode) ||
          !divideOneAnother(inside * axes.front().size, onNode)) {
        return false;
      }
    }
    return true;
  }

  absl::InlinedVector<reshard::Digits, 4> digitsOf(const Layout& layout) const {
    absl::InlinedVector<reshard::Digits, 4> dims;
    for (size_t d = 0; d < shape_.size(); ++d) {
      if (!frozen_[d]) {
        dims.push_back(line_->digitsOf(layout.dim(d)));
      }
    }
    return dims;
  }

  // The tensor's dimension for dimension `index` of the search, which leaves the frozen ones out.
  int64_t dimOf(int index) const {
    for (size_t d = 0; d < shape_.size(); ++d) {
      if (!frozen_[d] && index-- == 0) {
        return static_cast<int64_t>(d);
      }
    }
    return -1;
  }

  Layout layoutOf(const reshard::State& state) const {
    Layout layout = current_;
    for (size_t i = 0; i < state.dims.size(); ++i) {
      layout.setDim(dimOf(static_cast<int>(i)), line_->axesOf(state.dims[i]));
    }
    std::vector<Partial> partial = to_.partial();
    for (const Axis& axis : line_->axesOf(state.partial)) {
      partial.push_back({axis, from_.partial()[0].kind});
    }
    layout.setPartial(std::move(partial));
    return layout.canonical();
  }

  void addStep(ReshardStep step, Layout after) {
    int64_t before = bytesOf(current_.localShape(shape_), type_);
    step.layout = std::move(after);
    step.localShape = step.layout.localShape(shape_);
    step.reduce = from_.isPartial() ? from_.partial()[0].kind : ReduceKind::kSum;
    bool time = !step.axes.empty() && step.axes[0].kind == AxisKind::kTime;
    if (!time) {
      const bool all = step.kind == CollectiveKind::kPermute;
      step.span =
          all ? GroupSpan{mesh_.ranks(), machine_.perNode(mesh_.ranks())} : spanOf(machine_, mesh_.ranks(), step.axes);
      step.bytesReceived = receivedBytes(step.kind, step.span.ranks, before);
      step.cost = collectiveCost(machine_, step.kind, step.span, step.bytesReceived);
    }
    if (step.kind == CollectiveKind::kPermute) {
      step.source = permuteSources(current_, step.layout, mesh_);
    }
    current_ = step.layout;
    plan_.cost += step.cost;
    plan_.steps.push_back(std::move(step));
  }

  const Mesh& mesh_;
  const Machine& machine_;
  const Shape& shape_;
  DType type_;
  Layout from_;
  Layout to_;
  Layout current_;
  std::vector<bool> frozen_;
  std::unique_ptr<VirtualLine> line_;
  ReshardPlan plan_;
};

}  // namespace

ReshardPlanner::ReshardPlanner(Mesh mesh, Machine machine)
    : mesh_(std::move(mesh)), machine_(std::move(machine)), machineKey_(reshard::pricesKey(machine_)) {}

absl::StatusOr<Picoseconds> ReshardPlanner::leastCost(const Shape& shape, DType type, const Layout& from,
                                                      const Layout& to) const {
  Planning planning(mesh_, machine_, shape, type);
  WEFT_RETURN_IF_ERROR(planning.check(from, to));
  planning.accumulate();
  const Problem problem = planning.problem(VirtualLine::Cuts::kWhereAsked);
  return reshard::leastPathTime(reshard::Space(problem, machine_), problem.from, problem.to);
}

absl::StatusOr<ReshardPlan> ReshardPlanner::plan(const Shape& shape, DType type, const Layout& from, const Layout& to) {
  Planning planning(mesh_, machine_, shape, type);
  WEFT_RETURN_IF_ERROR(planning.check(from, to));
  planning.accumulate();
  Answer answer = reshard::answerOf(planning.problem(VirtualLine::Cuts::kWhereAsked), machine_, machineKey_);
  // Further cuts are for saving bytes, or bytes between nodes; a path that only trades a hop of latency for one more
  // collective is left alone.
  if (answer.collectives() > 1) {
    const Problem fine = planning.problem(VirtualLine::Cuts::kEverywhere);
    std::optional<Answer> other;
    if (fine.cuts.size() <= kMaxFineCuts) {
      other = reshard::answerOf(fine, machine_, machineKey_);
    }
    const bool saves = other && (other->total.bytes < answer.total.bytes || fine.permuted.nodes() > 1);
    if (saves && other->total.time < answer.total.time) {
      answer = *std::move(other);
    } else {
      planning.problem(VirtualLine::Cuts::kWhereAsked);
    }
  }
  planning.follow(answer.path);
  planning.sliceTime();
  return planning.finish(to);
}

}  // namespace weft
