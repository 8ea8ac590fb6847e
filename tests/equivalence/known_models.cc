#include "tests/equivalence/known_models.h"

#include <algorithm>
#include <cctype>

#include "absl/strings/str_cat.h"

namespace weft::testing {
namespace {

constexpr char kSequence[] = "[{dp},{tp},{}]";

using Words = std::vector<std::pair<std::string, std::string>>;

// Of attention and a gated or plain pair of products, as Megatron-LM has them (Shoeybi et al., 2019).
Words layerWords() {
  return {{"*.q", "[{},{tp},{}]"}, {"*.k", "[{},{tp},{}]"}, {"*.v", "[{},{tp},{}]"}, {"*.o", "[{tp},{},{}]"},
          {"*.up", "[{},{tp}]"},   {"*.down", "[{tp},{}]"}, {"wte", "[{tp},{}]"},    {"head", "[{},{tp}]"}};
}

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Words without(Words words, const std::vector<std::string>& patterns) {
  std::erase_if(words, [&](const auto& word) {
    return std::find(patterns.begin(), patterns.end(), word.first) != patterns.end();
  });
  return words;
}

Tensor embedded(Graph& g, const LayerSizes& size, const std::string& input, const Tensor& table, bool sequence) {
  const Tensor x = embedding(table, g.input(input, {size.batch, size.tokens}, kI32));
  return sequence ? constrain(x, kSequence) : x;
}

Tensor tableOf(Graph& g, const LayerSizes& size) {
  return g.parameter("wte", {size.vocabulary, size.width}, Init::normal(0.02));
}

Tensor lossOf(Graph& g, const LayerSizes& size, const Tensor& x) {
  const Tensor head = g.parameter("head", {size.width, size.vocabulary}, Init::normal(0.02));
  return mean(softmaxCrossEntropy(matmul(x, head), g.input("labels", {size.batch, size.tokens}, kI32)));
}

Tensor decoderOnly(Graph& g, const LayerSizes& size, int64_t layers, Layer layer, bool sequence) {
  Tensor x = embedded(g, size, "ids", tableOf(g, size), sequence);
  for (int64_t i = 0; i < layers; ++i) {
    x = layer(LayerBuilder{g, absl::StrCat("h", i), size}, x);
  }
  return lossOf(g, size, x);
}

// A 3 x 3 convolution with norm and relu.
Tensor convolved(Graph& g, const std::string& name, const Tensor& x, int64_t channels) {
  const nn::Conv2d convolution(g, name + ".conv", x.dim(1), channels, 3, {.padding = 1, .bias = false});
  return relu(batchNorm(convolution(x), g.parameter(name + ".gamma", {channels}, Init::ones()),
                        g.parameter(name + ".beta", {channels}, Init::zeros())));
}

Tensor convolvedTwice(Graph& g, const std::string& name, const Tensor& x, int64_t channels) {
  return convolved(g, name + ".second", convolved(g, name + ".first", x, channels), channels);
}

// Each element four times.
Tensor doubled(const Tensor& x) {
  const int64_t n = x.dim(0), c = x.dim(1), h = x.dim(2), w = x.dim(3);
  return reshape(broadcastTo(reshape(x, {n, c, h, 1, w, 1}), {n, c, h, 2, w, 2}), {n, c, 2 * h, 2 * w});
}

Tensor unetLoss(Graph& g, const UnetSizes& size) {
  Tensor x = g.input("x", {size.batch, 3, size.image, size.image});
  std::vector<Tensor> bridges;
  int64_t number = 0;
  const auto name = [&] { return absl::StrCat("b", number++); };
  for (int64_t level = 0; level < size.levels; ++level) {
    x = convolvedTwice(g, name(), x, size.channels << level);
    bridges.push_back(x);
    x = maxPool2d(x, {2, 2});
  }
  x = convolvedTwice(g, name(), x, size.channels << size.levels);
  for (int64_t level = size.levels - 1; level >= 0; --level) {
    x = convolvedTwice(g, name(), concat({bridges[level], doubled(x)}, 1), size.channels << level);
  }
  const Tensor logits = transpose(nn::Conv2d(g, "head", x.dim(1), size.classes, 1)(x), {0, 2, 3, 1});
  return mean(softmaxCrossEntropy(logits, g.input("y", {size.batch, size.image, size.image}, kI32)));
}

Tensor layersOn(Graph& g, Tensor x, const std::vector<int64_t>& widths, int64_t stages) {
  for (size_t i = 0; i < widths.size(); ++i) {
    const Scope stage = g.stage(nn::stageOf(static_cast<int64_t>(i), static_cast<int64_t>(widths.size()), stages));
    x = nn::Linear(g, absl::StrCat("fc", i), x.dim(1), widths[i])(x);
    x = i + 1 < widths.size() ? relu(x) : x;
  }
  return x;
}

// "h12.up" -> "h12".
std::string layerOf(const std::string& parameter) {
  return parameter.substr(0, parameter.find('.'));
}

bool isNumbered(const std::string& layer) {
  return !layer.empty() && std::isdigit(static_cast<unsigned char>(layer.back())) != 0;
}

std::vector<std::string> layerNames(const std::vector<std::string>& parameters) {
  std::vector<std::string> names;
  for (const std::string& parameter : parameters) {
    const std::string layer = layerOf(parameter);
    if (isNumbered(layer) && std::find(names.begin(), names.end(), layer) == names.end()) {
      names.push_back(layer);
    }
  }
  return names;
}

}  // namespace

KnownModel gptModel(const std::string& name, const examples::GptConfig& config) {
  const auto build = [config](Graph& g, const ModelWords& words) {
    examples::GptConfig mine = config;
    mine.stages = words.stages;
    if (words.sequence) {
      mine.parallel = {"dp", "tp", true};
    }
    return examples::buildGpt(g, mine).loss;
  };
  return {name,
          config.batch,
          build,
          {{"*.qkv.weight", "[{},{},{tp}]"},
           {"*.qkv.bias", "[{},{tp}]"},
           {"*.proj.weight", "[{tp},{}]"},
           {"*.fc.weight", "[{},{tp}]"},
           {"*.fc.bias", "[{tp}]"},
           {"*.out.weight", "[{tp},{}]"},
           {"wte", "[{tp},{}]"},
           {"head.weight", "[{},{tp}]"}},
          true};
}

KnownModel llamaModel(const std::string& name, const LayerSizes& size, int64_t layers) {
  const Layer layer = size.groups < size.heads ? groupedLlamaLayer : llamaLayer;
  Words words = with(layerWords(), {{"*.gate", "[{},{tp}]"}});
  if (size.groups < size.heads) {
    words = without(words, {"*.k", "*.v"});
  }
  return {name, size.batch,
          [=](Graph& g, const ModelWords& said) { return decoderOnly(g, size, layers, layer, said.sequence); }, words,
          true};
}

KnownModel t5Model(const std::string& name, const LayerSizes& size, int64_t layers) {
  const auto build = [=](Graph& g, const ModelWords& words) {
    const Tensor table = tableOf(g, size);
    Tensor memory = embedded(g, size, "source", table, words.sequence);
    for (int64_t i = 0; i < layers; ++i) {
      memory = t5EncoderLayer(LayerBuilder{g, absl::StrCat("e", i), size}, memory);
    }
    Tensor x = embedded(g, size, "ids", table, words.sequence);
    for (int64_t i = 0; i < layers; ++i) {
      x = t5DecoderLayer(LayerBuilder{g, absl::StrCat("d", i), size, memory}, x);
    }
    return lossOf(g, size, x);
  };
  return {name, size.batch, build, layerWords(), true};
}

KnownModel expertsModel(const std::string& name, const LayerSizes& size, int64_t layers) {
  const Words words = with(without(layerWords(), {"*.up", "*.down"}),
                           {{"*.experts.up", "[{tp},{},{}]"}, {"*.experts.down", "[{tp},{},{}]"}});
  return {name, size.batch,
          [=](Graph& g, const ModelWords& said) { return decoderOnly(g, size, layers, expertsLayer, said.sequence); },
          words, true};
}

KnownModel resnetModel(const std::string& name, const examples::ResnetConfig& config) {
  const auto build = [config](Graph& g, const ModelWords& words) {
    examples::ResnetConfig mine = config;
    mine.stages = words.stages;
    return examples::buildResnet(g, mine).loss;
  };
  return {name, config.batch, build, {{"*.conv1.weight", "[{tp},{},{},{}]"}, {"*.conv2.weight", "[{},{tp},{},{}]"}}};
}

KnownModel unetModel(const std::string& name, const UnetSizes& size) {
  return {name,
          size.batch,
          [=](Graph& g, const ModelWords& /*words*/) { return unetLoss(g, size); },
          {{"*.first.conv.weight", "[{tp},{},{},{}]"}, {"*.second.conv.weight", "[{},{tp},{},{}]"}}};
}

KnownModel wideModel(const std::string& name, const WideSizes& size) {
  const auto build = [=](Graph& g, const ModelWords& /*words*/) {
    const Tensor table = g.parameter("table", {size.rows, size.width}, Init::normal(0.02));
    const Tensor read = embedding(table, g.input("ids", {size.batch, size.fields}, kI32));
    const Tensor logits = layersOn(g, reshape(read, {size.batch, size.fields * size.width}), size.hidden, 1);
    return mean(softmaxCrossEntropy(logits, g.input("labels", {size.batch}, kI32)));
  };
  return {name, size.batch, build, {{"table", "[{tp},{}]"}}};
}

KnownModel mlpModel(const std::string& name, int64_t batch, const std::vector<int64_t>& widths) {
  const std::vector<int64_t> made(widths.begin() + 1, widths.end());
  const auto build = [=](Graph& g, const ModelWords& words) {
    const Tensor logits = layersOn(g, g.input("x", {batch, widths.front()}), made, words.stages);
    return mean(softmaxCrossEntropy(logits, g.input("labels", {batch}, kI32)));
  };
  Words layouts;
  for (size_t i = 0; i < made.size(); ++i) {
    layouts.emplace_back(absl::StrCat("fc", i, ".weight"), i % 2 == 0 ? "[{},{tp}]" : "[{tp},{}]");
  }
  return {name, batch, build, layouts};
}

std::map<std::string, std::vector<int64_t>> stagesOf(const std::vector<std::string>& parameters, int64_t stages) {
  const std::vector<std::string> layers = layerNames(parameters);
  std::map<std::string, std::vector<int64_t>> result;
  int64_t stage = 0;
  for (const std::string& parameter : parameters) {
    const auto it = std::find(layers.begin(), layers.end(), layerOf(parameter));
    if (it != layers.end()) {
      stage = (it - layers.begin()) * stages / static_cast<int64_t>(layers.size());
    }
    result[parameter] = {stage};
  }
  return stages > 1 ? result : decltype(result)();
}

int64_t layersOf(const std::vector<std::string>& parameters) {
  return static_cast<int64_t>(layerNames(parameters).size());
}

}  // namespace weft::testing
