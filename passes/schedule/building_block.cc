// v_half and v_min.
//
// Idea (arXiv:2405.15362): choose for one micro-batch when each rank performs its six actions, in slots of equal
// length; repeat that block every six slots. If the times of one rank differ modulo six no two actions meet, and the
// time between F and W is the memory. Short lives make v_min, a balance makes v_half. At the two ends of the step slots
// stay empty: there actions move to earlier slots, as far as what they read and the peak of memory permit.
#include <algorithm>
#include <numeric>
#include <tuple>
#include <vector>

#include "passes/schedule/v_schedules.h"

namespace weft::schedule {
namespace {

constexpr int32_t kPeriod = 6;
constexpr int32_t kNever = -1;

// Slots of F0, F1, I1, I0 of micro-batch 0 on rank r; 0 is the leg down, 1 the leg up.
struct Block {
  int32_t f0, f1, i1, i0;
};

Block blockOf(Kind kind, int32_t ranks, int32_t rank) {
  const int32_t p = ranks;
  const int32_t r = rank;
  if (kind == Kind::kVMin) {
    const int32_t shift = p % 3 == 0 ? 2 : 0;
    return {r, 2 * p - 1 - r, 2 * p + shift + r, 4 * p + shift - 1 - r};
  }
  const int32_t shift = p % 2 == 0 ? 3 : 0;
  return {2 * r, 3 * p - 2 - r, 3 * p + shift + 2 * r - 1, 6 * p + shift - 2 - r};
}

// An action in a slot.
struct Placed {
  int32_t slot;
  int32_t rank;
  Action action;
};

// The slots of all ranks.
class Board {
 public:
  explicit Board(const Request& request) : request_(request), micros_(request.micros) {}

  Table run() {
    layBlocks();
    countLive();
    squeeze();
    return collect();
  }

 private:
  // One rank: which slots are taken, and how many pairs are in flight after each.
  struct Lane {
    std::vector<char> taken;
    std::vector<int32_t> live;
  };

  int32_t stages() const { return 2 * request_.ranks; }
  int32_t& doneAt(int32_t stage, ActionKind kind, int32_t micro) {
    return done_[(static_cast<size_t>(stage) * micros_ + micro) * 3 + static_cast<size_t>(kind)];
  }
  int32_t& doneAt(const Action& action) { return doneAt(action.stage, action.kind, action.micro); }

  // Takes the first free slot from `slot` on.
  void place(int32_t slot, int32_t rank, const Action& action) {
    std::vector<char>& taken = lanes_[rank].taken;
    for (;; ++slot) {
      if (slot >= static_cast<int32_t>(taken.size())) {
        taken.resize(slot + 1, 0);
      }
      if (!taken[slot]) {
        break;
      }
    }
    taken[slot] = 1;
    placed_.push_back({slot, rank, action});
  }

  // The repeated blocks: first all F and I, then each W in the first slot they leave after its I.
  void layBlocks() {
    using enum ActionKind;
    lanes_.resize(request_.ranks);
    for (int32_t rank = 0; rank < request_.ranks; ++rank) {
      const Block block = blockOf(request_.kind, request_.ranks, rank);
      const int32_t down = rank;
      const int32_t up = stages() - 1 - rank;
      for (int32_t micro = 0; micro < micros_; ++micro) {
        const int32_t shift = kPeriod * micro;
        place(block.f0 + shift, rank, forward(down, micro));
        place(block.f1 + shift, rank, forward(up, micro));
        place(block.i1 + shift, rank, inputGrad(up, micro));
        place(block.i0 + shift, rank, inputGrad(down, micro));
      }
    }
    sortPlaced();
    const size_t count = placed_.size();
    for (size_t k = 0; k < count; ++k) {
      const Placed one = placed_[k];  // place() grows the vector
      if (one.action.kind == kInputGrad) {
        place(one.slot + 1, one.rank, weightGrad(one.action.stage, one.action.micro));
      }
    }
    sortPlaced();
  }

  void sortPlaced() {
    std::sort(placed_.begin(), placed_.end(),
              [](const Placed& a, const Placed& b) { return std::tie(a.slot, a.rank) < std::tie(b.slot, b.rank); });
  }

  void countLive() {
    for (Lane& lane : lanes_) {
      lane.live.assign(lane.taken.size(), 0);
    }
    for (const Placed& one : placed_) {
      int32_t& live = lanes_[one.rank].live[one.slot];
      live = one.action.kind == ActionKind::kForward ? 1 : one.action.kind == ActionKind::kWeightGrad ? -1 : 0;
    }
    for (Lane& lane : lanes_) {
      std::partial_sum(lane.live.begin(), lane.live.end(), lane.live.begin());
      peak_ = std::max(peak_, *std::max_element(lane.live.begin(), lane.live.end()));
    }
  }

  // The first slot in which everything the action reads is there; micro-batches keep their order.
  int32_t earliest(const Action& action) {
    using enum ActionKind;
    int32_t last = kNever;
    auto after = [&](int32_t stage, ActionKind kind, int32_t micro) {
      last = std::max(last, doneAt(stage, kind, micro));
    };
    if (action.micro > 0) {
      after(action.stage, action.kind, action.micro - 1);
    }
    if (action.kind == kForward && action.stage > 0) {
      after(action.stage - 1, kForward, action.micro);
    }
    if (action.kind == kInputGrad) {
      after(action.stage, kForward, action.micro);
      if (action.stage + 1 < stages()) {
        after(action.stage + 1, kInputGrad, action.micro);
      }
    }
    if (action.kind == kWeightGrad) {
      after(action.stage, kInputGrad, action.micro);
    }
    return last + 1;
  }

  // In the order of slots each action moves to the first free one it may; a forward only as far as memory stays below
  // the peak all the way to its old slot.
  void squeeze() {
    done_.assign(static_cast<size_t>(stages()) * micros_ * 3, kNever);
    for (Placed& one : placed_) {
      Lane& lane = lanes_[one.rank];
      int32_t slot = earliest(one.action);
      if (one.action.kind == ActionKind::kForward) {
        int32_t lowest = one.slot;
        while (lowest > slot && lane.live[lowest - 1] < peak_) {
          --lowest;
        }
        slot = lowest;
      }
      while (slot < one.slot && lane.taken[slot]) {
        ++slot;
      }
      if (slot < one.slot) {
        move(lane, one, slot);
      }
      doneAt(one.action) = one.slot;
    }
  }

  static void move(Lane& lane, Placed& one, int32_t slot) {
    lane.taken[one.slot] = 0;
    lane.taken[slot] = 1;
    const int32_t change = one.action.kind == ActionKind::kForward      ? 1
                           : one.action.kind == ActionKind::kWeightGrad ? -1
                                                                        : 0;
    for (int32_t k = slot; k < one.slot; ++k) {
      lane.live[k] += change;
    }
    one.slot = slot;
  }

  Table collect() {
    sortPlaced();
    Table table;
    table.orders.resize(request_.ranks);
    for (int32_t stage = 0; stage < stages(); ++stage) {
      table.stageToRank.push_back(std::min(stage, stages() - 1 - stage));
    }
    for (const Placed& one : placed_) {
      table.orders[one.rank].push_back(one.action);
    }
    return table;
  }

  const Request& request_;
  const int32_t micros_;
  std::vector<Lane> lanes_;
  std::vector<Placed> placed_;
  std::vector<int32_t> done_;  // slots, by stage, micro-batch and F, I, W
  int32_t peak_ = 0;
};

}  // namespace

Table buildingBlockV(const Request& request) {
  return Board(request).run();
}

}  // namespace weft::schedule
