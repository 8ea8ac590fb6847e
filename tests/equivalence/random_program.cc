#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "tests/equivalence/random_text.h"

namespace weft::testing {
namespace {

constexpr int64_t kLargest = 4096;  // elements of a tensor

// The size of dimension d counted from the right; 1 beyond the left end.
int64_t fromRight(const Dims& shape, size_t d) {
  return d < shape.size() ? shape[shape.size() - 1 - d] : 1;
}

class ProgramWriter : private RandomText {
 public:
  ProgramWriter(std::mt19937_64& generator, int64_t ranks, DrawnOperators drawn)
      : RandomText(generator, ranks), drawsAll_(drawn == DrawnOperators::kAll) {}

  RandomProgram write() {
    for (int64_t i = 0, inputs = 1 + pick(2); i < inputs; ++i) {
      addInput();
    }
    const int64_t wanted = 5 + pick(36);
    for (int64_t tries = 0; written < wanted && tries < 1000; ++tries) {
      addOperator();
    }
    finish();
    return std::move(result);
  }

 private:
  // Newer values are taken more often.
  size_t anyValue() {
    const auto count = static_cast<int64_t>(values.size());
    for (;;) {
      const int64_t i = pick(2) == 0 ? count - 1 - pick(std::min<int64_t>(count, 4)) : pick(count);
      if (values[i].isKnown && !values[i].shape.empty()) {
        return static_cast<size_t>(i);
      }
    }
  }

  bool broadcasts(size_t a, size_t b) const {
    const RandomValue& x = values[a];
    const RandomValue& y = values[b];
    int64_t count = 1;
    for (size_t d = 0; d < std::max(x.shape.size(), y.shape.size()); ++d) {
      const int64_t p = fromRight(x.shape, d);
      const int64_t q = fromRight(y.shape, d);
      if (p != q && p != 1 && q != 1) {
        return false;
      }
      count *= std::max(p, q);
    }
    return count <= kLargest && rowsAligned(x, y);
  }

  // In row-wise programs the batch meets only itself, or nothing.
  bool rowsAligned(const RandomValue& x, const RandomValue& y) const {
    if (!result.rowWise || (!x.batch && !y.batch)) {
      return true;
    }
    const RandomValue& rows = x.batch ? x : y;
    const RandomValue& other = x.batch ? y : x;
    if (other.batch) {
      return other.shape.size() == rows.shape.size();
    }
    return other.shape.size() < rows.shape.size() || (other.shape.size() == rows.shape.size() && other.shape[0] == 1);
  }

  // Another operand for `a`: a value that broadcasts with it, or a new parameter.
  size_t partner(size_t a) {
    for (int tries = 0; tries < 4; ++tries) {
      const size_t b = anyValue();
      if (b != a && broadcasts(a, b)) {
        return b;
      }
    }
    Dims shape = values[a].shape;
    shape.erase(shape.begin(), shape.begin() + pick(rank(a)));
    for (int64_t& dim : shape) {
      dim = pick(4) == 0 ? 1 : dim;
    }
    if (firstFree(a) == 1 && shape.size() == values[a].shape.size()) {
      shape[0] = 1;
    }
    return parameter(shape);
  }

  void addOperator() {
    const size_t a = anyValue();
    switch (pick(drawsAll_ ? 26 : 13)) {
      case 0:
        return addMatmul(a);
      case 1:
        binary(pick(2) == 0 ? "add" : "sub", a, partner(a));
        return;
      case 2:
        emitLike("tanh", {binary("mul", a, partner(a))});
        return;
      case 3:
        emitLike("relu", {binary("add", a, scalar(0.137))});
        return;  // away from the kink at an exact zero
      case 4:
        return addUnary(a);
      case 5:
        emitLike("gelu", {a}, pick(2) == 0 ? "approximate = \"tanh\"" : "approximate = \"none\"");
        return;
      case 6:
        emitLike("exp", {emitLike("tanh", {a})});
        return;
      case 7:
        return addTranspose(a);
      case 8:
        return addReshape(a);
      case 9:
        return addSlice(a);
      case 10:
        return addConcat(a);
      case 11:
        return addReduction(a);
      case 12:
        return pick(2) == 0 ? addNormalization(a) : addSelect(a);
      case 13:
        return addAlong(a);
      default:
        return addFurtherOperator(*this, a);
    }
  }

  void addUnary(size_t a) {
    static const std::vector<std::pair<const char*, const char*>> kOperators = {{"tanh", ""},
                                                                                {"neg", ""},
                                                                                {"sigmoid", ""},
                                                                                {"silu", ""},
                                                                                {"softplus", ""},
                                                                                {"sin", ""},
                                                                                {"erf", ""},
                                                                                {"elu", "alpha = 0.7 : f64"},
                                                                                {"leaky_relu", "slope = 0.1 : f64"}};
    const auto& [op, attributes] = kOperators[pick(drawsAll_ ? static_cast<int64_t>(kOperators.size()) : 2)];
    emitLike(op, {a}, attributes);
  }

  void addMatmul(size_t a) {
    if (rank(a) < 2) {
      return;
    }
    const Dims shape = values[a].shape;
    const size_t n = shape.size();
    const bool transposeA = pick(3) == 0 && static_cast<int64_t>(n) - 2 >= firstFree(a);
    const bool transposeB = pick(2) == 0;
    const int64_t m = transposeA ? shape[n - 1] : shape[n - 2];
    const int64_t k = transposeA ? shape[n - 2] : shape[n - 1];
    const int64_t columns = size();
    Dims other = transposeB ? Dims{columns, k} : Dims{k, columns};
    if (!result.rowWise && n == 3 && pick(2) == 0) {
      other.insert(other.begin(), shape[0]);
    }
    Dims made(shape.begin(), shape.end() - 2);
    made.insert(made.end(), {m, columns});
    const bool batch = values[a].batch;
    const std::string attributes = absl::StrCat("transpose_a = ", transposeA ? "true" : "false",
                                                ", transpose_b = ", transposeB ? "true" : "false");
    const size_t product = emit("matmul", {a, parameter(other)}, attributes, made, batch);
    // Keeps the size of the elements.
    binary("mul", product, scalar(1.0 / std::sqrt(static_cast<double>(k))));
  }

  void addTranspose(size_t a) {
    Dims order(values[a].shape.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin() + firstFree(a), order.end(), generator);
    Dims shape;
    for (const int64_t d : order) {
      shape.push_back(values[a].shape[d]);
    }
    emit("transpose", {a}, "permutation = " + listText(order), shape, values[a].batch);
  }

  // Joins two neighbors, or splits one dimension.
  void addReshape(size_t a) {
    Dims shape = values[a].shape;
    const int64_t first = firstFree(a);
    if (pick(2) == 0 && rank(a) - first >= 2) {
      const int64_t d = first + pick(rank(a) - first - 1);
      shape[d] *= shape[d + 1];
      shape.erase(shape.begin() + d + 1);
    } else if (rank(a) > first && rank(a) < 4) {
      const int64_t d = first + pick(rank(a) - first);
      const int64_t major = Dims{1, 2, 3}[pick(3)];
      if (shape[d] % major != 0) {
        return;
      }
      shape[d] /= major;
      shape.insert(shape.begin() + d, major);
    } else {
      return;
    }
    emit("reshape", {a}, "", shape, values[a].batch);
  }

  void addSlice(size_t a) {
    if (rank(a) <= firstFree(a)) {
      return;
    }
    Dims sizes = values[a].shape;
    Dims offsets(sizes.size(), 0);
    const int64_t d = firstFree(a) + pick(rank(a) - firstFree(a));
    offsets[d] = pick(sizes[d]);
    sizes[d] = 1 + pick(sizes[d] - offsets[d]);
    emit("slice", {a}, absl::StrCat("offsets = ", listText(offsets), ", sizes = ", listText(sizes)), sizes,
         values[a].batch);
  }

  void addConcat(size_t a) {
    if (rank(a) <= firstFree(a) || elementsOf(values[a].shape) * 2 > kLargest) {
      return;
    }
    const int64_t d = firstFree(a) + pick(rank(a) - firstFree(a));
    Dims shape = values[a].shape;
    shape[d] *= 2;
    const size_t b = emitLike(pick(2) == 0 ? "neg" : "tanh", {a});
    emit("concat", pick(2) == 0 ? std::vector<size_t>{a, b} : std::vector<size_t>{b, a},
         absl::StrCat("dim = ", d, " : i64"), shape, values[a].batch);
  }

  void addReduction(size_t a) {
    Dims dims;
    for (int64_t d = firstFree(a); d < rank(a); ++d) {
      if (pick(2) == 0) {
        dims.push_back(d);
      }
    }
    if (!dims.empty()) {
      reduce(a, dims, pick(3) != 0);
    }
  }

  // Sum or mean.
  size_t reduce(size_t a, const Dims& dims, bool keep) {
    Dims shape;
    int64_t count = 1;
    for (int64_t d = 0; d < rank(a); ++d) {
      const bool reduced = std::find(dims.begin(), dims.end(), d) != dims.end();
      count *= reduced ? values[a].shape[d] : 1;
      if (!reduced || keep) {
        shape.push_back(reduced ? 1 : values[a].shape[d]);
      }
    }
    const bool mean = pick(2) == 0;
    const bool batch = values[a].batch && !shape.empty();
    return emit(mean ? "mean" : "sum", {a},
                absl::StrCat("dims = ", listText(dims), ", keep_dims = ", keep ? "true" : "false",
                             mean ? absl::StrCat(", count = ", count, " : i64") : ""),
                shape, batch);
  }

  // Not what orders elements: that of equal ones may hang on rounding.
  void addAlong(size_t a) {
    if (rank(a) <= firstFree(a)) {
      return;
    }
    const int64_t d = firstFree(a) + pick(rank(a) - firstFree(a));
    const std::string dim = absl::StrCat("dim = ", d, " : i64");
    switch (pick(3)) {
      case 0:
        emitLike("tanh", {emitLike("cumsum", {a}, dim + (pick(2) == 0 ? ", reverse = true" : ""))});
        return;
      case 1:
        emitLike("flip", {a}, "dims = " + listText({d}));
        return;
      default:
        break;
    }
    Dims shape = values[a].shape;
    shape.erase(shape.begin() + d);
    const bool batch = values[a].batch;
    emit("prod", {emitLike("tanh", {a})}, dim, shape, batch && !shape.empty());
  }

  void addNormalization(size_t a) {
    if (rank(a) - 1 < firstFree(a) || values[a].shape.back() < 2) {
      return;
    }
    if (pick(2) == 0) {
      emitLike(drawsAll_ && pick(2) == 0 ? "log_softmax" : "softmax", {a});
      return;
    }
    const Dims shape = values[a].shape;
    const bool batch = values[a].batch;
    const size_t gamma = parameter({shape.back()});
    const size_t beta = parameter({shape.back()});
    const Dims rows(shape.begin(), shape.end() - 1);
    const MadeValue row = {rows, false, "f64", false};
    // A large epsilon: rows of equal elements are not blown up.
    emit("layer_norm", {a, gamma, beta}, "epsilon = 0.01 : f64", {{shape, batch}, row, row});
  }

  // a > 0.071 ? another value : a constant; away from ties at an exact zero.
  void addSelect(size_t a) {
    const size_t bound = scalar(0.071);
    const size_t condition =
        emit("compare", {a, bound}, "predicate = \"gt\"", {{values[a].shape, values[a].batch, "i1"}});
    const size_t other = pick(2) == 0 ? emitLike("tanh", {a}) : scalar(-0.5);
    emit("select", {condition, a, other}, "", values[a].shape, values[a].batch);
  }

  // The loss: of every value that nothing reads, the sum (or mean) of its elements times weights.
  void finish() {
    std::string total;
    const size_t count = values.size();
    for (size_t v = 0; v < count; ++v) {
      if (values[v].readers > 0 || !values[v].isKnown) {
        continue;
      }
      const std::string part = values[weightedSum(v)].name;
      if (total.empty()) {
        total = part;
        continue;
      }
      const std::string sum = absl::StrCat("total", v);
      absl::StrAppend(&result.program.body, "    %", sum, " = nn.add %", total, ", %", part,
                      " : (tensor<f64>, tensor<f64>) -> tensor<f64>\n");
      total = sum;
    }
    absl::StrAppend(&result.program.body, "    %loss = nn.neg %", total, " : (tensor<f64>) -> tensor<f64>\n");
  }

  size_t weightedSum(size_t v) {
    if (values[v].shape.empty()) {
      return v;
    }
    Dims shape = values[v].shape;
    if (result.rowWise && values[v].batch) {
      shape[0] = 1;
    }
    Dims dims(shape.size());
    std::iota(dims.begin(), dims.end(), 0);
    return reduce(binary("mul", v, parameter(shape)), dims, false);
  }

  const bool drawsAll_;
};

}  // namespace

RandomProgram randomProgram(std::mt19937_64& generator, int64_t ranks, DrawnOperators drawn) {
  return ProgramWriter(generator, ranks, drawn).write();
}

}  // namespace weft::testing
