// The user's splits per dimension, to axes on the line of ranks.
//
// The counterpart of MindSpore's shard(): the device matrix there is [factors of the rule ..., repeats]; here the
// factors take sub-axes of `all` in the rule's order, and the minor rest of the line repeats the computation.
#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/layout/divisors.h"
#include "ir/layout/rule.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

using TensorDims = std::vector<DimFactors>;

std::string splitText(const Shape& splits) {
  return absl::StrCat("{", absl::StrJoin(splits, ","), "}");
}

// A split of one dimension as the user wrote it.
struct SplitRequest {
  std::string tensor;  // "operand 1"
  size_t dim = 0;
  int64_t split = 1;
  std::string place() const { return absl::StrCat(tensor, " dimension ", dim); }
};

class SplitResolver {
 public:
  SplitResolver(const Rule& rule, const Mesh& mesh)
      : rule_(rule), mesh_(mesh), splits_(rule.factors().size()), from_(rule.factors().size()) {}

  absl::StatusOr<SplitStrategy> resolve(const std::vector<Shape>& in, const std::vector<Shape>& out) {
    WEFT_RETURN_IF_ERROR(checkCounts("operand", rule_.operands(), in));
    WEFT_RETURN_IF_ERROR(takeSplits("operand", rule_.operands(), in));
    WEFT_RETURN_IF_ERROR(checkCounts("result", rule_.results(), out));
    WEFT_RETURN_IF_ERROR(takeBroadcast(out));
    noteSaid(in);
    WEFT_RETURN_IF_ERROR(assignAxes());
    WEFT_RETURN_IF_ERROR(rule_.check(strategy_.axes, mesh_));
    for (size_t r = 0; r < rule_.results().size(); ++r) {
      Layout layout = rule_.resultLayout(r, strategy_.axes);
      layout.setPartial({});
      if (isSaid(out, r)) {
        WEFT_RETURN_IF_ERROR(scatter(r, out[r], layout));
      }
      strategy_.results.push_back(std::move(layout));
    }
    return strategy_;
  }

 private:
  // Has a tensor a list? An empty one is that of a scalar, or says nothing.
  static bool isSaid(const std::vector<Shape>& splits, size_t tensor) {
    return tensor < splits.size() && !splits[tensor].empty();
  }

  // A factor is said by a list with it; each, where all operands have lists.
  void noteSaid(const std::vector<Shape>& in) {
    bool all = true;
    for (size_t t = 0; t < rule_.operands().size(); ++t) {
      all = all && (isSaid(in, t) || rule_.operands()[t].empty());
    }
    for (const std::optional<SplitRequest>& from : from_) {
      strategy_.said.push_back(all || from);
    }
  }

  absl::Status checkCounts(const std::string& word, const std::vector<TensorDims>& tensors,
                           const std::vector<Shape>& splits) const {
    if (splits.size() > tensors.size()) {
      return absl::InvalidArgumentError(absl::StrCat("splits are given for ", splits.size(), " ", word,
                                                     "s, the operator has ", tensors.size(),
                                                     "; give at most one list for each"));
    }
    for (size_t t = 0; t < splits.size(); ++t) {
      if (!splits[t].empty() && splits[t].size() != tensors[t].size()) {
        return absl::InvalidArgumentError(absl::StrCat(word, " ", t, " has ", tensors[t].size(),
                                                       " dimensions, its splits ", splitText(splits[t]), " have ",
                                                       splits[t].size(), "; give one number for each dimension"));
      }
      for (size_t d = 0; d < splits[t].size(); ++d) {
        if (splits[t][d] < 1) {
          return absl::InvalidArgumentError(absl::StrCat(word, " ", t, " dimension ", d, ": split ", splits[t][d],
                                                         " is less than 1; write 1 for a whole dimension"));
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status takeSplits(const std::string& word, const std::vector<TensorDims>& tensors,
                          const std::vector<Shape>& splits) {
    for (size_t t = 0; t < splits.size(); ++t) {
      for (size_t d = 0; d < splits[t].size(); ++d) {
        WEFT_RETURN_IF_ERROR(takeDim(tensors[t][d], {absl::StrCat(word, " ", t), d, splits[t][d]}));
      }
    }
    return absl::OkStatus();
  }

  // Hands the split of one dimension to its factors, major first.
  absl::Status takeDim(const DimFactors& dim, const SplitRequest& request) {
    if (dim.empty() && request.split != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat(request.place(), " has size 1, its split is ", request.split, "; nearest legal split: 1"));
    }
    int64_t size = 1;
    for (int f : dim) {
      size *= rule_.factors()[f].size;
    }
    int64_t left = request.split;
    for (size_t i = 0; i < dim.size(); ++i) {
      int64_t factor = rule_.factors()[dim[i]].size;
      int64_t part = i + 1 == dim.size() ? left : std::gcd(left, factor);
      bool blocked = part != left && part != factor;  // the rest would go to a minor factor behind an open one
      if (factor % part != 0 || blocked) {
        return absl::InvalidArgumentError(
            absl::StrCat(request.place(), " of size ", size, compoundText(dim), " does not divide into ", request.split,
                         " parts; nearest legal splits: ", legalSplits(dim, request.split)));
      }
      WEFT_RETURN_IF_ERROR(setSplit(dim[i], {request.tensor, request.dim, part}));
      left /= part;
    }
    return absl::OkStatus();
  }

  std::string compoundText(const DimFactors& dim) const {
    if (dim.size() < 2) {
      return "";
    }
    return absl::StrCat(" = ", absl::StrJoin(dim, " x ", [&](std::string* out, int f) {
                          absl::StrAppend(out, rule_.factors()[f].size);
                        }));
  }

  // Legal splits of a compound dimension (a b): a divisor of a, or a times a divisor of b.
  std::string legalSplits(const DimFactors& dim, int64_t wanted) const {
    std::vector<int64_t> legal;
    int64_t major = 1;
    for (int f : dim) {
      for (int64_t divisor : divisorsOf(rule_.factors()[f].size)) {
        legal.push_back(major * divisor);
      }
      major *= rule_.factors()[f].size;
    }
    std::sort(legal.begin(), legal.end());
    legal.erase(std::unique(legal.begin(), legal.end()), legal.end());
    auto above = std::upper_bound(legal.begin(), legal.end(), wanted);
    std::string text = above == legal.begin() ? "" : absl::StrCat(*(above - 1));
    return above == legal.end() ? text : absl::StrCat(text, text.empty() ? "" : " and ", *above);
  }

  absl::Status setSplit(int f, const SplitRequest& request) {
    const Factor& factor = rule_.factors()[f];
    if (from_[f] && from_[f]->split != request.split) {
      return absl::InvalidArgumentError(absl::StrCat(
          "factor '", factor.name, "' of size ", factor.size, " has two splits: ", from_[f]->split, " from ",
          from_[f]->place(), " and ", request.split, " from ", request.place(), "; write the same split in both"));
    }
    if (request.split > 1 && !rule_.splittable(f)) {
      return absl::InvalidArgumentError(absl::StrCat(request.place(), ": factor '", factor.name, "' of size ",
                                                     factor.size, " must stay whole in '", rule_.text(),
                                                     "', its split is ", request.split, "; nearest legal split: 1"));
    }
    if (!from_[f]) {
      from_[f] = request;
      splits_[f] = request.split;
    }
    return absl::OkStatus();
  }

  // Dimensions that no operand says take their splits from the result splits.
  absl::Status takeBroadcast(const std::vector<Shape>& out) {
    for (size_t r = 0; r < out.size(); ++r) {
      for (size_t d = 0; d < out[r].size(); ++d) {
        const DimFactors& dim = rule_.results()[r][d];
        bool fresh = !dim.empty() && std::none_of(dim.begin(), dim.end(), [&](int f) {
          return from_[f] && from_[f]->tensor.rfind("operand", 0) == 0;
        });
        if (fresh) {
          WEFT_RETURN_IF_ERROR(takeDim(dim, {absl::StrCat("result ", r), d, out[r][d]}));
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status assignAxes() {
    int64_t parts = 1;
    std::vector<std::string> terms;
    for (size_t f = 0; f < splits_.size(); ++f) {
      int64_t split = from_[f] ? splits_[f] : 1;
      strategy_.axes.emplace_back();
      if (split == 1) {
        continue;
      }
      if (split > mesh_.ranks()) {
        return tooMany(absl::StrCat(from_[f]->place(), ": "), split);
      }
      strategy_.axes.back().push_back({AxisKind::kSpace, parts, split});
      parts *= split;
      terms.push_back(absl::StrCat(rule_.factors()[f].name, "=", split));
      if (parts > mesh_.ranks()) {
        return tooMany(absl::StrCat("splits ", absl::StrJoin(terms, ", "), ": "), parts);
      }
    }
    if (mesh_.ranks() % parts != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("splits ", absl::StrJoin(terms, ", "), ": the product ", parts, " does not divide the ",
                       mesh_.ranks(), " ranks; nearest products that do: ", nearestDivisors(mesh_.ranks(), parts)));
    }
    strategy_.repeats = mesh_.ranks() / parts;
    return absl::OkStatus();
  }

  absl::Status tooMany(const std::string& place, int64_t parts) const {
    return absl::InvalidArgumentError(absl::StrCat(place, parts, " parts, but there are only ", mesh_.ranks(),
                                                   " ranks; nearest legal number of parts: ", mesh_.ranks()));
  }

  // Where the user splits a result further than the rule does, the axes of reduced factors go there: the partial sum
  // ends in a reduce_scatter instead of an all_reduce.
  absl::Status scatter(size_t r, const Shape& wanted, Layout& layout) const {
    AxisList partial;
    Layout natural = rule_.resultLayout(r, strategy_.axes);
    for (const Partial& p : natural.partial()) {
      partial.push_back(p.axis);
    }
    for (size_t d = 0; d < wanted.size(); ++d) {
      int64_t given = layout.parts(d);
      AxisList axes = layout.dim(d);
      while (partsOf(axes) < wanted[d] && !partial.empty()) {
        axes.push_back(partial.front());
        partial.erase(partial.begin());
      }
      if (partsOf(axes) != wanted[d]) {
        std::string more =
            partsOf(axes) > given ? absl::StrCat(" or ", partsOf(axes), " (with the reduced factors)") : "";
        return absl::InvalidArgumentError(absl::StrCat("result ", r, " dimension ", d, ": split ", wanted[d],
                                                       " is asked, the operand splits give ", given,
                                                       "; legal here: ", given, more));
      }
      int64_t size = resultSize(r, d);
      if (size % wanted[d] != 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("result ", r, " dimension ", d, " of size ", size, " does not divide into ", wanted[d],
                         " parts; nearest legal splits: ", nearestDivisors(size, wanted[d])));
      }
      layout.setDim(d, std::move(axes));
    }
    return absl::OkStatus();
  }

  int64_t resultSize(size_t r, size_t d) const {
    int64_t size = 1;
    for (int f : rule_.results()[r][d]) {
      size *= rule_.factors()[f].size;
    }
    return size;
  }

  const Rule& rule_;
  const Mesh& mesh_;
  std::vector<int64_t> splits_;
  std::vector<std::optional<SplitRequest>> from_;
  SplitStrategy strategy_;
};

}  // namespace

absl::StatusOr<SplitStrategy> resolveSplits(const Rule& rule, const std::vector<Shape>& in,
                                            const std::vector<Shape>& out, const Mesh& mesh) {
  return SplitResolver(rule, mesh).resolve(in, out);
}

}  // namespace weft
