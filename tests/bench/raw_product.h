// A matrix product by oneDNN alone, on memory of its own: what our kernels are compared with.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "dnnl.hpp"

namespace weft::bench {

struct ProductShape {
  int64_t batch = 1;
  int64_t m = 1;
  int64_t n = 1;
  int64_t k = 1;
  bool transposeA = false;  // A lies as [k, m]
  bool transposeB = false;  // B lies as [n, k]
};

// On as many threads as the calling thread's OpenMP has when it is made and run.
class RawProduct {
 public:
  explicit RawProduct(const ProductShape& s)
      : engine_(dnnl::engine::kind::cpu, 0),
        stream_(engine_),
        a_(memory(s.batch, s.m, s.k, s.transposeA)),
        b_(memory(s.batch, s.k, s.n, s.transposeB)),
        c_(memory(s.batch, s.m, s.n, false)),
        product_({dnnl::matmul::desc(a_.get_desc(), b_.get_desc(), c_.get_desc()), engine_}) {}

  void run() {
    product_.execute(stream_, {{DNNL_ARG_SRC, a_}, {DNNL_ARG_WEIGHTS, b_}, {DNNL_ARG_DST, c_}});
    stream_.wait();
  }

 private:
  dnnl::memory memory(int64_t batch, int64_t rows, int64_t columns, bool turned) {
    const dnnl::memory::dims strides = {rows * columns, turned ? 1 : columns, turned ? rows : 1};
    const dnnl::memory::desc desc({batch, rows, columns}, dnnl::memory::data_type::f32, strides);
    values_.push_back(std::make_unique<std::vector<float>>(batch * rows * columns, 0.5F));
    return {desc, engine_, values_.back()->data()};
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  std::vector<std::unique_ptr<std::vector<float>>> values_;
  dnnl::memory a_, b_, c_;
  dnnl::matmul product_;
};

}  // namespace weft::bench
