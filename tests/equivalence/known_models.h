// Whole models of known kinds at any size, and the words with which an expert would split them over an axis tp.
//
//   KnownModel model = llamaModel("llama", {.batch = 8, ...}, /*layers=*/4);
//   Graph g;
//   Tensor loss = model.build(g, {});
//
// A layer's parameters begin with a name that ends in its number, "h3.up"; what comes before the first layer belongs to
// the first pipeline stage, what comes after the last one to the last (stagesOf).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "examples/gpt/model.h"
#include "examples/resnet/model.h"
#include "tests/equivalence/model_layers.h"

namespace weft::testing {

// What a model says of its plan itself.
struct ModelWords {
  // The residual stream is split over tp along the sequence, by one constraint behind the embedding; models without a
  // sequence leave it out.
  bool sequence = false;
  int64_t stages = 1;  // pipeline stages, of models that mark them: gptModel, resnetModel, mlpModel
};

struct KnownModel {
  std::string name;
  int64_t rows = 1;                                                // of the batch
  std::function<Tensor(Graph& g, const ModelWords& words)> build;  // the loss
  // CompileOptions::layouts of tensor parallelism over tp.
  std::vector<std::pair<std::string, std::string>> tensorParallel = {};
  bool hasSequence = false;
};

KnownModel gptModel(const std::string& name, const examples::GptConfig& config);
KnownModel llamaModel(const std::string& name, const LayerSizes& size, int64_t layers);
// So many layers each of encoder and decoder, one embedding for both.
KnownModel t5Model(const std::string& name, const LayerSizes& size, int64_t layers);
KnownModel expertsModel(const std::string& name, const LayerSizes& size, int64_t layers);

KnownModel resnetModel(const std::string& name, const examples::ResnetConfig& config);

// A network that halves images `levels` times and doubles them again, with a bridge at each size.
struct UnetSizes {
  int64_t batch, image, channels, levels, classes;
};
KnownModel unetModel(const std::string& name, const UnetSizes& size);

// A table of many rows, of which each sample reads some, and a few layers on top.
struct WideSizes {
  int64_t batch, fields, rows, width;
  std::vector<int64_t> hidden;
};
KnownModel wideModel(const std::string& name, const WideSizes& size);

// Layers of these widths, each with its bias, relu between them.
KnownModel mlpModel(const std::string& name, int64_t batch, const std::vector<int64_t>& widths);

// CompileOptions::stages of a program with these parameters, in their order: its layers in so many stages, as equal as
// can be. Empty for one stage.
std::map<std::string, std::vector<int64_t>> stagesOf(const std::vector<std::string>& parameters, int64_t stages);
// Layers among them.
int64_t layersOf(const std::vector<std::string>& parameters);

}  // namespace weft::testing
