// Weights of models that others published: safetensors files with names and shapes of their own.
//
//   const WeightNames names = {{{"h0.fc.weight", "encoder.layer.0.dense.weight", .transposed = true}, ...}};
//   absl::Status loaded = loadWeights(executor, "bert/model.safetensors", names);
#pragma once

#include <string>
#include <vector>

#include "runtime/exec/executor.h"

namespace weft {

// A parameter of the program, and the tensor that holds it in a file.
struct WeightName {
  std::string parameter;
  std::string file;
  bool transposed = false;  // the file holds the transpose of a matrix
};

struct WeightNames {
  std::vector<WeightName> weights;
  // Some files of a family have it in front of their names, "transformer.", others do not.
  std::string prefix = "";
  // Tensors that a file may hold beside, by pattern: buffers of masks, a head that is another tensor's transpose.
  std::vector<std::string> passedOver = {};
};

// Parameters from `path`, which is a file, an index or a folder (weight_files.h). Float tensors of any width become the
// program's type. Nothing is written unless everything fits. Errors: parameters that `names` or the files lack, tensors
// of the files that `names` does not have, and shapes that differ, all of them in one message.
absl::Status loadWeights(Executor& executor, const std::string& path, const WeightNames& names);

// Parameters under the names and in the shapes that files have, in the program's element types: to one file; or, with
// the most bytes that the tensors of a file may have (one larger has a file of its own), to the folder `path`, as
// model-00001-of-00002.safetensors and so on, and the index of them, which is written last. Each file whole or not at
// all. Errors: a parameter that `names` lacks; unwritable file.
absl::Status saveWeights(const Executor& executor, const std::string& path, const WeightNames& names,
                         int64_t bytesOfFile = 0);

}  // namespace weft
