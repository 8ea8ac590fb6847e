// The reshards of a program as tables of the problem that decides its splits: what it costs to make each form of a
// value, a layout in which it is read, from each layout that it may be made in.
//
// A reshard counts with the least that it can take at first, which is quick to know, and with what it takes once an
// assignment is asked about that makes it. What an assignment costs is then what it costs in truth, and all others are
// held against it with no more than they cost.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/layout/layout.h"
#include "planner/assign/eliminate.h"
#include "planner/derive/reshard_prices.h"
#include "planner/derive/shardings.h"
#include "planner/submesh_machines.h"

namespace weft {

// A layout that a value lies in or is read in, for each candidate of an operator; of none: always the same.
struct ReshardEnd {
  std::optional<int> op;          // the variable
  std::vector<Layout> layouts;    // of the value
  std::vector<Layout> gradients;  // of its gradient: as it is wanted, or as a reader contributes to it
  unsigned operand = 0;           // of a reader
};

// Where a value goes: to its readers; its gradient from these; out of the step.
enum class ReshardWay : uint8_t { kToReaders, kFromReaders, kToEnd };

struct ResharedValue {
  int value = 0;
  int64_t mesh = 0;
  ReshardWay way = ReshardWay::kToReaders;
  int64_t layers = 1;  // alike, which reshard theirs likewise
  int64_t calls = 1;   // in a step that reshard it, each as much as its price says
};

class ReshardTables {
 public:
  // Values of a variable that says whether a form is made.
  static constexpr int kMade = 0;
  static constexpr int kNotMade = 1;

  // All outlive it. `pricesSlices`: what only slices is copied. The problem's variables so far are those of operators.
  ReshardTables(const SettledGraph& graph, const SubmeshMachines& machines, bool pricesSlices, ReshardMemo& memo,
                AssignmentProblem& problem);

  // Adds the reshards of a value, and the variables that they need. Error: one that cannot be planned.
  absl::Status add(const ResharedValue& value, const ReshardEnd& source, const std::vector<ReshardEnd>& readers);
  // All of them, and how often each counts.
  std::vector<std::pair<const ReshardMemo::Price*, int64_t>> reshards() const;
  // Those of an assignment, and with them all that are equal, count with what they take from now on. What a memo knows
  // beyond them is left alone: where elimination is not exact the answer would depend on what was asked before.
  absl::Status price(const std::vector<int>& values);
  // What a reshard takes that joins others of its kind: of parameters' gradients, and of scalars.
  absl::StatusOr<Picoseconds> joining(int value, int64_t mesh, const Layout& from, const Layout& to) {
    return bucketed_.of(value, mesh, from, to);
  }

 private:
  // The reshards of a value into one form, in a table of the problem.
  struct Form {
    ResharedValue of;
    int table = 0;
    std::optional<int> source;  // variable; none: the table is of `reader` alone
    int reader = 0;             // variable
    std::vector<bool> reads;    // of each value of `reader`
    bool bucketed = false;
    int64_t times = 1;  // beyond those that the price has: in all layers and calls
    Layout form;
    // Of each value of the source, in order; of each value of the reader where it is one. Forms of one value share it.
    std::shared_ptr<const std::vector<Layout>> made;
    std::vector<bool> isExact;                      // of each of `made`
    std::vector<const ReshardMemo::Price*> prices;  // likewise; none of what only slices
  };
  struct Reshard {
    const Layout& from;
    const Layout& to;
  };

  static bool isBack(const Form& form) { return form.of.way == ReshardWay::kFromReaders; }
  static const std::vector<Layout>& layoutsOf(const ReshardEnd& end, ReshardWay way) {
    return way == ReshardWay::kFromReaders ? end.gradients : end.layouts;
  }
  static Reshard reshardOf(const Form& form, size_t made);
  static bool areOfOneTable(const Form& a, const Form& b);
  Form formOf(const ResharedValue& value) const;
  ReshardPrices& pricesOf(const Form& form) { return form.bucketed ? bucketed_ : prices_; }
  absl::StatusOr<Picoseconds> leastOf(Form& form, size_t made);
  void addForm(Form form, const std::vector<Picoseconds>& costs, const std::vector<ReshardEnd>& readers);
  void addTable(Form form, const std::vector<Picoseconds>& costs);
  void setCost(const Form& form, int made, Picoseconds cost);

  const SettledGraph& graph_;
  const SubmeshMachines& machines_;
  const bool pricesSlices_;
  AssignmentProblem& problem_;
  ReshardPrices prices_;
  ReshardPrices bucketed_;  // of parameters' gradients, and of scalars: one launch reduces many
  std::vector<Form> forms_;
  // Where each price counts: forms, and of which of `made`.
  absl::flat_hash_map<const ReshardMemo::Price*, std::vector<std::pair<size_t, int>>> countsIn_;
};

}  // namespace weft
