#include "tools/commands/strategy.h"

#include <iostream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ir/layout/reshard.h"
#include "ir/nn/create.h"
#include "ir/nn/operator_interface.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/pipeline.h"
#include "runtime/base/status.h"
#include "tools/commands/flags.h"

namespace weft::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kUsage[] = "weft strategy OPERATOR --shapes A:B --strategy '(2,1),(1,4)' --devices N";

const std::vector<Flag>& strategyFlags() {
  static const std::vector<Flag> flags{
      {"shapes", Flag::kRequired, "operand shapes, as 16,32:32,16"},
      {"strategy", Flag::kRequired, "splits per operand, as '(2,1),(1,4)'"},
      {"devices", Flag::kRequired, "number of ranks, or a mesh"},
      {"out-strategy", Flag::kOptional, "splits per result"},
      {"results", Flag::kOptional, "result shapes, for operators that need them (reshape, broadcast)"},
      {"types", Flag::kOptional, "element types of the operands, as f32,i32; known for the built-in operators"},
      {"json", Flag::kSwitch, "print JSON"},
  };
  return flags;
}

// "(2,1),(1,4)" to lists of numbers.
absl::StatusOr<std::vector<Shape>> parseSplits(const std::string& text) {
  std::vector<Shape> lists;
  size_t at = 0;
  while (at < text.size()) {
    const size_t close = text.find(')', at);
    if (text[at] != '(' || close == std::string::npos) {
      return absl::InvalidArgumentError(absl::StrCat("strategy '", text, "': '(' was expected at position ", at,
                                                     "; write one list per operand, as (2,1),(1,4)"));
    }
    WEFT_ASSIGN_OR_RETURN(Shape list, parseShape(text.substr(at + 1, close - at - 1)));
    lists.push_back(std::move(list));
    at = close + 1;
    if (at < text.size() && text[at] == ',') {
      ++at;
    }
  }
  return lists;
}

mlir::Attribute attributeValue(mlir::Builder& builder, const std::string& text) {
  if (text == "true" || text == "false") {
    return builder.getBoolAttr(text == "true");
  }
  if (!text.empty() && text.front() == '[' && text.back() == ']') {
    llvm::SmallVector<int64_t> values;
    for (const auto part : absl::StrSplit(text.substr(1, text.size() - 2), ',', absl::SkipEmpty())) {
      values.push_back(std::strtoll(std::string(part).c_str(), nullptr, 10));
    }
    return builder.getDenseI64ArrayAttr(values);
  }
  char* end = nullptr;
  const int64_t integer = std::strtoll(text.c_str(), &end, 10);
  if (!text.empty() && *end == '\0') {
    return builder.getI64IntegerAttr(integer);
  }
  const double real = std::strtod(text.c_str(), &end);
  if (!text.empty() && *end == '\0') {
    return builder.getF64FloatAttr(real);
  }
  return builder.getStringAttr(text);
}

// Which operands of the built-in operators are integers or bool.
std::string typeName(const std::string& op, size_t operand) {
  static const std::map<std::string, std::map<size_t, std::string>> kTypes = {
      {"embedding", {{1, "i32"}}},
      {"embedding_grad", {{0, "i32"}}},
      {"softmax_cross_entropy", {{1, "i32"}}},
      {"softmax_cross_entropy_grad", {{1, "i32"}}},
      {"pick", {{1, "i32"}}},
      {"pick_grad", {{0, "i32"}}},
      {"dropout", {{1, "i32"}}},
      {"adam", {{5, "i32"}}},
      {"select", {{0, "bool"}}}};
  const auto it = kTypes.find(op);
  return it != kTypes.end() && it->second.count(operand) > 0 ? it->second.at(operand) : "f32";
}

mlir::Type elementType(mlir::Builder& builder, const std::string& name) {
  return name == "i32"    ? mlir::Type(builder.getI32Type())
         : name == "i64"  ? mlir::Type(builder.getI64Type())
         : name == "bool" ? mlir::Type(builder.getI1Type())
         : name == "f64"  ? mlir::Type(builder.getF64Type())
                          : mlir::Type(builder.getF32Type());
}

// One operator on arguments of the given shapes, in a module of its own.
class Site {
 public:
  Site() : builder_(&context_) {
    mlir::DialectRegistry dialects;
    registerWeftDialects(dialects);
    context_.appendDialectRegistry(dialects);
    context_.loadAllAvailableDialects();
  }

  absl::StatusOr<mlir::Operation*> make(const std::string& op, const Flags& flags,
                                        const std::vector<std::string>& attributes) {
    module_ = mlir::ModuleOp::create(builder_.getUnknownLoc());
    std::vector<std::string> types = absl::StrSplit(flags.text("types"), ',', absl::SkipEmpty());
    llvm::SmallVector<mlir::Type> operands;
    for (const std::string& text : std::vector<std::string>(absl::StrSplit(flags.text("shapes"), ':'))) {
      WEFT_ASSIGN_OR_RETURN(const Shape shape, parseShape(text));
      const size_t i = operands.size();
      operands.push_back(
          mlir::RankedTensorType::get(shape, elementType(builder_, i < types.size() ? types[i] : typeName(op, i))));
    }
    builder_.setInsertionPointToEnd(module_->getBody());
    auto function =
        builder_.create<mlir::func::FuncOp>(builder_.getUnknownLoc(), "site", builder_.getFunctionType(operands, {}));
    builder_.setInsertionPointToStart(function.addEntryBlock());
    mlir::NamedAttrList attrs;
    for (const std::string& attribute : attributes) {
      const size_t equals = attribute.find('=');
      if (equals == std::string::npos) {
        return absl::InvalidArgumentError(absl::StrCat("--attr '", attribute, "' should be NAME=VALUE"));
      }
      attrs.set(attribute.substr(0, equals), attributeValue(builder_, attribute.substr(equals + 1)));
    }
    llvm::SmallVector<mlir::Type> results;
    for (const auto& text : absl::StrSplit(flags.text("results"), ':', absl::SkipEmpty())) {
      WEFT_ASSIGN_OR_RETURN(const Shape shape, parseShape(std::string(text)));
      results.push_back(mlir::RankedTensorType::get(shape, builder_.getF32Type()));
    }
    std::string error;
    mlir::ScopedDiagnosticHandler handler(&context_, [&](mlir::Diagnostic& diagnostic) {
      error = diagnostic.str();
      return mlir::success();
    });
    mlir::FailureOr<mlir::Operation*> made =
        ir::createOperator(builder_, builder_.getUnknownLoc(), op, function.getArguments(), attrs, results);
    if (mlir::failed(made)) {
      return absl::InvalidArgumentError(error);
    }
    return *made;
  }

 private:
  mlir::MLIRContext context_{mlir::MLIRContext::Threading::DISABLED};
  mlir::OpBuilder builder_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
};

Json stepsJson(const ReshardPlan& plan, const Mesh& mesh) {
  Json list = Json::array();
  for (const ReshardStep& step : plan.steps) {
    list.push_back({{"collective", collectiveName(step.kind)}, {"groups", groupsOf(step, mesh)}});
  }
  return list;
}

// Axes of factors that a tensor lacks: its gradient is a sum pending over them.
std::vector<Partial> pendingOf(const Rule& rule, const std::vector<DimFactors>& dims, const FactorAxes& axes) {
  std::vector<Partial> pending;
  for (size_t f = 0; f < axes.size(); ++f) {
    bool present = false;
    for (const DimFactors& dim : dims) {
      present |= std::find(dim.begin(), dim.end(), static_cast<int>(f)) != dim.end();
    }
    for (const Axis& axis : axes[f]) {
      if (!present) {
        pending.push_back({axis, ReduceKind::kSum});
      }
    }
  }
  return pending;
}

absl::StatusOr<Json> describe(mlir::Operation* op, const Flags& flags) {
  WEFT_ASSIGN_OR_RETURN(const Mesh mesh, Mesh::parse(flags.text("devices")));
  WEFT_ASSIGN_OR_RETURN(const std::vector<Shape> in, parseSplits(flags.text("strategy")));
  WEFT_ASSIGN_OR_RETURN(const std::vector<Shape> out, parseSplits(flags.text("out-strategy")));
  auto interface = mlir::cast<ir::OperatorInterface>(op);
  const std::vector<Shape> operandShapes = ir::operandShapes(op);
  const std::vector<Shape> resultShapes = ir::resultShapes(op);
  WEFT_ASSIGN_OR_RETURN(const Rule rule, Rule::parse(interface.getRule(), operandShapes, resultShapes));
  WEFT_ASSIGN_OR_RETURN(const SplitStrategy split, resolveSplits(rule, in, out, mesh));
  Json json = {{"accepted", true},         {"mesh", mesh.print()},      {"factors", Json::object()},
               {"repeats", split.repeats}, {"operands", Json::array()}, {"results", Json::array()}};
  for (size_t f = 0; f < split.axes.size(); ++f) {
    json["factors"][rule.factors()[f].name] = partsOf(split.axes[f]);
  }
  json["local_shapes"] = {{"operands", Json::array()}, {"results", Json::array()}};
  json["forward"] = Json::array();
  json["gradients"] = Json::object();
  ReshardPlanner planner(mesh, Machine());
  for (size_t i = 0; i < operandShapes.size(); ++i) {
    const Layout layout = rule.operandLayout(i, split.axes);
    json["operands"].push_back(layout.print(mesh));
    json["local_shapes"]["operands"].push_back(layout.localShape(operandShapes[i]));
    if (!mlir::isa<mlir::FloatType>(mlir::cast<mlir::RankedTensorType>(op->getOperand(i).getType()).getElementType())) {
      continue;
    }
    Layout pending = layout;
    pending.setPartial(pendingOf(rule, rule.operands()[i], split.axes));
    WEFT_ASSIGN_OR_RETURN(const ReshardPlan plan, planner.plan(operandShapes[i], DType::kF32, pending, layout));
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
    std::cout << flagHelp(kUsage, strategyFlags())
              << "  --attr NAME=VALUE   attribute of the operator; may be repeated\n";
    return 0;
  }
  std::string op;
  std::vector<std::string> attributes;
  std::vector<char*> rest{argv[0]};
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--attr" && i + 1 < argc) {
      attributes.emplace_back(argv[++i]);
    } else if (argument.rfind("--attr=", 0) == 0) {
      attributes.push_back(argument.substr(7));
    } else if (i == 1 && argument.rfind("-", 0) != 0) {
      op = argument;
    } else {
      rest.push_back(argv[i]);
    }
  }
  absl::StatusOr<Flags> flags = Flags::parse(strategyFlags(), static_cast<int>(rest.size()), rest.data());
  if (!flags.ok() || op.empty()) {
    return usageError("strategy", flags.ok() ? absl::InvalidArgumentError("an operator is missing") : flags.status());
  }
  Site site;
  absl::StatusOr<mlir::Operation*> made = site.make(op, *flags, attributes);
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
