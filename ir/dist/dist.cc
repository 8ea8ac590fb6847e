#include "ir/dist/dist.h"

#include "ir/dist/layout_text.h"
#include "llvm/ADT/TypeSwitch.h"
#include "mlir/IR/DialectImplementation.h"

// clang-format off: generated code comes after what it uses.
#include "ir/dist/dist_dialect.cc.inc"
#include "ir/dist/dist_enums.cc.inc"
#define GET_ATTRDEF_CLASSES
#include "ir/dist/dist_attrs.cc.inc"
// clang-format on

namespace weft::ir::dist {

void DistDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ir/dist/dist_attrs.cc.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ir/dist/dist_ops.cc.inc"
      >();
}

using ErrorFunction = llvm::function_ref<mlir::InFlightDiagnostic()>;

mlir::LogicalResult MeshAttr::verify(ErrorFunction emitError, llvm::StringRef text) {
  absl::StatusOr<Mesh> mesh = Mesh::parse(text.str());
  if (!mesh.ok()) {
    return emitError() << "mesh \"" << text << "\": " << std::string(mesh.status().message());
  }
  return mlir::success();
}

DecisionsRecord::DecisionsRecord(Decisions decisions) {
  std::string text = printDecisions(decisions);
  shared_ = std::make_shared<const Shared>(Shared{std::move(decisions), std::move(text)});
}

llvm::hash_code hash_value(const DecisionsRecord& record) {
  return llvm::hash_value(record.text());
}

mlir::AsmPrinter& operator<<(mlir::AsmPrinter& printer, const DecisionsRecord& record) {
  printer.printString(record.text());
  return printer;
}

mlir::LogicalResult LayoutAttr::verify(ErrorFunction emitError, llvm::StringRef text) {
  absl::StatusOr<size_t> dimensions = layoutDimensions(text);
  if (!dimensions.ok()) {
    return emitError() << std::string(dimensions.status().message());
  }
  return mlir::success();
}

mlir::LogicalResult AxesAttr::verify(ErrorFunction emitError, llvm::StringRef text) {
  const absl::StatusOr<size_t> dimensions = layoutDimensions(("[" + text + "]").str());
  if (!dimensions.ok() || *dimensions != 1) {
    return emitError() << "axes \"" << text << "\": expected a list of axes in braces, like \"{dp,tp:(1)2}\"";
  }
  return mlir::success();
}

mlir::LogicalResult LayoutAttr::verifyEncoding(llvm::ArrayRef<int64_t> shape, mlir::Type elementType,
                                               ErrorFunction emitError) const {
  absl::StatusOr<size_t> dimensions = layoutDimensions(getText());
  if (dimensions.ok() && *dimensions != shape.size()) {
    return emitError() << "layout \"" << getText() << "\" has " << *dimensions << " dimensions, the tensor has "
                       << shape.size();
  }
  return mlir::success();
}

mlir::LogicalResult ScalarAttr::verify(ErrorFunction emitError, int64_t immediate, int64_t column,
                                       int64_t microBatchFactor) {
  if (column < -1) {
    return emitError() << "column of the rank table is " << column << "; it must be -1 (none) or more";
  }
  return mlir::success();
}

namespace {

using Calls = llvm::SmallVector<CallAttr>;

// [@forward 0, @backward 0] after its key.
mlir::FailureOr<Calls> parseCalls(mlir::AsmParser& parser, llvm::StringRef key) {
  Calls calls;
  const auto parseCall = [&]() -> mlir::ParseResult {
    mlir::StringAttr name;
    int64_t microBatch = 0;
    if (parser.parseSymbolName(name) || parser.parseInteger(microBatch)) {
      return mlir::failure();
    }
    calls.push_back(CallAttr::get(parser.getContext(), mlir::FlatSymbolRefAttr::get(name), microBatch));
    return mlir::success();
  };
  if (parser.parseKeyword(key) || parser.parseEqual() ||
      parser.parseCommaSeparatedList(mlir::AsmParser::Delimiter::Square, parseCall)) {
    return mlir::failure();
  }
  return calls;
}

void printCalls(mlir::AsmPrinter& printer, llvm::StringRef key, llvm::ArrayRef<CallAttr> calls) {
  printer << key << " = [";
  llvm::interleaveComma(calls, printer, [&](CallAttr call) {
    printer.printSymbolName(call.getFunction().getValue());
    printer << " " << call.getMicroBatch();
  });
  printer << "]";
}

}  // namespace

mlir::Attribute ActionsAttr::parse(mlir::AsmParser& parser, mlir::Type) {
  if (parser.parseLess()) {
    return {};
  }
  const mlir::FailureOr<Calls> init = parseCalls(parser, "init");
  if (mlir::failed(init) || parser.parseComma()) {
    return {};
  }
  const mlir::FailureOr<Calls> step = parseCalls(parser, "step");
  if (mlir::failed(step) || parser.parseGreater()) {
    return {};
  }
  return get(parser.getContext(), *init, *step);
}

void ActionsAttr::print(mlir::AsmPrinter& printer) const {
  printer << "<";
  printCalls(printer, "init", getInit());
  printer << ", ";
  printCalls(printer, "step", getStep());
  printer << ">";
}

bool hasLayout(mlir::Type type) {
  auto tensor = llvm::dyn_cast<mlir::RankedTensorType>(type);
  return tensor && llvm::isa_and_nonnull<LayoutAttr>(tensor.getEncoding());
}

mlir::FailureOr<Layout> layoutOf(mlir::Type type, const Mesh& mesh, mlir::Location at) {
  auto tensor = llvm::cast<mlir::RankedTensorType>(type);
  auto attribute = llvm::dyn_cast_or_null<LayoutAttr>(tensor.getEncoding());
  if (!attribute) {
    return Layout(tensor.getRank());
  }
  absl::StatusOr<Layout> layout = Layout::parse(attribute.getText().str(), mesh);
  if (!layout.ok()) {
    mlir::emitError(at) << "on mesh " << mesh.print() << ": " << std::string(layout.status().message());
    return mlir::failure();
  }
  return *std::move(layout);
}

mlir::RankedTensorType withLayout(mlir::Type type, const Layout& layout, const Mesh& mesh) {
  auto tensor = llvm::cast<mlir::RankedTensorType>(type);
  return mlir::RankedTensorType::get(tensor.getShape(), tensor.getElementType(),
                                     LayoutAttr::get(type.getContext(), layout.print(mesh)));
}

}  // namespace weft::ir::dist

#define GET_OP_CLASSES
#include "ir/dist/dist_ops.cc.inc"

mlir::FailureOr<weft::ir::dist::DecisionsRecord> mlir::FieldParser<weft::ir::dist::DecisionsRecord>::parse(
    mlir::AsmParser& parser) {
  const llvm::SMLoc place = parser.getCurrentLocation();
  std::string text;
  if (mlir::failed(parser.parseString(&text))) {
    return mlir::failure();
  }
  absl::StatusOr<weft::Decisions> decisions = weft::parseDecisions(text);
  if (!decisions.ok()) {
    return parser.emitError(place, std::string(decisions.status().message()));
  }
  return weft::ir::dist::DecisionsRecord(*std::move(decisions));
}
