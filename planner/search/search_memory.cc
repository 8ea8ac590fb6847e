#include "planner/search/search_memory.h"

#include <tuple>

#include "runtime/base/status.h"

namespace weft {
namespace {

// Every word of a request: one that is added does not compile until it has its place here.
auto wordsOf(const CompileOptions& options) {
  const auto& [mode, mesh, stageMeshes, devices, machine, micro, zero, zeroOf, fill, schedule, scheduleTable,
               virtualStages, memoryLimit, recompute, regather, gatherBucket, overlap, offload, clipNorm, seed,
               gradientOutputs, layouts, stages, maxStages, without, departures, from, dumpDir, decisions] = options;
  return std::tie(micro, mesh, zero, regather, mode, stageMeshes, devices, zeroOf, fill, schedule, scheduleTable,
                  virtualStages, memoryLimit, recompute, gatherBucket, overlap, offload, clipNorm, seed,
                  gradientOutputs, layouts, stages, maxStages, without, departures, from, dumpDir, decisions, machine);
}

}  // namespace

bool areSame(const CompileOptions& a, const CompileOptions& b) {
  return wordsOf(a) == wordsOf(b);
}

template <typename Answer>
bool KnownAnswers<Answer>::isSame(const SearchQuestion& a, const SearchQuestion& b) {
  return a.graph == b.graph && a.bytePrice == b.bytePrice && a.uncut == b.uncut && a.programZero == b.programZero &&
         areSame(a.closed, b.closed) && a.stages == b.stages;
}

template <>
bool KnownAnswers<SegmentCosts>::isFinal(const absl::StatusOr<SegmentCosts>&) {
  return true;
}

template <>
bool KnownAnswers<ClosedRequest>::isFinal(const absl::StatusOr<ClosedRequest>& answer) {
  return !answer.ok() || answer->attempt.fits;
}

absl::StatusOr<Picoseconds> KnownBounds::of(const std::shared_ptr<const ProgramGraph>& graph, const Machine& machine,
                                            const BoundedPlans& plans) {
  const std::string text = machine.print();
  for (const Known& known : known_) {
    if (known.graph == graph && known.machine == text && known.plans == plans) {
      return known.least;
    }
  }
  WEFT_ASSIGN_OR_RETURN(const Picoseconds least, leastTime(*graph, machine, plans));
  known_.push_back({graph, text, plans, least});
  return least;
}

template class KnownAnswers<SegmentCosts>;
template class KnownAnswers<ClosedRequest>;

}  // namespace weft
