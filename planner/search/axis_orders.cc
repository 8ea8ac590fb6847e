#include "planner/search/axis_orders.h"

#include <algorithm>
#include <cstdint>
#include <set>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "ir/layout/mesh.h"
#include "ir/layout/reshard.h"

namespace weft {
namespace {

constexpr size_t kMostAxes = 4;  // of as many there are 24 orders

// By set of axes, the same for all orders: how many ranks of its groups lie on each node.
std::vector<int64_t> spansOf(const Mesh& mesh, const std::vector<std::string>& names, const Machine& machine) {
  std::vector<int64_t> spans;
  for (uint64_t set = 1; set < uint64_t{1} << names.size(); ++set) {
    AxisList axes;
    for (const NamedAxis& named : mesh.axes()) {
      const auto number = std::find(names.begin(), names.end(), named.name) - names.begin();
      if ((set >> number & 1) != 0) {
        axes.push_back(named.axis);
      }
    }
    spans.push_back(spanOf(machine, mesh.ranks(), axes).perNode);
  }
  return spans;
}

}  // namespace

std::vector<std::string> axisOrders(const std::string& text, const Machine& machine) {
  const absl::StatusOr<Mesh> mesh = Mesh::parse(text);
  if (!mesh.ok() || machine.devicesPerNode == 0 || mesh->ranks() <= machine.devicesPerNode ||
      mesh->axes().size() > kMostAxes) {
    return {text};
  }
  std::vector<std::string> names;
  for (const NamedAxis& named : mesh->axes()) {
    names.push_back(named.name);
  }
  std::vector<std::pair<size_t, std::string>> words;  // by where they stand in the text
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    words.emplace_back(words.size(), word);
  }
  std::vector<std::string> orders;
  std::set<std::vector<int64_t>> known;
  do {
    const std::string order =
        absl::StrJoin(words, ",", [](std::string* out, const auto& word) { out->append(word.second); });
    if (known.insert(spansOf(*Mesh::parse(order), names, machine)).second) {
      orders.push_back(order);
    }
  } while (std::next_permutation(words.begin(), words.end()));
  return orders;
}

}  // namespace weft
