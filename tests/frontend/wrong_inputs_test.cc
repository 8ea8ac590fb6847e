// Wrong uses of operators, modules, tables of strategies, weight files and config files, each with what the message
// says: the place, both values, and what to do. Those of plain element types and shapes are in messages_test.cc.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "runtime/base/file_writer.h"
#include "runtime/io/safetensors.h"
#include "tests/support/files.h"
#include "weft/models/all.h"
#include "weft/weft.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Tensors {
  Graph g;
  Tensor f = g.input("f", {4, 8});
  Tensor i = g.input("i", {4, 8}, kI32);
  Tensor ids = g.input("ids", {4}, kI32);
  Tensor b = g.input("b", {4, 8}, kBool);
  Tensor v = g.parameter("v", {8});
  Tensor w = g.parameter("w", {8, 6});
  Tensor image = g.input("image", {4, 6, 8, 8});
  Tensor kernel = g.parameter("kernel", {6, 3, 3, 3});
  Tensor channels = g.parameter("channels", {6});
  Tensor line = g.input("line", {4, 6, 8});
  Tensor q = g.input("q", {2, 4, 5, 8});
  Tensor odd = g.input("odd", {2, 5, 7});
  Tensor scalar = g.full({}, 1);
  Tensor moving = g.state("moving", {8}, kF32, 0);
};

struct WrongUse {
  const char* name;
  std::function<void(Tensors&)> use;
  int line;
  std::vector<std::string> says;
};

void PrintTo(const WrongUse& wrong, std::ostream* out) {
  *out << wrong.name;
}

#define WRONG(name, expression, ...)                          \
  WrongUse {                                                  \
    name, [](Tensors& t) { (void)(expression); }, __LINE__, { \
      __VA_ARGS__                                             \
    }                                                         \
  }

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

const std::vector<WrongUse>& wrongOperators() {
  static const std::vector<WrongUse> uses = {
      // Images.
      WRONG("ConvGroups", conv2d(t.image, t.kernel, {.groups = 4}), "conv2d: ", "6 channels", "4 groups"),
      WRONG("ConvGroupsZero", conv2d(t.image, t.kernel, {.groups = 0}), "conv2d: ", "6 channels",
            "in each of 0 groups"),
      WRONG("ConvPaddings", conv2d(t.image, t.kernel, {.paddings = {-1, 0}, .groups = 2}), "conv2d: ", "[-1, 0]"),
      WRONG("ConvDilations", conv2d(t.image, t.kernel, {.dilations = {0, 1}, .groups = 2}), "conv2d: ", "[0, 1]"),
      WRONG("ConvStridesCount", conv2d(t.image, t.kernel, {.strides = {1}, .groups = 2}), "conv2d: ", "[1]", "two"),
      WRONG("ConvDilatedWindow", conv2d(t.image, t.kernel, {.dilations = {5, 1}, .groups = 2}), "conv2d: ", "larger"),
      WRONG("ConvOutGroups", conv2d(t.image, t.g.parameter("k4", {4, 2, 3, 3}), {.groups = 3}), "conv2d: ", "3"),
      WRONG("TransposedChannels", convTranspose2d(t.image, t.g.parameter("kt", {5, 3, 3, 3})), "convTranspose2d: "),
      WRONG("TransposedGroups", convTranspose2d(t.image, t.kernel, {.groups = 4}), "convTranspose2d: ", "4"),
      WRONG("OutputPaddings", convTranspose2d(t.image, t.kernel, {.outputPaddings = {1, 0}}), "convTranspose2d: "),
      WRONG("OutputPaddingsSign", convTranspose2d(t.image, t.kernel, {.outputPaddings = {-1, 0}}), "convTranspose2d: "),
      WRONG("TransposedPaddings", convTranspose2d(t.image, t.kernel, {.paddings = {9, 9}}), "convTranspose2d: "),
      WRONG("Conv1dRank", conv1d(t.f, t.g.parameter("k1", {4, 6, 3})), "conv1d: ", "f32 [4, 8]"),
      WRONG("Conv1dStride", conv1d(t.line, t.g.parameter("k1", {4, 6, 3}), {.stride = 0}), "conv1d: stride = 0",
            "from 1"),
      WRONG("Conv1dGroups", conv1d(t.line, t.g.parameter("k1", {4, 6, 3}), {.groups = 4}), "conv1d: ", "f32 [4, 6, 8]",
            "4 groups"),
      WRONG("Conv1dPadding", conv1d(t.line, t.g.parameter("k1", {4, 6, 3}), {.padding = -1}), "conv1d: padding = -1"),
      WRONG("PoolPaddings", maxPool2d(t.image, {2, 2}, {.paddings = {2, 0}}), "maxPool2d: ", "[2, 0]"),
      WRONG("PoolStrides", avgPool2d(t.image, {2, 2}, {.strides = {0, 1}}), "avgPool2d: ", "[0, 1]"),
      WRONG("PoolWindowZero", avgPool2d(t.image, {0, 2}), "avgPool2d: ", "[0, 2]"),
      WRONG("AdaptiveSize", adaptiveAvgPool2d(t.image, {0, 1}), "adaptiveAvgPool2d: ", "0"),
      WRONG("AdaptiveRank", adaptiveAvgPool2d(t.f, {1, 1}), "adaptiveAvgPool2d: ", "f32 [4, 8]"),
      WRONG("InterpolateSize", interpolate(t.image, {16, 0}), "interpolate: ", "0"),
      WRONG("InterpolateRank", interpolate(t.line, {16, 16}), "interpolate: ", "f32 [4, 6, 8]"),
      WRONG("InterpolateCount", interpolate(t.image, {16}), "interpolate: ", "[16]"),
      // Normalizations and attention.
      WRONG("GroupNormGroups", groupNorm(t.image, 4, t.channels, t.channels), "groupNorm: ", "6", "4"),
      WRONG("GroupNormNone", groupNorm(t.image, 0, t.channels, t.channels), "groupNorm: ", "in 0 groups"),
      WRONG("GroupNormGamma", groupNorm(t.image, 2, t.v, t.v), "groupNorm: ", "[8]"),
      WRONG("InstanceNormRank", instanceNorm(t.v, t.v, t.v), "instanceNorm: ", "f32 [8]"),
      WRONG("RmsNormGamma", rmsNorm(t.f, t.channels), "rmsNorm: ", "6xf32", "4x8xf32"),
      WRONG("RmsNormEpsilon", rmsNorm(t.f, t.v, -1), "rmsNorm: epsilon = -1; give a number from 0"),
      WRONG("RotaryOdd", rotary(t.odd, t.g.full({5, 3}, 1), t.g.full({5, 3}, 1)), "rotary: ", "7"),
      WRONG("RotaryTables", rotary(t.q, t.g.full({5, 3}, 1), t.g.full({5, 3}, 1)), "rotary: ", "5x3xf32"),
      WRONG("RotaryTablesOdd", rotaryTables(t.g, 5, 7), "rotaryTables: ", "7"),
      WRONG("RotaryTablesRows", rotaryTables(t.g, 0, 8), "rotaryTables: ", "0"),
      WRONG("RotaryTablesBase", rotaryTables(t.g, 5, 8, -1), "rotaryTables: ", "base -1", "a positive base"),
      WRONG("MaskOfFloats", scaledDotProductAttention(t.q, t.q, t.q, {.mask = t.g.full({5, 5}, 1)}),
            "scaledDotProductAttention: ", "mask is f32 [5, 5]", "weft::compare"),
      WRONG("MaskShape", scaledDotProductAttention(t.q, t.q, t.q, {.mask = t.g.full({5, 4}, 1, kBool)}),
            "scaledDotProductAttention: "),
      WRONG("BiasShape", scaledDotProductAttention(t.q, t.q, t.q, {.bias = t.g.full({3, 5, 5}, 1)}),
            "scaledDotProductAttention: "),
      WRONG("SharedHeads", scaledDotProductAttention(t.q, t.g.full({2, 3, 5, 8}, 1), t.g.full({2, 3, 5, 8}, 1)),
            "scaledDotProductAttention: ", "heads"),
      WRONG("KeyWidth", scaledDotProductAttention(t.q, t.g.full({2, 4, 5, 6}, 1), t.g.full({2, 4, 5, 6}, 1)),
            "scaledDotProductAttention: "),
      WRONG("ValueRows", scaledDotProductAttention(t.q, t.q, t.g.full({2, 4, 6, 8}, 1)), "scaledDotProductAttention: "),
      // Losses.
      WRONG("SmoothingNegative", crossEntropy(t.f, t.ids, {.labelSmoothing = -0.1}), "crossEntropy: labelSmoothing"),
      WRONG("LossOfScalar", softmaxCrossEntropy(t.scalar, t.ids), "softmaxCrossEntropy: "),
      WRONG("PositiveWeight", bceWithLogits(t.f, t.f, {.positiveWeight = -2}), "bceWithLogits: positiveWeight = -2"),
      WRONG("CosineEpsilon", cosineSimilarity(t.f, t.f, 1, kNan), "cosineSimilarity: epsilon = nan"),
      WRONG("KlShapes", klDivergence(t.f, t.v), "klDivergence: ", "f32 [4, 8]", "f32 [8]"),
      WRONG("RateOne", dropout(t.f, 1.0), "dropout: ", "1", "[0, 1)"),
      WRONG("RateNegative", dropout(t.f, -0.5), "dropout: ", "-0.5", "[0, 1)"),
      // Indices, sorting, sums along a dimension.
      WRONG("OneHotType", oneHot(t.ids, 4, kBool) + 1, "bool"),
      WRONG("TopKZero", topK(t.f, 0), "topK: k = 0", "1 to 8"),
      WRONG("SortBools", sort(t.b), "sort: ", "bool [4, 8]"),
      WRONG("SortScalar", sort(t.scalar), "sort: ", "f32 []"),
      WRONG("ArgmaxScalar", argmax(t.scalar, 0), "argmax: ", "f32 []"),
      WRONG("CumsumScalar", cumsum(t.scalar, 0), "cumsum: ", "f32 []"),
      WRONG("GatherRank", gather(t.f, 0, t.g.full({2, 4, 8}, 0, kI32)), "gather: "),
      WRONG("ScatterDim", scatterAdd(t.f, 2, t.i, t.f), "scatterAdd: ", "dimension 2"),
      WRONG("TakeFloats", take(t.f, t.v), "take: ", "indices"),
      WRONG("ProdBools", prod(t.b), "prod: ", "bool [4, 8]"),
      WRONG("LengthMaskSize", lengthMask(t.ids, 0), "lengthMask: ", "0"),
      // Shapes.
      WRONG("StackNothing", add(stack({}), t.f), "add: operand a belongs to no graph"),
      WRONG("ConcatNothing", add(t.f, concat({}, 0)), "add: operand b belongs to no graph"),
      WRONG("SplitZero", split(t.f, {0, 8}, 1), "split: ", "[0, 8]"),
      WRONG("ChunkZero", chunk(t.f, 0, 1), "chunk: parts = 0"),
      WRONG("NarrowNegative", narrow(t.f, 1, -1, 2), "narrow: start = -1"),
      WRONG("SqueezeTwice", squeeze(t.g.full({1, 4}, 1), {0, 0}), "squeeze: ", "[0, 0]"),
      WRONG("FlattenDim", flatten(t.f, 0, 5), "flatten: ", "5"),
      WRONG("ExpandFewer", expand(t.f, {8}), "expand: ", "4x8xf32"),
      WRONG("TileNegative", tile(t.f, {1, -2}), "tile: a number of times = -2"),
      WRONG("RepeatDim", repeat(t.f, 2, 7), "repeat: ", "dimension 7"),
      WRONG("TrilScalar", tril(t.scalar), "tril: ", "f32 []"),
      WRONG("EinsumMissing", einsum("ab,bc->ac", {t.f, t.w, t.w}), "einsum: ", "2 operands, 3 are given"),
      WRONG("EinsumDiagonal", einsum("aa->a", {t.f}), "einsum: ", "'a'"),
      WRONG("EinsumCapital", einsum("a!,!b->ab", t.f, t.w), "einsum: ", "'!'"),
      WRONG("ConstantCount", t.g.constant({2, 2}, {1, 2, 3}), "constant: 3 values", "4 elements"),
      WRONG("ConstantNan", t.g.constant({1}, {kNan}), "constant: nan"),
      WRONG("ConstantBool", t.g.constant({1}, {2}, kBool), "constant: 2"),
      WRONG("IotaNegative", t.g.iota({2}, -2), "iota: "),
      // States, constraints and modules.
      WRONG("AssignResult", t.g.assign(t.v + 1, t.v), "assign: the value of an operator is no state and no parameter"),
      WRONG("AssignShape", t.g.assign(t.moving, t.channels), "assign: state 'moving' is f32 [8]", "f32 [6]"),
      WRONG("AssignTwice", (t.g.assign(t.moving, t.v), t.g.assign(t.moving, t.v)), "'moving' is replaced twice"),
      WRONG("GroupNormModule", nn::GroupNorm(t.g, "n", 4, 6)(t.image), "nn::GroupNorm: groupNorm: ", "4"),
      WRONG("RmsNormModule", nn::RmsNorm(t.g, "n", 6)(t.f), "nn::RmsNorm: rmsNorm: ", "6xf32"),
      WRONG("ConvModuleGroups", nn::Conv2d(t.g, "c", 6, 4, 3, {.groups = 4})(t.image), "4"),
      WRONG("SplitHeads", nn::splitHeads(t.line, 3), "splitHeads: ", "f32 [4, 6, 8]", "heads 3"),
      WRONG("CacheRows", nn::KeyValueCache(t.g, "cache", {2, 4, 6, 8})(t.q, t.q, nn::decodingAt(t.g, 6)),
            "[2, 4, 5, 8]"),
      // Tables of strategies.
      WRONG("TablePattern", (matmul(t.f, t.w).named("fc"), t.g.shard({{"fx", {{"dp", ""}}}})), "no operator fits 'fx'",
            "the nearest is 'fc'"),
      WRONG("TableLists", (matmul(t.f, t.w).named("fc"), t.g.shard({{"fc", {{2, 1}, {1, 1}, {1, 1}}}})),
            "3 operands, the operator 2", "row 'fc' of the table"),
      WRONG("TableEntries", (matmul(t.f, t.w).named("fc"), t.g.shard({{"fc", {{2, 1, 1}, {1, 1}}}})),
            "3 entries, the tensor 2 dimensions", "row 'fc' of the table"),
      WRONG("TableMixed", (matmul(t.f, t.w).named("fc"), t.g.shard({{"fc", {{2, 1}, {"", "tp"}}}})),
            "mixes numbers of parts and axis names"),
      WRONG("TableParts", (matmul(t.f, t.w).named("fc"), t.g.shard({{"f*", {{0, 1}, {1, 1}}}})), "0 parts"),
  };
  return uses;
}

class WrongOperatorTest : public ::testing::TestWithParam<WrongUse> {};

TEST_P(WrongOperatorTest, IsNamedAtItsLine) {
  Tensors tensors;
  GetParam().use(tensors);
  const std::string message(tensors.g.status().message());
  EXPECT_THAT(message, HasSubstr("wrong_inputs_test.cc:" + std::to_string(GetParam().line) + ": error: "));
  for (const std::string& part : GetParam().says) {
    EXPECT_THAT(message, HasSubstr(part));
  }
  EXPECT_THAT(message, Not(HasSubstr("nn.")));
}

INSTANTIATE_TEST_SUITE_P(Wrong, WrongOperatorTest, ::testing::ValuesIn(wrongOperators()),
                         [](const auto& info) { return std::string(info.param.name); });

// Of the rows that fit an operator's name the last one is its strategy.
TEST(WrongTableTest, TheLastRowThatFitsCounts) {
  const auto layoutOf = [](const ShardingTable& table) {
    Graph g;
    const Tensor y = matmul(g.input("x", {4, 8}), g.parameter("w", {8, 6})).named("fc");
    g.shard(table);
    const absl::StatusOr<Program> program = compile(g, mean(y), optim::Sgd{}, {.mesh = "dp=2"});
    EXPECT_TRUE(program.ok()) << program.status();
    return parameterLayouts(*program).front().second;
  };
  const ShardingRule columns = {"f*", {{"", ""}, {"", "dp"}}};
  const ShardingRule rows = {"fc", {{"", "dp"}, {"dp", ""}}};
  EXPECT_EQ(layoutOf({columns, rows}).substr(0, 9), "[{dp},{}]");
  EXPECT_EQ(layoutOf({rows, columns}).substr(0, 9), "[{},{dp}]");
}

// What only the mesh shows.
TEST(WrongTableTest, AxesAndSizes) {
  const auto error = [](const TensorSplits& first, const TensorSplits& second, const std::string& mesh) {
    Graph g;
    const Tensor x = g.input("x", {4, 8});
    const Tensor y = matmul(x, g.parameter("w", {8, 6})).named("fc");
    g.shard({{"fc", {first, second}}});
    return std::string(compile(g, mean(y), optim::Sgd{}, {.mesh = mesh}).status().message());
  };
  EXPECT_THAT(error({"", "pt"}, {"pt", ""}, "dp=2,tp=2"),
              HasSubstr("unknown axis 'pt'; the mesh dp=2,tp=2 has: dp, tp"));
  EXPECT_THAT(error({"", "tp"}, {"dp", ""}, "dp=2,tp=2"), HasSubstr("write the same axes in both"));
  EXPECT_THAT(error({1, 1}, {1, 4}, "dp=4"), HasSubstr("nearest legal split"));
  EXPECT_THAT(error({4, 4}, {4, 1}, "dp=4"), HasSubstr("16"));
}

//===-- Files --===//

struct WrongFile {
  const char* name;
  std::string header;
  size_t dataBytes;
  std::vector<std::string> says;
};

void PrintTo(const WrongFile& wrong, std::ostream* out) {
  *out << wrong.name;
}

// "fc.weight" of f32 [2, 3] at the bytes 0 to 24, and another tensor.
std::string header(const std::string& other) {
  return R"({"fc.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)" + other + "}";
}

const std::vector<WrongFile>& wrongFiles() {
  static const std::vector<WrongFile> files = {
      {"Overlap",
       header(R"("fc.bias":{"dtype":"F32","shape":[3],"data_offsets":[12,24]})"),
       24,
       {"'fc.bias' begins at data byte 12", "ends at 24", "overlap"}},
      {"Hole",
       header(R"("fc.bias":{"dtype":"F32","shape":[3],"data_offsets":[28,40]})"),
       40,
       {"'fc.bias' begins at data byte 28", "ends at 24", "hole"}},
      {"Cut",
       header(R"("fc.bias":{"dtype":"F32","shape":[3],"data_offsets":[24,36]})"),
       30,
       {"end at data byte 36, the file at 30", "truncated"}},
      {"Tail", header(R"("fc.bias":{"dtype":"F32","shape":[3],"data_offsets":[24,36]})"), 40, {"36, the file at 40"}},
      {"Twice",
       header(R"("fc.weight":{"dtype":"F32","shape":[3],"data_offsets":[24,36]})"),
       36,
       {"names 'fc.weight' twice"}},
      {"Offsets",
       header(R"("fc.bias":{"dtype":"F32","shape":[4],"data_offsets":[24,36]})"),
       36,
       {"'fc.bias' of F32 [4] needs 16 bytes, its data_offsets are [24,36]"}},
      {"Turned", header(R"("fc.bias":{"dtype":"F32","shape":[3],"data_offsets":[36,24]})"), 36, {"[36,24]"}},
      {"Type", header(R"("fc.bias":{"dtype":"F31","shape":[3],"data_offsets":[24,36]})"), 36, {"unknown dtype 'F31'"}},
      {"Float8", header(R"("fc.bias":{"dtype":"F8_E4M3","shape":[3],"data_offsets":[24,27]})"), 27, {"'fc.bias'"}},
      {"Negative", header(R"("fc.bias":{"dtype":"F32","shape":[-3],"data_offsets":[24,36]})"), 36, {"fc.bias"}},
      {"Lacks", header(R"("fc.bias":{"dtype":"F32","data_offsets":[24,36]})"), 36, {"'fc.bias' lacks dtype, shape"}},
      {"Missing",
       R"({"fc.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})",
       24,
       {"lacks 'fc.bias'", "nearest: 'fc.weight'"}},
      {"Surplus",
       header(R"("fc.bias":{"dtype":"F32","shape":[3],"data_offsets":[24,36]},
                 "fc.scale":{"dtype":"F32","shape":[1],"data_offsets":[36,40]})"),
       40,
       {"does not have 'fc.scale'"}},
      {"Misshaped",
       header(R"("fc.bias":{"dtype":"F32","shape":[1,3],"data_offsets":[24,36]})"),
       36,
       {"'fc.bias' is [1, 3] in the file, [3] in the model"}},
      {"Bools",
       header(R"("fc.bias":{"dtype":"BOOL","shape":[3],"data_offsets":[24,27]})"),
       27,
       {"'fc.bias' has element type bool in the file"}},
  };
  return files;
}

// y = x fc + bias, fc [2, 3].
class WrongWeightsTest : public ::testing::TestWithParam<WrongFile> {
 protected:
  void SetUp() override {
    const absl::StatusOr<Program> program =
        compile(g_, mean(nn::Linear(g_, "fc", 2, 3)(g_.input("x", {4, 2}))), optim::Sgd{.lr = 0.1});
    ASSERT_TRUE(program.ok()) << program.status();
    trainer_ = std::make_unique<Trainer>(*program);
  }

  Graph g_;
  testing::TemporaryDirectory folder_;
  std::unique_ptr<Trainer> trainer_;
  const WeightNames kNames = {{{"fc.weight", "fc.weight"}, {"fc.bias", "fc.bias"}}};
};

TEST_P(WrongWeightsTest, IsNamedWithTheTensor) {
  const std::string path = folder_ / "wrong.safetensors";
  const uint64_t length = GetParam().header.size();
  std::string bytes(sizeof(length), '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  ASSERT_TRUE(writeFile(path, bytes + GetParam().header + std::string(GetParam().dataBytes, '\1')).ok());
  const std::string message(trainer_->loadWeights(path, kNames).message());
  EXPECT_THAT(message, HasSubstr("wrong.safetensors: "));
  for (const std::string& part : GetParam().says) {
    EXPECT_THAT(message, HasSubstr(part));
  }
}

INSTANTIATE_TEST_SUITE_P(Wrong, WrongWeightsTest, ::testing::ValuesIn(wrongFiles()),
                         [](const auto& info) { return std::string(info.param.name); });

struct WrongConfig {
  const char* name;
  const char* model;  // "llama", "bert", "gpt2", "t5"
  std::string from;   // of the right file
  std::string to;
  std::string says;
};

void PrintTo(const WrongConfig& wrong, std::ostream* out) {
  *out << wrong.name;
}

std::string rightConfig(const std::string& model) {
  const std::string sizes = R"("vocab_size": 96, "initializer_range": 0.02, )";
  if (model == "llama" || model == "bert") {
    return absl::StrCat(R"({"model_type": ")", model, R"(", )", sizes,
                        R"("hidden_size": 32, "intermediate_size": 80, "num_hidden_layers": 2, )",
                        R"("num_attention_heads": 4, "max_position_embeddings": 16})");
  }
  if (model == "gpt2") {
    return absl::StrCat(R"({"model_type": "gpt2", )", sizes,
                        R"("n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 16, "layer_norm_epsilon": 1e-5})");
  }
  return absl::StrCat(R"({"model_type": "t5", )", sizes, R"("d_model": 32, "d_ff": 64, "num_layers": 2, )",
                      R"("num_heads": 4, "d_kv": 8, "relative_attention_num_buckets": 32, "dropout_rate": 0.1})");
}

const std::vector<WrongConfig>& wrongConfigs() {
  static const std::vector<WrongConfig> configs = {
      {"NoJson", "bert", "{", "{,", "config.json: "},
      {"AnotherModel", "bert", "\"bert\"", "\"roberta\"", "model_type is 'roberta'; this reads 'bert'"},
      {"AnotherGpt", "gpt2", "\"gpt2\"", "\"gpt_neo\"", "model_type is 'gpt_neo'; this reads 'gpt2'"},
      {"NoType", "t5", "\"model_type\"", "\"kind\"", "model_type is ''; this reads 't5'"},
      {"NoWidth", "gpt2", "n_embd", "n_embed", "there is no 'n_embd'"},
      {"NoHeads", "llama", "num_attention_heads", "num_heads", "there is no 'num_attention_heads'"},
      {"NoKeyWidth", "t5", "d_kv", "d_k", "there is no 'd_kv'"},
      {"WidthText", "bert", "\"hidden_size\": 32", "\"hidden_size\": \"32\"", "hidden_size: found \"32\""},
      {"LayersFraction", "gpt2", "\"n_layer\": 2", "\"n_layer\": 2.5", "n_layer: found 2.5"},
      {"LayersNone", "llama", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 0", "num_hidden_layers: found 0"},
      {"RateText", "t5", "\"dropout_rate\": 0.1", "\"dropout_rate\": \"a\"", "dropout_rate: found \"a\""},
      {"Activation", "bert", "\"hidden_size\"", "\"hidden_act\": \"relu\", \"hidden_size\"", "hidden_act is 'relu'"},
      {"ActivationOfGpt", "gpt2", "\"n_embd\"", "\"activation_function\": \"swish\", \"n_embd\"",
       "activation_function is 'swish'"},
      {"FeedForward", "t5", "\"d_ff\"", "\"feed_forward_proj\": \"gated-silu\", \"d_ff\"",
       "feed_forward_proj is 'gated-silu'"},
      {"Positions", "bert", "\"hidden_size\"", "\"position_embedding_type\": \"relative_key\", \"hidden_size\"",
       "position_embedding_type is 'relative_key'"},
      {"Heads", "bert", "\"num_attention_heads\": 4", "\"num_attention_heads\": 5",
       "hidden_size is 32, no multiple of num_attention_heads, 5"},
      {"HeadsOfGpt", "gpt2", "\"n_head\": 4", "\"n_head\": 3", "n_embd is 32, no multiple of n_head, 3"},
      {"HeadsOfLlama", "llama", "\"num_attention_heads\": 4", "\"num_attention_heads\": 5",
       "hidden_size is 32, no multiple of num_attention_heads, 5"},
      {"KeyHeads", "llama", "\"hidden_size\"", "\"num_key_value_heads\": 3, \"hidden_size\"",
       "num_attention_heads is 4, no multiple of num_key_value_heads, 3"},
      {"HeadWidth", "llama", "\"hidden_size\"", "\"head_dim\": 7, \"hidden_size\"", "head_dim is 7"},
      {"Epsilon", "gpt2", "\"layer_norm_epsilon\": 1e-5", "\"layer_norm_epsilon\": -1", "layer_norm_epsilon: found -1"},
      {"Rate", "t5", "\"dropout_rate\": 0.1", "\"dropout_rate\": 1.5", "dropout_rate: found 1.5"},
  };
  return configs;
}

class WrongConfigTest : public ::testing::TestWithParam<WrongConfig> {
 protected:
  static absl::Status read(const std::string& model, const std::string& path) {
    return model == "llama"  ? models::readLlamaConfig(path).status()
           : model == "bert" ? models::readBertConfig(path).status()
           : model == "gpt2" ? models::readGpt2Config(path).status()
                             : models::readT5Config(path).status();
  }
};

TEST_P(WrongConfigTest, IsNamedWithTheEntry) {
  const testing::TemporaryDirectory folder;
  const std::string path = folder / "config.json";
  std::string text = rightConfig(GetParam().model);
  ASSERT_TRUE(writeFile(path, text).ok());
  const absl::Status right = read(GetParam().model, path);
  ASSERT_TRUE(right.ok()) << right;
  const size_t at = text.find(GetParam().from);
  ASSERT_NE(at, std::string::npos);
  text.replace(at, GetParam().from.size(), GetParam().to);
  ASSERT_TRUE(writeFile(path, text).ok());
  const std::string message(read(GetParam().model, path).message());
  EXPECT_THAT(message, HasSubstr("config.json: "));
  EXPECT_THAT(message, HasSubstr(GetParam().says));
}

INSTANTIATE_TEST_SUITE_P(Wrong, WrongConfigTest, ::testing::ValuesIn(wrongConfigs()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace weft
