// The operators of one family after another, with what keeps their values away from kinks, ties and poles: there, one
// rounding more or less makes another answer.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/equivalence/random_text.h"

namespace weft::testing {
namespace {

constexpr int64_t kLargest = 4096;  // elements of a tensor

class FurtherOperator {
 public:
  FurtherOperator(RandomText& text, size_t a) : text_(text), a_(a) {}

  void write() {
    static constexpr void (FurtherOperator::* kFamilies[])() = {
        &FurtherOperator::unary,     &FurtherOperator::step,     &FurtherOperator::binary, &FurtherOperator::extremum,
        &FurtherOperator::ids,       &FurtherOperator::sorted,   &FurtherOperator::normal, &FurtherOperator::image,
        &FurtherOperator::attention, &FurtherOperator::rotary,   &FurtherOperator::source, &FurtherOperator::shape,
        &FurtherOperator::contract,  &FurtherOperator::reduction};
    (this->*kFamilies[text_.pick(std::size(kFamilies))])();
  }

 private:
  using Made = std::vector<MadeValue>;

  const RandomValue& value(size_t v) const { return text_.values[v]; }
  Dims shapeOf(size_t v) const { return value(v).shape; }
  bool isBatch() const { return value(a_).batch; }
  int64_t last() const { return text_.rank(a_) - 1; }
  // May the last dimension be reduced?
  bool lastIsFree() const { return last() >= text_.firstFree(a_) && shapeOf(a_).back() > 1; }
  bool flip() { return text_.pick(2) == 0; }
  static const char* word(bool yes) { return yes ? "true" : "false"; }
  // In (1/e, e): a base of powers, logarithms and roots.
  size_t positive(size_t v) { return text_.emitLike("exp", {text_.emitLike("tanh", {v})}); }
  // No two elements of a row are equal.
  size_t distinct() { return text_.binary("add", a_, text_.parameter(text_.freeShape(a_))); }

  void unary() {
    static constexpr const char* kOnAll[] = {"cos", "hard_swish", "stop_gradient"};
    static constexpr const char* kOnPositive[] = {"log", "sqrt", "rsqrt"};
    const auto i = static_cast<size_t>(text_.pick(3));
    if (flip()) {
      text_.emitLike(kOnAll[i], {a_});
    } else {
      text_.emitLike(kOnPositive[i], {positive(a_)});
    }
  }

  // Away from the steps and the kink, which lie at whole numbers.
  void step() {
    static constexpr const char* kSteps[] = {"abs", "sign", "floor", "ceil"};
    text_.emitLike(kSteps[text_.pick(4)], {text_.binary("add", a_, text_.scalar(0.2370917))});
  }

  void binary() {
    static constexpr const char* kOperators[] = {"div", "maximum", "minimum", "pow"};
    const std::string op = kOperators[text_.pick(4)];
    const size_t other = text_.parameter(text_.freeShape(a_));
    if (op == "div") {
      text_.binary(op, a_, positive(other));
    } else if (op == "pow") {
      text_.binary(op, positive(a_), other);
    } else {
      text_.binary(op, distinct(), other);
    }
  }

  Dims without(int64_t d) const {
    Dims shape = shapeOf(a_);
    shape.erase(shape.begin() + d);
    return shape;
  }

  void extremum() {
    if (!lastIsFree()) {
      return;
    }
    const int64_t d = text_.firstFree(a_) + text_.pick(text_.rank(a_) - text_.firstFree(a_));
    const size_t x = distinct();
    text_.emit(flip() ? "max" : "min", {x}, absl::StrCat("dims = ", listText({d}), ", keep_dims = false"), without(d),
               isBatch() && text_.rank(a_) > 1);
  }

  // Numbers of the last dimension, and what reads such.
  void ids() {
    if (!lastIsFree()) {
      return;
    }
    const Dims rows = without(last());
    const int64_t classes = shapeOf(a_).back();
    const size_t id = text_.emit(flip() ? "argmax" : "argmin", {distinct()}, absl::StrCat("dim = ", last(), " : i64"),
                                 {{rows, isBatch(), "i32"}});
    switch (text_.pick(4)) {
      case 0:
        text_.emit("cast", {id}, "", rows, isBatch());
        return;
      case 1:
        text_.emit("pick", {a_, id}, "", rows, isBatch());
        return;
      case 2: {
        const MadeValue row = {rows, isBatch()};
        text_.emit("softmax_cross_entropy", {a_, id},
                   absl::StrCat("rows = ", classes, " : i64, ignore_index = -100 : i64"), {row, row});
        return;
      }
      default: {
        const int64_t columns = text_.size();
        Dims made = rows;
        made.push_back(columns);
        text_.emit("embedding", {text_.parameter({classes, columns}), id}, absl::StrCat("rows = ", classes, " : i64"),
                   made, isBatch());
      }
    }
  }

  void sorted() {
    if (!lastIsFree()) {
      return;
    }
    const int64_t classes = shapeOf(a_).back();
    Dims shape = shapeOf(a_);
    shape.back() = 1 + text_.pick(classes);
    const size_t sorted =
        text_.emit("sort", {distinct()}, absl::StrCat("count = ", shape.back(), " : i64, descending = ", word(flip())),
                   {{shape, isBatch()}, {shape, isBatch(), "i32"}});
    const std::string along = absl::StrCat("dim = ", last(), " : i64, rows = ", classes, " : i64");
    if (flip()) {
      text_.emit("gather", {a_, sorted + 1}, along, shape, isBatch());
    } else {
      text_.emit("scatter_add", {sorted + 1, sorted}, along, shapeOf(a_), isBatch());
    }
  }

  // The root mean square of rows, and the statistics of a batch, which are no matter of one row.
  void normal() {
    const Dims shape = shapeOf(a_);
    if (flip() && lastIsFree()) {
      const MadeValue row = {without(last()), false, "f64", false};
      text_.emit("rms_norm", {a_, text_.parameter({shape.back()})}, "epsilon = 0.01 : f64", {{shape, isBatch()}, row});
    } else if (!text_.result.rowWise && text_.rank(a_) >= 2 && shape[0] > 1) {
      const MadeValue statistic = {{1, shape[1]}, false, "f64", false};
      const size_t gamma = text_.parameter({shape[1]});
      const size_t beta = text_.parameter({shape[1]});
      text_.emit("batch_norm", {a_, gamma, beta}, "epsilon = 0.01 : f64",
                 {{shape, isBatch()}, statistic, statistic, statistic});
    }
  }

  // The value as [a, b, c, d], by dimensions of size 1 behind the first.
  size_t ofFourDims(size_t v) {
    Dims shape = shapeOf(v);
    if (shape.size() == 4) {
      return v;
    }
    shape.insert(shape.begin() + 1, 4 - shape.size(), 1);
    return text_.emit("reshape", {v}, "", shape, value(v).batch);
  }

  void image() {
    if (text_.rank(a_) < 2 || text_.rank(a_) > 4) {
      return;
    }
    const size_t x = ofFourDims(a_);
    return flip() ? convolution(x) : pooling(x);
  }

  // In as many groups as fit, same sizes; or its transpose.
  void convolution(size_t x) {
    const Dims shape = shapeOf(x);
    const int64_t groups = shape[1] % 2 == 0 && flip() ? 2 : 1;
    const int64_t channels = groups * (1 + text_.pick(3));
    if (shape[0] * channels * shape[2] * shape[3] > kLargest) {
      return;
    }
    const std::string steps = "strides = array<i64: 1, 1>, paddings = array<i64: 1, 0>, dilations = array<i64: 1, 1>";
    const Dims made = {shape[0], channels, shape[2], shape[3]};
    const size_t y =
        flip() ? text_.emit("conv2d", {x, text_.parameter({channels, shape[1] / groups, 3, 1})}, steps, made, isBatch())
               : text_.emit("conv2d_input_grad", {x, text_.parameter({shape[1], channels / groups, 3, 1})}, steps, made,
                            isBatch());
    text_.binary("mul", y, text_.scalar(0.3));  // keeps the size of the elements
  }

  void pooling(size_t x) {
    const Dims shape = shapeOf(x);
    const Dims window = {1 + text_.pick(std::min<int64_t>(shape[2], 3)),
                         1 + text_.pick(std::min<int64_t>(shape[3], 3))};
    const Dims made = {shape[0], shape[1], shape[2] / window[0], shape[3] / window[1]};
    const std::string attributes =
        absl::StrCat("window = ", listText(window), ", strides = ", listText(window), ", paddings = array<i64: 0, 0>");
    const bool isMax = flip();
    // No two elements of a window are equal.
    x = isMax ? text_.binary("add", x, text_.parameter(text_.freeShape(x))) : x;
    text_.emit(isMax ? "max_pool2d" : "avg_pool2d", {x}, attributes, made, isBatch());
  }

  // [b, h, t, d] with itself; heads may share keys, and a bias may stretch over the batch and the heads.
  void attention() {
    if (text_.rank(a_) < 3 || text_.rank(a_) > 4) {
      return;
    }
    const size_t q = ofFourDims(a_);
    const Dims shape = shapeOf(q);
    if (shape[0] * shape[1] * shape[2] * shape[2] > kLargest) {
      return;
    }
    size_t k = text_.emitLike("tanh", {q});
    size_t v = q;
    if (shape[1] % 2 == 0 && flip()) {
      Dims shared = shape;
      shared[1] /= 2;
      const std::string half = absl::StrCat("offsets = array<i64: 0, 0, 0, 0>, sizes = ", listText(shared));
      k = text_.emit("slice", {k}, half, shared, isBatch());
      v = text_.emit("slice", {v}, half, shared, isBatch());
    }
    std::vector<size_t> operands = {q, k, v};
    if (flip()) {
      operands.push_back(text_.parameter({1, flip() ? 1 : shape[1], shape[2], shape[2]}));
    }
    const MadeValue sums = {{shape[0], shape[1], shape[2]}, false, "f64", false};
    text_.emit("attention", operands, absl::StrCat("causal = ", word(flip()), ", scale = 0.5 : f64"),
               {{shape, isBatch()}, sums});
  }

  // Its tables are the cosines and sines of positions.
  void rotary() {
    if (text_.rank(a_) - text_.firstFree(a_) < 2 || shapeOf(a_).back() % 2 != 0) {
      return;
    }
    const Dims table = {shapeOf(a_)[last() - 1], shapeOf(a_).back() / 2};
    const size_t angles = text_.emit("iota", {}, absl::StrCat("dim = ", text_.pick(2), " : i64"), table, false);
    const size_t cosines = text_.emitLike("cos", {angles});
    const size_t sines = text_.emitLike("sin", {angles});
    text_.emit("rotary", {a_, cosines, sines}, flip() ? "interleaved = true" : "", shapeOf(a_), isBatch());
  }

  void source() {
    const std::string key = absl::StrCat("seed = 7 : i64, key = ", text_.pick(1000), " : i64");
    if (flip()) {
      text_.emit("dropout", {a_, text_.scalar(3, "i32")}, "rate = 0.25 : f64, " + key, shapeOf(a_), isBatch());
      return;
    }
    const Dims shape = text_.freeShape(a_);
    const std::string elements = elementsOf(shape) == shape.back()
                                     ? absl::StrCat("dense<", bracketed(shape, 0, 0), "> : ", typeText(shape))
                                     : absl::StrCat("dense<0.75> : ", typeText(shape));
    const size_t made =
        flip() ? text_.emit("random", {}, "distribution = \"uniform\", a = -1.0 : f64, b = 1.0 : f64, " + key, shape,
                            false)
               : text_.emit("constant", {}, "value = " + elements, shape, false);
    text_.binary("mul", a_, made);
  }

  // Different numbers in the last dimension: "[[0.5, 0.75]]" of [1, 2].
  static std::string bracketed(const Dims& shape, size_t d, int64_t i) {
    if (d == shape.size()) {
      return absl::StrCat(0.5 + 0.25 * static_cast<double>(i), i % 4 == 2 ? ".0" : "");
    }
    std::string text;
    for (int64_t k = 0; k < shape[d]; ++k) {
      absl::StrAppend(&text, k == 0 ? "" : ", ", bracketed(shape, d + 1, k));
    }
    return absl::StrCat("[", text, "]");
  }

  void shape() {
    const Dims shape = shapeOf(a_);
    if (flip()) {
      Dims longer = shape;
      longer.push_back(1);
      const size_t one = text_.emit("reshape", {a_}, "", longer, isBatch());
      longer.back() = 1 + text_.pick(3);
      if (elementsOf(longer) <= kLargest && longer.size() <= 4) {
        text_.emit("broadcast", {one}, "", longer, isBatch());
      }
      return;
    }
    if (text_.rank(a_) == text_.firstFree(a_)) {
      return;
    }
    const int64_t d = text_.firstFree(a_) + text_.pick(text_.rank(a_) - text_.firstFree(a_));
    Dims low(shape.size(), 0);
    Dims high(shape.size(), 0);
    low[d] = text_.pick(3);
    high[d] = text_.pick(3);
    Dims made = shape;
    made[d] += low[d] + high[d];
    text_.emit("pad", {a_},
               absl::StrCat("low = ", listText(low), ", high = ", listText(high), flip() ? ", value = 0.5 : f64" : ""),
               made, isBatch());
  }

  void contract() {
    if (text_.rank(a_) != 3) {
      return;
    }
    const Dims shape = shapeOf(a_);
    const Dims other = {shape[2], 2, text_.size()};
    const size_t y = flip() ? text_.emit("contract", {a_, text_.parameter(other)}, "spec = \"b t k, k q n -> b t q n\"",
                                         {shape[0], shape[1], other[1], other[2]}, isBatch())
                            : text_.emit("contract", {a_, text_.parameter({shape[1], other[2]})},
                                         "spec = \"b t k, t n -> b n k\"", {shape[0], other[2], shape[2]}, isBatch());
    text_.binary("mul", y, text_.scalar(0.3));  // keeps the size of the elements
  }

  // To a scalar, which only the loss reads. Whether all are finite is a question for every row at once.
  void reduction() {
    if (text_.result.rowWise || flip()) {
      text_.emit("sum_squares", {a_}, "", {}, false);
      return;
    }
    text_.emit("cast", {text_.emit("all_finite", {a_}, "", Made{{{}, false, "i1"}})}, "", {}, false);
  }

  RandomText& text_;
  size_t a_;
};

}  // namespace

void addFurtherOperator(RandomText& text, size_t a) {
  FurtherOperator(text, a).write();
}

}  // namespace weft::testing
