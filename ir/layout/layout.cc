#include "ir/layout/layout.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

// Sorts axes along the line and joins neighbors that continue each other; size-1 axes go.
AxisList joinedSorted(AxisList axes) {
  std::sort(axes.begin(), axes.end());
  AxisList result;
  for (const Axis& axis : axes) {
    std::optional<Axis> longer = result.empty() ? std::nullopt : join(result.back(), axis);
    if (axis.size == 1) {
      continue;
    }
    if (longer) {
      result.back() = *longer;
    } else {
      result.push_back(axis);
    }
  }
  return result;
}

// Joins neighbors of a dimension, in the order given.
AxisList joinedInOrder(const AxisList& axes) {
  AxisList result;
  for (const Axis& axis : axes) {
    if (axis.size == 1) {
      continue;
    }
    std::optional<Axis> longer = result.empty() ? std::nullopt : join(result.back(), axis);
    if (longer) {
      result.back() = *longer;
    } else {
      result.push_back(axis);
    }
  }
  return result;
}

std::vector<Partial> joinedPartial(std::vector<Partial> partial) {
  std::sort(partial.begin(), partial.end());
  std::vector<Partial> result;
  for (const Partial& p : partial) {
    if (p.axis.size == 1) {
      continue;
    }
    if (!result.empty() && result.back().kind == p.kind) {
      if (std::optional<Axis> longer = join(result.back().axis, p.axis)) {
        result.back().axis = *longer;
        continue;
      }
    }
    result.push_back(p);
  }
  return result;
}

absl::Status checkAxisFits(const Axis& axis, const Mesh& mesh) {
  int64_t total = axis.kind == AxisKind::kSpace ? mesh.ranks() : mesh.microBatches();
  if (axis.pre < 1 || axis.size < 1 || total % axis.end() != 0) {
    return absl::InvalidArgumentError(absl::StrCat("axis (", axis.pre, ")", axis.size, " does not cut the ", total,
                                                   axis.kind == AxisKind::kSpace ? " ranks" : " micro-batches",
                                                   " of mesh ", mesh.print(), " into equal parts"));
  }
  return absl::OkStatus();
}

// Two axes of one layout must be different digits of one way to cut the line.
absl::Status checkPair(const Axis& a, const Axis& b, const Mesh& mesh) {
  if (compatible(a, b)) {
    return absl::OkStatus();
  }
  if (overlap(a, b)) {
    return absl::InvalidArgumentError(
        a == b ? absl::StrCat("axis ", mesh.name(a), " is used twice; an axis may stand once")
               : absl::StrCat("axes ", mesh.name(a), " and ", mesh.name(b),
                              " share a part of the ranks; an axis may stand once"));
  }
  const Axis& low = a.pre < b.pre ? a : b;
  const Axis& high = a.pre < b.pre ? b : a;
  return absl::InvalidArgumentError(absl::StrCat("axes ", mesh.name(a), " and ", mesh.name(b),
                                                 " cut the ranks in ways that do not nest (", low.end(), " against ",
                                                 high.pre, "); use sub-axes of one cut"));
}

std::string axisList(const AxisList& axes, const Mesh& mesh) {
  return absl::StrJoin(axes, ",", [&](std::string* out, const Axis& axis) { out->append(mesh.name(axis)); });
}

absl::Status checkDivides(size_t d, int64_t size, const AxisList& axes, const Mesh& mesh) {
  int64_t parts = partsOf(axes);
  if (size % parts == 0) {
    return absl::OkStatus();
  }
  int64_t below = size / parts * parts;
  std::string nearest = below > 0 ? absl::StrCat(below, " and ", below + parts) : absl::StrCat(below + parts);
  return absl::InvalidArgumentError(absl::StrCat(
      "dimension ", d, " of size ", size, " does not divide into ", parts, " parts (", axisList(axes, mesh),
      "); nearest sizes that do: ", nearest, ", for instance pad{", d, ":", below + parts, "}"));
}

absl::Status checkTimeLast(size_t d, const AxisList& axes, const Mesh& mesh) {
  for (size_t i = 0; i + 1 < axes.size(); ++i) {
    if (axes[i].kind == AxisKind::kTime && axes[i + 1].kind == AxisKind::kSpace) {
      return absl::InvalidArgumentError(absl::StrCat("dimension ", d, ": time axis ", mesh.name(axes[i]),
                                                     " stands before ", mesh.name(axes[i + 1]),
                                                     "; time axes come last"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string reduceKindName(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::kSum:
      return "sum";
    case ReduceKind::kMax:
      return "max";
    case ReduceKind::kMin:
      return "min";
  }
  return "?";
}

Layout::Layout(AxisLists dims, std::vector<Partial> partial) : dims_(std::move(dims)), partial_(std::move(partial)) {}

std::string Layout::print(const Mesh& mesh) const {
  std::vector<std::string> dims;
  for (const AxisList& axes : dims_) {
    dims.push_back(absl::StrCat("{", axisList(axes, mesh), "}"));
  }
  std::string text = absl::StrCat("[", absl::StrJoin(dims, ","), "]");
  std::vector<std::string> partial;
  for (const Partial& p : partial_) {
    // An axis over several names prints as "dp,tp"; each name carries its reduction.
    std::string kind = absl::StrCat(":", reduceKindName(p.kind));
    std::string names = mesh.name(p.axis);
    for (size_t comma = names.find(','); comma != std::string::npos; comma = names.find(',', comma + kind.size() + 1)) {
      names.insert(comma, kind);
    }
    partial.push_back(names + kind);
  }
  if (!partial.empty()) {
    absl::StrAppend(&text, " partial{", absl::StrJoin(partial, ","), "}");
  }
  std::vector<std::string> pads;
  for (size_t d = 0; d < pads_.size(); ++d) {
    if (pads_[d] != 0) {
      pads.push_back(absl::StrCat(d, ":", pads_[d]));
    }
  }
  if (!pads.empty()) {
    absl::StrAppend(&text, " pad{", absl::StrJoin(pads, ","), "}");
  }
  return text;
}

void Layout::setDim(size_t d, AxisList axes) {
  dims_[d] = std::move(axes);
}

void Layout::setPartial(std::vector<Partial> partial) {
  partial_ = std::move(partial);
}

int64_t Layout::storedSize(size_t d, int64_t size) const {
  return pad(d) == 0 ? size : pad(d);
}

void Layout::setPad(size_t d, int64_t stored) {
  pads_.resize(dims_.size(), 0);
  pads_[d] = stored;
  if (!hasPad()) {
    pads_.clear();
  }
}

bool Layout::hasPad() const {
  return std::any_of(pads_.begin(), pads_.end(), [](int64_t pad) { return pad != 0; });
}

int64_t Layout::parts(size_t d) const {
  return partsOf(dims_[d]);
}

bool Layout::isReplicated() const {
  Layout plain = canonical();
  return plain.partial_.empty() &&
         std::all_of(plain.dims_.begin(), plain.dims_.end(), [](const auto& axes) { return axes.empty(); });
}

bool Layout::uses(const Axis& axis) const {
  auto shares = [&](const Axis& mine) { return overlap(mine, axis); };
  bool split = std::any_of(dims_.begin(), dims_.end(),
                           [&](const auto& axes) { return std::any_of(axes.begin(), axes.end(), shares); });
  return split || std::any_of(partial_.begin(), partial_.end(), [&](const Partial& p) { return shares(p.axis); });
}

absl::Status Layout::check(const Shape& shape, const Mesh& mesh) const {
  if (shape.size() != dims_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("layout ", print(mesh), " has ", dims_.size(),
                                                   " dimensions, the shape [", absl::StrJoin(shape, ","), "] has ",
                                                   shape.size()));
  }
  AxisList used;
  for (size_t d = 0; d < dims_.size(); ++d) {
    WEFT_RETURN_IF_ERROR(checkTimeLast(d, dims_[d], mesh));
    used.insert(used.end(), dims_[d].begin(), dims_[d].end());
  }
  for (const Partial& p : partial_) {
    used.push_back(p.axis);
    if (p.kind != partial_[0].kind) {
      return absl::InvalidArgumentError(absl::StrCat("a value cannot be partial ", reduceKindName(partial_[0].kind),
                                                     " over ", mesh.name(partial_[0].axis), " and partial ",
                                                     reduceKindName(p.kind), " over ", mesh.name(p.axis),
                                                     ": the order would matter; reduce one first"));
    }
  }
  for (size_t i = 0; i < used.size(); ++i) {
    WEFT_RETURN_IF_ERROR(checkAxisFits(used[i], mesh));
    for (size_t j = 0; j < i; ++j) {
      WEFT_RETURN_IF_ERROR(checkPair(used[j], used[i], mesh));
    }
  }
  for (size_t d = 0; d < dims_.size(); ++d) {
    if (pad(d) != 0 && pad(d) < shape[d]) {
      return absl::InvalidArgumentError(
          absl::StrCat("dimension ", d, ": pad{", d, ":", pad(d), "} is smaller than the size ", shape[d]));
    }
    WEFT_RETURN_IF_ERROR(checkDivides(d, storedSize(d, shape[d]), dims_[d], mesh));
  }
  return absl::OkStatus();
}

Shape Layout::localShape(const Shape& shape) const {
  Shape local = storedShape(shape);
  for (size_t d = 0; d < dims_.size(); ++d) {
    local[d] /= parts(d);
  }
  return local;
}

Shape Layout::storedShape(const Shape& shape) const {
  Shape stored = shape;
  for (size_t d = 0; d < dims_.size(); ++d) {
    stored[d] = storedSize(d, shape[d]);
  }
  return stored;
}

Slice Layout::slice(const Shape& shape, const Mesh& mesh, int64_t rank, int64_t microBatch) const {
  Slice slice;
  slice.size = localShape(shape);
  for (size_t d = 0; d < dims_.size(); ++d) {
    int64_t part = 0;
    for (const Axis& axis : dims_[d]) {
      part = part * axis.size + mesh.coordinate(axis, axis.kind == AxisKind::kSpace ? rank : microBatch);
    }
    slice.offset.push_back(part * slice.size[d]);
    slice.valid.push_back(std::clamp<int64_t>(shape[d] - slice.offset[d], 0, slice.size[d]));
  }
  return slice;
}

std::vector<std::vector<int64_t>> Layout::replicaGroups(const Mesh& mesh) const {
  AxisList used;
  for (const AxisList& axes : dims_) {
    used.insert(used.end(), axes.begin(), axes.end());
  }
  for (const Partial& p : partial_) {
    used.push_back(p.axis);
  }
  return mesh.groups(freeAxes(used, mesh));
}

Layout Layout::canonical() const {
  Layout result = *this;
  for (AxisList& axes : result.dims_) {
    axes = joinedInOrder(axes);
  }
  result.partial_ = joinedPartial(partial_);
  if (!hasPad()) {
    result.pads_.clear();
  }
  return result;
}

std::vector<Partial> sumsCutAtNames(const Layout& layout, const Mesh& mesh) {
  const Layout joined = layout.canonical();
  std::vector<Partial> cut;
  for (const Partial& sum : joined.partial()) {
    Partial rest = sum;
    for (const NamedAxis& named : mesh.axes()) {
      const int64_t border = named.axis.end();
      const bool ranks = sum.axis.kind == AxisKind::kSpace && named.axis.kind == AxisKind::kSpace;
      const bool cuts = ranks && border > rest.axis.pre && border < rest.axis.end() && border % rest.axis.pre == 0 &&
                        rest.axis.end() % border == 0;
      if (cuts) {
        cut.push_back({{rest.axis.kind, rest.axis.pre, border / rest.axis.pre}, sum.kind});
        rest.axis = {rest.axis.kind, border, rest.axis.end() / border};
      }
    }
    cut.push_back(rest);
  }
  return cut;
}

AxisList freeAxes(const AxisList& used, const Mesh& mesh) {
  AxisList space;
  std::copy_if(used.begin(), used.end(), std::back_inserter(space),
               [](const Axis& axis) { return axis.kind == AxisKind::kSpace; });
  space = joinedSorted(std::move(space));
  space.push_back({AxisKind::kSpace, mesh.ranks(), 1});
  AxisList free;
  int64_t at = 1;
  for (const Axis& axis : space) {
    if (axis.pre > at) {
      free.push_back({AxisKind::kSpace, at, axis.pre / at});
    }
    at = std::max(at, axis.end());
  }
  return free;
}

}  // namespace weft
