#include "planner/step/step_program.h"

namespace weft {

bool isPerMicroBatch(plan::FunctionKind kind) {
  return kind == plan::FORWARD || kind == plan::BACKWARD || kind == plan::INPUT_GRAD || kind == plan::WEIGHT_GRAD;
}

}  // namespace weft
