#include "tests/fuzz/target.h"

#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_split.h"

namespace weft::fuzz {
namespace {

constexpr uint64_t kMostChanges = 3;

}  // namespace

std::string mutated(const Target& target, const std::string& bytes, Mutator& mutator) {
  std::string changed = bytes;
  for (uint64_t i = 0; i <= mutator.below(kMostChanges); ++i) {
    changed = target.mutate != nullptr ? target.mutate(changed, mutator) : mutateText(changed, target.words, mutator);
  }
  return changed;
}

void require(bool holds, const std::string& what) {
  if (!holds) {
    std::fprintf(stderr, "finding: %s\n", what.c_str());
    std::abort();
  }
}

void requireOk(const absl::Status& status, const std::string& what) {
  require(status.ok(), what + ": " + status.ToString());
}

std::vector<std::string> wordsOf(const std::string& text) {
  return absl::StrSplit(text, '|');
}

Outcome outcomeOf(const absl::Status& status) {
  return status.ok() ? Outcome::kAccepted : Outcome::kRefused;
}

}  // namespace weft::fuzz
