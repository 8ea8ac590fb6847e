#include "planner/step/buckets.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace weft {
namespace {

// What saves room is joined in the fewest buckets where so many may hold all of it, else one after another.
constexpr int64_t kFewBuckets = 4;

class BucketFormer {
 public:
  BucketFormer(const std::vector<Reduction>& reductions, const BucketBytes& most)
      : reductions_(reductions),
        bucketBytes_(most.operands),
        gatheredBytes_(most.gathered),
        open_(reductions.size()),
        places_(positions(), 0) {
    std::iota(open_.begin(), open_.end(), 0);
    std::iota(places_.begin(), places_.end(), 0);
    for (const Reduction& reduction : reductions) {
      savingBytes_ += reduction.limit == BucketLimit::kQuarter ? reduction.bytes : 0;
      roomBytes_ += reduction.savesRoom ? reduction.bytes : 0;
      gatheredBytes_ = std::max(gatheredBytes_, reduction.limit == BucketLimit::kLargest ? reduction.resultBytes : 0);
    }
  }

  std::vector<Bucket> run() {
    std::vector<Bucket> buckets;
    while (!open_.empty()) {
      Bucket bucket = next();
      std::erase_if(open_, [&](size_t index) { return contains(bucket.members, index); });
      const Reduction& first = reductions_[bucket.members.front()];
      const bool isMoved = first.savesRoom && !first.producers.empty() && bucket.before != first.position;
      if (bucket.members.size() > 1 || isMoved) {
        move(bucket);
        buckets.push_back(std::move(bucket));
      }
    }
    return buckets;
  }

 private:
  static bool contains(const std::vector<size_t>& members, size_t index) {
    return std::find(members.begin(), members.end(), index) != members.end();
  }

  // One more than the greatest position that any reduction names.
  size_t positions() const {
    int64_t last = -1;
    for (const Reduction& reduction : reductions_) {
      last = std::max(last, reduction.position);
      for (const std::vector<int64_t>* others : {&reduction.readers, &reduction.producers}) {
        last = others->empty() ? last : std::max(last, *std::max_element(others->begin(), others->end()));
      }
    }
    return static_cast<size_t>(last + 1);
  }

  bool isBefore(int64_t a, int64_t b) const { return places_[a] < places_[b]; }

  // The position of the first reader, as places are now.
  int64_t needOf(size_t index) const {
    const std::vector<int64_t>& readers = reductions_[index].readers;
    return *std::min_element(readers.begin(), readers.end(), [&](int64_t a, int64_t b) { return isBefore(a, b); });
  }

  // The reduction that is needed first, and what joins it there, needed soonest first, while it fits.
  Bucket next() {
    using Key = std::pair<int64_t, int64_t>;  // places of the first reader and of the reduction
    std::vector<std::pair<Key, size_t>> keyed;
    for (const size_t index : open_) {
      keyed.push_back({{places_[needOf(index)], places_[reductions_[index].position]}, index});
    }
    const auto isSooner = [](const auto& a, const auto& b) { return a.first < b.first; };
    if (!std::is_sorted(keyed.begin(), keyed.end(), isSooner)) {  // a bucket before changes little
      std::stable_sort(keyed.begin(), keyed.end(), isSooner);
      std::transform(keyed.begin(), keyed.end(), open_.begin(), [](const auto& entry) { return entry.second; });
    }
    const bool savesRoom = reductions_[open_.front()].savesRoom;
    Bucket bucket = savesRoom && roomBytes_ > kFewBuckets * bucketBytes_ ? soonestMade() : soonestNeeded();
    if (savesRoom) {
      bucket.before = afterOperands(bucket.members, bucket.before);
    }
    std::sort(bucket.members.begin(), bucket.members.end(),
              [&](size_t a, size_t b) { return isBefore(reductions_[a].position, reductions_[b].position); });
    return bucket;
  }

  Bucket soonestNeeded() const {
    Bucket bucket{{open_.front()}, needOf(open_.front())};
    int64_t bytes = reductions_[open_.front()].bytes;
    int64_t results = reductions_[open_.front()].resultBytes;
    for (const size_t index : open_) {
      const Reduction& other = reductions_[index];
      const bool fits = bytes + other.bytes <= limitOf(index) &&
                        (other.limit != BucketLimit::kLargest || results + other.resultBytes <= gatheredBytes_);
      if (fits && !contains(bucket.members, index) && mayJoin(index, bucket)) {
        bucket.members.push_back(index);
        bytes += other.bytes;
        results += other.resultBytes;
      }
    }
    return bucket;
  }

  // Of those like the first that is open: one after another as their operands are made, so that no more than one
  // bucket's bytes wait. What is more than half a bucket stays alone.
  Bucket soonestMade() const {
    using Made = std::pair<int64_t, size_t>;  // the place behind which its operands exist, its number in open_
    std::vector<Made> alike;
    for (size_t i = 0; i < open_.size(); ++i) {
      if (areAlike(open_[i], open_.front())) {
        alike.emplace_back(lastMade(open_[i]), i);
      }
    }
    const size_t first = open_[std::min_element(alike.begin(), alike.end())->second];
    Bucket bucket{{first}, needOf(first)};
    int64_t bytes = reductions_[first].bytes;
    const int64_t most = limitOf(first);
    if (bytes > most / 2) {
      return bucket;
    }
    std::sort(alike.begin(), alike.end());
    for (size_t i = 1; i < alike.size(); ++i) {
      const size_t other = open_[alike[i].second];
      const int64_t mine = reductions_[other].bytes;
      if (mine > most / 2) {
        continue;
      }
      Bucket more = bucket;
      more.before = isBefore(needOf(other), bucket.before) ? needOf(other) : bucket.before;
      if (bytes + mine > most || !mayJoin(other, more)) {
        break;
      }
      bytes += mine;
      bucket = std::move(more);
      bucket.members.push_back(other);
    }
    return bucket;
  }

  // The place behind which all operands exist; -1 if nothing makes them.
  int64_t lastMade(size_t index) const {
    int64_t made = -1;
    for (const int64_t producer : reductions_[index].producers) {
      made = std::max(made, places_[producer]);
    }
    return made;
  }

  // The position that comes first after all that makes operands of the members; `latest` if nothing does.
  int64_t afterOperands(const std::vector<size_t>& members, int64_t latest) const {
    int64_t made = -1;
    for (const size_t member : members) {
      made = std::max(made, lastMade(member));
    }
    int64_t first = latest;
    for (int64_t position = 0; made >= 0 && position < static_cast<int64_t>(places_.size()); ++position) {
      first = places_[position] > made && isBefore(position, first) ? position : first;
    }
    return first;
  }

  // Of the operands of a bucket that it is in.
  int64_t limitOf(size_t index) const {
    const bool isQuarter = reductions_[index].limit == BucketLimit::kQuarter;
    return isQuarter ? std::min(bucketBytes_, savingBytes_ / kFewBuckets) : bucketBytes_;
  }

  bool areAlike(size_t a, size_t b) const {
    return reductions_[a].key == reductions_[b].key && reductions_[a].limit == reductions_[b].limit &&
           reductions_[a].savesRoom == reductions_[b].savesRoom;
  }

  // Has the reduction the bucket's key, and do all its operands exist there, none made by a member?
  bool mayJoin(size_t index, const Bucket& bucket) const {
    const Reduction& reduction = reductions_[index];
    return areAlike(index, bucket.members.front()) &&
           std::all_of(reduction.producers.begin(), reduction.producers.end(), [&](int64_t producer) {
             return isBefore(producer, bucket.before) &&
                    std::none_of(bucket.members.begin(), bucket.members.end(),
                                 [&](size_t member) { return reductions_[member].position == producer; });
           });
  }

  // Makes room for the bucket and puts all members there.
  void move(const Bucket& bucket) {
    const int64_t place = places_[bucket.before];
    for (int64_t& other : places_) {
      other += other >= place ? 1 : 0;
    }
    for (const size_t member : bucket.members) {
      places_[reductions_[member].position] = place;
    }
  }

  const std::vector<Reduction>& reductions_;
  const int64_t bucketBytes_;
  int64_t gatheredBytes_;    // of the results of a bucket that are limited to the largest or to what is given
  int64_t savingBytes_ = 0;  // of all that are limited to a quarter of them
  int64_t roomBytes_ = 0;    // of all that save room
  std::vector<size_t> open_;
  std::vector<int64_t> places_;  // where each position's operation stands now: any ascending numbers
};

}  // namespace

std::vector<Bucket> bucketsOf(const std::vector<Reduction>& reductions, const BucketBytes& most) {
  return BucketFormer(reductions, most).run();
}

}  // namespace weft
