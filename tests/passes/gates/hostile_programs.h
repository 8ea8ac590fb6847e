// Small programs that together have every word a module may carry: strategies by numbers and names, layouts, micro-
// batches, ZeRO, pipeline stages on one mesh and on several, recomputation, batch norm, dropout, pads.
#pragma once

#include <string>
#include <vector>

#include "runtime/plan/plan.pb.h"

namespace weft::testing {

// A module as the compiler leaves it after one of its phases ("04-decide"), or receives it ("00-input").
struct Dump {
  std::string phase;
  std::string path;  // its record lies beside it
  std::string text;
};

struct DumpedProgram {
  std::string name;
  std::vector<Dump> dumps = {};  // in the order of the phases
  std::string decisions = {};    // the record
  plan::Plan plan = {};
};

std::vector<std::string> hostileProgramNames();
// The program of that name, compiled; dumps are written under `directory` and read back.
DumpedProgram dumpedProgram(const std::string& name, const std::string& directory);

}  // namespace weft::testing
