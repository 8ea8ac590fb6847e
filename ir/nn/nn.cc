#include "ir/nn/nn.h"

#include "ir/dist/dist.h"
#include "ir/nn/nn_dialect.cc.inc"

namespace weft::ir::nn {

void NnDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "ir/nn/nn_ops.cc.inc"
      >();
}

}  // namespace weft::ir::nn

#define GET_OP_CLASSES
#include "ir/nn/nn_ops.cc.inc"
