#include "ir/dist/assembly.h"

#include <string>

#include "ir/dist/dist.h"
#include "mlir/IR/BuiltinTypes.h"

namespace weft::ir::dist {

using namespace mlir;  // NOLINT: the file is about MLIR's printers and parsers throughout

namespace {

// The attributes that an operator of this name has where nobody says otherwise.
DictionaryAttr defaultsOf(Operation* op) {
  Operation* made = Operation::create(op->getLoc(), op->getName(), TypeRange(), ValueRange(), NamedAttrList(),
                                      OpaqueProperties(nullptr), BlockRange(), /*numRegions=*/0);
  const DictionaryAttr defaults = made->getAttrDictionary();
  made->destroy();
  return defaults;
}

void printType(OpAsmPrinter& printer, Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  auto layout = tensor ? dyn_cast_or_null<LayoutAttr>(tensor.getEncoding()) : LayoutAttr();
  if (!tensor || !tensor.hasStaticShape() || (tensor.getEncoding() && !layout)) {
    printer << type;
    return;
  }
  for (const int64_t size : tensor.getShape()) {
    printer << size << "x";
  }
  printer << tensor.getElementType();
  if (layout) {
    printer << " ";
    printer.printString(layout.getText());
  }
}

template <typename Types>
void printTypes(OpAsmPrinter& printer, const Types& types) {
  printer << "(";
  llvm::interleaveComma(types, printer, [&](Type type) { printType(printer, type); });
  printer << ")";
}

ParseResult parseTensor(OpAsmParser& parser, Type& type) {
  const SMLoc location = parser.getCurrentLocation();
  SmallVector<int64_t> shape;
  Type element;
  const OptionalParseResult whole = parser.parseOptionalType(element);
  if (whole.has_value()) {
    if (failed(*whole) || !element.isIntOrFloat()) {
      type = element;
      return *whole;
    }
  } else if (parser.parseDimensionList(shape, /*allowDynamic=*/false) || parser.parseType(element)) {
    return failure();
  }
  const auto at = [&] { return parser.emitError(location); };
  const llvm::function_ref<InFlightDiagnostic()> error = at;
  Attribute encoding;
  if (std::string layout; succeeded(parser.parseOptionalString(&layout))) {
    encoding = LayoutAttr::getChecked(error, parser.getContext(), StringRef(layout));
    if (!encoding) {
      return failure();
    }
  }
  type = RankedTensorType::getChecked(error, shape, element, encoding);
  return success(type != nullptr);
}

// What follows the opening parenthesis.
ParseResult parseTensors(OpAsmParser& parser, SmallVectorImpl<Type>& types) {
  if (succeeded(parser.parseOptionalRParen())) {
    return success();
  }
  const auto one = [&] { return parseTensor(parser, types.emplace_back()); };
  return failure(parser.parseCommaSeparatedList(one) || parser.parseRParen());
}

// "T", "(T, ...) -> T", or "(T, ...) -> (T, ...)"; of as many operands as there are.
ParseResult parseTypes(OpAsmParser& parser, size_t count, SmallVectorImpl<Type>& operands,
                       SmallVectorImpl<Type>& results) {
  if (failed(parser.parseOptionalLParen())) {
    if (parseTensor(parser, results.emplace_back())) {
      return failure();
    }
    operands.assign(count, results.front());
    return success();
  }
  if (parseTensors(parser, operands) || parser.parseArrow()) {
    return failure();
  }
  return succeeded(parser.parseOptionalLParen()) ? parseTensors(parser, results)
                                                 : parseTensor(parser, results.emplace_back());
}

}  // namespace

ParseResult parseOperator(OpAsmParser& parser, OperationState& state) {
  const SMLoc location = parser.getCurrentLocation();
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SmallVector<Type> operandTypes;
  if (parser.parseOperandList(operands) || parser.parseOptionalAttrDict(state.attributes)) {
    return failure();
  }
  const auto error = [&] { return parser.emitError(location) << "'" << state.name.getStringRef() << "' op "; };
  if (failed(state.name.verifyInherentAttrs(state.attributes, error)) || parser.parseColon() ||
      parseTypes(parser, operands.size(), operandTypes, state.types)) {
    return failure();
  }
  return parser.resolveOperands(operands, operandTypes, location, state.operands);
}

void printOperator(OpAsmPrinter& printer, Operation* op) {
  if (op->getNumOperands() > 0) {
    printer << " " << op->getOperands();
  }
  const DictionaryAttr defaults = defaultsOf(op);
  SmallVector<StringRef> elided;
  for (NamedAttribute attribute : op->getAttrs()) {
    if (defaults.get(attribute.getName()) == attribute.getValue()) {
      elided.push_back(attribute.getName());
    }
  }
  printer.printOptionalAttrDict(op->getAttrs(), elided);
  printer << " : ";
  const auto isResult = [&](Type type) { return type == op->getResult(0).getType(); };
  if (op->getNumResults() == 1 && llvm::all_of(op->getOperandTypes(), isResult)) {
    return printType(printer, op->getResult(0).getType());
  }
  printTypes(printer, op->getOperandTypes());
  printer << " -> ";
  if (op->getNumResults() == 1) {
    return printType(printer, op->getResult(0).getType());
  }
  printTypes(printer, op->getResultTypes());
}

}  // namespace weft::ir::dist
