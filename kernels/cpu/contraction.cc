// matmul and contract: one engine over letters.
//
// Each letter of the spec belongs to one of four groups: batch (both operands and the result), m (first operand and
// result), n (second and result), k (both operands, summed). If in every tensor the letters of a group lie so that they
// can be walked with one stride, the whole is one strided batched matrix product; a tensor where they do not is packed
// into the workspace first (or, for the result, unpacked from it).

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>

#include "kernels/cpu/families.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/support.h"

namespace weft {
namespace {

using namespace cpu;  // NOLINT

using Letters = std::vector<std::string>;

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

// One tensor's way through the engine.
struct Side {
  std::vector<int64_t> shape;    // sizes in the order batch, rows, columns (letters expanded)
  std::vector<int64_t> strides;  // of the tensor in that order
  bool packed = false;
  MatrixView view;
};

// Sizes and groups of all letters.
struct Groups {
  Letters batch, m, n, k;
  std::map<std::string, int64_t> sizes;

  int64_t product(const Letters& letters) const {
    int64_t size = 1;
    for (const std::string& letter : letters) {
      size *= sizes.at(letter);
    }
    return size;
  }
};

absl::Status addSizes(const Letters& letters, const std::vector<int64_t>& shape, Groups& groups) {
  if (letters.size() != shape.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("contract names ", letters.size(), " dimensions of ", shapeText(shape)));
  }
  for (size_t d = 0; d < letters.size(); ++d) {
    const auto [it, added] = groups.sizes.try_emplace(letters[d], shape[d]);
    if (it->second != shape[d]) {
      return absl::InvalidArgumentError(absl::StrCat("dimension '", letters[d], "' has size ", it->second,
                                                     " in one tensor and ", shape[d], " in another"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Groups> groupLetters(const Spec& spec, const KernelSpec& kernel) {
  Groups groups;
  WEFT_RETURN_IF_ERROR(addSizes(spec.a, kernel.inputs[0].shape, groups));
  WEFT_RETURN_IF_ERROR(addSizes(spec.b, kernel.inputs[1].shape, groups));
  WEFT_RETURN_IF_ERROR(addSizes(spec.c, kernel.outputs[0].shape, groups));
  for (const std::string& letter : spec.c) {
    const bool inA = contains(spec.a, letter);
    const bool inB = contains(spec.b, letter);
    if (!inA && !inB) {
      return absl::InvalidArgumentError(absl::StrCat("result dimension '", letter, "' is in no operand"));
    }
    (inA && inB ? groups.batch : inA ? groups.m : groups.n).push_back(letter);
  }
  for (const std::string& letter : spec.a) {
    if (!contains(spec.c, letter)) {
      if (!contains(spec.b, letter)) {
        return absl::InvalidArgumentError(absl::StrCat("dimension '", letter, "' is in one operand only"));
      }
      groups.k.push_back(letter);
    }
  }
  for (const std::string& letter : spec.b) {
    if (!contains(spec.c, letter) && !contains(spec.a, letter)) {
      return absl::InvalidArgumentError(absl::StrCat("dimension '", letter, "' is in one operand only"));
    }
  }
  return groups;
}

// The stride with which a group is walked in a tensor; nothing if there is no single one.
std::optional<int64_t> groupStride(const Letters& group, const Letters& letters, const std::vector<int64_t>& shape,
                                   const Groups& groups) {
  const std::vector<int64_t> strides = stridesOf(shape);
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
    expected = strides[d] * size;
  }
  return inner.value_or(0);
}

Side sideOf(const Letters& letters, const std::vector<int64_t>& shape, const Letters& rows, const Letters& columns,
            const Groups& groups) {
  Side side;
  const std::vector<int64_t> strides = stridesOf(shape);
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
  side.view = side.packed ? MatrixView{rowSize * columnSize, columnSize, 1}
                          : MatrixView{*batch, rowSize == 1 ? columnSize : *row, columnSize == 1 ? 1 : *column};
  return side;
}

template <typename T>
void copyStrided(const StridedLoop<2>& loop, const T* from, T* to) {
  loop.run([&](const auto& at, int64_t count, const auto& step) {
    for (int64_t i = 0; i < count; ++i) {
      to[at[1] + i * step[1]] = from[at[0] + i * step[0]];
    }
  });
}

int64_t aligned(int64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

template <typename T>
KernelOr contraction(const KernelSpec& kernel, const Spec& spec, bool plain) {
  WEFT_ASSIGN_OR_RETURN(const Groups groups, groupLetters(spec, kernel));
  const Side a = sideOf(spec.a, kernel.inputs[0].shape, groups.m, groups.k, groups);
  const Side b = sideOf(spec.b, kernel.inputs[1].shape, groups.k, groups.n, groups);
  Side c = sideOf(spec.c, kernel.outputs[0].shape, groups.m, groups.n, groups);
  const bool transposed = !c.packed && groups.product(groups.n) > 1 && c.view.column != 1;
  GemmShape shape{groups.product(groups.batch),
                  groups.product(groups.m),
                  groups.product(groups.n),
                  groups.product(groups.k),
                  a.view,
                  b.view,
                  c.view};
  if (transposed) {
    // The result's rows are its contiguous direction: compute the transposed product.
    const auto flip = [](MatrixView view) { return MatrixView{view.batch, view.column, view.row}; };
    shape = {shape.batch, shape.n, shape.m, shape.k, flip(b.view), flip(a.view), flip(c.view)};
  }
  WEFT_ASSIGN_OR_RETURN(std::shared_ptr<Gemm> gemm, Gemm::create(kernel.inputs[0].type, shape, plain));
  const int64_t aBytes = a.packed ? aligned(kernel.inputs[0].bytes()) : 0;
  const int64_t bBytes = b.packed ? aligned(kernel.inputs[1].bytes()) : 0;
  const int64_t cBytes = c.packed ? aligned(kernel.outputs[0].bytes()) : 0;
  const StridedLoop<2> packA(a.shape, {a.strides, stridesOf(a.shape)});
  const StridedLoop<2> packB(b.shape, {b.strides, stridesOf(b.shape)});
  const StridedLoop<2> unpackC(c.shape, {stridesOf(c.shape), c.strides});
  return makeKernel(
      [=](const KernelArguments& args) -> absl::Status {
        char* room = static_cast<char*>(args.workspace);
        const void* left = args.inputs[0];
        const void* right = args.inputs[1];
        void* result = args.outputs[0];
        if (aBytes > 0) {
          copyStrided(packA, in<T>(args, 0), reinterpret_cast<T*>(room));
          left = room;
        }
        if (bBytes > 0) {
          copyStrided(packB, in<T>(args, 1), reinterpret_cast<T*>(room + aBytes));
          right = room + aBytes;
        }
        if (cBytes > 0) {
          result = room + aBytes + bBytes;
        }
        void* scratch = room + aBytes + bBytes + cBytes;
        WEFT_RETURN_IF_ERROR(transposed ? gemm->run(right, left, result, scratch)
                                        : gemm->run(left, right, result, scratch));
        if (cBytes > 0) {
          copyStrided(unpackC, static_cast<const T*>(result), out<T>(args, 0));
        }
        return absl::OkStatus();
      },
      aBytes + bBytes + cBytes + gemm->scratchBytes());
}

KernelOr create(const KernelSpec& kernel, const Spec& spec, bool plain) {
  if (kernel.inputs[0].type != kernel.inputs[1].type) {
    return absl::InvalidArgumentError(absl::StrCat("kernel ", kernel.name, " was given ",
                                                   dtypeName(kernel.inputs[0].type), " and ",
                                                   dtypeName(kernel.inputs[1].type)));
  }
  return dispatchFloat(kernel, kernel.inputs[0].type,
                       [&]<typename T>() { return contraction<T>(kernel, spec, plain); });
}

}  // namespace

void addContractionKernels(KernelRegistry& registry, const CpuKernelOptions& options) {
  const bool plain = options.plainMatmul;
  registry.add("matmul", [plain](const KernelSpec& kernel) -> KernelOr {
    WEFT_RETURN_IF_ERROR(checkCounts(kernel, 2, 1));
    WEFT_ASSIGN_OR_RETURN(const int64_t ta, attributeOr<int64_t>(kernel.attributes, "transpose_a", 0));
    WEFT_ASSIGN_OR_RETURN(const int64_t tb, attributeOr<int64_t>(kernel.attributes, "transpose_b", 0));
    if (kernel.inputs[0].shape.size() < 2 || kernel.inputs[1].shape.size() < 2) {
      return absl::InvalidArgumentError(
          absl::StrCat("matmul of ", shapeText(kernel.inputs[0].shape), " and ", shapeText(kernel.inputs[1].shape)));
    }
    return create(kernel, matmulSpec(kernel.inputs[0].shape.size(), kernel.inputs[1].shape.size(), ta != 0, tb != 0),
                  plain);
  });
  registry.add("contract", [plain](const KernelSpec& kernel) -> KernelOr {
    WEFT_RETURN_IF_ERROR(checkCounts(kernel, 2, 1));
    WEFT_ASSIGN_OR_RETURN(const std::string text, attribute<std::string>(kernel.attributes, "spec"));
    WEFT_ASSIGN_OR_RETURN(const Spec spec, parseSpec(text));
    return create(kernel, spec, plain);
  });
}

}  // namespace weft
