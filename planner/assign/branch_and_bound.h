// All plans that cost less than a given one, depth first, with the costs that a dual ascent has passed as the bound.
#pragma once

#include <optional>
#include <vector>

#include "planner/assign/memory_rows.h"
#include "planner/assign/model.h"

namespace weft::assign {

class BranchAndBound {
 public:
  // `model` is DualAscent::passed(), `priced` what each value costs with the prices of its memory: a plan costs at
  // least the sum of these, of all tables, and `base`. All tables are >= 0. The references must outlive the object.
  BranchAndBound(const Model& model, std::vector<std::vector<Cost>> priced, Cost base, Ticks& ticks);

  // Looks for plans that fit and whose cost in `model` is less than `upper`; each one that is found lowers it by
  // `unit`, of which all differences of costs are multiples. True: all were looked at, so that best() is the best of
  // all, or there is none.
  bool run(Cost upper, Cost unit);

  const std::optional<std::vector<int>>& best() const { return best_; }

 private:
  struct Neighbor {
    int edge = 0;
    int other = 0;
  };

  bool search(Cost bound, int assigned);
  int choose(Cost bound) const;
  Cost assign(int v, int x, Cost bound);
  void withdraw(int v, std::vector<std::vector<Cost>> before);

  const Model& model_;
  Ticks& ticks_;
  Cost base_;
  Cost upper_ = 0;
  Cost unit_ = 1;
  int64_t valuesInAll_ = 0;
  std::vector<std::vector<Neighbor>> neighbors_;
  std::vector<std::vector<Cost>> costs_;  // of each value, with the neighbors that have one
  std::vector<Cost> least_;               // of a variable's costs
  std::vector<int> values_;               // -1: none yet
  UsageProfile profile_;
  std::optional<std::vector<int>> best_;
};

}  // namespace weft::assign
