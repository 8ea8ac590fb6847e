// Scaled dot-product attention over [batch, heads, rows, width], one head at a time.
//
// out = softmax(scale q k^T) v, lse = log-sum-exp of each row of scores. Causal: query t sees keys s <= t, both global;
// scalar 0 is the global index of this rank's first query. The gradient computes the probabilities again from lse:
//   p = exp(scale q k^T - lse), dv = p^T dout, dp = dout v^T, ds = scale p (dp - rowsum(dout out)), dq = ds k, dk =
//   ds^T q.
// Workspace: one or two score matrices, one row, and the matrix product's own scratch.

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/families.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/support.h"

namespace weft {
namespace {

using namespace cpu;  // NOLINT

struct Sizes {
  int64_t heads = 1;  // batch x heads
  int64_t rows = 1;   // queries
  int64_t keys = 1;
  int64_t width = 1;
  bool causal = false;
  double scale = 1.0;
};

absl::StatusOr<Sizes> sizesOf(const KernelSpec& spec) {
  for (size_t i = 0; i < 3; ++i) {
    if (spec.inputs[i].shape.size() != 4) {
      return absl::InvalidArgumentError(
          absl::StrCat("attention needs [batch, heads, rows, width], was given ", shapeText(spec.inputs[i].shape)));
    }
  }
  const auto& q = spec.inputs[0].shape;
  const auto& k = spec.inputs[1].shape;
  WEFT_RETURN_IF_ERROR(checkSameShape(spec, spec.inputs[1], spec.inputs[2]));
  if (q[0] != k[0] || q[1] != k[1] || q[3] != k[3]) {
    return absl::InvalidArgumentError(absl::StrCat("attention of queries ", shapeText(q), " and keys ", shapeText(k)));
  }
  Sizes sizes{q[0] * q[1], q[2], k[2], q[3], false, 1.0};
  WEFT_ASSIGN_OR_RETURN(const int64_t causal, attributeOr<int64_t>(spec.attributes, "causal", 0));
  WEFT_ASSIGN_OR_RETURN(sizes.scale, attribute<double>(spec.attributes, "scale"));
  sizes.causal = causal != 0;
  return sizes;
}

// Dense row-major matrices and their transposes.
MatrixView plainView(int64_t columns) {
  return {0, columns, 1};
}
MatrixView transposedView(int64_t columns) {
  return {0, 1, columns};
}

int64_t aligned(int64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

// Keys a query row may see.
int64_t visible(const Sizes& s, int64_t row, int64_t origin) {
  return s.causal ? std::clamp<int64_t>(origin + row + 1, 0, s.keys) : s.keys;
}

template <typename T>
KernelOr attention(const KernelSpec& spec, bool plain) {
  WEFT_RETURN_IF_ERROR(checkCounts(spec, 3, 2));
  WEFT_ASSIGN_OR_RETURN(const Sizes s, sizesOf(spec));
  const DType type = spec.inputs[0].type;
  WEFT_ASSIGN_OR_RETURN(
      std::shared_ptr<Gemm> scores,
      Gemm::create(type, {1, s.rows, s.keys, s.width, plainView(s.width), transposedView(s.width), plainView(s.keys)},
                   plain));
  WEFT_ASSIGN_OR_RETURN(
      std::shared_ptr<Gemm> mix,
      Gemm::create(type, {1, s.rows, s.width, s.keys, plainView(s.keys), plainView(s.width), plainView(s.width)},
                   plain));
  const int64_t matrix = aligned(s.rows * s.keys * static_cast<int64_t>(sizeof(T)));
  return makeKernel(
      [=](const KernelArguments& args) -> absl::Status {
        T* p = static_cast<T*>(args.workspace);
        void* scratch = static_cast<char*>(args.workspace) + matrix;
        const T scale = static_cast<T>(s.scale);
        for (int64_t h = 0; h < s.heads; ++h) {
          const T* q = in<T>(args, 0) + h * s.rows * s.width;
          const T* k = in<T>(args, 1) + h * s.keys * s.width;
          const T* v = in<T>(args, 2) + h * s.keys * s.width;
          WEFT_RETURN_IF_ERROR(scores->run(q, k, p, scratch));
          for (int64_t r = 0; r < s.rows; ++r) {
            T* row = p + r * s.keys;
            const int64_t seen = visible(s, r, args.scalars[0]);
            T most = -std::numeric_limits<T>::infinity();
            for (int64_t i = 0; i < seen; ++i) {
              row[i] *= scale;
              most = std::max(most, row[i]);
            }
            double total = 0;
            for (int64_t i = 0; i < seen; ++i) {
              row[i] = std::exp(row[i] - most);
              total += row[i];
            }
            const T inverse = static_cast<T>(1.0 / total);
            for (int64_t i = 0; i < seen; ++i) {
              row[i] *= inverse;
            }
            std::fill(row + seen, row + s.keys, T(0));
            out<T>(args, 1)[h * s.rows + r] = most + static_cast<T>(std::log(total));
          }
          WEFT_RETURN_IF_ERROR(mix->run(p, v, out<T>(args, 0) + h * s.rows * s.width, scratch));
        }
        return absl::OkStatus();
      },
      matrix + std::max(scores->scratchBytes(), mix->scratchBytes()));
}

// The five products of the gradient.
struct GradientProducts {
  std::shared_ptr<Gemm> scores, dv, dp, dq, dk;

  int64_t scratchBytes() const {
    return std::max(
        {scores->scratchBytes(), dv->scratchBytes(), dp->scratchBytes(), dq->scratchBytes(), dk->scratchBytes()});
  }
};

absl::StatusOr<GradientProducts> gradientProducts(DType type, const Sizes& s, bool plain) {
  GradientProducts g;
  const MatrixView wide = plainView(s.width);
  const MatrixView square = plainView(s.keys);
  const MatrixView turned = transposedView(s.keys);
  WEFT_ASSIGN_OR_RETURN(g.scores,
                        Gemm::create(type, {1, s.rows, s.keys, s.width, wide, transposedView(s.width), square}, plain));
  WEFT_ASSIGN_OR_RETURN(g.dp,
                        Gemm::create(type, {1, s.rows, s.keys, s.width, wide, transposedView(s.width), square}, plain));
  WEFT_ASSIGN_OR_RETURN(g.dv, Gemm::create(type, {1, s.keys, s.width, s.rows, turned, wide, wide}, plain));
  WEFT_ASSIGN_OR_RETURN(g.dq, Gemm::create(type, {1, s.rows, s.width, s.keys, square, wide, wide}, plain));
  WEFT_ASSIGN_OR_RETURN(g.dk, Gemm::create(type, {1, s.keys, s.width, s.rows, turned, wide, wide}, plain));
  return g;
}

// Turns scores into probabilities and dp into ds, row by row.
template <typename T>
void scoreGradient(const Sizes& s, int64_t origin, const T* lse, const T* o, const T* dout, T* p, T* dp) {
  const T scale = static_cast<T>(s.scale);
  for (int64_t r = 0; r < s.rows; ++r) {
    const int64_t seen = visible(s, r, origin);
    double delta = 0;
    for (int64_t i = 0; i < s.width; ++i) {
      delta += static_cast<double>(dout[r * s.width + i]) * o[r * s.width + i];
    }
    const T mean = static_cast<T>(delta);
    T* row = p + r * s.keys;
    T* slope = dp + r * s.keys;
    for (int64_t i = 0; i < seen; ++i) {
      row[i] = std::exp(row[i] * scale - lse[r]);
      slope[i] = row[i] * (slope[i] - mean) * scale;
    }
    std::fill(row + seen, row + s.keys, T(0));
    std::fill(slope + seen, slope + s.keys, T(0));
  }
}

template <typename T>
KernelOr attentionGrad(const KernelSpec& spec, bool plain) {
  WEFT_RETURN_IF_ERROR(checkCounts(spec, 6, 3));
  WEFT_ASSIGN_OR_RETURN(const Sizes s, sizesOf(spec));
  WEFT_ASSIGN_OR_RETURN(const GradientProducts g, gradientProducts(spec.inputs[0].type, s, plain));
  const int64_t matrix = aligned(s.rows * s.keys * static_cast<int64_t>(sizeof(T)));
  return makeKernel(
      [=](const KernelArguments& args) -> absl::Status {
        T* p = static_cast<T*>(args.workspace);
        T* dp = reinterpret_cast<T*>(static_cast<char*>(args.workspace) + matrix);
        void* scratch = static_cast<char*>(args.workspace) + 2 * matrix;
        for (int64_t h = 0; h < s.heads; ++h) {
          const int64_t query = h * s.rows * s.width;
          const int64_t key = h * s.keys * s.width;
          const T* q = in<T>(args, 0) + query;
          const T* k = in<T>(args, 1) + key;
          const T* dout = in<T>(args, 5) + query;
          WEFT_RETURN_IF_ERROR(g.scores->run(q, k, p, scratch));
          WEFT_RETURN_IF_ERROR(g.dp->run(dout, in<T>(args, 2) + key, dp, scratch));
          scoreGradient(s, args.scalars[0], in<T>(args, 4) + h * s.rows, in<T>(args, 3) + query, dout, p, dp);
          WEFT_RETURN_IF_ERROR(g.dv->run(p, dout, out<T>(args, 2) + key, scratch));
          WEFT_RETURN_IF_ERROR(g.dq->run(dp, k, out<T>(args, 0) + query, scratch));
          WEFT_RETURN_IF_ERROR(g.dk->run(dp, q, out<T>(args, 1) + key, scratch));
        }
        return absl::OkStatus();
      },
      2 * matrix + g.scratchBytes());
}

}  // namespace

void addAttentionKernels(KernelRegistry& registry, const CpuKernelOptions& options) {
  const bool plain = options.plainMatmul;
  registry.add("attention", [plain](const KernelSpec& spec) -> KernelOr {
    WEFT_RETURN_IF_ERROR(checkScalars(spec, 1));
    return dispatchFloat(spec, spec.inputs.at(0).type, [&]<typename T>() { return attention<T>(spec, plain); });
  });
  registry.add("attention_grad", [plain](const KernelSpec& spec) -> KernelOr {
    WEFT_RETURN_IF_ERROR(checkScalars(spec, 1));
    return dispatchFloat(spec, spec.inputs.at(0).type, [&]<typename T>() { return attentionGrad<T>(spec, plain); });
  });
}

}  // namespace weft
