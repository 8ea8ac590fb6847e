// The dist dialect: where tensors lie, and the operators that move them between ranks.
#ifndef WEFT_IR_DIST_OPS
#define WEFT_IR_DIST_OPS

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/TensorEncoding.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Dist_Dialect : Dialect {
  let name = "dist";
  let cppNamespace = "::weft::ir::dist";
  let summary = "Mesh, layouts, reshards and collectives.";
  let useDefaultAttributePrinterParser = 1;
}

//===-- Attributes --===//

class Dist_Attr<string name, string attrMnemonic, list<Trait> traits = []> : AttrDef<Dist_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def Dist_MeshAttr : Dist_Attr<"Mesh", "mesh"> {
  let summary = "The mesh as text: #dist.mesh<\"dp=2,tp=2,micro=4\"> (ir/layout/mesh.h)";
  let parameters = (ins StringRefParameter<"text of the mesh">:$text);
  let assemblyFormat = "`<` $text `>`";
  let genVerifyDecl = 1;
}

def Dist_LayoutAttr : Dist_Attr<"Layout", "layout", [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "A tensor's layout as text: #dist.layout<\"[{dp},{}] partial{tp:sum}\"> (ir/layout/layout.h)";
  let description = [{
    Axis names mean what the module's mesh says; the attribute itself checks the form, and as the encoding of a tensor
    type that the layout has the tensor's number of dimensions.
  }];
  let parameters = (ins StringRefParameter<"text of the layout">:$text);
  let assemblyFormat = "`<` $text `>`";
  let genVerifyDecl = 1;
}

def Dist_AxesAttr : Dist_Attr<"Axes", "axes"> {
  let summary = "A list of axes as text, major first: #dist.axes<\"{dp,tp:(1)2}\"> (ir/layout/axis.h)";
  let description = "The attribute itself checks the form; axisList() reads it with a mesh.";
  let parameters = (ins StringRefParameter<"text of the axes">:$text);
  let assemblyFormat = "`<` $text `>`";
  let genVerifyDecl = 1;
}

def Dist_ScalarAttr : Dist_Attr<"Scalar", "scalar"> {
  let summary = "An integer that may differ between ranks and micro-batches";
  let description = "immediate + rank_table[rank][column] + micro-batch x micro_batch_factor; column -1: no table entry.";
  let parameters = (ins "int64_t":$immediate, "int64_t":$column, "int64_t":$micro_batch_factor);
  let assemblyFormat = "`<` $immediate `,` $column `,` $micro_batch_factor `>`";
  let genVerifyDecl = 1;
}

def Dist_DecisionsAttr : Dist_Attr<"Decisions", "decisions"> {
  let summary = "The decisions record: #dist.decisions<\"{...}\"> in its JSON form (planner/decisions.h)";
  let description = [{
    Holds the record as an object, parsed once where it is read from text. Two are equal if their texts are.
  }];
  let parameters = (ins AttrParameter<"::weft::ir::dist::DecisionsRecord", "the record">:$record);
  let assemblyFormat = "`<` $record `>`";
}

//===-- Memory, and what the scheduled state says of it and of the calls of a step --===//

// Numbers and words of plan::MemoryClass.
def Dist_Memory : I32EnumAttr<"Memory", "what memory is for, and so how long it is kept", [
    I32EnumAttrCase<"kParameter", 0, "parameter">, I32EnumAttrCase<"kState", 1, "state">,
    I32EnumAttrCase<"kAccumulator", 2, "accumulator">, I32EnumAttrCase<"kInput", 3, "input">,
    I32EnumAttrCase<"kOutput", 4, "output">, I32EnumAttrCase<"kConstant", 5, "constant">,
    I32EnumAttrCase<"kActivation", 6, "activation">, I32EnumAttrCase<"kTransient", 7, "transient">,
    I32EnumAttrCase<"kWorkspace", 8, "workspace">, I32EnumAttrCase<"kMailbox", 9, "mailbox">]> {
  let cppNamespace = "::weft::ir::dist";
  let genSpecializedAttr = 0;
}

def Dist_MemoryAttr : EnumAttr<Dist_Dialect, Dist_Memory, "memory"> {
  let summary = "The memory of a named argument or result: #dist.memory<activation>";
  let assemblyFormat = "`<` $value `>`";
}

def Dist_StorageAttr : Dist_Attr<"Storage", "storage"> {
  let summary = "Memory in which values lie, one after another: #dist.storage<memory = parameter, bytes = 64, label = \"w\", offset = 0>";
  let description = [{
    Bytes of one micro-batch, and the offset in their region: in that of their class, or in one slot of the class's ring
    of that number. Offset -1: memory is not planned yet. The label is for people.
  }];
  let parameters = (ins EnumParameter<Dist_Memory>:$memory, "int64_t":$bytes, StringRefParameter<"for people">:$label,
                    DefaultValuedParameter<"int64_t", "-1">:$offset, DefaultValuedParameter<"int64_t", "0">:$ring);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Dist_RegionAttr : Dist_Attr<"Region", "region"> {
  let summary = "Memory of one class, or one of its rings of slots: #dist.region<memory = activation, bytes = 64, slots = 2, ...>";
  let description = [{
    `bytes` are those of one slot. `max_live` is the greatest sum of sizes in use at once; no packing is below
    `lower_bound`. Of a ring, `stage` is that whose functions make what lies in it.
  }];
  let parameters = (ins EnumParameter<Dist_Memory>:$memory, "int64_t":$bytes, "int64_t":$max_live,
                    "int64_t":$lower_bound, DefaultValuedParameter<"int64_t", "0">:$ring,
                    DefaultValuedParameter<"int64_t", "1">:$slots, DefaultValuedParameter<"int64_t", "0">:$stage);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Dist_CallAttr : Dist_Attr<"Call", "call"> {
  let summary = "A function of a submesh, and the micro-batch it is called for: #dist.call<@forward, 3>";
  let parameters = (ins AttrParameter<"::mlir::FlatSymbolRefAttr", "the function">:$function,
                    "int64_t":$micro_batch);
  let assemblyFormat = "`<` $function `,` $micro_batch `>`";
}

def Dist_ActionsAttr : Dist_Attr<"Actions", "actions"> {
  let summary = "What a rank runs, in order: #dist.actions<init = [@init 0], step = [@forward 0, @backward 0, @update 0]>";
  let description = [{
    `init` runs once before the first step. A call is a function of the submesh and a micro-batch, 0 where the function
    runs once. There is one queue.
  }];
  let parameters = (ins ArrayRefParameter<"::weft::ir::dist::CallAttr">:$init,
                    ArrayRefParameter<"::weft::ir::dist::CallAttr">:$step);
  let hasCustomAssemblyFormat = 1;
}

//===-- Types and plain numbers --===//

def Dist_AnyTensor : StaticShapeTensorOf<[F32, F64, BF16, F16, I1, I32, I64]>;
def Dist_Tensor : Type<And<[Dist_AnyTensor.predicate, CPred<"::weft::ir::isBounded($_self)">]>,
                       Dist_AnyTensor.summary # " of at least one element and at most 2^48 bytes",
                       "::mlir::RankedTensorType">;

def Dist_Int : Attr<I64Attr.predicate, "64-bit integer attribute"> {
  let storageType = "::mlir::IntegerAttr";
  let returnType = "int64_t";
  let valueType = I64;
  let constBuilderCall = "$_builder.getI64IntegerAttr($0)";
  let convertFromStorage = "$_self.getInt()";
}
def Dist_Real : Attr<F64Attr.predicate, "64-bit float attribute"> {
  let storageType = "::mlir::FloatAttr";
  let returnType = "double";
  let valueType = F64;
  let constBuilderCall = "$_builder.getF64FloatAttr($0)";
  let convertFromStorage = "$_self.getValueAsDouble()";
}

class Dist_AnyOp<string mnemonic, list<Trait> traits = []> : Op<Dist_Dialect, mnemonic, traits> {
  let hasCustomAssemblyFormat = 1;  // ir/dist/assembly.h
  let extraClassDefinition = [{
    ::mlir::ParseResult $cppClass::parse(::mlir::OpAsmParser& parser, ::mlir::OperationState& state) {
      return ::weft::ir::dist::parseOperator(parser, state);
    }
    void $cppClass::print(::mlir::OpAsmPrinter& printer) { ::weft::ir::dist::printOperator(printer, *this); }
  }];
}

class Dist_Op<string mnemonic, list<Trait> traits = []> : Dist_AnyOp<mnemonic, traits # [Pure]> {
  let hasVerifier = 1;
}

//===-- Annotated state --===//

def Dist_ReshardOp : Dist_Op<"reshard"> {
  let summary = "x in another layout";
  let description = [{
    Operand and result are the same tensor with different layouts as encodings. `reason` names the reader for which it
    was inserted.
  }];
  let arguments = (ins Dist_Tensor:$x, DefaultValuedAttr<StrAttr, "\"\"">:$reason);
  let results = (outs Dist_Tensor:$y);
}

def Dist_TransferOp : Dist_Op<"transfer"> {
  let summary = "x on the mesh of another submesh";
  let description = [{
    Operand and result are the same tensor; the operand's layout is read on the mesh of the stage that makes it, the
    result's on that of `dist.stage`. The value is not partial. Of an argument it moves nothing: the submesh holds it so.
  }];
  let arguments = (ins Dist_Tensor:$x, DefaultValuedAttr<StrAttr, "\"\"">:$reason);
  let results = (outs Dist_Tensor:$y);
}

//===-- Local state: collectives --===//

// The ranks that differ in the axes `over` alone form a group, in the order of the axes. `reason` says why the collective
// is there, `cost` is in seconds, `bytes_received` per rank, counted as for a ring.
class Dist_Collective<string mnemonic> : Dist_Op<mnemonic>;

def Dist_AllReduceOp : Dist_Collective<"all_reduce"> {
  let summary = "reduces each operand over the members of a group, in group order";
  let arguments = (ins Variadic<Dist_Tensor>:$inputs, Dist_AxesAttr:$over, StrAttr:$reduce,
                       DefaultValuedAttr<StrAttr, "\"\"">:$reason, DefaultValuedAttr<Dist_Real, "0.0">:$cost,
                       DefaultValuedAttr<Dist_Int, "0">:$bytes_received);
  let results = (outs Variadic<Dist_Tensor>:$outputs);
}
def Dist_AllGatherOp : Dist_Collective<"all_gather"> {
  let summary = "concatenates, of each operand, those of the members along `dim`";
  let arguments = (ins Variadic<Dist_Tensor>:$inputs, Dist_AxesAttr:$over, Dist_Int:$dim,
                       DefaultValuedAttr<StrAttr, "\"\"">:$reason, DefaultValuedAttr<Dist_Real, "0.0">:$cost,
                       DefaultValuedAttr<Dist_Int, "0">:$bytes_received);
  let results = (outs Variadic<Dist_Tensor>:$outputs);
}
def Dist_ReduceScatterOp : Dist_Collective<"reduce_scatter"> {
  let summary = "reduces each operand over a group; member i keeps part i of `dim`";
  let arguments = (ins Variadic<Dist_Tensor>:$inputs, Dist_AxesAttr:$over, Dist_Int:$dim, StrAttr:$reduce,
                       DefaultValuedAttr<StrAttr, "\"\"">:$reason, DefaultValuedAttr<Dist_Real, "0.0">:$cost,
                       DefaultValuedAttr<Dist_Int, "0">:$bytes_received);
  let results = (outs Variadic<Dist_Tensor>:$outputs);
}
def Dist_AllToAllOp : Dist_Collective<"all_to_all"> {
  let summary = "cuts x along `split_dim`, part i goes to member i; received parts are concatenated along `dim`";
  let arguments = (ins Dist_Tensor:$x, Dist_AxesAttr:$over, Dist_Int:$split_dim, Dist_Int:$dim,
                       DefaultValuedAttr<StrAttr, "\"\"">:$reason, DefaultValuedAttr<Dist_Real, "0.0">:$cost,
                       DefaultValuedAttr<Dist_Int, "0">:$bytes_received);
  let results = (outs Dist_Tensor:$y);
}
def Dist_PermuteOp : Dist_Op<"permute"> {
  let summary = "every rank receives the x that brings the tensor from one layout to another (ir/layout/reshard.h)";
  let arguments = (ins Dist_Tensor:$x, Dist_LayoutAttr:$from, Dist_LayoutAttr:$to,
                       DefaultValuedAttr<StrAttr, "\"\"">:$reason, DefaultValuedAttr<Dist_Real, "0.0">:$cost,
                       DefaultValuedAttr<Dist_Int, "0">:$bytes_received);
  let results = (outs Dist_Tensor:$y);
}

//===-- Local state: compute that depends on a rank's place; origins stand in `dist.scalars` --===//

def Dist_DynamicSliceOp : Dist_Op<"dynamic_slice"> {
  let summary = "the part of x of the result's shape that begins at this rank's start in each dimension";
  let arguments = (ins Dist_Tensor:$x);
  let results = (outs Dist_Tensor:$y);
}
def Dist_MaskPadOp : Dist_Op<"mask_pad"> {
  let summary = "elements whose global index in dims[i] is >= valid[i] become `fill`";
  let description = [{
    In dimension `run_dim` a rank's elements are runs of `run`, whose first have global indices `stride` apart: rows of a
    micro-batch from several stripes of the batch. -1: one run in each dimension.
  }];
  let arguments = (ins Dist_Tensor:$x, DenseI64ArrayAttr:$dims, DenseI64ArrayAttr:$valid, Dist_Real:$fill,
                       DefaultValuedAttr<Dist_Int, "-1">:$run_dim, DefaultValuedAttr<Dist_Int, "0">:$run,
                       DefaultValuedAttr<Dist_Int, "0">:$stride);
  let results = (outs Dist_Tensor:$y);
}
def Dist_DynamicUpdateSliceOp : Dist_Op<"dynamic_update_slice"> {
  let summary = "`whole` with x in the part of x's shape that begins at this rank's start in each dimension; in place on `whole`";
  let arguments = (ins Dist_Tensor:$whole, Dist_Tensor:$x);
  let results = (outs Dist_Tensor:$y);
}
def Dist_AccumulateOp : Dist_Op<"accumulate"> {
  let summary = "x during micro-batch 0, else acc and x reduced (\"sum\", \"max\", \"min\"); in place on acc";
  let arguments = (ins Dist_Tensor:$acc, Dist_Tensor:$x, DefaultValuedAttr<StrAttr, "\"sum\"">:$reduce);
  let results = (outs Dist_Tensor:$y);
}
def Dist_ContractAccumulateOp : Dist_Op<"contract_accumulate"> {
  let summary = "nn.contract of a and b during micro-batch 0, else acc plus that; in place on acc";
  let arguments = (ins Dist_Tensor:$acc, Dist_Tensor:$a, Dist_Tensor:$b, StrAttr:$spec);
  let results = (outs Dist_Tensor:$y);
}

//===-- Local state: between the submeshes that own the stages --===//

// A channel carries one value from one submesh to another: rank i of a submesh writes to rank i of the other, or
// `boxes` say who writes what. A message is sent once per call of the function and received in the same order.
// Between submeshes of different meshes the receiver lists the boxes of its tensor: `boxes` has for each box the ranks
// of source and target, then for each dimension offset at the source, offset at the target, and size.
// From the schedule on `capacity` is how many messages may be under way; memory then has room for as many at `mailbox`.
def Dist_SendOp : Dist_AnyOp<"send"> {
  let summary = "sends x to submesh `submesh`; goes on while the channel has room";
  let arguments = (ins Dist_Tensor:$x, Dist_Int:$channel, Dist_Int:$submesh, OptionalAttr<Dist_Int>:$capacity);
}
def Dist_ReceiveOp : Dist_AnyOp<"receive"> {
  let summary = "the next message of a channel from submesh `submesh`; waits for it";
  let arguments = (ins Dist_Int:$channel, Dist_Int:$submesh, OptionalAttr<DenseI64ArrayAttr>:$boxes,
                       OptionalAttr<Dist_Int>:$capacity, OptionalAttr<Dist_Int>:$mailbox);
  let results = (outs Dist_Tensor:$y);
  let hasVerifier = 1;
}

//===-- Scheduled state --===//

def Dist_CopyOp : Dist_Op<"copy"> {
  let summary = "x in another storage";
  let description = [{
    Stands at the end of a function, where a result could not be made where its name lies. Copies run one after another.
  }];
  let arguments = (ins Dist_Tensor:$x);
  let results = (outs Dist_Tensor:$y);
}

#endif
