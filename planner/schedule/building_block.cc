// v_half and v_min; zb_v where there are no more micro-batches than ranks.
//
// Idea (arXiv:2405.15362): choose for one micro-batch when each rank performs its six actions, in slots of equal
// length; repeat that block every six slots. If the times of one rank differ modulo six no two actions meet, and the
// time between F and W is the memory. Short lives make v_min, a balance makes v_half. At the two ends of the step slots
// stay empty. They are filled in two ways, neither of which raises the peak of memory:
//   squeeze  in the order of slots, each action moves to the first free slot after what it reads
//   replay   slot after slot, each rank takes the best of the actions that can run; weight gradients fill the gaps
// Either is better for some sizes, so a handful of combinations is tried and the shortest kept. It is then replayed
// with its slots shaken, as often as a count of actions allows, and each table that is no longer becomes the next one
// to shake. The numbers that shake are always the same, so the table is.
#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "planner/schedule/v_schedules.h"

namespace weft::schedule {
namespace {

constexpr int32_t kPeriod = 6;
constexpr int32_t kNever = -1;  // no slot yet

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

// When every action runs: a slot for each stage, kind (F, I, W) and micro-batch.
class Slots {
 public:
  Slots(int32_t stages, int32_t micros)
      : stages_(stages), micros_(micros), at_(static_cast<size_t>(stages) * 3 * micros, kNever) {}

  int32_t stages() const { return stages_; }
  int32_t micros() const { return micros_; }
  int64_t actions() const { return static_cast<int64_t>(at_.size()); }
  int32_t rankOf(int32_t stage) const { return std::min(stage, stages_ - 1 - stage); }
  int32_t& of(const Action& a) { return at_[index(a)]; }
  int32_t of(const Action& a) const { return at_[index(a)]; }
  // Those of all micro-batches.
  int32_t* of(int32_t stage, ActionKind kind) { return &of({stage, kind, 0}); }
  const int32_t* of(int32_t stage, ActionKind kind) const { return at_.data() + index({stage, kind, 0}); }
  // Calls change(slot) on the slot of every action.
  template <typename Change>
  void changeAll(Change change) {
    for (int32_t& slot : at_) {
      slot = change(slot);
    }
  }
  int32_t span() const { return 1 + *std::max_element(at_.begin(), at_.end()); }

  // The work of a rank, and the way of the first micro-batch to the last rank.
  int32_t shortestSpan() const { return kPeriod * micros_ + stages_ / 2 - 1; }

  // Calls visit(action) on all actions, rank by rank.
  template <typename Visit>
  void forAll(Visit visit) const {
    for (int32_t rank = 0; rank < stages_ / 2; ++rank) {
      for (const int32_t stage : {rank, stages_ - 1 - rank}) {
        for (ActionKind kind : {ActionKind::kForward, ActionKind::kInputGrad, ActionKind::kWeightGrad}) {
          for (int32_t micro = 0; micro < micros_; ++micro) {
            visit(Action{stage, kind, micro});
          }
        }
      }
    }
  }

  // All actions by slot, those of one slot by rank.
  std::vector<Action> sorted() const {
    std::vector<size_t> places(span() + 1, 0);  // of each slot: the place of its next action
    forAll([&](const Action& a) { ++places[of(a) + 1]; });
    std::partial_sum(places.begin(), places.end(), places.begin());
    std::vector<Action> actions(at_.size());
    forAll([&](const Action& a) { actions[places[of(a)]++] = a; });
    return actions;
  }

  // The last slot of what the action reads and of the same action of the micro-batch before; kNever, one before the
  // first slot, if there is nothing to wait for.
  int32_t lastInput(const Action& a) const {
    int32_t last = kNever;
    forInputs(a, [&](const Action& input) { last = std::max(last, of(input)); });
    return last;
  }

 private:
  size_t index(const Action& a) const {
    return (static_cast<size_t>(a.stage) * 3 + static_cast<size_t>(a.kind)) * micros_ + a.micro;
  }

  template <typename Visit>
  void forInputs(const Action& a, Visit visit) const {
    if (a.micro > 0) {
      visit(Action{a.stage, a.kind, a.micro - 1});
    }
    if (a.kind == ActionKind::kForward && a.stage > 0) {
      visit(forward(a.stage - 1, a.micro));
    }
    if (a.kind == ActionKind::kInputGrad) {
      visit(forward(a.stage, a.micro));
      if (a.stage + 1 < stages_) {
        visit(inputGrad(a.stage + 1, a.micro));
      }
    }
    if (a.kind == ActionKind::kWeightGrad) {
      visit(inputGrad(a.stage, a.micro));
    }
  }

  int32_t stages_;
  int32_t micros_;
  std::vector<int32_t> at_;
};

// Pairs in flight after the action, less those before.
int32_t change(ActionKind kind) {
  return kind == ActionKind::kForward ? 1 : kind == ActionKind::kWeightGrad ? -1 : 0;
}

// One rank: which slots are taken, and how many pairs are in flight after each.
struct Lane {
  std::vector<char> taken;
  std::vector<int32_t> live;
};

std::vector<Lane> lanesOf(const Slots& slots) {
  std::vector<Lane> lanes(slots.stages() / 2);
  const int32_t span = slots.span();
  for (Lane& lane : lanes) {
    lane.taken.assign(span, 0);
    lane.live.assign(span, 0);
  }
  slots.forAll([&](const Action& a) {
    Lane& lane = lanes[slots.rankOf(a.stage)];
    lane.taken[slots.of(a)] = 1;
    lane.live[slots.of(a)] = change(a.kind);
  });
  for (Lane& lane : lanes) {
    std::partial_sum(lane.live.begin(), lane.live.end(), lane.live.begin());
  }
  return lanes;
}

int32_t peakOf(const Slots& slots) {
  int32_t peak = 0;
  for (const Lane& lane : lanesOf(slots)) {
    peak = std::max(peak, *std::max_element(lane.live.begin(), lane.live.end()));
  }
  return peak;
}

// The repeated blocks: all F and I, then each W in the first slot they leave after its I.
Slots layBlocks(const Request& request) {
  Slots slots(2 * request.ranks, request.micros);
  for (int32_t rank = 0; rank < request.ranks; ++rank) {
    const Block block = blockOf(request.kind, request.ranks, rank);
    const int32_t up = slots.stages() - 1 - rank;
    std::vector<char> taken(std::max({block.f0, block.f1, block.i1, block.i0}) + kPeriod * (request.micros + 1), 0);
    for (int32_t micro = 0; micro < request.micros; ++micro) {
      const std::pair<Action, int32_t> laid[] = {{forward(rank, micro), block.f0},
                                                 {forward(up, micro), block.f1},
                                                 {inputGrad(up, micro), block.i1},
                                                 {inputGrad(rank, micro), block.i0}};
      for (const auto& [action, slot] : laid) {
        slots.of(action) = slot + kPeriod * micro;
        taken[slot + kPeriod * micro] = 1;
      }
    }
    // I of the way up comes first within a block, so this goes through them by slot: two free slots, two W, per period.
    for (int32_t micro = 0; micro < request.micros; ++micro) {
      for (const int32_t stage : {up, rank}) {
        int32_t slot = slots.of(inputGrad(stage, micro)) + 1;
        while (slot < static_cast<int32_t>(taken.size()) && taken[slot]) {
          ++slot;
        }
        taken.resize(std::max<size_t>(taken.size(), slot + 1), 0);
        taken[slot] = 1;
        slots.of(weightGrad(stage, micro)) = slot;
      }
    }
  }
  return slots;
}

// A forward moves only as far as memory stays below the peak all the way to its old slot. Weight gradients may be left
// where they are, for replay() to place.
Slots squeeze(const Slots& before, int32_t peak, bool moveWeights) {
  Slots slots = before;
  std::vector<Lane> lanes = lanesOf(before);
  for (const Action& a : before.sorted()) {
    Lane& lane = lanes[slots.rankOf(a.stage)];
    const int32_t old = slots.of(a);
    int32_t slot = slots.lastInput(a) + 1;
    if (a.kind == ActionKind::kWeightGrad && !moveWeights) {
      continue;
    }
    if (a.kind == ActionKind::kForward) {
      int32_t lowest = old;
      while (lowest > slot && lane.live[lowest - 1] < peak) {
        --lowest;
      }
      slot = lowest;
    }
    while (slot < old && lane.taken[slot]) {
      ++slot;
    }
    if (slot < old) {
      lane.taken[old] = 0;
      lane.taken[slot] = 1;
      std::for_each(lane.live.begin() + slot, lane.live.begin() + old, [&](int32_t& live) { live += change(a.kind); });
      slots.of(a) = slot;
    }
  }
  return slots;
}

// What a rank prefers among the actions that can run.
enum class Preference {
  kInOrder,        // the order before; weight gradients last
  kForwardsFirst,  // then input gradients, then weight gradients
  kBySlot,         // the order before, whatever they are
};

// Runs the step again slot after slot. Micro-batches of one action keep their order, so does the sequence of all
// forwards of a rank.
class Replay {
 public:
  Replay(const Slots& before, int32_t peak, Preference preference)
      : micros_(before.micros()),
        left_(before.actions()),
        after_(before.stages(), before.micros()),
        peak_(peak),
        preference_(preference) {
    for (int32_t rank = 0; rank < before.stages() / 2; ++rank) {
      RankState& state = ranks_.emplace_back();
      for (int leg = 0; leg < 2; ++leg) {
        const int32_t stage = leg == 0 ? rank : before.stages() - 1 - rank;
        for (const ActionKind kind : kKinds) {
          Stream& stream = state.of(leg, kind);
          stream.before = before.of(stage, kind);
          stream.after = after_.of(stage, kind);
          if (kind == ActionKind::kForward && stage > 0) {
            stream.input = after_.of(stage - 1, kind);
          } else if (kind == ActionKind::kInputGrad && stage + 1 < before.stages()) {
            stream.input = after_.of(stage + 1, kind);
          }
        }
      }
    }
  }

  // Nothing if memory stops all ranks, or if it takes longer than `limit` slots.
  std::optional<Slots> run(int32_t limit) {
    for (int32_t slot = 0; left_ > 0; ++slot) {
      if (slot == limit) {
        return std::nullopt;
      }
      for (RankState& rank : ranks_) {
        left_ -= step(rank, slot) ? 1 : 0;
      }
    }
    return std::move(after_);
  }

 private:
  static constexpr std::array kKinds = {ActionKind::kForward, ActionKind::kInputGrad, ActionKind::kWeightGrad};

  // One kind of action of one stage. Slots are by micro-batch.
  struct Stream {
    const int32_t* before = nullptr;
    int32_t* after = nullptr;
    const int32_t* input = nullptr;  // of what it reads of another stage, if it reads any
    int32_t next = 0;                // micro-batch
  };

  struct RankState {
    std::array<std::array<Stream, kKinds.size()>, 2> streams;  // by leg and kind
    int32_t live = 0;

    Stream& of(int leg, ActionKind kind) { return streams[leg][static_cast<size_t>(kind)]; }
    const Stream& of(int leg, ActionKind kind) const { return streams[leg][static_cast<size_t>(kind)]; }
  };

  bool isOver(const Stream& stream) const { return stream.next == micros_; }

  // Can the next action of the stream run? What the rank itself ran lies in earlier slots.
  bool isReady(const RankState& rank, int leg, ActionKind kind, int32_t slot) const {
    const Stream& stream = rank.of(leg, kind);
    if (kind == ActionKind::kWeightGrad) {
      return rank.of(leg, ActionKind::kInputGrad).next > stream.next;
    }
    if (kind == ActionKind::kInputGrad && rank.of(leg, ActionKind::kForward).next <= stream.next) {
      return false;
    }
    const int32_t input = stream.input == nullptr ? 0 : stream.input[stream.next];
    return stream.input == nullptr || (input != kNever && input < slot);
  }

  // The leg whose next forward was earlier. Nothing: memory allows none.
  std::optional<int> legOfForward(const RankState& rank) const {
    if (rank.live >= peak_) {
      return std::nullopt;
    }
    const Stream& down = rank.of(0, ActionKind::kForward);
    const Stream& up = rank.of(1, ActionKind::kForward);
    return isOver(down) || (!isOver(up) && up.before[up.next] < down.before[down.next]) ? 1 : 0;
  }

  std::pair<int, int32_t> rating(const Stream& stream, ActionKind kind) const {
    const int last = kind == ActionKind::kWeightGrad ? 1 : 0;
    const int first = preference_ == Preference::kForwardsFirst ? static_cast<int>(kind)
                      : preference_ == Preference::kInOrder     ? last
                                                                : 0;
    return {first, stream.before[stream.next]};
  }

  // True if an action of this rank got the slot.
  bool step(RankState& rank, int32_t slot) {
    Stream* best = nullptr;
    ActionKind bestKind = ActionKind::kForward;
    std::pair<int, int32_t> least;
    const std::optional<int> forward = legOfForward(rank);
    for (int leg = 0; leg < 2; ++leg) {
      for (const ActionKind kind : kKinds) {
        Stream& stream = rank.of(leg, kind);
        if (isOver(stream) || (kind == ActionKind::kForward && forward != leg)) {
          continue;
        }
        const std::pair<int, int32_t> mine = rating(stream, kind);
        if ((best == nullptr || mine < least) && isReady(rank, leg, kind, slot)) {
          best = &stream;
          bestKind = kind;
          least = mine;
        }
      }
    }
    if (best == nullptr) {
      return false;
    }
    best->after[best->next++] = slot;
    rank.live += change(bestKind);
    return true;
  }

  const int32_t micros_;
  int64_t left_;  // actions
  Slots after_;
  const int32_t peak_;
  const Preference preference_;
  std::vector<RankState> ranks_;
};

// Shakes the slots and replays, again and again.
Slots improve(Slots best, int32_t peak) {
  constexpr int64_t kActions = 150'000;  // of all replays
  constexpr std::array kPreferences = {Preference::kInOrder, Preference::kBySlot};
  constexpr std::array<uint64_t, 3> kReach = {2, 4, 8};  // slots by which an action's may be shaken
  std::mt19937_64 generator(best.actions());
  for (int64_t left = kActions, round = 0; left > 0 && best.span() > best.shortestSpan();
       left -= best.actions(), ++round) {
    const uint64_t reach = kReach[round % kReach.size()];
    Slots shaken = best;
    shaken.changeAll([&](int32_t slot) { return 4 * slot + static_cast<int32_t>(generator() % (4 * reach)); });
    const Preference preference = kPreferences[generator() % kPreferences.size()];
    if (std::optional<Slots> again = Replay(shaken, peak, preference).run(best.span())) {
      best = squeeze(*again, peak, true);
    }
  }
  return best;
}

Slots shortest(const Slots& blocks, int32_t peak) {
  const std::vector<Slots> starts{blocks, squeeze(blocks, peak, true), squeeze(blocks, peak, false)};
  Slots best = starts[1];
  auto offer = [&](const Slots& slots) {
    if (slots.span() < best.span()) {
      best = slots;
    }
  };
  for (const Slots& start : starts) {
    for (Preference preference : {Preference::kInOrder, Preference::kForwardsFirst}) {
      if (std::optional<Slots> again = Replay(start, peak, preference).run(start.span())) {
        offer(*again);
        offer(squeeze(*again, peak, true));
      }
    }
  }
  return improve(std::move(best), peak);
}

Table squeezedBlocks(const Request& request) {
  const Slots blocks = layBlocks(request);
  const Slots slots = shortest(blocks, request.kind == Kind::kZbV ? 2 * request.ranks : peakOf(blocks));
  Table table;
  table.orders.resize(request.ranks);
  for (int32_t stage = 0; stage < slots.stages(); ++stage) {
    table.stageToRank.push_back(slots.rankOf(stage));
  }
  for (const Action& a : slots.sorted()) {
    table.orders[slots.rankOf(a.stage)].push_back(a);
  }
  return table;
}

}  // namespace

// Searches ask for the same tables again and again, and making one takes a search of its own: the last ones are kept.
Table buildingBlockV(const Request& request) {
  constexpr size_t kMostKept = 64;
  static std::mutex mutex;
  static std::map<std::tuple<Kind, int32_t, int32_t>, Table> kept;
  const auto key = std::tuple(request.kind, request.ranks, request.micros);
  const std::lock_guard<std::mutex> lock(mutex);
  if (const auto it = kept.find(key); it != kept.end()) {
    return it->second;
  }
  if (kept.size() == kMostKept) {
    kept.clear();
  }
  return kept.emplace(key, squeezedBlocks(request)).first->second;
}

}  // namespace weft::schedule
