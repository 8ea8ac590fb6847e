#include "ir/layout/reshard_space.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weft::reshard {
namespace {

// leastPrice looks at this many ranks at most; any choice of ranks gives a valid bound.
constexpr int64_t kMaxWitnesses = 16;

// Above this number of partial parts, reductions of every subset are not tried any more.
constexpr size_t kMaxSubsetParts = 4;

void appendKey(std::string& key, const Digits& digits) {
  for (Digit digit : digits) {
    key.push_back(static_cast<char>(digit.low));
    key.push_back(static_cast<char>(digit.high));
  }
  key.push_back('\xff');
}

}  // namespace

std::string Problem::key() const {
  return absl::StrCat(absl::StrJoin(cuts, ","), ";", absl::StrJoin(sizes, ","), ";", unitBytes, ";", scatterable, ";",
                      keyOf(from), keyOf(to));
}

void appendDigit(Digits& digits, Digit digit) {
  if (!digits.empty() && digits.back().high == digit.low) {
    digits.back().high = digit.high;
  } else {
    digits.push_back(digit);
  }
}

void insertSorted(Digits& digits, Digit digit) {
  digits.insert(std::upper_bound(digits.begin(), digits.end(), digit), digit);
  Digits joined;
  for (Digit each : digits) {
    appendDigit(joined, each);
  }
  digits = std::move(joined);
}

std::string keyOf(const State& state) {
  std::string key;
  for (const Digits& digits : state.dims) {
    appendKey(key, digits);
  }
  appendKey(key, state.partial);
  return key;
}

Space::Space(const Problem& problem) : problem_(problem) {
  int64_t count = std::min(ranks(), kMaxWitnesses);
  for (int64_t i = 0; i < count; ++i) {
    // Spread over the line, with changing minor digits.
    witnesses_.push_back(ranks() <= kMaxWitnesses ? i : (i * ranks() / count + i) % ranks());
  }
  const std::vector<int64_t>& cuts = problem_.cuts;
  for (int64_t low : cuts) {
    for (int64_t high : cuts) {
      sizes_.push_back(std::max<int64_t>(1, high / low));
      for (int64_t rank : witnesses_) {
        places_.push_back(rank / (ranks() / high) % sizes_.back());
      }
    }
  }
}

int64_t Space::productOf(const Digits& digits) const {
  int64_t product = 1;
  for (Digit digit : digits) {
    product *= sizeOf(digit);
  }
  return product;
}

int64_t Space::localBytes(const State& state) const {
  int64_t bytes = problem_.unitBytes;
  for (size_t d = 0; d < state.dims.size(); ++d) {
    bytes *= problem_.sizes[d] / productOf(state.dims[d]);
  }
  return bytes;
}

bool Space::fits(const State& state, int d) const {
  return problem_.sizes[d] % productOf(state.dims[d]) == 0;
}

std::string Space::signatureOf(const State& state) const {
  std::string key;
  for (const Digits& digits : state.dims) {
    absl::StrAppend(&key, productOf(digits), ",");
  }
  appendKey(key, state.partial);
  return key;
}

Digits Space::freeOf(const State& state) const {
  Digits used = state.partial;
  for (const Digits& digits : state.dims) {
    used.insert(used.end(), digits.begin(), digits.end());
  }
  std::sort(used.begin(), used.end());
  uint8_t last = static_cast<uint8_t>(problem_.cuts.size() - 1);
  used.push_back({last, last});
  Digits free;
  uint8_t at = 0;
  for (Digit digit : used) {
    if (digit.low > at) {
      free.push_back({at, digit.low});
    }
    at = digit.high;
  }
  return free;
}

Digits Space::partsOf(Digit digit) const {
  Digits parts;
  for (uint8_t low = digit.low; low < digit.high; ++low) {
    for (uint8_t high = low + 1; divides(digit.low, low) && high <= digit.high; ++high) {
      if (divides(low, high) && divides(high, digit.high)) {
        parts.push_back({low, high});
      }
    }
  }
  return parts;
}

Digits Space::tailsOf(Digit digit) const {
  Digits tails;
  for (Digit part : partsOf(digit)) {
    if (part.high == digit.high) {
      tails.push_back(part);
    }
  }
  return tails;
}

std::vector<Space::Suffix> Space::suffixesOf(const Digits& digits) const {
  std::vector<Suffix> suffixes;
  for (size_t first = digits.size(); first-- > 0;) {
    for (Digit tail : tailsOf(digits[first])) {
      Suffix suffix;
      suffix.kept.assign(digits.begin(), digits.begin() + first);
      if (tail.low != digits[first].low) {
        suffix.kept.push_back({digits[first].low, tail.low});
      }
      suffix.moved.push_back(tail);
      suffix.moved.insert(suffix.moved.end(), digits.begin() + first + 1, digits.end());
      suffixes.push_back(std::move(suffix));
    }
  }
  return suffixes;
}

// `part` lies inside one digit of the list.
Digits Space::without(const Digits& digits, Digit part) const {
  Digits rest;
  for (Digit digit : digits) {
    if (digit.low <= part.low && part.high <= digit.high) {
      if (digit.low < part.low) {
        rest.push_back({digit.low, part.low});
      }
      if (part.high < digit.high) {
        rest.push_back({part.high, digit.high});
      }
    } else {
      rest.push_back(digit);
    }
  }
  return rest;
}

// What of the digits lies in `limit`.
Digits Space::inside(const Digits& digits, Digit limit) const {
  Digits result;
  for (Digit digit : digits) {
    Digit part{std::max(digit.low, limit.low), std::min(digit.high, limit.high)};
    bool nests = divides(limit.low, part.low) && divides(part.high, limit.high) && divides(digit.low, part.low) &&
                 divides(part.high, digit.high);
    if (part.low < part.high && divides(part.low, part.high) && nests) {
      result.push_back(part);
    }
  }
  return result;
}

void Space::movesFrom(const State& state, const Visit& visit) const {
  reductions(state, visit);
  slices(state, visit);
  exchanges(state, true, visit);
  gathers(state, visit);
}

void Space::movesInto(const State& state, const Visit& visit) const {
  unreductions(state, visit);
  unslices(state, visit);
  exchanges(state, false, visit);
  ungathers(state, visit);
}

void Space::slices(const State& state, const Visit& visit) const {
  for (Digit free : freeOf(state)) {
    for (Digit part : partsOf(free)) {
      for (int d = 0; d < static_cast<int>(state.dims.size()); ++d) {
        State next = state;
        appendDigit(next.dims[d], part);
        if (fits(next, d)) {
          visit({CollectiveKind::kSlice, {part}, -1, d}, std::move(next), {});
        }
      }
    }
  }
}

void Space::unslices(const State& state, const Visit& visit) const {
  for (int d = 0; d < static_cast<int>(state.dims.size()); ++d) {
    if (state.dims[d].empty()) {
      continue;
    }
    for (Digit tail : tailsOf(state.dims[d].back())) {
      State before = state;
      before.dims[d] = without(state.dims[d], tail);
      visit({CollectiveKind::kSlice, {tail}, -1, d}, std::move(before), {});
    }
  }
}

// One digit at a time: gathering two digits in one step receives the same bytes and needs no fewer hops.
void Space::gathers(const State& state, const Visit& visit) const {
  for (int d = 0; d < static_cast<int>(state.dims.size()); ++d) {
    if (state.dims[d].empty()) {
      continue;
    }
    for (Digit tail : tailsOf(state.dims[d].back())) {
      State next = state;
      next.dims[d] = without(state.dims[d], tail);
      Price price = gatherPrice(sizeOf(tail), localBytes(next));
      visit({CollectiveKind::kAllGather, {tail}, d, -1}, std::move(next), price);
    }
  }
}

void Space::ungathers(const State& state, const Visit& visit) const {
  int64_t bytes = localBytes(state);
  for (Digit free : freeOf(state)) {
    for (Digit part : partsOf(free)) {
      for (int d = 0; d < static_cast<int>(state.dims.size()); ++d) {
        State before = state;
        appendDigit(before.dims[d], part);
        if (fits(before, d)) {
          visit({CollectiveKind::kAllGather, {part}, d, -1}, std::move(before), gatherPrice(sizeOf(part), bytes));
        }
      }
    }
  }
}

// all_to_all in both directions: the minor digits of one dimension become the minor digits of another.
void Space::exchanges(const State& state, bool forward, const Visit& visit) const {
  int64_t bytes = localBytes(state);
  for (int d = 0; d < static_cast<int>(state.dims.size()); ++d) {
    for (const Suffix& suffix : suffixesOf(state.dims[d])) {
      for (int e = 0; e < static_cast<int>(state.dims.size()); ++e) {
        if (e == d) {
          continue;
        }
        State other = state;
        other.dims[d] = suffix.kept;
        for (Digit digit : suffix.moved) {
          appendDigit(other.dims[e], digit);
        }
        if (fits(other, e)) {
          Move move{CollectiveKind::kAllToAll, suffix.moved, forward ? d : e, forward ? e : d};
          visit(move, std::move(other), gatherPrice(productOf(suffix.moved), bytes));
        }
      }
    }
  }
}

// reduce_scatter of any partial part; all_reduce of any partial part, or of all that is partial at once.
void Space::reductions(const State& state, const Visit& visit) const {
  if (state.partial.empty()) {
    return;
  }
  int64_t bytes = localBytes(state);
  Digits parts;
  for (Digit partial : state.partial) {
    Digits inner = partsOf(partial);
    parts.insert(parts.end(), inner.begin(), inner.end());
  }
  for (Digit part : parts) {
    State rest = state;
    rest.partial = without(state.partial, part);
    for (int d = 0; problem_.scatterable && d < static_cast<int>(state.dims.size()); ++d) {
      State next = rest;
      appendDigit(next.dims[d], part);
      if (fits(next, d)) {
        visit({CollectiveKind::kReduceScatter, {part}, -1, d}, std::move(next), gatherPrice(sizeOf(part), bytes));
      }
    }
    visit({CollectiveKind::kAllReduce, {part}, -1, -1}, std::move(rest), reducePrice(sizeOf(part), bytes));
  }
  if (state.partial.size() > 1) {
    State next = state;
    next.partial.clear();
    visit({CollectiveKind::kAllReduce, state.partial, -1, -1}, std::move(next),
          reducePrice(productOf(state.partial), bytes));
  }
}

void Space::unreductions(const State& state, const Visit& visit) const {
  const Digits& partialAtStart = problem_.from.partial;
  if (partialAtStart.empty()) {
    return;
  }
  int64_t bytes = localBytes(state);
  for (int d = 0; problem_.scatterable && d < static_cast<int>(state.dims.size()); ++d) {
    for (Digit tail : state.dims[d].empty() ? Digits{} : tailsOf(state.dims[d].back())) {
      if (inside(partialAtStart, tail) != Digits{tail}) {
        continue;
      }
      State before = state;
      before.dims[d] = without(state.dims[d], tail);
      insertSorted(before.partial, tail);
      visit({CollectiveKind::kReduceScatter, {tail}, -1, d}, std::move(before),
            gatherPrice(sizeOf(tail), bytes * sizeOf(tail)));
    }
  }
  Digits free;
  for (Digit each : freeOf(state)) {
    Digits part = inside(partialAtStart, each);
    free.insert(free.end(), part.begin(), part.end());
  }
  // Subsets of disjoint free digits, each of any extent; more than one only if nothing else is partial after it.
  std::function<void(size_t, const Digits&)> choose = [&](size_t next, const Digits& chosen) {
    if (!chosen.empty()) {
      State before = state;
      for (Digit digit : chosen) {
        insertSorted(before.partial, digit);
      }
      visit({CollectiveKind::kAllReduce, chosen, -1, -1}, std::move(before), reducePrice(productOf(chosen), bytes));
    }
    for (size_t f = next; f < free.size() && (chosen.empty() || state.partial.empty()); ++f) {
      for (Digit part : partsOf(free[f])) {
        Digits more = chosen;
        more.push_back(part);
        choose(free.size() > kMaxSubsetParts ? free.size() : f + 1, more);
      }
    }
  };
  choose(0, {});
}

int64_t Space::partAt(const Digits& digits, size_t w) const {
  int64_t part = 0;
  for (Digit digit : digits) {
    part = part * sizeOf(digit) + places_[indexOf(digit) * witnesses_.size() + w];
  }
  return part;
}

// Bytes: what the rank needs and does not hold. Hops: with h hops a rank gets data of at most 2^h ranks, itself
// included, because every collective over n ranks takes n - 1 hops or more and n <= 2^(n-1).
Price Space::leastAtWitness(const State& from, const State& to, size_t w) const {
  int64_t held = problem_.unitBytes;
  int64_t wanted = problem_.unitBytes;
  int64_t owners = 1;
  for (size_t d = 0; d < to.dims.size(); ++d) {
    int64_t before = problem_.sizes[d] / productOf(from.dims[d]);
    int64_t after = problem_.sizes[d] / productOf(to.dims[d]);
    int64_t have = partAt(from.dims[d], w) * before;
    int64_t want = partAt(to.dims[d], w) * after;
    held *= std::max<int64_t>(0, std::min(have + before, want + after) - std::max(have, want));
    wanted *= after;
    owners *= before == 0 ? 1 : (want + after - 1) / before - want / before + 1;
  }
  owners *= productOf(from.partial) / productOf(to.partial);
  int64_t reached = owners + (held > 0 ? 0 : 1);
  int64_t hops = 0;
  while ((int64_t{1} << hops) < reached) {
    ++hops;
  }
  return {wanted > 0 ? hops : 0, wanted - held};
}

// With P terms partial of an element that H ranks want in the end, P - 1 terms must leave the rank they were made on
// before any rank knows the sum, and every other of the H ranks must receive it after that: P + H - 2 transfers,
// spread over all ranks at best.
int64_t Space::leastForTerms(const State& to, int64_t terms) const {
  int64_t total = problem_.unitBytes;
  int64_t parts = 1;
  for (size_t d = 0; d < to.dims.size(); ++d) {
    total *= problem_.sizes[d];
    parts *= productOf(to.dims[d]);
  }
  int64_t still = productOf(to.partial);
  int64_t holders = ranks() / (parts * still);
  return std::max(total / parts, total * still * (terms + holders - 2) / ranks());
}

Price Space::leastPrice(const State& from, const State& to) const {
  Price least;
  for (size_t w = 0; w < witnesses_.size(); ++w) {
    Price at = leastAtWitness(from, to, w);
    least = {std::max(least.hops, at.hops), std::max(least.bytes, at.bytes)};
  }
  int64_t terms = productOf(from.partial) / productOf(to.partial);
  if (terms > 1) {
    least.bytes = std::max(least.bytes, leastForTerms(to, terms));
  }
  return least;
}

}  // namespace weft::reshard
