#include "planner/machine/kinds.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

enum class Pick : uint8_t { kLeast, kMost };

using Kinds = std::vector<const Machine*>;

// One number of all kinds: that which they agree on, else the least or the most of what each `means` by its own.
template <typename Raw, typename Means>
auto pick(const Kinds& kinds, Pick which, const Raw& raw, const Means& means) {
  const bool agree =
      std::all_of(kinds.begin(), kinds.end(), [&](const Machine* kind) { return raw(*kind) == raw(*kinds.front()); });
  auto best = agree ? raw(*kinds.front()) : means(*kinds.front());
  for (const Machine* kind : kinds) {
    const auto other = means(*kind);
    const bool isBetter = which == Pick::kLeast ? other < best : other > best;
    best = !agree && isBetter ? other : best;
  }
  return best;
}

// `instead`: what a figure of 0, which the file left out, stands for.
double pickFigure(const Kinds& kinds, Pick which, double Machine::* figure, double instead) {
  const auto raw = [&](const Machine& kind) { return kind.*figure; };
  return pick(kinds, which, raw, [&](const Machine& kind) { return kind.*figure > 0 ? kind.*figure : instead; });
}

// A limit of 0 is none.
int64_t pickLimit(const Kinds& kinds, Pick which, int64_t Machine::* limit) {
  constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  const auto raw = [&](const Machine& kind) { return kind.*limit; };
  const int64_t found =
      pick(kinds, which, raw, [&](const Machine& kind) { return kind.*limit > 0 ? kind.*limit : kNone; });
  return found == kNone ? 0 : found;
}

bool haveSameTiles(const Machine& a, const Machine& b) {
  return a.tile.rows == b.tile.rows && a.tile.columns == b.tile.columns && a.multiprocessors == b.multiprocessors &&
         a.streamK == b.streamK;
}

bool isSameProduct(const ProductProfile& a, const ProductProfile& b) {
  return a.type == b.type && a.m == b.m && a.n == b.n && a.k == b.k;
}

// Products that were measured on every kind, with the longest time.
std::vector<ProductProfile> slowestProfiles(const Kinds& kinds) {
  std::vector<ProductProfile> common;
  for (ProductProfile profile : kinds.front()->profiles) {
    bool isEverywhere = true;
    for (const Machine* kind : kinds) {
      const auto same = std::find_if(kind->profiles.begin(), kind->profiles.end(),
                                     [&](const ProductProfile& other) { return isSameProduct(profile, other); });
      isEverywhere = isEverywhere && same != kind->profiles.end();
      profile.seconds = isEverywhere ? std::max(profile.seconds, same->seconds) : profile.seconds;
    }
    if (isEverywhere) {
      common.push_back(profile);
    }
  }
  return common;
}

// All that were measured, as if their launch were the shortest: it is taken off them where their rates are asked for.
std::vector<ProductProfile> fastestProfiles(const Kinds& kinds, double launch) {
  constexpr double kShortest = 1e-12;
  std::vector<ProductProfile> all;
  for (const Machine* kind : kinds) {
    for (ProductProfile profile : kind->profiles) {
      profile.seconds = std::max(kShortest, profile.seconds - (kind->launchLatency - launch));
      const auto same = std::find_if(all.begin(), all.end(),
                                     [&](const ProductProfile& other) { return isSameProduct(profile, other); });
      if (same == all.end()) {
        all.push_back(profile);
      } else {
        same->seconds = std::min(same->seconds, profile.seconds);
      }
    }
  }
  return all;
}

// Figures of which more is better with `more`, the others with `less`: all but tiles, profiles, nodes and network.
Machine figuresOf(const Kinds& kinds, Pick more, Pick less) {
  Machine made = *kinds.front();
  const auto rate = [&](double Machine::* figure, DType type) {
    const auto raw = [&](const Machine& kind) { return kind.*figure; };
    made.*figure = pick(kinds, more, raw, [&](const Machine& kind) { return kind.rate(type); });
  };
  made.flops = pickFigure(kinds, more, &Machine::flops, 0);
  rate(&Machine::flopsF64, DType::kF64);
  rate(&Machine::flopsF16, DType::kF16);
  rate(&Machine::flopsBf16, DType::kBF16);
  made.productEfficiency = pickFigure(kinds, more, &Machine::productEfficiency, 1);
  made.fusedEfficiency = pickFigure(kinds, more, &Machine::fusedEfficiency, 1);
  made.memoryBandwidth = pickFigure(kinds, more, &Machine::memoryBandwidth, 0);
  made.memoryEfficiency = pickFigure(kinds, more, &Machine::memoryEfficiency, 1);
  made.hostBandwidth = pickFigure(kinds, more, &Machine::hostBandwidth, 0);
  made.linkBandwidth = pickFigure(kinds, more, &Machine::linkBandwidth, 0);
  made.linkLatency = pickFigure(kinds, less, &Machine::linkLatency, 0);
  made.launchLatency = pickFigure(kinds, less, &Machine::launchLatency, 0);
  made.networkLatency = pickFigure(kinds, less, &Machine::networkLatency, 0);
  made.overlapSlowdown = pickFigure(kinds, less, &Machine::overlapSlowdown, 1);
  const auto queues = [](const Machine& kind) { return kind.queues; };
  made.queues = pick(kinds, more, queues, queues);
  made.memory = pickLimit(kinds, more, &Machine::memory);
  made.hostMemory = made.hostBandwidth > 0 ? pickLimit(kinds, more, &Machine::hostMemory) : 0;
  made.overlapSlowdown = made.queues > 1 ? made.overlapSlowdown : 0;
  return made;
}

int64_t devicesOf(const Kinds& kinds) {
  return std::accumulate(kinds.begin(), kinds.end(), int64_t{0},
                         [](int64_t sum, const Machine* kind) { return sum + kind->devices(); });
}

// Of several kinds; `perNode` divides how many of the ranks lie on any node.
Machine slowestOf(const Kinds& kinds, int64_t perNode) {
  Machine made = figuresOf(kinds, Pick::kLeast, Pick::kMost);
  const Machine& slowest =
      **std::min_element(kinds.begin(), kinds.end(), [](const auto* a, const auto* b) { return a->flops < b->flops; });
  made.tile = slowest.tile;
  made.multiprocessors = slowest.multiprocessors;
  made.streamK = slowest.streamK;
  made.fusedAccumulation =
      std::all_of(kinds.begin(), kinds.end(), [](const Machine* kind) { return kind->fusedAccumulation != 0; }) ? 1 : 0;
  made.profiles = slowestProfiles(kinds);
  const auto share = [](const Machine& kind) { return kind.networkShare(); };
  const auto names = [](std::string all, const Machine* kind) {
    return absl::StrCat(all, all.empty() ? "" : "+", kind->name);
  };
  made.name = std::accumulate(kinds.begin(), kinds.end(), std::string(), names);
  made.devicesPerNode = perNode;
  made.nodes = devicesOf(kinds) / perNode;
  made.networkBandwidth = pick(kinds, Pick::kLeast, share, share) * static_cast<double>(perNode);
  return made;
}

Kinds pointersTo(const std::vector<Machine>& kinds) {
  Kinds pointers;
  for (const Machine& kind : kinds) {
    pointers.push_back(&kind);
  }
  return pointers;
}

}  // namespace

Machine withKinds(Machine machine) {
  int64_t perNode = 0;
  for (const Machine& kind : machine.kinds) {
    perNode = std::gcd(perNode, kind.devicesPerNode);
  }
  Machine made = slowestOf(pointersTo(machine.kinds), perNode);
  made.name = std::move(machine.name);
  made.source = std::move(machine.source);
  made.kinds = std::move(machine.kinds);
  return made;
}

Machine Machine::of(int64_t firstRank, int64_t ranks) const {
  if (kinds.empty()) {
    return *this;
  }
  Kinds used;
  int64_t begin = 0;
  int64_t perNode = 0;
  for (const Machine& kind : kinds) {
    const int64_t end = begin + kind.devices();
    const int64_t here = std::min(end, firstRank + ranks) - std::max(begin, firstRank);
    if (here > 0) {
      used.push_back(&kind);
      perNode = std::gcd(perNode, std::gcd(here, kind.devicesPerNode));
    }
    begin = end;
  }
  if (used.empty()) {
    return kinds.back();
  }
  return used.size() == 1 ? *used.front() : slowestOf(used, perNode);
}

Machine Machine::fastest() const {
  if (kinds.empty()) {
    return *this;
  }
  const Kinds all = pointersTo(kinds);
  Machine made = figuresOf(all, Pick::kMost, Pick::kLeast);
  made.name = name;
  made.profiles = fastestProfiles(all, made.launchLatency);
  const auto isAlike = [&](const auto& same) {
    return std::all_of(kinds.begin(), kinds.end(), [&](const Machine& kind) { return same(kind, kinds.front()); });
  };
  if (!isAlike(haveSameTiles)) {
    made.tile = {};  // no product fills them better than all of one
    made.multiprocessors = 0;
    made.streamK = 0;
  }
  const auto share = [](const Machine& kind) { return kind.networkShare(); };
  const double network = pick(all, Pick::kMost, share, share);
  if (isAlike([](const Machine& a, const Machine& b) { return a.devicesPerNode == b.devicesPerNode; })) {
    made.nodes = devicesOf(all) / made.devicesPerNode;
    made.networkBandwidth = network * static_cast<double>(made.devicesPerNode);
    return made;
  }
  // Ranks that one kind has on several nodes another may have on one: all are, over whichever is faster.
  made.linkBandwidth = std::max(made.linkBandwidth, network);
  made.linkLatency = std::min(made.linkLatency, made.networkLatency);
  made.devicesPerNode = made.nodes = 0;
  made.networkBandwidth = made.networkLatency = 0;
  return made;
}

Machine Machine::withMemory(int64_t more) const {
  Machine made = *this;
  made.memory += memory > 0 ? more : 0;
  for (Machine& kind : made.kinds) {
    kind.memory += kind.memory > 0 ? more : 0;
  }
  return made;
}

Machine Machine::withNetwork(double factor) const {
  Machine made = *this;
  made.networkBandwidth *= factor;
  for (Machine& kind : made.kinds) {
    kind.networkBandwidth *= factor;
  }
  return made;
}

}  // namespace weft
