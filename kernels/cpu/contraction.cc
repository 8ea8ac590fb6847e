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
#include "kernels/cpu/loops.h"
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
  Ints shape;    // sizes in the order batch, rows, columns (letters expanded)
  Ints strides;  // of the tensor in that order
  bool packed = false;
  MatrixView view;  // of the packed copy, or of the tensor itself
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

absl::Status addSizes(const KernelSpec& kernel, const Letters& letters, const Ints& shape, Groups& groups) {
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
  WEFT_RETURN_IF_ERROR(addSizes(kernel, spec.a, kernel.inputs[0].shape, groups));
  WEFT_RETURN_IF_ERROR(addSizes(kernel, spec.b, kernel.inputs[1].shape, groups));
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
std::optional<int64_t> groupStride(const Letters& group, const Letters& letters, const Ints& shape,
                                   const Groups& groups) {
  const Ints strides = stridesOf(shape);
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

Side sideOf(const Letters& letters, const Ints& shape, const Letters& rows, const Letters& columns,
            const Groups& groups) {
  Side side;
  const Ints strides = stridesOf(shape);
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

// A packed copy whose columns are contiguous, wherever the tensor's own are.
Side denseSide(const Letters& letters, const Ints& shape, const Letters& rows, const Letters& columns,
               const Groups& groups) {
  Side side = sideOf(letters, shape, rows, columns, groups);
  const int64_t width = groups.product(columns);
  side.packed = true;
  side.view = {groups.product(rows) * width, width, 1};
  return side;
}

// The three tensors and the product between them.
template <typename T>
class Contraction : public Kernel {
 public:
  Contraction(const Side& a, const Side& b, const Side& c, std::unique_ptr<Gemm> gemm, bool swapped)
      : gemm_(std::move(gemm)), swapped_(swapped), a_(a, false), b_(b, false), c_(c, true) {}

  absl::Status run(const KernelArguments& args) override {
    char* room = static_cast<char*>(args.workspace);
    const void* left = a_.packed(in<T>(args, 0), room);
    const void* right = b_.packed(in<T>(args, 1), room + a_.bytes);
    void* result = c_.bytes > 0 ? room + a_.bytes + b_.bytes : args.outputs[0];
    void* scratch = room + a_.bytes + b_.bytes + c_.bytes;
    WEFT_RETURN_IF_ERROR(gemm_->run(swapped_ ? right : left, swapped_ ? left : right, result, scratch));
    if (c_.bytes > 0) {
      c_.copy.run(static_cast<const T*>(result), out<T>(args, 0));
    }
    return absl::OkStatus();
  }

  int64_t workspaceBytes() const override { return a_.bytes + b_.bytes + c_.bytes + gemm_->scratchBytes(); }

 private:
  // A tensor's copy in the workspace; no bytes where the product works on the tensor itself.
  struct Packing {
    Packing(const Side& side, bool isResult)
        : copy(side.shape, isResult ? stridesOf(side.shape) : side.strides,
               isResult ? side.strides : stridesOf(side.shape)) {
      int64_t elements = 1;
      for (const int64_t size : side.shape) {
        elements *= size;
      }
      bytes = side.packed ? alignUp(elements * static_cast<int64_t>(sizeof(T))) : 0;
    }

    const void* packed(const T* tensor, char* room) const {
      if (bytes == 0) {
        return tensor;
      }
      copy.run(tensor, reinterpret_cast<T*>(room));
      return room;
    }

    StridedCopy<T> copy;
    int64_t bytes = 0;
  };

  std::unique_ptr<Gemm> gemm_;
  bool swapped_;
  Packing a_, b_, c_;
};

template <typename T>
KernelOr contraction(const KernelSpec& kernel, const Spec& spec, bool plain) {
  WEFT_ASSIGN_OR_RETURN(const Groups groups, groupLetters(spec, kernel));
  Side a = sideOf(spec.a, kernel.inputs[0].shape, groups.m, groups.k, groups);
  Side b = sideOf(spec.b, kernel.inputs[1].shape, groups.k, groups.n, groups);
  const Side c = sideOf(spec.c, kernel.outputs[0].shape, groups.m, groups.n, groups);
  GemmShape shape{groups.product(groups.batch),
                  groups.product(groups.m),
                  groups.product(groups.n),
                  groups.product(groups.k),
                  a.view,
                  b.view,
                  c.view};
  // Where the result is contiguous along its rows, compute the transposed product: C^T = B^T A^T.
  const bool swapped = shape.n > 1 && c.view.column != 1;
  if (swapped) {
    const auto flip = [](MatrixView view) { return MatrixView{view.batch, view.column, view.row}; };
    shape = {shape.batch, shape.n, shape.m, shape.k, flip(b.view), flip(a.view), flip(c.view)};
  }
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<Gemm> gemm, Gemm::create(kernel.inputs[0].type, shape, plain));
  // The library copies a left operand that lies the other way for every thread; where that passes the scratch limit, it
  // is packed once.
  if (!gemm->isFast() && shape.m > 1 && shape.k > 1 && shape.a.column != 1) {
    Side left = swapped ? denseSide(spec.b, kernel.inputs[1].shape, groups.n, groups.k, groups)
                        : denseSide(spec.a, kernel.inputs[0].shape, groups.m, groups.k, groups);
    shape.a = left.view;
    WEFT_ASSIGN_OR_RETURN(std::unique_ptr<Gemm> packed, Gemm::create(kernel.inputs[0].type, shape, plain));
    if (packed->isFast()) {
      (swapped ? b : a) = std::move(left);
      gemm = std::move(packed);
    }
  }
  return std::unique_ptr<Kernel>(std::make_unique<Contraction<T>>(a, b, c, std::move(gemm), swapped));
}

KernelOr create(const KernelSpec& kernel, const Spec& spec, bool plain) {
  const DType type = kernel.inputs[0].type;
  WEFT_RETURN_IF_ERROR(checkInput(kernel, 1, {type, kernel.inputs[1].shape}));
  WEFT_RETURN_IF_ERROR(checkOutput(kernel, 0, {type, kernel.outputs[0].shape}));
  return dispatchFloat(kernel, type, [&]<typename T>() { return contraction<T>(kernel, spec, plain); });
}

KernelOr matmul(const KernelSpec& kernel, bool plain) {
  WEFT_ASSIGN_OR_RETURN(const int64_t transposeA, attributeOr<int64_t>(kernel.attributes, "transpose_a", 0));
  WEFT_ASSIGN_OR_RETURN(const int64_t transposeB, attributeOr<int64_t>(kernel.attributes, "transpose_b", 0));
  const size_t aDims = kernel.inputs[0].shape.size();
  const size_t bDims = kernel.inputs[1].shape.size();
  if (aDims < 2 || bDims < 2 || (bDims > 2 && bDims != aDims)) {
    return invalid(kernel, "takes [batch..., m, k] and [k, n] or [batch..., k, n], it was given ",
                   shapeText(kernel.inputs[0].shape), " and ", shapeText(kernel.inputs[1].shape));
  }
  return create(kernel, matmulSpec(aDims, bDims, transposeA != 0, transposeB != 0), plain);
}

}  // namespace

void addContractionKernels(KernelRegistry& registry, const CpuKernelOptions& options) {
  const bool plain = options.plainMatmul;
  registry.add("matmul", withArity({2, 1}, [plain](const KernelSpec& kernel) { return matmul(kernel, plain); }));
  registry.add("contract", withArity({2, 1}, [plain](const KernelSpec& kernel) -> KernelOr {
                 WEFT_ASSIGN_OR_RETURN(const std::string text, attribute<std::string>(kernel.attributes, "spec"));
                 WEFT_ASSIGN_OR_RETURN(const Spec spec, parseSpec(text));
                 return create(kernel, spec, plain);
               }));
}

}  // namespace weft
