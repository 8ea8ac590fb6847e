#include "planner/search/known_choices.h"

#include <algorithm>
#include <utility>

#include "planner/search/search_memory.h"

namespace weft {
namespace {

std::shared_ptr<const ProgramGraph> programFor(const GraphFor& graphs, const CompileOptions& found) {
  const auto program = graphs(found.microBatches());
  return program.ok() ? *program : nullptr;
}

// `asked` with the pins of `request` that `found`, its answer, obeys.
CompileOptions withPins(CompileOptions asked, const CompileOptions& request, const ClosedRequest& answer) {
  const CompileOptions& found = answer.request;
  const auto pin = [](auto& word, const auto& pinned, const auto& chosen) { word = pinned == chosen ? pinned : word; };
  pin(asked.mesh, request.mesh, found.mesh);
  pin(asked.micro, request.micro, found.micro);
  pin(asked.schedule, request.schedule, found.schedule);
  pin(asked.virtualStages, request.virtualStages, found.virtualStages);
  if (found.zeroOf == asked.zeroOf) {  // a level that is given is that of all parameters
    pin(asked.zero, request.zero, found.zero);
  }
  const auto stages = static_cast<int64_t>(answer.attempt.decisions.schedule.submeshes.size());
  const bool isWithin = request.maxStages >= stages && (asked.maxStages == 0 || request.maxStages <= asked.maxStages);
  asked.maxStages = isWithin ? request.maxStages : asked.maxStages;
  return asked;
}

}  // namespace

std::optional<ClosedRequest> KnownChoices::find(const GraphFor& graphs, const CompileOptions& request) const {
  const auto known = std::find_if(known_.begin(), known_.end(), [&](const Known& each) {
    return areSame(withPins(each.request, request, each.found), request) &&
           programFor(graphs, each.found.request) == each.program;
  });
  if (known == known_.end()) {
    return std::nullopt;
  }
  ClosedRequest found = known->found;
  found.request.maxStages = request.maxStages;
  return found;
}

void KnownChoices::keep(const GraphFor& graphs, const CompileOptions& request, ClosedRequest found) {
  std::shared_ptr<const ProgramGraph> program = programFor(graphs, found.request);
  known_.push_back({std::move(program), request, std::move(found)});
}

}  // namespace weft
