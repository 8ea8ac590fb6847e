#include "planner/machine/times.h"

#include <algorithm>
#include <cmath>

namespace weft {
namespace {

double part(double efficiency) {
  return efficiency > 0 ? efficiency : 1;
}

double ceilOf(int64_t size, int64_t of) {
  return static_cast<double>((size + of - 1) / of);
}

double usefulPart(const Machine& machine, const ProductShape& shape, const Tile& tile) {
  const double tiles = static_cast<double>(shape.batch) * ceilOf(shape.m, tile.rows) * ceilOf(shape.n, tile.columns);
  const auto places = static_cast<double>(std::max<int64_t>(1, machine.multiprocessors));
  const double made =
      std::ceil(tiles / places) * places * static_cast<double>(tile.rows) * static_cast<double>(tile.columns);
  return shape.flopsPerSum() / 2 / made;
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

}  // namespace

double usefulPart(const Machine& machine, const ProductShape& shape) {
  if (machine.tile.rows == 0) {
    return 1;
  }
  return std::max(usefulPart(machine, shape, machine.tile),
                  usefulPart(machine, shape, {machine.tile.columns, machine.tile.rows}));
}

Picoseconds kernelTime(const Machine& machine, const KernelWork& work) {
  double rate = machine.rate(work.type) * part(machine.fusedEfficiency);
  if (work.product) {
    const Profiled known = profiled(machine, work.type, *work.product);
    if (known.seconds) {
      return picosecondsOf(*known.seconds);
    }
    rate = known.rate.value_or(machine.rate(work.type) * part(machine.productEfficiency) *
                               usefulPart(machine, *work.product));
  }
  return picosecondsOf(machine.launchLatency + std::max(work.flops / rate, byteSeconds(machine, work.bytes)));
}

double leastKernelSeconds(const Machine& machine, const KernelWork& work) {
  double rate = machine.rate(work.type) * part(work.product ? machine.productEfficiency : machine.fusedEfficiency);
  bool isMeasured = false;
  for (const ProductProfile& profile : machine.profiles) {
    if (work.product && profile.type == work.type) {
      isMeasured = true;
      rate = std::max(rate, profile.flops() / profile.seconds);
      rate = std::max(rate, profile.flops() / std::max(profile.seconds - machine.launchLatency, 1e-12));
    }
  }
  return isMeasured ? work.flops / rate : std::max(work.flops / rate, byteSeconds(machine, work.bytes));
}

}  // namespace weft
