#include "planner/search/search_memory.h"

#include <tuple>

namespace weft {
namespace {

// Every word of a request: one that is added does not compile until it has its place here.
auto wordsOf(const CompileOptions& options) {
  const auto& [mode, mesh, stageMeshes, devices, machine, micro, zero, zeroOf, fill, schedule, scheduleTable,
               virtualStages, memoryLimit, recompute, regather, overlap, offload, clipNorm, seed, gradientOutputs,
               layouts, stages, maxStages, without, departures, from, dumpDir, decisions] = options;
  return std::tie(micro, mesh, zero, regather, mode, stageMeshes, devices, zeroOf, fill, schedule, scheduleTable,
                  virtualStages, memoryLimit, recompute, overlap, offload, clipNorm, seed, gradientOutputs, layouts,
                  stages, maxStages, without, departures, from, dumpDir, decisions, machine);
}

}  // namespace

bool areSame(const CompileOptions& a, const CompileOptions& b) {
  return wordsOf(a) == wordsOf(b);
}

template <typename Answer>
bool KnownAnswers<Answer>::isSame(const SearchQuestion& a, const SearchQuestion& b) {
  return a.graph == b.graph && a.bytePrice == b.bytePrice && a.uncut == b.uncut && a.programZero == b.programZero &&
         a.first == b.first && areSame(a.closed, b.closed);
}

template <>
bool KnownAnswers<SegmentCosts>::isFinal(const absl::StatusOr<SegmentCosts>&) {
  return true;
}

template <>
bool KnownAnswers<ClosedRequest>::isFinal(const absl::StatusOr<ClosedRequest>& answer) {
  return !answer.ok() || answer->attempt.fits;
}

template class KnownAnswers<SegmentCosts>;
template class KnownAnswers<ClosedRequest>;

}  // namespace weft
