// Packings that were found, each question asked once: equal stages of a pipeline, and a step that is asked about again
// with few of its operators changed, pack much the same.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "planner/memory/pack.h"

namespace weft {

class KnownPackings {
 public:
  // pack(items, {.effort = effort}).
  const Packing& of(std::vector<PackItem> items, int64_t effort);

 private:
  struct Question {
    std::vector<PackItem> items;
    int64_t effort = 0;

    friend bool operator==(const Question&, const Question&) = default;
  };
  struct Hash {
    size_t operator()(const Question& question) const;
  };

  std::unordered_map<Question, Packing, Hash> known_;
};

}  // namespace weft
