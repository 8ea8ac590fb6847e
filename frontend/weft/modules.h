// Modules: parameters with the operators that use them. Weights of matmuls are [in, out], of convolutions
// [out, in, height, width].
//
// A module takes its parameters' names from the name it is given and the scopes around: Linear(g, "fc1", 784, 300) has
// fc1.weight and fc1.bias. Two modules of one name in one scope are an error; to share parameters, call one module as
// often as they are needed. Its product has the module's name in every call, so that a row of a ShardingTable says how
// all of them are split; modules say nothing about ranks themselves.
//
// What is not a size stands in a settings struct, first values of weight and bias among it:
//
//   nn::Linear(g, "fc", 64, 64, {.init = Init::normal(0.1), .bias = false});
#pragma once

#include <optional>
#include <string>

#include "weft/graph.h"
#include "weft/ops.h"

namespace weft::nn {

// What all modules have in common.
class Module {
 public:
  // Pipeline stage of the operators that calls of this module make from here on, and so of its parameters: as if each
  // call stood in a scope `auto s = g.stage(number)`. The innermost word counts: a part's own stage before that of the
  // module it is in, a module's before a scope around the call. Stages are 0, 1, ... without gaps.
  //
  //   nn::TransformerBlock first(g, "h0", 96, 6), second(g, "h1", 96, 6);
  //   first.setPipelineStage(0);
  //   second.setPipelineStage(1);
  //   x = second(first(x));
  void setPipelineStage(int number) { stage_ = number; }

 protected:
  // Lives as long as a call; nothing where no stage was set.
  [[nodiscard]] Scope stageScope(const Tensor& x) const;
  // Likewise: errors name the module, "Linear".
  [[nodiscard]] Scope callScope(const Tensor& x, const std::string& module) const;
  // Gives the operator that made the product a name with all scopes in it: a module may be called in another scope than
  // it was made in.
  static Tensor named(const Tensor& product, const std::string& name);

 private:
  std::optional<int> stage_;
};

// Axis names of the mesh for tables of strategies (weft/models/parallel.h), in Megatron's way: the first matmul of a
// pair is split by columns, the second by rows over `model`; the batch over `data`. With `sequence` the residual stream
// between blocks is split over `model` too, along the sequence. Empty names: not split.
struct Parallel {
  std::string data;
  std::string model;
  bool sequence = false;
  bool any() const { return !model.empty(); }
};

// The pipeline stage of part 0, 1, ... parts - 1, such as layers, in blocks of equal size: the first on stage 0, the
// last on stage stages - 1.
int stageOf(int64_t part, int64_t parts, int64_t stages);

struct LinearSettings {
  Init init = Init::normal(0.02);
  bool bias = true;
  Init biasInit = Init::zeros();
};

class Linear : public Module {
 public:
  Linear(Graph& g, const std::string& name, int64_t in, int64_t out, const LinearSettings& settings = {},
         SourceLine at = SourceLine::current());
  // x [..., in] -> [..., out].
  Tensor operator()(const Tensor& x, SourceLine at = SourceLine::current()) const;

  Tensor weight;  // [in, out]
  Tensor bias;    // [out]; not valid without bias

 private:
  std::string name_;
};

struct EmbeddingSettings {
  Init init = Init::normal(0.02);
};

class Embedding : public Module {
 public:
  Embedding(Graph& g, const std::string& name, int64_t rows, int64_t width, const EmbeddingSettings& settings = {},
            SourceLine at = SourceLine::current());
  // Rows at ids [...] -> [..., width].
  Tensor operator()(const Tensor& ids, SourceLine at = SourceLine::current()) const;

  Tensor weight;  // [rows, width], named as the module

 private:
  std::string name_;
};

struct LayerNormSettings {
  double epsilon = 1e-5;
  bool bias = true;
  Init init = Init::ones();
  Init biasInit = Init::zeros();
};

class LayerNorm : public Module {
 public:
  LayerNorm(Graph& g, const std::string& name, int64_t width, const LayerNormSettings& settings = {},
            SourceLine at = SourceLine::current());
  Tensor operator()(const Tensor& x, SourceLine at = SourceLine::current()) const;

  Tensor weight;
  Tensor bias;  // not valid without bias

 private:
  double epsilon_;
};

struct RmsNormSettings {
  double epsilon = 1e-6;
  Init init = Init::ones();
};

// y = weight x / sqrt(mean of x^2 + epsilon), see weft::rmsNorm.
class RmsNorm : public Module {
 public:
  RmsNorm(Graph& g, const std::string& name, int64_t width, const RmsNormSettings& settings = {},
          SourceLine at = SourceLine::current());
  Tensor operator()(const Tensor& x, SourceLine at = SourceLine::current()) const;

  Tensor weight;

 private:
  double epsilon_;
};

// weft::dropout as a module; evaluation programs are built with rate 0, which is x itself.
class Dropout : public Module {
 public:
  explicit Dropout(double rate, int64_t seed = 0) : rate_(rate), seed_(seed) {}
  Tensor operator()(const Tensor& x, SourceLine at = SourceLine::current()) const;

 private:
  double rate_;
  int64_t seed_;
};

// [B, T, C] as [B, heads, T, C / heads], and back: heads lie one after another in C.
Tensor splitHeads(const Tensor& x, int64_t heads, SourceLine at = SourceLine::current());
Tensor mergeHeads(const Tensor& x, SourceLine at = SourceLine::current());

// Normal values whose deviation keeps the size of activations through convolution and relu: sqrt(2 / fan in), fan in =
// in * kernel * kernel (He et al., "Delving deep into rectifiers", 2015).
Init heNormal(int64_t fanIn);

struct Conv2dSettings {
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t dilation = 1;
  int64_t groups = 1;
  bool bias = true;
  std::optional<Init> init = {};  // heNormal unless given
  Init biasInit = Init::zeros();
};

// Square windows over images [n, in, h, w]; weight [out, in / groups, kernel, kernel], bias [out].
class Conv2d : public Module {
 public:
  Conv2d(Graph& g, const std::string& name, int64_t in, int64_t out, int64_t kernel,
         const Conv2dSettings& settings = {}, SourceLine at = SourceLine::current());
  Tensor operator()(const Tensor& x, SourceLine at = SourceLine::current()) const;

  Tensor weight;
  Tensor bias;  // not valid without bias

 private:
  std::string name_;
  Conv2dSettings settings_;
};

struct ConvTranspose2dSettings {
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t outputPadding = 0;
  int64_t dilation = 1;
  int64_t groups = 1;
  bool bias = true;
  std::optional<Init> init = {};  // heNormal unless given
  Init biasInit = Init::zeros();
};

// weft::convTranspose2d over images [n, in, h, w]; weight [in, out / groups, kernel, kernel], bias [out].
class ConvTranspose2d : public Module {
 public:
  ConvTranspose2d(Graph& g, const std::string& name, int64_t in, int64_t out, int64_t kernel,
                  const ConvTranspose2dSettings& settings = {}, SourceLine at = SourceLine::current());
  Tensor operator()(const Tensor& x, SourceLine at = SourceLine::current()) const;

  Tensor weight;
  Tensor bias;  // not valid without bias

 private:
  std::string name_;
  ConvTranspose2dSettings settings_;
};

struct GroupNormSettings {
  double epsilon = 1e-5;
  bool bias = true;
  Init init = Init::ones();
  Init biasInit = Init::zeros();
};

// weft::groupNorm of images [n, channels, ...]: weight and bias [channels]. As many groups as channels are an instance
// norm.
class GroupNorm : public Module {
 public:
  GroupNorm(Graph& g, const std::string& name, int64_t groups, int64_t channels, const GroupNormSettings& settings = {},
            SourceLine at = SourceLine::current());
  Tensor operator()(const Tensor& x, SourceLine at = SourceLine::current()) const;

  Tensor weight;
  Tensor bias;  // not valid without bias

 private:
  int64_t groups_;
  double epsilon_;
};

struct BatchNormSettings {
  double epsilon = 1e-5;
  double momentum = 0.1;  // weight of a micro-batch's statistics in the running ones
  // False: normalizes with the running statistics, as a trained model is used. The training and the evaluating program
  // share parameters and running statistics by name.
  bool training = true;
  Init init = Init::ones();
  Init biasInit = Init::zeros();
};

// Normalizes each channel of [n, channels, h, w] with the statistics of the micro-batch (see weft::batchNorm), and
// keeps running ones: states running_mean and running_var [channels], first 0 and 1.
class BatchNorm2d : public Module {
 public:
  BatchNorm2d(Graph& g, const std::string& name, int64_t channels, const BatchNormSettings& settings = {},
              SourceLine at = SourceLine::current());
  Tensor operator()(const Tensor& x, SourceLine at = SourceLine::current()) const;

  Tensor weight;  // gamma
  Tensor bias;    // beta
  RunningStatistics running;

 private:
  BatchNormSettings settings_;
};

// Square windows; they do not overlap unless a stride is given.
struct PoolSettings {
  int64_t stride = 0;  // the window's size
  int64_t padding = 0;
};
class MaxPool2d : public Module {
 public:
  explicit MaxPool2d(int64_t window, const PoolSettings& settings = {}) : window_(window), settings_(settings) {}
  Tensor operator()(const Tensor& x, SourceLine at = SourceLine::current()) const;

 private:
  int64_t window_;
  PoolSettings settings_;
};
class AvgPool2d : public Module {
 public:
  explicit AvgPool2d(int64_t window, const PoolSettings& settings = {}) : window_(window), settings_(settings) {}
  Tensor operator()(const Tensor& x, SourceLine at = SourceLine::current()) const;

 private:
  int64_t window_;
  PoolSettings settings_;
};

struct Decoding;  // weft/key_value_cache.h

struct AttentionSettings {
  Init init = Init::normal(0.02);
  bool bias = true;
  Init biasInit = Init::zeros();
  std::optional<Init> projInit = {};  // of proj.weight; init unless given
  double dropout = 0;                 // rate for the weights that queries give to keys
};

// Causal self-attention: qkv.weight [C, 3, C] (kept in files as [C, 3C]; q, k, v are its thirds, heads contiguous
// inside each), qkv.bias [3, C], proj.weight [C, C], proj.bias. Products "qkv" and "proj".
class Attention : public Module {
 public:
  Attention(Graph& g, int64_t width, int64_t heads, const AttentionSettings& settings = {},
            SourceLine at = SourceLine::current());
  // x [B, T, C] -> [B, T, C].
  Tensor operator()(const Tensor& x, SourceLine at = SourceLine::current()) const;
  // One step of generation: x [B, 1, C], at decoding's row over a cache of the rows before it; without dropout.
  Tensor step(const Tensor& x, const Decoding& decoding, SourceLine at = SourceLine::current()) const;

 private:
  Tensor attend(const Tensor& x, const Decoding* decoding, SourceLine at) const;

  Graph& g_;
  std::string qkvName_;
  Tensor qkvWeight_;
  Tensor qkvBias_;
  Linear proj_;
  int64_t heads_;
  double dropout_;
};

struct MlpSettings {
  Init init = Init::normal(0.02);
  bool bias = true;
  Init biasInit = Init::zeros();
  std::optional<Init> outInit = {};  // of out.weight; init unless given
  Gelu form = Gelu::kTanh;
};

// fc.weight [C, hidden], gelu, out.weight [hidden, C], with biases. Products "fc" and "out".
class Mlp : public Module {
 public:
  Mlp(Graph& g, int64_t width, int64_t hidden, const MlpSettings& settings = {}, SourceLine at = SourceLine::current());
  Tensor operator()(const Tensor& x, SourceLine at = SourceLine::current()) const;

 private:
  Linear fc_;
  Linear out_;
  Gelu form_;
};

struct TransformerBlockSettings {
  std::optional<int64_t> hidden = {};  // of the mlp; 4 width unless given
  Init init = Init::normal(0.02);      // of all products
  bool bias = true;                    // of products and norms
  Init biasInit = Init::zeros();
  std::optional<Init> outInit =
      {};  // of proj.weight and out.weight, which end in the residual stream; init unless given
  double epsilon = 1e-5;
  double dropout = 0;           // rate for what attention and mlp add to x
  double attentionDropout = 0;  // AttentionSettings::dropout
};

// Pre-norm block as in GPT-2: x + attention(ln1(x)), then x + mlp(ln2(x)). How it is split: models::byBlocks.
class TransformerBlock : public Module {
 public:
  TransformerBlock(Graph& g, const std::string& name, int64_t width, int64_t heads,
                   const TransformerBlockSettings& settings = {}, SourceLine at = SourceLine::current());
  // x [B, T, width] -> [B, T, width].
  Tensor operator()(const Tensor& x, SourceLine at = SourceLine::current()) const;
  // One step of generation, see Attention::step.
  Tensor step(const Tensor& x, const Decoding& decoding, SourceLine at = SourceLine::current()) const;

  // To give a part a stage of its own; the sums around them are the block's.
  Attention& attention() { return attention_; }
  Mlp& mlp() { return mlp_; }

 private:
  Graph& g_;
  std::string name_;
  LayerNorm ln1_;
  Attention attention_;
  LayerNorm ln2_;
  Mlp mlp_;
  double dropout_;
};

}  // namespace weft::nn
