// The nn dialect and its operators (ir/nn/*.td).
#pragma once

#include <limits>

#include "ir/dist/assembly.h"
#include "ir/nn/infer.h"
#include "ir/nn/operator_interface.h"
#include "ir/nn/rules.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

// clang-format off: generated code comes after what it uses.
#include "ir/nn/nn_dialect.h.inc"
#define GET_OP_CLASSES
#include "ir/nn/nn_ops.h.inc"
// clang-format on
