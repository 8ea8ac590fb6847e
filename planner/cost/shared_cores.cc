#include "planner/cost/shared_cores.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace weft {

SharedCores::SharedCores(const Machine& machine, std::vector<int64_t> ranks) : ranks_(std::move(ranks)) {
  const int64_t all = std::accumulate(ranks_.begin(), ranks_.end(), int64_t{0});
  const int64_t onNode = machine.devicesPerNode > 0 ? std::min(all, machine.devicesPerNode) : all;
  allRanks_ = static_cast<double>(all);
  if (machine.cores > 0 && onNode > machine.cores) {
    ranksPerCore_ = static_cast<double>(onNode) / static_cast<double>(machine.cores);
  }
}

double SharedCores::together(double longest, const std::vector<double>& busy) const {
  double work = 0;
  for (size_t s = 0; s < busy.size() && ranksPerCore_ > 0; ++s) {
    work += busy[s] * static_cast<double>(ranks_[s]);
  }
  return ranksPerCore_ > 0 ? std::max(longest, ranksPerCore_ * work / allRanks_) : longest;
}

}  // namespace weft
