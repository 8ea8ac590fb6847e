#include "planner/memory/known_packings.h"

namespace weft {

const Packing& KnownPackings::of(std::vector<PackItem> items, int64_t effort) {
  const auto [known, isNew] = known_.try_emplace({std::move(items), effort});
  if (isNew) {
    known->second = pack(known->first.items, {.effort = effort});
  }
  return known->second;
}

size_t KnownPackings::Hash::operator()(const Question& question) const {
  uint64_t hash = static_cast<uint64_t>(question.effort);
  for (const PackItem& item : question.items) {
    for (const int64_t number : {item.lower, item.upper, item.bytes}) {
      hash = (hash ^ static_cast<uint64_t>(number)) * 0x9E3779B97F4A7C15;
      hash ^= hash >> 29;
    }
  }
  return hash;
}

}  // namespace weft
