#include "passes/stage/choose_schedule.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OwningOpRef.h"
#include "passes/schedule/generate.h"
#include "passes/schedule/simulate.h"
#include "passes/stage/stage_table.h"
#include "passes/support/decisions.h"
#include "passes/support/program.h"
#include "runtime/base/status.h"
#include "runtime/plan/statistics.h"

namespace weft {

namespace {

struct Candidate {
  std::string kind;
  int64_t virtualStages = 1;
  double seconds = 0;
  int64_t peakBytes = 0;
  std::string refusal;  // why it does not serve; empty if it does
};

// Kinds that put as many stages on each rank as the program asks for.
std::vector<Candidate> candidatesFor(int64_t virtualStages) {
  std::vector<Candidate> candidates;
  for (const schedule::Kind kind : schedule::allKinds()) {
    const bool loops = kind == schedule::Kind::kInterleaved || kind == schedule::Kind::kBreadthFirst ||
                       kind == schedule::Kind::kZbInterleaved;
    const bool serves = loops ? virtualStages > 1 : schedule::defaultVirtualStages(kind) == virtualStages;
    if (serves && kind != schedule::Kind::kSeq1F1B) {
      candidates.push_back({schedule::kindName(kind), virtualStages});
    }
  }
  return candidates;
}

void setConsidered(mlir::ModuleOp module, const std::string& text) {
  mlir::Builder builder(module.getContext());
  mlir::NamedAttrList options(module->getAttrOfType<mlir::DictionaryAttr>("nn.options"));
  options.set("considered", builder.getStringAttr(text));
  module->setAttr("nn.options", options.getDictionary(module.getContext()));
}

void setOptions(mlir::ModuleOp module, const std::string& kind, int64_t virtualStages) {
  mlir::Builder builder(module.getContext());
  mlir::NamedAttrList options(module->getAttrOfType<mlir::DictionaryAttr>("nn.options"));
  options.set("schedule", builder.getStringAttr(kind));
  options.set("virtual", builder.getI64IntegerAttr(virtualStages));
  module->setAttr("nn.options", options.getDictionary(module.getContext()));
}

// What was considered, for the record of the decisions.
std::string consideredText(const std::vector<Candidate>& candidates, int64_t memoryLimit) {
  nlohmann::ordered_json considered = nlohmann::ordered_json::array();
  for (const Candidate& candidate : candidates) {
    nlohmann::ordered_json entry = {{"kind", candidate.kind}, {"virtual", candidate.virtualStages}};
    if (candidate.refusal.empty()) {
      entry["seconds"] = candidate.seconds;
      entry["peak_bytes"] = candidate.peakBytes;
      entry["fits"] = memoryLimit == 0 || candidate.peakBytes <= memoryLimit;
    } else {
      entry["refused"] = candidate.refusal;
    }
    considered.push_back(entry);
  }
  return considered.dump();
}

absl::Status noneFits(const std::vector<Candidate>& candidates, int64_t memoryLimit) {
  const Candidate* least = nullptr;
  std::string refusals;
  for (const Candidate& candidate : candidates) {
    if (!candidate.refusal.empty()) {
      absl::StrAppend(&refusals, "; ", candidate.kind, ": ", candidate.refusal);
    } else if (least == nullptr || candidate.peakBytes < least->peakBytes) {
      least = &candidate;
    }
  }
  if (least == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("no schedule serves this program", refusals));
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("no schedule fits in ", memoryLimit, " bytes per rank; the least is ", least->peakBytes, " with ",
                   least->kind, "; allow as much, recompute more (CompileOptions::recompute), or use more ranks"));
}

}  // namespace

absl::Status chooseSchedule(mlir::ModuleOp module, int64_t memoryLimit,
                            const std::function<absl::StatusOr<plan::Plan>(mlir::ModuleOp)>& compile) {
  std::vector<Candidate> candidates = candidatesFor(std::max<int64_t>(integerOption(module, "virtual", 0), 1));
  Candidate* best = nullptr;
  for (Candidate& candidate : candidates) {
    mlir::OwningOpRef<mlir::ModuleOp> copy(module.clone());
    setOptions(*copy, candidate.kind, candidate.virtualStages);
    absl::StatusOr<plan::Plan> plan = compile(*copy);
    if (!plan.ok()) {
      candidate.refusal = std::string(plan.status().message());
      continue;
    }
    if (plan->blocks_size() == 0) {
      setOptions(module, "1f1b", 1);
      return absl::OkStatus();  // one stage: there is nothing to choose
    }
    WEFT_ASSIGN_OR_RETURN(candidate.seconds, simulatedSeconds(*plan, Machine()));
    candidate.peakBytes = plan->memory().peak_bytes();
    const bool fits = memoryLimit == 0 || candidate.peakBytes <= memoryLimit;
    const auto rank = [](const Candidate& c) { return std::make_pair(c.seconds, c.peakBytes); };
    if (fits && (best == nullptr || rank(candidate) < rank(*best))) {
      best = &candidate;
    }
  }
  if (best == nullptr) {
    return noneFits(candidates, memoryLimit);
  }
  setOptions(module, best->kind, best->virtualStages);
  setConsidered(module, consideredText(candidates, memoryLimit));
  return absl::OkStatus();
}

}  // namespace weft
