#include "runtime/io/checkpoint.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status.h"
#include "runtime/io/safetensors.h"
#include "runtime/plan/plan_file.h"

namespace weft {

absl::Status saveParameters(const Executor& executor, const std::string& path) {
  std::vector<SafetensorsTensor> tensors;
  for (const plan::NamedTensor& tensor : executor.plan().tensors()) {
    if (tensor.kind() == plan::TENSOR_PARAMETER) {
      WEFT_ASSIGN_OR_RETURN(std::vector<char> data, executor.readTensor(tensor.name()));
      tensors.push_back({tensor.name(), dtypeOf(tensor.type()),
                         {tensor.file_shape().begin(), tensor.file_shape().end()}, std::move(data)});
    }
  }
  return writeSafetensors(path, tensors);
}

absl::Status loadParameters(Executor& executor, const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::open(path));
  std::set<std::string> unknown;
  for (const auto& [name, entry] : file.entries()) {
    unknown.insert(name);
  }
  std::vector<std::string> missing;
  for (const plan::NamedTensor& tensor : executor.plan().tensors()) {
    if (tensor.kind() != plan::TENSOR_PARAMETER) {
      continue;
    }
    const auto it = file.entries().find(tensor.name());
    if (it == file.entries().end()) {
      missing.push_back(tensor.name());
      continue;
    }
    unknown.erase(tensor.name());
    const std::vector<int64_t> shape(tensor.file_shape().begin(), tensor.file_shape().end());
    if (it->second.shape != shape || it->second.type != dtypeOf(tensor.type())) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": tensor '", tensor.name(), "' is ", dtypeName(it->second.type), " [",
          absl::StrJoin(it->second.shape, ","), "], the program has ", dtypeName(dtypeOf(tensor.type())), " [",
          absl::StrJoin(shape, ","), "]"));
    }
  }
  if (!missing.empty() || !unknown.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": missing parameters: ",
                                                   missing.empty() ? "none" : absl::StrJoin(missing, ", "),
                                                   "; tensors the program does not have: ",
                                                   unknown.empty() ? "none" : absl::StrJoin(unknown, ", ")));
  }
  for (const plan::NamedTensor& tensor : executor.plan().tensors()) {
    if (tensor.kind() == plan::TENSOR_PARAMETER) {
      WEFT_ASSIGN_OR_RETURN(const std::vector<char> data, file.read(tensor.name()));
      WEFT_RETURN_IF_ERROR(executor.writeTensor(tensor.name(), data.data(), data.size()));
    }
  }
  return absl::OkStatus();
}

}  // namespace weft
