// Words of a plan (planner/explain/plan_words.h) as lines of C++, to be pasted into the program that it was made for.
//
//   options.mesh = "dp=2,tp=2";
//   options.micro = 4;
//   .shard({{"dp", "", ""}, {"", "", "tp"}})     // model.cc:25  h0..h11.qkv (einsum)
//   { auto stage = g.stage(1); ... }             // model.cc:25  h6.layer_norm (layer_norm)
//
// A line that begins with a dot goes behind the call that makes the value, at the line of the program that stands
// beside it. Layers of which the same is said are one line.
#pragma once

#include <string>

#include "planner/explain/plan_words.h"

namespace weft::tools {

// `graph`: the program without the words.
std::string codeOf(const PlanWords& words, const ProgramGraph& graph);

}  // namespace weft::tools
