#include "runtime/plan/rank_groups.h"

#include <map>
#include <numeric>

namespace weft {

RankGroups::RankGroups(const plan::Plan& plan) {
  std::map<std::vector<int64_t>, int> numbers;
  const auto number = [&](std::vector<int64_t> ranks) {
    const auto [it, added] = numbers.try_emplace(ranks, static_cast<int>(members_.size()));
    if (added) {
      members_.push_back(std::move(ranks));
    }
    return it->second;
  };
  std::vector<int64_t> all(plan.ranks());
  std::iota(all.begin(), all.end(), 0);
  all_ = number(std::move(all));
  for (const plan::GroupSet& set : plan.group_sets()) {
    std::vector<int>& groupOfRank = groupOfRank_.emplace_back(plan.ranks());
    for (const auto& group : set.groups()) {
      const int own = number({group.ranks().begin(), group.ranks().end()});
      for (const int64_t rank : group.ranks()) {
        groupOfRank[rank] = own;
      }
    }
  }
}

}  // namespace weft
