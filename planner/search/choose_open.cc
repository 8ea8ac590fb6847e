#include "planner/search/choose_open.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "planner/machine/picoseconds.h"
#include "planner/open_mesh.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

// A note says this much of what was not taken.
constexpr size_t kMostNamed = 8;

struct Candidate {
  std::string words;  // "dp=4,tp=2 zero 1"
  ClosedRequest closed;
};

std::string wordsOf(const CompileOptions& closed, const CompileOptions& request) {
  std::vector<std::string> words;
  if (isOpenMesh(request.mesh)) {
    words.push_back(closed.mesh);
  }
  if (request.zeroLevel() == kFindZero) {
    words.push_back(absl::StrCat("zero ", closed.zeroLevel(), closed.regather && !request.regather ? " regather" : ""));
  }
  return absl::StrJoin(words, " ");
}

std::string described(const Candidate& candidate) {
  const Attempt& attempt = candidate.closed.attempt;
  return absl::StrFormat("%s %.4g ms, %d bytes%s", candidate.words, 1e3 * inSeconds(attempt.time), attempt.peakBytes,
                         attempt.fits ? "" : " (more than the limit)");
}

// The best first.
std::string noteOf(const CompileOptions& request, const std::vector<Candidate>& candidates, size_t refused) {
  std::vector<std::string> others;
  for (size_t i = 1; i < std::min(candidates.size(), kMostNamed + 1); ++i) {
    others.push_back(described(candidates[i]));
  }
  const size_t left = candidates.size() - 1 - others.size();
  if (left > 0) {
    others.push_back(absl::StrCat(left, " that are no better"));
  }
  if (refused > 0) {
    others.push_back(absl::StrCat(refused, " that cannot be"));
  }
  return absl::StrCat(
      "found",
      isOpenMesh(request.mesh) ? absl::StrCat(" for mesh '", request.mesh, "' on ", request.devices, " devices") : "",
      ": ", described(candidates.front()),
      " predicted for a step of a rank; others: ", others.empty() ? "none" : absl::StrJoin(others, "; "));
}

}  // namespace

std::vector<CompileOptions> withZero(const CompileOptions& request, bool trains) {
  if (request.zeroLevel() != kFindZero) {
    return {request};
  }
  std::vector<CompileOptions> closed;
  for (int level = 0; level <= (trains ? 3 : 0); ++level) {
    closed.push_back(request);
    closed.back().zero = level;
  }
  if (trains && !request.regather && request.may(Freedom::kGathers)) {
    closed.push_back(closed.back());
    closed.back().regather = true;
  }
  return closed;
}

bool leavesOpen(const CompileOptions& request) {
  return request.mode == Mode::kAuto || isOpenMesh(request.mesh) || request.zeroLevel() == kFindZero ||
         request.offload == Offload::kAuto;
}

absl::StatusOr<ClosedRequest> chooseOpen(const std::shared_ptr<const ProgramGraph>& graph,
                                         const CompileOptions& request, const Predict& predict) {
  std::vector<std::string> meshes = {request.mesh};
  if (isOpenMesh(request.mesh)) {
    WEFT_ASSIGN_OR_RETURN(meshes, closedMeshes(request.mesh, request.devices));
  }
  std::vector<Candidate> candidates;
  size_t refused = 0;
  absl::Status first;
  for (const std::string& mesh : meshes) {
    CompileOptions onMesh = request;
    onMesh.mesh = mesh;
    for (const CompileOptions& closed : withZero(onMesh, graph->trains())) {
      absl::StatusOr<Attempt> attempt = predict(*graph, closed, std::nullopt, kAnyTime);
      if (attempt.ok()) {
        candidates.push_back({wordsOf(closed, request), {closed, graph, *std::move(attempt)}});
      } else {
        first = refused++ == 0 ? attempt.status() : first;
      }
    }
  }
  if (candidates.empty()) {
    return first;
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return isBetter(a.closed.attempt, b.closed.attempt); });
  ClosedRequest best = candidates.front().closed;
  best.ticks = static_cast<int64_t>(candidates.size() + refused);
  if (leavesOpen(request)) {
    best.attempt.decisions.notes.push_back(noteOf(request, candidates, refused));
  }
  return best;
}

}  // namespace weft
