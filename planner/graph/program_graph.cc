#include "planner/graph/program_graph.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace weft {
namespace {

constexpr const char* kPhases[] = {"forward", "backward", "update"};
constexpr const char* kArgumentKinds[] = {"input", "parameter", "state"};
constexpr const char* kViewKinds[] = {"none", "shape", "annotation"};
// Names the place of an error in absl::Status: "LINE:COLUMN:FILE".
constexpr char kLinePayload[] = "weft/source_place";

bool same(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

bool same(const std::optional<double>& a, const std::optional<double>& b) {
  return a && b ? same(*a, *b) : a == b;
}

template <typename Value>
bool same(const std::vector<Value>& a, const std::vector<Value>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Value& x, const Value& y) { return same(x, y); });
}

bool same(const Attribute& a, const Attribute& b) {
  if (a.index() != b.index()) {
    return false;
  }
  if (const auto* real = std::get_if<double>(&a)) {
    return same(*real, std::get<double>(b));
  }
  const auto* reals = std::get_if<std::vector<double>>(&a);
  return reals != nullptr ? same(*reals, std::get<std::vector<double>>(b)) : a == b;
}

bool same(const AttributeMap& a, const AttributeMap& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return x.first == y.first && same(x.second, y.second); });
}

// All that cannot be NaN.
auto exactFacts(const OperatorFacts& facts) {
  return std::tie(facts.kind, facts.rule, facts.linear, facts.passesSums, facts.isSum, facts.updatesParameter,
                  facts.isConstant, facts.mustExpand, facts.view, facts.flopsPerPoint, facts.reduce);
}

}  // namespace

bool operator==(const OperatorFacts& a, const OperatorFacts& b) {
  return exactFacts(a) == exactFacts(b) && same(a.attributes, b.attributes) && same(a.padFill, b.padFill);
}

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

std::string viewKindName(ViewKind view) {
  return kViewKinds[static_cast<size_t>(view)];
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
