// How long a machine takes for arithmetic and for messages.
#pragma once

#include <optional>

#include "absl/strings/string_view.h"
#include "planner/machine/machine.h"
#include "planner/machine/picoseconds.h"

namespace weft {

// A matrix product of one rank: c[batch, m, n] = a[batch, m, k] b[batch, k, n].
struct ProductShape {
  int64_t batch = 1, m = 1, n = 1, k = 1;

  // A product and a sum for each element of the result.
  double flopsPerSum() const {
    return 2.0 * static_cast<double>(batch) * static_cast<double>(m) * static_cast<double>(n);
  }
};

// What a product is added to by one kernel that does both.
struct AddedSum {
  int64_t bytes = 0;              // of the sum so far, which is read; what is written is the product's result
  absl::string_view kernel = "";  // the name of the kernel
};

// What a kernel does, as far as its caller knows.
struct KernelWork {
  DType type = DType::kF32;  // of the elements that it computes with
  double flops = 0;
  int64_t bytes = 0;                                   // that it reads and writes
  std::optional<ProductShape> product = std::nullopt;  // where it is one matrix product
  absl::string_view kernel = "";                       // its name, by which calls of it may have been measured
  std::optional<AddedSum> sum = std::nullopt;          // what it is added to; the rest is of the product alone
};

// The same without a sum apart: all that the kernel does, under its name.
KernelWork asOneKernel(const KernelWork& work);

// One kernel: its launch, then its arithmetic while its bytes are moved, whichever takes longer (the roofline of
// Williams, Waterman, Patterson, "Roofline: an insightful visual performance model", 2009).
//
// Arithmetic runs at the machine's rate times an efficiency. A product is made tile by tile, as many at a time as the
// machine has multiprocessors; each such wave takes as long as a full one. So of productEfficiency a product has the
// part that is useful: its elements over those of all tiles of all waves (tile and wave quantization; NVIDIA, "Matrix
// Multiplication Background User's Guide"). The tile lies as serves the product better. Small products have few tiles,
// thin ones tiles that are mostly empty.
//
// With stream_k multiprocessors that the last wave leaves idle take parts of its tiles' sums over k (Osama et al.,
// "Stream-K: Work-centric Parallel Decomposition for Dense Matrix-Matrix Multiplication on the GPU", 2023): all of them
// compute until the end, but each writes the sums of one tile, which are read again to be added up. A product takes the
// way that is shorter.
//
// A product that was measured takes what was measured. One near measured ones, each size within kNearProfile times
// theirs, has their rates, the nearer the more. A batch counts as more rows.
//
// A product that is added to a sum takes what the product alone takes, and the time to read the sum: docs/gpu_runs.md
// holds that against measurements.
//
// A kernel of which calls were measured in steps (Machine::kernels) takes what they say (measured_calls.h).
Picoseconds kernelTime(const Machine& machine, const KernelWork& work);

inline constexpr double kNearProfile = 4;

// The part of productEfficiency's work that is useful, as above, in waves; 1 where the machine has no tiles.
double usefulPart(const Machine& machine, const ProductShape& shape);

// The same in seconds with the rate of a large product for all products, and without what was measured.
double plainSeconds(const Machine& machine, const KernelWork& work);

// Seconds that no kernel of this arithmetic on these bytes is below, whatever part of a larger one it is, be it added
// to its sum or not. Where products were measured, their bytes may have lain in caches.
double leastKernelSeconds(const Machine& machine, const KernelWork& work);

// Were calls of the kernel measured in steps, or products of its type alone? Then a larger one may take less.
bool isMeasured(const Machine& machine, const KernelWork& work);

// To read so many bytes in a kernel that does more.
Picoseconds readTime(const Machine& machine, int64_t bytes);

// A kernel that only moves bytes: those it reads and those it writes.
inline Picoseconds copyTime(const Machine& machine, int64_t bytes) {
  return kernelTime(machine, {.bytes = bytes});
}

// Bytes between a device and its host's memory; none comes where the machine says no bandwidth.
inline Picoseconds hostCopyTime(const Machine& machine, int64_t bytes) {
  return machine.hostBandwidth > 0 ? picosecondsOf(static_cast<double>(bytes) / machine.hostBandwidth)
         : bytes > 0               ? kLongestTime
                                   : 0;
}

// From the end of the action that sends to the arrival of so many bytes, of a program on so many ranks: between nodes
// where the ranks do not fit on one, as the slowest of the transfers between its stages.
inline Picoseconds transferTime(const Machine& machine, int64_t ranks, int64_t bytes) {
  const bool onOneNode = machine.devicesPerNode == 0 || ranks <= machine.devicesPerNode;
  return picosecondsOf((onOneNode ? machine.linkLatency : machine.networkLatency) +
                       static_cast<double>(bytes) / (onOneNode ? machine.linkBandwidth : machine.networkShare()));
}

}  // namespace weft
