#include "ir/layout/rule.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/layout/divisors.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

using TensorDims = std::vector<DimFactors>;

Layout splitsOf(const TensorDims& dims, const FactorAxes& axes) {
  AxisLists split(dims.size());
  for (size_t d = 0; d < dims.size(); ++d) {
    for (int f : dims[d]) {
      split[d].insert(split[d].end(), axes[f].begin(), axes[f].end());
    }
  }
  return Layout(std::move(split));
}

// Hands the axes of one dimension to its factors, from the major side.
class DimProjector {
 public:
  DimProjector(const std::vector<Factor>& factors, const DimFactors& dim, Rule::Projection& out)
      : factors_(factors), dim_(dim), out_(out), left_(dim.empty() ? 1 : factors[dim[0]].size) {}

  void take(Axis axis) {
    while (axis.size > 1) {
      while (left_ == 1 && at_ + 1 < dim_.size()) {
        left_ = factors_[dim_[++at_]].size;
      }
      int64_t part = std::gcd(left_, axis.size);
      // An axis may be cut only where the factor ends: what follows belongs to the next factor.
      bool fits = part == axis.size || (part > 1 && part == left_ && at_ + 1 < dim_.size());
      if (closed_ || dim_.empty() || !fits) {
        out_.overflow.push_back(axis);
        closed_ = true;
        return;
      }
      out_.axes[dim_[at_]].push_back({axis.kind, axis.pre, part});
      left_ /= part;
      axis = {axis.kind, axis.pre * part, axis.size / part};
    }
  }

 private:
  const std::vector<Factor>& factors_;
  const DimFactors& dim_;
  Rule::Projection& out_;
  size_t at_ = 0;        // the factor that takes axes now
  int64_t left_;         // what is left to split of it
  bool closed_ = false;  // an axis did not fit: nothing minor to it may either
};

Rule::Projection projectDim(const std::vector<Factor>& factors, const DimFactors& dim, const AxisList& axes) {
  Rule::Projection out;
  out.axes.resize(factors.size());
  DimProjector projector(factors, dim, out);
  for (const Axis& axis : axes) {
    projector.take(axis);
  }
  return out;
}

AxisList joinedAxes(const AxisList& axes) {
  AxisList joined;
  for (const Axis& axis : axes) {
    const std::optional<Axis> both = joined.empty() ? std::nullopt : join(joined.back(), axis);
    if (both) {
      joined.back() = *both;
    } else {
      joined.push_back(axis);
    }
  }
  return joined;
}

Rule::Projection projectOnto(const std::vector<Factor>& factors, const TensorDims& dims, const Layout& layout) {
  Rule::Projection out;
  out.axes.resize(factors.size());
  for (size_t d = 0; d < dims.size(); ++d) {
    if (layout.dim(d).empty()) {
      continue;
    }
    if (layout.pad(d) != 0 && dims[d].size() == 1) {
      out.axes[dims[d][0]] = layout.dim(d);
      continue;
    }
    Rule::Projection written = projectDim(factors, dims[d], layout.dim(d));
    if (!written.overflow.empty()) {
      // Two axes that continue each other may be cut elsewhere: 3 then 2 are also 2 then 3.
      Rule::Projection joined = projectDim(factors, dims[d], joinedAxes(layout.dim(d)));
      if (joined.overflow.empty()) {
        written = std::move(joined);
      }
    }
    for (const int f : dims[d]) {
      out.axes[f] = written.axes[f];
    }
    out.overflow.insert(out.overflow.end(), written.overflow.begin(), written.overflow.end());
  }
  return out;
}

absl::Status checkUsedOnce(const std::vector<Factor>& factors, const FactorAxes& axes, const Mesh& mesh) {
  std::vector<std::pair<Axis, size_t>> used;
  for (size_t f = 0; f < axes.size(); ++f) {
    // Micro-batches are counted beside the factor that carries the batch.
    for (const Axis& axis : factors[f].microBatches ? AxisList() : axes[f]) {
      for (const auto& [other, owner] : used) {
        if (!overlap(axis, other)) {
          continue;
        }
        std::string mine = mesh.name(axis);
        std::string theirs = mesh.name(other);
        return absl::InvalidArgumentError(
            absl::StrCat("axis ", mine, " of factor '", factors[f].name, "' is used by factor '", factors[owner].name,
                         "'", mine == theirs ? "" : absl::StrCat(" as ", theirs), "; an axis splits one factor"));
      }
      used.push_back({axis, f});
    }
  }
  return absl::OkStatus();
}

std::string axisNames(const AxisList& axes, const Mesh& mesh) {
  return absl::StrJoin(axes, ",", [&](std::string* out, const Axis& axis) { out->append(mesh.name(axis)); });
}

}  // namespace

bool hasFactor(const std::vector<DimFactors>& dims, int factor) {
  return std::any_of(dims.begin(), dims.end(), [factor](const DimFactors& dim) {
    return std::find(dim.begin(), dim.end(), factor) != dim.end();
  });
}

int Rule::factorIndex(const std::string& name) const {
  for (size_t f = 0; f < factors().size(); ++f) {
    if (factors()[f].name == name) {
      return static_cast<int>(f);
    }
  }
  return -1;
}

bool Rule::splittable(int f) const {
  if (factors()[f].whole || factors()[f].microBatches) {
    return false;
  }
  return factors()[f].reducible ||
         std::all_of(results().begin(), results().end(), [f](const TensorDims& dims) { return hasFactor(dims, f); });
}

bool Rule::namesMicroBatches() const {
  return std::any_of(factors().begin(), factors().end(), [](const Factor& factor) { return factor.microBatches; });
}

bool Rule::hasMicroBatches(const std::vector<DimFactors>& dims) const {
  for (size_t f = 0; f < factors().size(); ++f) {
    if (factors()[f].microBatches && hasFactor(dims, static_cast<int>(f))) {
      return true;
    }
  }
  return false;
}

bool Rule::reducedIn(int f, size_t result) const {
  return factors()[f].reducible && !hasFactor(results()[result], f);
}

Layout Rule::operandLayout(size_t operand, const FactorAxes& axes) const {
  return splitsOf(operands()[operand], axes);
}

Layout Rule::resultLayout(size_t result, const FactorAxes& axes, ReduceKind kind) const {
  Layout layout = splitsOf(results()[result], axes);
  std::vector<Partial> partial;
  for (size_t f = 0; f < factors().size(); ++f) {
    for (const Axis& axis : axes[f]) {
      if (reducedIn(static_cast<int>(f), result) && !layout.uses(axis)) {
        partial.push_back({axis, kind});
      }
    }
  }
  layout.setPartial(std::move(partial));
  return layout;
}

Rule::Projection Rule::projectOperand(size_t operand, const Layout& layout) const {
  return projectOnto(factors(), operands()[operand], layout);
}

Rule::Projection Rule::projectResult(size_t result, const Layout& layout) const {
  return projectOnto(factors(), results()[result], layout);
}

absl::Status Rule::check(const FactorAxes& axes, const Mesh& mesh, const std::vector<int>& padded) const {
  if (axes.size() != factors().size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("rule '", text(), "' has ", factors().size(), " factors, axes are given for ", axes.size()));
  }
  WEFT_RETURN_IF_ERROR(checkUsedOnce(factors(), axes, mesh));
  for (size_t f = 0; f < axes.size(); ++f) {
    int64_t parts = partsOf(axes[f]);
    const Factor& factor = factors()[f];
    const bool onlyTime =
        std::all_of(axes[f].begin(), axes[f].end(), [](const Axis& axis) { return axis.kind == AxisKind::kTime; });
    if (parts > 1 && !(factor.microBatches && onlyTime) && !splittable(static_cast<int>(f))) {
      return absl::InvalidArgumentError(
          absl::StrCat("factor '", factor.name, "' of size ", factor.size, " must stay whole in '", text(),
                       "', but is split ", parts, " ways over ", axisNames(axes[f], mesh), "; nearest legal split: 1"));
    }
    bool anySize = std::find(padded.begin(), padded.end(), static_cast<int>(f)) != padded.end();
    if (!anySize && factor.size % parts != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("factor '", factor.name, "' of size ", factor.size, " does not divide into ", parts, " parts (",
                       axisNames(axes[f], mesh), "); nearest legal splits: ", nearestDivisors(factor.size, parts)));
    }
  }
  auto contiguous = [&](const std::vector<TensorDims>& tensors) -> absl::Status {
    for (const TensorDims& dims : tensors) {
      for (const DimFactors& dim : dims) {
        WEFT_RETURN_IF_ERROR(checkOneBlock(dim, axes));
      }
    }
    return absl::OkStatus();
  };
  WEFT_RETURN_IF_ERROR(contiguous(operands()));
  return contiguous(results());
}

absl::Status Rule::checkOneBlock(const DimFactors& dim, const FactorAxes& axes) const {
  int open = -1;  // a major factor of which a rank keeps several elements
  for (int f : dim) {
    int64_t parts = partsOf(axes[f]);
    if (parts > 1 && open >= 0) {
      const Factor& major = factors()[open];
      return absl::InvalidArgumentError(
          absl::StrCat("factor '", factors()[f].name, "' of size ", factors()[f].size, " is split ", parts,
                       " ways, but it is minor to factor '", major.name, "' of size ", major.size, " (split ",
                       partsOf(axes[open]), " ways) in one dimension: a rank's part would not be one block; split '",
                       major.name, "' ", major.size, " ways or leave '", factors()[f].name, "' whole"));
    }
    if (open < 0 && factors()[f].size != parts) {
      open = f;
    }
  }
  return absl::OkStatus();
}

}  // namespace weft
