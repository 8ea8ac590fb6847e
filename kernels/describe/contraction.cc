#include "kernels/describe/contraction.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <sstream>
#include <string>

#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

using Letters = std::vector<std::string>;
using Sizes = std::vector<int64_t>;

struct Spec {
  Letters a, b, c;
};

Letters splitLetters(const std::string& text) {
  std::istringstream stream(text);
  Letters letters;
  for (std::string letter; stream >> letter;) {
    letters.push_back(letter);
  }
  return letters;
}

absl::StatusOr<Spec> parseSpec(const std::string& text) {
  const size_t comma = text.find(',');
  const size_t arrow = text.find("->");
  if (comma == std::string::npos || arrow == std::string::npos || comma > arrow) {
    return absl::InvalidArgumentError(absl::StrCat("contract spec '", text, "' is not of the form 'm k, k n -> m n'"));
  }
  return Spec{splitLetters(text.substr(0, comma)), splitLetters(text.substr(comma + 1, arrow - comma - 1)),
              splitLetters(text.substr(arrow + 2))};
}

bool contains(const Letters& letters, const std::string& letter) {
  return std::find(letters.begin(), letters.end(), letter) != letters.end();
}

// The spec of a matmul: leading dimensions of `a` are batch where `b` has them too, else rows.
Spec matmulSpec(size_t aDims, size_t bDims, bool transposeA, bool transposeB) {
  Letters leading;
  for (size_t d = 0; d + 2 < aDims; ++d) {
    leading.push_back("b" + std::to_string(d));
  }
  const auto append = [](Letters letters, const std::string& first, const std::string& second) {
    letters.push_back(first);
    letters.push_back(second);
    return letters;
  };
  Spec spec;
  spec.a = transposeA ? append(leading, "k", "m") : append(leading, "m", "k");
  spec.b = transposeB ? append(bDims > 2 ? leading : Letters(), "n", "k")
                      : append(bDims > 2 ? leading : Letters(), "k", "n");
  spec.c = append(leading, "m", "n");
  return spec;
}

// Sizes and groups of all letters.
struct Groups {
  Letters batch, m, n, k;
  std::map<std::string, int64_t> sizes;

  int64_t product(const Letters& letters) const {
    int64_t size = 1;
    for (const std::string& letter : letters) {
      size = boundedProduct(size, sizes.at(letter));
    }
    return size;
  }
};

// The operands of the product, without the sum that it is added to.
absl::Span<const TensorSpec> factorsOf(const KernelSpec& kernel) {
  absl::Span<const TensorSpec> inputs = kernel.inputs;
  return kernel.name == kContractAccumulateKernel ? inputs.subspan(1) : inputs;
}

absl::Status addSizes(const KernelSpec& kernel, const Letters& letters, const Sizes& shape, Groups& groups) {
  if (letters.size() != shape.size()) {
    return invalid(kernel, "the spec names ", letters.size(), " dimensions '", absl::StrJoin(letters, " "),
                   "' of a tensor ", shapeText(shape));
  }
  for (size_t d = 0; d < letters.size(); ++d) {
    if (std::count(letters.begin(), letters.end(), letters[d]) > 1) {
      return invalid(kernel, "dimension '", letters[d], "' is twice in '", absl::StrJoin(letters, " "), "'");
    }
    const auto [it, added] = groups.sizes.try_emplace(letters[d], shape[d]);
    if (it->second != shape[d]) {
      return invalid(kernel, "dimension '", letters[d], "' has size ", it->second, " in one tensor and ", shape[d],
                     " in another");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Groups> groupLetters(const Spec& spec, const KernelSpec& kernel) {
  Groups groups;
  WEFT_RETURN_IF_ERROR(addSizes(kernel, spec.a, factorsOf(kernel)[0].shape, groups));
  WEFT_RETURN_IF_ERROR(addSizes(kernel, spec.b, factorsOf(kernel)[1].shape, groups));
  WEFT_RETURN_IF_ERROR(addSizes(kernel, spec.c, kernel.outputs[0].shape, groups));
  for (const std::string& letter : spec.c) {
    const bool inA = contains(spec.a, letter);
    const bool inB = contains(spec.b, letter);
    if (!inA && !inB) {
      return invalid(kernel, "result dimension '", letter, "' is in no operand");
    }
    (inA && inB ? groups.batch : inA ? groups.m : groups.n).push_back(letter);
  }
  for (const std::string& letter : spec.a) {
    if (!contains(spec.c, letter)) {
      if (!contains(spec.b, letter)) {
        return invalid(kernel, "dimension '", letter, "' is in one operand only");
      }
      groups.k.push_back(letter);
    }
  }
  for (const std::string& letter : spec.b) {
    if (!contains(spec.c, letter) && !contains(spec.a, letter)) {
      return invalid(kernel, "dimension '", letter, "' is in one operand only");
    }
  }
  return groups;
}

// The stride with which a group is walked in a tensor; nothing if there is no single one.
std::optional<int64_t> groupStride(const Letters& group, const Letters& letters, const Sizes& shape,
                                   const Groups& groups) {
  const Sizes strides = stridesOf(shape);
  std::optional<int64_t> inner;
  int64_t expected = 0;
  for (size_t i = group.size(); i-- > 0;) {
    const int64_t size = groups.sizes.at(group[i]);
    if (size == 1) {
      continue;
    }
    const size_t d = std::find(letters.begin(), letters.end(), group[i]) - letters.begin();
    if (inner && strides[d] != expected) {
      return std::nullopt;
    }
    inner = inner.value_or(strides[d]);
    expected = boundedProduct(strides[d], size);
  }
  return inner.value_or(0);
}

ContractionSide sideOf(const Letters& letters, const Sizes& shape, const Letters& rows, const Letters& columns,
                       const Groups& groups) {
  ContractionSide side;
  const Sizes strides = stridesOf(shape);
  for (const Letters* group : {&groups.batch, &rows, &columns}) {
    for (const std::string& letter : *group) {
      const size_t d = std::find(letters.begin(), letters.end(), letter) - letters.begin();
      side.shape.push_back(shape[d]);
      side.strides.push_back(strides[d]);
    }
  }
  const auto batch = groupStride(groups.batch, letters, shape, groups);
  const auto row = groupStride(rows, letters, shape, groups);
  const auto column = groupStride(columns, letters, shape, groups);
  const int64_t rowSize = groups.product(rows);
  const int64_t columnSize = groups.product(columns);
  side.packed = !batch || !row || !column || (rowSize > 1 && columnSize > 1 && *row != 1 && *column != 1);
  side.view = side.packed ? MatrixView{boundedProduct(rowSize, columnSize), columnSize, 1}
                          : MatrixView{*batch, rowSize == 1 ? columnSize : *row, columnSize == 1 ? 1 : *column};
  return side;
}

absl::StatusOr<Spec> specOfMatmul(const KernelSpec& kernel) {
  WEFT_ASSIGN_OR_RETURN(const int64_t transposeA, attributeOr<int64_t>(kernel.attributes, "transpose_a", 0));
  WEFT_ASSIGN_OR_RETURN(const int64_t transposeB, attributeOr<int64_t>(kernel.attributes, "transpose_b", 0));
  const size_t aDims = kernel.inputs[0].shape.size();
  const size_t bDims = kernel.inputs[1].shape.size();
  if (aDims < 2 || bDims < 2 || (bDims > 2 && bDims != aDims)) {
    return invalid(kernel, "takes [batch..., m, k] and [k, n] or [batch..., k, n], it was given ",
                   shapeText(kernel.inputs[0].shape), " and ", shapeText(kernel.inputs[1].shape));
  }
  return matmulSpec(aDims, bDims, transposeA != 0, transposeB != 0);
}

absl::StatusOr<Spec> specOf(const KernelSpec& kernel) {
  if (kernel.name == kMatmulKernel) {
    return specOfMatmul(kernel);
  }
  WEFT_ASSIGN_OR_RETURN(const std::string text, attribute<std::string>(kernel.attributes, "spec"));
  return parseSpec(text);
}

}  // namespace

int64_t gemmScratchLimit(DType type, const GemmShape& s) {
  constexpr int64_t kLeast = int64_t{1} << 18;  // own loops take half of it
  constexpr int64_t kMost = int64_t{3} << 19;   // oneDNN takes up to 0.7 MiB for a thread
  const int64_t operands = boundedSum(boundedElements(std::array{s.batch, s.m, s.k, int64_t{byteSize(type)}}),
                                      boundedElements(std::array{s.batch, s.k, s.n, int64_t{byteSize(type)}}));
  return alignUp(std::clamp(operands / 4, kLeast, kMost));
}

int64_t ContractionSide::packedBytes(DType type) const {
  return packed ? alignUp(TensorSpec{type, shape}.bytes()) : 0;
}

absl::StatusOr<Contraction> contractionOf(const KernelSpec& kernel) {
  WEFT_ASSIGN_OR_RETURN(const Spec spec, specOf(kernel));
  WEFT_ASSIGN_OR_RETURN(const Groups groups, groupLetters(spec, kernel));
  Contraction made{sideOf(spec.a, factorsOf(kernel)[0].shape, groups.m, groups.k, groups),
                   sideOf(spec.b, factorsOf(kernel)[1].shape, groups.k, groups.n, groups),
                   sideOf(spec.c, kernel.outputs[0].shape, groups.m, groups.n, groups),
                   {},
                   false};
  GemmShape shape{groups.product(groups.batch),
                  groups.product(groups.m),
                  groups.product(groups.n),
                  groups.product(groups.k),
                  made.a.view,
                  made.b.view,
                  made.c.view};
  // Where the result is contiguous along its rows, the transposed product is computed.
  made.swapped = shape.n > 1 && shape.c.column != 1;
  if (made.swapped) {
    const auto flip = [](MatrixView view) { return MatrixView{view.batch, view.column, view.row}; };
    shape = {shape.batch, shape.n, shape.m, shape.k, flip(shape.b), flip(shape.a), flip(shape.c)};
  }
  made.product = shape;
  return made;
}

std::optional<KernelSpec> accumulatingKernel(const KernelSpec& product) {
  if (product.name != kContractKernel) {
    return std::nullopt;
  }
  const absl::StatusOr<Contraction> made = contractionOf(product);
  if (!made.ok() || made->c.packed) {
    return std::nullopt;
  }
  KernelSpec adding = product;
  adding.name = kContractAccumulateKernel;
  adding.inputs.insert(adding.inputs.begin(), product.outputs[0]);
  adding.scalars = 1;
  return adding;
}

}  // namespace weft
