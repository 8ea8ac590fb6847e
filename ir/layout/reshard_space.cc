#include "ir/layout/reshard_space.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weft::reshard {
namespace {

// leastTime looks at this many ranks at most; any choice of ranks gives a valid bound.
constexpr int64_t kMaxWitnesses = 16;

// With more parts of the line than this to choose from, a reduction or a gather takes one of them.
constexpr size_t kMaxSequenceParts = 12;

}  // namespace

Space::Space(const Problem& problem, const Machine& machine) : problem_(problem), machine_(machine), nodes_(problem_) {
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

Price Space::priceOf(CollectiveKind kind, const Digits& digits, int64_t before) const {
  const GroupSpan span = kind == CollectiveKind::kPermute ? problem_.permuted : problem_.spanOf(digits);
  const int64_t bytes = receivedBytes(kind, span.ranks, before);
  return {collectiveCost(machine_, kind, span, bytes), bytes};
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

// Gathering the digits one after the other receives the same bytes and takes fewer hops, but more launches.
void Space::gathers(const State& state, const Visit& visit) const {
  const int64_t bytes = localBytes(state);
  for (int d = 0; d < static_cast<int>(state.dims.size()); ++d) {
    for (const Suffix& suffix : suffixesOf(state.dims[d])) {
      State next = state;
      next.dims[d] = suffix.kept;
      visit({CollectiveKind::kAllGather, suffix.moved, d, -1}, std::move(next),
            priceOf(CollectiveKind::kAllGather, suffix.moved, bytes));
    }
  }
}

void Space::ungathers(const State& state, const Visit& visit) const {
  const int64_t bytes = localBytes(state);
  forEachSequence(freeOf(state), [&](const Digits& gathered) {
    for (int d = 0; d < static_cast<int>(state.dims.size()); ++d) {
      State before = state;
      appendDigits(before.dims[d], gathered);
      if (fits(before, d)) {
        visit({CollectiveKind::kAllGather, gathered, d, -1}, std::move(before),
              priceOf(CollectiveKind::kAllGather, gathered, bytes / productOf(gathered)));
      }
    }
  });
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
        appendDigits(other.dims[e], suffix.moved);
        if (fits(other, e)) {
          Move move{CollectiveKind::kAllToAll, suffix.moved, forward ? d : e, forward ? e : d};
          visit(move, std::move(other), priceOf(move.kind, suffix.moved, bytes));
        }
      }
    }
  }
}

// Every sequence of disjoint parts of the digits, in every order. What continues the part before it is one part with
// it.
void Space::forEachSequence(const Digits& digits, const std::function<void(const Digits&)>& visit) const {
  Digits parts;
  for (Digit digit : digits) {
    const Digits inner = partsOf(digit);
    parts.insert(parts.end(), inner.begin(), inner.end());
  }
  const size_t longest = parts.size() > kMaxSequenceParts ? 1 : parts.size();
  Digits chosen;
  std::function<void()> extend = [&] {
    for (Digit part : parts) {
      const bool isApart = std::all_of(chosen.begin(), chosen.end(),
                                       [&](Digit other) { return part.high <= other.low || other.high <= part.low; });
      if (isApart && (chosen.empty() || chosen.back().high != part.low)) {
        chosen.push_back(part);
        visit(chosen);
        if (chosen.size() < longest) {
          extend();
        }
        chosen.pop_back();
      }
    }
  };
  extend();
}

void Space::reductions(const State& state, const Visit& visit) const {
  const int64_t bytes = localBytes(state);
  forEachSequence(state.partial, [&](const Digits& parts) {
    State rest = state;
    for (Digit part : parts) {
      rest.partial = without(rest.partial, part);
    }
    for (int d = 0; problem_.scatterable && d < static_cast<int>(state.dims.size()); ++d) {
      State next = rest;
      appendDigits(next.dims[d], parts);
      if (fits(next, d)) {
        visit({CollectiveKind::kReduceScatter, parts, -1, d}, std::move(next),
              priceOf(CollectiveKind::kReduceScatter, parts, bytes));
      }
    }
    if (std::is_sorted(parts.begin(), parts.end())) {
      visit({CollectiveKind::kAllReduce, parts, -1, -1}, std::move(rest),
            priceOf(CollectiveKind::kAllReduce, parts, bytes));
    }
  });
}

void Space::unreductions(const State& state, const Visit& visit) const {
  const Digits& partialAtStart = problem_.from.partial;
  if (partialAtStart.empty()) {
    return;
  }
  const int64_t bytes = localBytes(state);
  for (int d = 0; problem_.scatterable && d < static_cast<int>(state.dims.size()); ++d) {
    for (const Suffix& suffix : suffixesOf(state.dims[d])) {
      State before = state;
      before.dims[d] = suffix.kept;
      bool wasPartial = true;
      for (Digit digit : suffix.moved) {
        wasPartial = wasPartial && inside(partialAtStart, digit) == Digits{digit};
        insertSorted(before.partial, digit);
      }
      if (wasPartial) {
        visit({CollectiveKind::kReduceScatter, suffix.moved, -1, d}, std::move(before),
              priceOf(CollectiveKind::kReduceScatter, suffix.moved, bytes * productOf(suffix.moved)));
      }
    }
  }
  Digits free;
  for (Digit each : freeOf(state)) {
    Digits part = inside(partialAtStart, each);
    free.insert(free.end(), part.begin(), part.end());
  }
  forEachSequence(free, [&](const Digits& parts) {
    if (std::is_sorted(parts.begin(), parts.end())) {
      State before = state;
      for (Digit digit : parts) {
        insertSorted(before.partial, digit);
      }
      visit({CollectiveKind::kAllReduce, parts, -1, -1}, std::move(before),
            priceOf(CollectiveKind::kAllReduce, parts, bytes));
    }
  });
}

int64_t Space::partAt(const Digits& digits, size_t w) const {
  int64_t part = 0;
  for (Digit digit : digits) {
    part = part * sizeOf(digit) + places_[indexOf(digit) * witnesses_.size() + w];
  }
  return part;
}

// Bytes: what the rank needs and does not hold. Hops: with h hops a rank gets data of at most 2^h ranks, itself
// included, because every collective over n ranks takes n - 1 hops or more and n <= 2^(n-1); over p ranks on each of k
// nodes p - 1 + k - 1, which is enough as well.
Space::Least Space::leastAtWitness(const std::vector<DimChange>& dims, int64_t wanted, int64_t terms, size_t w) const {
  int64_t held = problem_.unitBytes;
  int64_t owners = terms;
  for (const DimChange& dim : dims) {
    const int64_t have = partAt(*dim.from, w) * dim.before;
    const int64_t want = partAt(*dim.to, w) * dim.after;
    held *= std::max<int64_t>(0, std::min(have + dim.before, want + dim.after) - std::max(have, want));
    owners *= dim.before == 0 ? 1 : (want + dim.after - 1) / dim.before - want / dim.before + 1;
  }
  const int64_t reached = owners + (held > 0 ? 0 : 1);
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

Picoseconds Space::leastTime(const State& from, const State& to) const {
  std::vector<DimChange> dims;
  int64_t wanted = problem_.unitBytes;
  for (size_t d = 0; d < to.dims.size(); ++d) {
    dims.push_back({&from.dims[d], &to.dims[d], problem_.sizes[d] / productOf(from.dims[d]),
                    problem_.sizes[d] / productOf(to.dims[d])});
    wanted *= dims.back().after;
  }
  const int64_t terms = productOf(from.partial) / productOf(to.partial);
  Least least;
  for (size_t w = 0; w < witnesses_.size(); ++w) {
    const Least at = leastAtWitness(dims, wanted, terms, w);
    least = {std::max(least.hops, at.hops), std::max(least.bytes, at.bytes)};
  }
  if (terms > 1) {
    least.bytes = std::max(least.bytes, leastForTerms(to, terms));
  }
  // Inside nodes and between them bytes go at once.
  const bool isOneNode = problem_.permuted.nodes() == 1;
  const double share = isOneNode ? 0 : machine_.networkShare();
  double seconds = static_cast<double>(least.bytes) / (machine_.linkBandwidth + share);
  const double hop =
      machine_.devicesPerNode == 0 ? machine_.linkLatency : std::min(machine_.linkLatency, machine_.networkLatency);
  double latency = (least.bytes > 0 ? machine_.launchLatency : 0) + hop * static_cast<double>(least.hops);
  if (const double between = nodes_.leastBytes(from, to); between > 0) {
    seconds = std::max(seconds, between / share);
    latency += least.hops > 0 ? machine_.networkLatency - hop : 0;  // one of the hops is between nodes
  }
  return picosecondsOf(latency + seconds);
}

}  // namespace weft::reshard
