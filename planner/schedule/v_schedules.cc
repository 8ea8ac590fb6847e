#include "planner/schedule/v_schedules.h"

#include <algorithm>
#include <array>
#include <deque>

namespace weft::schedule {
namespace {

Table vTable(const Request& request) {
  Table table;
  table.orders.resize(request.ranks);
  for (int32_t stage = 0; stage < 2 * request.ranks; ++stage) {
    table.stageToRank.push_back(stage < request.ranks ? stage : 2 * request.ranks - 1 - stage);
  }
  return table;
}

// Writes one rank's order; counts the micro-batches of each kind and leg (0 down, 1 up) by itself. Micro-batches from
// `micros` on are counted but not written: a schedule for fewer is the longer one without them.
class Writer {
 public:
  Writer(const Request& request, int32_t rank, std::vector<Action>& order)
      : stages_{rank, 2 * request.ranks - 1 - rank}, micros_(request.micros), order_(order) {}

  int32_t count(ActionKind kind, int leg) const { return counts_[static_cast<int>(kind)][leg]; }

  void add(ActionKind kind, int leg) {
    const int32_t micro = counts_[static_cast<int>(kind)][leg]++;
    if (micro < micros_) {
      order_.push_back({stages_[leg], kind, micro});
    }
  }
  void f(int leg) { add(ActionKind::kForward, leg); }
  void i(int leg) { add(ActionKind::kInputGrad, leg); }
  void w(int leg) { add(ActionKind::kWeightGrad, leg); }

 private:
  int32_t stages_[2];
  int32_t micros_;
  std::vector<Action>& order_;
  std::array<std::array<int32_t, 2>, 4> counts_{};
};

void zeroBubbleVRank(const Request& request, int32_t rank, std::vector<Action>& order) {
  using enum ActionKind;
  const int32_t p = request.ranks;
  const int32_t micros = std::max(2 * p - 1, request.micros);  // the shape needs this many
  Writer out(request, rank, order);
  for (int32_t k = 0; k < 2 * (p - rank) - 1; ++k) {
    out.f(0);
  }
  for (int32_t k = 0; k < rank; ++k) {
    out.f(1);
    out.f(0);
  }
  for (int32_t k = 0; k < p - rank; ++k) {
    out.f(1);
    out.i(1);
    out.w(1);
  }
  while (out.count(kForward, 1) < out.count(kForward, 0) || out.count(kForward, 0) < micros) {
    if (out.count(kForward, 0) < micros) {
      out.f(0);
    }
    out.i(0);
    out.w(0);
    out.f(1);
    out.i(1);
    out.w(1);
  }
  for (int32_t k = 0; k < rank; ++k) {
    out.i(0);
    out.i(1);
  }
  for (int32_t k = 0; k < p - rank; ++k) {
    out.i(0);
    out.w(0);
  }
  for (int leg : {1, 0}) {
    while (out.count(kWeightGrad, leg) < micros) {
      out.w(leg);
    }
  }
}

// As Writer, for gradients that are whole or cut: both count as one, and weight gradients wait in a queue of all legs.
class DualWriter {
 public:
  DualWriter(const Request& request, int32_t rank, std::vector<Action>& order)
      : stages_{rank, 2 * request.ranks - 1 - rank}, order_(order) {}

  void f(int leg) { order_.push_back(forward(stages_[leg], forwards_[leg]++)); }
  void b(int leg) { order_.push_back(backward(stages_[leg], gradients_[leg]++)); }
  void i(int leg) {
    waiting_.push_back(weightGrad(stages_[leg], gradients_[leg]));
    order_.push_back(inputGrad(stages_[leg], gradients_[leg]++));
  }
  void gradient(int leg, bool cut) { cut ? i(leg) : b(leg); }
  void w() {
    order_.push_back(waiting_.front());
    waiting_.pop_front();
  }

 private:
  int32_t stages_[2];
  int32_t forwards_[2] = {0, 0};
  int32_t gradients_[2] = {0, 0};
  std::deque<Action> waiting_;
  std::vector<Action>& order_;
};

// The eight phases of DualPipe, folded into a V.
void dualPipeVRank(const Request& request, int32_t rank, std::vector<Action>& order) {
  const int32_t after = request.ranks - rank - 1;  // ranks after this one
  DualWriter out(request, rank, order);
  for (int32_t k = 0; k < 2 * after; ++k) {
    out.f(0);
  }
  for (int32_t k = 0; k < rank + 1; ++k) {
    out.f(0);
    out.f(1);
  }
  for (int32_t k = 0; k < after; ++k) {
    out.i(1);
    out.w();
    out.f(1);
  }
  for (int32_t k = 0; k < request.micros - 2 * request.ranks + rank + 1; ++k) {
    out.f(0);
    out.b(1);
    out.f(1);
    out.b(0);
  }
  for (int32_t k = 0; k < after; ++k) {
    out.b(1);
    out.f(1);
    out.b(0);
  }
  const int32_t half = (rank + 1) / 2;  // from here on gradients are cut, to fill the end
  for (int32_t k = 0; k < rank + 1; ++k) {
    out.gradient(1, k > half || (k == half && rank % 2 == 1));
    out.gradient(0, k >= half);
  }
  for (int32_t k = 0; k < after; ++k) {
    out.w();
    out.i(0);
  }
  for (int32_t k = 0; k < rank + 1; ++k) {
    out.w();
  }
}

}  // namespace

Table zeroBubbleV(const Request& request) {
  // The steady state of this order is never reached then, and blocks come out shorter whatever f, i and w are.
  if (request.micros <= request.ranks) {
    return buildingBlockV(request);
  }
  Table table = vTable(request);
  for (int32_t rank = 0; rank < request.ranks; ++rank) {
    zeroBubbleVRank(request, rank, table.orders[rank]);
  }
  return table;
}

Table dualPipeV(const Request& request) {
  Table table = vTable(request);
  for (int32_t rank = 0; rank < request.ranks; ++rank) {
    dualPipeVRank(request, rank, table.orders[rank]);
  }
  return table;
}

}  // namespace weft::schedule
