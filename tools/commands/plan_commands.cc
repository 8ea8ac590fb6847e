#include "tools/commands/plan_commands.h"

#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "planner/decisions.h"
#include "planner/machine/machine.h"
#include "runtime/base/status.h"
#include "runtime/plan/describe.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/statistics.h"
#include "tools/commands/flags.h"

namespace weft::tools {
namespace {

using Json = nlohmann::ordered_json;

const std::vector<Flag>& planFlags() {
  static const std::vector<Flag> flags{{"json", Flag::kSwitch, "print JSON"}};
  return flags;
}

// A command over one plan file: `weft NAME PLAN [--json]`.
template <typename Print>
int planCommand(const std::string& name, int argc, char** argv, const Print& print) {
  if (wantsHelp(argc, argv)) {
    std::cout << flagHelp("weft " + name + " PLAN", planFlags());
    return 0;
  }
  const std::string path = takePath(argc, argv);
  absl::StatusOr<Flags> flags = Flags::parse(planFlags(), argc, argv);
  if (!flags.ok() || path.empty()) {
    return usageError(name, flags.ok() ? absl::InvalidArgumentError("a plan file is missing") : flags.status());
  }
  absl::StatusOr<plan::Plan> plan = readPlan(path);
  if (!plan.ok()) {
    return fail(name, plan.status());
  }
  const absl::Status status = print(*plan, flags->has("json"));
  return status.ok() ? 0 : fail(name, status);
}

// Names that are no UTF-8 are shown as well as can be.
std::string textOf(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

absl::Status printStatistics(const plan::Plan& plan, bool json) {
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
    return absl::OkStatus();
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
  return absl::OkStatus();
}

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
};

std::map<uint32_t, Receiver> receiversOf(const plan::Plan& plan) {
  std::map<uint32_t, Receiver> receivers;
  for (const plan::Plan* submesh : submeshesOf(plan)) {
    for (const plan::Function& function : submesh->functions()) {
      for (const plan::Instruction& instruction : function.instructions()) {
        if (instruction.has_transfer() && !instruction.transfer().send()) {
          const plan::Buffer& output = submesh->buffers(static_cast<int>(instruction.outputs(0).buffer()));
          receivers[instruction.transfer().channel()] = {&instruction.transfer(), output.bytes()};
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

Json sendJson(const plan::Plan& plan, const plan::Instruction& instruction, const std::string& function,
              const Receiver& receiver) {
  const int64_t bytes = receiver.bytes;
  const Machine machine;
  return {{"function", function},
          {"collective", "send"},
          {"operator", instruction.label()},
          {"tensors", 1},
          {"groups", pairsText(instruction.transfer(), receiver)},
          {"bytes_received_per_rank", bytes},
          {"seconds", machine.linkLatency + static_cast<double>(bytes) / machine.linkBandwidth},
          {"why", instruction.transfer().reason()},
          {"source", sourceText(plan, instruction)}};
}

void addCollectives(const plan::Plan& plan, const std::map<uint32_t, Receiver>& receivers, const std::string& prefix,
                    Json& out) {
  for (const plan::Function& function : plan.functions()) {
    for (const plan::Instruction& instruction : function.instructions()) {
      if (instruction.has_transfer() && instruction.transfer().send()) {
        const Receiver& receiver = receivers.at(instruction.transfer().channel());
        out.push_back(sendJson(plan, instruction, prefix + function.name(), receiver));
      }
      if (!instruction.has_collective()) {
        continue;
      }
      const plan::Collective& collective = instruction.collective();
      out.push_back({{"function", prefix + function.name()},
                     {"collective", collectiveKindName(collective.kind())},
                     {"operator", instruction.label()},
                     {"tensors", instruction.inputs_size()},
                     {"groups", groupsText(plan, collective)},
                     {"bytes_received_per_rank", collective.bytes_received()},
                     {"seconds", collective.cost()},
                     {"why", collective.reason()},
                     {"source", sourceText(plan, instruction)}});
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

// What the backward pass recomputes, of the decisions record. A plan that was written by hand has none.
absl::StatusOr<Json> recomputedOf(const plan::Plan& plan) {
  Json out = Json::array();
  if (plan.decisions().empty()) {
    return out;
  }
  WEFT_ASSIGN_OR_RETURN(const Decisions decisions, parseDecisions(plan.decisions()));
  const std::optional<int64_t> limit = recomputeLimit(decisions);
  const auto add = [&](const auto& decision, const std::string& reshard) {
    if (!decision.recompute) {
      return;
    }
    const bool chosen = limit.has_value();
    const bool saves = decision.recomputePrice.bytes > 0;
    const std::string why = !chosen ? "asked for"
                            : saves ? absl::StrCat("for the memory limit of ", *limit, " bytes")
                                    : "what is recomputed reads it";
    out.push_back({{"recomputed", decision.label},
                   {"stage", decision.stage},
                   {"reshard", reshard},
                   {"bytes_saved", decision.recomputePrice.bytes},
                   {"seconds", decision.recomputePrice.seconds},
                   {"why", why}});
  };
  for (const OperatorDecision& op : decisions.operators) {
    add(op, "");
  }
  for (const ReshardDecision& reshard : decisions.reshards) {
    add(reshard, reshard.how);
  }
  return out;
}

void printRecomputed(const Json& recomputed) {
  int64_t bytes = 0;
  double seconds = 0;
  for (const Json& entry : recomputed) {
    const std::string reshard = entry["reshard"].get<std::string>();
    std::cout << "stage " << entry["stage"] << "  " << entry["recomputed"].get<std::string>()
              << (reshard.empty() ? "" : " as " + reshard) << ", recomputed in the backward pass\n    why    "
              << entry["why"].get<std::string>() << "\n    price  " << entry["bytes_saved"]
              << " bytes less kept of each micro-batch, " << entry["seconds"] << " s more\n";
    bytes += entry["bytes_saved"].get<int64_t>();
    seconds += entry["seconds"].get<double>();
  }
  if (!recomputed.empty()) {
    std::cout << recomputed.size() << " operators recomputed: " << bytes << " bytes less, " << seconds
              << " s more for each micro-batch\n";
  }
}

absl::Status printExplanation(const plan::Plan& plan, bool json) {
  Json out = Json::array();
  WEFT_ASSIGN_OR_RETURN(const Json recomputed, recomputedOf(plan));
  const std::vector<const plan::Plan*> submeshes = submeshesOf(plan);
  const std::map<uint32_t, Receiver> receivers = receiversOf(plan);
  for (size_t b = 0; b < submeshes.size(); ++b) {
    addCollectives(*submeshes[b], receivers, submeshes.size() == 1 ? "" : absl::StrCat("submesh", b, "."), out);
  }
  if (json) {
    out.insert(out.end(), recomputed.begin(), recomputed.end());
    std::cout << textOf(out) << "\n";
    return absl::OkStatus();
  }
  for (const Json& entry : out) {
    std::cout << "@" << entry["function"].get<std::string>() << "  " << entry["collective"].get<std::string>() << " of "
              << entry["operator"].get<std::string>() << ", groups " << entry["groups"].get<std::string>()
              << "\n    why    " << entry["why"].get<std::string>() << "\n    price  "
              << entry["bytes_received_per_rank"] << " bytes received per rank, " << entry["seconds"]
              << " s\n    source " << entry["source"].get<std::string>() << "\n";
  }
  std::cout << out.size() << " collectives and sends\n";
  printRecomputed(recomputed);
  return absl::OkStatus();
}

}  // namespace

int statsCommand(int argc, char** argv) {
  return planCommand("stats", argc, argv, printStatistics);
}

int explainCommand(int argc, char** argv) {
  return planCommand("explain", argc, argv, printExplanation);
}

}  // namespace weft::tools
