#include "tools/commands/operators.h"

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/nn/operator_interface.h"
#include "ir/registry.h"
#include "kernels/describe/describe.h"
#include "passes/plan/instruction_facts.h"
#include "runtime/base/status.h"
#include "tools/commands/flags.h"
#include "tools/commands/operator_examples.h"
#include "tools/commands/operator_site.h"

namespace weft::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kName[] = "operators";
constexpr char kUsage[] =
    "weft operators\n"
    "Every operator of the dialect on typical operands: its factor rule, the sets of operands in which it is linear, "
    "the factors that must be whole, and whether it has an expansion, a gradient, and results in place of operands.";

const std::vector<Flag>& operatorsFlags() {
  static const std::vector<Flag> flags{{"json", Flag::kSwitch, "print JSON"}};
  return flags;
}

// "8,4 | 4"
std::string shapesText(const std::vector<Shape>& shapes) {
  std::vector<std::string> texts;
  for (const Shape& shape : shapes) {
    texts.push_back(shape.empty() ? "scalar" : absl::StrJoin(shape, ","));
  }
  return absl::StrJoin(texts, " : ");
}

absl::StatusOr<mlir::Operation*> make(OperatorSite& site, const OperatorExample& example) {
  constexpr char kResults[] = "--results ";
  OperatorRequest request{.op = example.op};
  OperatorWords words{.shapes = example.shapes};
  if (example.more.rfind(kResults, 0) == 0) {
    words.results = example.more.substr(sizeof(kResults) - 1);
  } else if (!example.more.empty()) {
    WEFT_RETURN_IF_ERROR(addAttribute(example.more, request));
  }
  return site.make(words, std::move(request));
}

// Is it rewritten into others: always, where a whole factor is split, or never?
std::string expansionOf(mlir::Operation* op, const ir::OperatorRegistry& registry) {
  return ir::mustExpand(op) ? "always" : registry.expansion(op) != nullptr ? "where split" : "";
}

absl::StatusOr<Json> describeExample(OperatorSite& site, const OperatorExample& example,
                                     const ir::OperatorRegistry& registry) {
  WEFT_ASSIGN_OR_RETURN(mlir::Operation* const op, make(site, example));
  auto interface = mlir::cast<ir::OperatorInterface>(op);
  const std::string text = interface.getRule();
  WEFT_ASSIGN_OR_RETURN(const Rule rule, Rule::parse(text, ir::operandShapes(op), ir::resultShapes(op)));
  Json json = {{"operator", example.op},    {"operands", shapesText(ir::operandShapes(op))},
               {"attribute", example.more}, {"rule", text},
               {"linear", Json::array()},   {"whole", Json::array()}};
  for (const auto& set : interface.getLinearSets()) {
    json["linear"].push_back(std::vector<unsigned>(set.begin(), set.end()));
  }
  for (size_t f = 0; f < rule.factors().size(); ++f) {
    if (!rule.splittable(static_cast<int>(f)) && !rule.factors()[f].microBatches) {
      json["whole"].push_back(rule.factors()[f].name);
    }
  }
  json["expansion"] = expansionOf(op, registry);
  json["gradient"] = registry.gradient(op) != nullptr;
  json["in_place"] = Json::array();
  for (const InPlacePair& pair : describe(kernelSpecOf(op), Target::kCpu).inPlace) {
    json["in_place"].push_back({pair.input, pair.output});
  }
  return json;
}

absl::StatusOr<Json> operatorsJson() {
  const ir::OperatorRegistry registry = ir::OperatorRegistry::builtin();
  OperatorSite site;
  std::vector<std::string> names = site.operators();
  std::sort(names.begin(), names.end());
  Json list = Json::array();
  for (const std::string& name : names) {
    const auto example = std::find_if(operatorExamples().begin(), operatorExamples().end(),
                                      [&](const OperatorExample& known) { return known.op == name; });
    if (example == operatorExamples().end()) {
      return absl::InternalError(absl::StrCat(name, " has no example (tools/commands/operator_examples.cc)"));
    }
    WEFT_ASSIGN_OR_RETURN(Json line, describeExample(site, *example, registry));
    list.push_back(std::move(line));
  }
  return list;
}

// "0 + 1, 2": jointly linear in 0 and 1, and in 2.
std::string setsText(const Json& sets) {
  std::vector<std::string> texts;
  for (const Json& set : sets) {
    texts.push_back(absl::StrJoin(set.get<std::vector<unsigned>>(), " + "));
  }
  return absl::StrJoin(texts, ", ");
}

void printText(const Json& list) {
  std::vector<std::vector<std::string>> rows = {
      {"operator", "operands", "rule", "linear in", "whole", "expanded", "gradient"}};
  for (const Json& line : list) {
    rows.push_back({line["operator"], line["operands"], line["rule"], setsText(line["linear"]),
                    absl::StrJoin(line["whole"].get<std::vector<std::string>>(), " "), line["expansion"],
                    line["gradient"].get<bool>() ? "yes" : ""});
  }
  std::cout << table(rows);
}

}  // namespace

int operatorsCommand(int argc, char** argv) {
  if (wantsHelp(argc, argv)) {
    std::cout << flagHelp(kUsage, operatorsFlags());
    return 0;
  }
  const absl::StatusOr<Flags> flags = Flags::parse(operatorsFlags(), argc, argv);
  if (!flags.ok()) {
    return usageError(kName, flags.status());
  }
  const absl::StatusOr<Json> list = operatorsJson();
  if (!list.ok()) {
    return fail(kName, list.status());
  }
  flags->has("json") ? void(std::cout << list->dump(1) << "\n") : printText(*list);
  return 0;
}

}  // namespace weft::tools
