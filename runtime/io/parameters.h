// Parameters of a program to and from safetensors files, in the shapes that files have (NamedTensor.file_shape), so
// that a file does not depend on the mesh it was written from.
#pragma once

#include <string>

#include "runtime/exec/executor.h"

namespace weft {

// kParameters: weights alone, the usual exchange file. kAll: also the optimizer's and the device's state, enough to go
// on training with the same bits.
enum class Saved { kParameters, kAll };

// What becomes of nan and infinity among the values to be saved.
enum class NonFiniteValues { kRefuse, kSave };

// Whole or not at all (runtime/base/file_writer.h). Errors: unwritable file (path, reason); values that are not finite,
// unless they are to be saved (tensor, how many).
absl::Status saveParameters(const Executor& executor, const std::string& path, Saved what = Saved::kParameters,
                            NonFiniteValues nonFinite = NonFiniteValues::kRefuse);

// The file must hold every tensor asked for, in its shape and type. Tensors that the program does not have are an error
// with kParameters, but state that it lacks is passed over: a file of kAll serves to load weights alone. Nothing is
// written unless everything fits. Errors list what is missing and what is unknown, with the nearest names.
absl::Status loadParameters(Executor& executor, const std::string& path, Saved what = Saved::kParameters);

}  // namespace weft
