#include "planner/graph/program_graph.h"

#include <algorithm>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace weft {
namespace {

constexpr const char* kPhases[] = {"forward", "backward", "update"};
constexpr const char* kArgumentKinds[] = {"input", "parameter", "state"};
// Names the place of an error in absl::Status: "LINE:COLUMN:FILE".
constexpr char kLinePayload[] = "weft/source_place";

}  // namespace

absl::Status errorAt(const SourcePlace& line, const std::string& message) {
  absl::Status status = absl::InvalidArgumentError(message);
  const std::string place = absl::StrCat(line.line, ":", line.column, ":", line.file);
  status.SetPayload(kLinePayload, absl::Cord(absl::string_view(place)));
  return status;
}

SourcePlace sourcePlaceOf(const absl::Status& status) {
  SourcePlace place;
  const std::string text = std::string(status.GetPayload(kLinePayload).value_or(absl::Cord()));
  const size_t first = text.find(':');
  const size_t second = first == std::string::npos ? first : text.find(':', first + 1);
  if (second != std::string::npos && absl::SimpleAtoi(text.substr(0, first), &place.line) &&
      absl::SimpleAtoi(text.substr(first + 1, second - first - 1), &place.column)) {
    place.file = text.substr(second + 1);
  }
  return place;
}

std::string phaseName(Phase phase) {
  return kPhases[static_cast<size_t>(phase)];
}

std::string argumentKindName(ArgumentKind kind) {
  return kArgumentKinds[static_cast<size_t>(kind)];
}

int64_t TensorType::elements() const {
  int64_t count = 1;
  for (const int64_t size : shape) {
    count *= size;
  }
  return count;
}

bool GraphArgument::hasBatch() const {
  return kind == ArgumentKind::kInput && batchDim >= 0 && batchDim < static_cast<int64_t>(type.shape.size()) &&
         type.shape[batchDim] > 1;
}

bool ProgramGraph::trains() const {
  return std::any_of(operators.begin(), operators.end(),
                     [](const GraphOperator& op) { return op.phase == Phase::kBackward; });
}

}  // namespace weft
