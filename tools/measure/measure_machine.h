// Measuring the host: how long products, memory and collectives of CPU ranks take, and the figures of a machine that
// say so best.
//
// All ranks measure at once, as they work in a step: they share the cores' caches and the memory. Where there are more
// ranks than cores, as many measure kernels as have a core; in collectives they take turns, and a collective takes that
// part of the time in which a rank has a core. The machine says how many cores there are.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/layout/reshard.h"
#include "planner/machine/machine.h"

namespace weft::tools {

struct MeasureOptions {
  int64_t ranks = 2;    // collectives of 2 to so many, of groups side by side; products and memory of so many at once
  int threads = 1;      // of each rank
  double seconds = 60;  // for all, about
  std::function<void(const std::string& what, int64_t done, int64_t of)> progress = nullptr;
};

struct ProductTime {
  int64_t m = 0, n = 0, k = 0;
  double seconds = 0;

  double flops() const { return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k); }
  int64_t bytes() const { return 4 * (m * k + k * n + m * n); }
};

// An element-wise operator that reads and writes so many bytes.
struct StreamTime {
  int64_t bytes = 0;
  double seconds = 0;
};

struct CollectiveTime {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  int64_t ranks = 0;
  int64_t bytesReceived = 0;
  double seconds = 0;  // on a core of its own
};

struct Measurement {
  std::vector<ProductTime> products;
  std::vector<StreamTime> streams;  // the first is as small as can be
  std::vector<CollectiveTime> collectives;
  int64_t cores = 0;  // of the host, where the ranks that measured are more
};

// Medians. Errors: the system gives no more threads.
absl::StatusOr<Measurement> measureHost(const MeasureOptions& options);

// The machine that was measured, by medians: flops over products that arithmetic bounds, memory_bandwidth over
// element-wise operators beyond the caches, link_bandwidth and link_latency over large and small collectives, the
// launch that of the smallest operator. What lies in caches is faster than such a machine says.
Machine fitted(const Measurement& measurement, int64_t bytesOfMemory);

// The products as the machine file has them: they override what its other figures say.
std::vector<ProductProfile> profilesOf(const Measurement& measurement);

// |price / measured - 1|, by kind.
struct Deviation {
  std::vector<double> products;
  std::vector<double> streams;
  std::vector<double> collectives;
};
Deviation deviationOf(const Measurement& measurement, const Machine& machine);

}  // namespace weft::tools
