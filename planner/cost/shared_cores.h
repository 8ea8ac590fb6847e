// How long ranks take together that take turns on fewer cores (Machine::cores).
#pragma once

#include <cstdint>
#include <vector>

#include "planner/machine/machine.h"

namespace weft {

class SharedCores {
 public:
  // `ranks`: of each submesh of a program.
  SharedCores(const Machine& machine, std::vector<int64_t> ranks);

  // What ranks would have done after `longest` if each had a core of its own, where each of those of a submesh works
  // for so long: not before that, and not before all cores together have done all of the work. A core is never idle
  // while a rank wants one, and a rank that waits for others leaves its core to them. In the unit of both.
  double together(double longest, const std::vector<double>& busy) const;

 private:
  std::vector<int64_t> ranks_;
  double allRanks_ = 0;
  double ranksPerCore_ = 0;  // 0: each has its own
};

}  // namespace weft
