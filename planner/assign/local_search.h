// A plan that is changed one variable at a time: what each change would cost is kept up to date.
#pragma once

#include <vector>

#include "planner/assign/memory_rows.h"
#include "planner/assign/model.h"

namespace weft::assign {

class LocalSearch {
 public:
  // Both must outlive the object.
  LocalSearch(const Model& model, Ticks& ticks);

  void start(std::vector<int> values);

  // Changes single variables while the plan costs less for it; fewer forbidden choices come before cost. Once the plan
  // fits, no change lets it overflow; before, changes that take more memory where it overflows are left out.
  void descend();
  // Lowers what overflows, row by row, by the changes that cost least for what they free. True: the plan fits.
  bool makeRoom();

  bool possible() const { return now_.forbidden == 0 && profile_.fits(); }
  Cost cost() const { return now_.forbidden > 0 ? kForbidden : now_.cost; }
  const std::vector<int>& values() const { return values_; }

 private:
  struct Neighbor {
    int edge = 0;
    int other = 0;
  };
  // What a value costs with the neighbors as they are, and how many of these costs are forbidden; or a difference.
  struct State {
    int64_t forbidden = 0;
    Cost cost = 0;
    void add(Cost more, int sign) {
      forbidden += more >= kForbidden ? sign : 0;
      cost += more >= kForbidden ? 0 : sign * more;
    }
    bool isBetter() const { return forbidden < 0 || (forbidden == 0 && cost < 0); }
  };

  State change(int v, int x) const {
    const State& to = at_[begin_[v] + x];
    const State& from = at_[begin_[v] + values_[v]];
    return {to.forbidden - from.forbidden, to.cost - from.cost};
  }
  void set(int v, int x);
  void occupy(int v, int x, int sign);
  bool setIfItFits(int v, int x);
  bool improve(int v);
  bool lighten(int row);

  const Model& model_;
  Ticks& ticks_;
  std::vector<std::vector<Neighbor>> neighbors_;
  std::vector<int> values_;
  std::vector<size_t> begin_;  // of each variable's values in `own_` and `at_`
  std::vector<State> own_;     // of each value, without the neighbors
  std::vector<State> at_;
  Residents residents_;
  UsageProfile profile_;
  State now_;  // of the plan
};

}  // namespace weft::assign
