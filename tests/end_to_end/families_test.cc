// The model families against Hugging Face's library: config.json and weights read, logits, first loss and every
// gradient (data/hf, float64), on one rank, split over a mesh and in pipeline stages; written back, every tensor as it
// was.
//
// Bound: 1e-5 of a tensor's largest element. In f64 they agree to about 1e-7, the rounding of the f32 file.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "runtime/base/float_types.h"
#include "runtime/io/safetensors.h"
#include "tests/support/data.h"
#include "weft/models/all.h"
#include "weft/weft.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

constexpr double kBound = 1e-5;

// A way to run a family.
struct Way {
  std::string name;
  std::string mesh;
  nn::Parallel parallel = {};
  int64_t stages = 1;
  int64_t micro = 1;
  int zero = 0;
};

std::vector<Way> ways() {
  return {
      {"one", "1"},
      {"dp2_tp2", "dp=2,tp=2", {.data = "dp", .model = "tp"}},
      {"dp2_tp2_sequence_zero3", "dp=2,tp=2", {.data = "dp", .model = "tp", .sequence = true}, 1, 1, 3},
      {"stages2_micro3", "1", {}, 2, 3},
      {"stages2_tp2", "tp=2", {.data = "", .model = "tp"}, 2, 1},
  };
}

// What is fed beside the weights, and what belongs to one family.
struct Built {
  Tensor logits;
  Tensor labels;
  ShardingTable sharding;
  WeightNames names;
};

std::string folderOf(const std::string& family) {
  return tests::dataDirectory() + "/hf/" + family;
}

Tensor integers(Graph& g, const std::string& name, const Shape& shape) {
  return g.input(name, shape, kI32);
}

Built buildLlama(Graph& g, Way way) {
  models::LlamaConfig config = *models::readLlamaConfig(folderOf("llama"));
  config.stages = way.stages;
  const Tensor logits = models::llama(g, config, integers(g, "input_ids", {3, 12}));
  return {logits, integers(g, "labels", {3, 12}), models::llamaSharding(config, way.parallel),
          models::llamaWeights(config)};
}

Built buildGpt2(Graph& g, Way way) {
  models::Gpt2Config config = *models::readGpt2Config(folderOf("gpt2"));
  config.stages = way.stages;
  const Tensor logits = models::gpt2(g, config, integers(g, "input_ids", {3, 12}));
  return {logits, integers(g, "labels", {3, 12}), models::gpt2Sharding(config, way.parallel),
          models::gpt2Weights(config)};
}

Built buildBert(Graph& g, Way way) {
  models::BertConfig config = *models::readBertConfig(folderOf("bert"));
  config.stages = way.stages;
  const Tensor logits = models::bert(g, config,
                                     {.ids = integers(g, "input_ids", {3, 12}),
                                      .tokenTypes = integers(g, "token_type_ids", {3, 12}),
                                      .mask = integers(g, "attention_mask", {3, 12})});
  return {logits, integers(g, "labels", {3, 12}), models::bertSharding(way.parallel), models::bertWeights(config)};
}

// The nine rows of the decoder do not divide: no sequence parallelism.
Built buildT5(Graph& g, Way way) {
  way.parallel.sequence = false;
  models::T5Config config = *models::readT5Config(folderOf("t5"));
  config.stages = way.stages;
  const Tensor logits = models::t5(g, config,
                                   {.ids = integers(g, "input_ids", {3, 12}),
                                    .mask = integers(g, "attention_mask", {3, 12}),
                                    .decoderIds = integers(g, "decoder_input_ids", {3, 9})});
  return {logits, integers(g, "labels", {3, 9}), models::t5Sharding(config, way.parallel), models::t5Weights(config)};
}

struct Family {
  std::string name;
  Built (*build)(Graph&, Way);
  bool causal = false;  // position t learns the label of t + 1

  friend void PrintTo(const Family& shown, std::ostream* out) { *out << shown.name; }
};

std::vector<double> doubles(const std::vector<char>& bytes, DType from) {
  const std::vector<char> wide = convertFloats(bytes, from, DType::kF64);
  std::vector<double> values(wide.size() / sizeof(double));
  std::memcpy(values.data(), wide.data(), wide.size());
  return values;
}

std::vector<int32_t> ids(const std::vector<char>& bytes) {
  std::vector<int32_t> values(bytes.size() / sizeof(int32_t));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// The greatest difference, relative to the greatest expected value.
double error(const std::vector<double>& found, const std::vector<double>& expected) {
  EXPECT_EQ(found.size(), expected.size());
  double most = 0;
  // A gradient that is zero (that of a key's bias: it moves all scores of a row alike) is rounding in both.
  double greatest = 1e-9;
  for (size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
    most = std::max(most, std::abs(found[i] - expected[i]));
    greatest = std::max(greatest, std::abs(expected[i]));
    if (std::isnan(found[i])) {
      return std::nan("");
    }
  }
  return most / greatest;
}

std::vector<double> transposed(const std::vector<double>& x, int64_t rows, int64_t columns) {
  std::vector<double> y(x.size());
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      y[c * rows + r] = x[r * columns + c];
    }
  }
  return y;
}

class FamilyTest : public ::testing::TestWithParam<std::tuple<Family, size_t>> {
 protected:
  void SetUp() override { WEFT_REQUIRE_DATA("hf/README.md"); }

  std::string file(const std::string& name) const { return folderOf(family().name) + "/" + name; }
  const Family& family() const { return std::get<0>(GetParam()); }
  Way way() const { return ways()[std::get<1>(GetParam())]; }

  absl::StatusOr<Program> compileIn(Type type, bool training) {
    g_.setParameterType(type);
    built_ = family().build(g_, way());
    if (way().parallel.any()) {
      g_.shard(built_.sharding);
    }
    const Tensor loss = meanValid(softmaxCrossEntropy(built_.logits, built_.labels), built_.labels);
    CompileOptions options;
    options.mesh = way().mesh;
    if (!training) {
      g_.output("logits", built_.logits);
      return compileForward(g_, loss, options);
    }
    options.micro = way().micro;
    options.zero = way().zero;
    options.gradientOutputs = true;
    return compile(g_, loss, optim::Sgd{.lr = 0.1}, options);
  }

  // All inputs, as the library's files have them; causal models get the labels one row earlier.
  void feed(Executor& executor) {
    const SafetensorsFile expected = *SafetensorsFile::open(file("expected.safetensors"));
    for (const auto& [name, entry] : expected.entries()) {
      if (name.rfind("input.", 0) != 0) {
        continue;
      }
      const std::string input = name.substr(6);
      std::vector<int32_t> values = ids(*expected.read(name));
      if (input == "labels" && family().causal) {
        values = shifted(values, entry.shape[1], -1);
      }
      write(executor, input, values);
      if (input == "labels" && executor.findTensor("decoder_input_ids") != nullptr) {
        write(executor, "decoder_input_ids", shifted(values, entry.shape[1], 1));
      }
    }
  }

  Graph g_;
  Built built_;

 private:
  static void write(Executor& executor, const std::string& name, const std::vector<int32_t>& values) {
    const absl::Status written = executor.writeTensor(name, values.data(), values.size() * sizeof(int32_t));
    ASSERT_TRUE(written.ok()) << written;
  }
  // Each row moved: to the left with -100 behind, or to the right behind a 0, where -100 becomes 0, too.
  static std::vector<int32_t> shifted(const std::vector<int32_t>& x, int64_t width, int64_t by) {
    std::vector<int32_t> y(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      const int64_t column = static_cast<int64_t>(i) % width;
      if (by < 0) {
        y[i] = column + 1 < width ? x[i + 1] : -100;
      } else {
        y[i] = column == 0 ? 0 : std::max(x[i - 1], 0);
      }
    }
    return y;
  }
};

TEST_P(FamilyTest, LossAndGradients) {
  const absl::StatusOr<Program> program = compileIn(kF64, true);
  ASSERT_TRUE(program.ok()) << program.status();
  Trainer trainer(*program);
  ASSERT_TRUE(trainer.status().ok()) << trainer.status();
  const absl::Status loaded = trainer.loadWeights(folderOf(family().name), built_.names);
  ASSERT_TRUE(loaded.ok()) << loaded;
  feed(trainer.executor());
  const absl::Status ran = trainer.executor().runStep();
  ASSERT_TRUE(ran.ok()) << ran;
  const SafetensorsFile expected = *SafetensorsFile::open(file("expected.safetensors"));
  const double loss = doubles(*expected.read("loss"), expected.entries().at("loss").type)[0];
  EXPECT_NEAR(*trainer.executor().readScalar("loss"), loss, kBound * loss);
  for (const WeightName& weight : built_.names.weights) {
    const std::string name = "grad." + weight.file;
    ASSERT_EQ(expected.entries().count(name), 1u) << name;
    const std::vector<int64_t>& shape = expected.entries().at(name).shape;
    std::vector<double> gradient = doubles(*expected.read(name), DType::kF64);
    if (weight.transposed) {
      gradient = transposed(gradient, shape[0], shape[1]);
    }
    const auto found = trainer.executor().readTensor("grad." + weight.parameter);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_LT(error(doubles(*found, DType::kF64), gradient), kBound) << weight.parameter;
  }
}

TEST_P(FamilyTest, Logits) {
  const absl::StatusOr<Program> program = compileIn(kF32, false);
  ASSERT_TRUE(program.ok()) << program.status();
  Trainer trainer(*program);
  ASSERT_TRUE(trainer.status().ok()) << trainer.status();
  const absl::Status loaded = trainer.loadWeights(folderOf(family().name), built_.names);
  ASSERT_TRUE(loaded.ok()) << loaded;
  feed(trainer.executor());
  const absl::Status ran = trainer.executor().runStep();
  ASSERT_TRUE(ran.ok()) << ran;
  const SafetensorsFile expected = *SafetensorsFile::open(file("expected.safetensors"));
  const std::vector<double> logits = doubles(*trainer.executor().readTensor("logits"), DType::kF32);
  EXPECT_LT(error(logits, doubles(*expected.read("logits"), DType::kF64)), kBound);
}

// Under their own names, every tensor as it was, to the bit.
TEST_P(FamilyTest, WeightsComeBack) {
  const absl::StatusOr<Program> program = compileIn(kF32, true);
  ASSERT_TRUE(program.ok()) << program.status();
  Trainer trainer(*program);
  ASSERT_TRUE(trainer.loadWeights(folderOf(family().name), built_.names).ok());
  const std::string copy =
      ::testing::TempDir() + "families_" + family().name + std::to_string(std::get<1>(GetParam())) + ".safetensors";
  const absl::Status saved = trainer.saveWeights(copy, built_.names);
  ASSERT_TRUE(saved.ok()) << saved;
  const SafetensorsFile theirs = *SafetensorsFile::open(file("model.safetensors"));
  const SafetensorsFile ours = *SafetensorsFile::open(copy);
  EXPECT_EQ(ours.entries().size(), theirs.entries().size());
  for (const auto& [name, entry] : theirs.entries()) {
    ASSERT_EQ(ours.entries().count(name), 1u) << name;
    EXPECT_EQ(ours.entries().at(name).shape, entry.shape) << name;
    EXPECT_EQ(*ours.read(name), *theirs.read(name)) << name;
  }
  std::filesystem::remove(copy);
}

std::vector<Family> families() {
  return {{"llama", buildLlama, true}, {"gpt2", buildGpt2, true}, {"bert", buildBert}, {"t5", buildT5}};
}

INSTANTIATE_TEST_SUITE_P(Families, FamilyTest,
                         ::testing::Combine(::testing::ValuesIn(families()),
                                            ::testing::Range<size_t>(0, ways().size())),
                         [](const auto& info) {
                           return std::get<0>(info.param).name + "_" + ways()[std::get<1>(info.param)].name;
                         });

}  // namespace
}  // namespace weft
