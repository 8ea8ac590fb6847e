// Parts of a model that are solved again while all other variables stay as a plan has them.
#pragma once

#include <random>
#include <vector>

#include "planner/assign/memory_rows.h"
#include "planner/assign/model.h"

namespace weft::assign {

class Neighborhoods {
 public:
  // The model must outlive the object.
  explicit Neighborhoods(const Model& model);

  // About `size` variables that edges join, around a variable or around several that are in the same row; in order.
  // Rows are chosen among `rows`, if there are any.
  std::vector<int> choose(size_t size, const std::vector<int>& rows);

  // These variables beside the plan's values of all others, in the memory that those leave. `excess`: of the plan.
  Model around(const std::vector<int>& variables, const std::vector<int>& plan,
               const std::vector<int64_t>& excess) const;

 private:
  struct Neighbor {
    int edge = 0;
    int other = 0;
  };

  void addMemory(const std::vector<int>& variables, const std::vector<int>& plan, const std::vector<int64_t>& excess,
                 Model& part) const;
  int random(size_t below) { return static_cast<int>(random_() % below); }

  const Model& model_;
  std::vector<std::vector<Neighbor>> neighbors_;
  Residents residents_;
  std::mt19937 random_;
};

}  // namespace weft::assign
