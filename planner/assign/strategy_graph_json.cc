// Reads strategy graphs number by number: as a document in memory a graph of some hundred megabytes would take ten
// times as much.
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "planner/assign/strategy_graph.h"
#include "runtime/base/json.h"
#include "runtime/base/status.h"

namespace weft::assign {
namespace {

template <typename... Parts>
absl::Status bad(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

// Where the reader stands.
enum class Place { kFile, kProblem, kNodes, kEdges, kList, kRow, kOther };

// A number that may be whole, or not.
struct Number {
  double real = 0;
  std::optional<int64_t> whole;
};

class Reader : public nlohmann::json_sax<Json> {
 public:
  explicit Reader(StrategyGraph& graph) : graph_(graph) {}

  const absl::Status& status() const { return status_; }
  bool has(const std::string& name) const { return names_.count(name) > 0; }

  bool null() override { return key_ == "problem.usage_limit" && place() == Place::kProblem ? true : scalar("null"); }
  bool boolean(bool value) override { return scalar(value ? "true" : "false"); }
  bool string(string_t& value) override { return scalar("a text"); }
  bool binary(binary_t& value) override { return scalar("bytes"); }
  bool number_integer(number_integer_t value) override { return number({static_cast<double>(value), value}); }
  bool number_unsigned(number_unsigned_t value) override {
    Number number_{static_cast<double>(value), std::nullopt};
    if (value <= static_cast<uint64_t>(INT64_MAX)) {
      number_.whole = static_cast<int64_t>(value);
    }
    return number(number_);
  }
  bool number_float(number_float_t value, const string_t& text) override {
    Number number_{value, std::nullopt};
    if (value == std::floor(value) && std::fabs(value) < 0x1p62) {
      number_.whole = static_cast<int64_t>(value);
    }
    return number(number_);
  }

  bool start_object(size_t size) override;
  bool end_object() override { return leave(); }
  bool key(string_t& name) override;
  bool start_array(size_t size) override;
  bool end_array() override;
  bool parse_error(size_t position, const std::string& token, const nlohmann::detail::exception& error) override {
    return refuse("no JSON: ", jsonReason(error), places_.empty() ? "" : "; the file may be cut short");
  }

 private:
  // A list that is read: of whole numbers, or of costs.
  struct List {
    Rows<int64_t>* whole = nullptr;
    Rows<double>* real = nullptr;
  };

  Place place() const { return places_.empty() ? Place::kOther : places_.back(); }
  std::string where() const;
  List listOf(const std::string& name);
  bool leave() {
    places_.pop_back();
    return true;
  }
  bool enter(Place place) {
    places_.push_back(place);
    return places_.size() <= kMaxJsonDepth || refuse("values are nested more than ", kMaxJsonDepth, " deep");
  }
  bool scalar(const std::string& found);
  bool number(const Number& number);
  template <typename... Parts>
  bool refuse(const Parts&... parts) {
    status_ = bad(parts...);
    return false;
  }

  StrategyGraph& graph_;
  absl::Status status_;
  std::vector<Place> places_;
  std::string key_;  // of the value that comes, with the object that it is in
  List list_;
  std::set<std::string> names_;  // that have been seen
};

std::string Reader::where() const {
  const size_t row = list_.whole != nullptr ? list_.whole->size() : list_.real != nullptr ? list_.real->size() : 0;
  switch (place()) {
    case Place::kList:
      return absl::StrCat(key_, "[", row, "]");
    case Place::kRow: {
      const size_t begin = list_.whole != nullptr ? list_.whole->begins.back() : list_.real->begins.back();
      const size_t end = list_.whole != nullptr ? list_.whole->values.size() : list_.real->values.size();
      return absl::StrCat(key_, "[", row, "][", end - begin, "]");
    }
    default:
      return key_.empty() ? "the file" : key_;
  }
}

Reader::List Reader::listOf(const std::string& name) {
  if (name == "nodes.intervals") {
    return {&graph_.intervals, nullptr};
  }
  if (name == "nodes.costs") {
    return {nullptr, &graph_.costs};
  }
  if (name == "nodes.usages") {
    return {&graph_.usages, nullptr};
  }
  if (name == "edges.nodes") {
    return {&graph_.edges, nullptr};
  }
  return name == "edges.costs" ? List{nullptr, &graph_.edgeCosts} : List{};
}

bool Reader::scalar(const std::string& found) {
  if (place() == Place::kOther && !places_.empty()) {
    return true;
  }
  if (place() == Place::kRow) {
    return refuse(where(), ": found ", found, ", expected a number");
  }
  if (place() == Place::kList) {
    return refuse(where(), ": found ", found, ", expected a list of numbers");
  }
  const bool isList = listOf(key_).whole != nullptr || listOf(key_).real != nullptr;
  const bool isObject = key_.empty() || key_ == "problem" || key_ == "nodes" || key_ == "edges";
  if (isList || isObject) {
    return refuse(where(), ": found ", found, ", expected ", isList ? "a list of lists of numbers" : "an object");
  }
  return key_ != "problem.usage_limit" || refuse("usage_limit: found ", found, ", expected an integer");
}

bool Reader::number(const Number& number) {
  if (place() == Place::kProblem && key_ == "problem.usage_limit") {
    if (!number.whole || *number.whole < 0) {
      return refuse("usage_limit: found ", number.real, ", expected an integer of at least 0; leave it out for none");
    }
    graph_.usageLimit = *number.whole;
    return true;
  }
  if (place() != Place::kRow) {
    return scalar(absl::StrCat(number.real));
  }
  if (list_.real != nullptr) {
    if (number.real <= -kImpossibleCost) {
      return refuse(where(), ": found ", number.real, ", expected a cost above ", -kImpossibleCost);
    }
    list_.real->values.push_back(number.real);
    return true;
  }
  if (!number.whole) {
    return refuse(where(), ": found ", number.real, ", expected an integer of 64 bits");
  }
  list_.whole->values.push_back(*number.whole);
  return true;
}

bool Reader::start_object(size_t size) {
  if (places_.empty()) {
    return enter(Place::kFile);
  }
  if (place() == Place::kFile && key_ == "problem") {
    return enter(Place::kProblem);
  }
  if (place() == Place::kProblem && (key_ == "nodes" || key_ == "edges")) {
    return enter(key_ == "nodes" ? Place::kNodes : Place::kEdges);
  }
  return scalar("an object") && enter(Place::kOther);
}

bool Reader::key(string_t& name) {
  switch (place()) {
    case Place::kFile:
      key_ = name == "problem" ? name : "other." + name;
      break;
    case Place::kProblem:
      key_ = name == "nodes" || name == "edges" ? name : "problem." + name;
      break;
    case Place::kNodes:
      key_ = "nodes." + name;
      break;
    case Place::kEdges:
      key_ = "edges." + name;
      break;
    default:
      return true;  // inside of what is passed over
  }
  return names_.insert(key_).second || refuse(key_, ": stands twice in the file");
}

bool Reader::start_array(size_t size) {
  if (place() == Place::kNodes || place() == Place::kEdges) {
    list_ = listOf(key_);
    if (list_.whole != nullptr || list_.real != nullptr) {
      return enter(Place::kList);
    }
  } else if (place() == Place::kList) {
    return enter(Place::kRow);
  }
  return scalar("a list") && enter(Place::kOther);
}

bool Reader::end_array() {
  if (place() == Place::kRow && list_.whole != nullptr) {
    list_.whole->begins.push_back(list_.whole->values.size());
  } else if (place() == Place::kRow) {
    list_.real->begins.push_back(list_.real->values.size());
  }
  return leave();
}

absl::Status checkNodes(const StrategyGraph& graph) {
  const size_t nodes = graph.nodes();
  if (nodes == 0) {
    return bad("nodes.costs: no nodes");
  }
  if (nodes > size_t{INT32_MAX} / 2) {
    return bad("nodes.costs: ", nodes, " nodes, more than ", INT32_MAX / 2);
  }
  if (graph.intervals.size() != nodes || graph.usages.size() != nodes) {
    return bad("nodes: ", nodes, " lists of costs, but ", graph.usages.size(), " of usages and ",
               graph.intervals.size(), " intervals; each node needs one of each");
  }
  for (size_t v = 0; v < nodes; ++v) {
    const size_t strategies = graph.costs.sizeOf(v);
    if (strategies == 0) {
      return bad("nodes.costs[", v, "]: no strategies; a node needs at least one");
    }
    if (strategies != graph.usages.sizeOf(v)) {
      return bad("nodes.costs[", v, "]: ", strategies, " costs, but usages[", v, "] has ", graph.usages.sizeOf(v),
                 " entries; each strategy needs both");
    }
    if (graph.intervals.sizeOf(v) != 2) {
      return bad("nodes.intervals[", v, "]: ", graph.intervals.sizeOf(v), " entries, expected [begin, end]");
    }
    const int64_t* interval = graph.intervals.of(v);
    if (interval[0] < 0) {
      return bad("nodes.intervals[", v, "]: begins at ", interval[0], ", expected a time of at least 0");
    }
    for (size_t s = 0; s < strategies; ++s) {
      if (graph.usages.of(v)[s] < 0) {
        return bad("nodes.usages[", v, "][", s, "]: found ", graph.usages.of(v)[s], ", expected at least 0");
      }
    }
  }
  return absl::OkStatus();
}

absl::Status checkEdges(const StrategyGraph& graph) {
  if (graph.edges.size() != graph.edgeCosts.size()) {
    return bad("edges: ", graph.edges.size(), " pairs of nodes, but ", graph.edgeCosts.size(),
               " lists of costs; each edge needs both");
  }
  const auto nodes = static_cast<int64_t>(graph.nodes());
  for (size_t e = 0; e < graph.edges.size(); ++e) {
    if (graph.edges.sizeOf(e) != 2) {
      return bad("edges.nodes[", e, "]: ", graph.edges.sizeOf(e), " nodes, expected two");
    }
    const int64_t* ends = graph.edges.of(e);
    for (int end = 0; end < 2; ++end) {
      if (ends[end] < 0 || ends[end] >= nodes) {
        return bad("edges.nodes[", e, "]: names node ", ends[end], ", but the nodes are 0 to ", nodes - 1);
      }
    }
    const size_t rows = graph.costs.sizeOf(ends[0]);
    const size_t columns = graph.costs.sizeOf(ends[1]);
    if (graph.edgeCosts.sizeOf(e) != rows * columns) {
      return bad("edges.costs[", e, "]: ", graph.edgeCosts.sizeOf(e), " costs, expected ", rows, " x ", columns,
                 ", the strategies of nodes ", ends[0], " and ", ends[1]);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<StrategyGraph> parseStrategyGraph(const std::string& text) {
  StrategyGraph graph;
  Reader reader(graph);
  if (!Json::sax_parse(text, &reader)) {
    return reader.status();
  }
  for (const char* name : {"problem", "nodes", "nodes.intervals", "nodes.costs", "nodes.usages"}) {
    if (!reader.has(name)) {
      return bad(name, ": missing");
    }
  }
  WEFT_RETURN_IF_ERROR(checkNodes(graph));
  WEFT_RETURN_IF_ERROR(checkEdges(graph));
  return graph;
}

}  // namespace weft::assign
