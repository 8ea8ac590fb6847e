// matmul with numpy's broadcasting and einsum, against sums over all letters; and in which order products are made.
#include <map>

#include "tests/frontend/evaluate.h"

namespace weft::testing {
namespace {

// A few roundings of f64.
constexpr double kRounding = 1e-13;

int64_t elementsOf(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) {
    count *= size;
  }
  return count;
}

// Other values for each operand, from one input, so that all have gradients.
Tensor operandOf(const Tensor& x, int64_t number, const Shape& shape) {
  const int64_t first = 3 * number;
  return (1.0 + 0.25 * static_cast<double>(number)) * reshape(narrow(x, 0, first, elementsOf(shape)), shape);
}

Reals operandValues(const Reals& x, int64_t number, const Shape& shape) {
  Reals values;
  for (int64_t i = 0; i < elementsOf(shape); ++i) {
    values.push_back((1.0 + 0.25 * static_cast<double>(number)) * x[static_cast<size_t>(3 * number + i)]);
  }
  return values;
}

struct EinsumCase {
  std::string spec;
  std::vector<Shape> shapes;
};

void PrintTo(const EinsumCase& test, std::ostream* out) {
  *out << test.spec;
}

// The definition: a loop over the values of all letters.
Reals plainEinsum(const EinsumCase& test, const Reals& x) {
  std::vector<std::string> lists(1);
  const size_t arrow = test.spec.find("->");
  for (const char c : test.spec.substr(0, arrow)) {
    c == ',' ? lists.emplace_back() : lists.back() += c;
  }
  const std::string result = test.spec.substr(arrow + 2);
  std::map<char, int64_t> sizes;
  std::vector<Reals> operands;
  for (size_t i = 0; i < lists.size(); ++i) {
    operands.push_back(operandValues(x, static_cast<int64_t>(i), test.shapes[i]));
    for (size_t d = 0; d < lists[i].size(); ++d) {
      sizes[lists[i][d]] = test.shapes[i][d];
    }
  }
  const auto placeOf = [&](const std::string& letters, const std::map<char, int64_t>& at) {
    int64_t place = 0;
    for (const char letter : letters) {
      place = place * sizes.at(letter) + at.at(letter);
    }
    return static_cast<size_t>(place);
  };
  int64_t count = 1;
  for (const char letter : result) {
    count *= sizes.at(letter);
  }
  Reals y(static_cast<size_t>(count), 0.0);
  int64_t points = 1;
  for (const auto& [letter, size] : sizes) {
    points *= size;
  }
  for (int64_t point = 0; point < points; ++point) {
    std::map<char, int64_t> at;
    int64_t rest = point;
    for (const auto& [letter, size] : sizes) {
      at[letter] = rest % size;
      rest /= size;
    }
    double product = 1;
    for (size_t i = 0; i < lists.size(); ++i) {
      product *= operands[i][placeOf(lists[i], at)];
    }
    y[placeOf(result, at)] += product;
  }
  return y;
}

Build buildOf(const EinsumCase& test) {
  return [test](Graph&, const Tensor& x) {
    std::vector<Tensor> operands;
    for (size_t i = 0; i < test.shapes.size(); ++i) {
      operands.push_back(operandOf(x, static_cast<int64_t>(i), test.shapes[i]));
    }
    return einsum(test.spec, operands);
  };
}

class EinsumTest : public ::testing::TestWithParam<EinsumCase> {};

TEST_P(EinsumTest, IsTheSumOverAllLetters) {
  const EinsumCase& test = GetParam();
  const Reals x = someValues(48);
  expectValues(valuesOf({48}, x, buildOf(test)), plainEinsum(test, x), kRounding);
  expectValues(valuesOf({48}, x, buildOf(test), 2), plainEinsum(test, x), kRounding);
  expectGradient({48}, x, buildOf(test));
}

const std::vector<EinsumCase> kEinsums = {
    {"ij,jk->ik", {{3, 4}, {4, 2}}},
    {"ij,jk->ki", {{3, 4}, {4, 2}}},
    {"bik,bkj->bij", {{2, 3, 4}, {2, 4, 2}}},
    {"bthd,bshd->bhts", {{2, 2, 2, 3}, {2, 2, 2, 3}}},
    {"i,i->", {{4}, {4}}},
    {"i,j->ij", {{4}, {3}}},
    {"ij,ij->ij", {{3, 4}, {3, 4}}},
    {"ij,ji->ij", {{3, 4}, {4, 3}}},
    {"ij,i->ij", {{3, 4}, {3}}},
    {"ij,->ij", {{3, 4}, {}}},
    {"ij->ji", {{3, 4}}},
    {"ij->j", {{3, 4}}},
    {"ij->", {{3, 4}}},
    {"ii->i", {{4, 4}}},
    {"ii->", {{4, 4}}},
    {"iji->j", {{3, 2, 3}}},
    {"iii->i", {{3, 3, 3}}},
    {"ii,ij->j", {{3, 3}, {3, 2}}},
    {"ij,kl->i", {{3, 2}, {2, 2}}},
    {"ij,jk,kl->il", {{2, 3}, {3, 2}, {2, 4}}},
    {"ij,jk,kl,lm->im", {{2, 3}, {3, 2}, {2, 4}, {4, 2}}},
    {"ij,ik,il->jkl", {{2, 3}, {2, 2}, {2, 4}}},
    {"ij,jk,ki->", {{2, 3}, {3, 2}, {2, 2}}},
    {"a,b,c,d,ab,cd,bd->", {{2}, {3}, {2}, {2}, {2, 3}, {2, 2}, {3, 2}}},
};

INSTANTIATE_TEST_SUITE_P(Products, EinsumTest, ::testing::ValuesIn(kEinsums));

struct MatmulCase {
  Shape a, b;
  MatmulOptions options;
  std::string spec;  // of what is left when dimensions of size 1 are dropped
  Shape result;
};

// As einsum, after dimensions of size 1 of the batch are dropped.
Shape squeezedBatch(const Shape& shape) {
  Shape kept;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (d + 2 >= shape.size() || shape[d] != 1) {
      kept.push_back(shape[d]);
    }
  }
  return kept;
}

const std::vector<MatmulCase> kMatmuls = {
    {{3, 4}, {4, 2}, {}, "mk,kn->mn", {3, 2}},
    {{2, 3, 4}, {4, 2}, {}, "bmk,kn->bmn", {2, 3, 2}},
    {{3, 4}, {2, 4, 2}, {}, "mk,bkn->bmn", {2, 3, 2}},
    {{2, 3, 4}, {2, 4, 2}, {}, "bmk,bkn->bmn", {2, 3, 2}},
    {{2, 1, 3, 2}, {3, 2, 2}, {}, "amk,bkn->abmn", {2, 3, 3, 2}},
    {{1, 3, 2}, {2, 2, 2}, {}, "mk,bkn->bmn", {2, 3, 2}},
    {{2, 3, 2}, {1, 2, 2}, {}, "bmk,kn->bmn", {2, 3, 2}},
    {{1, 3, 2}, {1, 1, 2, 2}, {}, "mk,kn->mn", {1, 1, 3, 2}},
    {{2, 2, 1, 3}, {2, 1, 3, 2}, {}, "abmk,akn->abmn", {2, 2, 1, 2}},
    {{3, 2, 4}, {1, 3, 2}, {true, true}, "bkm,nk->bmn", {3, 4, 3}},
    {{2, 3}, {2, 2, 3}, {false, true}, "mk,bnk->bmn", {2, 2, 2}},
    {{3, 2}, {2, 3, 2}, {true, false}, "km,bkn->bmn", {2, 2, 2}},
};

TEST(Matmul, BatchDimensionsBroadcast) {
  const Reals x = someValues(48);
  for (const MatmulCase& test : kMatmuls) {
    SCOPED_TRACE(test.spec);
    Shape made;
    const Build build = [&](Graph&, const Tensor& input) {
      const Tensor y = matmul(operandOf(input, 0, test.a), operandOf(input, 1, test.b), test.options);
      made = y.shape();
      return y;
    };
    const EinsumCase plain = {test.spec, {squeezedBatch(test.a), squeezedBatch(test.b)}};
    expectValues(valuesOf({48}, x, build), plainEinsum(plain, x), kRounding);
    EXPECT_EQ(made, test.result);
    expectGradient({48}, x, build);
  }
}

TEST(Matmul, Vectors) {
  const Reals x = someValues(48);
  const auto check = [&](const Shape& a, const Shape& b, const MatmulOptions& options, const std::string& spec) {
    const Build build = [&](Graph&, const Tensor& input) {
      return matmul(operandOf(input, 0, a), operandOf(input, 1, b), options);
    };
    expectValues(valuesOf({48}, x, build), plainEinsum({spec, {a, b}}, x), kRounding);
    expectGradient({48}, x, build);
  };
  check({4}, {4}, {}, "k,k->");
  check({4}, {4, 3}, {}, "k,kn->n");
  check({4}, {3, 4}, {.transposeB = true}, "k,nk->n");
  check({3, 4}, {4}, {}, "mk,k->m");
  check({2, 3, 4}, {4}, {}, "bmk,k->bm");
  check({4}, {2, 4, 3}, {}, "k,bkn->bn");
}

int count(const std::string& text, const std::string& word) {
  int found = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    ++found;
  }
  return found;
}

// One operator as far as one will do, and no copy beside it.
TEST(Matmul, MakesNoCopies) {
  Graph g;
  (void)matmul(g.input("a", {2, 3, 4}), g.input("b", {5, 1, 4, 6}));
  EXPECT_EQ(count(g.print(), "nn.contract"), 1);
  EXPECT_EQ(count(g.print(), "nn.broadcast") + count(g.print(), "nn.transpose"), 0) << g.print();
  Graph h;
  (void)matmul(h.input("a", {3, 4}), h.input("b", {5, 4, 6}));
  EXPECT_EQ(count(h.print(), "nn."), count(h.print(), "nn.contract") + count(h.print(), "nn.kind") +
                                         count(h.print(), "nn.name") + count(h.print(), "nn.batch_dim"))
      << h.print();
}

// (a b) c takes 40000 multiplications, a (b c) a million; with the small matrix at the end it is the other way round.
TEST(Einsum, TakesTheCheapestOrder) {
  Graph g;
  (void)einsum("ab,bc,cd->ad", {g.input("a", {2, 100}), g.input("b", {100, 100}), g.input("c", {100, 100})});
  EXPECT_NE(g.print().find("spec = \"a b, b c -> a c\""), std::string::npos) << g.print();
  Graph h;
  (void)einsum("ab,bc,cd->ad", {h.input("a", {100, 100}), h.input("b", {100, 100}), h.input("c", {100, 2})});
  EXPECT_NE(h.print().find("spec = \"b c, c d -> b d\""), std::string::npos) << h.print();
}

}  // namespace
}  // namespace weft::testing
