// The memory rows of a model: which of them can bind at all, and how full a plan makes them.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/assign/model.h"

namespace weft::assign {

// Makes the rows few without changing which plans fit: what a residence takes in any case is taken off the capacities;
// rows that the largest values fill to no more than their capacity go, and so do rows whose residents are all in a
// neighboring row that holds no more. Residences in no row go. False: a row is too small for the least values.
bool compressRows(Model& model);

// How far each row is above its capacity under a plan; below it: negative.
std::vector<int64_t> excessOf(const Model& model, const std::vector<int>& plan);

// How far each row is above its capacity, under changes of ranges: a tree of maxima, in which a change or a question
// takes time logarithmic in the number of rows.
class UsageProfile {
 public:
  // Begins with these excesses.
  explicit UsageProfile(const std::vector<int64_t>& excess);

  void add(int first, int last, int64_t usage);
  // The greatest excess of all rows; of no rows: a very negative one.
  int64_t excess() const { return most_.empty() ? INT64_MIN / 4 : most_[1]; }
  int64_t excess(int first, int last) const { return excess(1, 0, size_, first, last); }
  bool fits() const { return excess() <= 0; }
  // The first row with the greatest excess.
  int fullest() const;

 private:
  void add(int node, int begin, int end, const Residence& change, int64_t usage);
  int64_t excess(int node, int begin, int end, int first, int last) const;

  int size_;                    // of the tree's lowest level: a power of two
  std::vector<int64_t> most_;   // of a node: the greatest excess below it, with its own and lower changes
  std::vector<int64_t> added_;  // to all rows below a node
};

// Which variables may take memory in a row.
class Residents {
 public:
  explicit Residents(const Model& model);

  // Each as often as it has residences there.
  std::vector<int> of(int row) const;

 private:
  void add(int node, int begin, int end, const Residence& residence, int variable);

  int size_;                             // of the tree's lowest level: a power of two
  std::vector<std::vector<int>> below_;  // of a node: those in all rows below it, but not in all below its parent
};

}  // namespace weft::assign
