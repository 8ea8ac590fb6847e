#include "tools/commands/strategy.h"

#include <iostream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "ir/layout/reshard.h"
#include "ir/nn/operator_interface.h"
#include "runtime/base/limits.h"
#include "runtime/base/numbers.h"
#include "runtime/base/status.h"
#include "tools/commands/flags.h"
#include "tools/commands/machine_flag.h"
#include "tools/commands/operator_attributes.h"
#include "tools/commands/operator_site.h"

namespace weft::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kName[] = "strategy";
constexpr char kUsage[] =
    "weft strategy OPERATOR --shapes A:B --strategy '(2,1),(1,4)' --devices N [NAME=VALUE ...]\n"
    "weft strategy OPERATOR --shapes A:B --strategy '(dp,),(,tp)' --mesh dp=2,tp=4 [NAME=VALUE ...]\n"
    "What a strategy of shard() means. NAME=VALUE is an attribute of the operator (dims=[1], transpose_b=true); what "
    "follows from the shapes can be left out.";

const std::vector<Flag>& strategyFlags() {
  static const std::vector<Flag> flags{
      {"shapes", Flag::kRequired, "operand shapes, as 16,32:32,16; empty for a scalar: 8,4:"},
      {"strategy", Flag::kRequired,
       "a list per operand, an entry per dimension: numbers of parts (2,1),(1,4), or axis names (dp,),(,tp), two on "
       "one dimension as dp+tp or (dp,tp); () for an operand that follows from the others"},
      {"devices", Flag::kOptional, "number of ranks"},
      {"mesh", Flag::kOptional, "mesh instead, as dp=2,tp=4"},
      {"machine", Flag::kOptional, "the machine that reshards are priced for: a name (a100-80g) or a file"},
      {"out-strategy", Flag::kOptional, "likewise for each result"},
      {"results", Flag::kOptional, "result shapes, where they do not follow (reshape, broadcast)"},
      {"types", Flag::kOptional, "element types of the operands, as f32,i32; known for the built-in operators"},
      {"json", Flag::kSwitch, "print JSON"},
  };
  return flags;
}

// One list of a strategy: its entries, "" for an empty one.
using Entries = std::vector<std::string>;

// The position of the parenthesis that closes the one at `open`.
size_t closingOf(const std::string& text, size_t open) {
  int depth = 0;
  for (size_t at = open; at < text.size(); ++at) {
    depth += text[at] == '(' ? 1 : text[at] == ')' ? -1 : 0;
    if (depth == 0) {
      return at;
    }
  }
  return std::string::npos;
}

// "dp,(tp,sp),None" to its entries; a tuple inside loses its parentheses.
Entries entriesOf(const std::string& text) {
  Entries entries{""};
  int depth = 0;
  for (const char c : text) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == ',' && depth == 0) {
      entries.emplace_back();
    } else if (c != '(' && c != ')') {
      entries.back() += c;
    }
  }
  for (std::string& entry : entries) {
    entry = std::string(absl::StripAsciiWhitespace(entry));
  }
  return entries;
}

// "(2,1),(1,4)" or "(dp,),(,tp)" to the entries of each list.
absl::StatusOr<std::vector<Entries>> parseLists(const std::string& flag, const std::string& text) {
  std::vector<Entries> lists;
  size_t at = 0;
  while (at < text.size()) {
    const size_t close = text[at] == '(' ? closingOf(text, at) : std::string::npos;
    if (close == std::string::npos) {
      return absl::InvalidArgumentError(absl::StrCat("--", flag, " '", text, "': '(' was expected at position ", at,
                                                     "; write one list per tensor, as (2,1),(1,4) or (dp,),(,tp)"));
    }
    lists.push_back(entriesOf(text.substr(at + 1, close - at - 1)));
    at = close + 1;
    if (at < text.size() && text[at] == ',') {
      ++at;
    }
  }
  return lists;
}

// "()" is the list of a scalar, of one dimension that is not split, and of a tensor of which nothing is said.
void dropEmptyEntries(std::vector<Entries>& lists, const std::vector<Shape>& shapes) {
  for (size_t i = 0; i < lists.size() && i < shapes.size(); ++i) {
    if (shapes[i].size() != 1 && lists[i] == Entries{""}) {
      lists[i].clear();
    }
  }
}

bool isNumber(const std::string& entry) {
  return !entry.empty() && entry.find_first_not_of("-0123456789") == std::string::npos;
}

// A strategy is written with names unless every entry is a number.
bool writtenWithNames(const std::vector<Entries>& lists) {
  return std::any_of(lists.begin(), lists.end(), [](const Entries& entries) {
    return std::any_of(entries.begin(), entries.end(), [](const std::string& entry) { return !isNumber(entry); });
  });
}

absl::StatusOr<std::vector<Shape>> splitsOf(const std::vector<Entries>& lists) {
  std::vector<Shape> splits;
  for (const Entries& entries : lists) {
    Shape& list = splits.emplace_back();
    for (const std::string& entry : entries) {
      WEFT_ASSIGN_OR_RETURN(const int64_t parts, parseInteger(entry, {1, kMaxRanks}));
      list.push_back(parts);
    }
  }
  return splits;
}

// What lists of axis names ask of tensors.
absl::StatusOr<Annotations> namesOf(const std::vector<Entries>& lists, const std::vector<Shape>& shapes,
                                    const Mesh& mesh) {
  Annotations tensors(lists.size());
  for (size_t i = 0; i < lists.size() && i < shapes.size(); ++i) {
    if (lists[i].empty()) {
      continue;
    }
    std::vector<std::string> dims;
    for (const std::string& entry : lists[i]) {
      if (isNumber(entry)) {
        return absl::InvalidArgumentError(absl::StrCat("'", entry,
                                                       "' stands beside axis names; write numbers of parts in ",
                                                       "all entries or names of axes, empty where nothing is split"));
      }
      dims.push_back(absl::StrReplaceAll(entry, {{"+", ","}}));
    }
    WEFT_ASSIGN_OR_RETURN(tensors[i], parseAnnotation(annotationText(dims), mesh));
    WEFT_RETURN_IF_ERROR(tensors[i]->layout.check(shapes[i], mesh));
  }
  return tensors;
}

OperatorWords wordsOf(const Flags& flags) {
  const auto results = flags.has("results") ? std::optional<std::string>(flags.text("results")) : std::nullopt;
  return {flags.text("shapes"), results, flags.text("types")};
}

Json stepsJson(const ReshardPlan& plan, const Mesh& mesh) {
  Json list = Json::array();
  for (const ReshardStep& step : plan.steps) {
    list.push_back({{"collective", collectiveName(step.kind)}, {"groups", groupsOf(step, mesh)}});
  }
  return list;
}

// Axes of factors that a tensor lacks: its gradient is a sum partial over them.
std::vector<Partial> partialOf(const Rule& rule, const std::vector<DimFactors>& dims, const FactorAxes& axes) {
  std::vector<Partial> partial;
  for (size_t f = 0; f < axes.size(); ++f) {
    bool present = false;
    for (const DimFactors& dim : dims) {
      present |= std::find(dim.begin(), dim.end(), static_cast<int>(f)) != dim.end();
    }
    for (const Axis& axis : axes[f]) {
      if (!present) {
        partial.push_back({axis, ReduceKind::kSum});
      }
    }
  }
  return partial;
}

absl::StatusOr<Mesh> meshOf(const Flags& flags) {
  if (flags.has("mesh") == flags.has("devices")) {
    return absl::InvalidArgumentError("say where it runs: --devices N, or --mesh dp=2,tp=4");
  }
  return Mesh::parse(flags.text(flags.has("mesh") ? "mesh" : "devices"));
}

// The strategy of the flags, by numbers or by names, as axes of the rule's factors.
absl::StatusOr<SplitStrategy> strategyOf(mlir::Operation* op, const Rule& rule, const Mesh& mesh, const Flags& flags) {
  WEFT_ASSIGN_OR_RETURN(std::vector<Entries> in, parseLists("strategy", flags.text("strategy")));
  WEFT_ASSIGN_OR_RETURN(std::vector<Entries> out, parseLists("out-strategy", flags.text("out-strategy")));
  const std::vector<Shape> operands = ir::operandShapes(op);
  const std::vector<Shape> results = ir::resultShapes(op);
  dropEmptyEntries(in, operands);
  dropEmptyEntries(out, results);
  if (!writtenWithNames(in) && !writtenWithNames(out)) {
    WEFT_ASSIGN_OR_RETURN(const std::vector<Shape> splits, splitsOf(in));
    WEFT_ASSIGN_OR_RETURN(const std::vector<Shape> wanted, splitsOf(out));
    return resolveSplits(rule, splits, wanted, mesh);
  }
  WEFT_ASSIGN_OR_RETURN(const Annotations given, namesOf(in, operands, mesh));
  WEFT_ASSIGN_OR_RETURN(const Annotations wanted, namesOf(out, results, mesh));
  WEFT_ASSIGN_OR_RETURN(const NamedStrategy named, resolveNames(rule, given, wanted, mesh));
  WEFT_RETURN_IF_ERROR(rule.check(named.axes, mesh));
  SplitStrategy strategy{named.axes, named.said, {}, mesh.ranks()};
  for (const AxisList& axes : named.axes) {
    strategy.repeats /= partsOf(axes);
  }
  for (size_t r = 0; r < results.size(); ++r) {
    strategy.results.push_back(rule.resultLayout(r, named.axes));
    strategy.results.back().setPartial({});
    if (r < wanted.size() && wanted[r]) {
      strategy.results.back() = wanted[r]->layout;
    }
  }
  return strategy;
}

absl::StatusOr<Json> describe(mlir::Operation* op, const Flags& flags) {
  WEFT_ASSIGN_OR_RETURN(const Mesh mesh, meshOf(flags));
  auto interface = mlir::cast<ir::OperatorInterface>(op);
  const std::vector<Shape> operandShapes = ir::operandShapes(op);
  const std::vector<Shape> resultShapes = ir::resultShapes(op);
  WEFT_ASSIGN_OR_RETURN(const Rule rule, Rule::parse(interface.getRule(), operandShapes, resultShapes));
  WEFT_ASSIGN_OR_RETURN(const SplitStrategy split, strategyOf(op, rule, mesh, flags));
  Json json = {{"accepted", true},         {"mesh", mesh.print()},      {"factors", Json::object()},
               {"repeats", split.repeats}, {"operands", Json::array()}, {"results", Json::array()}};
  for (size_t f = 0; f < split.axes.size(); ++f) {
    json["factors"][rule.factors()[f].name] = partsOf(split.axes[f]);
  }
  json["local_shapes"] = {{"operands", Json::array()}, {"results", Json::array()}};
  json["forward"] = Json::array();
  json["gradients"] = Json::object();
  WEFT_ASSIGN_OR_RETURN(const Machine machine, machineFrom(flags));
  ReshardPlanner planner(mesh, machine);
  for (size_t i = 0; i < operandShapes.size(); ++i) {
    const Layout layout = rule.operandLayout(i, split.axes);
    json["operands"].push_back(layout.print(mesh));
    json["local_shapes"]["operands"].push_back(layout.localShape(operandShapes[i]));
    if (!mlir::isa<mlir::FloatType>(mlir::cast<mlir::RankedTensorType>(op->getOperand(i).getType()).getElementType())) {
      continue;
    }
    Layout partial = layout;
    partial.setPartial(partialOf(rule, rule.operands()[i], split.axes));
    WEFT_ASSIGN_OR_RETURN(const ReshardPlan plan, planner.plan(operandShapes[i], DType::kF32, partial, layout));
    json["gradients"][std::to_string(i)] = stepsJson(plan, mesh);
  }
  for (size_t r = 0; r < resultShapes.size(); ++r) {
    const Layout made = rule.resultLayout(r, split.axes, interface.getReduceKind(r));
    const Layout& wanted = split.results[r];
    json["results"].push_back(wanted.print(mesh));
    json["local_shapes"]["results"].push_back(wanted.localShape(resultShapes[r]));
    WEFT_ASSIGN_OR_RETURN(const ReshardPlan plan, planner.plan(resultShapes[r], DType::kF32, made, wanted));
    for (const Json& step : stepsJson(plan, mesh)) {
      json["forward"].push_back(step);
    }
  }
  return json;
}

void printText(const Json& json) {
  std::cout << "mesh " << json["mesh"].get<std::string>() << ", computed " << json["repeats"] << " time(s)\n";
  for (const char* side : {"operands", "results"}) {
    for (size_t i = 0; i < json[side].size(); ++i) {
      std::cout << (side[0] == 'o' ? "operand " : "result  ") << i << "  " << json[side][i].get<std::string>()
                << "  local " << json["local_shapes"][side][i].dump() << "\n";
    }
  }
  for (const Json& step : json["forward"]) {
    std::cout << "forward   " << step["collective"].get<std::string>() << " over " << step["groups"].dump() << "\n";
  }
  for (const auto& [operand, steps] : json["gradients"].items()) {
    for (const Json& step : steps) {
      std::cout << "gradient of operand " << operand << "  " << step["collective"].get<std::string>() << " over "
                << step["groups"].dump() << "\n";
    }
  }
}

}  // namespace

int strategyCommand(int argc, char** argv) {
  if (wantsHelp(argc, argv)) {
    std::cout << flagHelp(kUsage, strategyFlags());
    return 0;
  }
  OperatorRequest request;
  absl::Status status;
  std::vector<char*> rest{argv[0]};
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool isFlag = word.rfind("--", 0) == 0;
    if (i == 1 && !isFlag) {
      request.op = word;
    } else if (word == "--attr" && i + 1 < argc) {
      status.Update(addAttribute(argv[++i], request));
    } else if (word.rfind("--attr=", 0) == 0) {
      status.Update(addAttribute(word.substr(7), request));
    } else if (!isFlag && word.find('=') != std::string::npos) {
      status.Update(addAttribute(word, request));
    } else {
      rest.push_back(argv[i]);
      // The value of a flag may have a '=', too.
      if (isFlag && word.find('=') == std::string::npos && word != "--json" && i + 1 < argc) {
        rest.push_back(argv[++i]);
      }
    }
  }
  absl::StatusOr<Flags> flags = Flags::parse(strategyFlags(), static_cast<int>(rest.size()), rest.data());
  if (!flags.ok() || request.op.empty()) {
    return usageError(kName, flags.ok() ? absl::InvalidArgumentError("an operator is missing") : flags.status());
  }
  OperatorSite site;
  absl::StatusOr<mlir::Operation*> made =
      status.ok() ? site.make(wordsOf(*flags), std::move(request)) : absl::StatusOr<mlir::Operation*>(status);
  absl::StatusOr<Json> json = made.ok() ? describe(*made, *flags) : absl::StatusOr<Json>(made.status());
  if (!json.ok()) {
    const std::string error(json.status().message());
    if (flags->has("json")) {
      std::cout << Json{{"accepted", false}, {"error", error}}.dump(1) << "\n";
    } else {
      std::cerr << "refused: " << error << "\n";
    }
    return 1;
  }
  flags->has("json") ? void(std::cout << json->dump(1) << "\n") : printText(*json);
  return 0;
}

}  // namespace weft::tools
