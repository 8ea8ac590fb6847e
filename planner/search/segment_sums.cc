#include "planner/search/segment_sums.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace weft {

bool take(const Saving& all, int64_t bytes, Saving& sum) {
  const int64_t left = bytes - sum.bytes;
  if (left >= all.bytes) {
    sum.bytes += all.bytes;
    sum.time += all.time;
    return true;
  }
  const double part = std::min(1.0, static_cast<double>(left) / static_cast<double>(all.bytes));
  if (part <= 0) {
    return false;
  }
  sum.bytes += static_cast<int64_t>(std::ceil(part * static_cast<double>(all.bytes)));
  sum.time += static_cast<Picoseconds>(std::ceil(part * static_cast<double>(all.time)));
  return true;
}

SegmentSums::SegmentSums(const std::vector<SegmentCost>& costs) {
  sumTimes(costs);
  countSavings(costs);
  fillMost(costs);
}

StageNeeds SegmentSums::of(int begin, int end) const {
  const StageNeeds& before = sums_[begin];
  StageNeeds needs = sums_[end];
  needs.time -= before.time;
  needs.onceTime -= before.onceTime;
  needs.heldBytes -= before.heldBytes;
  needs.activations.toInputs -= before.activations.toInputs;
  needs.activations.toWeights -= before.activations.toWeights;
  needs.activations.between -= before.activations.between;
  if (begin < end) {  // two runs of as many segments cover them
    const auto count = static_cast<unsigned>(end - begin);
    const std::vector<Most>& runs = most_[std::bit_width(count) - 1];
    const Most most = Most::of(runs[begin], runs[end - static_cast<int>(std::bit_floor(count))]);
    needs.passingBytes = most.passingBytes + most.bufferBytes;
  }
  return needs;
}

Saving SegmentSums::saving(int begin, int end, int64_t bytes, Picoseconds most) const {
  const int64_t* before = countsBefore(begin);
  const int64_t* after = countsBefore(end);
  Saving sum;
  for (size_t i = 0; i < savings_.size() && sum.time <= most; ++i) {
    const int64_t count = after[i] - before[i];
    if (count > 0 && !take({count * savings_[i].bytes, count * savings_[i].time}, bytes, sum)) {
      break;
    }
  }
  return sum;
}

std::vector<Saving> SegmentSums::savings(int begin, int end) const {
  const int64_t* before = countsBefore(begin);
  const int64_t* after = countsBefore(end);
  std::vector<Saving> savings;
  for (size_t i = 0; i < savings_.size(); ++i) {
    if (const int64_t count = after[i] - before[i]; count > 0) {
      savings.push_back({count * savings_[i].bytes, count * savings_[i].time});
    }
  }
  return savings;
}

SegmentSums::Most SegmentSums::Most::of(const Most& a, const Most& b) {
  return {std::max(a.passingBytes, b.passingBytes), std::max(a.bufferBytes, b.bufferBytes)};
}

void SegmentSums::sumTimes(const std::vector<SegmentCost>& costs) {
  sums_.resize(costs.size() + 1);
  for (size_t i = 0; i < costs.size(); ++i) {
    sums_[i + 1] = sums_[i];
    sums_[i + 1].time += costs[i].time;
    sums_[i + 1].onceTime += costs[i].onceTime + costs[i].offloadTime;
    sums_[i + 1].heldBytes += costs[i].bytesOfStep();
    sums_[i + 1].activations += costs[i].activations;
  }
}

void SegmentSums::countSavings(const std::vector<SegmentCost>& costs) {
  std::vector<Saving> all;                            // as they come
  std::vector<std::vector<size_t>> of(costs.size());  // of each segment: their numbers
  for (size_t i = 0; i < costs.size(); ++i) {
    if (i > 0 && costs[i].savings == costs[i - 1].savings) {  // of equal layers
      of[i] = of[i - 1];
      continue;
    }
    for (const Saving& saving : costs[i].savings) {
      of[i].push_back(std::find(all.begin(), all.end(), saving) - all.begin());
      if (of[i].back() == all.size()) {
        all.push_back(saving);
      }
    }
  }
  std::vector<size_t> order(all.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return isCheaper(all[a], all[b]); });
  std::vector<size_t> place(all.size());
  for (size_t i = 0; i < order.size(); ++i) {
    savings_.push_back(all[order[i]]);
    place[order[i]] = i;
  }
  counts_.resize((costs.size() + 1) * all.size());
  for (size_t i = 0; i < costs.size(); ++i) {
    int64_t* const next = counts_.data() + (i + 1) * all.size();
    std::copy(countsBefore(static_cast<int>(i)), countsBefore(static_cast<int>(i)) + all.size(), next);
    for (const size_t number : of[i]) {
      ++next[place[number]];
    }
  }
}

void SegmentSums::fillMost(const std::vector<SegmentCost>& costs) {
  std::vector<Most>& each = most_.emplace_back();
  for (const SegmentCost& cost : costs) {
    each.push_back({cost.passingBytes, cost.bufferBytes});
  }
  for (size_t run = 1; 2 * run <= costs.size(); run *= 2) {
    const std::vector<Most>& half = most_.back();
    std::vector<Most> whole;
    for (size_t i = 0; i + 2 * run <= costs.size(); ++i) {
      whole.push_back(Most::of(half[i], half[i + run]));
    }
    most_.push_back(std::move(whole));
  }
}

}  // namespace weft
