// What the families of models make of their configs: dropout where the papers have it and nowhere in programs that are
// evaluated or generate, biases, heads of their own, names for all of their parameters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "absl/strings/str_cat.h"
#include "runtime/base/file_writer.h"
#include "tests/support/files.h"
#include "weft/models/all.h"
#include "weft/weft.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::UnorderedElementsAreArray;

constexpr int64_t kBatch = 2;
constexpr int64_t kRows = 4;

Tensor ids(Graph& g, const std::string& name = "x", int64_t rows = kRows) {
  return g.input(name, {kBatch, rows}, kI32);
}

models::Gpt2Config smallGpt2() {
  return {.vocabulary = 11, .width = 8, .hidden = 16, .layers = 2, .heads = 2, .positions = 8};
}
models::LlamaConfig smallLlama() {
  return {.vocabulary = 11, .width = 8, .hidden = 16, .layers = 2, .heads = 2, .keyHeads = 1, .headWidth = 4};
}
models::BertConfig smallBert() {
  return {.vocabulary = 11, .width = 8, .hidden = 16, .layers = 2, .heads = 2, .positions = 8};
}
models::T5Config smallT5() {
  return {.vocabulary = 11, .width = 8, .hidden = 16, .layers = 2, .decoderLayers = 2, .heads = 2, .headWidth = 4};
}

Tensor bert(Graph& g, const models::BertConfig& config) {
  return models::bert(g, config, {.ids = ids(g), .tokenTypes = ids(g, "types"), .mask = ids(g, "mask")});
}
Tensor t5(Graph& g, const models::T5Config& config) {
  return models::t5(g, config, {.ids = ids(g), .mask = ids(g, "mask"), .decoderIds = ids(g, "decoder")});
}

// Rates of the dropout operators of a model, as the printed module has them.
std::vector<std::string> ratesOf(const std::function<void(Graph&)>& build) {
  Graph g;
  build(g);
  EXPECT_TRUE(g.status().ok()) << g.status();
  std::vector<std::string> rates;
  const std::string text = g.print();
  for (size_t at = text.find("= nn.dropout "); at != std::string::npos; at = text.find("= nn.dropout ", at + 1)) {
    const size_t rate = text.find("rate = ", at) + 7;
    rates.push_back(text.substr(rate, text.find_first_of(" ,}", rate) - rate));
  }
  return rates;
}

// Each text so many times.
std::vector<std::string> times(const std::vector<std::pair<std::string, int>>& counts) {
  std::vector<std::string> all;
  for (const auto& [text, count] : counts) {
    all.insert(all.end(), count, text);
  }
  return all;
}

TEST(ModelDropoutTest, Gpt2) {
  models::Gpt2Config config = smallGpt2();
  config.embeddingDropout = 0.125;
  config.attentionDropout = 0.25;
  config.residualDropout = 0.5;
  const auto whole = [&](Graph& g) { models::gpt2(g, config, ids(g)); };
  // The embedding; the softmax of each layer; what attention and mlp of each layer add.
  EXPECT_THAT(ratesOf(whole),
              UnorderedElementsAreArray(times({{"1.250000e-01", 1}, {"2.500000e-01", 2}, {"5.000000e-01", 4}})));
  EXPECT_THAT(ratesOf([&](Graph& g) { models::gpt2Step(g, config, ids(g, "x", 1), nn::decodingAt(g, kRows)); }),
              IsEmpty());
  config.training = false;
  EXPECT_THAT(ratesOf(whole), IsEmpty());
}

TEST(ModelDropoutTest, Llama) {
  models::LlamaConfig config = smallLlama();
  config.attentionDropout = 0.25;
  const auto whole = [&](Graph& g) { models::llama(g, config, ids(g)); };
  EXPECT_THAT(ratesOf(whole), UnorderedElementsAreArray(times({{"2.500000e-01", 2}})));
  EXPECT_THAT(ratesOf([&](Graph& g) { models::llamaStep(g, config, ids(g, "x", 1), nn::decodingAt(g, kRows)); }),
              IsEmpty());
  config.training = false;
  EXPECT_THAT(ratesOf(whole), IsEmpty());
}

TEST(ModelDropoutTest, Bert) {
  models::BertConfig config = smallBert();
  config.dropout = 0.125;
  config.attentionDropout = 0.25;
  const auto whole = [&](Graph& g) { bert(g, config); };
  EXPECT_THAT(ratesOf(whole), UnorderedElementsAreArray(times({{"1.250000e-01", 5}, {"2.500000e-01", 2}})));
  config.training = false;
  EXPECT_THAT(ratesOf(whole), IsEmpty());
}

// Encoder and decoder: embedding, last norm; of each attention the softmax and what it adds; twice in each mlp.
TEST(ModelDropoutTest, T5) {
  models::T5Config config = smallT5();
  config.dropout = 0.125;
  const auto whole = [&](Graph& g) { t5(g, config); };
  EXPECT_THAT(ratesOf(whole), UnorderedElementsAreArray(times({{"1.250000e-01", 2 + 2 * 4 + 2 + 2 * 6}})));
  config.training = false;
  EXPECT_THAT(ratesOf(whole), IsEmpty());
}

// A family with dropout wherever it has it, and its table.
struct Dropping {
  std::string name;
  std::function<Tensor(Graph&)> build;
  ShardingTable table;
};

std::vector<Dropping> droppingFamilies() {
  const nn::Parallel parallel = {.data = "dp", .model = "tp"};
  models::Gpt2Config gpt2 = smallGpt2();
  gpt2.embeddingDropout = gpt2.attentionDropout = gpt2.residualDropout = 0.3;
  models::LlamaConfig llama = smallLlama();
  llama.keyHeads = 2;
  llama.attentionDropout = 0.3;
  models::BertConfig bertConfig = smallBert();
  bertConfig.dropout = bertConfig.attentionDropout = 0.3;
  models::T5Config t5Config = smallT5();
  t5Config.dropout = 0.3;
  return {{"gpt2", [=](Graph& g) { return models::gpt2(g, gpt2, ids(g)); }, models::gpt2Sharding(gpt2, parallel)},
          {"llama", [=](Graph& g) { return models::llama(g, llama, ids(g)); }, models::llamaSharding(llama, parallel)},
          {"bert", [=](Graph& g) { return bert(g, bertConfig); }, models::bertSharding(parallel)},
          {"t5", [=](Graph& g) { return t5(g, t5Config); }, models::t5Sharding(t5Config, parallel)}};
}

// Losses of four steps; the mask hides the last row.
std::vector<double> lossesOf(const Dropping& family, const CompileOptions& options) {
  Graph g;
  const Tensor logits = family.build(g);
  if (!options.mesh.empty()) {
    g.shard(family.table);
  }
  const absl::StatusOr<Program> program = compile(g, mean(logits * logits), optim::Sgd{.lr = 0.1}, options);
  EXPECT_TRUE(program.ok()) << program.status();
  Trainer trainer(*program, {.progress = false});
  const absl::Status trained = trainer.fit(4, [&](int64_t step, Feed& feed) {
    for (const plan::NamedTensor& tensor : program->plan.tensors()) {
      if (tensor.kind() != plan::TENSOR_INPUT) {
        continue;
      }
      std::vector<int32_t> values(kBatch * kRows);
      for (size_t i = 0; i < values.size(); ++i) {
        const auto place = static_cast<int64_t>(i);
        values[i] = static_cast<int32_t>(tensor.name() == "mask"    ? (place % kRows + 1 < kRows ? 1 : 0)
                                         : tensor.name() == "types" ? place % 2
                                                                    : (3 * place + step) % 11);
      }
      feed.write(tensor.name(), values);
    }
  });
  EXPECT_TRUE(trained.ok()) << trained;
  return trainer.losses();
}

TEST(ModelDropoutTest, IsThatOfOneRank) {
  for (const Dropping& family : droppingFamilies()) {
    const std::vector<double> one = lossesOf(family, {});
    ASSERT_EQ(one.size(), 4u);
    for (const int64_t micro : {1, 2}) {
      const std::vector<double> split =
          lossesOf(family, {.mesh = micro == 1 ? "dp=2,tp=2" : "dp=1,tp=2", .micro = micro});
      ASSERT_EQ(split.size(), one.size());
      for (size_t i = 0; i < one.size(); ++i) {
        EXPECT_NEAR(split[i], one[i], 1e-5 * one[i]) << family.name << ", step " << i;  // f32 in another order
      }
    }
  }
}

class ConfigFileTest : public ::testing::Test {
 protected:
  std::string file(const std::string& text) {
    EXPECT_TRUE(writeFile(folder_ / "config.json", text).ok());
    return folder_ / "config.json";
  }
  testing::TemporaryDirectory folder_;
};

TEST_F(ConfigFileTest, RatesOfDropout) {
  const auto gpt2 = models::readGpt2Config(file(R"({"model_type": "gpt2", "vocab_size": 9, "n_embd": 8, "n_layer": 2,
      "n_head": 2, "n_positions": 8, "embd_pdrop": 0.2, "attn_pdrop": 0.3, "resid_pdrop": 0.4})"));
  ASSERT_TRUE(gpt2.ok()) << gpt2.status();
  EXPECT_EQ(gpt2->embeddingDropout, 0.2);
  EXPECT_EQ(gpt2->attentionDropout, 0.3);
  EXPECT_EQ(gpt2->residualDropout, 0.4);
  const auto bert = models::readBertConfig(file(R"({"model_type": "bert", "vocab_size": 9, "hidden_size": 8,
      "intermediate_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "max_position_embeddings": 8,
      "hidden_dropout_prob": 0.2, "attention_probs_dropout_prob": 0.3})"));
  ASSERT_TRUE(bert.ok()) << bert.status();
  EXPECT_EQ(bert->dropout, 0.2);
  EXPECT_EQ(bert->attentionDropout, 0.3);
  const auto llama = models::readLlamaConfig(file(R"({"model_type": "llama", "vocab_size": 9, "hidden_size": 8,
      "intermediate_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "attention_dropout": 0.3,
      "attention_bias": true, "mlp_bias": false})"));
  ASSERT_TRUE(llama.ok()) << llama.status();
  EXPECT_EQ(llama->attentionDropout, 0.3);
  EXPECT_TRUE(llama->attentionBias);
  EXPECT_FALSE(llama->mlpBias);
}

std::vector<std::string> parametersOf(const Program& program) {
  std::vector<std::string> names;
  for (const plan::NamedTensor& tensor : program.plan.tensors()) {
    if (tensor.kind() == plan::TENSOR_PARAMETER) {
      names.push_back(tensor.name());
    }
  }
  return names;
}

// A model on a mesh with its table: what it saves another run loads, every tensor by its name.
void expectRoundTrip(const std::function<Tensor(Graph&)>& build, const ShardingTable& table, const WeightNames& names) {
  Graph g;
  const Tensor logits = build(g);
  g.shard(table);
  const absl::StatusOr<Program> program = compile(g, mean(logits * logits), optim::Sgd{}, {.mesh = "dp=2,tp=2"});
  ASSERT_TRUE(program.ok()) << program.status();
  std::vector<std::string> named;
  for (const WeightName& weight : names.weights) {
    named.push_back(weight.parameter);
  }
  EXPECT_THAT(parametersOf(*program), UnorderedElementsAreArray(named));
  Trainer first(*program, {.progress = false});
  testing::TemporaryDirectory folder;
  const std::string file = folder / "model.safetensors";
  ASSERT_TRUE(first.saveWeights(file, names).ok());
  Trainer second(*program, {.progress = false});
  const absl::Status loaded = second.loadWeights(file, names);
  EXPECT_TRUE(loaded.ok()) << loaded;
}

TEST(LlamaTest, WithBiases) {
  models::LlamaConfig config = smallLlama();
  config.attentionBias = true;
  config.mlpBias = true;
  config.keyHeads = 2;
  const WeightNames names = models::llamaWeights(config);
  std::vector<std::string> files;
  for (const WeightName& weight : names.weights) {
    files.push_back(weight.file);
  }
  EXPECT_THAT(files, IsSupersetOf({"model.layers.0.self_attn.q_proj.bias", "model.layers.1.self_attn.o_proj.bias",
                                   "model.layers.1.mlp.down_proj.bias"}));
  expectRoundTrip([&](Graph& g) { return models::llama(g, config, ids(g)); },
                  models::llamaSharding(config, {.data = "dp", .model = "tp"}), names);
}

TEST(LlamaTest, BiasesOfAttentionAlone) {
  models::LlamaConfig config = smallLlama();
  config.attentionBias = true;
  config.keyHeads = 2;
  expectRoundTrip([&](Graph& g) { return models::llama(g, config, ids(g)); },
                  models::llamaSharding(config, {.data = "dp", .model = "tp"}), models::llamaWeights(config));
}

TEST(Gpt2Test, WithAHeadOfItsOwn) {
  models::Gpt2Config config = smallGpt2();
  config.tiedHead = false;
  expectRoundTrip([&](Graph& g) { return models::gpt2(g, config, ids(g)); },
                  models::gpt2Sharding(config, {.data = "dp", .model = "tp", .sequence = true}),
                  models::gpt2Weights(config));
}

}  // namespace
}  // namespace weft
