// The config.json of a published model.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/base/json.h"

namespace weft::models {

// Reads what a model asks for; what it does not ask for is passed over, as such files describe generation, training and
// the library that wrote them, too. An entry that is null counts as absent. Errors are kept: status() has the first.
class ConfigFile {
 public:
  // `path`: the file, or a folder that holds config.json.
  explicit ConfigFile(const std::string& path);

  bool says(const std::string& name) const { return find(name) != nullptr; }
  // The file must say `modelType`.
  void expectType(const std::string& modelType);
  int64_t size(const std::string& name);  // at least 1
  int64_t size(const std::string& name, int64_t otherwise);
  double real(const std::string& name, double otherwise);  // at least 0
  double rate(const std::string& name, double otherwise);  // of dropout: from 0, below 1
  bool flag(const std::string& name, bool otherwise);
  std::string text(const std::string& name, const std::string& otherwise);
  // A value inside an object of the file: real("rope_parameters", "rope_theta", 10000).
  double real(const std::string& object, const std::string& name, double otherwise);
  std::string text(const std::string& object, const std::string& name, const std::string& otherwise);
  // Two entries whose values were read: the first has to be a multiple of the second.
  void expectMultiple(const std::string& name, int64_t value, const std::string& divisorName, int64_t divisor);
  // An error that names the file: "mlp_bias is true; ...".
  void refuse(const std::string& text);

  const absl::Status& status() const { return status_; }

 private:
  // Null where there is no such entry.
  const Json* find(const std::string& name) const;
  const Json* find(const std::string& object, const std::string& name) const;
  template <typename T>
  T keep(absl::StatusOr<T> value, T otherwise);

  std::string path_;
  Json json_;
  absl::Status status_;
};

}  // namespace weft::models
