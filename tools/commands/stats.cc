#include "tools/commands/stats.h"

#include <iostream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/statistics.h"
#include "tools/commands/flags.h"

namespace weft::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kName[] = "stats";

const std::vector<Flag>& statsFlags() {
  static const std::vector<Flag> flags{{"json", Flag::kSwitch, "print JSON"}};
  return flags;
}

// Names that are no UTF-8 are shown as well as can be.
std::string textOf(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

void printStatistics(const plan::Plan& plan, bool json) {
  const PlanStatistics statistics = statisticsOf(plan);
  if (json) {
    Json out = {{"mesh", plan.mesh()}, {"ranks", plan.ranks()}, {"micro_batches", plan.micro_batches()}};
    out["collectives"] = Json::object();
    for (const auto& [kind, count] : statistics.collectives) {
      out["collectives"][kind] = {{"calls", count.calls},
                                  {"tensors", count.tensors},
                                  {"bytes_received_per_rank", count.bytesReceived},
                                  {"seconds", count.seconds}};
    }
    out["by_function"] = statistics.byFunction;
    out["flops_per_rank"] = statistics.flops;
    out["memory"] = statistics.memory;
    out["peak_bytes_per_rank"] = statistics.peakBytes;
    std::cout << textOf(out) << "\n";
    return;
  }
  std::cout << "mesh " << plan.mesh() << ", " << plan.ranks() << " ranks, " << plan.micro_batches()
            << " micro-batches\n";
  std::vector<std::vector<std::string>> rows{{"collective", "calls", "tensors", "bytes per rank", "seconds"}};
  for (const auto& [kind, count] : statistics.collectives) {
    rows.push_back({kind, std::to_string(count.calls), std::to_string(count.tensors),
                    std::to_string(count.bytesReceived), absl::StrCat(count.seconds)});
  }
  std::cout << table(rows) << "floating-point operations per rank and step: " << statistics.flops << "\n";
  rows = {{"memory per rank", "bytes"}};
  for (const auto& [memory, bytes] : statistics.memory) {
    rows.push_back({memory, std::to_string(bytes)});
  }
  rows.push_back({"peak", std::to_string(statistics.peakBytes)});
  std::cout << table(rows);
}

}  // namespace

int statsCommand(int argc, char** argv) {
  if (wantsHelp(argc, argv)) {
    std::cout << flagHelp("weft stats PLAN", statsFlags());
    return 0;
  }
  const std::string path = takePath(argc, argv);
  absl::StatusOr<Flags> flags = Flags::parse(statsFlags(), argc, argv);
  if (!flags.ok() || path.empty()) {
    return usageError(kName, flags.ok() ? absl::InvalidArgumentError("a plan file is missing") : flags.status());
  }
  const absl::StatusOr<plan::Plan> plan = readPlan(path);
  if (!plan.ok()) {
    return fail(kName, plan.status());
  }
  printStatistics(*plan, flags->has("json"));
  return 0;
}

}  // namespace weft::tools
