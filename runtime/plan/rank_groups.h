// Which ranks meet in a collective.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/plan/plan.pb.h"

namespace weft {

// The groups of a submesh, numbered. Groups of the same ranks in the same order have one number, whichever group
// set they stand in: the runtime has one barrier for them. A permute is met by the group of all ranks.
class RankGroups {
 public:
  // The group sets of the plan must be partitions of its ranks.
  explicit RankGroups(const plan::Plan& plan);

  // The group in which `rank` meets others at the collective.
  int of(const plan::Collective& collective, int64_t rank) const {
    return collective.kind() == plan::PERMUTE ? all_ : groupOfRank_[collective.group_set()][rank];
  }
  const std::vector<int64_t>& members(int group) const { return members_[group]; }
  int count() const { return static_cast<int>(members_.size()); }

 private:
  std::vector<std::vector<int64_t>> members_;
  std::vector<std::vector<int>> groupOfRank_;  // of each group set
  int all_ = 0;
};

}  // namespace weft
