#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tests/equivalence/random_graph.h"

namespace weft::testing {
namespace {

using Dims = std::vector<int64_t>;

constexpr int64_t kLargest = 4096;  // elements of a tensor

struct Value {
  std::string name;
  Dims shape;
  bool batch = false;  // dimension 0 is the batch
  int readers = 0;
};

int64_t elements(const Dims& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

std::string listText(const Dims& dims) {
  return absl::StrCat("array<i64: ", absl::StrJoin(dims, ", "), ">");
}

// The size of dimension d counted from the right; 1 beyond the left end.
int64_t fromRight(const Dims& shape, size_t d) {
  return d < shape.size() ? shape[shape.size() - 1 - d] : 1;
}

// Writes operators one after another; each reads values made before. In row-wise programs dimension 0 of a batch value
// stays the batch, and other values never have a dimension that would meet it.
class ProgramWriter {
 public:
  ProgramWriter(std::mt19937_64& generator, int64_t ranks, DrawnOperators drawn)
      : generator_(generator), drawsAll_(drawn == DrawnOperators::kAll) {
    result_.rowWise = pick(2) == 0;
    // A multiple of 11 is hardly ever the size of another dimension.
    result_.batch = result_.rowWise ? Dims{22, 33, 44, 66, 88}[pick(5)] : ranks * (1 + pick(2));
  }

  RandomProgram write() {
    for (int64_t i = 0, inputs = 1 + pick(2); i < inputs; ++i) {
      addInput();
    }
    const int64_t wanted = 5 + pick(36);
    for (int64_t tries = 0; written_ < wanted && tries < 1000; ++tries) {
      addOperator();
    }
    finish();
    return std::move(result_);
  }

 private:
  int64_t pick(int64_t count) { return static_cast<int64_t>(generator_() % static_cast<uint64_t>(count)); }
  int64_t size() { return Dims{2, 3, 4, 6, 8}[pick(5)]; }

  void addInput() {
    Dims shape = {result_.batch};
    for (int64_t i = 0, more = 1 + pick(2); i < more; ++i) {
      shape.push_back(size());
    }
    const std::string name = absl::StrCat("x", result_.program.inputs.size());
    result_.program.inputs.push_back({name, shape});
    values_.push_back({name, shape, true});
  }

  size_t parameter(const Dims& shape) {
    const std::string name = absl::StrCat("w", result_.program.parameters.size());
    result_.program.parameters.push_back({name, shape});
    values_.push_back({name, shape, false});
    return values_.size() - 1;
  }

  // Appends "%v<n> = nn.<op> operands {attributes}".
  size_t emit(const std::string& op, const std::vector<size_t>& operands, const std::string& attributes, Dims shape,
              bool batch) {
    std::vector<std::string> names;
    std::vector<std::string> types;
    for (const size_t operand : operands) {
      ++values_[operand].readers;
      names.push_back("%" + values_[operand].name);
      types.push_back(typeText(values_[operand].shape, op == "select" && names.size() == 1 ? "i1" : "f64"));
    }
    const std::string name = absl::StrCat("v", next_++);
    const std::string type = typeText(shape, op == "compare" ? "i1" : "f64");
    absl::StrAppend(&result_.program.body, "    %", name, " = nn.", op, " ", absl::StrJoin(names, ", "), " ",
                    attributes.empty() ? "" : "{" + attributes + "} ", ": (", absl::StrJoin(types, ", "), ") -> ", type,
                    "\n");
    ++written_;
    values_.push_back({name, std::move(shape), batch});
    return values_.size() - 1;
  }

  size_t emitLike(const std::string& op, const std::vector<size_t>& operands, const std::string& attributes = "") {
    return emit(op, operands, attributes, Dims(values_[operands.back()].shape), values_[operands.back()].batch);
  }

  size_t scalar(double value) {
    --written_;
    return emit("fill", {}, absl::StrFormat("value = %.10f : f64", value), {}, false);
  }

  size_t binary(const std::string& op, size_t a, size_t b) {
    const Dims& x = values_[a].shape;
    const Dims& y = values_[b].shape;
    Dims shape(std::max(x.size(), y.size()), 1);
    for (size_t d = 0; d < shape.size(); ++d) {
      shape[shape.size() - 1 - d] = std::max(fromRight(x, d), fromRight(y, d));
    }
    return emit(op, {a, b}, "", shape, values_[a].batch || values_[b].batch);
  }

  // Newer values are taken more often.
  size_t anyValue() {
    const auto count = static_cast<int64_t>(values_.size());
    for (;;) {
      const int64_t i = pick(2) == 0 ? count - 1 - pick(std::min<int64_t>(count, 4)) : pick(count);
      const bool hidden = std::find(hidden_.begin(), hidden_.end(), static_cast<size_t>(i)) != hidden_.end();
      if (!hidden && !values_[i].shape.empty()) {
        return static_cast<size_t>(i);
      }
    }
  }

  // The first dimension an operator may change or reduce.
  int64_t firstFree(size_t v) const { return result_.rowWise && values_[v].batch ? 1 : 0; }
  int64_t rank(size_t v) const { return static_cast<int64_t>(values_[v].shape.size()); }

  bool broadcasts(size_t a, size_t b) const {
    const Value& x = values_[a];
    const Value& y = values_[b];
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
  bool rowsAligned(const Value& x, const Value& y) const {
    if (!result_.rowWise || (!x.batch && !y.batch)) {
      return true;
    }
    const Value& rows = x.batch ? x : y;
    const Value& other = x.batch ? y : x;
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
    Dims shape = values_[a].shape;
    shape.erase(shape.begin(), shape.begin() + pick(rank(a)));
    for (int64_t& dim : shape) {
      dim = pick(4) == 0 ? 1 : dim;
    }
    if (firstFree(a) == 1 && shape.size() == values_[a].shape.size()) {
      shape[0] = 1;
    }
    return parameter(shape);
  }

  void addOperator() {
    const size_t a = anyValue();
    switch (pick(drawsAll_ ? 14 : 13)) {
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
      default:
        return addAlong(a);
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
    const Dims shape = values_[a].shape;
    const size_t n = shape.size();
    const bool transposeA = pick(3) == 0 && static_cast<int64_t>(n) - 2 >= firstFree(a);
    const bool transposeB = pick(2) == 0;
    const int64_t m = transposeA ? shape[n - 1] : shape[n - 2];
    const int64_t k = transposeA ? shape[n - 2] : shape[n - 1];
    const int64_t columns = size();
    Dims other = transposeB ? Dims{columns, k} : Dims{k, columns};
    if (!result_.rowWise && n == 3 && pick(2) == 0) {
      other.insert(other.begin(), shape[0]);
    }
    Dims made(shape.begin(), shape.end() - 2);
    made.insert(made.end(), {m, columns});
    const bool batch = values_[a].batch;
    const std::string attributes = absl::StrCat("transpose_a = ", transposeA ? "true" : "false",
                                                ", transpose_b = ", transposeB ? "true" : "false");
    const size_t product = emit("matmul", {a, parameter(other)}, attributes, made, batch);
    // Keeps the size of the elements.
    binary("mul", product, scalar(1.0 / std::sqrt(static_cast<double>(k))));
  }

  void addTranspose(size_t a) {
    Dims order(values_[a].shape.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin() + firstFree(a), order.end(), generator_);
    Dims shape;
    for (const int64_t d : order) {
      shape.push_back(values_[a].shape[d]);
    }
    emit("transpose", {a}, "permutation = " + listText(order), shape, values_[a].batch);
  }

  // Joins two neighbors, or splits one dimension.
  void addReshape(size_t a) {
    Dims shape = values_[a].shape;
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
    emit("reshape", {a}, "", shape, values_[a].batch);
  }

  void addSlice(size_t a) {
    if (rank(a) <= firstFree(a)) {
      return;
    }
    Dims sizes = values_[a].shape;
    Dims offsets(sizes.size(), 0);
    const int64_t d = firstFree(a) + pick(rank(a) - firstFree(a));
    offsets[d] = pick(sizes[d]);
    sizes[d] = 1 + pick(sizes[d] - offsets[d]);
    emit("slice", {a}, absl::StrCat("offsets = ", listText(offsets), ", sizes = ", listText(sizes)), sizes,
         values_[a].batch);
  }

  void addConcat(size_t a) {
    if (rank(a) <= firstFree(a) || elements(values_[a].shape) * 2 > kLargest) {
      return;
    }
    const int64_t d = firstFree(a) + pick(rank(a) - firstFree(a));
    Dims shape = values_[a].shape;
    shape[d] *= 2;
    const size_t b = emitLike(pick(2) == 0 ? "neg" : "tanh", {a});
    emit("concat", pick(2) == 0 ? std::vector<size_t>{a, b} : std::vector<size_t>{b, a},
         absl::StrCat("dim = ", d, " : i64"), shape, values_[a].batch);
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
      count *= reduced ? values_[a].shape[d] : 1;
      if (!reduced || keep) {
        shape.push_back(reduced ? 1 : values_[a].shape[d]);
      }
    }
    const bool mean = pick(2) == 0;
    const bool batch = values_[a].batch && !shape.empty();
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
    Dims shape = values_[a].shape;
    shape.erase(shape.begin() + d);
    const bool batch = values_[a].batch;
    emit("prod", {emitLike("tanh", {a})}, dim, shape, batch && !shape.empty());
  }

  void addNormalization(size_t a) {
    if (rank(a) - 1 < firstFree(a) || values_[a].shape.back() < 2) {
      return;
    }
    if (pick(2) == 0) {
      emitLike(drawsAll_ && pick(2) == 0 ? "log_softmax" : "softmax", {a});
      return;
    }
    const Dims shape = values_[a].shape;
    const bool batch = values_[a].batch;
    const size_t gamma = parameter({shape.back()});
    const size_t beta = parameter({shape.back()});
    for (const size_t v : {a, gamma, beta}) {
      ++values_[v].readers;
    }
    const int64_t n = next_++;
    const std::string rows = typeText(Dims(shape.begin(), shape.end() - 1));
    const std::string columns = typeText({shape.back()});
    // A large epsilon: rows of equal elements are not blown up.
    absl::StrAppend(&result_.program.body, "    %v", n, ", %m", n, ", %r", n, " = nn.layer_norm %", values_[a].name,
                    ", %", values_[gamma].name, ", %", values_[beta].name, " {epsilon = 0.01 : f64} : (",
                    typeText(shape), ", ", columns, ", ", columns, ") -> (", typeText(shape), ", ", rows, ", ", rows,
                    ")\n");
    ++written_;
    values_.push_back({absl::StrCat("v", n), shape, batch});
  }

  // a > 0.071 ? another value : a constant; away from ties at an exact zero.
  void addSelect(size_t a) {
    const size_t bound = scalar(0.071);
    const size_t condition = emit("compare", {a, bound}, "predicate = \"gt\"", values_[a].shape, values_[a].batch);
    hidden_.push_back(condition);
    const size_t other = pick(2) == 0 ? emitLike("tanh", {a}) : scalar(-0.5);
    emit("select", {condition, a, other}, "", values_[a].shape, values_[a].batch);
  }

  // The loss: of every value that nothing reads, the sum (or mean) of its elements times weights.
  void finish() {
    std::string total;
    const size_t count = values_.size();
    for (size_t v = 0; v < count; ++v) {
      const bool hidden = std::find(hidden_.begin(), hidden_.end(), v) != hidden_.end();
      if (values_[v].readers > 0 || hidden) {
        continue;
      }
      const std::string part = values_[weightedSum(v)].name;
      if (total.empty()) {
        total = part;
        continue;
      }
      const std::string sum = absl::StrCat("total", v);
      absl::StrAppend(&result_.program.body, "    %", sum, " = nn.add %", total, ", %", part,
                      " : (tensor<f64>, tensor<f64>) -> tensor<f64>\n");
      total = sum;
    }
    absl::StrAppend(&result_.program.body, "    %loss = nn.neg %", total, " : (tensor<f64>) -> tensor<f64>\n");
  }

  size_t weightedSum(size_t v) {
    if (values_[v].shape.empty()) {
      return v;
    }
    Dims shape = values_[v].shape;
    if (result_.rowWise && values_[v].batch) {
      shape[0] = 1;
    }
    Dims dims(shape.size());
    std::iota(dims.begin(), dims.end(), 0);
    return reduce(binary("mul", v, parameter(shape)), dims, false);
  }

  std::mt19937_64& generator_;
  const bool drawsAll_;
  RandomProgram result_;
  std::vector<Value> values_;
  std::vector<size_t> hidden_;  // conditions: bool, read by their select only
  int64_t next_ = 0;
  int64_t written_ = 0;
};

}  // namespace

RandomProgram randomProgram(std::mt19937_64& generator, int64_t ranks, DrawnOperators drawn) {
  return ProgramWriter(generator, ranks, drawn).write();
}

}  // namespace weft::testing
