#include "runtime/io/weights.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "runtime/base/file_writer.h"
#include "runtime/base/float_types.h"
#include "runtime/base/json.h"
#include "runtime/base/names.h"
#include "runtime/base/status.h"
#include "runtime/io/safetensors.h"
#include "runtime/io/weight_files.h"
#include "runtime/plan/plan_file.h"

namespace weft {
namespace {

using Shape = std::vector<int64_t>;

// A parameter of the program with its name in files.
struct Weight {
  const plan::NamedTensor* tensor;
  const WeightName* name;

  DType type() const { return dtypeOf(tensor->type()); }
  // Shape in files.
  Shape shape() const {
    Shape shape(tensor->file_shape().begin(), tensor->file_shape().end());
    if (name->transposed) {
      std::reverse(shape.begin(), shape.end());
    }
    return shape;
  }
};

// The parameters of the program, each with its name. Errors: parameters without, a transpose of what is no matrix.
absl::StatusOr<std::vector<Weight>> weightsOf(const Executor& executor, const WeightNames& names) {
  std::map<std::string, const WeightName*> known;
  for (const WeightName& weight : names.weights) {
    known[weight.parameter] = &weight;
  }
  std::vector<Weight> weights;
  std::vector<std::string> missing;
  for (const plan::NamedTensor& tensor : executor.plan().tensors()) {
    if (tensor.kind() != plan::TENSOR_PARAMETER) {
      continue;
    }
    const auto name = known.find(tensor.name());
    if (name == known.end()) {
      missing.push_back(tensor.name());
    } else if (name->second->transposed && tensor.file_shape_size() != 2) {
      return absl::InvalidArgumentError(absl::StrCat("'", tensor.name(), "' has ", tensor.file_shape_size(),
                                                     " dimensions in files; only a matrix can be transposed there"));
    } else {
      weights.push_back({&tensor, name->second});
    }
  }
  if (!missing.empty()) {
    std::vector<std::string> parameters;
    for (const auto& [parameter, name] : known) {
      parameters.push_back(parameter);
    }
    return absl::InvalidArgumentError(
        absl::StrCat("the names of the weights lack ", listedWithNearest(missing, parameters)));
  }
  return weights;
}

std::vector<char> transposed(const std::vector<char>& data, const Shape& shape, int64_t width) {
  const int64_t rows = shape[0];
  const int64_t columns = shape[1];
  std::vector<char> result(data.size());
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      std::memcpy(result.data() + (c * rows + r) * width, data.data() + (r * columns + c) * width, width);
    }
  }
  return result;
}

// Weights against files: the name of each there, in the order of the weights, and all that does not fit.
class Match {
 public:
  Match(const WeightFiles& files, const WeightNames& names) : files_(files), names_(names) {}

  absl::StatusOr<std::vector<std::string>> run(const std::vector<Weight>& weights) {
    std::vector<std::string> found;
    for (const Weight& weight : weights) {
      found.push_back(nameInFile(weight));
      check(weight, found.back());
    }
    const std::set<std::string> known(found.begin(), found.end());
    const std::vector<std::string> all = files_.names();
    std::vector<std::string> surplus;
    for (const std::string& name : all) {
      if (known.count(name) == 0 && !isPassedOver(name)) {
        surplus.push_back(name);
      }
    }
    std::vector<std::string> complaints;
    if (!missing_.empty()) {
      complaints.push_back("the file lacks " + listedWithNearest(missing_, all));
    }
    if (!surplus.empty()) {
      complaints.push_back("the model does not have " + listedWithNearest(surplus, found));
    }
    complaints.insert(complaints.end(), misshapen_.begin(), misshapen_.end());
    if (!complaints.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(files_.path(), ": ", absl::StrJoin(complaints, "; ")));
    }
    return found;
  }

 private:
  // With the prefix or without, as the file has it.
  std::string nameInFile(const Weight& weight) const {
    const std::string& name = weight.name->file;
    const std::string bare = absl::StartsWith(name, names_.prefix) ? name.substr(names_.prefix.size()) : name;
    return !files_.holds(name) && files_.holds(bare) ? bare : name;
  }

  void check(const Weight& weight, const std::string& name) {
    const SafetensorsEntry* const entry = files_.find(name);
    if (!files_.holds(name)) {
      missing_.push_back(name);
    } else if (entry == nullptr || isFloat(entry->type) != isFloat(weight.type()) ||
               (!isFloat(entry->type) && entry->type != weight.type())) {
      misshapen_.push_back(absl::StrCat("'", name, "' has element type ",
                                        entry == nullptr ? "that Weft does not read" : dtypeName(entry->type),
                                        " in the file, ", dtypeName(weight.type()), " in the model"));
    } else if (entry->shape != weight.shape()) {
      misshapen_.push_back(absl::StrCat("'", name, "' is [", absl::StrJoin(entry->shape, ", "), "] in the file, [",
                                        absl::StrJoin(weight.shape(), ", "), "] in the model",
                                        weight.name->transposed ? ", transposed there" : ""));
    }
  }

  bool isPassedOver(const std::string& name) const {
    return std::any_of(names_.passedOver.begin(), names_.passedOver.end(), [&](const std::string& pattern) {
      return globMatches(pattern, name) || globMatches(pattern, names_.prefix + name);
    });
  }

  const WeightFiles& files_;
  const WeightNames& names_;
  std::vector<std::string> missing_;
  std::vector<std::string> misshapen_;
};

}  // namespace

absl::Status loadWeights(Executor& executor, const std::string& path, const WeightNames& names) {
  WEFT_ASSIGN_OR_RETURN(const WeightFiles files, WeightFiles::open(path));
  WEFT_ASSIGN_OR_RETURN(const std::vector<Weight> weights, weightsOf(executor, names));
  WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> found, Match(files, names).run(weights));
  for (size_t i = 0; i < weights.size(); ++i) {
    const Weight& weight = weights[i];
    WEFT_ASSIGN_OR_RETURN(std::vector<char> data, files.read(found[i]));
    if (isFloat(weight.type())) {
      data = convertFloats(data, files.find(found[i])->type, weight.type());
    }
    if (weight.name->transposed) {
      data = transposed(data, weight.shape(), byteSize(weight.type()));
    }
    WEFT_RETURN_IF_ERROR(executor.writeTensor(weight.tensor->name(), data.data(), data.size()));
  }
  return absl::OkStatus();
}

namespace {

// "model-00001-of-00002.safetensors"
std::string fileName(size_t file, size_t files) {
  return absl::StrFormat("model-%05d-of-%05d.safetensors", file + 1, files);
}

// The tensors in their order, in files of at most so many bytes.
std::vector<std::vector<SafetensorsTensor>> inFiles(std::vector<SafetensorsTensor> tensors, int64_t bytesOfFile) {
  std::vector<std::vector<SafetensorsTensor>> files;
  int64_t bytes = 0;
  for (SafetensorsTensor& tensor : tensors) {
    const auto size = static_cast<int64_t>(tensor.data.size());
    if (files.empty() || bytes + size > bytesOfFile) {
      files.emplace_back();
      bytes = 0;
    }
    bytes += size;
    files.back().push_back(std::move(tensor));
  }
  return files;
}

absl::Status writeInFiles(const std::string& folder, std::vector<SafetensorsTensor> tensors, int64_t bytesOfFile) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) {
    return absl::UnavailableError(absl::StrCat("cannot make the folder '", folder, "': ", failed.message()));
  }
  const std::vector<std::vector<SafetensorsTensor>> files = inFiles(std::move(tensors), bytesOfFile);
  Json index = {{"metadata", {{"total_size", 0}}}, {"weight_map", Json::object()}};
  int64_t total = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    const std::string name = fileName(i, files.size());
    for (const SafetensorsTensor& tensor : files[i]) {
      total += static_cast<int64_t>(tensor.data.size());
      index["weight_map"][tensor.name] = name;
    }
    WEFT_RETURN_IF_ERROR(writeSafetensors((std::filesystem::path(folder) / name).string(), files[i]));
  }
  index["metadata"]["total_size"] = total;
  return writeFile((std::filesystem::path(folder) / kWeightIndex).string(), index.dump(2) + "\n");
}

}  // namespace

absl::Status saveWeights(const Executor& executor, const std::string& path, const WeightNames& names,
                         int64_t bytesOfFile) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<Weight> weights, weightsOf(executor, names));
  std::vector<SafetensorsTensor> tensors;
  for (const Weight& weight : weights) {
    WEFT_ASSIGN_OR_RETURN(std::vector<char> data, executor.readTensor(weight.tensor->name()));
    const Shape shape = weight.shape();
    if (weight.name->transposed) {
      data = transposed(data, {shape[1], shape[0]}, byteSize(weight.type()));
    }
    tensors.push_back({weight.name->file, weight.type(), shape, std::move(data)});
  }
  return bytesOfFile > 0 ? writeInFiles(path, std::move(tensors), bytesOfFile) : writeSafetensors(path, tensors);
}

}  // namespace weft
