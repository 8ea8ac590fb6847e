// Everything a model needs: graph, operators, modules, compile, trainer.
#pragma once

#include "weft/compile.h"
#include "weft/graph.h"
#include "weft/key_value_cache.h"
#include "weft/metrics.h"
#include "weft/modules.h"
#include "weft/ops.h"
#include "weft/own_operator.h"
#include "weft/trainer.h"
