#include "kernels/cpu/gemm.h"

#include <dnnl.hpp>
#include <unordered_map>

#include "absl/strings/str_cat.h"

namespace weft::cpu {
namespace {

// Row by row of A, adding multiples of rows of B: the inner loop runs along C's columns.
template <typename T>
class PlainGemm : public Gemm {
 public:
  explicit PlainGemm(const GemmShape& shape) : s_(shape) {}

  absl::Status run(const void* a, const void* b, void* c, void* scratch) override {
    for (int64_t batch = 0; batch < s_.batch; ++batch) {
      for (int64_t i = 0; i < s_.m; ++i) {
        runRow(static_cast<const T*>(a) + batch * s_.a.batch + i * s_.a.row,
               static_cast<const T*>(b) + batch * s_.b.batch, static_cast<T*>(c) + batch * s_.c.batch + i * s_.c.row);
      }
    }
    return absl::OkStatus();
  }

 private:
  void runRow(const T* a, const T* b, T* c) const {
    for (int64_t j = 0; j < s_.n; ++j) {
      c[j * s_.c.column] = T(0);
    }
    for (int64_t k = 0; k < s_.k; ++k) {
      const T factor = a[k * s_.a.column];
      const T* row = b + k * s_.b.row;
      for (int64_t j = 0; j < s_.n; ++j) {
        c[j * s_.c.column] += factor * row[j * s_.b.column];
      }
    }
  }

  GemmShape s_;
};

class OneDnnGemm : public Gemm {
 public:
  explicit OneDnnGemm(const GemmShape& s) : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    const auto a = describe(s, {s.m, s.k}, s.a);
    const auto b = describe(s, {s.k, s.n}, s.b);
    const auto c = describe(s, {s.m, s.n}, s.c);
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(a, b, c), attr, engine_);
    primitive_ = dnnl::matmul(description);
    scratchBytes_ = static_cast<int64_t>(description.scratchpad_desc().get_size());
    a_ = dnnl::memory(a, engine_, nullptr);
    b_ = dnnl::memory(b, engine_, nullptr);
    c_ = dnnl::memory(c, engine_, nullptr);
    scratch_ = dnnl::memory(description.scratchpad_desc(), engine_, nullptr);
    arguments_ = {{DNNL_ARG_SRC, a_}, {DNNL_ARG_WEIGHTS, b_}, {DNNL_ARG_DST, c_}, {DNNL_ARG_SCRATCHPAD, scratch_}};
  }

  absl::Status run(const void* a, const void* b, void* c, void* scratch) override {
    a_.set_data_handle(const_cast<void*>(a));
    b_.set_data_handle(const_cast<void*>(b));
    c_.set_data_handle(c);
    scratch_.set_data_handle(scratch);
    primitive_.execute(stream_, arguments_);
    return absl::OkStatus();
  }

  int64_t scratchBytes() const override { return scratchBytes_; }

 private:
  static dnnl::memory::desc describe(const GemmShape& s, std::pair<int64_t, int64_t> size, const MatrixView& view) {
    // A dimension of size 1 may have any stride; the library wants one that fits a dense tensor.
    const int64_t column = size.second == 1 && view.row != 1 ? 1 : view.column;
    const int64_t row = size.first == 1 ? std::max<int64_t>(size.second * column, 1) : view.row;
    if (s.batch == 1) {
      return {{size.first, size.second}, dnnl::memory::data_type::f32, dnnl::memory::dims{row, column}};
    }
    return {
        {s.batch, size.first, size.second}, dnnl::memory::data_type::f32, dnnl::memory::dims{view.batch, row, column}};
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::primitive primitive_;
  dnnl::memory a_, b_, c_, scratch_;
  std::unordered_map<int, dnnl::memory> arguments_;
  int64_t scratchBytes_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Gemm>> Gemm::create(DType type, const GemmShape& shape, bool plain) {
  const bool empty = shape.batch == 0 || shape.m == 0 || shape.n == 0 || shape.k == 0;
  if (type == DType::kF64) {
    return std::unique_ptr<Gemm>(std::make_unique<PlainGemm<double>>(shape));
  }
  if (type != DType::kF32) {
    return absl::InvalidArgumentError(absl::StrCat("matrix products do not run on ", dtypeName(type)));
  }
  if (plain || empty) {
    return std::unique_ptr<Gemm>(std::make_unique<PlainGemm<float>>(shape));
  }
  // The library reports what it cannot do by exception; it ends here.
  try {
    return std::unique_ptr<Gemm>(std::make_unique<OneDnnGemm>(shape));
  } catch (const dnnl::error& error) {
    return absl::InternalError(absl::StrCat("oneDNN refuses a product of ", shape.batch, " x ", shape.m, " x ", shape.k,
                                            " x ", shape.n, ": ", error.what()));
  }
}

}  // namespace weft::cpu
