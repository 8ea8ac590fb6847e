#include "runtime/io/weight_files.h"

#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/json.h"
#include "runtime/base/read_text.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

// The file that stands for a path: in a folder, the index or the only file.
absl::StatusOr<std::string> fileOf(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) {
    return path;
  }
  for (const char* name : {kWeightIndex, kWeightFile}) {
    const std::filesystem::path inside = std::filesystem::path(path) / name;
    if (std::filesystem::exists(inside, ignored)) {
      return inside.string();
    }
  }
  return absl::NotFoundError(absl::StrCat("folder '", path, "' holds neither ", kWeightIndex, " nor ", kWeightFile,
                                          "; name the safetensors file"));
}

}  // namespace

absl::StatusOr<WeightFiles> WeightFiles::open(const std::string& path) {
  WeightFiles weights;
  WEFT_ASSIGN_OR_RETURN(weights.path_, fileOf(path));
  if (absl::EndsWith(weights.path_, ".json")) {
    WEFT_RETURN_IF_ERROR(weights.addIndex(weights.path_));
  } else {
    WEFT_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::open(weights.path_));
    WEFT_RETURN_IF_ERROR(weights.addFile(std::move(file)));
  }
  return weights;
}

absl::Status WeightFiles::addFile(SafetensorsFile file) {
  for (const auto& [name, entry] : file.entries()) {
    const auto [known, isNew] = fileOf_.emplace(name, files_.size());
    if (!isNew) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", name, "' stands both in ", files_[known->second].path(), " and in ", file.path()));
    }
    all_.insert(name);
  }
  all_.insert(file.unsupported().begin(), file.unsupported().end());
  files_.push_back(std::move(file));
  return absl::OkStatus();
}

absl::Status WeightFiles::addIndex(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const std::string text, readText(path));
  const absl::StatusOr<Json> json = parseJson(text);
  if (!json.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", json.status().message()));
  }
  WEFT_ASSIGN_OR_RETURN(JsonObject index, JsonObject::of(*json, path));
  WEFT_ASSIGN_OR_RETURN(const Json* const map, index.map("weight_map"));
  std::map<std::string, std::vector<std::string>> tensorsOf;
  for (const auto& [name, value] : map->items()) {
    WEFT_ASSIGN_OR_RETURN(const std::string file, jsonText(value, absl::StrCat(path, ": weight_map.", name)));
    if (std::filesystem::path(file).filename() != file) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": weight_map.", name, ": found '", file,
                                                     "', expected the name of a file beside the index"));
    }
    tensorsOf[file].push_back(name);
  }
  for (const auto& [name, tensors] : tensorsOf) {
    const std::string beside = (std::filesystem::path(path).parent_path() / name).string();
    WEFT_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::open(beside));
    WEFT_RETURN_IF_ERROR(addFile(std::move(file)));
    for (const std::string& tensor : tensors) {
      if (fileOf_.count(tensor) == 0) {
        return absl::InvalidArgumentError(
            absl::StrCat(path, ": weight_map has '", tensor, "' in ", name, ", which does not hold it"));
      }
    }
  }
  return absl::OkStatus();
}

const SafetensorsEntry* WeightFiles::find(const std::string& name) const {
  const auto file = fileOf_.find(name);
  return file == fileOf_.end() ? nullptr : &files_[file->second].entries().at(name);
}

absl::StatusOr<std::vector<char>> WeightFiles::read(const std::string& name) const {
  const auto file = fileOf_.find(name);
  if (file == fileOf_.end()) {
    return absl::NotFoundError(absl::StrCat(path_, " holds no tensor '", name, "'"));
  }
  return files_[file->second].read(name);
}

}  // namespace weft
