// The nn dialect: compute on tensors, without any word about where they lie. This file: the dialect, its types and
// attributes, and the base classes from which every operator entry is one short record.
#ifndef WEFT_IR_NN_BASE
#define WEFT_IR_NN_BASE

include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "ir/nn/operator_interface.td"

def Nn_Dialect : Dialect {
  let name = "nn";
  let cppNamespace = "::weft::ir::nn";
  let summary = "Operators of deep learning on whole tensors.";
  let description = [{
    The same operators serve all states of a program. In the logical state shapes are global; in the annotated state
    types carry a layout as their encoding; in the local state shapes are those of one rank. So checks look at shapes
    and element types alone, and never compare an attribute that holds a global number with a shape.
  }];
  let dependentDialects = ["::weft::ir::dist::DistDialect"];  // types of operands have layouts
}

//===-- Types --===//

// At least one element, and no more than fit into 2^48 bytes (runtime/base/limits.h).
class Nn_TensorOf<list<Type> elements>
    : Type<And<[StaticShapeTensorOf<elements>.predicate, CPred<"::weft::ir::isBounded($_self)">]>,
           StaticShapeTensorOf<elements>.summary # " of at least one element and at most 2^48 bytes",
           "::mlir::RankedTensorType">;

def Nn_Tensor : Nn_TensorOf<[F32, F64, BF16, F16, I1, I32, I64]>;
def Nn_Float : Nn_TensorOf<[F32, F64, BF16, F16]>;
def Nn_Number : Nn_TensorOf<[F32, F64, BF16, F16, I32, I64]>;
def Nn_Ids : Nn_TensorOf<[I32, I64]>;
def Nn_Bool : Nn_TensorOf<[I1]>;

//===-- Attributes: 64-bit numbers with plain C++ accessors --===//

def Nn_Int : Attr<I64Attr.predicate, "64-bit integer attribute"> {
  let storageType = "::mlir::IntegerAttr";
  let returnType = "int64_t";
  let valueType = I64;
  let constBuilderCall = "$_builder.getI64IntegerAttr($0)";
  let convertFromStorage = "$_self.getInt()";
}
def Nn_Real : Attr<F64Attr.predicate, "64-bit float attribute"> {
  let storageType = "::mlir::FloatAttr";
  let returnType = "double";
  let valueType = F64;
  let constBuilderCall = "$_builder.getF64FloatAttr($0)";
  let convertFromStorage = "$_self.getValueAsDouble()";
}

//===-- Base classes --===//

// Result types follow from operands and attributes; an operator gives `infer`, an expression of type LogicalResult that
// sees `site` (ir/nn/infer.h) and `adaptor`. Checks of operands stand there too, so that builders, the parser and the
// verifier share them.
def Nn_Infers : InferTypeOpAdaptorBase<[{
  static bool isCompatibleReturnTypes(::mlir::TypeRange inferred, ::mlir::TypeRange actual) {
    return ::weft::ir::sameShapesAndElements(inferred, actual);
  }
}]>;

class Nn_Op<string mnemonic, list<Trait> traits = []>
    : Op<Nn_Dialect, mnemonic,
         traits # [Pure, DeclareOpInterfaceMethods<OperatorInterface,
                    ["getRule", "getLinearSets", "getReduceKind", "getOriginRequests", "needsGlobalShape",
                     "passesSums", "isSum", "getViewKind", "updatesParameter", "mustExpand", "getPadFill", "getFlops", "localizeAttributes"]>]> {
  // C++ expressions; each sees the op as *this.
  code rule = "";                                       // std::string
  code linear = "{}";                                   // ::weft::ir::LinearSets
  code passesSums = "false";                            // cheap and linear, see operator_interface.td
  code isSum = "false";
  code view = "::weft::ViewKind::kNone";
  code updatesParameter = "false";
  code mustExpand = "false";                            // it exists only to be expanded (ir/registry.h)
  code reduceKind = "::weft::ReduceKind::kSum";         // sees `result`
  code origins = "{}";                                  // SmallVector<OriginRequest>
  code globalShape = "false";
  code padFill = "0.0";                                 // std::optional<double>; sees `operand`
  code flops = "::weft::ir::elementwiseFlops(*this)";
  code localize = "";                                   // statements

  code knowledge = [{
    std::string $cppClass::getRule() { return }] # rule # [{; }
    ::weft::ir::LinearSets $cppClass::getLinearSets() { return }] # linear # [{; }
    bool $cppClass::passesSums() { return }] # passesSums # [{; }
    bool $cppClass::isSum() { return }] # isSum # [{; }
    ::weft::ViewKind $cppClass::getViewKind() { return }] # view # [{; }
    bool $cppClass::updatesParameter() { return }] # updatesParameter # [{; }
    bool $cppClass::mustExpand() { return }] # mustExpand # [{; }
    ::weft::ReduceKind $cppClass::getReduceKind([[maybe_unused]] unsigned result) { return }] # reduceKind # [{; }
    ::llvm::SmallVector<::weft::ir::OriginRequest> $cppClass::getOriginRequests() { return }] # origins # [{; }
    bool $cppClass::needsGlobalShape() { return }] # globalShape # [{; }
    std::optional<double> $cppClass::getPadFill([[maybe_unused]] unsigned operand) { return }] # padFill # [{; }
    int64_t $cppClass::getFlops() { return }] # flops # [{; }
    void $cppClass::localizeAttributes() { }] # localize # [{ }
    ::mlir::ParseResult $cppClass::parse(::mlir::OpAsmParser& parser, ::mlir::OperationState& state) {
      return ::weft::ir::dist::parseOperator(parser, state);
    }
    void $cppClass::print(::mlir::OpAsmPrinter& printer) { ::weft::ir::dist::printOperator(printer, *this); }
  }];
  let extraClassDefinition = knowledge;
  let hasCustomAssemblyFormat = 1;
}

class Nn_InferOp<string mnemonic, list<Trait> traits = []> : Nn_Op<mnemonic, traits # [Nn_Infers]> {
  code infer = "";
  let extraClassDefinition = knowledge # [{
    ::llvm::LogicalResult $cppClass::inferReturnTypes(
        ::mlir::MLIRContext*, std::optional<::mlir::Location> location, [[maybe_unused]] Adaptor adaptor,
        ::llvm::SmallVectorImpl<::mlir::Type>& types) {
      [[maybe_unused]] ::weft::ir::InferSite site{location, getOperationName(), types};
      return }] # infer # [{;
    }
  }];
}

#endif
