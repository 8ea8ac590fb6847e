// Scaled dot-product attention over [batch, heads, rows, width], one head at a time.
//
// out = softmax(scale q k^T + bias) v, lse = log-sum-exp of each row of scores. Heads of q in a row share a head of k
// and v, as many as the heads of k divide those of q. Causal: query t sees keys s <= t, both global; scalar 0 is the
// global index of this rank's first query. The gradient computes the probabilities again from lse (Dao et al.,
// "FlashAttention", 2022):
//   p = exp(scale q k^T + bias - lse), dv = p^T dout, dp = dout v^T, dbias = p (dp - rowsum(dout out)),
//   dq = scale dbias k, dk = scale dbias^T q.
// Workspace: one (forward) or two (gradient) score matrices of one head, and the matrix product's own scratch; where
// heads share keys the gradient of one head's keys, too.

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
  int64_t batch = 1;
  int64_t heads = 1;     // of q
  int64_t keyHeads = 1;  // of k and v
  int64_t rows = 1;      // queries
  int64_t keys = 1;
  int64_t width = 1;
  bool causal = false;
  double scale = 1.0;
  bool hasBias = false;
  Ints biasStrides = {0, 0, 0, 1};

  // Keys that query `row` may see.
  int64_t visible(int64_t row, int64_t origin) const {
    return causal ? std::clamp<int64_t>(origin + row + 1, 0, keys) : keys;
  }
  int64_t sharing() const { return heads / keyHeads; }
  // Where a head (of all batches) begins in q, in k, and in the bias.
  int64_t queryAt(int64_t head) const { return head * rows * width; }
  int64_t keyAt(int64_t head) const { return head / sharing() * keys * width; }
  int64_t biasAt(int64_t head) const { return head / heads * biasStrides[0] + head % heads * biasStrides[1]; }
};

// The bias, input `index`, where there is one.
absl::Status readBias(const KernelSpec& spec, size_t index, Sizes& sizes) {
  sizes.hasBias = index < spec.inputs.size();
  if (!sizes.hasBias) {
    return absl::OkStatus();
  }
  const TensorSpec& bias = spec.inputs[index];
  const Ints scores = {sizes.batch, sizes.heads, sizes.rows, sizes.keys};
  WEFT_RETURN_IF_ERROR(checkInput(spec, index, {spec.inputs[0].type, bias.shape}));
  if (bias.shape.size() != 4 || bias.shape[3] != sizes.keys) {
    return invalid(spec, "takes a bias [batch, heads, rows, keys] with ", sizes.keys, " keys, it was given ",
                   tensorText(bias));
  }
  WEFT_ASSIGN_OR_RETURN(sizes.biasStrides, broadcastStrides(bias.shape, scores));
  return absl::OkStatus();
}

absl::StatusOr<Sizes> sizesOf(const KernelSpec& spec, size_t bias) {
  const TensorSpec& query = spec.inputs[0];
  const TensorSpec& key = spec.inputs[1];
  const Ints& q = query.shape;
  const Ints& k = key.shape;
  if (q.size() != 4 || k.size() != 4 || q[0] != k[0] || k[1] < 1 || q[1] % k[1] != 0 || q[3] != k[3] ||
      query.type != key.type) {
    return invalid(
        spec,
        "takes queries [batch, heads, rows, width] and keys [batch, heads or a divisor, keys, width], it was "
        "given ",
        tensorText(query), " and ", tensorText(key));
  }
  WEFT_RETURN_IF_ERROR(checkInput(spec, 2, key));
  Sizes sizes{q[0], q[1], k[1], q[2], k[2], q[3]};
  WEFT_ASSIGN_OR_RETURN(const int64_t causal, attributeOr<int64_t>(spec.attributes, "causal", 0));
  WEFT_ASSIGN_OR_RETURN(sizes.scale, attribute<double>(spec.attributes, "scale"));
  sizes.causal = causal != 0;
  WEFT_RETURN_IF_ERROR(readBias(spec, bias, sizes));
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
    WEFT_ASSIGN_OR_RETURN(made.turned_, Gemm::create(type, {1, s.rows, s.keys, s.width, wide, {0, 1, s.width}, square},
                                                     {.plain = plain}));
    WEFT_ASSIGN_OR_RETURN(made.plain_,
                          Gemm::create(type, {1, s.rows, s.width, s.keys, square, wide, wide}, {.plain = plain}));
    WEFT_ASSIGN_OR_RETURN(
        made.across_, Gemm::create(type, {1, s.keys, s.width, s.rows, {0, 1, s.keys}, wide, wide}, {.plain = plain}));
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

// The bias of one head; null without one.
template <typename T>
const T* biasOf(const KernelArguments& args, size_t index, const Sizes& s, int64_t head) {
  return s.hasBias ? in<T>(args, index) + s.biasAt(head) : nullptr;
}

// row = scale row + bias, of the keys that are seen.
template <typename T>
void finishScores(const Sizes& s, const T* bias, int64_t seen, T* row) {
  scaleRow(row, static_cast<T>(s.scale), seen);
  if (bias != nullptr) {
    WEFT_INDEPENDENT
    for (int64_t i = 0; i < seen; ++i) {
      row[i] += bias[i];
    }
  }
}

// Scores of one head to probabilities and lse. A query that sees no key gets zeros and an lse of -inf.
template <typename T>
void probabilities(const Sizes& s, int64_t origin, const T* bias, T* p, T* lse) {
  constexpr T kNone = -std::numeric_limits<T>::infinity();
  for (int64_t r = 0; r < s.rows; ++r) {
    T* row = p + r * s.keys;
    const int64_t seen = s.visible(r, origin);
    finishScores(s, bias == nullptr ? bias : bias + r * s.biasStrides[2], seen, row);
    const T most = seen == 0 ? kNone : largest(row, seen);
    if (most == kNone) {
      std::fill(row, row + s.keys, T(0));
      lse[r] = kNone;
      continue;
    }
    std::fill(row + seen, row + s.keys, T(0));
    const double total = exponentials(row, most, seen, row);
    scaleRow(row, static_cast<T>(1.0 / total), seen);
    lse[r] = static_cast<T>(most + std::log(total));
  }
}

template <typename T>
KernelOr attention(const KernelSpec& spec, bool plain) {
  WEFT_ASSIGN_OR_RETURN(const Sizes s, sizesOf(spec, 3));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 0, spec.inputs[0]));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 1, lseOf(spec)));
  WEFT_ASSIGN_OR_RETURN(const Products products, Products::create(spec.inputs[0].type, s, plain));
  WEFT_ASSIGN_OR_RETURN(const int64_t matrix, scoreBytes(spec, s));
  return makeKernel(
      [=](const KernelArguments& args) -> absl::Status {
        T* p = static_cast<T*>(args.workspace);
        void* scratch = static_cast<char*>(args.workspace) + matrix;
        for (int64_t h = 0; h < s.batch * s.heads; ++h) {
          const int64_t query = s.queryAt(h);
          const int64_t key = s.keyAt(h);
          WEFT_RETURN_IF_ERROR(products.toScores(in<T>(args, 0) + query, in<T>(args, 1) + key, p, scratch));
          probabilities(s, args.scalars[0], biasOf<T>(args, 3, s, h), p, out<T>(args, 1) + h * s.rows);
          WEFT_RETURN_IF_ERROR(products.toRows(p, in<T>(args, 2) + key, out<T>(args, 0) + query, scratch));
        }
        return absl::OkStatus();
      },
      matrix + products.scratchBytes());
}

// What one head's rows of scores and their gradients are made of.
template <typename T>
struct ScoreRows {
  const T* bias;    // null without one
  const T* lse;     // [rows]
  const T* delta;   // [rows]: rowsum(dout out)
  T* biasGradient;  // added to; null if it is not wanted
};

// Turns scores into probabilities, and dp into the gradients of the scores before they are scaled, row by row.
template <typename T>
void scoreGradient(const Sizes& s, int64_t origin, const ScoreRows<T>& rows, T* p, T* dp) {
  const T scale = static_cast<T>(s.scale);
  for (int64_t r = 0; r < s.rows; ++r) {
    const T mean = rows.delta[r];
    const T total = rows.lse[r];
    const int64_t seen = total == -std::numeric_limits<T>::infinity() ? 0 : s.visible(r, origin);
    const int64_t at = r * s.biasStrides[2];
    T* row = p + r * s.keys;
    T* slope = dp + r * s.keys;
    finishScores(s, rows.bias == nullptr ? rows.bias : rows.bias + at, seen, row);
    WEFT_INDEPENDENT
    for (int64_t i = 0; i < seen; ++i) {
      row[i] = math::exp(row[i] - total);
      slope[i] = row[i] * (slope[i] - mean);
    }
    for (int64_t i = 0; rows.biasGradient != nullptr && i < seen; ++i) {
      rows.biasGradient[at + i] += slope[i];
    }
    scaleRow(slope, scale, seen);
    std::fill(row + seen, row + s.keys, T(0));
    std::fill(slope + seen, slope + s.keys, T(0));
  }
}

// The gradient of a head's keys or values: the first of the heads that share them writes it, the others add theirs,
// which `part` holds meanwhile.
class SharedKeys {
 public:
  SharedKeys(const Sizes& s, const Products& products) : s_(s), products_(products) {}

  template <typename T>
  absl::Status add(int64_t head, const T* scores, const T* x, T* gradients, T* part, void* scratch) const {
    T* const y = gradients + s_.keyAt(head);
    if (head % s_.sharing() == 0) {
      return products_.toKeys(scores, x, y, scratch);
    }
    WEFT_RETURN_IF_ERROR(products_.toKeys(scores, x, part, scratch));
    WEFT_INDEPENDENT
    for (int64_t i = 0; i < s_.keys * s_.width; ++i) {
      y[i] += part[i];
    }
    return absl::OkStatus();
  }

 private:
  const Sizes& s_;
  const Products& products_;
};

absl::Status checkGradient(const KernelSpec& spec, bool biasGradient) {
  WEFT_RETURN_IF_ERROR(checkInput(spec, 3, spec.inputs[0]));
  WEFT_RETURN_IF_ERROR(checkInput(spec, 4, lseOf(spec)));
  WEFT_RETURN_IF_ERROR(checkInput(spec, 5, spec.inputs[0]));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 0, spec.inputs[0]));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 1, spec.inputs[1]));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 2, spec.inputs[1]));
  return biasGradient ? checkOutput(spec, 3, spec.inputs[6]) : absl::OkStatus();
}

// The parts of the gradient's workspace, in bytes.
struct GradientRoom {
  int64_t matrix = 0;  // twice
  int64_t vector = 0;
  int64_t part = 0;
  int64_t products = 0;

  int64_t bytes() const { return 2 * matrix + vector + part + products; }
};

template <typename T>
class AttentionGradient {
 public:
  AttentionGradient(const Sizes& s, const Products& products, const GradientRoom& room, int64_t biasElements)
      : s_(s), products_(products), room_(room), biasElements_(biasElements) {}

  absl::Status run(const KernelArguments& args) const {
    if (biasElements_ > 0) {
      std::fill_n(out<T>(args, 3), biasElements_, T(0));
    }
    for (int64_t h = 0; h < s_.batch * s_.heads; ++h) {
      WEFT_RETURN_IF_ERROR(runHead(args, h));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status runHead(const KernelArguments& args, int64_t h) const {
    char* room = static_cast<char*>(args.workspace);
    T* p = reinterpret_cast<T*>(room);
    T* dp = reinterpret_cast<T*>(room += room_.matrix);
    T* delta = reinterpret_cast<T*>(room += room_.matrix);
    T* part = reinterpret_cast<T*>(room += room_.vector);
    void* scratch = room + room_.part;
    const T* q = in<T>(args, 0) + s_.queryAt(h);
    const T* k = in<T>(args, 1) + s_.keyAt(h);
    const T* v = in<T>(args, 2) + s_.keyAt(h);
    const T* y = in<T>(args, 3) + s_.queryAt(h);
    const T* dout = in<T>(args, 5) + s_.queryAt(h);
    for (int64_t r = 0; r < s_.rows; ++r) {
      delta[r] = static_cast<T>(dotRow(dout + r * s_.width, y + r * s_.width, s_.width));
    }
    WEFT_RETURN_IF_ERROR(products_.toScores(q, k, p, scratch));
    WEFT_RETURN_IF_ERROR(products_.toScores(dout, v, dp, scratch));
    T* const biasGradient = biasElements_ > 0 ? out<T>(args, 3) + s_.biasAt(h) : nullptr;
    const ScoreRows<T> rows = {biasOf<T>(args, 6, s_, h), in<T>(args, 4) + h * s_.rows, delta, biasGradient};
    scoreGradient(s_, args.scalars[0], rows, p, dp);
    const SharedKeys keys(s_, products_);
    WEFT_RETURN_IF_ERROR(keys.add(h, p, dout, out<T>(args, 2), part, scratch));
    WEFT_RETURN_IF_ERROR(products_.toRows(dp, k, out<T>(args, 0) + s_.queryAt(h), scratch));
    return keys.add(h, dp, q, out<T>(args, 1), part, scratch);
  }

  Sizes s_;
  Products products_;
  GradientRoom room_;
  int64_t biasElements_;  // of the bias's gradient, 0 if it is not wanted
};

template <typename T>
KernelOr attentionGrad(const KernelSpec& spec, bool plain) {
  WEFT_ASSIGN_OR_RETURN(const Sizes s, sizesOf(spec, 6));
  WEFT_ASSIGN_OR_RETURN(const int64_t biasGradient, attributeOr<int64_t>(spec.attributes, "bias_gradient", 0));
  const bool wanted = biasGradient != 0;
  if (spec.outputs.size() != (wanted ? 4 : 3) || (wanted && !s.hasBias)) {
    return invalid(spec, "gives 3 gradients, or with a bias and bias_gradient 4; it has ", spec.outputs.size(),
                   " outputs and ", spec.inputs.size(), " inputs");
  }
  WEFT_RETURN_IF_ERROR(checkGradient(spec, wanted));
  WEFT_ASSIGN_OR_RETURN(const Products products, Products::create(spec.inputs[0].type, s, plain));
  GradientRoom room;
  WEFT_ASSIGN_OR_RETURN(room.matrix, scoreBytes(spec, s));
  constexpr auto kBytes = static_cast<int64_t>(sizeof(T));
  room.vector = alignUp(s.rows * kBytes);
  room.part = s.sharing() > 1 ? alignUp(s.keys * s.width * kBytes) : 0;
  room.products = products.scratchBytes();
  const int64_t biasElements = wanted ? spec.outputs[3].elements() : 0;
  const AttentionGradient<T> gradient(s, products, room, biasElements);
  return makeKernel([gradient](const KernelArguments& args) { return gradient.run(args); }, room.bytes());
}

}  // namespace

void addAttentionKernels(KernelRegistry& registry, const CpuKernelOptions& options) {
  const bool plain = options.plainMatmul;
  registry.add("attention", withArity({3, 2, 1, 1}, [plain](const KernelSpec& spec) {
                 return dispatchFloat(spec, spec.inputs[0].type,
                                      [&]<typename T>() { return attention<T>(spec, plain); });
               }));
  registry.add("attention_grad", [plain](const KernelSpec& spec) -> KernelOr {
    WEFT_RETURN_IF_ERROR(checkArity(spec, {6, std::max<size_t>(spec.outputs.size(), 3), 1, 1}));
    return dispatchFloat(spec, spec.inputs[0].type, [&]<typename T>() { return attentionGrad<T>(spec, plain); });
  });
}

}  // namespace weft
