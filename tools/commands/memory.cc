#include "tools/commands/memory.h"

#include <algorithm>
#include <cctype>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/memory/pack.h"
#include "runtime/base/read_text.h"
#include "runtime/base/status.h"
#include "runtime/plan/activation_rings.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/statistics.h"
#include "tools/analysis/lifetimes_csv.h"
#include "tools/analysis/plan_memory.h"
#include "tools/analysis/step_peak.h"
#include "tools/commands/flags.h"

namespace weft::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShownTensors = 10;
constexpr int64_t kDefaultEffort = 2'000'000'000;  // some seconds, if the optimum is not found and proved before

const std::vector<Flag>& memoryFlags() {
  static const std::vector<Flag> flags{
      {"json", Flag::kSwitch, "print JSON; for lifetimes with the offset of every buffer"},
      {"alignment", Flag::kOptional, "lifetimes only: round sizes and offsets up to a multiple of N (1)"},
      {"effort", Flag::kOptional, "lifetimes only: steps the search for a better packing may take (2000000000)"},
  };
  return flags;
}

constexpr int64_t kMostNumber = int64_t{1} << 60;

std::string ratio(int64_t bytes, int64_t of) {
  return of > 0 ? absl::StrFormat("%.4f x max-live", static_cast<double>(bytes) / static_cast<double>(of)) : "";
}

std::string provedText(int64_t bytes, int64_t lowerBound) {
  return bytes == lowerBound ? "proved optimal"
                             : absl::StrCat("not proved: no packing is below ", lowerBound, " (",
                                            absl::StrFormat("%.2f", 100.0 * static_cast<double>(bytes - lowerBound) /
                                                                        static_cast<double>(bytes)),
                                            " % less)");
}

// One member per line, written directly: an ordered JSON object looks every new name up among all before.
void printOffsets(const Lifetimes& lifetimes, const Packing& packing) {
  std::cout << " \"offsets\": {";
  for (size_t i = 0; i < lifetimes.ids.size(); ++i) {
    std::cout << (i > 0 ? ",\n  " : "\n  ") << Json(lifetimes.ids[i]).dump() << ": " << packing.offsets[i];
  }
  std::cout << "\n }\n";
}

void printPacking(const Lifetimes& lifetimes, const Packing& packing, bool json) {
  if (json) {
    std::cout << "{\n \"max_live\": " << packing.maxLive << ",\n \"arena\": " << packing.bytes
              << ",\n \"proved\": " << (packing.proved() ? "true" : "false")
              << ",\n \"lower_bound\": " << packing.lowerBound << ",\n \"greedy\": " << packing.greedyBytes
              << ",\n \"effort\": " << packing.effort << ",\n";
    printOffsets(lifetimes, packing);
    std::cout << "}\n";
    return;
  }
  std::cout << table({{"buffers", std::to_string(lifetimes.ids.size())},
                      {"max-live", std::to_string(packing.maxLive)},
                      {"arena", std::to_string(packing.bytes), ratio(packing.bytes, packing.maxLive)},
                      {"best greedy", std::to_string(packing.greedyBytes), ratio(packing.greedyBytes, packing.maxLive)},
                      {"effort", absl::StrCat(packing.effort, " steps")}})
            << provedText(packing.bytes, packing.lowerBound) << "\nThe offsets: --json.\n";
}

absl::Status packLifetimes(const std::string& path, const std::string& text, const Flags& flags) {
  // Room for rounding: the sizes of a table sum to at most 2^60.
  WEFT_ASSIGN_OR_RETURN(const int64_t alignment, flags.integer("alignment", 1, {1, kMostNumber}));
  WEFT_ASSIGN_OR_RETURN(const int64_t effort, flags.integer("effort", kDefaultEffort, {0, kMostNumber}));
  WEFT_ASSIGN_OR_RETURN(const Lifetimes lifetimes, parseLifetimes(text, path));
  if (alignment > (int64_t{1} << 60) / std::max<int64_t>(static_cast<int64_t>(lifetimes.ids.size()), 1)) {
    return absl::InvalidArgumentError(absl::StrCat("flag '--alignment': ", alignment, " for ", lifetimes.ids.size(),
                                                   " buffers is more than 64 bits count; write a smaller one"));
  }
  printPacking(lifetimes, pack(lifetimes.items, {.alignment = alignment, .effort = effort}), flags.has("json"));
  return absl::OkStatus();
}

std::string className(plan::MemoryClass memory) {
  std::string name = plan::MemoryClass_Name(memory);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name;
}

bool isPacked(const plan::Region& region) {
  return region.memory() == plan::ACTIVATION || region.memory() == plan::TRANSIENT;
}

// From which function to which a ring's activations live: "forward.0 to weight_grad.0".
std::string ringLife(const plan::Plan& plan, const std::set<uint32_t>& functions) {
  const auto name = [&](uint32_t index) { return plan.functions(static_cast<int>(index)).name(); };
  return functions.empty() ? "" : absl::StrCat(name(*functions.begin()), " to ", name(*functions.rbegin()));
}

Json demandJson(const Demand& demand) {
  return {{"function", demand.function}, {"operator", demand.name}, {"source", demand.source},
          {"bytes", demand.bytes},       {"own", demand.own},       {"otherwise", demand.otherwise}};
}

std::string placeText(const Demand& demand) {
  return absl::StrCat(demand.name, " in @", demand.function, demand.source.empty() ? "" : ", " + demand.source);
}

// What one operator costs the rank beyond all others: to know where a smaller one would help, and how much at most.
void printDemands(const plan::Plan& plan) {
  const Demand transient = transientDemand(plan);
  if (transient.bytes > 0) {
    std::cout << "The peak of transients is at " << placeText(transient) << ", " << transient.own
              << " bytes of it made there or read last; at any other operator " << transient.otherwise
              << " are alive at most.\n";
  }
  const Demand workspace = workspaceDemand(plan);
  if (workspace.bytes > 0) {
    std::cout << "Scratch memory is reserved for " << placeText(workspace) << ": " << workspace.bytes
              << " bytes; any other operator asks for " << workspace.otherwise << " at most.\n";
  }
}

Json planJson(const plan::Plan& plan, const TransientPeak& peak) {
  Json out = {{"mesh", plan.mesh()}, {"peak_bytes_per_rank", plan.memory().peak_bytes()}};
  out["regions"] = Json::array();
  std::map<uint32_t, std::set<uint32_t>> functions = ringFunctions(plan);
  for (const plan::Region& region : plan.memory().regions()) {
    Json entry = {{"memory", className(region.memory())}, {"bytes", region.bytes()}, {"slots", region.slots()}};
    if (region.memory() == plan::ACTIVATION) {
      entry["stage"] = region.stage();
      entry["life"] = ringLife(plan, functions[region.ring()]);
    }
    if (isPacked(region)) {
      entry["arena"] = region.bytes();
      entry["max_live"] = region.max_live();
      entry["lower_bound"] = region.lower_bound();
      entry["proved"] = region.bytes() == region.lower_bound();
    }
    out["regions"].push_back(entry);
  }
  out["transient_peak"] = {{"function", peak.function}, {"instruction", peak.instruction},
                           {"operator", peak.name},     {"source", peak.source},
                           {"bytes", peak.bytes},       {"alive", peak.tensors.size()}};
  out["transient_peak"]["tensors"] = Json::array();
  for (size_t i = 0; i < std::min(peak.tensors.size(), kShownTensors); ++i) {
    const LiveTensor& tensor = peak.tensors[i];
    out["transient_peak"]["tensors"].push_back({{"name", tensor.name},
                                                {"source", tensor.source},
                                                {"shape", tensor.shape},
                                                {"bytes", tensor.bytes},
                                                {"offset", tensor.offset},
                                                {"first", tensor.first},
                                                {"last", tensor.last}});
  }
  const StepPeak step = stepPeak(plan);
  out["step_peak"] = {{"function", step.function}, {"micro_batch", step.microBatch},
                      {"operator", step.name},     {"source", step.source},
                      {"bytes", step.bytes},       {"alive", step.tensors.size()}};
  out["step_peak"]["tensors"] = Json::array();
  for (size_t i = 0; i < std::min(step.tensors.size(), kShownTensors); ++i) {
    const StepTensor& tensor = step.tensors[i];
    out["step_peak"]["tensors"].push_back({{"name", tensor.name},
                                           {"source", tensor.source},
                                           {"shape", tensor.shape},
                                           {"bytes", tensor.bytes},
                                           {"memory", tensor.memory},
                                           {"micro_batches", tensor.microBatches}});
  }
  out["transient_demand"] = demandJson(transientDemand(plan));
  out["workspace_demand"] = demandJson(workspaceDemand(plan));
  return out;
}

void printRegions(const plan::Plan& plan) {
  std::vector<std::vector<std::string>> rows{{"memory per rank", "bytes", "max-live", "certificate"}};
  std::map<uint32_t, std::set<uint32_t>> functions = ringFunctions(plan);
  for (const plan::Region& region : plan.memory().regions()) {
    const std::string life = region.memory() == plan::ACTIVATION ? ringLife(plan, functions[region.ring()]) : "";
    const std::string slots = region.slots() > 1 ? absl::StrCat(" x ", region.slots(), " slots") : "";
    rows.push_back({absl::StrCat(className(region.memory()), life.empty() ? "" : " ", life, slots),
                    std::to_string(region.bytes() * region.slots())});
    if (isPacked(region)) {
      rows.back().push_back(std::to_string(region.max_live()));
      rows.back().push_back(provedText(region.bytes(), region.lower_bound()));
    }
  }
  rows.push_back({"peak", std::to_string(plan.memory().peak_bytes()),
                  std::to_string(stepPeak(plan).bytes) + " in the whole step"});
  std::cout << "mesh " << plan.mesh() << ", " << plan.ranks() << " ranks\n" << table(rows);
}

void printPeak(const TransientPeak& peak) {
  if (peak.tensors.empty()) {
    std::cout << "No transient memory.\n";
    return;
  }
  std::cout << "\nTransient memory peaks in @" << peak.function << " at instruction " << peak.instruction << " ("
            << peak.name << (peak.source.empty() ? "" : ", " + peak.source) << "): " << peak.bytes << " bytes in "
            << peak.tensors.size() << " tensors" << (peak.tensors.size() > kShownTensors ? ", the largest:" : ":")
            << "\n";
  std::vector<std::vector<std::string>> rows{{"bytes", "tensor", "shape", "alive", "source"}};
  for (size_t i = 0; i < std::min(peak.tensors.size(), kShownTensors); ++i) {
    const LiveTensor& tensor = peak.tensors[i];
    rows.push_back({std::to_string(tensor.bytes), tensor.name, tensor.shape,
                    absl::StrCat(tensor.first, "..", tensor.last), tensor.source});
  }
  std::cout << table(rows);
}

void printStepPeak(const plan::Plan& plan) {
  const StepPeak peak = stepPeak(plan);
  if (peak.tensors.empty()) {
    return;
  }
  std::cout << "\nMost of the step is alive in @" << peak.function << " of micro-batch " << peak.microBatch << " at "
            << peak.name << (peak.source.empty() ? "" : " (" + peak.source + ")") << ": " << peak.bytes << " bytes"
            << (peak.tensors.size() > kShownTensors ? ", the largest tensors:" : ":") << "\n";
  std::vector<std::vector<std::string>> rows{{"bytes", "tensor", "shape", "memory", "source"}};
  for (size_t i = 0; i < std::min(peak.tensors.size(), kShownTensors); ++i) {
    const StepTensor& tensor = peak.tensors[i];
    rows.push_back({std::to_string(tensor.bytes), tensor.name, tensor.shape,
                    tensor.microBatches > 1 ? absl::StrCat(tensor.memory, " of ", tensor.microBatches, " micro-batches")
                                            : tensor.memory,
                    tensor.source});
  }
  std::cout << table(rows);
}

absl::Status showPlan(const std::string& path, const std::string& bytes, const Flags& flags) {
  for (const std::string name : {"alignment", "effort"}) {
    if (flags.has(name)) {
      return absl::InvalidArgumentError(absl::StrCat("flag '--", name, "' is for lifetimes; a plan is packed already"));
    }
  }
  WEFT_ASSIGN_OR_RETURN(const plan::Plan plan, parsePlan(bytes, path));
  const std::vector<const plan::Plan*> submeshes = submeshesOf(plan);
  if (flags.has("json")) {
    Json out = planJson(*submeshes[0], transientPeak(*submeshes[0]));
    if (submeshes.size() > 1) {
      out = {{"mesh", plan.mesh()}, {"peak_bytes_per_rank", plan.memory().peak_bytes()}, {"submeshes", Json::array()}};
      for (const plan::Plan* submesh : submeshes) {
        out["submeshes"].push_back(planJson(*submesh, transientPeak(*submesh)));
      }
    }
    std::cout << out.dump(1) << "\n";
    return absl::OkStatus();
  }
  for (size_t b = 0; b < submeshes.size(); ++b) {
    std::cout << (submeshes.size() > 1 ? absl::StrCat(b > 0 ? "\n" : "", "Submesh ", b, " of ", plan.mesh(), ", ")
                                       : "");
    printRegions(*submeshes[b]);
    printStepPeak(*submeshes[b]);
    printPeak(transientPeak(*submeshes[b]));
    printDemands(*submeshes[b]);
  }
  std::cout << "\nWhat would lower the peak, and at what price: weft advise DIR/00-input.mlir of --dump-dir DIR.\n";
  return absl::OkStatus();
}

// A serialized plan begins with the tag of its first field, which no table does.
bool isPlan(const std::string& path, const std::string& bytes) {
  const bool csv = path.size() >= 4 && path.compare(path.size() - 4, 4, ".csv") == 0;
  const bool plan = path.size() >= 5 && path.compare(path.size() - 5, 5, ".plan") == 0;
  return plan || (!csv && !bytes.empty() && bytes[0] == '\x08');
}

}  // namespace

int memoryCommand(int argc, char** argv) {
  if (wantsHelp(argc, argv)) {
    std::cout << flagHelp("weft memory FILE [flags]: FILE is a plan, or lifetimes: a table id,lower,upper,size",
                          memoryFlags());
    return 0;
  }
  const std::string path = takePath(argc, argv);
  absl::StatusOr<Flags> flags = Flags::parse(memoryFlags(), argc, argv);
  if (!flags.ok() || path.empty()) {
    return usageError("memory", flags.ok()
                                    ? absl::InvalidArgumentError("a file is missing: a plan, or a table of lifetimes "
                                                                 "id,lower,upper,size")
                                    : flags.status());
  }
  absl::StatusOr<std::string> bytes = readText(path);
  if (!bytes.ok()) {
    return fail("memory", bytes.status());
  }
  const absl::Status status =
      isPlan(path, *bytes) ? showPlan(path, *bytes, *flags) : packLifetimes(path, *bytes, *flags);
  return status.ok() ? 0 : fail("memory", status);
}

}  // namespace weft::tools
