#include "tools/commands/layout.h"

#include <iostream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/layout/layout.h"
#include "runtime/base/limits.h"
#include "runtime/base/status.h"
#include "tools/commands/flags.h"

namespace weft::tools {
namespace {

const std::vector<Flag>& knownFlags() {
  static const std::vector<Flag> flags{{"mesh", Flag::kRequired, "axes, major first, such as dp=2,tp=4"},
                                       {"shape", Flag::kRequired, "sizes of the tensor, such as 16,32"},
                                       {"layout", Flag::kRequired, "layout, such as '[{dp},{tp}]'"},
                                       {"json", Flag::kSwitch, "print JSON"},
                                       {"help", Flag::kSwitch, "print this help"}};
  return flags;
}

constexpr int64_t kMostRows = 2 * kMaxRanks;

struct Request {
  Mesh mesh;
  Shape shape;
  Layout layout;
  // Micro-batches to list: one, unless a dimension is split over time.
  int64_t microBatches() const {
    return layout.uses({AxisKind::kTime, 1, mesh.microBatches()}) ? mesh.microBatches() : 1;
  }
};

absl::StatusOr<Request> readRequest(const Flags& flags) {
  Request request;
  WEFT_ASSIGN_OR_RETURN(request.mesh, Mesh::parse(flags.text("mesh")));
  WEFT_ASSIGN_OR_RETURN(request.shape, parseShape(flags.text("shape")));
  WEFT_ASSIGN_OR_RETURN(request.layout, Layout::parse(flags.text("layout"), request.mesh));
  WEFT_RETURN_IF_ERROR(request.layout.check(request.shape, request.mesh));
  if (request.microBatches() > kMostRows / request.mesh.ranks()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--mesh ", request.mesh.print(), " has ", request.mesh.ranks(), " ranks and ",
                     request.microBatches(), " micro-batches, which are more than ", kMostRows,
                     " lines; ask with fewer micro-batches, each takes the same part of a rank's rows"));
  }
  return request;
}

// Calls f(rank, micro-batch, slice) for all ranks and micro-batches.
template <typename F>
void forSlices(const Request& request, F f) {
  for (int64_t rank = 0; rank < request.mesh.ranks(); ++rank) {
    for (int64_t microBatch = 0; microBatch < request.microBatches(); ++microBatch) {
      f(rank, microBatch, request.layout.slice(request.shape, request.mesh, rank, microBatch));
    }
  }
}

// A slice of a layout with time axes carries its `microBatch`, one of a padded layout the `valid` sizes.
void printJson(const Request& request) {
  nlohmann::ordered_json slices = nlohmann::ordered_json::array();
  forSlices(request, [&](int64_t rank, int64_t microBatch, const Slice& slice) {
    nlohmann::ordered_json entry;
    entry["rank"] = rank;
    if (request.microBatches() > 1) {
      entry["micro_batch"] = microBatch;
    }
    entry["offset"] = slice.offset;
    entry["size"] = slice.size;
    if (request.layout.hasPad()) {
      entry["valid"] = slice.valid;
    }
    slices.push_back(std::move(entry));
  });
  nlohmann::ordered_json out;
  out["local_shape"] = request.layout.localShape(request.shape);
  out["slices"] = std::move(slices);
  out["replica_groups"] = request.layout.replicaGroups(request.mesh);
  std::cout << out.dump(2) << "\n";
}

std::string sizes(const Shape& shape) {
  return shape.empty() ? "scalar" : absl::StrJoin(shape, "x");
}

// "[0:8, 8:16]"
std::string ranges(const Slice& slice) {
  std::vector<std::string> parts;
  for (size_t d = 0; d < slice.offset.size(); ++d) {
    parts.push_back(absl::StrCat(slice.offset[d], ":", slice.offset[d] + slice.size[d]));
  }
  return absl::StrCat("[", absl::StrJoin(parts, ", "), "]");
}

void printTable(const Request& request) {
  std::cout << "layout " << request.layout.print(request.mesh) << " of " << sizes(request.shape) << " on "
            << request.mesh.print() << ", local " << sizes(request.layout.localShape(request.shape)) << "\n";
  std::vector<std::vector<std::string>> rows{{"rank", "micro_batch", "holds", "valid"}};
  forSlices(request, [&](int64_t rank, int64_t microBatch, const Slice& slice) {
    rows.push_back({absl::StrCat(rank), absl::StrCat(microBatch), ranges(slice), sizes(slice.valid)});
  });
  std::cout << table(rows) << "replicas:";
  for (const std::vector<int64_t>& group : request.layout.replicaGroups(request.mesh)) {
    std::cout << " (" << absl::StrJoin(group, " ") << ")";
  }
  std::cout << "\n";
}

}  // namespace

int layoutCommand(int argc, char** argv) {
  if (wantsHelp(argc, argv)) {
    std::cout << flagHelp("weft layout: what every rank holds of a tensor", knownFlags());
    return 0;
  }
  absl::StatusOr<Flags> flags = Flags::parse(knownFlags(), argc, argv);
  if (!flags.ok()) {
    return usageError("layout", flags.status());
  }
  absl::StatusOr<Request> request = readRequest(*flags);
  if (!request.ok()) {
    return fail("layout", request.status());
  }
  flags->has("json") ? printJson(*request) : printTable(*request);
  return 0;
}

}  // namespace weft::tools
