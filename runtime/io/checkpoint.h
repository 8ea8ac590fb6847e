// Parameters to and from safetensors files, in their serial shapes whatever the layout.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "runtime/exec/executor.h"

namespace weft {

// All parameters, whole, in file_shape.
absl::Status saveParameters(const Executor& executor, const std::string& path);
// Every parameter of the program must be in the file, with the same type and as many elements in the same shape; tensors of the
// file that the program does not have are an error too (both kinds are listed).
absl::Status loadParameters(Executor& executor, const std::string& path);

}  // namespace weft
