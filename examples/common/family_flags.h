// What the examples that train a model family on a text have in common: flags, and what is done with them.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "examples/common/flags.h"
#include "runtime/io/text_dataset.h"
#include "runtime/io/weights.h"

namespace weft::examples {

// Of a model that no --config describes.
struct ModelSizes {
  int64_t layers = 2;
  int64_t width = 64;
  int64_t heads = 4;
};

// --text --bytes --layers --width --heads --config --weights --save-weights --context --batch --lr --clip --stages
// --tensor-parallel --sequence-parallel --losses, beside the common ones
struct FamilyFlags {
  CommonFlags common;
  std::string text;
  bool bytes = false;
  std::optional<int64_t> layers;
  std::optional<int64_t> width;
  std::optional<int64_t> heads;
  std::string config;
  std::string weights;
  std::string saveWeights;
  int64_t context = 64;
  int64_t batch = 16;
  double lr = 3e-3;
  double clip = 1.0;
  int64_t stages = 1;
  bool tensorParallel = false;
  bool sequenceParallel = false;
  std::string losses;

  FamilyFlags() { common.steps = 200; }
  void addTo(Flags& flags);
  // The common ones and --clip.
  CompileOptions options() const;
  TextDatasetOptions textOptions() const;
  nn::Parallel parallel() const { return common.parallel(sequenceParallel); }

  // Errors: flags that contradict each other, paths that cannot be written.
  absl::Status check() const;
  // Errors: heads that do not divide the width.
  absl::StatusOr<ModelSizes> sizes() const;
  // Does a model of so many layers and tokens take --stages and `tokens`? They may be those of a file.
  absl::Status checkModel(int64_t modelLayers, int64_t vocabulary, int64_t tokens) const;

  // CommonFlags::train around `body`; also reads --weights before it, writes --losses in any case and --save-weights
  // where it ends well.
  absl::Status train(Trainer& trainer, const WeightNames& names, const std::function<absl::Status()>& body) const;
};

}  // namespace weft::examples
