// Models that others published, with the words for their sharding and the names of their weights.
#pragma once

#include "weft/models/bert.h"
#include "weft/models/gpt2.h"
#include "weft/models/llama.h"
#include "weft/models/parallel.h"
#include "weft/models/t5.h"
