// The rule text of every family, and that every rule fits its operator.
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "ir/nn/nn.h"
#include "tests/support/parse.h"

namespace weft::testing {
namespace {

// Operators of one function by name; texts of their rules.
class RuleTest : public ::testing::Test {
 protected:
  // `arguments` like "%x: tensor<2x3xf32>", one operator per call.
  ir::OperatorInterface parse(const std::string& arguments, const std::string& op) {
    module_ = modules_.parse("func.func @f(" + arguments + ") {\n" + op + "\nreturn\n}");
    EXPECT_TRUE(module_) << op;
    auto function = *module_->getOps<mlir::func::FuncOp>().begin();
    return llvm::cast<ir::OperatorInterface>(function.getBody().front().front());
  }

  std::string rule(const std::string& arguments, const std::string& op) {
    ir::OperatorInterface parsed = parse(arguments, op);
    EXPECT_TRUE(mlir::succeeded(ir::ruleOf(parsed))) << op;
    return parsed.getRule();
  }

  Modules modules_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
};

TEST_F(RuleTest, Elementwise) {
  EXPECT_EQ(rule("%a: tensor<4x8xf32>, %b: tensor<8xf32>",
                 "%0 = nn.add %a, %b : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>"),
            "d0 d1, d1 -> d0 d1");
  EXPECT_EQ(rule("%a: tensor<4x8xf32>, %b: tensor<1x8xf32>",
                 "%0 = nn.add %a, %b : (tensor<4x8xf32>, tensor<1x8xf32>) -> tensor<4x8xf32>"),
            "d0 d1, 1 d1 -> d0 d1");
  EXPECT_EQ(
      rule("%a: tensor<4xf32>, %s: tensor<f32>", "%0 = nn.mul %s, %a : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>"),
      ", d0 -> d0");
  EXPECT_EQ(rule("%a: tensor<3x1xf32>", "%0 = nn.broadcast %a : (tensor<3x1xf32>) -> tensor<2x3x4xf32>"),
            "d1 1 -> d0 d1 d2");
  EXPECT_EQ(rule("%a: tensor<4xf32>, %lr: tensor<f32>, %ok: tensor<i1>",
                 "%0:2 = nn.sgd %a, %a, %a, %lr, %ok : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, "
                 "tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>)"),
            "d0, d0, d0, ,  -> d0, d0");
}

TEST_F(RuleTest, Channels) {
  EXPECT_EQ(rule("%x: tensor<6x4x5xf32>, %g: tensor<4xf32>",
                 "%0:4 = nn.batch_norm %x, %g, %g : (tensor<6x4x5xf32>, tensor<4xf32>, tensor<4xf32>) -> "
                 "(tensor<6x4x5xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>)"),
            "d0+ d1 d2+, d1, d1 -> d0 d1 d2, p~ d1, p~ d1, p~ d1");
  EXPECT_EQ(rule("%x: tensor<6x4x5xf32>", "%0 = nn.channel_sum %x : (tensor<6x4x5xf32>) -> tensor<3x4xf32>"),
            "d0+ d1 d2+ -> p~ d1");
  EXPECT_EQ(rule("%x: tensor<6x4xf32>, %s: tensor<3x4xf32>",
                 "%0 = nn.channel_dot %x, %x, %s : (tensor<6x4xf32>, tensor<6x4xf32>, tensor<3x4xf32>) -> "
                 "tensor<3x4xf32>"),
            "d0+ d1, d0 d1, p~ d1 -> p~ d1");
  EXPECT_EQ(rule("%x: tensor<6x4xf32>, %s: tensor<3x4xf32>",
                 "%0 = nn.channel_affine %x, %s, %s : (tensor<6x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>) -> "
                 "tensor<6x4xf32>"),
            "d0 d1, p~ d1, p~ d1 -> d0 d1");
}

TEST_F(RuleTest, Contraction) {
  EXPECT_EQ(rule("%a: tensor<2x3xf32>, %b: tensor<3x4xf32>",
                 "%0 = nn.matmul %a, %b : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>"),
            "m k+, k+ n -> m n");
  EXPECT_EQ(rule("%a: tensor<5x3x2xf32>, %b: tensor<5x4x3xf32>",
                 "%0 = nn.matmul %a, %b {transpose_a = true, transpose_b = true} : (tensor<5x3x2xf32>, "
                 "tensor<5x4x3xf32>) -> tensor<5x2x4xf32>"),
            "b0 k+ m, b0 n k+ -> b0 m n");
  EXPECT_EQ(rule("%a: tensor<5x2x3xf32>, %b: tensor<3x4xf32>",
                 "%0 = nn.matmul %a, %b : (tensor<5x2x3xf32>, tensor<3x4xf32>) -> tensor<5x2x4xf32>"),
            "b0 m k+, k+ n -> b0 m n");
  EXPECT_EQ(rule("%a: tensor<5x2x3xf32>, %b: tensor<5x2x4xf32>",
                 "%0 = nn.contract %a, %b {spec = \"b0 m k, b0 m n -> k n\"} : (tensor<5x2x3xf32>, tensor<5x2x4xf32>) "
                 "-> tensor<3x4xf32>"),
            "b0+ m+ k, b0+ m+ n -> k n");
}

TEST_F(RuleTest, Images) {
  const std::string steps = "{strides = array<i64: 1, 1>, paddings = array<i64: 0, 0>}";
  const std::string x = "tensor<2x3x5x5xf32>";
  const std::string weight = "tensor<4x3x3x3xf32>";
  const std::string y = "tensor<2x4x3x3xf32>";
  EXPECT_EQ(
      rule("%x: " + x + ", %w: " + weight, "%0 = nn.conv2d %x, %w " + steps + " : (" + x + ", " + weight + ") -> " + y),
      "n ci+ h!! w!!, co ci+ kh!! kw!! -> n co ho!! wo!!");
  auto inputGrad = parse("%dy: " + y + ", %w: " + weight,
                         "%0 = nn.conv2d_input_grad %dy, %w " + steps + " : (" + y + ", " + weight + ") -> " + x);
  EXPECT_EQ(inputGrad.getRule(), "n co+ ho!! wo!!, co+ ci kh!! kw!! -> n ci h!! w!!");
  EXPECT_EQ(inputGrad.getFlops(), 2 * 2 * 4 * 3 * 3 * 3 * 3 * 3);
  auto weightGrad = parse("%x: " + x + ", %dy: " + y,
                          "%0 = nn.conv2d_weight_grad %x, %dy " + steps + " : (" + x + ", " + y + ") -> " + weight);
  EXPECT_EQ(weightGrad.getRule(), "n+ ci h!! w!!, n+ co ho!! wo!! -> co ci kh!! kw!!");
  EXPECT_EQ(weightGrad.getPadFill(0), std::nullopt);
  const std::string window = "{window = array<i64: 3, 3>, strides = array<i64: 1, 1>, paddings = array<i64: 0, 0>}";
  EXPECT_EQ(rule("%x: " + x, "%0 = nn.max_pool2d %x " + window + " : (" + x + ") -> tensor<2x3x3x3xf32>"),
            "n c h!! w!! -> n c ho!! wo!!");
}

// Windows that are patches, and a height that an expansion cuts into blocks.
TEST_F(RuleTest, SplitImages) {
  const auto conv = [&](const std::string& x, const std::string& w, const std::string& y, const std::string& steps) {
    return rule("%x: " + x + ", %w: " + w, "%0 = nn.conv2d %x, %w {" + steps + "} : (" + x + ", " + w + ") -> " + y);
  };
  const std::string x = "tensor<2x3x6x8xf32>";
  EXPECT_EQ(
      conv(x, "tensor<4x3x2x3xf32>", "tensor<2x4x3x2xf32>", "strides = array<i64: 2, 4>, paddings = array<i64: 0, 0>"),
      "n ci+ (ho hs!!) (wo ws!!), co ci+ kh!! kw!! -> n co ho wo");
  EXPECT_EQ(
      conv(x, "tensor<4x3x1x1xf32>", "tensor<2x4x6x8xf32>", "strides = array<i64: 1, 1>, paddings = array<i64: 0, 0>"),
      "n ci+ ho wo, co ci+ kh!! kw!! -> n co ho wo");
  EXPECT_EQ(
      conv(x, "tensor<4x3x3x3xf32>", "tensor<2x4x6x8xf32>", "strides = array<i64: 1, 1>, paddings = array<i64: 1, 1>"),
      "n ci+ ho! w!!, co ci+ kh!! kw!! -> n co ho! wo!!");
  EXPECT_EQ(
      conv(x, "tensor<4x3x3x3xf32>", "tensor<2x4x3x4xf32>", "strides = array<i64: 2, 2>, paddings = array<i64: 1, 1>"),
      "n ci+ (ho! hs!!) w!!, co ci+ kh!! kw!! -> n co ho! wo!!");
  EXPECT_EQ(conv("tensor<5x2x3x6x8xf32>", "tensor<4x3x3x3xf32>", "tensor<5x2x4x4x8xf32>",
                 "strides = array<i64: 1, 1>, paddings = array<i64: 0, 1>"),
            "n0 n1 ci+ h!! w!!, co ci+ kh!! kw!! -> n0 n1 co ho!! wo!!");
  const std::string y = "tensor<2x4x6x8xf32>";
  EXPECT_EQ(rule("%x: " + x + ", %y: " + y,
                 "%0 = nn.conv2d_weight_grad %x, %y {strides = array<i64: 1, 1>, paddings = array<i64: 1, 0>} : (" + x +
                     ", " + y + ") -> tensor<4x3x3x1xf32>"),
            "n+ ci ho+! wo+, n+ co ho+! wo+ -> co ci kh!! kw!!");
  EXPECT_EQ(rule("%x: " + x,
                 "%0 = nn.avg_pool2d %x {window = array<i64: 2, 2>, strides = array<i64: 2, 2>, paddings = "
                 "array<i64: 0, 0>} : (" +
                     x + ") -> tensor<2x3x3x4xf32>"),
            "n c (ho hs!!) (wo ws!!) -> n c ho wo");
}

TEST_F(RuleTest, GroupsOfChannels) {
  const std::string steps = "{strides = array<i64: 1, 1>, paddings = array<i64: 0, 0>}";
  EXPECT_EQ(
      rule("%x: tensor<2x4x5x5xf32>, %w: tensor<6x2x3x3xf32>",
           "%0 = nn.conv2d %x, %w " + steps + " : (tensor<2x4x5x5xf32>, tensor<6x2x3x3xf32>) -> tensor<2x6x3x3xf32>"),
      "n (g ci+) h!! w!!, (g co) ci+ kh!! kw!! -> n (g co) ho!! wo!!");
  EXPECT_EQ(rule("%y: tensor<2x6x3x3xf32>, %w: tensor<6x2x3x3xf32>",
                 "%0 = nn.conv2d_input_grad %y, %w " + steps +
                     " : (tensor<2x6x3x3xf32>, tensor<6x2x3x3xf32>) -> tensor<2x4x5x5xf32>"),
            "n (g co+) ho!! wo!!, (g co+) ci kh!! kw!! -> n (g ci) h!! w!!");
  EXPECT_EQ(rule("%x: tensor<2x4x5x5xf32>, %y: tensor<2x6x3x3xf32>",
                 "%0 = nn.conv2d_weight_grad %x, %y " + steps +
                     " : (tensor<2x4x5x5xf32>, tensor<2x6x3x3xf32>) -> tensor<6x2x3x3xf32>"),
            "n+ (g ci) h!! w!!, n+ (g co) ho!! wo!! -> (g co) ci kh!! kw!!");
}

TEST_F(RuleTest, Shape) {
  EXPECT_EQ(rule("%x: tensor<2x3xf32>",
                 "%0 = nn.transpose %x {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>"),
            "d1 d0 -> d0 d1");
  EXPECT_EQ(rule("%x: tensor<4x3xf32>",
                 "%0 = nn.slice %x {offsets = array<i64: 1, 0>, sizes = array<i64: 2, 3>} : (tensor<4x3xf32>) -> "
                 "tensor<2x3xf32>"),
            "s0! d1 -> r0! d1");
  EXPECT_EQ(rule("%x: tensor<4x3xf32>, %y: tensor<4x1xf32>",
                 "%0 = nn.concat %x, %y {dim = 1} : (tensor<4x3xf32>, tensor<4x1xf32>) -> tensor<4x4xf32>"),
            "d0 c0!, d0 c1! -> d0 c2!");
}

TEST_F(RuleTest, Reduction) {
  EXPECT_EQ(
      rule("%x: tensor<2x3x4xf32>", "%0 = nn.sum %x {dims = array<i64: 0, 2>} : (tensor<2x3x4xf32>) -> tensor<3xf32>"),
      "d0+ d1 d2+ -> d1");
  EXPECT_EQ(rule("%x: tensor<2x3xf32>",
                 "%0 = nn.max %x {dims = array<i64: 1>, keep_dims = true} : (tensor<2x3xf32>) -> tensor<2x1xf32>"),
            "d0 d1+ -> d0 1");
  EXPECT_EQ(rule("%x: tensor<2x3xf32>", "%0 = nn.all_finite %x : (tensor<2x3xf32>) -> tensor<i1>"), "d0+ d1+ -> ");
}

TEST_F(RuleTest, Along) {
  const std::string x = "%x: tensor<2x3x4xf32>";
  EXPECT_EQ(rule(x, "%0 = nn.cumsum %x {dim = 1} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>"),
            "d0 d1! d2 -> d0 d1! d2");
  EXPECT_EQ(rule(x, "%0 = nn.prod %x {dim = 0} : (tensor<2x3x4xf32>) -> tensor<3x4xf32>"), "d0! d1 d2 -> d1 d2");
  EXPECT_EQ(rule(x + ", %d: tensor<2x3xf32>",
                 "%0 = nn.prod_grad %x, %d {dim = 2} : (tensor<2x3x4xf32>, tensor<2x3xf32>) -> tensor<2x3x4xf32>"),
            "d0 d1 d2!, d0 d1 -> d0 d1 d2!");
  EXPECT_EQ(rule(x, "%0:2 = nn.sort %x {count = 2} : (tensor<2x3x4xf32>) -> (tensor<2x3x2xf32>, tensor<2x3x2xi32>)"),
            "d0 d1 s! -> d0 d1 r!, d0 d1 r!");
  EXPECT_EQ(rule(x, "%0 = nn.flip %x {dims = array<i64: 0, 2>} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>"),
            "d0! d1 d2! -> d0! d1 d2!");
  EXPECT_EQ(rule(x + ", %i: tensor<2x5x4xi32>",
                 "%0 = nn.gather %x, %i {dim = 1, rows = 3} : (tensor<2x3x4xf32>, tensor<2x5x4xi32>) -> "
                 "tensor<2x5x4xf32>"),
            "d0 v+ d2, d0 k d2 -> d0 k d2");
  EXPECT_EQ(rule("%u: tensor<2x5xf32>, %i: tensor<2x5xi32>",
                 "%0 = nn.scatter_add %i, %u {dim = 1, rows = 3} : (tensor<2x5xi32>, tensor<2x5xf32>) -> "
                 "tensor<2x3xf32>"),
            "d0 k+, d0 k -> d0 v");
}

// What a pad may hold depends on the type; zeros alone keep a sum of parts a sum.
TEST_F(RuleTest, PadsOfExtremaAndPadsWithAValue) {
  const std::string x = "%x: tensor<2x3xf32>, %b: tensor<2xi1>";
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(*parse(x, "%0 = nn.argmax %x {dim = 1} : (tensor<2x3xf32>) -> tensor<2xi32>").getPadFill(0), -inf);
  EXPECT_EQ(*parse(x, "%0 = nn.argmin %x {dim = 1} : (tensor<2x3xf32>) -> tensor<2xi32>").getPadFill(0), inf);
  EXPECT_EQ(*parse(x, "%0 = nn.max %b {dims = array<i64: 0>} : (tensor<2xi1>) -> tensor<i1>").getPadFill(0), 0);
  EXPECT_EQ(*parse(x, "%0 = nn.prod %x {dim = 1} : (tensor<2x3xf32>) -> tensor<2xf32>").getPadFill(0), 1);
  const std::string pad = "%0 = nn.pad %b {low = array<i64: 1>, high = array<i64: 0>, value = ";
  EXPECT_EQ(parse(x, pad + "0.0} : (tensor<2xi1>) -> tensor<3xi1>").getLinearSets().size(), 1U);
  EXPECT_TRUE(parse(x, pad + "1.0} : (tensor<2xi1>) -> tensor<3xi1>").getLinearSets().empty());
}

TEST_F(RuleTest, Indices) {
  EXPECT_EQ(rule("%t: tensor<9x4xf32>, %i: tensor<2x3xi32>",
                 "%0 = nn.embedding %t, %i {rows = 9} : (tensor<9x4xf32>, tensor<2x3xi32>) -> tensor<2x3x4xf32>"),
            "v+ c, i0 i1 -> i0 i1 c");
  EXPECT_EQ(rule("%d: tensor<2x3x4xf32>, %i: tensor<2x3xi32>",
                 "%0 = nn.embedding_grad %i, %d {rows = 9} : (tensor<2x3xi32>, tensor<2x3x4xf32>) -> tensor<9x4xf32>"),
            "i0+ i1+, i0 i1 c -> v c");
  EXPECT_EQ(rule("%x: tensor<3x9xf32>, %i: tensor<3xi32>",
                 "%0:2 = nn.softmax_cross_entropy %x, %i {rows = 9, ignore_index = -1} : (tensor<3x9xf32>, "
                 "tensor<3xi32>) -> (tensor<3xf32>, tensor<3xf32>)"),
            "d0 v!, d0 -> d0, d0");
}

TEST_F(RuleTest, Attention) {
  const std::string q = "tensor<2x4x3x8xf32>";
  const std::string lse = "tensor<2x4x3xf32>";
  EXPECT_EQ(rule("%q: " + q, "%0:2 = nn.attention %q, %q, %q {causal = false, scale = 1.0} : (" + q + ", " + q + ", " +
                                 q + ") -> (" + q + ", " + lse + ")"),
            "b h t d!!, b h s! d!!, b h s! d!! -> b h t d, b h t");
  const std::string k = "tensor<2x2x5x8xf32>";
  const std::string bias = "tensor<1x4x1x5xf32>";
  EXPECT_EQ(rule("%q: " + q + ", %k: " + k + ", %b: " + bias,
                 "%0:2 = nn.attention %q, %k, %k, %b {causal = false, scale = 1.0} : (" + q + ", " + k + ", " + k +
                     ", " + bias + ") -> (" + q + ", " + lse + ")"),
            "b (h g) t d!!, b h s! d!!, b h s! d!!, 1 (h g) 1 s! -> b (h g) t d, b (h g) t");
  EXPECT_EQ(rule("%q: " + q + ", %k: " + k + ", %l: " + lse + ", %b: " + bias,
                 "%0:4 = nn.attention_grad %q, %k, %k, %q, %l, %q, %b {bias_gradient = true, causal = false, scale = "
                 "1.0} : (" +
                     q + ", " + k + ", " + k + ", " + q + ", " + lse + ", " + q + ", " + bias + ") -> (" + q + ", " +
                     k + ", " + k + ", " + bias + ")"),
            "b+ (h g+) t+ d!!, b h s! d!!, b h s! d!!, b (h g) t d!!, b (h g) t, b (h g) t d!!, 1 (h g) 1 s! -> "
            "b (h g) t d, b h s d, b h s d, 1 (h g) 1 s!");
}

TEST_F(RuleTest, Sources) {
  EXPECT_EQ(rule("", "%0 = nn.fill {value = 1.0} : () -> tensor<2x3xf32>"), " -> d0 d1");
  EXPECT_EQ(rule("", "%0 = nn.constant {value = dense<[1, 2]> : tensor<2xi32>} : () -> tensor<2xi32>"), "-> d0!");
}

TEST(ReshapeRule, CommonRefinement) {
  EXPECT_EQ(ir::rules::reshape({6, 4}, {24}), "f0 f1 -> (f0 f1)");
  EXPECT_EQ(ir::rules::reshape({24}, {6, 4}), "(f0 f1) -> f0 f1");
  EXPECT_EQ(ir::rules::reshape({6, 4}, {3, 8}), "(f0 f1) f2 -> f0 (f1 f2)");
  EXPECT_EQ(ir::rules::reshape({2, 8}, {2, 1, 8}), "f0 f1 -> f0 1 f1");
  EXPECT_EQ(ir::rules::reshape({4, 6}, {6, 4}), "(f0=2 s0!) s1! -> (f0=2 r0!) r1!");
  EXPECT_EQ(ir::rules::reshape({}, {1, 1}), " -> 1 1");
  // A group that cannot be cut alike beside one that can.
  EXPECT_EQ(ir::rules::reshape({4, 6, 5}, {6, 4, 5}), "(f0=2 s0!) s1! f1 -> (f0=2 r0!) r1! f1");
}

// Random pairs of shapes: the rule parses, its factor sizes multiply to each dimension, and both sides list the factors
// in the same order, which is what row-major order asks for.
TEST(ReshapeRule, RandomShapes) {
  std::mt19937 generator(5);
  auto cut = [&](int64_t elements) {
    Shape shape;
    while (elements > 1) {
      int64_t size = 1 + static_cast<int64_t>(generator() % elements);
      while (elements % size != 0) {
        --size;
      }
      shape.push_back(size);
      elements /= size;
      if (shape.size() > 6) {
        shape.push_back(elements);
        break;
      }
    }
    return shape;
  };
  auto order = [](const std::vector<DimFactors>& dims) {
    DimFactors factors;
    for (const DimFactors& dim : dims) {
      factors.insert(factors.end(), dim.begin(), dim.end());
    }
    return factors;
  };
  for (int trial = 0; trial < 500; ++trial) {
    int64_t elements = std::vector<int64_t>{24, 36, 60, 64, 96, 210}[generator() % 6];
    Shape from = cut(elements);
    Shape to = cut(elements);
    std::string text = ir::rules::reshape(from, to);
    absl::StatusOr<Rule> rule = Rule::parse(text, {from}, {to});
    ASSERT_TRUE(rule.ok()) << text << ": " << rule.status();
    if (text.find('!') == std::string::npos) {
      EXPECT_EQ(order(rule->operands()[0]), order(rule->results()[0])) << text;
    }
  }
}

TEST_F(RuleTest, KnowledgeBesideTheRule) {
  auto max = parse("%x: tensor<2x3xf32>", "%0 = nn.max %x {dims = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2xf32>");
  EXPECT_EQ(max.getReduceKind(0), ReduceKind::kMax);
  EXPECT_EQ(*max.getPadFill(0), -std::numeric_limits<double>::infinity());
  auto matmul = parse("%a: tensor<2x3xf32>, %b: tensor<3x4xf32>",
                      "%0 = nn.matmul %a, %b : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>");
  EXPECT_EQ(matmul.getFlops(), 2 * 2 * 3 * 4);
  EXPECT_EQ(matmul.getLinearSets().size(), 2u);
  auto add = parse("%a: tensor<2xf32>", "%0 = nn.add %a, %a : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>");
  EXPECT_EQ(add.getLinearSets().size(), 1u);
  EXPECT_EQ(add.getLinearSets()[0].size(), 2u);
  auto grad = parse("%x: tensor<3x9xf32>, %i: tensor<3xi32>, %l: tensor<3xf32>",
                    "%0 = nn.softmax_cross_entropy_grad %x, %i, %l, %l {ignore_index = -1} : (tensor<3x9xf32>, "
                    "tensor<3xi32>, tensor<3xf32>, tensor<3xf32>) -> tensor<3x9xf32>");
  ASSERT_EQ(grad.getOriginRequests().size(), 1u);
  EXPECT_EQ(grad.getOriginRequests()[0].dim, 1u);
  EXPECT_FALSE(grad.getOriginRequests()[0].isResult);
}

TEST_F(RuleTest, ViewsAndUpdates) {
  EXPECT_EQ(parse("%x: tensor<2x3xf32>", "%0 = nn.reshape %x : (tensor<2x3xf32>) -> tensor<6xf32>").getViewKind(),
            ViewKind::kShape);
  for (const char* op : {"nn.constrain %x {layout = \"[{}]\"}", "nn.stop_gradient %x"}) {
    EXPECT_EQ(
        parse("%x: tensor<2xf32>", std::string("%0 = ") + op + " : (tensor<2xf32>) -> tensor<2xf32>").getViewKind(),
        ViewKind::kAnnotation);
  }
  auto sgd = parse("%p: tensor<2xf32>, %l: tensor<f32>",
                   "%0:2 = nn.sgd %p, %p, %p, %l : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<f32>) -> "
                   "(tensor<2xf32>, tensor<2xf32>)");
  EXPECT_TRUE(sgd.updatesParameter());
  EXPECT_EQ(sgd.getViewKind(), ViewKind::kNone);
  EXPECT_FALSE(parse("%x: tensor<2xf32>", "%0 = nn.exp %x : (tensor<2xf32>) -> tensor<2xf32>").updatesParameter());
}

}  // namespace
}  // namespace weft::testing
