#include "planner/memory/pack_search.h"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

namespace weft {
namespace {

constexpr int64_t kNever = INT64_MAX;
constexpr int kMaxDepth = 8'000;                 // of the recursion, a few hundred bytes of stack each
constexpr size_t kRemembered = size_t{1} << 17;  // failed states; a newer one replaces an older in its place
// Once a section with a choice is known, no more than this many sections x items are looked at to find a better one.
constexpr int64_t kLookLimit = 5'000;

// A bijection that mixes all bits (the finalizer of splitmix64).
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

PackSearch::PackSearch(const PackComponent& component) : component_(component), inSection_(component.sections) {
  const std::vector<SectionItem>& items = component.items;
  std::map<std::tuple<int, int, int64_t>, int> known;
  for (int i = 0; i < static_cast<int>(items.size()); ++i) {
    for (int s = items[i].first; s < items[i].last; ++s) {
      inSection_[s].push_back(i);
    }
    const auto [twin, added] = known.try_emplace({items[i].first, items[i].last, items[i].size}, i);
    twin_.push_back(added ? -1 : twin->second);
    twin->second = i;
    itemHash_.push_back(mix(i + 1));
  }
  isRising_.assign(component.sections, false);
  isTouched_.assign(component.sections, false);
  blame_.assign(component.sections, 1);
}

void PackSearch::reset(int64_t capacity, const SearchStyle& style) {
  const std::vector<SectionItem>& items = component_.items;
  if (capacity != capacity_ || failed_.empty()) {
    failed_.assign(kRemembered, Key{});
    exceeding_ = kNever;  // kept with the failures: both belong to the capacity
  }
  capacity_ = capacity;
  style_ = style;
  steps_ = 0;
  depth_ = 0;
  gaveUp_ = false;
  changes_.clear();
  placed_.assign(items.size(), false);
  offset_.assign(items.size(), 0);
  head_.assign(items.size(), 0);
  floor_.assign(component_.sections, 0);
  surface_.assign(component_.sections, 0);
  remaining_.assign(component_.sections, 0);
  unplaced_.assign(component_.sections, 0);
  crossing_.assign(component_.sections + 1, 0);
  openHash_.assign(component_.sections, 0);
  for (size_t i = 0; i < items.size(); ++i) {
    for (int s = items[i].first; s < items[i].last; ++s) {
      remaining_[s] += items[i].size;
      ++unplaced_[s];
      crossing_[s] += s > items[i].first ? 1 : 0;
    }
    openHash_[items[i].first] ^= itemHash_[i];
  }
}

SearchAnswer PackSearch::fits(int64_t capacity, const SearchStyle& style, int64_t limit, int64_t& effort) {
  reset(capacity, style);
  limit_ = limit;
  bool fit = true;
  for (int s = 0; s < component_.sections && fit; ++s) {
    fit = !exceeds(remaining_[s]);
  }
  fit = fit && solve(0, component_.sections);
  effort += steps_;
  if (fit) {
    return SearchAnswer::kFits;
  }
  return gaveUp_ ? SearchAnswer::kGaveUp : SearchAnswer::kDoesNotFit;
}

// Places every item of the sections first, ..., last - 1, which no unplaced item leaves. On failure the caller undoes.
bool PackSearch::solve(int first, int last) {
  steps_ += last - first;
  int begin = first;
  for (int s = first; s <= last; ++s) {
    // A part ends where no unplaced item goes on.
    if (s < last && s > begin && crossing_[s] > 0) {
      continue;
    }
    if (s > begin && unplaced_[begin] > 0) {
      if (begin == first && s == last) {
        return branch(first, last);
      }
      return solveParts(first, last);
    }
    begin = s;
  }
  return true;
}

// Apart: what fails in one part cannot be mended in another.
bool PackSearch::solveParts(int first, int last) {
  int begin = first;
  for (int s = first + 1; s <= last; ++s) {
    if (s < last && crossing_[s] > 0) {
      continue;
    }
    if (unplaced_[begin] > 0 && !branch(begin, s)) {
      return false;
    }
    begin = s;
  }
  return true;
}

bool PackSearch::branch(int first, int last) {
  if (steps_ > limit_ || depth_ >= kMaxDepth) {
    gaveUp_ = true;
    return false;
  }
  ++depth_;
  const bool fit = tryChoices(first, last);
  --depth_;
  return fit;
}

bool PackSearch::tryChoices(int first, int last) {
  const Key key = keyOf(first, last);
  if (failedBefore(key)) {
    return false;
  }
  const Branch at = chooseSection(first, last);
  const size_t mark = changes_.size();
  for (const int item : choices(at.section)) {
    if (place(item) && solve(first, last)) {
      return true;
    }
    undo(mark);
    if (gaveUp_) {
      return false;
    }
  }
  const int64_t end = gapEnd(at);
  if (end < kNever) {
    if (raiseFloor(at.section, end) && settle() && solve(first, last)) {
      return true;
    }
    clearQueues();
    undo(mark);
  }
  if (!gaveUp_) {
    remember(key);
  }
  return false;
}

PackSearch::Branch PackSearch::chooseSection(int first, int last) {
  Branch best;
  const int64_t stop = steps_ + kLookLimit;
  for (int begin = first; begin < last;) {
    int end = begin + 1;
    while (end < last && floor_[end] == floor_[begin]) {
      ++end;
    }
    const bool valley =
        (begin == first || floor_[begin - 1] > floor_[begin]) && (end == last || floor_[end] > floor_[begin]);
    if (valley && (best.section < 0 || steps_ < stop)) {
      for (int s = begin; s < end; ++s) {
        scoreSection(s, begin, end, best);
      }
    }
    begin = end;
  }
  return best;
}

void PackSearch::scoreSection(int section, int valleyFirst, int valleyLast, Branch& best) {
  using Section = SearchStyle::Section;
  auto score = static_cast<double>(floor_[section]);
  if (style_.section != Section::kLowest) {
    steps_ += static_cast<int64_t>(inSection_[section].size());
    const int64_t slack = capacity_ - floor_[section] - remaining_[section];
    score = slack > 0 ? 1 : 0;
    for (const int item : inSection_[section]) {
      score += isCandidate(item, floor_[section]) ? 1 : 0;
    }
    if (style_.section == Section::kBlamed) {
      score /= blame_[section];
    }
    if (style_.section == Section::kTightest) {
      score = score / 1000 + static_cast<double>(slack);
    }
  }
  if (score < best.score) {
    best = {section, valleyFirst, valleyLast, score};
  }
}

bool PackSearch::isCandidate(int item, int64_t floor) const {
  return !placed_[item] && head_[item] == floor && (twin_[item] < 0 || placed_[twin_[item]]);
}

bool PackSearch::rests(int item, int64_t floor) const {
  if (floor == 0) {
    return true;
  }
  for (int s = component_.items[item].first; s < component_.items[item].last; ++s) {
    if (surface_[s] == floor) {
      return true;
    }
  }
  return false;
}

double PackSearch::preference(int item) {
  const SectionItem& of = component_.items[item];
  const auto size = static_cast<double>(of.size);
  const auto length = static_cast<double>(of.last - of.first);
  switch (style_.prefer) {
    case SearchStyle::Prefer::kSize:
      return size;
    case SearchStyle::Prefer::kLength:
      return length;
    case SearchStyle::Prefer::kArea:
      return size * length;
    case SearchStyle::Prefer::kRandom:
      return static_cast<double>(mix(style_.seed ^ itemHash_[item])) / 1e19 + size * length * 1e-18;
  }
  return 0;
}

// The items that may lie on the floor of a valley's section, the preferred one first.
std::vector<int> PackSearch::choices(int section) {
  std::vector<std::pair<double, int>> found;
  for (const int item : inSection_[section]) {
    if (isCandidate(item, floor_[section]) && rests(item, floor_[section])) {
      found.push_back({-preference(item), item});
    }
  }
  std::sort(found.begin(), found.end());
  std::vector<int> items;
  for (const auto& [key, item] : found) {
    items.push_back(item);
  }
  return items;
}

// The least height at which an item can begin in the section if none begins on its floor; kNever if that exceeds the
// capacity or nothing would hold the item up.
int64_t PackSearch::gapEnd(const Branch& at) {
  const int64_t floor = floor_[at.section];
  if (floor + remaining_[at.section] >= capacity_) {
    exceeds(floor + remaining_[at.section] + 1);
    return kNever;
  }
  int64_t end = kNever;
  int64_t reach = 0;  // how far the candidates reach, to both sides
  int from = at.section;
  int to = at.section + 1;
  for (const int item : inSection_[at.section]) {
    if (placed_[item]) {
      continue;
    }
    if (head_[item] > floor) {
      end = std::min(end, head_[item]);
    } else {
      from = std::min(from, component_.items[item].first);
      to = std::max(to, component_.items[item].last);
      reach = 1;
    }
  }
  for (int s = from; reach > 0 && s < to; ++s) {
    steps_ += static_cast<int64_t>(inSection_[s].size());
    for (const int item : inSection_[s]) {
      const SectionItem& beside = component_.items[item];
      if (!placed_[item] && (beside.last <= at.section || beside.first > at.section)) {
        end = std::min(end, head_[item] + beside.size);
      }
    }
  }
  return end == kNever || exceeds(end + remaining_[at.section]) ? kNever : end;
}

// Puts an item on its head, which is the floor of all its sections.
bool PackSearch::place(int item) {
  const SectionItem& added = component_.items[item];
  const int64_t top = head_[item] + added.size;
  placed_[item] = true;
  offset_[item] = head_[item];
  openHash_[added.first] ^= itemHash_[item];
  changes_.push_back({0, item, Field::kPlacement});
  for (int s = added.first; s < added.last; ++s) {
    remaining_[s] -= added.size;
    --unplaced_[s];
    crossing_[s] -= s > added.first ? 1 : 0;
    changes_.push_back({surface_[s], s, Field::kSurface});
    surface_[s] = top;
  }
  bool possible = true;
  for (int s = added.first; s < added.last && possible; ++s) {
    possible = raiseFloor(s, top);
  }
  possible = possible && settle();
  clearQueues();
  return possible;
}

bool PackSearch::exceeds(int64_t height) {
  if (height <= capacity_) {
    return false;
  }
  exceeding_ = std::min(exceeding_, height);
  return true;
}

bool PackSearch::blame(int section, int64_t height) {
  if (!exceeds(height)) {
    return false;
  }
  blame_[section] += 1;
  return true;
}

bool PackSearch::raiseFloor(int section, int64_t height) {
  changes_.push_back({floor_[section], section, Field::kFloor});
  floor_[section] = height;
  if (blame(section, height + remaining_[section])) {
    return false;
  }
  if (!isRising_[section]) {
    isRising_[section] = true;
    rising_.push_back(section);
  }
  if (unplaced_[section] == 0) {
    return true;
  }
  steps_ += static_cast<int64_t>(inSection_[section].size());
  for (const int item : inSection_[section]) {
    if (!placed_[item] && head_[item] < height) {
      const int64_t old = head_[item];
      changes_.push_back({old, item, Field::kHead});
      head_[item] = height;
      touch(item, old);
    }
  }
  return true;
}

// An item's head rose: the floor of a section may rise with it if the item was among the lowest there.
void PackSearch::touch(int item, int64_t oldHead) {
  const SectionItem& moved = component_.items[item];
  steps_ += moved.last - moved.first;
  for (int s = moved.first; s < moved.last; ++s) {
    if (floor_[s] >= oldHead && !isRising_[s]) {
      isRising_[s] = true;
      rising_.push_back(s);
    }
    if (!isTouched_[s]) {
      isTouched_[s] = true;
      touched_.push_back(s);
    }
  }
}

bool PackSearch::settle() {
  while (!rising_.empty()) {
    const int section = rising_.back();
    rising_.pop_back();
    isRising_[section] = false;
    if (unplaced_[section] == 0) {
      continue;
    }
    int64_t least = kNever;
    steps_ += static_cast<int64_t>(inSection_[section].size());
    for (const int item : inSection_[section]) {
      least = placed_[item] ? least : std::min(least, head_[item]);
    }
    if (least > floor_[section] && !raiseFloor(section, least)) {
      return false;
    }
  }
  for (const int section : touched_) {
    if (!pushTogether(section)) {
      return false;
    }
  }
  clearQueues();
  return true;
}

// The unplaced items of a section in order of their heads, each as low as its head and the one before allow.
bool PackSearch::pushTogether(int section) {
  if (unplaced_[section] < 2) {
    return true;
  }
  byHead_.clear();
  for (const int item : inSection_[section]) {
    if (!placed_[item]) {
      byHead_.push_back({head_[item], component_.items[item].size});
    }
  }
  steps_ += static_cast<int64_t>(inSection_[section].size() + 2 * byHead_.size());
  std::sort(byHead_.begin(), byHead_.end());
  int64_t height = 0;
  for (const auto& [head, size] : byHead_) {
    height = std::max(height, head) + size;
  }
  return !blame(section, height);
}

void PackSearch::clearQueues() {
  for (const int section : rising_) {
    isRising_[section] = false;
  }
  for (const int section : touched_) {
    isTouched_[section] = false;
  }
  rising_.clear();
  touched_.clear();
}

void PackSearch::undo(size_t mark) {
  while (changes_.size() > mark) {
    const Change change = changes_.back();
    changes_.pop_back();
    switch (change.field) {
      case Field::kFloor:
        floor_[change.index] = change.old;
        break;
      case Field::kHead:
        head_[change.index] = change.old;
        break;
      case Field::kSurface:
        surface_[change.index] = change.old;
        break;
      case Field::kPlacement: {
        const SectionItem& item = component_.items[change.index];
        placed_[change.index] = false;
        openHash_[item.first] ^= itemHash_[change.index];
        for (int s = item.first; s < item.last; ++s) {
          remaining_[s] += item.size;
          ++unplaced_[s];
          crossing_[s] += s > item.first ? 1 : 0;
        }
      }
    }
  }
}

// What decides whether the rest fits: the unplaced items, the floors, and whether a floor is a surface to rest on.
PackSearch::Key PackSearch::keyOf(int first, int last) {
  Key key{static_cast<uint64_t>(first), static_cast<uint64_t>(last)};
  for (int s = first; s < last; ++s) {
    const uint64_t state = 2 * static_cast<uint64_t>(floor_[s]) + (surface_[s] == floor_[s] ? 1 : 0);
    key.low = mix(key.low ^ state) ^ openHash_[s];
    key.high = std::rotl(key.high * 0x9e3779b97f4a7c15, 29) ^ mix(state + 0x632be59bd9b4e019) ^ mix(openHash_[s]);
  }
  return key;
}

bool PackSearch::failedBefore(const Key& key) const {
  return failed_[key.low % kRemembered] == key;
}

void PackSearch::remember(const Key& key) {
  failed_[key.low % kRemembered] = key;
}

}  // namespace weft
