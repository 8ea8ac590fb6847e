#include "planner/graph/graph_json.h"

#include <array>
#include <map>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "planner/graph/attributes_json.h"
#include "runtime/base/json.h"
#include "runtime/base/limits.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

constexpr std::array kPhases = {Phase::kForward, Phase::kBackward, Phase::kUpdate};
constexpr std::array kArgumentKinds = {ArgumentKind::kInput, ArgumentKind::kParameter, ArgumentKind::kState};
constexpr std::array kViewKinds = {ViewKind::kNone, ViewKind::kShape, ViewKind::kAnnotation};
constexpr std::array kReduceKinds = {ReduceKind::kSum, ReduceKind::kMax, ReduceKind::kMin};
// Numbers of operators and of their operands are small; larger ones are mistakes.
constexpr int64_t kMostOperators = int64_t{1} << 31;
constexpr int64_t kMostOperands = 1 << 16;

template <typename... Parts>
absl::Status bad(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("program graph: ", parts...));
}

//===-- Printing --===//

std::string printType(const TensorType& type) {
  return absl::StrCat(dtypeName(type.type), "[", absl::StrJoin(type.shape, ","), "]");
}

std::string printValue(const GraphValue& value) {
  return value.isArgument() ? absl::StrCat("%", value.index) : absl::StrCat(value.producer, "#", value.index);
}

Json printLine(const SourcePlace& line) {
  return Json::array({line.file, line.line, line.column});
}

// Writes a field unless it holds its default.
template <typename Value>
void put(Json& json, const char* name, const Value& value, const Value& otherwise = {}) {
  if (!(value == otherwise)) {
    json[name] = value;
  }
}

template <typename Value>
void put(Json& json, const char* name, const std::optional<Value>& value) {
  if (value) {
    json[name] = *value;
  }
}

void putLine(Json& json, const SourcePlace& line) {
  if (!(line == SourcePlace())) {
    json["line"] = printLine(line);
  }
}

template <typename Values, typename Print>
Json listOf(const Values& values, const Print& print) {
  Json list = Json::array();
  for (const auto& value : values) {
    list.push_back(print(value));
  }
  return list;
}

void putFacts(Json& json, const OperatorFacts& facts) {
  json["kind"] = facts.kind;
  json["rule"] = facts.rule;
  put(json, "linear", facts.linear);
  put(json, "passes_sums", facts.passesSums);
  put(json, "is_sum", facts.isSum);
  put(json, "updates_parameter", facts.updatesParameter);
  put(json, "must_expand", facts.mustExpand);
  put(json, "constant", facts.isConstant);
  put(json, "view", viewKindName(facts.view), viewKindName(ViewKind::kNone));
  put(json, "flops_per_point", facts.flopsPerPoint);
  if (!facts.attributes.empty()) {
    json["attributes"] = printAttributes(facts.attributes);
  }
  if (!facts.reduce.empty()) {
    json["reduce"] = listOf(facts.reduce, reduceKindName);
  }
  if (!facts.padFill.empty()) {
    json["pad_fill"] =
        listOf(facts.padFill, [](const std::optional<double>& fill) { return fill ? printReal(*fill) : Json(); });
  }
}

Json printStrategy(const UserStrategy& strategy) {
  Json json = Json::object();
  put(json, "in", strategy.inSplits);
  put(json, "out", strategy.outSplits);
  put(json, "in_names", strategy.inNames);
  put(json, "out_names", strategy.outNames);
  put(json, "by_name", strategy.byName);
  putLine(json, strategy.line);
  return json;
}

Json printAlternative(const Alternative& alternative) {
  const auto printOperator = [](const AlternativeOperator& op) {
    Json json = Json::object();
    putFacts(json, op.facts);
    if (op.phase) {
      json["phase"] = phaseName(*op.phase);
    }
    json["operands"] = listOf(op.operands, printValue);
    json["results"] = listOf(op.results, printType);
    return json;
  };
  return {{"body", listOf(alternative.body, printOperator)}, {"results", listOf(alternative.results, printValue)}};
}

Json printOperator(const GraphOperator& op) {
  Json json = {{"id", op.id}};
  putFacts(json, op.facts);
  put(json, "name", op.name);
  if (op.phase != Phase::kForward) {
    json["phase"] = phaseName(op.phase);
  }
  put(json, "forward", op.forward);
  put(json, "prologue_of", op.prologueOf);
  put(json, "gradient_of", op.gradientOf);
  put(json, "stage", op.userStage);
  put(json, "recompute_scope", op.recomputeScope);
  if (op.strategy) {
    json["strategy"] = printStrategy(*op.strategy);
  }
  put(json, "constraint", op.constraint);
  json["operands"] = listOf(op.operands, printValue);
  json["results"] = listOf(op.results, printType);
  if (!op.alternatives.empty()) {
    json["alternatives"] = listOf(op.alternatives, printAlternative);
  }
  putLine(json, op.line);
  return json;
}

Json printArgument(const GraphArgument& argument) {
  Json json = {{"name", argument.name}, {"kind", argumentKindName(argument.kind)}, {"type", printType(argument.type)}};
  put(json, "batch_dim", argument.batchDim);
  put(json, "layout", argument.layout);
  putLine(json, argument.line);
  return json;
}

//===-- Reading --===//

absl::StatusOr<TensorType> parseType(const Json& json, const std::string& where) {
  WEFT_ASSIGN_OR_RETURN(const std::string text, jsonText(json, where));
  const size_t open = text.find('[');
  const std::optional<DType> type = open == std::string::npos ? std::nullopt : parseDType(text.substr(0, open));
  const absl::Status refused = bad(where, ": found ", shownJson(json), ", expected a type such as f32[8,4]");
  if (!type || text.back() != ']') {
    return refused;
  }
  TensorType made{{}, *type};
  const std::string sizes = text.substr(open + 1, text.size() - open - 2);
  const std::vector<std::string> parts =
      sizes.empty() ? std::vector<std::string>() : std::vector<std::string>(absl::StrSplit(sizes, ','));
  for (const std::string& part : parts) {
    int64_t size = 0;
    if (!absl::SimpleAtoi(part, &size) || size < 1 || made.bytes() > kMaxBytes / size) {
      return refused;
    }
    made.shape.push_back(size);
  }
  return made;
}

absl::StatusOr<GraphValue> parseValue(const Json& json, const std::string& where) {
  WEFT_ASSIGN_OR_RETURN(const std::string text, jsonText(json, where));
  GraphValue value;
  const size_t hash = text.find('#');
  const bool argument = !text.empty() && text[0] == '%';
  int64_t index = 0;
  const bool number = absl::SimpleAtoi(text.substr(argument ? 1 : hash == std::string::npos ? 0 : hash + 1), &index);
  const bool producer =
      argument || (hash != std::string::npos && absl::SimpleAtoi(text.substr(0, hash), &value.producer));
  if (!number || !producer || index < 0 || index > kMostOperands || (!argument && value.producer < 0)) {
    return bad(where, ": found ", shownJson(json), ", expected a value such as %0 or 7#0");
  }
  value.index = static_cast<unsigned>(index);
  return value;
}

// Each element of a list read by `parse`, which is told its place.
template <typename Parse>
auto parseList(const Json& list, const std::string& where, const Parse& parse)
    -> absl::StatusOr<std::vector<typename decltype(parse(list, where))::value_type>> {
  std::vector<typename decltype(parse(list, where))::value_type> values;
  for (size_t i = 0; i < list.size(); ++i) {
    WEFT_ASSIGN_OR_RETURN(auto value, parse(list[i], absl::StrCat(where, "[", i, "]")));
    values.push_back(std::move(value));
  }
  return values;
}

template <typename Parse>
auto listOr(JsonObject& object, const std::string& name, const Parse& parse)
    -> decltype(parseList(Json(), name, parse)) {
  WEFT_ASSIGN_OR_RETURN(const Json* list, object.listOr(name));
  return parseList(*list, object.where(name), parse);
}

// A list of lists.
template <typename Parse>
auto listsOr(JsonObject& object, const std::string& name, const Parse& parse) {
  return listOr(object, name,
                [&](const Json& json, const std::string& where) -> decltype(parseList(json, where, parse)) {
                  WEFT_ASSIGN_OR_RETURN(const Json* inner, jsonList(json, where));
                  return parseList(*inner, where, parse);
                });
}

absl::StatusOr<SourcePlace> lineOr(JsonObject& object) {
  SourcePlace line;
  WEFT_ASSIGN_OR_RETURN(const Json* list, object.listOr("line"));
  if (list->empty()) {
    return line;
  }
  const std::string where = object.where("line");
  if (list->size() != 3) {
    return bad(where, ": found ", shownJson(*list), R"(, expected ["model.cc", 32, 5])");
  }
  WEFT_ASSIGN_OR_RETURN(line.file, jsonText((*list)[0], where));
  WEFT_ASSIGN_OR_RETURN(line.line, jsonInteger((*list)[1], where));
  WEFT_ASSIGN_OR_RETURN(line.column, jsonInteger((*list)[2], where));
  return line;
}

absl::StatusOr<std::optional<int64_t>> numberOr(JsonObject& object, const std::string& name) {
  if (!object.has(name)) {
    return std::optional<int64_t>();
  }
  WEFT_ASSIGN_OR_RETURN(const int64_t number, object.integer(name, {-kMostOperators, kMostOperators}));
  return std::optional<int64_t>(number);
}

absl::StatusOr<ReduceKind> parseReduce(const Json& json, const std::string& where) {
  WEFT_ASSIGN_OR_RETURN(const std::string word, jsonText(json, where));
  return jsonWord(kReduceKinds, reduceKindName, word, where);
}

absl::StatusOr<std::optional<double>> parseFill(const Json& json, const std::string& where) {
  if (json.is_null()) {
    return std::optional<double>();
  }
  WEFT_ASSIGN_OR_RETURN(const double fill, parseReal(json, where));
  return std::optional<double>(fill);
}

absl::StatusOr<double> flopsOr(JsonObject& object, const std::string& name) {
  if (!object.has(name)) {
    return 0.0;
  }
  WEFT_ASSIGN_OR_RETURN(const Json* json, object.any(name));
  WEFT_ASSIGN_OR_RETURN(const double flops, jsonReal(*json, object.where(name)));
  return flops >= 0 ? absl::StatusOr<double>(flops)
                    : bad(object.where(name), ": found ", shownJson(*json), ", expected at least 0");
}

absl::StatusOr<OperatorFacts> parseFacts(JsonObject& object) {
  OperatorFacts facts;
  WEFT_ASSIGN_OR_RETURN(facts.kind, object.text("kind"));
  WEFT_ASSIGN_OR_RETURN(facts.rule, object.text("rule"));
  const auto operand = [](const Json& json, const std::string& where) -> absl::StatusOr<unsigned> {
    WEFT_ASSIGN_OR_RETURN(const int64_t number, jsonInteger(json, where, {0, kMostOperands}));
    return static_cast<unsigned>(number);
  };
  WEFT_ASSIGN_OR_RETURN(facts.linear, listsOr(object, "linear", operand));
  WEFT_ASSIGN_OR_RETURN(facts.passesSums, object.booleanOr("passes_sums", false));
  WEFT_ASSIGN_OR_RETURN(facts.isSum, object.booleanOr("is_sum", false));
  WEFT_ASSIGN_OR_RETURN(facts.updatesParameter, object.booleanOr("updates_parameter", false));
  WEFT_ASSIGN_OR_RETURN(facts.mustExpand, object.booleanOr("must_expand", false));
  WEFT_ASSIGN_OR_RETURN(facts.isConstant, object.booleanOr("constant", false));
  WEFT_ASSIGN_OR_RETURN(const std::string view, object.textOr("view", viewKindName(ViewKind::kNone)));
  WEFT_ASSIGN_OR_RETURN(facts.view, jsonWord(kViewKinds, viewKindName, view, object.where("view")));
  WEFT_ASSIGN_OR_RETURN(facts.flopsPerPoint, flopsOr(object, "flops_per_point"));
  WEFT_ASSIGN_OR_RETURN(const Json* attributes, object.mapOr("attributes"));
  WEFT_ASSIGN_OR_RETURN(facts.attributes, parseAttributes(*attributes, object.where("attributes")));
  WEFT_ASSIGN_OR_RETURN(facts.reduce, listOr(object, "reduce", parseReduce));
  WEFT_ASSIGN_OR_RETURN(facts.padFill, listOr(object, "pad_fill", parseFill));
  return facts;
}

absl::StatusOr<Phase> parsePhase(const std::string& word, const std::string& where) {
  return jsonWord(kPhases, phaseName, word, where);
}

absl::StatusOr<std::optional<UserStrategy>> strategyOr(JsonObject& op) {
  WEFT_ASSIGN_OR_RETURN(const Json* given, op.mapOr("strategy"));
  if (given->empty()) {
    return std::optional<UserStrategy>();
  }
  WEFT_ASSIGN_OR_RETURN(JsonObject object, JsonObject::of(*given, op.where("strategy")));
  UserStrategy strategy;
  const auto split = [](const Json& json, const std::string& where) {
    return jsonInteger(json, where, {-kMostOperators, kMostOperators});
  };
  WEFT_ASSIGN_OR_RETURN(strategy.inSplits, listsOr(object, "in", split));
  WEFT_ASSIGN_OR_RETURN(strategy.outSplits, listsOr(object, "out", split));
  WEFT_ASSIGN_OR_RETURN(strategy.inNames, listsOr(object, "in_names", jsonText));
  WEFT_ASSIGN_OR_RETURN(strategy.outNames, listsOr(object, "out_names", jsonText));
  WEFT_ASSIGN_OR_RETURN(strategy.byName, object.booleanOr("by_name", false));
  WEFT_ASSIGN_OR_RETURN(strategy.line, lineOr(object));
  WEFT_RETURN_IF_ERROR(object.finish());
  return std::optional<UserStrategy>(std::move(strategy));
}

absl::StatusOr<AlternativeOperator> parseBodyOperator(const Json& json, const std::string& where) {
  WEFT_ASSIGN_OR_RETURN(JsonObject object, JsonObject::of(json, where));
  AlternativeOperator op;
  WEFT_ASSIGN_OR_RETURN(op.facts, parseFacts(object));
  if (object.has("phase")) {
    WEFT_ASSIGN_OR_RETURN(const std::string phase, object.text("phase"));
    WEFT_ASSIGN_OR_RETURN(op.phase, parsePhase(phase, object.where("phase")));
  }
  WEFT_ASSIGN_OR_RETURN(op.operands, listOr(object, "operands", parseValue));
  WEFT_ASSIGN_OR_RETURN(op.results, listOr(object, "results", parseType));
  WEFT_RETURN_IF_ERROR(object.finish());
  return op;
}

absl::StatusOr<Alternative> parseAlternative(const Json& json, const std::string& where) {
  WEFT_ASSIGN_OR_RETURN(JsonObject object, JsonObject::of(json, where));
  Alternative alternative;
  WEFT_ASSIGN_OR_RETURN(alternative.body, listOr(object, "body", parseBodyOperator));
  WEFT_ASSIGN_OR_RETURN(alternative.results, listOr(object, "results", parseValue));
  WEFT_RETURN_IF_ERROR(object.finish());
  return alternative;
}

absl::StatusOr<GraphOperator> parseOperator(const Json& json, const std::string& where) {
  WEFT_ASSIGN_OR_RETURN(JsonObject object, JsonObject::of(json, where));
  GraphOperator op;
  WEFT_ASSIGN_OR_RETURN(op.id, object.integer("id", {0, kMostOperators}));
  WEFT_ASSIGN_OR_RETURN(op.facts, parseFacts(object));
  WEFT_ASSIGN_OR_RETURN(op.name, object.textOr("name", ""));
  WEFT_ASSIGN_OR_RETURN(const std::string phase, object.textOr("phase", phaseName(Phase::kForward)));
  WEFT_ASSIGN_OR_RETURN(op.phase, parsePhase(phase, object.where("phase")));
  WEFT_ASSIGN_OR_RETURN(op.forward, numberOr(object, "forward"));
  WEFT_ASSIGN_OR_RETURN(op.prologueOf, numberOr(object, "prologue_of"));
  WEFT_ASSIGN_OR_RETURN(op.gradientOf, object.textOr("gradient_of", ""));
  WEFT_ASSIGN_OR_RETURN(op.userStage, numberOr(object, "stage"));
  WEFT_ASSIGN_OR_RETURN(op.recomputeScope, numberOr(object, "recompute_scope"));
  WEFT_ASSIGN_OR_RETURN(op.strategy, strategyOr(object));
  WEFT_ASSIGN_OR_RETURN(op.constraint, object.textOr("constraint", ""));
  WEFT_ASSIGN_OR_RETURN(op.operands, listOr(object, "operands", parseValue));
  WEFT_ASSIGN_OR_RETURN(op.results, listOr(object, "results", parseType));
  WEFT_ASSIGN_OR_RETURN(op.alternatives, listOr(object, "alternatives", parseAlternative));
  WEFT_ASSIGN_OR_RETURN(op.line, lineOr(object));
  WEFT_RETURN_IF_ERROR(object.finish());
  return op;
}

absl::StatusOr<GraphArgument> parseArgument(const Json& json, const std::string& where) {
  WEFT_ASSIGN_OR_RETURN(JsonObject object, JsonObject::of(json, where));
  GraphArgument argument;
  WEFT_ASSIGN_OR_RETURN(argument.name, object.text("name"));
  WEFT_ASSIGN_OR_RETURN(const std::string kind, object.text("kind"));
  WEFT_ASSIGN_OR_RETURN(argument.kind, jsonWord(kArgumentKinds, argumentKindName, kind, object.where("kind")));
  WEFT_ASSIGN_OR_RETURN(const Json* type, object.any("type"));
  WEFT_ASSIGN_OR_RETURN(argument.type, parseType(*type, object.where("type")));
  WEFT_ASSIGN_OR_RETURN(argument.batchDim, object.integerOr("batch_dim", 0, {-1, kMostOperands}));
  WEFT_ASSIGN_OR_RETURN(argument.layout, object.textOr("layout", ""));
  WEFT_ASSIGN_OR_RETURN(argument.line, lineOr(object));
  WEFT_RETURN_IF_ERROR(object.finish());
  return argument;
}

absl::StatusOr<GraphResult> parseResult(const Json& json, const std::string& where) {
  WEFT_ASSIGN_OR_RETURN(JsonObject object, JsonObject::of(json, where));
  GraphResult result;
  WEFT_ASSIGN_OR_RETURN(const Json* value, object.any("value"));
  WEFT_ASSIGN_OR_RETURN(result.value, parseValue(*value, object.where("value")));
  if (object.has("updates")) {
    WEFT_ASSIGN_OR_RETURN(const int64_t updates, object.integer("updates", {0, kMostOperators}));
    result.updates = static_cast<unsigned>(updates);
  }
  WEFT_RETURN_IF_ERROR(object.finish());
  return result;
}

//===-- What must hold of a graph that was read --===//

// Values by the operators that made them so far.
class Made {
 public:
  explicit Made(size_t arguments) { results_[GraphValue::kArgument] = arguments; }

  absl::Status add(int64_t id, size_t results) {
    return results_.emplace(id, results).second ? absl::OkStatus() : bad("operator ", id, " stands there twice");
  }
  absl::Status check(const std::string& reader, const GraphValue& value) const {
    const auto it = results_.find(value.producer);
    return it != results_.end() && value.index < it->second
               ? absl::OkStatus()
               : bad(reader, " reads ", printValue(value), ", which nothing before it makes");
  }

 private:
  std::map<int64_t, size_t> results_;
};

// A fact for each operand or result may be left out, but not stand for one that is not there.
absl::Status checkFacts(const std::string& reader, const OperatorFacts& facts, size_t operands, size_t results) {
  if (facts.padFill.size() > operands) {
    return bad(reader, ": pad_fill: found ", facts.padFill.size(), " entries, expected at most ", operands);
  }
  if (facts.reduce.size() > results) {
    return bad(reader, ": reduce: found ", facts.reduce.size(), " entries, expected at most ", results);
  }
  return absl::OkStatus();
}

absl::Status checkAlternative(const GraphOperator& op, const Alternative& alternative) {
  const std::string reader = absl::StrCat("an alternative of operator ", op.id);
  Made made(op.operands.size());
  for (size_t i = 0; i < alternative.body.size(); ++i) {
    const AlternativeOperator& body = alternative.body[i];
    for (const GraphValue& operand : body.operands) {
      WEFT_RETURN_IF_ERROR(made.check(reader, operand));
    }
    WEFT_RETURN_IF_ERROR(checkFacts(reader, body.facts, body.operands.size(), body.results.size()));
    WEFT_RETURN_IF_ERROR(made.add(static_cast<int64_t>(i), body.results.size()));
  }
  if (alternative.results.size() != op.results.size()) {
    return bad(reader, " has ", alternative.results.size(), " results, the operator ", op.results.size());
  }
  for (const GraphValue& result : alternative.results) {
    WEFT_RETURN_IF_ERROR(made.check(reader, result));
  }
  return absl::OkStatus();
}

absl::Status check(const ProgramGraph& graph) {
  Made made(graph.arguments.size());
  for (const GraphOperator& op : graph.operators) {
    const std::string reader = absl::StrCat("operator ", op.id);
    for (const GraphValue& operand : op.operands) {
      WEFT_RETURN_IF_ERROR(made.check(reader, operand));
    }
    WEFT_RETURN_IF_ERROR(checkFacts(reader, op.facts, op.operands.size(), op.results.size()));
    for (const Alternative& alternative : op.alternatives) {
      WEFT_RETURN_IF_ERROR(checkAlternative(op, alternative));
    }
    WEFT_RETURN_IF_ERROR(made.add(op.id, op.results.size()));
    if (op.id >= graph.nextId) {
      return bad("next_id: found ", graph.nextId, ", but there is an operator ", op.id, "; give a greater number");
    }
  }
  for (const GraphResult& result : graph.results) {
    WEFT_RETURN_IF_ERROR(made.check("the step", result.value));
    if (result.updates && *result.updates >= graph.arguments.size()) {
      return bad("results: one updates argument ", *result.updates, " of ", graph.arguments.size());
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string printProgramGraph(const ProgramGraph& graph) {
  const auto printResult = [](const GraphResult& result) {
    Json json = {{"value", printValue(result.value)}};
    put(json, "updates", result.updates);
    return json;
  };
  Json json = {{"arguments", listOf(graph.arguments, printArgument)},
               {"operators", listOf(graph.operators, printOperator)},
               {"results", listOf(graph.results, printResult)},
               {"next_id", graph.nextId}};
  putLine(json, graph.line);
  return json.dump(1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

absl::StatusOr<ProgramGraph> parseProgramGraph(const std::string& text) {
  WEFT_ASSIGN_OR_RETURN(const Json json, parseJson(text));
  WEFT_ASSIGN_OR_RETURN(JsonObject object, JsonObject::of(json, ""));
  ProgramGraph graph;
  WEFT_ASSIGN_OR_RETURN(graph.arguments, listOr(object, "arguments", parseArgument));
  WEFT_ASSIGN_OR_RETURN(graph.operators, listOr(object, "operators", parseOperator));
  WEFT_ASSIGN_OR_RETURN(graph.results, listOr(object, "results", parseResult));
  WEFT_ASSIGN_OR_RETURN(graph.nextId, object.integer("next_id", {0, kMostOperators}));
  WEFT_ASSIGN_OR_RETURN(graph.line, lineOr(object));
  WEFT_RETURN_IF_ERROR(object.finish());
  WEFT_RETURN_IF_ERROR(check(graph));
  return graph;
}

}  // namespace weft
