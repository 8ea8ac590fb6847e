#include "kernels/cpu/gemm.h"

#include <algorithm>
#include <array>
#include <dnnl.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/loops.h"
#include "kernels/cpu/threads.h"
#include "runtime/base/arithmetic.h"
#include "runtime/base/status.h"

namespace weft::cpu {
namespace {

// Own loops. A block of B is packed into panels of kColumns columns; a tile of kRows x kColumns of C stays in registers
// while it runs down the block. Each element of C is summed in T, in the order of k, whatever the block sizes.
template <typename T>
class PlainGemm : public Gemm {
 public:
  PlainGemm(const GemmShape& shape, bool adds) : s_(shape), adds_(adds) {}

  absl::Status run(const void* a, const void* b, void* c, void* scratch) override {
    for (int64_t i = 0; i < s_.batch; ++i) {
      runOne(static_cast<const T*>(a) + i * s_.a.batch, static_cast<const T*>(b) + i * s_.b.batch,
             static_cast<T*>(c) + i * s_.c.batch, static_cast<T*>(scratch));
    }
    return absl::OkStatus();
  }

  int64_t scratchBytes() const override { return kBlock * kBlock * static_cast<int64_t>(sizeof(T)); }

 private:
  static constexpr int64_t kBlock = 128;
  static constexpr int64_t kRows = 4;
  static constexpr int64_t kColumns = 16;

  void runOne(const T* a, const T* b, T* c, T* packed) const {
    for (int64_t j = 0; j < s_.n; j += kBlock) {
      const int64_t columns = std::min(kBlock, s_.n - j);
      // One round even for k = 0, which writes zeros, or what there was.
      for (int64_t k = 0; k == 0 || k < s_.k; k += kBlock) {
        const int64_t depth = std::min(kBlock, s_.k - k);
        packBlock(b + k * s_.b.row + j * s_.b.column, depth, columns, packed);
        for (int64_t p = 0; p < columns; p += kColumns) {
          runPanel(a + k * s_.a.column, packed + p * depth, c + (j + p) * s_.c.column,
                   {depth, std::min(kColumns, columns - p), k == 0 && !adds_});
        }
      }
    }
  }

  void packBlock(const T* b, int64_t depth, int64_t columns, T* packed) const {
    for (int64_t p = 0; p < columns; p += kColumns) {
      const int64_t width = std::min(kColumns, columns - p);
      for (int64_t k = 0; k < depth; ++k) {
        for (int64_t j = 0; j < kColumns; ++j) {
          *packed++ = j < width ? b[k * s_.b.row + (p + j) * s_.b.column] : T(0);
        }
      }
    }
  }

  struct Panel {
    int64_t depth;
    int64_t width;
    bool first;  // nothing was added up in C so far
  };

  void runPanel(const T* a, const T* panel, T* c, const Panel& size) const {
    int64_t i = 0;
    for (; i + kRows <= s_.m; i += kRows) {
      runTile<kRows>(a + i * s_.a.row, panel, c + i * s_.c.row, size);
    }
    for (; i < s_.m; ++i) {
      runTile<1>(a + i * s_.a.row, panel, c + i * s_.c.row, size);
    }
  }

  template <int64_t rows>
  void runTile(const T* a, const T* panel, T* c, const Panel& size) const {
    T sums[rows][kColumns] = {};
    for (int64_t i = 0; i < rows && !size.first; ++i) {
      for (int64_t j = 0; j < size.width; ++j) {
        sums[i][j] = c[i * s_.c.row + j * s_.c.column];
      }
    }
    for (int64_t k = 0; k < size.depth; ++k) {
      for (int64_t i = 0; i < rows; ++i) {
        const T factor = a[i * s_.a.row + k * s_.a.column];
        for (int64_t j = 0; j < kColumns; ++j) {
          sums[i][j] += factor * panel[k * kColumns + j];
        }
      }
    }
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < size.width; ++j) {
        c[i * s_.c.row + j * s_.c.column] = sums[i][j];
      }
    }
  }

  GemmShape s_;
  bool adds_;
};

// Whether the library's own choice is not its reference (a thousand times slower than the others) and keeps to the
// limit. Only that choice is looked at: once primitives are in the library's cache, its next_impl crashes in
// oneDNN 2.6.3.
bool keepsToLimit(const dnnl::matmul::primitive_desc& description, int64_t limit) {
  const bool reference = std::string(description.impl_info_str()).rfind("ref", 0) == 0;
  return !reference && static_cast<int64_t>(description.scratchpad_desc().get_size()) <= limit;
}

// Products of fewer operations run on one thread: at 100 GFLOP/s a core that is 10 us, and to hand work to helpers
// takes a few even while they spin. A head of attention has many of them.
constexpr double kSmallProduct = 1e6;

// For ThreadLimit; `most` threads for a product that is not small.
int threadLimitOf(const GemmShape& s, bool whole, int most) {
  const double operations = 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k) *
                            static_cast<double>(whole ? s.batch : 1);
  return operations < kSmallProduct ? 1 : most;
}

// What a product of the library may take.
struct LibraryLimits {
  int64_t scratch = 0;  // bytes
  int threads = 0;      // 0: all
};

class OneDnnGemm : public Gemm {
 public:
  // Nothing where the library has no fast implementation within the limits. Throws dnnl::error.
  static std::unique_ptr<Gemm> create(const GemmShape& shape, bool adds, LibraryLimits limits) {
    dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (adds) {
      dnnl::post_ops after;
      after.append_sum(1);
      attr.set_post_ops(after);
    }
    // All batches in one call, or else one call for each.
    for (const bool whole : {true, false}) {
      if (!whole && shape.batch == 1) {
        break;
      }
      const ThreadLimit threadLimit(threadLimitOf(shape, whole, limits.threads));
      dnnl::matmul::primitive_desc description(dnnl::matmul::desc(describe(shape, shape.m, shape.k, shape.a, whole),
                                                                  describe(shape, shape.k, shape.n, shape.b, whole),
                                                                  describe(shape, shape.m, shape.n, shape.c, whole)),
                                               attr, engine);
      if (keepsToLimit(description, limits.scratch)) {
        return std::unique_ptr<Gemm>(new OneDnnGemm(shape, engine, description, {whole, limits.threads}));
      }
    }
    return nullptr;
  }

  absl::Status run(const void* a, const void* b, void* c, void* scratch) override {
    try {
      const ThreadLimit limit(threadLimit_);
      scratch_.set_data_handle(scratch);
      for (int64_t i = 0; i < calls_; ++i) {
        a_.set_data_handle(const_cast<float*>(static_cast<const float*>(a) + i * steps_[0]));
        b_.set_data_handle(const_cast<float*>(static_cast<const float*>(b) + i * steps_[1]));
        c_.set_data_handle(static_cast<float*>(c) + i * steps_[2]);
        // The library's C++ call would copy the arguments to the heap.
        dnnl::error::wrap_c_api(dnnl_primitive_execute(primitive_.get(), stream_.get(),
                                                       static_cast<int>(arguments_.size()), arguments_.data()),
                                "could not execute a matrix product");
      }
      stream_.wait();
    } catch (const dnnl::error& error) {
      return absl::InternalError(absl::StrCat("oneDNN failed to run a matrix product: ", error.what()));
    }
    return absl::OkStatus();
  }

  int64_t scratchBytes() const override { return scratchBytes_; }

 private:
  struct Call {
    bool whole;
    int threads;
  };

  OneDnnGemm(const GemmShape& s, const dnnl::engine& engine, const dnnl::matmul::primitive_desc& description,
             const Call& call)
      : stream_(engine),
        primitive_(dnnl::matmul(description)),
        a_(description.src_desc(), engine, nullptr),
        b_(description.weights_desc(), engine, nullptr),
        c_(description.dst_desc(), engine, nullptr),
        scratch_(description.scratchpad_desc(), engine, nullptr),
        arguments_{{{DNNL_ARG_SRC, a_.get()},
                    {DNNL_ARG_WEIGHTS, b_.get()},
                    {DNNL_ARG_DST, c_.get()},
                    {DNNL_ARG_SCRATCHPAD, scratch_.get()}}},
        scratchBytes_(static_cast<int64_t>(description.scratchpad_desc().get_size())),
        calls_(call.whole ? 1 : s.batch),
        threadLimit_(threadLimitOf(s, call.whole, call.threads)),
        steps_{s.a.batch, s.b.batch, s.c.batch} {}

  // A dimension of size 1 may have any stride: give it one with which the library sees a dense matrix.
  static dnnl::memory::desc describe(const GemmShape& s, int64_t rows, int64_t columns, const MatrixView& view,
                                     bool whole) {
    int64_t row = view.row;
    int64_t column = view.column;
    if (columns == 1) {
      column = 1;
      row = rows == 1 ? 1 : row;
    } else if (rows == 1) {
      row = column == 1 ? columns : 1;
    }
    if (!whole || s.batch == 1) {
      return {{rows, columns}, dnnl::memory::data_type::f32, dnnl::memory::dims{row, column}};
    }
    return {{s.batch, rows, columns}, dnnl::memory::data_type::f32, dnnl::memory::dims{view.batch, row, column}};
  }

  dnnl::stream stream_;
  dnnl::matmul primitive_;
  dnnl::memory a_, b_, c_, scratch_;
  std::array<dnnl_exec_arg_t, 4> arguments_;
  int64_t scratchBytes_;
  int64_t calls_;
  int threadLimit_;
  int64_t steps_[3];
};

// The library copies an operand that lies the other way for every thread. Where that would pass the limit, blocks of
// its lines (rows of A, columns of B) are turned one after another and multiplied alone.
class BlockedGemm : public Gemm {
 public:
  // Nothing where no operand lies the other way or no block fits. Throws dnnl::error.
  static std::unique_ptr<Gemm> create(const GemmShape& s, bool adds, int64_t limit);

  absl::Status run(const void* a, const void* b, void* c, void* scratch) override {
    for (int64_t i = 0; i < s_.batch; ++i) {
      WEFT_RETURN_IF_ERROR(runOne(static_cast<const float*>(a) + i * s_.a.batch,
                                  static_cast<const float*>(b) + i * s_.b.batch,
                                  static_cast<float*>(c) + i * s_.c.batch, static_cast<char*>(scratch)));
    }
    return absl::OkStatus();
  }

  int64_t scratchBytes() const override {
    return turnedBytes_ +
           std::max(whole_.gemm ? whole_.gemm->scratchBytes() : 0, last_.gemm ? last_.gemm->scratchBytes() : 0);
  }

 private:
  // So many lines of the turned operand.
  struct Block {
    Block(const BlockedGemm& of, int64_t lines, int64_t limit);

    int64_t lines;
    StridedCopy<float> turn;
    std::unique_ptr<Gemm> gemm;  // nothing where there are no lines, or no fast product
  };

  BlockedGemm(const GemmShape& s, bool adds, bool left, int64_t lines, int64_t limit)
      : s_(s),
        adds_(adds),
        left_(left),
        turnedBytes_(alignUp(lines * s.k * int64_t{sizeof(float)})),
        whole_(*this, lines, limit - turnedBytes_),
        last_(*this, (left ? s.m : s.n) % lines, limit - turnedBytes_) {}

  absl::Status runOne(const float* a, const float* b, float* c, char* scratch) {
    const int64_t lines = left_ ? s_.m : s_.n;
    auto* turned = reinterpret_cast<float*>(scratch);
    for (int64_t line = 0; line < lines; line += whole_.lines) {
      const Block& block = lines - line < whole_.lines ? last_ : whole_;
      block.turn.run(left_ ? a + line * s_.a.row : b + line * s_.b.column, turned);
      WEFT_RETURN_IF_ERROR(block.gemm->run(left_ ? turned : a, left_ ? b : turned,
                                           c + line * (left_ ? s_.c.row : s_.c.column), scratch + turnedBytes_));
    }
    return absl::OkStatus();
  }

  GemmShape s_;
  bool adds_;
  bool left_;  // whether A is turned, else B
  int64_t turnedBytes_;
  Block whole_, last_;
};

// The fastest product of the library within `limit` bytes of scratch; nothing where it has none. Throws dnnl::error.
std::unique_ptr<Gemm> libraryGemm(const GemmShape& shape, bool adds, int64_t limit) {
  if (auto gemm = OneDnnGemm::create(shape, adds, {limit, 0})) {
    return gemm;
  }
  if (auto gemm = BlockedGemm::create(shape, adds, limit)) {
    return gemm;
  }
  for (int threads = libraryThreads() / 2; threads > 0; threads /= 2) {
    if (auto gemm = OneDnnGemm::create(shape, adds, {limit, threads})) {
      return gemm;
    }
  }
  return nullptr;
}

std::unique_ptr<Gemm> BlockedGemm::create(const GemmShape& s, bool adds, int64_t limit) {
  const bool left = s.m > 1 && s.k > 1 && s.a.column != 1;
  const bool right = s.n > 1 && s.k > 1 && s.b.column != 1;
  // Half of the limit is for the product of a block.
  const int64_t lines = std::min(left ? s.m : s.n, limit / 2 / (s.k * int64_t{sizeof(float)}));
  if ((!left && !right) || lines == 0) {
    return nullptr;
  }
  std::unique_ptr<BlockedGemm> made(new BlockedGemm(s, adds, left, lines, limit));
  const bool complete = made->whole_.gemm && (made->last_.lines == 0 || made->last_.gemm);
  return complete ? std::move(made) : nullptr;
}

BlockedGemm::Block::Block(const BlockedGemm& of, int64_t count, int64_t limit)
    : lines(count),
      turn(of.left_ ? std::vector<int64_t>{count, of.s_.k} : std::vector<int64_t>{of.s_.k, count},
           of.left_ ? std::vector<int64_t>{of.s_.a.row, of.s_.a.column}
                    : std::vector<int64_t>{of.s_.b.row, of.s_.b.column},
           of.left_ ? std::vector<int64_t>{of.s_.k, 1} : std::vector<int64_t>{count, 1}) {
  GemmShape shape = of.s_;
  shape.batch = 1;
  (of.left_ ? shape.m : shape.n) = count;
  (of.left_ ? shape.a : shape.b) = {0, of.left_ ? shape.k : count, 1};
  gemm = count > 0 ? libraryGemm(shape, of.adds_, limit) : nullptr;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Gemm>> Gemm::create(DType type, const GemmShape& shape, GemmOptions options) {
  if (type == DType::kF64) {
    return std::unique_ptr<Gemm>(std::make_unique<PlainGemm<double>>(shape, options.adds));
  }
  if (type != DType::kF32) {
    return absl::InvalidArgumentError(absl::StrCat("matrix products do not run on ", dtypeName(type)));
  }
  const bool empty = shape.batch == 0 || shape.m == 0 || shape.n == 0 || shape.k == 0;
  if (!options.plain && !empty) {
    // The library reports what it cannot do by exception; it ends here, and own loops do it.
    try {
      if (std::unique_ptr<Gemm> gemm = libraryGemm(shape, options.adds, gemmScratchLimit(type, shape))) {
        return gemm;
      }
    } catch (const dnnl::error&) {
    }
  }
  return std::unique_ptr<Gemm>(std::make_unique<PlainGemm<float>>(shape, options.adds));
}

}  // namespace weft::cpu
