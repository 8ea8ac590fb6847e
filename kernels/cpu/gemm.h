// One strided, batched matrix product C[b] = A[b] B[b], made once and run many times: oneDNN for f32, own loops for f64
// and where asked.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/base/dtype.h"

namespace weft::cpu {

// Strides in elements: of the batch, of the row, of the column.
struct MatrixView {
  int64_t batch = 0;
  int64_t row = 0;
  int64_t column = 0;
};

struct GemmShape {
  int64_t batch = 1;
  int64_t m = 1;
  int64_t n = 1;
  int64_t k = 1;
  MatrixView a;  // m x k
  MatrixView b;  // k x n
  MatrixView c;  // m x n
};

class Gemm {
 public:
  virtual ~Gemm() = default;
  // `scratch` of at least scratchBytes(), 64-byte aligned.
  virtual absl::Status run(const void* a, const void* b, void* c, void* scratch) = 0;
  virtual int64_t scratchBytes() const { return 0; }
  // Whether the library runs it, and not own loops.
  virtual bool isFast() const { return false; }

  // Fast where each of A and B has a stride of 1 among row and column (of sizes above 1) and C's columns have one: pack
  // other operands first. Anything else is right, but runs in own loops, and so does a product whose scratch would pass
  // kGemmScratchLimit; an A whose rows are contiguous the other way needs the most.
  // Errors: a type that is neither f32 nor f64.
  static absl::StatusOr<std::unique_ptr<Gemm>> create(DType type, const GemmShape& shape, bool plain);
};

}  // namespace weft::cpu
