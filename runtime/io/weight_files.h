// The safetensors files of one model: a file, an index that lists several, or a folder that holds either.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/io/safetensors.h"

namespace weft {

inline constexpr char kWeightFile[] = "model.safetensors";
inline constexpr char kWeightIndex[] = "model.safetensors.index.json";

class WeightFiles {
 public:
  // `path`: a safetensors file; an index, whose "weight_map" says the file of each tensor, beside the index; a folder
  // with model.safetensors.index.json or model.safetensors. Errors: what is none of these; a file that the index names
  // and that is not there; a tensor that its file lacks.
  static absl::StatusOr<WeightFiles> open(const std::string& path);

  const std::string& path() const { return path_; }
  // Names of all tensors, those of element types that Weft does not read included.
  std::vector<std::string> names() const { return {all_.begin(), all_.end()}; }
  bool holds(const std::string& name) const { return all_.count(name) > 0; }
  // Null where there is no such tensor, or one of another element type.
  const SafetensorsEntry* find(const std::string& name) const;
  absl::StatusOr<std::vector<char>> read(const std::string& name) const;

 private:
  absl::Status addFile(SafetensorsFile file);
  absl::Status addIndex(const std::string& path);

  std::string path_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, size_t> fileOf_;  // of the tensors that can be read
  std::set<std::string> all_;
};

}  // namespace weft
