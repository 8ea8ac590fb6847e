#include "tools/analysis/explanation.h"

#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "planner/cost/plan_time.h"
#include "planner/decisions.h"
#include "runtime/base/status.h"
#include "runtime/plan/describe.h"
#include "runtime/plan/statistics.h"

namespace weft::tools {
namespace {

using Json = nlohmann::ordered_json;

std::string groupsText(const plan::Plan& plan, const plan::Collective& collective) {
  if (collective.kind() == plan::PERMUTE) {
    return "pairs of ranks";
  }
  std::string text;
  for (const auto& group : plan.group_sets(static_cast<int>(collective.group_set())).groups()) {
    absl::StrAppend(&text, text.empty() ? "[" : " [");
    for (int i = 0; i < group.ranks_size(); ++i) {
      absl::StrAppend(&text, i > 0 ? "," : "", group.ranks(i));
    }
    absl::StrAppend(&text, "]");
  }
  return text;
}

// The receiving end of a channel.
struct Receiver {
  const plan::Transfer* transfer = nullptr;
  int64_t bytes = 0;  // that each rank of the submesh receives
  double seconds = 0;
};

std::map<uint32_t, Receiver> receiversOf(const plan::Plan& plan, const Machine& machine) {
  std::map<uint32_t, Receiver> receivers;
  for (const plan::Plan* submesh : submeshesOf(plan)) {
    for (const plan::Function& function : submesh->functions()) {
      for (const plan::Instruction& instruction : function.instructions()) {
        if (instruction.has_transfer() && !instruction.transfer().send()) {
          const plan::Buffer& output = submesh->buffers(static_cast<int>(instruction.outputs(0).buffer()));
          receivers[instruction.transfer().channel()] = {&instruction.transfer(), output.bytes(),
                                                         transferSeconds(plan, *submesh, instruction, machine)};
        }
      }
    }
  }
  return receivers;
}

// "to submesh 1", between different meshes with the pairs of ranks that meet: "to submesh 1, ranks 0>0 0>1 1>2".
std::string pairsText(const plan::Transfer& send, const Receiver& receiver) {
  std::string text = absl::StrCat("to submesh ", send.submesh());
  for (int i = 0; i < receiver.transfer->boxes_size(); ++i) {
    const plan::Transfer::Box& box = receiver.transfer->boxes(i);
    absl::StrAppend(&text, i == 0 ? ", ranks " : " ", box.source(), ">", box.target());
  }
  return text;
}

std::string sourceText(const plan::Plan& plan, const plan::Instruction& instruction) {
  const std::string source = sourceOf(plan, instruction);
  return source.empty() ? "not in the plan" : source;
}

CollectiveLine sendLine(const plan::Plan& plan, const plan::Instruction& instruction, const std::string& function,
                        const Receiver& receiver) {
  CollectiveLine line;
  line.function = function;
  line.collective = "send";
  line.name = instruction.label();
  line.groups = pairsText(instruction.transfer(), receiver);
  line.bytes = receiver.bytes;
  line.seconds = receiver.seconds;
  line.why = instruction.transfer().reason();
  line.source = sourceText(plan, instruction);
  return line;
}

CollectiveLine collectiveLine(const plan::Plan& plan, const plan::Instruction& instruction,
                              const std::string& function) {
  const plan::Collective& collective = instruction.collective();
  CollectiveLine line;
  line.function = function;
  line.collective = collectiveKindName(collective.kind());
  line.name = instruction.label();
  line.tensors = instruction.inputs_size();
  line.groups = groupsText(plan, collective);
  line.bytes = collective.bytes_received();
  line.seconds = collective.cost();
  line.why = collective.reason();
  line.source = sourceText(plan, instruction);
  return line;
}

void addCollectives(const plan::Plan& plan, const std::map<uint32_t, Receiver>& receivers, const std::string& prefix,
                    std::vector<CollectiveLine>& out) {
  for (const plan::Function& function : plan.functions()) {
    for (const plan::Instruction& instruction : function.instructions()) {
      if (instruction.has_transfer() && instruction.transfer().send()) {
        const Receiver& receiver = receivers.at(instruction.transfer().channel());
        out.push_back(sendLine(plan, instruction, prefix + function.name(), receiver));
      } else if (instruction.has_collective()) {
        out.push_back(collectiveLine(plan, instruction, prefix + function.name()));
      }
    }
  }
}

// The memory limit for which recompute = "auto" chose; nothing where it did not.
std::optional<int64_t> recomputeLimit(const Decisions& decisions) {
  const Json summary = Json::parse(decisions.recomputeSummary, nullptr, /*allow_exceptions=*/false);
  if (!summary.is_object() || summary.empty()) {
    return std::nullopt;
  }
  const auto limit = summary.find("limit");
  return limit != summary.end() && limit->is_number_integer() ? limit->get<int64_t>() : 0;
}

// What the backward pass recomputes, of the decisions record.
std::vector<RecomputedLine> recomputedOf(const Decisions& decisions) {
  std::vector<RecomputedLine> out;
  const std::optional<int64_t> limit = recomputeLimit(decisions);
  const auto add = [&](const auto& decision, const std::string& reshard) {
    if (!decision.recompute) {
      return;
    }
    const bool saves = decision.recomputePrice.bytes > 0;
    const std::string why = !limit  ? "asked for"
                            : saves ? absl::StrCat("for the memory limit of ", *limit, " bytes")
                                    : "what is recomputed reads it";
    out.push_back({decision.label, decision.stage, reshard, decision.recomputePrice.bytes,
                   inSeconds(decision.recomputePrice.time), why});
  };
  for (const OperatorDecision& op : decisions.operators) {
    add(op, "");
  }
  for (const ReshardDecision& reshard : decisions.reshards) {
    add(reshard, reshard.how);
  }
  return out;
}

}  // namespace

absl::StatusOr<Explanation> explain(const plan::Plan& plan) {
  Explanation explanation;
  if (!plan.decisions().empty()) {
    WEFT_ASSIGN_OR_RETURN(const Decisions decisions, parseDecisions(plan.decisions()));
    explanation.recomputed = recomputedOf(decisions);
  }
  const std::vector<const plan::Plan*> submeshes = submeshesOf(plan);
  WEFT_ASSIGN_OR_RETURN(const Machine machine, machineOf(plan));
  const std::map<uint32_t, Receiver> receivers = receiversOf(plan, machine);
  for (size_t b = 0; b < submeshes.size(); ++b) {
    addCollectives(*submeshes[b], receivers, submeshes.size() == 1 ? "" : absl::StrCat("submesh", b, "."),
                   explanation.collectives);
  }
  return explanation;
}

}  // namespace weft::tools
