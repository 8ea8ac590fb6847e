#include "planner/freedoms.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "runtime/base/names.h"

namespace weft {
namespace {

struct Name {
  Freedom freedom;
  const char* name;
};

constexpr Name kNames[] = {
    {Freedom::kRecompute, "recompute"},        {Freedom::kZero, "zero"},
    {Freedom::kZeroClasses, "zero-classes"},   {Freedom::kGathers, "gathers"},
    {Freedom::kPipeline, "pipeline"},          {Freedom::kVirtualStages, "virtual-stages"},
    {Freedom::kUnevenStages, "uneven-stages"}, {Freedom::kStageMeshes, "stage-meshes"},
    {Freedom::kAxisOrder, "axis-order"},       {Freedom::kZeroBubble, "zero-bubble"},
    {Freedom::kMemoryPrices, "memory-prices"}, {Freedom::kOffload, "offload"},
    {Freedom::kTensorSplits, "tensor-splits"}, {Freedom::kPads, "pads"},
    {Freedom::kBatchAxes, "batch-axes"},       {Freedom::kTogether, "together"},
};

}  // namespace

const std::vector<Freedom>& allFreedoms() {
  static const std::vector<Freedom> all = [] {
    std::vector<Freedom> freedoms;
    for (const Name& each : kNames) {
      freedoms.push_back(each.freedom);
    }
    return freedoms;
  }();
  return all;
}

std::string freedomName(Freedom freedom) {
  const auto* found =
      std::find_if(std::begin(kNames), std::end(kNames), [&](const Name& each) { return each.freedom == freedom; });
  return found->name;
}

absl::StatusOr<Freedoms> parseFreedoms(const std::string& names) {
  Freedoms freedoms;
  const std::vector<std::string> words = absl::StrSplit(names, ',', absl::SkipWhitespace());
  for (const std::string& each : words) {
    const std::string word(absl::StripAsciiWhitespace(each));
    const auto* found =
        std::find_if(std::begin(kNames), std::end(kNames), [&](const Name& n) { return word == n.name; });
    if (found == std::end(kNames)) {
      std::vector<std::string> known;
      for (const Name& name : kNames) {
        known.emplace_back(name.name);
      }
      return absl::InvalidArgumentError(absl::StrCat(
          "without '", names, "': '", word, "' is nothing that can be taken from the search; did you mean '",
          nearestName(word, known), "'? There are ", absl::StrJoin(known, ", ")));
    }
    freedoms.insert(found->freedom);
  }
  return freedoms;
}

std::string printFreedoms(const Freedoms& freedoms) {
  return absl::StrJoin(freedoms, ",",
                       [](std::string* out, Freedom freedom) { absl::StrAppend(out, freedomName(freedom)); });
}

}  // namespace weft
