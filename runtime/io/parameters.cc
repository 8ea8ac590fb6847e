#include "runtime/io/parameters.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/finite.h"
#include "runtime/base/names.h"
#include "runtime/base/status.h"
#include "runtime/io/safetensors.h"
#include "runtime/plan/plan_file.h"

namespace weft {
namespace {

bool wanted(const plan::NamedTensor& tensor, Saved what) {
  return tensor.kind() == plan::TENSOR_PARAMETER || (what == Saved::kAll && tensor.kind() == plan::TENSOR_STATE);
}

std::vector<int64_t> fileShape(const plan::NamedTensor& tensor) {
  return {tensor.file_shape().begin(), tensor.file_shape().end()};
}

// Names in the file against names in the program.
absl::Status checkNames(const plan::Plan& plan, const SafetensorsFile& file, Saved what) {
  std::set<std::string> left(file.unsupported().begin(), file.unsupported().end());
  for (const auto& [name, entry] : file.entries()) {
    left.insert(name);
  }
  std::vector<std::string> asked;
  std::vector<std::string> missing;
  for (const plan::NamedTensor& tensor : plan.tensors()) {
    // State that is not asked for is passed over.
    const bool known = wanted(tensor, what) || tensor.kind() == plan::TENSOR_STATE;
    const bool found = known && left.erase(tensor.name()) > 0;
    if (wanted(tensor, what)) {
      asked.push_back(tensor.name());
      if (!found) {
        missing.push_back(tensor.name());
      }
    }
  }
  const std::vector<std::string> unknown(left.begin(), left.end());
  std::vector<std::string> complaints;
  if (!missing.empty()) {
    complaints.push_back("the file lacks " + listedWithNearest(missing, unknown));
  }
  if (!unknown.empty()) {
    complaints.push_back("the program does not have " + listedWithNearest(unknown, asked));
  }
  return complaints.empty() ? absl::OkStatus()
                            : absl::InvalidArgumentError(file.path() + ": " + absl::StrJoin(complaints, "; "));
}

absl::Status checkEntry(const plan::NamedTensor& tensor, const SafetensorsFile& file) {
  const auto entry = file.entries().find(tensor.name());
  const DType type = dtypeOf(tensor.type());
  if (entry == file.entries().end()) {
    return absl::InvalidArgumentError(absl::StrCat(file.path(), ": '", tensor.name(),
                                                   "' has an element type that Weft does not read, the program wants ",
                                                   dtypeName(type)));
  }
  if (entry->second.type != type || entry->second.shape != fileShape(tensor)) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.path(), ": '", tensor.name(), "' is ", dtypeName(entry->second.type), " [",
                     absl::StrJoin(entry->second.shape, ", "), "] in the file, ", dtypeName(type), " [",
                     absl::StrJoin(fileShape(tensor), ", "), "] in the program"));
  }
  return absl::OkStatus();
}

absl::Status checkFinite(const std::string& path, const std::vector<SafetensorsTensor>& tensors) {
  std::vector<std::string> found;
  for (const SafetensorsTensor& tensor : tensors) {
    const int64_t elements = static_cast<int64_t>(tensor.data.size()) / byteSize(tensor.type);
    const NonFinite values = nonFiniteIn(tensor.type, tensor.data.data(), elements);
    if (values.count() > 0) {
      found.push_back(absl::StrCat("'", tensor.name, "': ", values.count(), " of ", elements, " values, the first is ",
                                   elementAt(tensor.type, tensor.data.data(), values.first, tensor.shape)));
    }
  }
  if (found.empty()) {
    return absl::OkStatus();
  }
  const std::string more = found.size() > 1 ? absl::StrCat("; and ", found.size() - 1, " more tensors") : "";
  return absl::FailedPreconditionError(absl::StrCat("'", path, "' is not written, since training diverged: values of ",
                                                    found.front(), more, "; train again with a lower learning rate, ",
                                                    "or save them all the same with --save-nonfinite"));
}

}  // namespace

absl::Status saveParameters(const Executor& executor, const std::string& path, Saved what, NonFiniteValues nonFinite) {
  std::vector<SafetensorsTensor> tensors;
  for (const plan::NamedTensor& tensor : executor.plan().tensors()) {
    if (wanted(tensor, what)) {
      WEFT_ASSIGN_OR_RETURN(std::vector<char> data, executor.readTensor(tensor.name()));
      tensors.push_back({tensor.name(), dtypeOf(tensor.type()), fileShape(tensor), std::move(data)});
    }
  }
  WEFT_RETURN_IF_ERROR(nonFinite == NonFiniteValues::kSave ? absl::OkStatus() : checkFinite(path, tensors));
  return writeSafetensors(path, tensors);
}

absl::Status loadParameters(Executor& executor, const std::string& path, Saved what) {
  WEFT_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::open(path));
  WEFT_RETURN_IF_ERROR(checkNames(executor.plan(), file, what));
  for (const plan::NamedTensor& tensor : executor.plan().tensors()) {
    if (wanted(tensor, what)) {
      WEFT_RETURN_IF_ERROR(checkEntry(tensor, file));
    }
  }
  for (const plan::NamedTensor& tensor : executor.plan().tensors()) {
    if (wanted(tensor, what)) {
      WEFT_ASSIGN_OR_RETURN(const std::vector<char> data, file.read(tensor.name()));
      WEFT_RETURN_IF_ERROR(executor.writeTensor(tensor.name(), data.data(), data.size()));
    }
  }
  return absl::OkStatus();
}

}  // namespace weft
