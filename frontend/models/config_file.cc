#include "frontend/models/config_file.h"

#include <filesystem>
#include <limits>

#include "absl/strings/str_cat.h"
#include "runtime/base/read_text.h"

namespace weft::models {

ConfigFile::ConfigFile(const std::string& path) : path_(path), json_(Json::object()) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    path_ = (std::filesystem::path(path) / "config.json").string();
  }
  const absl::StatusOr<std::string> text = readText(path_);
  if (!text.ok()) {
    status_ = text.status();
    return;
  }
  absl::StatusOr<Json> json = parseJson(*text);
  if (!json.ok()) {
    refuse(std::string(json.status().message()));
  } else if (!json->is_object()) {
    refuse(absl::StrCat("found ", shownJson(*json), ", expected an object"));
  } else {
    json_ = *std::move(json);
  }
}

void ConfigFile::refuse(const std::string& text) {
  if (status_.ok()) {
    status_ = absl::InvalidArgumentError(absl::StrCat(path_, ": ", text));
  }
}

const Json* ConfigFile::find(const std::string& name) const {
  const auto found = json_.find(name);
  return found == json_.end() || found->is_null() ? nullptr : &*found;
}

const Json* ConfigFile::find(const std::string& object, const std::string& name) const {
  const Json* const outer = find(object);
  if (outer == nullptr || !outer->is_object()) {
    return nullptr;
  }
  const auto found = outer->find(name);
  return found == outer->end() || found->is_null() ? nullptr : &*found;
}

template <typename T>
T ConfigFile::keep(absl::StatusOr<T> value, T otherwise) {
  if (!value.ok()) {
    refuse(std::string(value.status().message()));
    return otherwise;
  }
  return *std::move(value);
}

void ConfigFile::expectType(const std::string& modelType) {
  if (const std::string found = text("model_type", ""); found != modelType) {
    refuse(absl::StrCat("model_type is '", found, "'; this reads '", modelType, "'"));
  }
}

int64_t ConfigFile::size(const std::string& name) {
  if (find(name) == nullptr) {
    refuse(absl::StrCat("there is no '", name, "'; the model needs it"));
    return 1;
  }
  return size(name, 1);
}

int64_t ConfigFile::size(const std::string& name, int64_t otherwise) {
  const Json* const value = find(name);
  constexpr IntegerRange kSizes = {.least = 1, .most = int64_t{1} << 40};
  return value == nullptr ? otherwise : keep(jsonInteger(*value, name, kSizes), otherwise);
}

double ConfigFile::real(const std::string& name, double otherwise) {
  const Json* const value = find(name);
  const double found = value == nullptr ? otherwise : keep(jsonReal(*value, name), otherwise);
  if (found < 0) {
    refuse(absl::StrCat(name, ": found ", found, ", expected a number from 0"));
  }
  return found;
}

double ConfigFile::rate(const std::string& name, double otherwise) {
  const double found = real(name, otherwise);
  if (found >= 1) {
    refuse(absl::StrCat(name, ": found ", found, ", expected a rate from 0, below 1"));
  }
  return found;
}

void ConfigFile::expectMultiple(const std::string& name, int64_t value, const std::string& divisorName,
                                int64_t divisor) {
  if (value % divisor != 0) {
    refuse(absl::StrCat(name, " is ", value, ", no multiple of ", divisorName, ", ", divisor));
  }
}

bool ConfigFile::flag(const std::string& name, bool otherwise) {
  const Json* const value = find(name);
  return value == nullptr ? otherwise : keep(jsonBool(*value, name), otherwise);
}

std::string ConfigFile::text(const std::string& name, const std::string& otherwise) {
  const Json* const value = find(name);
  return value == nullptr ? otherwise : keep(jsonText(*value, name), otherwise);
}

double ConfigFile::real(const std::string& object, const std::string& name, double otherwise) {
  const Json* const value = find(object, name);
  return value == nullptr ? otherwise : keep(jsonReal(*value, absl::StrCat(object, ".", name)), otherwise);
}

std::string ConfigFile::text(const std::string& object, const std::string& name, const std::string& otherwise) {
  const Json* const value = find(object, name);
  return value == nullptr ? otherwise : keep(jsonText(*value, absl::StrCat(object, ".", name)), otherwise);
}

}  // namespace weft::models
