// Weights under other names, in other shapes and element types, in one file and in several; and all that can be wrong
// with them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "runtime/base/file_writer.h"
#include "runtime/io/safetensors.h"
#include "tests/support/files.h"
#include "weft/models/all.h"
#include "weft/weft.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

template <typename T>
std::vector<char> bytesOf(const std::vector<T>& values) {
  std::vector<char> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// y = x fc + shift, [2, 3] and [3], whose file has the transpose of fc.
class WeightsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Tensor x = g_.input("x", {4, 2});
    const Tensor loss = mean(nn::Linear(g_, "fc", 2, 3)(x));
    const absl::StatusOr<Program> program = compile(g_, loss, optim::Sgd{.lr = 0.1});
    ASSERT_TRUE(program.ok()) << program.status();
    trainer_ = std::make_unique<Trainer>(*program);
  }

  std::string path(const std::string& name) const { return folder_ / name; }
  void write(const std::string& name, const std::vector<SafetensorsTensor>& tensors) {
    ASSERT_TRUE(writeSafetensors(path(name), tensors).ok());
  }
  // Nothing where it is right.
  std::string load(const std::string& name) { return std::string(trainer_->loadWeights(path(name), kNames).message()); }
  std::vector<float> values(const std::string& parameter) {
    const std::vector<char> bytes = *trainer_->executor().readTensor(parameter);
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  const WeightNames kNames = {
      {{"fc.weight", "model.dense.weight", true}, {"fc.bias", "model.dense.bias"}}, "model.", {"model.mask", "head.*"}};
  const SafetensorsTensor kWeight = {"model.dense.weight", DType::kF32, {3, 2}, bytesOf<float>({1, 2, 3, 4, 5, 6})};
  const SafetensorsTensor kBias = {"model.dense.bias", DType::kF32, {3}, bytesOf<float>({7, 8, 9})};
  const std::vector<float> kTurned = {1, 3, 5, 2, 4, 6};

  Graph g_;
  testing::TemporaryDirectory folder_;
  std::unique_ptr<Trainer> trainer_;
};

TEST_F(WeightsTest, NamesAndTransposesThereAndBack) {
  write("a.safetensors", {kWeight, kBias});
  ASSERT_EQ(load("a.safetensors"), "");
  EXPECT_EQ(values("fc.weight"), kTurned);
  EXPECT_EQ(values("fc.bias"), (std::vector<float>{7, 8, 9}));
  ASSERT_TRUE(trainer_->saveWeights(path("b.safetensors"), kNames).ok());
  const SafetensorsFile saved = *SafetensorsFile::open(path("b.safetensors"));
  ASSERT_EQ(saved.entries().size(), 2u);
  EXPECT_EQ(saved.entries().at(kWeight.name).shape, kWeight.shape);
  EXPECT_EQ(*saved.read(kWeight.name), kWeight.data);
  EXPECT_EQ(*saved.read(kBias.name), kBias.data);
}

// Values that both half-precision types hold exactly, the greatest and the smallest of f16, and what is rounded from
// f64.
TEST_F(WeightsTest, OtherFloatTypes) {
  // 1, -2, 0.5, 65504 (the greatest), 2^-24 (the smallest), -0 in f16; the bias in bf16: 1, -3.5, 2^100.
  const std::vector<uint16_t> half = {0x3c00, 0xc000, 0x3800, 0x7bff, 0x0001, 0x8000};
  const std::vector<uint16_t> brain = {0x3f80, 0xc060, 0x7180};
  write("half.safetensors",
        {{kWeight.name, DType::kF16, {3, 2}, bytesOf(half)}, {kBias.name, DType::kBF16, {3}, bytesOf(brain)}});
  ASSERT_EQ(load("half.safetensors"), "");
  EXPECT_EQ(values("fc.weight"), (std::vector<float>{1, 0.5, 0x1p-24, -2, 65504, -0.0F}));
  EXPECT_EQ(values("fc.bias"), (std::vector<float>{1, -3.5, 0x1p100F}));
  write("double.safetensors", {kWeight, {kBias.name, DType::kF64, {3}, bytesOf<double>({0.1, 1 + 0x1p-30, -1e-320})}});
  ASSERT_EQ(load("double.safetensors"), "");
  EXPECT_EQ(values("fc.bias"), (std::vector<float>{0.1F, 1, -0.0F}));
}

TEST_F(WeightsTest, SeveralFilesWithAnIndexOrInAFolder) {
  write("model-00001-of-00002.safetensors", {kWeight});
  write("model-00002-of-00002.safetensors", {kBias});
  ASSERT_TRUE(writeFile(path("model.safetensors.index.json"),
                        R"({"metadata": {"total_size": 36}, "weight_map": {
                              "model.dense.weight": "model-00001-of-00002.safetensors",
                              "model.dense.bias": "model-00002-of-00002.safetensors"}})")
                  .ok());
  for (const char* name : {"", "model.safetensors.index.json"}) {
    ASSERT_EQ(load(name), "") << name;
    EXPECT_EQ(values("fc.weight"), kTurned);
    EXPECT_EQ(values("fc.bias"), (std::vector<float>{7, 8, 9}));
  }
}

// 24 bytes of the weight and 12 of the bias: together, or each in a file; a tensor that is larger has its own.
TEST_F(WeightsTest, SavedInSeveralFiles) {
  write("a.safetensors", {kWeight, kBias});
  ASSERT_EQ(load("a.safetensors"), "");
  for (const auto& [bytes, files] : {std::pair(36, 1), std::pair(35, 2), std::pair(1, 2)}) {
    const std::string folder = absl::StrCat("saved", bytes);
    ASSERT_TRUE(trainer_->saveWeights(path(folder), kNames, bytes).ok());
    for (int i = 1; i <= files; ++i) {
      EXPECT_TRUE(
          std::filesystem::exists(path(absl::StrCat(folder, "/model-0000", i, "-of-0000", files, ".safetensors"))));
    }
    ASSERT_TRUE(trainer_->executor().writeTensor("fc.bias", kWeight.data.data(), 12).ok());
    ASSERT_EQ(load(folder), "");
    EXPECT_EQ(values("fc.weight"), kTurned);
    EXPECT_EQ(values("fc.bias"), (std::vector<float>{7, 8, 9}));
  }
}

TEST_F(WeightsTest, PrefixMayBeAbsentAndSomeArePassedOver) {
  SafetensorsTensor weight = kWeight;
  SafetensorsTensor bias = kBias;
  weight.name = "dense.weight";
  bias.name = "dense.bias";
  const SafetensorsTensor mask = {"mask", DType::kF32, {1}, bytesOf<float>({0})};
  const SafetensorsTensor head = {"head.weight", DType::kI64, {1}, bytesOf<int64_t>({0})};
  write("bare.safetensors", {weight, bias, mask, head});
  ASSERT_EQ(load("bare.safetensors"), "");
  EXPECT_EQ(values("fc.weight"), kTurned);
}

// All in one message, and nothing is written.
TEST_F(WeightsTest, WhatDoesNotFitIsNamedAtOnce) {
  const std::vector<float> before = values("fc.weight");
  write("wrong.safetensors",
        {{kWeight.name, DType::kF32, {2, 3}, kWeight.data}, {"model.dense.offset", DType::kF32, {3}, kBias.data}});
  EXPECT_THAT(load("wrong.safetensors"),
              AllOf(HasSubstr("wrong.safetensors: the file lacks 'model.dense.bias' (nearest: 'model.dense.offset')"),
                    HasSubstr("the model does not have 'model.dense.offset'"),
                    HasSubstr("'model.dense.weight' is [2, 3] in the file, [3, 2] in the model, transposed there")));
  write("integers.safetensors", {{kWeight.name, DType::kI32, {3, 2}, bytesOf<int32_t>({1, 2, 3, 4, 5, 6})}, kBias});
  EXPECT_THAT(load("integers.safetensors"), HasSubstr("'model.dense.weight' has element type i32 in the file, f32"));
  EXPECT_EQ(values("fc.weight"), before);
}

TEST_F(WeightsTest, WrongFiles) {
  EXPECT_THAT(load(""), AllOf(HasSubstr("holds neither model.safetensors.index.json nor model.safetensors")));
  EXPECT_THAT(load("absent.safetensors"), HasSubstr("absent.safetensors"));
  const auto index = [&](const std::string& text) {
    EXPECT_TRUE(writeFile(path("i.json"), text).ok());
    return load("i.json");
  };
  EXPECT_THAT(index("{"), HasSubstr("i.json: "));
  EXPECT_THAT(index("[]"), HasSubstr("i.json"));
  EXPECT_THAT(index("{}"), HasSubstr("weight_map"));
  EXPECT_THAT(index(R"({"weight_map": {"a": 3}})"), HasSubstr("weight_map.a: found 3"));
  EXPECT_THAT(index(R"({"weight_map": {"a": "../a.safetensors"}})"), HasSubstr("a file beside the index"));
  EXPECT_THAT(index(R"({"weight_map": {"a": "none.safetensors"}})"), HasSubstr("none.safetensors"));
  write("one.safetensors", {kWeight});
  EXPECT_THAT(index(R"({"weight_map": {"a": "one.safetensors"}})"),
              HasSubstr("weight_map has 'a' in one.safetensors, which does not hold it"));
  write("two.safetensors", {kWeight});
  EXPECT_THAT(index(R"({"weight_map": {"model.dense.weight": "one.safetensors", "b": "two.safetensors"}})"),
              HasSubstr("'model.dense.weight' stands both in"));
}

TEST_F(WeightsTest, NamesThatDoNotFitTheProgram) {
  write("a.safetensors", {kWeight, kBias});
  const WeightNames half = {{{"fc.weight", "model.dense.weight", true}}};
  EXPECT_THAT(std::string(trainer_->loadWeights(path("a.safetensors"), half).message()),
              HasSubstr("the names of the weights lack 'fc.bias' (nearest: 'fc.weight')"));
  const WeightNames vector = {{{"fc.weight", "model.dense.weight", true}, {"fc.bias", "model.dense.bias", true}}};
  EXPECT_THAT(std::string(trainer_->saveWeights(path("c.safetensors"), vector).message()),
              HasSubstr("'fc.bias' has 1 dimensions in files; only a matrix can be transposed"));
  EXPECT_FALSE(std::filesystem::exists(path("c.safetensors")));
}

// config.json: what a model needs, what it has not, other types than it should have.
class ConfigTest : public ::testing::Test {
 protected:
  std::string llama(const std::string& more) {
    return read(absl::StrCat(R"({"model_type": "llama", "vocab_size": 96, "hidden_size": 32, "intermediate_size": 80,
                                 "num_hidden_layers": 2, "num_attention_heads": 4)",
                             more, "}"));
  }
  std::string read(const std::string& text) {
    const std::string path = folder_ / "config.json";
    EXPECT_TRUE(writeFile(path, text).ok());
    config_ = models::readLlamaConfig(path);
    return config_.ok() ? "" : std::string(config_.status().message());
  }

  testing::TemporaryDirectory folder_;
  absl::StatusOr<models::LlamaConfig> config_;
};

TEST_F(ConfigTest, OlderAndNewerNames) {
  ASSERT_EQ(llama(R"(, "rope_theta": 500000.0, "head_dim": null, "rope_scaling": null)"), "");
  EXPECT_EQ(config_->rotaryBase, 500000.0);
  EXPECT_EQ(config_->keyHeads, 4);
  EXPECT_EQ(config_->headWidth, 8);
  ASSERT_EQ(llama(R"(, "num_key_value_heads": 2, "head_dim": 16, "tie_word_embeddings": true, "rms_norm_eps": 1e-5,
                     "rope_parameters": {"rope_theta": 20000.0, "rope_type": "default"})"),
            "");
  EXPECT_EQ(config_->rotaryBase, 20000.0);
  EXPECT_EQ(config_->keyHeads, 2);
  EXPECT_EQ(config_->headWidth, 16);
  EXPECT_TRUE(config_->tiedHead);
}

TEST_F(ConfigTest, WhatTheModelHasNot) {
  EXPECT_THAT(llama(R"(, "rope_scaling": {"rope_type": "llama3", "factor": 8.0})"),
              HasSubstr("rope_scaling.rope_type is 'llama3'"));
  EXPECT_THAT(llama(R"(, "rope_scaling": {"type": "linear"})"), HasSubstr("rope_scaling.rope_type is 'linear'"));
  EXPECT_THAT(llama(R"(, "hidden_act": "gelu")"), HasSubstr("hidden_act is 'gelu'; this model has 'silu'"));
  EXPECT_THAT(read(R"({"model_type": "mistral"})"), HasSubstr("model_type is 'mistral'; this reads 'llama'"));
}

TEST_F(ConfigTest, WrongFiles) {
  EXPECT_THAT(read(R"({"model_type": "llama"})"), HasSubstr("there is no 'vocab_size'"));
  EXPECT_THAT(llama(R"(, "num_key_value_heads": 0)"), HasSubstr("num_key_value_heads: found 0"));
  EXPECT_THAT(llama(R"(, "num_key_value_heads": "two")"), HasSubstr("num_key_value_heads: found \"two\""));
  EXPECT_THAT(llama(R"(, "rms_norm_eps": true)"), HasSubstr("rms_norm_eps: found true"));
  EXPECT_THAT(llama(R"(, "rms_norm_eps")"), AllOf(HasSubstr("config.json: "), Not(HasSubstr("json.exception"))));
  EXPECT_THAT(read("[1]"), HasSubstr("found [1], expected an object"));
  EXPECT_THAT(std::string(models::readLlamaConfig(folder_.path() + "/absent").status().message()), HasSubstr("absent"));
}

}  // namespace
}  // namespace weft
