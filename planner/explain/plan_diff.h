// What differs between two plans, line by line: what was decided first, then what it comes to.
//
//   what                    a                  b
//   mesh                    dp=2,tp=2          dp=4
//   weights h*.fc.weight    [{},{tp}] 2 x      [{},{}] 2 x
//   memory: activation      1.50 MiB           2.25 MiB
//
// A plan may be a compiled one, or decisions alone, of which less is known: a line stands where both sides know it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "planner/explain/plan_summary.h"
#include "runtime/plan/statistics.h"

namespace weft {

// A plan as it is compared.
struct ComparedPlan {
  PlanSummary summary;
  bool compiled = false;
  PlanStatistics statistics = {};  // of a compiled plan
};

struct DiffLine {
  enum class Unit : uint8_t { kText, kNumber, kBytes, kSeconds };

  struct Side {
    std::string text;   // of kText
    double number = 0;  // else
    friend bool operator==(const Side&, const Side&) = default;
  };

  std::string what;
  Unit unit = Unit::kText;
  Side a, b;

  bool same() const { return a == b; }
};

// All lines, those that are the same, too.
std::vector<DiffLine> compare(const ComparedPlan& a, const ComparedPlan& b);

}  // namespace weft
