// One strided, batched matrix product C[b] = A[b] B[b], or C[b] += A[b] B[b], made once and run many times: oneDNN for
// f32, own loops for f64 and where asked.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/describe/contraction.h"
#include "runtime/base/dtype.h"

namespace weft::cpu {

struct GemmOptions {
  bool plain = false;  // own loops
  bool adds = false;   // to what C holds
};

class Gemm {
 public:
  virtual ~Gemm() = default;
  // `scratch` of at least scratchBytes(), 64-byte aligned.
  virtual absl::Status run(const void* a, const void* b, void* c, void* scratch) = 0;
  virtual int64_t scratchBytes() const = 0;

  // scratchBytes() is at most gemmScratchLimit(type, shape). Fast where each of A and B has a stride of 1 among row and
  // column (of sizes above 1) and C's columns have one: pack other operands first. Anything else is right, but runs in
  // own loops.
  // Errors: a type that is neither f32 nor f64.
  static absl::StatusOr<std::unique_ptr<Gemm>> create(DType type, const GemmShape& shape, GemmOptions options = {});
};

}  // namespace weft::cpu
