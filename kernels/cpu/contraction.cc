// matmul, contract and contract_accumulate: one engine (kernels/describe/contraction.h says how it sees them).

#include "kernels/describe/contraction.h"

#include <algorithm>

#include "kernels/cpu/families.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/loops.h"
#include "kernels/cpu/support.h"

namespace weft {
namespace {

using namespace cpu;  // NOLINT

// The three tensors and the product between them.
template <typename T>
class ContractionKernel : public Kernel {
 public:
  ContractionKernel(DType type, const Contraction& c, std::unique_ptr<Gemm> gemm)
      : gemm_(std::move(gemm)), swapped_(c.swapped), a_(type, c.a, false), b_(type, c.b, false), c_(type, c.c, true) {}

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
    Packing(DType type, const ContractionSide& side, bool isResult)
        : copy(side.shape, isResult ? stridesOf(side.shape) : side.strides,
               isResult ? side.strides : stridesOf(side.shape)),
          bytes(side.packedBytes(type)) {}

    const void* packed(const T* tensor, char* room) const {
      if (bytes == 0) {
        return tensor;
      }
      copy.run(tensor, reinterpret_cast<T*>(room));
      return room;
    }

    StridedCopy<T> copy;
    int64_t bytes;
  };

  std::unique_ptr<Gemm> gemm_;
  bool swapped_;
  Packing a_, b_, c_;
};

// sum' = a b in micro-batch 0, later sum + a b. Inputs: sum, a, b. Scalars: the micro-batch.
template <typename T>
class AccumulatingKernel : public Kernel {
 public:
  AccumulatingKernel(int64_t elements, ContractionKernel<T> first, ContractionKernel<T> later)
      : elements_(elements), first_(std::move(first)), later_(std::move(later)) {}

  absl::Status run(const KernelArguments& args) override {
    KernelArguments product = args;
    product.inputs = args.inputs + 1;
    if (args.scalars[0] == 0) {
      return first_.run(product);
    }
    if (in<T>(args, 0) != out<T>(args, 0)) {
      std::copy_n(in<T>(args, 0), elements_, out<T>(args, 0));
    }
    return later_.run(product);
  }

  int64_t workspaceBytes() const override { return std::max(first_.workspaceBytes(), later_.workspaceBytes()); }

 private:
  int64_t elements_;
  ContractionKernel<T> first_, later_;
};

KernelOr accumulating(const KernelSpec& kernel, bool plain) {
  WEFT_ASSIGN_OR_RETURN(const Contraction made, contractionOf(kernel));
  if (made.c.packed) {
    return invalid(kernel, "the dimensions of result ", shapeText(kernel.outputs[0].shape),
                   " lie in an order in which no product is added to it; use contract and accumulate");
  }
  const DType type = kernel.inputs[0].type;
  WEFT_RETURN_IF_ERROR(checkInput(kernel, 1, {type, kernel.inputs[1].shape}));
  WEFT_RETURN_IF_ERROR(checkInput(kernel, 2, {type, kernel.inputs[2].shape}));
  WEFT_RETURN_IF_ERROR(checkOutput(kernel, 0, kernel.inputs[0]));
  return dispatchFloat(kernel, type, [&]<typename T>() -> KernelOr {
    WEFT_ASSIGN_OR_RETURN(auto first, Gemm::create(type, made.product, {.plain = plain}));
    WEFT_ASSIGN_OR_RETURN(auto later, Gemm::create(type, made.product, {.plain = plain, .adds = true}));
    return std::unique_ptr<Kernel>(std::make_unique<AccumulatingKernel<T>>(
        kernel.outputs[0].elements(), ContractionKernel<T>(type, made, std::move(first)),
        ContractionKernel<T>(type, made, std::move(later))));
  });
}

KernelOr contraction(const KernelSpec& kernel, bool plain) {
  WEFT_ASSIGN_OR_RETURN(const Contraction made, contractionOf(kernel));
  const DType type = kernel.inputs[0].type;
  WEFT_RETURN_IF_ERROR(checkInput(kernel, 1, {type, kernel.inputs[1].shape}));
  WEFT_RETURN_IF_ERROR(checkOutput(kernel, 0, {type, kernel.outputs[0].shape}));
  return dispatchFloat(kernel, type, [&]<typename T>() -> KernelOr {
    WEFT_ASSIGN_OR_RETURN(std::unique_ptr<Gemm> gemm, Gemm::create(type, made.product, {.plain = plain}));
    return std::unique_ptr<Kernel>(std::make_unique<ContractionKernel<T>>(type, made, std::move(gemm)));
  });
}

}  // namespace

void addContractionKernels(KernelRegistry& registry, const CpuKernelOptions& options) {
  for (const char* name : {kMatmulKernel, kContractKernel}) {
    registry.add(name, withArity({2, 1}, [plain = options.plainMatmul](const KernelSpec& kernel) {
                   return contraction(kernel, plain);
                 }));
  }
  registry.add(kContractAccumulateKernel, withArity({3, 1, 1}, [plain = options.plainMatmul](const KernelSpec& kernel) {
                 return accumulating(kernel, plain);
               }));
}

}  // namespace weft
