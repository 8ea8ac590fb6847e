// The user's splits by axis names, to axes of factors.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/layout/rule.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

// The dimension of a tensor in which a factor stands.
std::optional<size_t> dimOf(int factor, const std::vector<DimFactors>& dims) {
  const auto holds = [&](const DimFactors& dim) { return std::find(dim.begin(), dim.end(), factor) != dim.end(); };
  const auto found = std::find_if(dims.begin(), dims.end(), holds);
  return found == dims.end() ? std::nullopt : std::optional<size_t>(found - dims.begin());
}

class NamesResolver {
 public:
  NamesResolver(const Rule& rule, const Mesh& mesh)
      : rule_(rule),
        mesh_(mesh),
        from_(rule.factors().size()),
        out_{FactorAxes(from_.size()), std::vector<bool>(from_.size()), std::vector<bool>(from_.size())} {}

  absl::StatusOr<NamedStrategy> resolve(const Annotations& in, const Annotations& out) {
    WEFT_RETURN_IF_ERROR(checkCount("operand", in.size(), rule_.operands().size()));
    WEFT_RETURN_IF_ERROR(checkCount("result", out.size(), rule_.results().size()));
    for (size_t i = 0; i < in.size(); ++i) {
      if (in[i]) {
        WEFT_RETURN_IF_ERROR(
            take(absl::StrCat("operand ", i), rule_.operands()[i], *in[i], rule_.projectOperand(i, in[i]->layout)));
      }
    }
    const NamedStrategy ofOperands = out_;
    for (size_t r = 0; r < out.size(); ++r) {
      if (out[r]) {
        WEFT_RETURN_IF_ERROR(takeResult(r, *out[r], ofOperands));
      }
    }
    return std::move(out_);
  }

 private:
  static absl::Status checkCount(const char* word, size_t lists, size_t tensors) {
    return lists <= tensors
               ? absl::OkStatus()
               : absl::InvalidArgumentError(absl::StrCat("the strategy has ", lists, " ", word, "s, the operator ",
                                                         tensors, "; give at most one list of axis names per ", word));
  }

  absl::Status take(const std::string& tensor, const std::vector<DimFactors>& dims, const Annotation& annotation,
                    const Rule::Projection& projected) {
    if (!projected.overflow.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(tensor, " as ", annotation.layout.print(mesh_),
                       " splits a dimension that the operator sees as several, across their border; use fewer parts"));
    }
    for (size_t f = 0; f < from_.size(); ++f) {
      const std::optional<size_t> dim = dimOf(static_cast<int>(f), dims);
      const bool open = dim && annotation.open[*dim];
      // An open dimension without axes says nothing.
      if (!dim || (open && projected.axes[f].empty())) {
        continue;
      }
      if (out_.said[f] && out_.axes[f] != projected.axes[f]) {
        return absl::InvalidArgumentError(absl::StrCat("dimension '", rule_.factors()[f].name, "' is split over ",
                                                       Layout({out_.axes[f]}).print(mesh_), " in ", from_[f],
                                                       " but over ", Layout({projected.axes[f]}).print(mesh_), " in ",
                                                       tensor, "; write the same axes in both"));
      }
      out_.open[f] = open && (out_.open[f] || !out_.said[f]);
      out_.axes[f] = projected.axes[f];
      out_.said[f] = true;
      from_[f] = tensor;
    }
    return absl::OkStatus();
  }

  // Of a result only what no operand says: what it has besides is a reduction into its layout.
  absl::Status takeResult(size_t result, const Annotation& annotation, const NamedStrategy& ofOperands) {
    Annotation rest = annotation;
    for (size_t d = 0; d < rest.layout.dimensions(); ++d) {
      const DimFactors& factors = rule_.results()[result][d];
      if (std::any_of(factors.begin(), factors.end(), [&](int f) { return ofOperands.said[f]; })) {
        rest.layout.setDim(d, {});
        rest.open[d] = true;
      }
    }
    return take(absl::StrCat("result ", result), rule_.results()[result], rest,
                rule_.projectResult(result, rest.layout));
  }

  const Rule& rule_;
  const Mesh& mesh_;
  std::vector<std::string> from_;  // of each factor: the tensor that says it
  NamedStrategy out_;
};

}  // namespace

absl::StatusOr<NamedStrategy> resolveNames(const Rule& rule, const Annotations& in, const Annotations& out,
                                           const Mesh& mesh) {
  return NamesResolver(rule, mesh).resolve(in, out);
}

}  // namespace weft
