#include "planner/offload.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/names.h"

namespace weft {
namespace {

constexpr const char* kNames[] = {"none", "state", "auto"};

}  // namespace

std::string offloadName(Offload offload) {
  return kNames[static_cast<size_t>(offload)];
}

absl::StatusOr<Offload> parseOffload(const std::string& name) {
  const auto* const found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found == std::end(kNames)) {
    const std::vector<std::string> names(std::begin(kNames), std::end(kNames));
    return absl::InvalidArgumentError(absl::StrCat("offload '", name, "' is unknown; did you mean '",
                                                   nearestName(name, names), "'? There are ",
                                                   absl::StrJoin(names, ", ")));
  }
  return static_cast<Offload>(found - std::begin(kNames));
}

}  // namespace weft
