// Scaled dot-product attention over [batch, heads, rows, width], one head at a time.
//
// out = softmax(scale q k^T) v, lse = log-sum-exp of each row of scores. Causal: query t sees keys s <= t, both global;
// scalar 0 is the global index of this rank's first query. The gradient computes the probabilities again from lse
// (Dao et al., "FlashAttention", 2022):
//   p = exp(scale q k^T - lse), dv = p^T dout, dp = dout v^T, ds = scale p (dp - rowsum(dout out)), dq = ds k, dk =
//   ds^T q.
// Workspace: one (forward) or two (gradient) score matrices of one head, and the matrix product's own scratch.

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/families.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/loops.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/support.h"

namespace weft {
namespace {

using namespace cpu;  // NOLINT

// More is no workspace of any plan; twice as much still is a number.
constexpr int64_t kMostScratch = int64_t{1} << 60;

struct Sizes {
  int64_t heads = 1;  // batch x heads
  int64_t rows = 1;   // queries
  int64_t keys = 1;
  int64_t width = 1;
  bool causal = false;
  double scale = 1.0;

  // Keys that query `row` may see.
  int64_t visible(int64_t row, int64_t origin) const {
    return causal ? std::clamp<int64_t>(origin + row + 1, 0, keys) : keys;
  }
};

absl::StatusOr<Sizes> sizesOf(const KernelSpec& spec) {
  const TensorSpec& query = spec.inputs[0];
  const TensorSpec& key = spec.inputs[1];
  const Ints& q = query.shape;
  const Ints& k = key.shape;
  if (q.size() != 4 || k.size() != 4 || q[0] != k[0] || q[1] != k[1] || q[3] != k[3] || query.type != key.type) {
    return invalid(spec,
                   "takes queries [batch, heads, rows, width] and keys [batch, heads, keys, width], it was given ",
                   tensorText(query), " and ", tensorText(key));
  }
  WEFT_RETURN_IF_ERROR(checkInput(spec, 2, key));
  Sizes sizes{q[0] * q[1], q[2], k[2], q[3]};
  WEFT_ASSIGN_OR_RETURN(const int64_t causal, attributeOr<int64_t>(spec.attributes, "causal", 0));
  WEFT_ASSIGN_OR_RETURN(sizes.scale, attribute<double>(spec.attributes, "scale"));
  sizes.causal = causal != 0;
  return sizes;
}

// The scores of one head, in the workspace.
absl::StatusOr<int64_t> scoreBytes(const KernelSpec& spec, const Sizes& s) {
  const int64_t bytes = TensorSpec{spec.inputs[0].type, {s.rows, s.keys}}.bytes();
  if (bytes > kMostScratch) {
    return invalid(spec, "the scores of ", s.rows, " queries and ", s.keys, " keys take ", bytes,
                   " bytes, more than any workspace has");
  }
  return alignUp(bytes);
}

TensorSpec lseOf(const KernelSpec& spec) {
  return {spec.inputs[0].type, withoutLast(spec.inputs[0].shape)};
}

// The three forms of product, all on dense row-major matrices.
class Products {
 public:
  static absl::StatusOr<Products> create(DType type, const Sizes& s, bool plain) {
    const MatrixView wide{0, s.width, 1};
    const MatrixView square{0, s.keys, 1};
    Products made;
    WEFT_ASSIGN_OR_RETURN(made.turned_,
                          Gemm::create(type, {1, s.rows, s.keys, s.width, wide, {0, 1, s.width}, square}, plain));
    WEFT_ASSIGN_OR_RETURN(made.plain_, Gemm::create(type, {1, s.rows, s.width, s.keys, square, wide, wide}, plain));
    WEFT_ASSIGN_OR_RETURN(made.across_,
                          Gemm::create(type, {1, s.keys, s.width, s.rows, {0, 1, s.keys}, wide, wide}, plain));
    return made;
  }

  // scores = x y^T: [rows, width] by [keys, width]
  absl::Status toScores(const void* x, const void* y, void* scores, void* scratch) const {
    return turned_->run(x, y, scores, scratch);
  }
  // y = scores x: x [keys, width], y [rows, width]
  absl::Status toRows(const void* scores, const void* x, void* y, void* scratch) const {
    return plain_->run(scores, x, y, scratch);
  }
  // y = scores^T x: x [rows, width], y [keys, width]
  absl::Status toKeys(const void* scores, const void* x, void* y, void* scratch) const {
    return across_->run(scores, x, y, scratch);
  }
  int64_t scratchBytes() const {
    return std::max({turned_->scratchBytes(), plain_->scratchBytes(), across_->scratchBytes()});
  }

 private:
  std::shared_ptr<Gemm> turned_, plain_, across_;
};

// Scores to probabilities and lse. A query that sees no key gets zeros and an lse of -inf.
template <typename T>
void probabilities(const Sizes& s, int64_t origin, T* p, T* lse) {
  const T scale = static_cast<T>(s.scale);
  for (int64_t r = 0; r < s.rows; ++r) {
    T* row = p + r * s.keys;
    const int64_t seen = s.visible(r, origin);
    std::fill(row + seen, row + s.keys, T(0));
    if (seen == 0) {
      lse[r] = -std::numeric_limits<T>::infinity();
      continue;
    }
    scaleRow(row, scale, seen);
    const T most = largest(row, seen);
    const double total = exponentials(row, most, seen, row);
    scaleRow(row, static_cast<T>(1.0 / total), seen);
    lse[r] = static_cast<T>(most + std::log(total));
  }
}

template <typename T>
KernelOr attention(const KernelSpec& spec, bool plain) {
  WEFT_ASSIGN_OR_RETURN(const Sizes s, sizesOf(spec));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 0, spec.inputs[0]));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 1, lseOf(spec)));
  WEFT_ASSIGN_OR_RETURN(const Products products, Products::create(spec.inputs[0].type, s, plain));
  WEFT_ASSIGN_OR_RETURN(const int64_t matrix, scoreBytes(spec, s));
  return makeKernel(
      [=](const KernelArguments& args) -> absl::Status {
        T* p = static_cast<T*>(args.workspace);
        void* scratch = static_cast<char*>(args.workspace) + matrix;
        for (int64_t h = 0; h < s.heads; ++h) {
          const int64_t query = h * s.rows * s.width;
          const int64_t key = h * s.keys * s.width;
          WEFT_RETURN_IF_ERROR(products.toScores(in<T>(args, 0) + query, in<T>(args, 1) + key, p, scratch));
          probabilities(s, args.scalars[0], p, out<T>(args, 1) + h * s.rows);
          WEFT_RETURN_IF_ERROR(products.toRows(p, in<T>(args, 2) + key, out<T>(args, 0) + query, scratch));
        }
        return absl::OkStatus();
      },
      matrix + products.scratchBytes());
}

// Turns scores into probabilities and dp into ds, row by row.
template <typename T>
void scoreGradient(const Sizes& s, int64_t origin, const T* lse, const T* delta, T* p, T* dp) {
  const T scale = static_cast<T>(s.scale);
  for (int64_t r = 0; r < s.rows; ++r) {
    const int64_t seen = s.visible(r, origin);
    const T mean = delta[r];
    const T total = lse[r];
    T* row = p + r * s.keys;
    T* slope = dp + r * s.keys;
    WEFT_INDEPENDENT
    for (int64_t i = 0; i < seen; ++i) {
      row[i] = math::exp(row[i] * scale - total);
      slope[i] = row[i] * (slope[i] - mean) * scale;
    }
    std::fill(row + seen, row + s.keys, T(0));
    std::fill(slope + seen, slope + s.keys, T(0));
  }
}

absl::Status checkGradient(const KernelSpec& spec) {
  WEFT_RETURN_IF_ERROR(checkInput(spec, 3, spec.inputs[0]));
  WEFT_RETURN_IF_ERROR(checkInput(spec, 4, lseOf(spec)));
  WEFT_RETURN_IF_ERROR(checkInput(spec, 5, spec.inputs[0]));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 0, spec.inputs[0]));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 1, spec.inputs[1]));
  return checkOutput(spec, 2, spec.inputs[1]);
}

template <typename T>
KernelOr attentionGrad(const KernelSpec& spec, bool plain) {
  WEFT_ASSIGN_OR_RETURN(const Sizes s, sizesOf(spec));
  WEFT_RETURN_IF_ERROR(checkGradient(spec));
  WEFT_ASSIGN_OR_RETURN(const Products products, Products::create(spec.inputs[0].type, s, plain));
  WEFT_ASSIGN_OR_RETURN(const int64_t matrix, scoreBytes(spec, s));
  const int64_t vector = alignUp(s.rows * static_cast<int64_t>(sizeof(T)));
  return makeKernel(
      [=](const KernelArguments& args) -> absl::Status {
        char* room = static_cast<char*>(args.workspace);
        T* p = reinterpret_cast<T*>(room);
        T* dp = reinterpret_cast<T*>(room + matrix);
        T* delta = reinterpret_cast<T*>(room + 2 * matrix);
        void* scratch = room + 2 * matrix + vector;
        for (int64_t h = 0; h < s.heads; ++h) {
          const int64_t query = h * s.rows * s.width;
          const int64_t key = h * s.keys * s.width;
          const T* q = in<T>(args, 0) + query;
          const T* k = in<T>(args, 1) + key;
          const T* dout = in<T>(args, 5) + query;
          for (int64_t r = 0; r < s.rows; ++r) {
            delta[r] = static_cast<T>(dotRow(dout + r * s.width, in<T>(args, 3) + query + r * s.width, s.width));
          }
          WEFT_RETURN_IF_ERROR(products.toScores(q, k, p, scratch));
          WEFT_RETURN_IF_ERROR(products.toScores(dout, in<T>(args, 2) + key, dp, scratch));
          scoreGradient(s, args.scalars[0], in<T>(args, 4) + h * s.rows, delta, p, dp);
          WEFT_RETURN_IF_ERROR(products.toKeys(p, dout, out<T>(args, 2) + key, scratch));
          WEFT_RETURN_IF_ERROR(products.toRows(dp, k, out<T>(args, 0) + query, scratch));
          WEFT_RETURN_IF_ERROR(products.toKeys(dp, q, out<T>(args, 1) + key, scratch));
        }
        return absl::OkStatus();
      },
      2 * matrix + vector + products.scratchBytes());
}

}  // namespace

void addAttentionKernels(KernelRegistry& registry, const CpuKernelOptions& options) {
  const bool plain = options.plainMatmul;
  registry.add("attention", withArity({3, 2, 1}, [plain](const KernelSpec& spec) {
                 return dispatchFloat(spec, spec.inputs[0].type,
                                      [&]<typename T>() { return attention<T>(spec, plain); });
               }));
  registry.add("attention_grad", withArity({6, 3, 1}, [plain](const KernelSpec& spec) {
                 return dispatchFloat(spec, spec.inputs[0].type,
                                      [&]<typename T>() { return attentionGrad<T>(spec, plain); });
               }));
}

}  // namespace weft
