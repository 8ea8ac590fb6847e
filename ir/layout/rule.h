// Factor rules: what of an operator may be split, as one line of data.
//
// A *factor* is an iteration dimension of an operator. The rule maps factors to the dimensions of operands and results:
//
//   matmul             m k+, k+ n -> m n
//   add with broadcast a b, b -> a b          (second operand lacks `a`)
//   add, size-1 dim    a b, 1 b -> a b        (`1`: a dimension of size 1, no factor)
//   softmax            a v! -> a v            (`!`: must be whole)
//   rotary             a t d!!, t e!!, t e!! -> a t d!!    (`!!`: in every form of the operator, see below)
//   sum over dim 1     a b+ -> a
//   reshape 6,4->24    a b -> (a b)           (compound dimension, left = major)
//   reshape 6,4->4,6   (a=2 b!) c! -> (a d!) e!   (`=2`: a size that follows from no dimension)
//   layer_norm_grad    b c!, c!, b, b, b c! -> b c, c, c    (b+ for the last two results, see below)
//   loss to scalar     a+ ->
//   sum of each micro-batch  a+ b -> p~ b           (`~`: one element for each micro-batch of the step, see below)
//
// Marks: `+` on any occurrence: the factor may be split although some result lacks it; such a result is then partial
// over the factor's axes (with the result's reduce kind). A factor that some result lacks and that has no `+` must be
// whole, as must one marked `!`. Where an operator has an expansion (ir/registry.h), that may split the factors marked
// `!`; one marked `!!` it does not split either. Factors that only results have (broadcast) may be split freely. Spaces
// separate dimensions, commas separate tensors, `->` separates operands from results; a tensor without any dimension is
// a scalar.
//
// Micro-batches. A factor marked `~` counts the micro-batches of a step: it is split over the time axis only, and
// then together with the factor that carries the batch. What an operator sums over the batch and keeps under `~` is
// whole for each micro-batch, not a sum partial over time.
//
// Factors are numbered by first appearance in the text (matmul: m, k, n). An empty operand or result list stands for no
// tensor or for one scalar, as the number of shapes says (`-> a b` makes something of nothing, `a+ ->` one scalar).
//
// A compound dimension `(a b)` may be split over b only where a is split to single elements: otherwise a rank's part
// would not be one block.
//
// A rule with shapes gives factor sizes: the size of a simple dimension; compound dimensions need their factors'
// sizes from other tensors (all but one).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/layout/annotation.h"
#include "ir/layout/layout.h"

namespace weft {

struct Factor {
  std::string name;
  int64_t size = 0;
  bool reducible = false;     // `+`
  bool whole = false;         // `!`
  bool wholeInAny = false;    // `!!`
  bool microBatches = false;  // `~`

  // May an expansion of the operator split what the operator itself needs whole?
  bool mayExpand() const { return whole && !wholeInAny; }
};

// The factors of one tensor dimension, major first; empty for a size-1 dimension.
using DimFactors = std::vector<int>;

// Is the factor in some dimension of a tensor?
bool hasFactor(const std::vector<DimFactors>& dims, int factor);

// Axes chosen for each factor, in the rule's factor order (time axes included, always last).
using FactorAxes = AxisLists;

class Rule {
 public:
  Rule() : parts_(std::make_shared<const Parts>()) {}  // of nothing

  // Parses a rule and derives the factor sizes. Errors: syntax (position), number of tensors or dimensions against the
  // shapes, a factor with two sizes (names both tensors). What was parsed is kept: programs repeat few rules over the
  // same shapes.
  static absl::StatusOr<Rule> parse(const std::string& text, const std::vector<Shape>& operands,
                                    const std::vector<Shape>& results);

  const std::vector<Factor>& factors() const { return parts_->factors; }
  int factorIndex(const std::string& name) const;  // -1 if absent
  const std::vector<std::vector<DimFactors>>& operands() const { return parts_->operands; }
  const std::vector<std::vector<DimFactors>>& results() const { return parts_->results; }
  // Does it say of any tensor that it has an element for each micro-batch (`~`)? Has a tensor with these dimensions?
  bool namesMicroBatches() const;
  bool hasMicroBatches(const std::vector<DimFactors>& dims) const;
  const std::string& text() const { return parts_->text; }

  // May factor f be split over space? False for `!`, `~`, and for a factor some result lacks without `+`.
  bool splittable(int f) const;
  // Does factor f make result r partial when split?
  bool reducedIn(int f, size_t result) const;

  // The layout an operand must have, given the axes of each factor.
  Layout operandLayout(size_t operand, const FactorAxes& axes) const;
  // The layout a result has: splits, plus partial over the axes of reduced factors.
  Layout resultLayout(size_t result, const FactorAxes& axes, ReduceKind kind = ReduceKind::kSum) const;

  // Projects a layout of one tensor onto the factors: which axes each factor would need so that this tensor
  // needs no reshard. In a compound dimension axes go to factors from the major side while they divide, an axis split
  // where a factor ends; axes that do not fit are reported in `overflow`. A padded dimension of a single factor
  // assigns all its axes to that factor, whether they divide its size or not.
  struct Projection {
    FactorAxes axes;
    AxisList overflow;
  };
  Projection projectOperand(size_t operand, const Layout& layout) const;
  Projection projectResult(size_t result, const Layout& layout) const;

  // Checks axes against the rule: an axis of a whole factor, an axis used twice, a size that does not divide
  // (`padded` factors may be any size), a minor factor of a compound dimension split while a major one is not split
  // to the end (a rank's part would lie in micro-batches). Errors name factor, size, axis, and the nearest legal
  // splits.
  absl::Status check(const FactorAxes& axes, const Mesh& mesh) const { return check(axes, mesh, {}); }
  absl::Status check(const FactorAxes& axes, const Mesh& mesh, const std::vector<int>& padded) const;

 private:
  absl::Status checkOneBlock(const DimFactors& dim, const FactorAxes& axes) const;

  struct Parts {
    std::string text;
    std::vector<Factor> factors;
    std::vector<std::vector<DimFactors>> operands;
    std::vector<std::vector<DimFactors>> results;
  };
  explicit Rule(Parts parts) : parts_(std::make_shared<const Parts>(std::move(parts))) {}
  static absl::StatusOr<Rule> parseAnew(const std::string& text, const std::vector<Shape>& operands,
                                        const std::vector<Shape>& results);

  std::shared_ptr<const Parts> parts_;  // that all copies share
};

// The user's `shard` by numbers: splits per operand dimension, optionally per result dimension, to factor axes on the
// line of ranks. Factors take sub-axes of `all` in the rule's factor order, major first; what is left repeats the
// computation, last (minor). A size-1 dimension takes split 1.
// A tensor without a list, or with an empty one though it has dimensions, takes its splits from the others; factors in
// such operands alone are not said.
// out splits may differ from what the rule gives only by also splitting a result over the axes of a reduced factor
// (all_reduce becomes reduce_scatter); they are returned as the layout wanted of each result.
struct SplitStrategy {
  FactorAxes axes;
  std::vector<bool> said;       // of each factor; others stay open
  std::vector<Layout> results;  // as wanted by the user; without out splits: as the rule gives, sums not partial
  int64_t repeats = 1;
};
// Errors: more lists than tensors, number of dimensions (both numbers), a split < 1, a dimension that does not divide
// (nearest legal splits), one factor with two splits (names both operands), a whole factor split, more parts than
// ranks, a product that does not divide the ranks.
absl::StatusOr<SplitStrategy> resolveSplits(const Rule& rule, const std::vector<Shape>& in,
                                            const std::vector<Shape>& out, const Mesh& mesh);

// The user's `shard` by axis names, to factor axes. Tensors at the end may be left out, others given by nothing.
struct NamedStrategy {
  FactorAxes axes;
  std::vector<bool> said;  // of each factor: does it stand in a tensor with a list? Others stay open
  std::vector<bool> open;  // of each factor that is said: may others add axes to its own?
};
using Annotations = std::vector<std::optional<Annotation>>;
// What results say counts for factors that no operand says. Each annotation has as many dimensions as its tensor;
// whether the axes may split the factors is for Rule::check. Errors: more lists than tensors; an axis across the border
// of a compound dimension; one factor with two splits (names both).
absl::StatusOr<NamedStrategy> resolveNames(const Rule& rule, const Annotations& in, const Annotations& out,
                                           const Mesh& mesh);

}  // namespace weft
