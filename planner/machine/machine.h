// What the program runs on, as far as costs need it: devices on nodes, the links inside a node, and the network between
// nodes. Read from a small text file, or one of those that come with Weft.
//
//   # eight devices to a node, any number of nodes
//   name = a100-80g
//   memory = 80e9
//   flops = 1.95e13
//   ...
//   devices_per_node = 8
//   network_bandwidth = 2e11
//   profile matmul bf16 1024 10240 5120 = 3.96e-4
//   profile gelu f32 1048576 8388608 = 1.1e-3
//
// Ranks lie on devices in order: with 8 devices to a node, ranks 0 to 7 are on the first.
//
// Devices of several kinds have a section each, which has what stands before the first of them and overrides some of
// it:
//
//   network_latency = 1e-5
//   ...
//   [kind fast]
//   flops = 3e13
//   memory = 80e9
//   devices_per_node = 8
//   nodes = 2
//   [kind slow]
//   flops = 1e13
//   memory = 32e9
//   devices_per_node = 8
//   nodes = 1
//
// Ranks 0 to 15 are fast then, ranks 16 to 23 slow.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/dtype.h"

namespace weft {

// Elements of a result that one multiprocessor makes at a time; 0: products are not made in tiles.
struct Tile {
  int64_t rows = 0;
  int64_t columns = 0;
};

// What one product was measured to take, launch included: c[m, n] = a[m, k] b[k, n].
struct ProductProfile {
  DType type = DType::kF32;
  int64_t m = 0, n = 0, k = 0;
  double seconds = 0;

  double flops() const { return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k); }
};

// What calls of a kernel with so much arithmetic on so many bytes took in steps of a program, where caches held of
// their operands what they do hold in a step.
struct KernelProfile {
  std::string kernel;
  DType type = DType::kF32;  // in which it computes
  int64_t flops = 0;
  int64_t bytes = 0;            // read and written
  int64_t m = 0, n = 0, k = 0;  // of a product, its batch among the rows; 0: it is none
  double seconds = 0;
};

// Figures are of one device, which is one rank, unless they say otherwise; of a machine with several kinds of devices
// they are those that hold of every rank, and prices are asked of of(). The default stands for CPU ranks that share one
// host's memory.
struct Machine {
  std::string name = "cpu";
  std::string source;     // where the figures come from
  int64_t memory = 0;     // bytes; 0: not known, so no limit
  double flops = 1.0e11;  // f32 multiply-adds x 2 that products reach, per second
  double flopsF64 = 0;    // of other element types; 0: as f32
  double flopsF16 = 0;
  double flopsBf16 = 0;
  double productEfficiency = 0;   // of the rate, that a large product reaches; 0: all of it
  double fusedEfficiency = 0;     // of the rate, that kernels of other arithmetic reach (attention); 0: all of it
  Tile tile = {};                 // of a product's result; either way round
  int64_t multiprocessors = 0;    // that make tiles at the same time; 0: not known
  int64_t streamK = 0;            // 1: multiprocessors without a tile of their own share those of others
  int64_t fusedAccumulation = 0;  // 1: products are added to sums over micro-batches where they are made
  std::vector<ProductProfile> profiles = {};
  std::vector<KernelProfile> kernels = {};
  double memoryBandwidth = 2e10;  // bytes per second
  double memoryEfficiency = 0;    // of it, that kernels reach which only move bytes; 0: all of it
  double hostBandwidth = 0;       // bytes per second between a device and its host's memory, each way; 0: not known
  int64_t hostMemory = 0;         // bytes of its host's memory that a device may keep things in; 0: no limit
  double linkBandwidth = 1e10;    // bytes per second received in a collective inside a node
  double linkLatency = 2e-6;      // seconds per step of a collective inside a node
  double launchLatency = 1e-6;    // seconds before a kernel or a collective begins
  int64_t queues = 1;             // that run beside one another; 2: one computes, the other communicates
  int64_t cores = 0;              // of a node, on which its ranks take turns where they are more; 0: each has its own
  double overlapSlowdown = 0;     // how many times as long a kernel takes beside a collective; 0: no longer than alone
  int64_t devicesPerNode = 0;     // 0: all on one node
  int64_t nodes = 0;              // 0: as many as are asked for
  double networkBandwidth = 0;    // bytes per second into one node, all its network cards together
  double networkLatency = 0;      // seconds per step of a collective between nodes
  std::vector<Machine> kinds = {};  // in the order of their ranks, each a machine of its own; empty: all are alike

  double rate(DType type) const;
  // How many devices there are; 0: as many as are asked for.
  int64_t devices() const { return devicesPerNode * nodes; }
  // Of so many ranks, how many lie on each node that has any. Ranks that one node has room for count as lying on one;
  // more, that do not fill nodes evenly, as lying on more of them than they do.
  int64_t perNode(int64_t ranks) const;
  // Bytes per second that one device receives from other nodes while all of its node do; 0 without other nodes.
  double networkShare() const;

  // The machine that so many ranks run on, of which the first has that number: their kind. Of ranks of several kinds
  // each figure is that of the slowest of them, the memory the least, and as many lie on a node as do everywhere. Ranks
  // beyond the last device count as of its kind.
  Machine of(int64_t firstRank, int64_t ranks) const;
  // No rank has any figure that is better: what takes some time here takes at least as much on every kind.
  Machine fastest() const;
  // With the bandwidth of the network times a factor, and so of each kind; with so much more memory, where it is known.
  Machine withNetwork(double factor) const;
  Machine withMemory(int64_t more) const;

  // Text: the name of a machine that comes with Weft, or one `key = value` per line, '#' starts a comment; keys that
  // are left out keep the default's figure. `profile matmul TYPE M N K = SECONDS` and `profile KERNEL TYPE FLOPS BYTES
  // [M N K] = SECONDS` may stand on many lines, the latter only where all devices are alike. The section of a kind of
  // devices begins with `[kind NAME]` and says at least its number of nodes. Errors name the line, the key and the
  // known keys.
  static absl::StatusOr<Machine> parse(const std::string& text);
  std::string print() const;

  // Of the machines that come with Weft (planner/machine/*.txt).
  static std::vector<std::string> names();
  // The text for parse() that a user means: the name of a machine that comes with Weft, or a file. Errors, with the
  // file's name: neither; those of parse(); a file that gives one of two figures that describe the same (flops and
  // memory_bandwidth, bandwidth and latency), as the other would be the default's, and likewise for each kind.
  static absl::StatusOr<std::string> textOf(const std::string& nameOrPath);
};

}  // namespace weft
