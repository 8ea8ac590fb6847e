// What every nn operator tells the compiler about itself. Algorithms over operators are written once, against this.
#ifndef WEFT_IR_NN_OPERATOR_INTERFACE
#define WEFT_IR_NN_OPERATOR_INTERFACE

include "mlir/IR/OpBase.td"

def OperatorInterface : OpInterface<"OperatorInterface"> {
  let cppNamespace = "::weft::ir";
  let description = [{
    Sharding knowledge of an operator as data: its factor rule, the operand sets in which it is jointly linear, what
    it needs to know of a rank's place, and its arithmetic.
  }];
  let methods = [
    InterfaceMethod<"The factor rule (ir/layout/rule.h) of this instance.", "std::string", "getRule", (ins)>,
    InterfaceMethod<
      "Sets of operands in which the operator is jointly linear: a partial sum over the same axes of all operands of "
      # "one set passes through to the results.",
      "::weft::ir::LinearSets", "getLinearSets", (ins), "", [{ return {}; }]>,
    InterfaceMethod<
      "Is the operator linear and no more costly than the reduction it puts off? A sum partial over micro-batches or "
      # "ranks is passed on through it instead of being reduced before it.",
      "bool", "passesSums", (ins), "", [{ return false; }]>,
    InterfaceMethod<
      "Is it the sum of its operands? Sums of sums may be taken in another order: equal but for rounding.",
      "bool", "isSum", (ins), "", [{ return false; }]>,
    InterfaceMethod<"Does result 0 stand for operand 0 instead of having bytes of its own?",
      "::weft::ViewKind", "getViewKind", (ins), "", [{ return ::weft::ViewKind::kNone; }]>,
    InterfaceMethod<
      "Is result 0 the next value of the parameter in operand 0, made from its gradient in operand 1?",
      "bool", "updatesParameter", (ins), "", [{ return false; }]>,
    InterfaceMethod<
      "Does it exist only to be expanded (ir/registry.h)? It has no kernel, and its expansion is taken whatever is split.",
      "bool", "mustExpand", (ins), "", [{ return false; }]>,
    InterfaceMethod<"How a result is combined over the ranks of a split reducible factor.",
      "::weft::ReduceKind", "getReduceKind", (ins "unsigned":$result), "", [{ return ::weft::ReduceKind::kSum; }]>,
    InterfaceMethod<
      "The global offsets a kernel needs, in the order in which it receives them as scalars.",
      "::llvm::SmallVector<::weft::ir::OriginRequest>", "getOriginRequests", (ins), "", [{ return {}; }]>,
    InterfaceMethod<"Does the kernel need the global shape of result 0 (attribute `global_shape`)?",
      "bool", "needsGlobalShape", (ins), "", [{ return false; }]>,
    InterfaceMethod<
      "The value that padded elements of an operand must hold so that reducing or normalizing over them changes "
      # "nothing; none if the operator refuses a padded whole factor.",
      "std::optional<double>", "getPadFill", (ins "unsigned":$operand), "", [{ return 0.0; }]>,
    InterfaceMethod<"Floating-point operations, computed from the operand and result shapes the op has now.",
      "int64_t", "getFlops", (ins), "", [{ return ::weft::ir::elementwiseFlops($_op); }]>,
    InterfaceMethod<
      "Rewrites attributes that spell out sizes (slice) after operand and result types have become local.",
      "void", "localizeAttributes", (ins), "", [{}]>,
  ];
}

#endif
