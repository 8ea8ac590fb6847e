#include "planner/machine/times.h"

#include <algorithm>
#include <cmath>

#include "planner/machine/measured_calls.h"

namespace weft {
namespace {

double part(double efficiency) {
  return efficiency > 0 ? efficiency : 1;
}

double ceilOf(int64_t size, int64_t of) {
  return static_cast<double>((size + of - 1) / of);
}

double elementsOf(const Tile& tile) {
  return static_cast<double>(tile.rows) * static_cast<double>(tile.columns);
}

double tilesOf(const ProductShape& shape, const Tile& tile) {
  return static_cast<double>(shape.batch) * ceilOf(shape.m, tile.rows) * ceilOf(shape.n, tile.columns);
}

// Of the elements of so many tiles, those that are the product's.
double partOfTiles(const ProductShape& shape, const Tile& tile, double tiles) {
  return shape.flopsPerSum() / 2 / (tiles * elementsOf(tile));
}

double usefulPart(const Machine& machine, const ProductShape& shape, const Tile& tile) {
  const auto places = static_cast<double>(std::max<int64_t>(1, machine.multiprocessors));
  return partOfTiles(shape, tile, std::ceil(tilesOf(shape, tile) / places) * places);
}

Tile turned(const Tile& tile) {
  return {tile.columns, tile.rows};
}

// How far apart, in doublings, two sizes are.
double doublings(double size, int64_t profiled) {
  return std::log2(size / static_cast<double>(profiled));
}

struct Profiled {
  std::optional<double> seconds;  // of exactly this product
  std::optional<double> rate;     // of products near it
};

Profiled profiled(const Machine& machine, DType type, const ProductShape& shape) {
  const double rows = static_cast<double>(shape.batch) * static_cast<double>(shape.m);
  const double farthest = std::log2(kNearProfile);
  double weights = 0;
  double rates = 0;
  for (const ProductProfile& profile : machine.profiles) {
    const double m = doublings(rows, profile.m);
    const double n = doublings(static_cast<double>(shape.n), profile.n);
    const double k = doublings(static_cast<double>(shape.k), profile.k);
    if (profile.type != type || std::max({std::abs(m), std::abs(n), std::abs(k)}) > farthest) {
      continue;
    }
    const double distance = m * m + n * n + k * k;
    if (distance == 0 && shape.batch == 1) {
      return {profile.seconds, std::nullopt};
    }
    const double weight = 1 / std::max(distance, 1e-6);
    weights += weight;
    rates += weight * profile.flops() / std::max(profile.seconds - machine.launchLatency, 1e-12);
  }
  return {std::nullopt, weights > 0 ? std::optional(rates / weights) : std::nullopt};
}

double byteSeconds(const Machine& machine, int64_t bytes) {
  return static_cast<double>(bytes) / (machine.memoryBandwidth * part(machine.memoryEfficiency));
}

KernelWork withoutSum(const KernelWork& work) {
  KernelWork product = work;
  product.sum.reset();
  return product;
}

// Seconds of a product's arithmetic, by the formula.
double productSeconds(const Machine& machine, const KernelWork& work) {
  const double rate = machine.rate(work.type) * part(machine.productEfficiency);
  const double inWaves = work.flops / (rate * usefulPart(machine, *work.product));
  if (machine.streamK == 0) {
    return inWaves;
  }
  const auto filled = [&](const Tile& tile) { return partOfTiles(*work.product, tile, tilesOf(*work.product, tile)); };
  const auto sumBytes = static_cast<double>(std::max(byteSize(DType::kF32), byteSize(work.type)));
  const double sums = static_cast<double>(machine.multiprocessors) * elementsOf(machine.tile) * sumBytes;
  const double shared = work.flops / (rate * std::max(filled(machine.tile), filled(turned(machine.tile)))) +
                        2 * sums / (machine.memoryBandwidth * part(machine.memoryEfficiency));
  return std::min(inWaves, shared);
}

// leastKernelSeconds() of what is added to nothing.
double leastSecondsAlone(const Machine& machine, const KernelWork& work) {
  if (const std::optional<double> least = leastSlowdown(machine, work)) {
    return *least * (plainSeconds(machine, work) - machine.launchLatency);
  }
  double rate = machine.rate(work.type) * part(work.product ? machine.productEfficiency : machine.fusedEfficiency);
  bool areProfiled = false;
  for (const ProductProfile& profile : machine.profiles) {
    if (work.product && profile.type == work.type) {
      areProfiled = true;
      rate = std::max(rate, profile.flops() / profile.seconds);
      rate = std::max(rate, profile.flops() / std::max(profile.seconds - machine.launchLatency, 1e-12));
    }
  }
  return areProfiled ? work.flops / rate : std::max(work.flops / rate, byteSeconds(machine, work.bytes));
}

}  // namespace

double plainSeconds(const Machine& machine, const KernelWork& work) {
  const double rate =
      machine.rate(work.type) * part(work.product ? machine.productEfficiency : machine.fusedEfficiency);
  return machine.launchLatency + std::max(work.flops / rate, byteSeconds(machine, work.bytes));
}

KernelWork asOneKernel(const KernelWork& work) {
  KernelWork all = work;
  if (work.sum) {
    all.kernel = work.sum->kernel;
    all.bytes += work.sum->bytes;
    all.sum.reset();
  }
  return all;
}

double usefulPart(const Machine& machine, const ProductShape& shape) {
  if (machine.tile.rows == 0) {
    return 1;
  }
  return std::max(usefulPart(machine, shape, machine.tile), usefulPart(machine, shape, turned(machine.tile)));
}

Picoseconds readTime(const Machine& machine, int64_t bytes) {
  return picosecondsOf(byteSeconds(machine, bytes));
}

Picoseconds kernelTime(const Machine& machine, const KernelWork& work) {
  if (const std::optional<double> seconds = measuredSeconds(machine, asOneKernel(work))) {
    return picosecondsOf(*seconds);
  }
  if (work.sum) {
    return kernelTime(machine, withoutSum(work)) + readTime(machine, work.sum->bytes);
  }
  double arithmetic = work.flops / (machine.rate(work.type) * part(machine.fusedEfficiency));
  if (work.product) {
    const Profiled known = profiled(machine, work.type, *work.product);
    if (known.seconds) {
      return picosecondsOf(*known.seconds);
    }
    arithmetic = known.rate ? work.flops / *known.rate : productSeconds(machine, work);
  }
  return picosecondsOf(machine.launchLatency + std::max(arithmetic, byteSeconds(machine, work.bytes)));
}

bool isMeasured(const Machine& machine, const KernelWork& work) {
  const auto isOf = [&](const KernelWork& kernel) { return leastSlowdown(machine, kernel).has_value(); };
  return isOf(withoutSum(work)) || isOf(asOneKernel(work)) ||
         (work.product && std::any_of(machine.profiles.begin(), machine.profiles.end(),
                                      [&](const ProductProfile& profile) { return profile.type == work.type; }));
}

double leastKernelSeconds(const Machine& machine, const KernelWork& work) {
  const double alone = leastSecondsAlone(machine, withoutSum(work));
  const KernelWork both = asOneKernel(work);
  const std::optional<double> slowdown = work.sum ? leastSlowdown(machine, both) : std::nullopt;
  return slowdown ? std::min(alone, *slowdown * (plainSeconds(machine, both) - machine.launchLatency)) : alone;
}

}  // namespace weft
