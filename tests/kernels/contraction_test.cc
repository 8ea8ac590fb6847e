#include "kernels/describe/contraction.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/threads.h"
#include "kernels/describe/describe.h"
#include "tests/kernels/kernel_runner.h"

namespace weft::testing {
namespace {

using Letters = std::vector<std::string>;

struct Einsum {
  Letters a, b, c;
};

Letters words(const std::string& text) {
  std::istringstream stream(text);
  Letters letters;
  for (std::string letter; stream >> letter;) {
    letters.push_back(letter);
  }
  return letters;
}

Einsum einsum(const std::string& spec) {
  const size_t comma = spec.find(',');
  const size_t arrow = spec.find("->");
  return {words(spec.substr(0, comma)), words(spec.substr(comma + 1, arrow - comma - 1)),
          words(spec.substr(arrow + 2))};
}

using Sizes = std::map<std::string, int64_t>;

Ints shapeOf(const Letters& letters, const Sizes& sizes) {
  Ints shape;
  for (const std::string& letter : letters) {
    shape.push_back(sizes.at(letter));
  }
  return shape;
}

// The sum over every assignment of all letters, and the same of absolute values, which bounds the rounding.
struct Reference {
  Reals values, sizes;
};

Reference reference(const Einsum& e, const Sizes& sizes, const Tensor& a, const Tensor& b) {
  Letters all;
  Ints shape;
  for (const auto& [letter, size] : sizes) {
    all.push_back(letter);
    shape.push_back(size);
  }
  const auto pick = [&](const Letters& letters, const Ints& index) {
    int64_t position = 0;
    for (const std::string& letter : letters) {
      position = position * sizes.at(letter) + index[std::find(all.begin(), all.end(), letter) - all.begin()];
    }
    return position;
  };
  const int64_t n = elementsOf(shapeOf(e.c, sizes));
  Reference result{Reals(n, 0.0), Reals(n, 0.0)};
  forEachIndex(shape, [&](const Ints& index) {
    const double product = a.values[pick(e.a, index)] * b.values[pick(e.b, index)];
    result.values[pick(e.c, index)] += product;
    result.sizes[pick(e.c, index)] += std::abs(product);
  });
  return result;
}

void expectProduct(const Tensor& actual, const Reference& expected, int64_t depth) {
  ASSERT_EQ(actual.values.size(), expected.values.size());
  // A sum of k products in any order: at most k + 1 roundings of the sum of sizes (Higham, "Accuracy and Stability").
  const double bound = static_cast<double>(depth + 1) * epsilonOf(actual.type);
  for (size_t i = 0; i < expected.values.size(); ++i) {
    ASSERT_NEAR(actual.values[i], expected.values[i], bound * expected.sizes[i]) << "element " << i;
  }
}

int64_t depthOf(const Einsum& e, const Sizes& sizes) {
  int64_t depth = 1;
  for (const auto& [letter, size] : sizes) {
    depth *= std::find(e.c.begin(), e.c.end(), letter) == e.c.end() ? size : 1;
  }
  return depth;
}

struct Variant {
  DType type;
  bool plain;
};
const std::vector<Variant> kVariants = {{DType::kF32, false}, {DType::kF32, true}, {DType::kF64, false}};

// The product by the kernel that adds it to a sum, in place and not; where there is none, that kernel refuses it.
void checkAccumulated(const Call& product, Reference expected, int64_t depth) {
  Call call = product;
  const Tensor sum = sample(product.outputs[0].type, product.outputs[0].shape, 7);
  call.name = "contract_accumulate";
  call.inputs.insert(call.inputs.begin(), sum);
  call.scalars = {0};
  if (!accumulatingKernel(specOf(product))) {
    expectError(call, absl::StatusCode::kInvalidArgument, "use contract and accumulate");
    return;
  }
  expectSame(runOne(call), runOne(product));
  for (size_t i = 0; i < expected.values.size(); ++i) {
    expected.values[i] += sum.values[i];
    expected.sizes[i] += std::abs(sum.values[i]);
  }
  call.scalars = {3};
  expectProduct(runOne(call), expected, depth + 1);
  call.inPlace = {0, 0};
  expectProduct(runOne(call), expected, depth + 1);
}

void checkContract(const std::string& spec, const Sizes& sizes) {
  SCOPED_TRACE(spec);
  const Einsum e = einsum(spec);
  for (const Variant& variant : kVariants) {
    const Tensor a = sample(variant.type, shapeOf(e.a, sizes), 1);
    const Tensor b = sample(variant.type, shapeOf(e.b, sizes), 2);
    Call call{"contract", {a, b}, {{variant.type, shapeOf(e.c, sizes)}}, {{"spec", spec}}};
    call.plainMatmul = variant.plain;
    const Reference expected = reference(e, sizes, a, b);
    expectProduct(runOne(call), expected, depthOf(e, sizes));
    checkAccumulated(call, expected, depthOf(e, sizes));
  }
}

TEST(Contract, MatrixForms) {
  const Sizes sizes = {{"m", 7}, {"k", 19}, {"n", 33}};
  for (const char* a : {"m k", "k m"}) {
    for (const char* b : {"k n", "n k"}) {
      for (const char* c : {"m n", "n m"}) {
        checkContract(absl::StrCat(a, ", ", b, " -> ", c), sizes);
      }
    }
  }
}

TEST(Contract, GradientsOfMatmul) {
  const Sizes sizes = {{"b", 3}, {"t", 5}, {"k", 8}, {"q", 2}, {"n", 6}};
  checkContract("b t k, k q n -> b t q n", sizes);
  checkContract("b t k, b t q n -> k q n", sizes);
  checkContract("b t q n, k q n -> b t k", sizes);
  checkContract("b t k, b t q n -> q n k", sizes);
}

TEST(Contract, LettersThatDoNotMerge) {
  checkContract("a k b, k n -> a n b", {{"a", 3}, {"b", 4}, {"k", 5}, {"n", 6}});
  checkContract("k1 m k2, k2 k1 n -> m n", {{"k1", 3}, {"k2", 4}, {"m", 5}, {"n", 6}});
  checkContract("m1 k m2, k n -> m2 n m1", {{"m1", 3}, {"m2", 4}, {"k", 5}, {"n", 6}});
  checkContract("m k, n1 k n2 -> n2 m n1", {{"m", 3}, {"n1", 4}, {"k", 5}, {"n2", 6}});
  checkContract("x m y k, y k x n -> m x n y", {{"x", 2}, {"y", 3}, {"m", 4}, {"k", 5}, {"n", 6}});
}

TEST(Contract, BatchAnywhere) {
  const Sizes sizes = {{"b", 3}, {"m", 4}, {"k", 5}, {"n", 6}};
  for (const char* a : {"b m k", "m b k", "m k b", "k b m"}) {
    for (const char* b : {"b k n", "k b n", "n b k", "n k b"}) {
      for (const char* c : {"b m n", "m b n", "n b m", "m n b"}) {
        checkContract(absl::StrCat(a, ", ", b, " -> ", c), sizes);
      }
    }
  }
}

TEST(Contract, WithoutSomeGroups) {
  checkContract("k, k ->", {{"k", 13}});
  checkContract("m, n -> m n", {{"m", 5}, {"n", 7}});
  checkContract("m, n -> n m", {{"m", 5}, {"n", 7}});
  checkContract("b, b -> b", {{"b", 9}});
  checkContract("b k, b k -> b", {{"b", 9}, {"k", 4}});
  checkContract("m k, k -> m", {{"m", 5}, {"k", 7}});
  checkContract("k, k n -> n", {{"n", 5}, {"k", 7}});
  checkContract(", -> ", {});
  checkContract(", n -> n", {{"n", 4}});
}

TEST(Contract, SizesOfOneAndZero) {
  for (const int64_t m : {1, 4}) {
    for (const int64_t n : {1, 5}) {
      for (const int64_t k : {1, 6}) {
        for (const char* spec : {"m k, k n -> m n", "k m, n k -> m n", "m k, n k -> n m", "b m k, b n k -> b m n"}) {
          checkContract(spec, std::string(spec).front() == 'b' ? Sizes{{"b", 2}, {"m", m}, {"n", n}, {"k", k}}
                                                               : Sizes{{"m", m}, {"n", n}, {"k", k}});
        }
        checkContract("b m k, b k n -> b m n", {{"b", 1}, {"m", m}, {"n", n}, {"k", k}});
      }
    }
  }
  checkContract("m k, k n -> m n", {{"m", 0}, {"n", 3}, {"k", 2}});
  checkContract("m k, k n -> m n", {{"m", 2}, {"n", 0}, {"k", 2}});
  // An empty sum is zero.
  checkContract("m k, k n -> m n", {{"m", 2}, {"n", 3}, {"k", 0}});
  checkContract("b m k, b k n -> b m n", {{"b", 0}, {"m", 2}, {"n", 3}, {"k", 4}});
}

// Larger than the blocks of the plain product (128) and of the library.
TEST(Contract, LargerThanABlock) {
  checkContract("m k, k n -> m n", {{"m", 70}, {"k", 150}, {"n", 145}});
  checkContract("k m, n k -> m n", {{"m", 70}, {"k", 150}, {"n", 145}});
  checkContract("b k m, b n k -> b n m", {{"b", 2}, {"m", 33}, {"k", 150}, {"n", 65}});
}

// As many threads of the library while it lives.
class Threads {
 public:
  explicit Threads(int count) : before_(cpu::libraryThreads()) { cpu::setLibraryThreads(count); }
  ~Threads() { cpu::setLibraryThreads(before_); }

 private:
  int before_;
};

// With many threads the library's copies of operands that lie the other way pass the scratch limit: blocks of them are
// turned instead. The kernel's workspace against its description is held by runOne.
TEST(Contract, ManyThreads) {
  const Threads threads(12);
  const Sizes sizes = {{"m", 50}, {"k", 600}, {"n", 40}, {"b", 2}};
  for (const char* spec : {"k m, k n -> m n", "m k, n k -> m n", "k m, n k -> m n", "k m, k n -> n m",
                           "b k m, b k n -> b m n", "b k m, b n k -> b m n"}) {
    const Einsum e = einsum(spec);
    Sizes used = sizes;
    if (spec[0] != 'b') {
      used.erase("b");
    }
    const Tensor a = sample(DType::kF32, shapeOf(e.a, used), 1);
    const Tensor b = sample(DType::kF32, shapeOf(e.b, used), 2);
    const Call call{"contract", {a, b}, {{DType::kF32, shapeOf(e.c, used)}}, {{"spec", spec}}};
    SCOPED_TRACE(spec);
    expectProduct(runOne(call), reference(e, used, a, b), depthOf(e, used));
    checkAccumulated(call, reference(e, used, a, b), depthOf(e, used));
  }
}

// At most 1.5 MiB for the library, whatever the sizes: a head of 50304 words does not ask for a copy of its weight.
// Small products are given 256 KiB, and operands that must be packed their copies besides.
TEST(Contract, ScratchIsBounded) {
  const auto scratchOf = [](const Ints& a, const Ints& b, const Ints& c, const std::string& spec) {
    return describe({"contract", {{DType::kF32, a}, {DType::kF32, b}}, {{DType::kF32, c}}, {{"spec", spec}}, 0},
                    Target::kCpu)
        .workspaceBytes;
  };
  constexpr int64_t kMiB = int64_t{1} << 20;
  EXPECT_LE(scratchOf({1024, 768}, {768, 50304}, {1024, 50304}, "t c, c v -> t v"), 2 * kMiB);
  EXPECT_LE(scratchOf({1024, 768}, {1024, 50304}, {768, 50304}, "t c, t v -> c v"), 2 * kMiB);
  EXPECT_LE(scratchOf({4, 4}, {4, 4}, {4, 4}, "t c, c v -> t v"), kMiB / 4);
  // Dimensions that cannot be walked with one stride take a copy.
  EXPECT_GE(scratchOf({64, 32, 128}, {32, 16}, {64, 16, 128}, "a k b, k n -> a n b"), int64_t{64} * 32 * 128 * 4);
}

TEST(Contract, Errors) {
  const Tensor a = sample(DType::kF32, {2, 3}, 1);
  const auto code = absl::StatusCode::kInvalidArgument;
  const auto call = [&](const std::string& spec, const Ints& result) {
    return Call{"contract", {a, a}, {{DType::kF32, result}}, {{"spec", spec}}};
  };
  expectError(call("m k, k n -> m n", {2, 3}), code, "'k' has size 3 in one tensor and 2 in another");
  expectError(call("m k, m n -> m n", {2, 3}), code, "'k' is in one operand only");
  expectError(call("m k, m n -> m k n j", {2, 3, 3, 1}), code, "'j' is in no operand");
  expectError(call("m k, m n m -> k n", {3, 3}), code, "3 dimensions");
  expectError(call("m m, m n -> n", {3}), code, "'m' is twice");
  expectError(call("m k", {3}), code, "'m k'");
  expectError({"contract", {a, a}, {{DType::kF32, {}}}}, code, "'spec' is missing");
}

struct MatmulCase {
  Ints a, b, result;
  int64_t transposeA, transposeB;
};

TEST(Matmul, AllForms) {
  const std::vector<MatmulCase> cases = {
      {{4, 5}, {5, 6}, {4, 6}, 0, 0},          {{5, 4}, {5, 6}, {4, 6}, 1, 0},
      {{4, 5}, {6, 5}, {4, 6}, 0, 1},          {{5, 4}, {6, 5}, {4, 6}, 1, 1},
      {{2, 4, 5}, {5, 6}, {2, 4, 6}, 0, 0},    {{2, 5, 4}, {6, 5}, {2, 4, 6}, 1, 1},
      {{2, 4, 5}, {2, 5, 6}, {2, 4, 6}, 0, 0}, {{2, 3, 5, 4}, {2, 3, 6, 5}, {2, 3, 4, 6}, 1, 1},
      {{1, 1}, {1, 1}, {1, 1}, 0, 0},          {{1, 9}, {9, 1}, {1, 1}, 0, 0},
      {{3, 0}, {0, 4}, {3, 4}, 0, 0},          {{2, 3, 1, 5}, {5, 1}, {2, 3, 1, 1}, 0, 0}};
  for (const MatmulCase& c : cases) {
    const std::string batch = c.a.size() == 4 ? "b0 b1 " : c.a.size() == 3 ? "b0 " : "";
    const std::string spec = absl::StrCat(batch, c.transposeA != 0 ? "k m" : "m k", ", ", c.b.size() > 2 ? batch : "",
                                          c.transposeB != 0 ? "n k" : "k n", " -> ", batch, "m n");
    SCOPED_TRACE(spec);
    const Einsum e = einsum(spec);
    Sizes sizes;
    for (size_t d = 0; d < c.a.size(); ++d) {
      sizes[e.a[d]] = c.a[d];
    }
    sizes["n"] = c.result.back();
    for (const Variant& variant : kVariants) {
      const Tensor a = sample(variant.type, c.a, 3);
      const Tensor b = sample(variant.type, c.b, 4);
      Call call{
          "matmul", {a, b}, {{variant.type, c.result}}, {{"transpose_a", c.transposeA}, {"transpose_b", c.transposeB}}};
      call.plainMatmul = variant.plain;
      expectProduct(runOne(call), reference(e, sizes, a, b), depthOf(e, sizes));
    }
  }
}

TEST(Matmul, SameBitsEveryTime) {
  const Tensor a = sample(DType::kF32, {65, 130}, 5);
  const Tensor b = sample(DType::kF32, {130, 77}, 6);
  const Call call{"matmul", {a, b}, {{DType::kF32, {65, 77}}}};
  expectSame(runOne(call), runOne(call));
}

TEST(Matmul, Errors) {
  const auto code = absl::StatusCode::kInvalidArgument;
  const Tensor a = sample(DType::kF32, {2, 3}, 1);
  expectError({"matmul", {a, a}, {{DType::kF32, {2, 3}}}}, code, "'k' has size 3 in one tensor and 2 in another");
  expectError({"matmul", {a, sample(DType::kF32, {3}, 1)}, {{DType::kF32, {2}}}}, code, "[2,3] and [3]");
  expectError({"matmul", {a, sample(DType::kF64, {3, 3}, 1)}, {{DType::kF32, {2, 3}}}}, code, "input 1 is f64");
  expectError({"matmul", {sample(DType::kI32, {2, 2}, 1), sample(DType::kI32, {2, 2}, 1)}, {{DType::kI32, {2, 2}}}},
              code, "i32");
}

}  // namespace
}  // namespace weft::testing
