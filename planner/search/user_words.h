// What the user said of how a program is planned, word by word, and the same program and request without some of it.
//
// Words are
//   options    mesh, stage meshes, micro-batches, ZeRO level, schedule, stages on each submesh, recompute, regather,
//              offload, the most stages, stages of parameters, each entry of layouts
//   program    each strategy (shard), each constraint (constrain), each layout of an input, stages, recompute scopes
// What is said alike of layers that repeat is one word: at one line, of names that differ in the layer's number only,
// with the same text. Stages are one word, as are recompute scopes.
// Devices, machine, memory limit and mode say what may be had, not how the program is planned: they are no words.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "planner/graph/program_graph.h"
#include "planner/request.h"
#include "planner/search/block_program.h"

namespace weft {

// Leaves open what it stands for. One of the two is set.
struct UserWord {
  std::string text;  // "micro-batches 4", "shard of h*.qkv (model.cc:7)"
  std::function<void(CompileOptions&)> dropOption = {};
  std::function<void(ProgramGraph&)> dropFromProgram = {};
};

// What the planner is asked about.
struct PlanQuestion {
  GraphFor graphs;
  CompileOptions request;
};

// In the order above, of the program in the order of its operators. `ranks`: that the plan may have where no mesh says
// it.
std::vector<UserWord> userWords(const CompileOptions& request, const ProgramGraph& graph, int64_t ranks);

// The question in mode kAuto, on as many ranks as its plan has where no mesh says how many.
PlanQuestion openQuestion(PlanQuestion question, int64_t ranks);

// The question without some of the words.
PlanQuestion without(const std::vector<UserWord>& words, const PlanQuestion& question);

}  // namespace weft
