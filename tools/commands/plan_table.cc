#include "tools/commands/plan_table.h"

#include <algorithm>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/commands/flags.h"

namespace weft::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMebibyte = 1 << 20;

std::string mebibytes(int64_t bytes) {
  return absl::StrFormat("%.2f MiB", static_cast<double>(bytes) / kMebibyte);
}

// "wte wpe h0 ... h11": what lies between the first two and the last of many is left out.
std::string layersText(const std::vector<std::string>& layers) {
  constexpr size_t kMostShown = 6;
  if (layers.size() <= kMostShown) {
    return absl::StrJoin(layers, " ");
  }
  const auto end = layers.end();
  return absl::StrCat(absl::StrJoin(layers.begin(), layers.begin() + 3, " "), " ... ", absl::StrJoin(end - 2, end, " "),
                      " (", layers.size(), ")");
}

void printStages(const PlanSummary& summary) {
  const bool hasKinds = std::any_of(summary.stages.begin(), summary.stages.end(),
                                    [](const StageSummary& stage) { return !stage.kind.empty(); });
  std::vector<std::vector<std::string>> rows = {{"stage", "mesh", "ranks", "layers"}};
  for (size_t s = 0; s < summary.stages.size(); ++s) {
    const StageSummary& stage = summary.stages[s];
    rows.push_back({absl::StrCat(s), stage.mesh, absl::StrCat(stage.ranks), layersText(stage.layers)});
  }
  for (size_t row = 0; row < rows.size() && hasKinds; ++row) {
    rows[row].insert(rows[row].begin() + 3, row == 0 ? "kind" : summary.stages[row - 1].kind);
  }
  std::cout << table(rows);
}

void printWeights(const PlanSummary& summary) {
  const bool mixed = !summary.zeroOf.empty();
  std::vector<std::vector<std::string>> rows = {{"weights", "count", "layout"}};
  if (mixed) {
    rows.front().emplace_back("ZeRO");
  }
  for (const WeightClass& each : summary.weights) {
    rows.push_back({each.name, absl::StrCat(each.count), each.layout});
    if (mixed) {
      rows.back().push_back(absl::StrCat(each.zero));
    }
  }
  std::cout << table(rows);
}

std::string memoryText(const MemorySummary& memory) {
  std::string text = absl::StrCat(mebibytes(memory.peakBytes), " on the rank that needs most:");
  for (const auto& [name, bytes] : memory.byClass) {
    if (bytes > 0) {
      absl::StrAppend(&text, " ", name, " ", mebibytes(bytes));
    }
  }
  if (memory.hostBytes > 0) {
    absl::StrAppend(&text, "; on the host ", mebibytes(memory.hostBytes));
  }
  return text;
}

std::string milliseconds(double seconds) {
  return absl::StrFormat("%.6g ms", 1e3 * seconds);
}

// Of the step; what is hidden of the collectives is no part of it.
std::string partsText(const TimeParts& time) {
  return absl::StrCat(
      "computation ", milliseconds(time.computation), ", communication ", milliseconds(time.communication), ", bubble ",
      milliseconds(time.bubble), ", once ", milliseconds(time.once), " (communication ",
      milliseconds(time.onceCommunication),
      time.onceOffload > 0 ? absl::StrCat(", offload ", milliseconds(time.onceOffload)) : "", ")",
      time.hidden > 0 ? absl::StrCat("; hidden: communication ", milliseconds(time.hidden)) : "",
      time.offloadHidden > 0 ? absl::StrCat("; hidden: offload ", milliseconds(time.offloadHidden)) : "");
}

// "stand for softmax_cross_entropy, batch_norm (53)".
std::string alternativesText(const PlanSummary& summary) {
  std::vector<std::string> kinds;
  for (const auto& [kind, count] : summary.alternatives) {
    kinds.push_back(count > 1 ? absl::StrCat(kind, " (", count, ")") : kind);
  }
  return absl::StrCat("stand for ", absl::StrJoin(kinds, ", "));
}

std::string timeText(const PlanSummary& summary) {
  const std::string step = absl::StrFormat("%.6g ms predicted for a step", 1e3 * summary.stepSeconds);
  return summary.boundSeconds > 0
             ? absl::StrCat(step,
                            absl::StrFormat("; no plan takes less than %.6g ms, so it is at most %.1f %% from the "
                                            "best",
                                            1e3 * summary.boundSeconds, 100 * summary.gap()))
             : step;
}

}  // namespace

void printSummary(const PlanSummary& summary) {
  printStages(summary);
  printWeights(summary);
  const std::string turns =
      summary.virtualStages > 1 ? absl::StrCat(", ", summary.virtualStages, " stages on each rank") : "";
  std::vector<std::vector<std::string>> rows = {{"micro-batches", absl::StrCat(summary.microBatches)},
                                                {"schedule", summary.schedule + turns},
                                                {"ZeRO", absl::StrCat("level ", summary.zeroText)},
                                                {"recomputed", summary.recompute}};
  if (!summary.alternatives.empty()) {
    rows.push_back({"alternatives", alternativesText(summary)});
  }
  if (summary.overlap) {
    rows.push_back({"overlap", "collectives beside computation"});
  }
  if (summary.offload != Offload::kNone) {
    rows.push_back({"offload", "the optimizer's state, in the host's memory"});
  }
  if (summary.gatherBucket > 0) {
    rows.push_back({"gathers", absl::StrCat("in each call in buckets of up to ", mebibytes(summary.gatherBucket))});
  }
  rows.push_back({"time", timeText(summary)});
  if (summary.time.sum() > 0) {
    rows.push_back({"time by part", partsText(summary.time)});
  }
  rows.push_back({"memory", memoryText(summary.memory)});
  std::cout << table(rows);
}

// A number; where parameters have levels of their own, levels by pattern, the first that matches counts.
static Json zeroJson(const PlanSummary& summary) {
  if (summary.zeroOf.empty()) {
    return summary.zero;
  }
  Json levels;
  for (const auto& [pattern, level] : summary.zeroOf) {
    levels[pattern] = level;
  }
  levels["*"] = summary.zero;
  return levels;
}

Json jsonOf(const PlanSummary& summary) {
  Json stages = Json::array();
  for (const StageSummary& stage : summary.stages) {
    stages.push_back({{"layers", stage.layers}, {"mesh", stage.mesh}, {"ranks", stage.ranks}});
    if (!stage.kind.empty()) {
      stages.back()["kind"] = stage.kind;
    }
  }
  Json weights = Json::array();
  for (const WeightClass& each : summary.weights) {
    weights.push_back({{"name", each.name}, {"count", each.count}, {"layout", each.layout}});
    if (!summary.zeroOf.empty()) {
      weights.back()["zero"] = each.zero;
    }
  }
  Json json = {{"stages", stages},
               {"weights", weights},
               {"micro", summary.microBatches},
               {"schedule", summary.schedule},
               {"virtual", summary.virtualStages},
               {"zero", zeroJson(summary)},
               {"recompute", summary.recompute},
               {"predicted",
                {{"step_seconds", summary.stepSeconds},
                 {"peak_bytes", summary.memory.peakBytes},
                 {"state_bytes", summary.memory.stateBytes},
                 {"activation_bytes", summary.memory.activationBytes}}}};
  if (!summary.alternatives.empty()) {
    json["alternatives"] = summary.alternatives;
  }
  if (summary.overlap) {
    json["overlap"] = true;
  }
  if (summary.gatherBucket > 0) {
    json["gather_bucket"] = summary.gatherBucket;
  }
  if (summary.offload != Offload::kNone) {
    json["offload"] = offloadName(summary.offload);
    json["predicted"]["host_bytes"] = summary.memory.hostBytes;
  }
  if (const TimeParts& time = summary.time; time.sum() > 0) {
    json["predicted"]["seconds_by_part"] = {{"computation", time.computation},
                                            {"communication", time.communication},
                                            {"bubble", time.bubble},
                                            {"once", time.once}};
    json["predicted"]["once_communication_seconds"] = time.onceCommunication;
    json["predicted"]["hidden_communication_seconds"] = time.hidden;
    if (summary.offload != Offload::kNone) {
      json["predicted"]["once_offload_seconds"] = time.onceOffload;
      json["predicted"]["hidden_offload_seconds"] = time.offloadHidden;
    }
  }
  if (summary.boundSeconds > 0) {
    json["bound_seconds"] = summary.boundSeconds;
    json["gap"] = summary.gap();
  }
  return json;
}

Json jsonOf(const SearchCost& cost) {
  return {{"seconds", cost.seconds}, {"ticks", cost.ticks}, {"compilations", cost.compilations}};
}

}  // namespace weft::tools
