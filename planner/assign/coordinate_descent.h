// An assignment made better by changing one variable at a time, where some costs are known only from below.
//
// What a table says of a combination may be less than what it costs in truth, and the truth may take long to find. So
// only the value that seems to cost least is asked about, and stays if it still costs less once the truth is known.
#pragma once

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "planner/assign/eliminate.h"

namespace weft {

class CoordinateDescent {
 public:
  // Raises entries of the problem's tables until the cost of these values is what it is in truth.
  using Price = absl::FunctionRef<absl::Status(const std::vector<int>& values)>;

  // Variables from number `followers` on have two values and follow the others, which alone share tables with them:
  // they have value 1 wherever that is possible. The problem outlives the object; its costs may change.
  CoordinateDescent(const AssignmentProblem& problem, int followers);

  // Sets all followers.
  void follow(std::vector<int>& values) const;

  // Changes one variable after another to the value that costs least with the others as they are, until none is left
  // that costs less with another value. `values`: possible, and of a cost that is true, before and after. Error: of
  // `price`.
  absl::Status run(const Price& price, std::vector<int>& values) const;

 private:
  // Costs of the values of one variable: every `stride`-th from the first on.
  struct Row {
    const Picoseconds* first = nullptr;
    int64_t stride = 0;
  };
  static void add(const Row& row, std::vector<Picoseconds>& sums);
  Row rowOf(const CostTable& table, int variable, const std::vector<int>& values) const;
  // Of each value of a variable: what depends on it, with its followers as they follow. Leaves `values` as they are.
  std::vector<Picoseconds> costsOf(int variable, std::vector<int>& values) const;
  void follow(int follower, std::vector<int>& values) const;
  absl::StatusOr<bool> improve(int variable, const Price& price, std::vector<int>& values) const;

  const AssignmentProblem& problem_;
  const int followers_;
  // Of each variable:
  std::vector<std::vector<int>> tables_;
  std::vector<std::vector<int>> followersOf_;
  std::vector<std::vector<int>> neighbors_;  // others that share a table or a follower with it
};

}  // namespace weft
