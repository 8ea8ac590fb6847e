#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/kernels/kernel_runner.h"

namespace weft::testing {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

struct Problem {
  int64_t batch = 2, heads = 2, rows = 5, keys = 5, width = 4;
  bool causal = false;
  int64_t origin = 0;
  double scale = 0.5;
  int64_t sharing = 1;  // heads of q for each of k
  Ints bias = {};       // its shape; none: no bias

  Ints queryShape() const { return {batch, heads, rows, width}; }
  Ints keyShape() const { return {batch, heads / sharing, keys, width}; }
  // Where the bias of one score stands.
  int64_t biasAt(int64_t head, int64_t row, int64_t key) const {
    const int64_t b = bias[0] == 1 ? 0 : head / heads;
    const int64_t h = bias[1] == 1 ? 0 : head % heads;
    const int64_t t = bias[2] == 1 ? 0 : row;
    return ((b * bias[1] + h) * bias[2] + t) * keys + key;
  }
  Ints lseShape() const { return {batch, heads, rows}; }
  AttributeMap attributes() const { return {{"causal", int64_t{causal ? 1 : 0}}, {"scale", scale}}; }
};

struct Attended {
  Reals out, lse;
};

// One query at a time, straight from the definition.
Attended reference(const Problem& p, const Reals& q, const Reals& k, const Reals& v, const Reals& bias = {}) {
  Attended result{Reals(q.size(), 0.0), {}};
  for (int64_t h = 0; h < p.batch * p.heads; ++h) {
    for (int64_t t = 0; t < p.rows; ++t) {
      const double* query = q.data() + (h * p.rows + t) * p.width;
      const int64_t seen = p.causal ? std::min(p.keys, p.origin + t + 1) : p.keys;
      Reals scores;
      for (int64_t s = 0; s < seen; ++s) {
        double score = 0;
        for (int64_t d = 0; d < p.width; ++d) {
          score += query[d] * k[(h / p.sharing * p.keys + s) * p.width + d];
        }
        scores.push_back(p.scale * score + (p.bias.empty() ? 0 : bias[p.biasAt(h, t, s)]));
      }
      double total = 0;
      for (const double score : scores) {
        total += std::exp(score);
      }
      result.lse.push_back(std::log(total));
      for (int64_t s = 0; s < seen; ++s) {
        for (int64_t d = 0; d < p.width; ++d) {
          result.out[(h * p.rows + t) * p.width + d] +=
              std::exp(scores[s]) / total * v[(h / p.sharing * p.keys + s) * p.width + d];
        }
      }
    }
  }
  return result;
}

struct Data {
  Tensor q, k, v, dout;
};

Data dataOf(const Problem& p, DType type) {
  return {sample(type, p.queryShape(), 1, -2, 2), sample(type, p.keyShape(), 2, -2, 2), sample(type, p.keyShape(), 3),
          sample(type, p.queryShape(), 4)};
}

std::vector<Tensor> forward(const Problem& p, const Data& data, bool plain = false) {
  const DType type = data.q.type;
  Call call{"attention", {data.q, data.k, data.v}, {data.q.spec(), {type, p.lseShape()}}, p.attributes(), {p.origin}};
  call.plainMatmul = plain;
  return run(call);
}

const std::vector<Problem> kProblems = {
    {},
    {.causal = true},
    {.rows = 3, .keys = 7},
    {.rows = 3, .keys = 7, .causal = true, .origin = 4},
    {.batch = 1, .heads = 1, .rows = 1, .keys = 1, .width = 1, .causal = true},
    {.batch = 1, .heads = 3, .rows = 40, .keys = 40, .width = 20, .causal = true, .scale = 0.2},
};

struct Variant {
  DType type;
  bool plain;
};
const std::vector<Variant> kVariants = {{DType::kF32, false}, {DType::kF32, true}, {DType::kF64, false}};

TEST(Attention, FollowsTheDefinition) {
  for (const Problem& p : kProblems) {
    for (const Variant& variant : kVariants) {
      const Data data = dataOf(p, variant.type);
      const Attended expected = reference(p, data.q.values, data.k.values, data.v.values);
      const auto results = forward(p, data, variant.plain);
      // Scores up to scale * 4 * width (16 at most) are sums of `width` products: an absolute error of some 20 * 16
      // roundings, which is the relative error of a probability; |v| < 1.
      const Tolerance tolerance{0, 400 * epsilonOf(variant.type)};
      expectNear(results[0], expected.out, tolerance);
      expectNear(results[1], expected.lse, tolerance);
    }
  }
}

std::vector<Tensor> backward(const Problem& p, const Data& data, const Attended& state, bool plain = false) {
  const DType type = data.q.type;
  Call call{"attention_grad",
            {data.q, data.k, data.v, tensor(type, p.queryShape(), state.out), tensor(type, p.lseShape(), state.lse),
             data.dout},
            {data.q.spec(), data.k.spec(), data.v.spec()},
            p.attributes(),
            {p.origin}};
  call.plainMatmul = plain;
  return run(call);
}

double dot(const Reals& a, const Reals& b) {
  double total = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    total += a[i] * b[i];
  }
  return total;
}

TEST(AttentionGrad, AgreesWithDifferences) {
  for (size_t i = 0; i + 1 < kProblems.size(); ++i) {
    const Problem& p = kProblems[i];
    for (const Variant& variant : kVariants) {
      const Data data = dataOf(p, variant.type);
      const Reals& q = data.q.values;
      const Reals& k = data.k.values;
      const Reals& v = data.v.values;
      const auto results = backward(p, data, reference(p, q, k, v), variant.plain);
      const auto loss = [&](const Reals& a, const Reals& b, const Reals& c) {
        return dot(reference(p, a, b, c).out, data.dout.values);
      };
      // Differences are right to 1e-9; f32 gradients are sums of a few dozen products of values below 8.
      const Tolerance tolerance{0, variant.type == DType::kF32 ? 400 * epsilonOf(variant.type) : 1e-8};
      expectNear(results[0], numericGradient([&](const Reals& x) { return loss(x, k, v); }, q), tolerance);
      expectNear(results[1], numericGradient([&](const Reals& x) { return loss(q, x, v); }, k), tolerance);
      expectNear(results[2], numericGradient([&](const Reals& x) { return loss(q, k, x); }, v), tolerance);
    }
  }
}

const std::vector<Problem> kSharedProblems = {
    {.heads = 4, .rows = 3, .keys = 5, .causal = true, .origin = 1, .sharing = 2},
    {.heads = 6, .rows = 3, .keys = 5, .sharing = 3, .bias = {2, 6, 3, 5}},
    {.heads = 2, .rows = 3, .keys = 5, .sharing = 2, .bias = {1, 2, 3, 5}},
    {.heads = 4, .rows = 3, .keys = 5, .causal = true, .sharing = 2, .bias = {2, 1, 1, 5}},
    {.heads = 2, .rows = 3, .keys = 5, .bias = {1, 1, 3, 5}},
};

// Heads that share keys and values, and biases that stretch: out, and all gradients against differences.
TEST(Attention, SharedHeadsAndBias) {
  for (const Problem& p : kSharedProblems) {
    const DType type = DType::kF64;
    const Data data = dataOf(p, type);
    const Tensor bias = sample(type, p.bias, 5, -1, 1);
    const Attended state = reference(p, data.q.values, data.k.values, data.v.values, bias.values);
    const TensorSpec lse = {type, p.lseShape()};
    Call call{"attention", {data.q, data.k, data.v}, {data.q.spec(), lse}, p.attributes(), {p.origin}};
    Call back{"attention_grad",
              {data.q, data.k, data.v, tensor(type, p.queryShape(), state.out), tensor(type, p.lseShape(), state.lse),
               data.dout},
              {data.q.spec(), data.k.spec(), data.v.spec()},
              p.attributes(),
              {p.origin}};
    if (!p.bias.empty()) {
      call.inputs.push_back(bias);
      back.inputs.push_back(bias);
      back.outputs.push_back(bias.spec());
      back.attributes["bias_gradient"] = int64_t{1};
    }
    const auto results = run(call);
    expectNear(results[0], state.out, {0, 1e-13});
    expectNear(results[1], state.lse, {0, 1e-13});
    const auto gradients = run(back);
    const auto loss = [&](const Reals& q, const Reals& k, const Reals& v, const Reals& b) {
      return dot(reference(p, q, k, v, b).out, data.dout.values);
    };
    const Reals& q = data.q.values;
    const Reals& k = data.k.values;
    const Reals& v = data.v.values;
    const Reals& b = bias.values;
    expectNear(gradients[0], numericGradient([&](const Reals& x) { return loss(x, k, v, b); }, q), {0, 1e-8});
    expectNear(gradients[1], numericGradient([&](const Reals& x) { return loss(q, x, v, b); }, k), {0, 1e-8});
    expectNear(gradients[2], numericGradient([&](const Reals& x) { return loss(q, k, x, b); }, v), {0, 1e-8});
    if (!p.bias.empty()) {
      expectNear(gradients[3], numericGradient([&](const Reals& x) { return loss(q, k, v, x); }, b), {0, 1e-8});
    }
  }
}

// Keys that a bias of -inf hides count as if they were not there; a query that sees none gets zeros, and its gradients
// are zeros.
TEST(Attention, MinusInfinityHidesKeys) {
  const double none = -std::numeric_limits<double>::infinity();
  const Problem p{.batch = 1, .heads = 1, .rows = 2, .keys = 3, .bias = {1, 1, 2, 3}};
  const Data data = dataOf(p, DType::kF64);
  const Tensor bias = tensor(DType::kF64, p.bias, {0, 0, none, none, none, none});
  const TensorSpec lse = {DType::kF64, p.lseShape()};
  const auto results = run({"attention", {data.q, data.k, data.v, bias}, {data.q.spec(), lse}, p.attributes(), {0}});
  const Problem two{.batch = 1, .heads = 1, .rows = 2, .keys = 2};
  const auto seen = [&](const Tensor& x) { return part(x, {0, 0, 0, 0}, two.keyShape()); };
  const Attended expected = reference(two, data.q.values, seen(data.k).values, seen(data.v).values);
  expectNear(part(results[0], {0, 0, 0, 0}, {1, 1, 1, 4}), Reals(expected.out.begin(), expected.out.begin() + 4),
             {0, 1e-14});
  expectNear(part(results[0], {0, 0, 1, 0}, {1, 1, 1, 4}), Reals(4, 0.0), {0, 0});
  const auto gradients = run({"attention_grad",
                              {data.q, data.k, data.v, results[0], results[1], data.dout, bias},
                              {data.q.spec(), data.k.spec(), data.v.spec()},
                              p.attributes(),
                              {0}});
  expectNear(part(gradients[0], {0, 0, 1, 0}, {1, 1, 1, 4}), Reals(4, 0.0), {0, 0});
  expectNear(part(gradients[1], {0, 0, 2, 0}, {1, 1, 1, 4}), Reals(4, 0.0), {0, 0});
}

// Queries split in two: rows of out and dq, and dk and dv as sums.
TEST(Attention, SplitQueriesGiveTheWhole) {
  const Problem whole{.batch = 1, .heads = 2, .rows = 8, .keys = 8, .width = 4, .causal = true};
  const Data data = dataOf(whole, DType::kF64);
  const Attended state = reference(whole, data.q.values, data.k.values, data.v.values);
  const auto out = forward(whole, data);
  const auto gradients = backward(whole, data, state);
  Reals dk(data.k.values.size(), 0.0);
  Reals dv(data.v.values.size(), 0.0);
  for (const int64_t origin : {0, 4}) {
    Problem half = whole;
    half.rows = 4;
    half.origin = origin;
    const auto rows = [&](const Tensor& x) { return part(x, {0, 0, origin, 0}, half.queryShape()); };
    const Data mine{rows(data.q), data.k, data.v, rows(data.dout)};
    const auto results = forward(half, mine);
    // The same sums over the same keys, perhaps in another order.
    const Tolerance tolerance{0, 1e-14};
    expectNear(results[0], rows(out[0]).values, tolerance);
    expectNear(results[1], part(out[1], {0, 0, origin}, half.lseShape()).values, tolerance);
    const auto parts = backward(half, mine, {results[0].values, results[1].values});
    expectNear(parts[0], rows(gradients[0]).values, tolerance);
    for (size_t i = 0; i < dk.size(); ++i) {
      dk[i] += parts[1].values[i];
      dv[i] += parts[2].values[i];
    }
  }
  expectNear(gradients[1], dk, {0, 1e-14});
  expectNear(gradients[2], dv, {0, 1e-14});
}

TEST(Attention, Errors) {
  const Problem p;
  const Data data = dataOf(p, DType::kF32);
  const TensorSpec lse{DType::kF32, p.lseShape()};
  const Tensor wrong = sample(DType::kF32, {2, 2, 5, 3}, 1);
  expectError({"attention", {data.q, wrong, wrong}, {data.q.spec(), lse}, p.attributes(), {0}}, kInvalid,
              "f32 [2,2,5,4] and f32 [2,2,5,3]");
  const Tensor three = sample(DType::kF32, {2, 3, 5, 4}, 1);
  expectError({"attention", {data.q, three, three}, {data.q.spec(), lse}, p.attributes(), {0}}, kInvalid,
              "f32 [2,2,5,4] and f32 [2,3,5,4]");
  const Tensor bias = sample(DType::kF32, {2, 2, 5, 4}, 1);
  expectError({"attention", {data.q, data.k, data.v, bias}, {data.q.spec(), lse}, p.attributes(), {0}}, kInvalid,
              "5 keys, it was given f32 [2,2,5,4]");
  expectError({"attention", {data.q, data.k, wrong}, {data.q.spec(), lse}, p.attributes(), {0}}, kInvalid, "input 2");
  expectError({"attention", {data.q, data.k, data.v}, {data.q.spec(), lse}, p.attributes()}, kInvalid, "1 scalars");
  expectError({"attention", {data.q, data.k, data.v}, {data.q.spec(), lse}, {}, {0}}, kInvalid, "'scale' is missing");
}

}  // namespace
}  // namespace weft::testing
