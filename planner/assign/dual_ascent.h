// A lower bound on all plans, and what each value costs beyond it, by passing costs along edges.
//
// A table's entries may be lowered and the costs of a variable's values raised by as much without changing what any
// plan costs; the sum of the least cost of each variable and of each table is then a bound, and which costs are passed
// decides how good it is. A pass goes over the variables in order: each takes from the edges to those before it what
// they can give, and hands what it has evenly to the edges to those behind it; the next pass goes back. The bound never
// falls (sequential reweighted message passing: Kolmogorov, "Convergent tree-reweighted message passing for energy
// minimization", 2006, and "A new look at reweighted message passing", 2015). All costs are whole numbers, so the bound
// is exact however many passes there were.
//
// Memory rows come in with prices: a plan pays for what it puts into a row, and gets the price of the row's capacity
// back. Whatever the prices, a plan that fits costs no more than without them (Lagrangian relaxation).
#pragma once

#include <vector>

#include "planner/assign/model.h"

namespace weft::assign {

// Of one unit of usage in each row: cost x 2^-shift.
struct RowPrices {
  int shift = 0;
  std::vector<int64_t> ofRow;  // >= 0
};

class DualAscent {
 public:
  // Both must outlive the object.
  DualAscent(const Model& model, Ticks& ticks);

  // Costs so far stay where they were passed to.
  void setPrices(const RowPrices& prices);

  // From the first variable to the last, or back. Returns a plan on the way: each variable takes what is cheapest
  // beside those that have chosen, with what the others passed to it for the rest.
  std::vector<int> pass(bool forward);

  // No plan that fits costs less. Of what the last pass left.
  Cost bound() const { return constant_ - pricedCapacity_; }
  // What each value of a variable costs beyond the least, as far as it is known: a plan that takes it costs at least
  // bound() and this.
  std::vector<Cost> beyond(int variable) const;
  // What each value costs now, with the prices of its memory; the least of a variable is 0.
  const std::vector<std::vector<Cost>>& costs() const { return costs_; }
  // The model with costs where they were passed to: a plan costs constant() less. Prices are not in it.
  Model passed() const;
  Cost constant() const { return constant_; }

 private:
  struct Message {
    int edge = 0;
    bool isFirst = false;  // is the variable the edge's first?
    int other = 0;
  };

  const Cost* costsTo(const Message& message) const {
    return &given_[givenAt_[2 * message.edge + (message.isFirst ? 0 : 1)]];
  }
  const Cost* costsFrom(const Message& message) const {
    return &given_[givenAt_[2 * message.edge + (message.isFirst ? 1 : 0)]];
  }
  Cost* costsTo(const Message& message) { return &given_[givenAt_[2 * message.edge + (message.isFirst ? 0 : 1)]]; }
  void take(int v, const Message& message);
  void hand(int v, const std::vector<Message>& messages, size_t parts);
  int choose(int v, const std::vector<Message>& before, const std::vector<Message>& behind,
             const std::vector<int>& plan);
  void rebase(int v);

  const Model& model_;
  Ticks& ticks_;
  Cost most_;                                 // of one message
  std::vector<std::vector<Message>> before_;  // of each variable: edges to lower numbers, in order
  std::vector<std::vector<Message>> behind_;  // to higher ones
  std::vector<int64_t> givenAt_;              // of each edge: to its first variable, to its second
  std::vector<Cost> given_;                   // by an edge to each value of a variable; negative: taken by it
  std::vector<std::vector<Cost>> priced_;     // of each value: its memory
  std::vector<std::vector<Cost>> costs_;      // of each value now
  std::vector<Cost> scratch_;                 // of one variable
  Cost constant_ = 0;                         // least costs taken off `costs_`
  Cost pricedCapacity_ = 0;
};

}  // namespace weft::assign
