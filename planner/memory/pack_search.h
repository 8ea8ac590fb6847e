// Exact search: do the items of a component fit into a region of C bytes?
//
// Depth first over partial packings that grow from the bottom. Per section: the *floor*, below which no unplaced item
// can begin. Per unplaced item: its *head*, the highest floor under it.
//
// Branching. A valley is a run of sections with equal floor f and higher floors (or nothing) at both ends. Take a
// section s of a valley. In any packing some item comes next in s: either an item inside the valley lies on f, and
// nothing can come under it; or there is a gap above f. Some optimal packing is pushed down, every item resting on the
// bottom or on another one; so a gap ends at the head of a wide item, or on top of an item beside s: the least such
// height is the new floor of s. The section with the fewest choices is taken, as in constraint solvers, wherever it
// lies.
//
// Bounds. A floor rises to the least head of the section's unplaced items, heads rise with floors, until nothing moves;
// then the items of every section touched, taken in order of their heads and pushed together, must end below C.
//
// Also: items that no unplaced item connects are solved apart; identical items are placed in one order; an item that
// rests on nothing could be pushed down and is not placed; states that failed are remembered by a 128-bit hash of the
// unplaced items and the floors.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/memory/pack_sections.h"

namespace weft {

enum class SearchAnswer { kFits, kDoesNotFit, kGaveUp };

// Which of the choices for a section is tried first, and which section is taken.
struct SearchStyle {
  enum class Prefer { kSize, kLength, kArea, kRandom } prefer = Prefer::kSize;
  enum class Section {
    kFewest,   // the fewest choices
    kBlamed,   // the fewest choices, divided by how often the section was too full
    kLowest,   // the lowest floor
    kTightest  // the least slack, then the fewest choices
  } section = Section::kFewest;
  uint64_t seed = 0;  // kRandom
};

class PackSearch {
 public:
  explicit PackSearch(const PackComponent& component);

  // Takes at most about `limit` steps, and adds them to `effort`.
  SearchAnswer fits(int64_t capacity, const SearchStyle& style, int64_t limit, int64_t& effort);

  // After kFits: one offset per item of the component.
  const std::vector<int64_t>& offsets() const { return offset_; }
  // After kDoesNotFit: a height greater than the capacity below which nothing fits either.
  int64_t leastExceeding() const { return exceeding_; }

 private:
  enum class Field : uint8_t { kFloor, kHead, kSurface, kPlacement };
  struct Change {
    int64_t old = 0;
    int index = 0;
    Field field = Field::kFloor;
  };
  struct Key {
    uint64_t low = 0;
    uint64_t high = 0;
    bool operator==(const Key&) const = default;
  };
  struct Branch {
    int section = -1;
    int valleyFirst = 0;
    int valleyLast = 0;
    double score = 1e300;
  };

  void reset(int64_t capacity, const SearchStyle& style);
  bool solve(int first, int last);
  bool solveParts(int first, int last);
  bool branch(int first, int last);
  bool tryChoices(int first, int last);
  Branch chooseSection(int first, int last);
  void scoreSection(int section, int valleyFirst, int valleyLast, Branch& best);
  std::vector<int> choices(int section);
  int64_t gapEnd(const Branch& at);

  bool isCandidate(int item, int64_t floor) const;
  bool rests(int item, int64_t floor) const;
  double preference(int item);

  bool place(int item);
  bool raiseFloor(int section, int64_t height);
  bool settle();
  bool pushTogether(int section);
  bool exceeds(int64_t height);
  bool blame(int section, int64_t height);
  void touch(int item, int64_t oldHead);
  void clearQueues();
  void undo(size_t mark);

  Key keyOf(int first, int last);
  bool failedBefore(const Key& key) const;
  void remember(const Key& key);

  const PackComponent& component_;
  std::vector<std::vector<int>> inSection_;  // items by section
  std::vector<uint64_t> itemHash_;
  std::vector<int> twin_;  // the item with the same sections and size before this one, or -1

  // The state.
  std::vector<bool> placed_;
  std::vector<int64_t> offset_;
  std::vector<int64_t> head_;       // per item
  std::vector<int64_t> floor_;      // per section
  std::vector<int64_t> surface_;    // per section: top of the placed items
  std::vector<int64_t> remaining_;  // per section: sum of sizes of unplaced items
  std::vector<int> unplaced_;       // per section: their number
  std::vector<int> crossing_;       // per section: unplaced items that it shares with the section before
  std::vector<uint64_t> openHash_;  // per section: over the unplaced items that begin there
  std::vector<Change> changes_;

  std::vector<int> rising_;   // sections whose floor may rise
  std::vector<int> touched_;  // sections with an item whose head rose
  std::vector<bool> isRising_;
  std::vector<bool> isTouched_;
  std::vector<std::pair<int64_t, int64_t>> byHead_;

  std::vector<double> blame_;
  std::vector<Key> failed_;
  int64_t capacity_ = 0;
  int64_t exceeding_ = 0;
  int64_t steps_ = 0;
  int64_t limit_ = 0;
  int depth_ = 0;
  bool gaveUp_ = false;
  SearchStyle style_;
};

}  // namespace weft
