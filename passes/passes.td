// All passes: argument, what each does, options, statistics. One file, one class and one test have each pass's name:
// `--weft-form-buckets` = FormBucketsPass = passes/comm/form_buckets.cc = tests/passes/comm/form_buckets.mlir.
// passes/pipeline.cc has their order, with a reason for each.
#ifndef WEFT_PASSES
#define WEFT_PASSES

include "mlir/Pass/PassBase.td"

class Weft_Pass<string argument> : Pass<"weft-" # argument, "::mlir::ModuleOp">;

//===-- logical: what a single device would run --===//

def SimplifyPass : Weft_Pass<"simplify"> {
  let summary = "Fold what changes no bit, merge equal operators, drop unused ones";
}

def BuildGradientsPass : Weft_Pass<"build-gradients"> {
  let summary = "Make the gradients that the user asked for, and append those of the loss";
  let description = [{
    Replaces each nn.gradient by operators; differentiates result 0 of @step, the loss, with respect to every parameter
    that is not frozen and has no update of the user's own; adds one result `grad.<parameter>` each. Each new operator
    remembers its forward operator.
  }];
  let constructor = "::weft::createBuildGradientsPass(::weft::ir::OperatorRegistry::builtin())";
  let dependentDialects = ["::weft::ir::nn::NnDialect"];
}

def BuildUpdatePass : Weft_Pass<"build-update"> {
  let summary = "Append gradient clipping and the optimizer as operators, and build @init";
  let description = [{
    The optimizer becomes operators on device state: norm and clipping of the gradients, the update of each parameter,
    the step count. @init makes the first values of parameters and state.
  }];
  let dependentDialects = ["::weft::ir::nn::NnDialect"];
}

//===-- decide: the decisions record --===//

def DecidePass : Weft_Pass<"decide"> {
  let summary = "Write the decisions record of @step";
  let description = [{
    Writes what is decided about @step into the module attribute dist.decisions: a record that was given, else from the
    user's words, propagation and defaults. Expands and hoists operators as decided.
  }];
  let constructor = "::weft::createDecidePass(::weft::ir::OperatorRegistry::builtin())";
  let dependentDialects = ["::weft::ir::nn::NnDialect"];
}

//===-- partition: from decisions to what one rank computes --===//

def AssignLayoutsPass : Weft_Pass<"assign-layouts"> {
  let summary = "Give every value its layout, and every operator its place";
  let description = [{
    From the factor axes of the record follow the layouts of results, as encodings of their types, and those in which
    operands are read, beside each operator (dist.reads). Partial sums pass through operators that are linear in them.
  }];
  let dependentDialects = ["::weft::ir::dist::DistDialect"];
}

def InsertTransfersPass : Weft_Pass<"insert-transfers"> {
  let summary = "Bring values to the operators of another mesh that read them";
  let description = [{
    A value of another mesh is read through a dist.transfer, one for each value and submesh; an operator without
    operands is cloned instead. Nothing is to do where all submeshes have one mesh.
  }];
  let dependentDialects = ["::weft::ir::dist::DistDialect"];
  let statistics = [Statistic<"numTransfers", "transfers", "values read on another mesh than their own">];
}

def InsertReshardsPass : Weft_Pass<"insert-reshards"> {
  let summary = "Make every change of layout a dist.reshard";
  let description = [{
    Where a value lies otherwise than an operator reads it (dist.reads) a dist.reshard is made, one for all readers that
    want the same layout in the same part of the step. An operator that reads whole what is computed in micro-batches is
    an error.
  }];
  let dependentDialects = ["::weft::ir::dist::DistDialect"];
  let statistics = [Statistic<"numReshards", "reshards", "changes of layout">];
}

def SendUpdatesPass : Weft_Pass<"send-updates"> {
  let summary = "Send what replaces an argument to every mesh that holds it";
  let dependentDialects = ["::weft::ir::dist::DistDialect"];
}

def MaskPadsPass : Weft_Pass<"mask-pads"> {
  let summary = "Fill the pads that an operator would reduce over";
  let description = [{
    An operand with a padded dimension that the operator reduces over or needs whole is read through a dist.mask_pad,
    filled with what changes nothing. An operator that cannot run on any filling is an error.
  }];
  let dependentDialects = ["::weft::ir::dist::DistDialect"];
  let statistics = [Statistic<"numMasks", "masks", "masks of pads">];
}

def MarkRecomputePass : Weft_Pass<"mark-recompute"> {
  let summary = "Mark what the backward pass computes again";
  let description = [{
    Operators, reshards and masks get the mark dist.recompute, as the record says, and gathers of the backward pass that
    run again for gradients of weights the mark dist.recomputed; the annotated state is complete.
  }];
}

def RecomputePass : Weft_Pass<"recompute"> {
  let summary = "Recompute in the backward pass what the decisions do not keep";
  let description = [{
    Backward operators that read results marked dist.recompute read copies made in the backward pass instead.
  }];
  let statistics = [Statistic<"numCopies", "copies", "operators that run again">];
}

def CutFunctionsPass : Weft_Pass<"cut-functions"> {
  let summary = "Cut the step into functions, for each submesh";
  let description = [{
    @step becomes @prologue, @forward, @backward and @update, for each submesh in a module of its own. What crosses from
    one function to another gets a name, what crosses from one submesh to another a channel; sums over the micro-batches
    become accumulations. Shapes stay global, layouts stay. Stages that would wait for each other are an error.
  }];
  let dependentDialects = ["::weft::ir::dist::DistDialect", "::mlir::func::FuncDialect"];
}

def LowerReshardsPass : Weft_Pass<"lower-reshards"> {
  let summary = "Lower reshards to the planner's collectives";
  let description = [{
    Each reshard becomes the cheapest sequence of collectives and slices between its two layouts. Shapes stay global;
    the values in between have the layouts of the path.
  }];
  let dependentDialects = ["::weft::ir::dist::DistDialect"];
  let statistics = [Statistic<"numCollectives", "collectives", "operators that the reshards became">];
}

def LocalizeShapesPass : Weft_Pass<"localize-shapes"> {
  let summary = "Replace global by local shapes, and origins by scalars";
  let description = [{
    Types lose their layouts and have the shape of one rank's part in one micro-batch. What differs between ranks
    becomes columns of dist.rank_table, on which operators have dist.scalars. The local state is complete.
  }];
  let dependentDialects = ["::weft::ir::dist::DistDialect", "::weft::ir::nn::NnDialect"];
}

def SplitBackwardPass : Weft_Pass<"split-backward"> {
  let summary = "Cut backward functions into the gradients of inputs and of weights";
  let description = [{
    Where the schedule runs the two apart, each backward function becomes input_grad, what other stages wait for, and
    weight_grad, the rest.
  }];
  let statistics = [Statistic<"numSplit", "split", "backward functions cut in two">];
}

//===-- comm: fewer, larger and cheaper collectives --===//

def FormReduceScatterPass : Weft_Pass<"form-reduce-scatter"> {
  let summary = "Turn an all_reduce of which each rank keeps a part into a reduce_scatter";
  let description = [{
    An all_reduce of which every rank only keeps its own part of one dimension becomes a reduce_scatter: half the
    traffic.
  }];
  let dependentDialects = ["::weft::ir::dist::DistDialect"];
}

def FormBucketsPass : Weft_Pass<"form-buckets"> {
  let summary = "Join independent collectives into buckets";
  let description = [{
    Joins independent all_reduces (and reduce_scatters) of a function that have the same groups, reduction and element
    type into one op of several operands, and so all_gathers of values that leave the function. A single larger
    collective stands alone.
  }];
  let options = [Option<"bucketBytes", "bucket-bytes", "int64_t", "int64_t{64} << 20",
                        "most bytes of operands in one bucket">];
  let dependentDialects = ["::weft::ir::dist::DistDialect"];
}

def FuseAccumulationsPass : Weft_Pass<"fuse-accumulations"> {
  let summary = "Add products to sums over the micro-batches where they are made";
  let description = [{
    On machines that say so, a dist.accumulate of an nn.contract that nothing else reads becomes a
    dist.contract_accumulate: the gradient of a weight is neither written nor read on its way into the sum, and takes no
    memory.
  }];
  let dependentDialects = ["::weft::ir::dist::DistDialect"];
  let statistics = [Statistic<"numFused", "fused", "accumulations that became part of a product">];
}

//===-- plan: what the plan is written from --===//

def WriteSchedulePass : Weft_Pass<"write-schedule"> {
  let summary = "Write the calls of each submesh's ranks, and the room of its channels";
  let description = [{
    The schedule of the stages becomes dist.actions of each submesh: the calls of init and of one step, in order. Sends
    and receives say how many messages may be under way in their channel.
  }];
  let dependentDialects = ["::weft::ir::dist::DistDialect"];
}

def AssignStoragePass : Weft_Pass<"assign-storage"> {
  let summary = "Say in which storage each value lies";
  let description = [{
    Values share a storage where one is made in place of another, is a view of it (dist.view), or has its name. A result
    that cannot be made where its name lies is copied there at the end of its function (dist.copy).
  }];
  let dependentDialects = ["::weft::ir::dist::DistDialect"];
}

def PlanMemoryPass : Weft_Pass<"plan-memory"> {
  let summary = "Give every storage and mailbox its place";
  let description = [{
    Storages get an offset in a region or in a ring of slots, receives one for their mailbox; dist.regions has the sizes,
    scratch of kernels included. The scheduled state is complete.
  }];
  let dependentDialects = ["::weft::ir::dist::DistDialect"];
}

//===-- gates: what must not be there any more --===//

def VerifyLogicalPass : Weft_Pass<"verify-logical"> {
  let summary = "Check the logical state";
  let description = [{
    No layout on any type, no op of the dist dialect, every argument of @step has a kind and a name.
  }];
}

def VerifyLaidOutPass : Weft_Pass<"verify-laid-out"> {
  let summary = "Check that values have layouts, and that the record fits";
  let description = [{
    On the way from logical to annotated: every tensor has a layout that divides its stored shape, every op names its
    function, and the record fits the program; reshards, transfers and masks may be missing.
  }];
}

def VerifyAnnotatedPass : Weft_Pass<"verify-annotated"> {
  let summary = "Check the annotated state";
  let description = [{
    Every tensor has a layout that divides its stored shape; the layouts an operator reads and leaves are those of its
    rule for one choice of axes; sums are partial only where the operator is linear; every op names its function.
  }];
}

def VerifyCutPass : Weft_Pass<"verify-cut"> {
  let summary = "Check functions of global shapes with layouts";
  let description = [{
    On the way from annotated to local: the functions of the local state, on global shapes with layouts.
  }];
}

def VerifyLocalPass : Weft_Pass<"verify-local"> {
  let summary = "Check the local state";
  let description = [{
    No layout, no reshard, nothing but the known functions; every argument and result has a dist.value and a memory; one
    type and memory class for each named value, groups that cover the mesh, scalars within the rank table, a slice of
    every named tensor for every rank.
  }];
}

def VerifyOrderedPass : Weft_Pass<"verify-ordered"> {
  let summary = "Check functions with their calls";
  let description = [{
    On the way from local to scheduled: every function is called as often as its kind asks for, every channel has room.
  }];
}

def VerifyStoredPass : Weft_Pass<"verify-stored"> {
  let summary = "Check that every value has a storage";
  let description = [{
    On the way from local to scheduled: every value lies in a storage that is as large, all of one name in one; copies
    stand at the ends of functions.
  }];
}

def VerifyScheduledPass : Weft_Pass<"verify-scheduled"> {
  let summary = "Check the scheduled state";
  let description = [{
    Every storage and mailbox has a place inside its region; those that are in use at once do not overlap; the scratch
    of every kernel has room. In the order of the schedule's calls every function finds what it reads: an earlier call
    has written it, and none has written over it since (`planner/step/step_play.h`). A module that passes can be emitted
    as a plan.
  }];
}

//===-- between the phases --===//

def EndPhasePass : Weft_Pass<"end-phase"> {
  let summary = "Note that a phase has run";
  let description = "Notes in dist.phase that `phase` has run, so that the module can be resumed from there.";
  let options = [Option<"phase", "phase", "std::string", "", "name of the phase, as in decide">];
}

def DumpPass : Weft_Pass<"dump"> {
  let summary = "Write the module to a file";
  let description = [{
    Writes the module with the user's source lines to `file`, whose directory is made. A file that cannot be written is
    an error.
  }];
  let options = [Option<"file", "file", "std::string", "", "the file, as in dump/04-decide.mlir">];
}

#endif
