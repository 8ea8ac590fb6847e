// What whole searches in mode kAuto chose. A pin deletes plans and adds none: where the best of all obeys it, that is
// also the best of those that are left, and nothing has to be searched.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "planner/request.h"
#include "planner/search/block_program.h"
#include "planner/search/choose_open.h"

namespace weft {

class KnownChoices {
 public:
  // What a request found of which `request` differs in pins alone that this obeys: on the mesh, the number of
  // micro-batches, the level of ZeRO, the kind of schedule, the number of stages on each submesh and in all. Nothing:
  // there is none.
  std::optional<ClosedRequest> find(const GraphFor& graphs, const CompileOptions& request) const;
  void keep(const GraphFor& graphs, const CompileOptions& request, ClosedRequest found);

 private:
  struct Known {
    std::shared_ptr<const ProgramGraph> program;  // for the micro-batches that were found
    CompileOptions request;
    ClosedRequest found;
  };

  std::vector<Known> known_;
};

}  // namespace weft
